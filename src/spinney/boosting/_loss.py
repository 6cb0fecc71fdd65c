"""The loss of a booster in the form of the core."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Loss"]


@dataclass(frozen=True)
class Loss:
    """A loss with its parameter and the scores that it needs.

    Parameters
    ----------
    name : str
        The core's name of the loss.
    parameter : float
        Its parameter: quantile level, tweedie power, Huber's threshold, or the cutoff of NDCG.
    n_scores : int
        Number of raw scores of a row.
    n_targets : int
        Number of columns of y. If it is more than 1, each leaf has a value for each column.
    levels : tuple of float
        Quantile levels of a model of several quantiles; empty for any other model.
    """

    name: str
    parameter: float = 0.0
    n_scores: int = 1
    n_targets: int = 1
    levels: tuple[float, ...] = ()
