"""Learning from the rows near a place."""

from spinney.neighbors._local import LocalClassifier, LocalRegression

__all__ = ["LocalClassifier", "LocalRegression"]
