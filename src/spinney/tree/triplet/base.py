"""What trees and forests of comparisons share: reading, growing, walking."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from spinney.conformal.mixins import IntervalsOnRequest, SetsOnRequest
from spinney.data.sample_weights import check_weights
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs
from spinney.tree.base import encode_classes
from spinney.tree.triplet.queries import METRICS, Rows, read_rows
from spinney.tree.triplet.tree import (
    Closer,
    ComparisonTree,
    Indices,
    Targets,
    grow_tree,
    walk,
)

__all__ = ["PARAMETERS", "BaseComparison", "ComparisonClassifier", "ComparisonRegressor"]

# Rows times trees that are under way at once: enough that calls do not matter, few enough for the
# cache.
_UNDER_WAY = 1 << 16

PARAMETERS = """metric : str or callable, default="auto"
        How rows are compared. "auto": by Euclidean distance if they are numbers, by edit distance
        if they are strings, by the `oracle` if there is one.

        - "euclidean", "manhattan", "chebyshev", "cosine", or another name that SciPy's ``cdist``
          knows: X has rows of numbers. The first four are fast.
        - "edit", "hamming": X has strings, in a sequence or one column. Edit distance counts
          insertions, deletions and replacements of characters; Hamming distance counts positions
          that differ, with those that only the longer string has.
        - "precomputed": X has distances, of all training rows to each other in `fit`, and of rows
          to all training rows afterwards.
        - "oracle": X has objects of any kind; only `oracle` looks at them.
        - a callable ``metric(u, v)`` that returns the distance of two rows (or strings).
    oracle : callable, default=None
        ``oracle(x, a, b)`` tells for arrays of objects whether each x[i] is closer to a[i] than to
        b[i]: an array of bool.
    leaf_size : int, default=1
        Nodes of at most so many rows are leaves.
    max_depth : int, default=None
        Levels at most; None means no limit."""


class BaseComparison(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class; not to be used directly."""

    _nodes: ComparisonTree
    _starts: Indices
    _pivots: Rows
    _places: Indices

    _parameter_constraints: dict[str, Any] = {
        "metric": [StrOptions(METRICS), callable],
        "oracle": [callable, None],
        "leaf_size": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    @abstractmethod
    def _read_targets(self, y: Any) -> Targets:
        """Read y."""

    @abstractmethod
    def _grow(
        self, closer: Closer, targets: Targets, rows: Indices, weights: NDArray[np.float64]
    ) -> list[tuple[ComparisonTree, int]]:
        """Grow the trees."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow from training rows.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, in the leaves and in the draws of pivots. Rows of weight zero are
            left out.

        Returns
        -------
        estimator
            Itself.
        """
        n_threads = effective_n_jobs(self.n_jobs)
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None."
            )
        training = read_rows(self, X)
        targets = self._read_targets(y)
        check_consistent_length(np.empty((training.n_rows, 0)), targets.codes)
        weights = check_weights(sample_weight, training.n_rows)
        rows = training.order()
        rows = rows[weights[rows] > 0]
        closer = training.closer(training, n_threads)
        grown = self._grow(closer, targets, rows, weights)
        self._nodes, self._starts = ComparisonTree.joined([tree for tree, _ in grown])
        self.n_comparisons_ = sum(n for _, n in grown)
        # Only pivots are needed from here on.
        is_inner = self._nodes.left >= 0
        is_pivot = np.zeros(training.n_rows, dtype=np.bool_)
        is_pivot[self._nodes.pivot_a[is_inner]] = True
        is_pivot[self._nodes.pivot_b[is_inner]] = True
        pivots = np.flatnonzero(is_pivot)
        self._pivots = training.take(pivots)
        self._places = np.full(training.n_rows, -1, dtype=np.intp)
        self._places[pivots] = np.arange(len(pivots))
        return self

    def _seeds(self, n_trees: int) -> Any:
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=n_trees)

    def _grow_one(
        self, closer: Closer, targets: Targets, rows: Indices, weights: Any, rng: Any
    ) -> tuple[ComparisonTree, int]:
        return grow_tree(closer, targets, rows, weights, rng, self.leaf_size, self.max_depth)

    def _part(self, tree: int) -> ComparisonTree:
        return self._nodes.part(*self._starts[tree : tree + 2])

    # ------------------------------------------------------------------ walking

    def _leaves(self, X: Any) -> Iterator[Indices]:
        """Tell tree by tree the leaf of each row, counted through all trees."""
        check_is_fitted(self)
        rows = self._pivots.read(self, X)
        answers = rows.closer(self._pivots, effective_n_jobs(self.n_jobs))
        places = self._places
        n_together = max(1, _UNDER_WAY // rows.n_rows)
        roots = self._starts[:-1]
        for first in range(0, len(roots), n_together):
            yield from walk(
                lambda x, a, b: answers(x, places[a], places[b]),
                self._nodes,
                roots[first : first + n_together],
                rows.n_rows,
            )

    def _means(self, X: Any) -> NDArray[np.float64]:
        """Mean of the trees' values, added up in the order of the trees."""
        leaves = self._leaves(X)
        first = next(leaves)
        sums = self._nodes.value[first]
        for leaf in leaves:
            sums += self._nodes.value[leaf]
        return np.asarray(sums / (len(self._starts) - 1))

    def count_comparisons(self, X: Any) -> Indices:
        """Count the comparisons that each row takes to be predicted.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers of comparisons, in all trees together.
        """
        return np.asarray(sum(self._nodes.depth[leaf] for leaf in self._leaves(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return "_nodes" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.metric, str) and self.metric == "precomputed"
        tags.input_tags.string = isinstance(self.metric, str) and self.metric in ("edit", "hamming")
        return tags


class ComparisonClassifier(SetsOnRequest, ClassifierMixin, BaseComparison):
    """What both kinds of classifiers share."""

    def _read_targets(self, y: Any) -> Targets:
        codes, _ = encode_classes(self, column_or_1d(y, warn=True))
        self.classes_: Any = self.classes_[0]
        self.n_classes_ = len(self.classes_)
        return Targets(codes[:, 0].astype(np.intp), self.n_classes_)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Shares of the classes in the leaves, mean over the trees.
        """
        return self._means(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The logarithm of `predict_proba`.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows,)
            The classes of the largest probability.
        """
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_.take(likeliest, axis=0))


class ComparisonRegressor(IntervalsOnRequest, RegressorMixin, BaseComparison):
    """What both kinds of regressors share."""

    def _read_targets(self, y: Any) -> Targets:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        numbers = np.asarray(column_or_1d(y, warn=True))
        codes = np.unique(numbers, return_inverse=True)[1]
        return Targets(codes.astype(np.intp), 0, numbers)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict numbers.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Means of the leaves, averaged over the trees.
        """
        return self._means(X)[:, 0]
