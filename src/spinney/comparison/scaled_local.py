"""Local regression for any table: numbers scaled, categories as indicators, gaps at the mean."""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin, RegressorMixin

from spinney.comparison.scaled_table import ScaledTable
from spinney.models.nested_params import LearnerIntervals, LearnerSets
from spinney.neighbors import LocalClassifier, LocalRegression

__all__ = ["ScaledLocalClassifier", "ScaledLocalRegressor"]

_MOST_SLOPES = 60  # beyond so many columns the fits are constants: slopes would cost too much


class _ScaledLocal(ScaledTable):
    """A plane at each place, with a little ridge, over rows weighted by tricube.

    Parameters are those that were good on most of a dozen tables; `LocalRegression` has them all.
    """

    def _unfitted(self, n_rows: int, n_columns: int) -> Any:
        return self._learner_class(
            degree=1 if n_columns <= _MOST_SLOPES else 0,
            kernel="tricube",
            n_neighbors=min(n_rows, max(50, 3 * (n_columns + 1))),
            alpha=1.0,
            n_jobs=self.n_jobs,
        )


class ScaledLocalClassifier(ClassifierMixin, _ScaledLocal, LearnerSets):  # type: ignore[misc]
    """A `spinney.neighbors.LocalClassifier` for tables as they come.

    Parameters
    ----------
    max_rows : int, default=20_000
        Of more rows than that so many are drawn and kept.
    random_state : int or None, default=None
        Seed of that draw.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Which columns hold categories.

    Attributes
    ----------
    estimator_ : LocalClassifier
        What fits at each place.
    """

    _learner_class = LocalClassifier

    def predict_proba(self, X: Any) -> Any:
        """Shares of the classes."""
        points = self._read(X)
        return self.estimator_.predict_proba(points)


class ScaledLocalRegressor(RegressorMixin, _ScaledLocal, LearnerIntervals):  # type: ignore[misc]
    """A `spinney.neighbors.LocalRegression` for tables as they come.

    Parameters
    ----------
    max_rows : int, default=20_000
        Of more rows than that so many are drawn and kept.
    random_state : int or None, default=None
        Seed of that draw.
    n_jobs : int or None, default=None
        Number of threads.
    categorical_features : "from_dtype" or array-like, default="from_dtype"
        Which columns hold categories.

    Attributes
    ----------
    estimator_ : LocalRegression
        What fits at each place.
    """

    _learner_class = LocalRegression
