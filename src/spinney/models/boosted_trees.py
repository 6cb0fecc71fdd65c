"""Boosted trees as a value, with methods for raw scores and predictions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from spinney import _core
from spinney.data.table import Schema
from spinney.models.forest_store import ForestStore
from spinney.models.outcomes import (
    Exponential,
    Logistic,
    Numbers,
    OneClass,
    Softmax,
    SortedQuantiles,
    TwoClasses,
)
from spinney.models.rounding import sum_rounding_error
from spinney.models.tree import Tree

__all__ = ["LINKS", "BoostedTrees", "ScoresInTraining", "softmax"]

Floats = NDArray[np.float64]

_BLOCK_ROWS = 4096  # rows whose scores stay in the cache

# From raw scores to predictions; the core's `RowScorer` supports all of these except "constant".
LINKS = (
    "identity",
    "exponential",
    "probability",
    "logistic",
    "twice_logistic",
    "softmax",
    "constant",
)


@dataclass(frozen=True)
class _Scores:
    """Meaning of the raw scores of a boosted model.

    Parameters
    ----------
    link : str
        How predictions follow from raw scores. Numbers: "identity", "exponential" or "probability"
        (the logistic function). Classes: "logistic", "twice_logistic" (of a score that is half the
        log-odds), "softmax", or "constant" for a model of one class.
    classes : ndarray or None
        Labels of a classifier, in the order of their codes.
    levels : tuple of float
        Quantile levels of a model of several quantiles; empty for any other model.
    n_targets : int
        Number of columns of y. If it is more than 1, each leaf has a value for each column.
    """

    link: str
    classes: NDArray[Any] | None
    levels: tuple[float, ...]
    n_targets: int

    def numbers(self, raw: Floats) -> Floats:
        """Return the predictions of a regressor, (n_rows,) or (n_rows, n_outputs)."""
        if self.levels:
            # Sorted quantiles do not cross, and no loss of theirs increases
            # (Chernozhukov, Fernández-Val and Galichon 2010).
            return np.asarray(np.sort(raw, axis=1)[:, self._ranks_of_levels()])
        raw = raw if self.n_targets > 1 else raw[:, 0]
        if self.link == "exponential":
            return np.asarray(np.exp(raw))
        if self.link == "probability":
            return np.asarray(1 / (1 + np.exp(-raw)))
        return raw

    def probabilities(self, raw: Floats) -> Floats:
        """Return the class probabilities of a classifier, (n_rows, n_classes)."""
        if self.link == "constant":
            return np.ones((len(raw), 1))
        if self.link == "softmax":
            return softmax(raw)
        log_odds = 2 * raw[:, 0] if self.link == "twice_logistic" else raw[:, 0]
        out = np.empty((len(raw), 2))
        expit(-log_odds, out=out[:, 0])
        expit(log_odds, out=out[:, 1])
        return out

    def labels(self, raw: Floats) -> NDArray[Any]:
        """Return the predicted classes of a classifier; the first one if scores are equal."""
        assert self.classes is not None
        if self.link == "softmax":
            return np.asarray(self.classes[raw.argmax(axis=1)])
        return np.asarray(self.classes[(raw[:, 0] > 0).astype(np.intp)])

    @property
    def outcome(self) -> Any:
        """How predictions follow from scores, in the form that exports use."""
        if self.link == "constant":
            return OneClass(self.classes)  # type: ignore[arg-type]
        if self.link == "softmax":
            return Softmax(self.classes)  # type: ignore[arg-type]
        if self.link in ("logistic", "twice_logistic"):
            factor = 2.0 if self.link == "twice_logistic" else 1.0
            return TwoClasses(self.classes, factor)  # type: ignore[arg-type]
        if self.levels:
            return SortedQuantiles([int(rank) for rank in self._ranks_of_levels()])
        flat = self.n_targets == 1
        if self.link == "exponential":
            return Exponential(flat)
        return Logistic(flat) if self.link == "probability" else Numbers(flat)

    def _ranks_of_levels(self) -> NDArray[np.intp]:
        return np.argsort(np.argsort(self.levels, kind="stable"), kind="stable")


@dataclass(frozen=True)
class BoostedTrees(_Scores):
    """A fitted booster: raw scores = baseline + sum of the values of the trees.

    The trees of a round are adjacent. If several boosters were averaged (one for each fold), a
    round has the trees of all boosters, with their values divided by the number of boosters.

    Parameters
    ----------
    store : ForestStore
        The trees.
    schema : Schema
        Names and categories of the columns.
    baseline : ndarray of shape (n_scores,)
        Raw scores before the first round.
    n_rounds : int
        Number of rounds that predictions use.
    n_boosters : int
        Number of boosters that were averaged.
    cover : {"rows", "weight", "unknown"}
        Unit of the node sizes. Only imported models have another value than "rows".
    """

    store: ForestStore
    schema: Schema
    baseline: Floats
    n_rounds: int
    n_boosters: int = 1
    cover: str = "rows"

    @property
    def n_scores(self) -> int:
        """Number of raw scores of a row."""
        return len(self.baseline)

    @property
    def trees_per_round(self) -> int:
        """Number of trees that one booster adds in a round."""
        return 1 if self.n_targets > 1 else self.n_scores

    @property
    def n_trees(self) -> int:
        """Number of trees that predictions use."""
        return self.n_rounds * self.n_boosters * self.trees_per_round

    def trees(self) -> Iterator[Tree]:
        """Return the trees as parallel arrays, in the order of summation."""
        return (self.store.tree(t) for t in range(self.n_trees))

    def largest_change(self, change: Floats, size: Floats) -> float:
        """Return the largest possible change of a raw score if leaf values change.

        Parameters
        ----------
        change, size : ndarray of shape (n_trees_in_store,)
            Largest change, and largest absolute value, of a leaf of each tree.
        """
        change, size = (values.reshape(-1, self.trees_per_round) for values in (change, size))
        baseline = np.full(self.trees_per_round, np.abs(self.baseline).max())
        bound = change.sum(axis=0) + sum_rounding_error(np.vstack([size, baseline]))
        return float(bound.max(initial=0.0))

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the raw scores of rows that were read for the core, (n_rows, n_scores)."""
        scores = self._start(rows)
        self.add_scores(rows, scores, (0, self.n_rounds), n_threads)
        return scores

    def staged_raw_scores(self, rows: Any, n_threads: int) -> Iterator[Floats]:
        """Yield the raw scores after each round."""
        scores = self._start(rows)
        for number in range(self.n_rounds):
            self.add_scores(rows, scores, (number, number + 1), n_threads)
            yield scores.copy()

    def _start(self, rows: Any) -> Floats:
        scores = np.empty((rows.n_rows, self.n_scores))
        scores[:] = self.baseline
        return scores

    def add_scores(
        self, rows: Any, scores: Floats, rounds: tuple[int, int], n_threads: int
    ) -> None:
        """Add the values of the rounds [first, last) to raw scores, in place."""
        first, last = (number * self.n_boosters for number in rounds)
        _core.add_rounds(
            self.store.core, rows, self.trees_per_round, first, last, n_threads, scores
        )


@dataclass(frozen=True)
class ScoresInTraining(_Scores):
    """A booster in training: it has only the raw scores of its validation rows.

    Parameters
    ----------
    current : callable
        Return the present raw scores of the validation rows, (n_rows, n_scores).
    """

    current: Callable[[], Floats]


def softmax(raw: Floats) -> Floats:
    """Return exp(score) of each column divided by their sum over the row."""
    out = np.empty(raw.shape)
    for first in range(0, len(raw), _BLOCK_ROWS):
        rows = slice(first, first + _BLOCK_ROWS)
        e = np.ascontiguousarray(raw[rows].T)  # the scores of one class are adjacent
        e -= functools.reduce(np.maximum, e)
        np.exp(e, out=e)
        # NumPy adds up to seven numbers of a row in their order, so a sum over the columns has the
        # same bits; it sums eight or more in another order.
        e /= functools.reduce(np.add, e) if len(e) < 8 else np.ascontiguousarray(e.T).sum(axis=1)
        out[rows] = e.T
    return out
