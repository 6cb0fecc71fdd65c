"""Fitted ensembles of trees without boosted sums, as values with methods for raw scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.data.table import Schema
from spinney.models.forest_store import ForestStore
from spinney.models.outcomes import (
    BoostedVotes,
    Isolation,
    Numbers,
    OneClass,
    SeveralShares,
    Shares,
    WeightedMedian,
)
from spinney.models.rounding import sum_rounding_error
from spinney.models.tree import Tree

__all__ = [
    "AveragedTrees",
    "EmbeddingTrees",
    "IsolationTrees",
    "MedianTrees",
    "SingleTree",
    "VotingTrees",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SingleTree:
    """A fitted decision tree.

    Parameters
    ----------
    tree : Tree
        The tree.
    schema : Schema
        Names and categories of the columns.
    classes : ndarray, list of ndarray, or None
        Labels of a classifier in the order of their codes; a list for several outputs.
    """

    tree: Tree
    schema: Schema
    classes: Any

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the leaf values of the rows, (n_rows, n_outputs * most classes)."""
        return self.tree.predict_table(rows, n_threads).reshape(rows.n_rows, -1)

    @property
    def outcome(self) -> Any:
        """How predictions follow from scores, in the form that exports use."""
        return _outcome_of_mean(self.classes, self.tree.n_outputs, 1)


@dataclass(frozen=True)
class _StoredTrees:
    """Trees in a store, and the columns of the training rows.

    Parameters
    ----------
    store : ForestStore
        The trees.
    schema : Schema
        Names and categories of the columns.
    """

    store: ForestStore
    schema: Schema

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.store)

    def trees(self) -> Iterator[Tree]:
        """Return the trees as parallel arrays."""
        return (self.store.tree(t) for t in range(len(self.store)))

    @property
    def n_outputs(self) -> int:
        """Number of columns of y."""
        return self.store.shape[2]

    def leaves(self, rows: Any, n_threads: int) -> NDArray[np.int64]:
        """Return the index of the leaf of each row in each tree, (n_rows, n_trees)."""
        out = np.empty((rows.n_rows, len(self.store)), dtype=np.int64)
        self.store.core.apply(rows, n_threads, out)
        return out

    def largest_change(self, change: Floats, size: Floats) -> float | None:
        """Return the largest possible change of a prediction if leaf values change.

        Parameters
        ----------
        change, size : ndarray of shape (n_trees,)
            Largest change, and largest absolute value, of a leaf of each tree.

        Returns
        -------
        float or None
            None if a small change of a leaf can change a vote.
        """
        return None


@dataclass(frozen=True)
class AveragedTrees(_StoredTrees):
    """A random forest or bagged trees: raw scores = sum of the values of the trees.

    Parameters
    ----------
    classes : ndarray, list of ndarray, or None
        Labels of a classifier in the order of their codes; a list for several outputs.
    hard : bool
        Whether each tree votes for one class instead of adding its class probabilities.
    """

    classes: Any = None
    hard: bool = False

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the sums over the trees, (n_rows, n_outputs * most classes)."""
        sums = np.empty((rows.n_rows, self.store.width))
        self.store.core.sum_predictions(rows, self.hard, n_threads, sums)
        return sums

    def mean_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the means over the trees, (n_rows, n_outputs * most classes)."""
        scores = self.raw_scores(rows, n_threads)
        scores /= len(self.store)
        return scores

    @property
    def outcome(self) -> Any:
        """How predictions follow from scores, in the form that exports use."""
        return _outcome_of_mean(self.classes, self.n_outputs, len(self.store))

    def largest_change(self, change: Floats, size: Floats) -> float | None:
        """Return the largest possible change of a prediction if leaf values change."""
        if self.hard:
            return None
        return float(change.mean() + sum_rounding_error(size / len(size)))


@dataclass(frozen=True)
class EmbeddingTrees(_StoredTrees):
    """The trees of an embedding, whose output is the leaves of a row."""

    def largest_change(self, change: Floats, size: Floats) -> float | None:
        """Return 0: the index of a leaf matters, its value does not."""
        return 0.0


@dataclass(frozen=True)
class IsolationTrees(_StoredTrees):
    """An isolation forest: raw score = sum of the path lengths of a row.

    Parameters
    ----------
    max_samples : int
        Number of rows that each tree was grown from.
    """

    max_samples: int = 1

    @property
    def usual_length(self) -> float:
        """Sum over the trees of the mean path length of unsuccessful searches."""
        return len(self.store) * float(_core.mean_path_length(float(self.max_samples)))

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the sums of path lengths, (n_rows, 1)."""
        lengths = np.empty(rows.n_rows)
        self.store.core.path_lengths(rows, n_threads, lengths)
        return lengths[:, np.newaxis]

    def outcome(self, offset: float) -> Isolation:
        """Return how predictions follow from scores, in the form that exports use."""
        return Isolation(self.usual_length, offset)

    def largest_change(self, change: Floats, size: Floats) -> float | None:
        """Return 0: the depth of a leaf matters, its value does not."""
        return 0.0


@dataclass(frozen=True)
class VotingTrees(_StoredTrees):
    """The trees of an AdaBoost classifier: raw scores = sums of weighted votes.

    Parameters
    ----------
    classes : ndarray
        Labels in the order of their codes.
    weights : ndarray of shape (n_trees,) or longer
        Weight of the vote of each tree.
    real : bool
        Whether trees add logarithms of probabilities instead of votes (algorithm "real").
    """

    classes: Any = None
    weights: Any = None
    real: bool = False

    def add_votes(self, rows: Any, trees: tuple[int, int], n_threads: int, votes: Floats) -> None:
        """Add the votes of the trees [first, last), in place."""
        first, last = trees
        _core.add_votes(
            self.store.core, rows, self.weights, self.real, first, last, n_threads, votes
        )

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the sums of votes, (n_rows, n_classes)."""
        votes = np.zeros((rows.n_rows, len(self.classes)))
        self.add_votes(rows, (0, len(self.store)), n_threads, votes)
        return votes

    @property
    def outcome(self) -> Any:
        """How predictions follow from scores, in the form that exports use."""
        if len(self.classes) == 1:
            return OneClass(self.classes)
        return BoostedVotes(self.classes, float(self.weights[: len(self.store)].sum()), self.real)


@dataclass(frozen=True)
class MedianTrees(_StoredTrees):
    """The trees of AdaBoost.R2: raw score t = prediction of tree t.

    Parameters
    ----------
    weights : ndarray of shape (n_trees,) or longer
        Weight of each tree in the median.
    """

    weights: Any = None

    def raw_scores(self, rows: Any, n_threads: int) -> Floats:
        """Return the predictions of the trees, (n_rows, n_trees)."""
        predictions = np.zeros((len(self.store), rows.n_rows, 1))
        for t, of_tree in enumerate(predictions):
            _core.add_rounds(self.store.core, rows, 1, t, t + 1, n_threads, of_tree)
        return predictions[:, :, 0].T

    @property
    def outcome(self) -> WeightedMedian:
        """How predictions follow from scores, in the form that exports use."""
        return WeightedMedian(self.weights[: len(self.store)])


def _outcome_of_mean(classes: Any, n_outputs: int, n_trees: int) -> Any:
    if classes is None:
        return Numbers(flat=n_outputs == 1, divisor=float(n_trees))
    return (Shares if n_outputs == 1 else SeveralShares)(classes, float(n_trees))
