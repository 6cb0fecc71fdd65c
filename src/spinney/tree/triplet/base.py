"""Base classes of comparison trees and forests: input checks, growing, prediction."""

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
from spinney.tree.triplet.queries import METRICS, ComparableRows, read_comparable_rows
from spinney.tree.triplet.tree import (
    Closer,
    ComparisonTree,
    Indices,
    Targets,
    grow_tree,
    walk,
)

__all__ = ["PARAMETERS", "BaseComparison", "ComparisonClassifier", "ComparisonRegressor"]

# Rows times trees per batch of predictions: large enough to amortise calls, small enough for the
# cache.
_BATCH_SIZE = 1 << 16

PARAMETERS = """metric : str or callable, default="auto"
        How rows are compared. "auto": by Euclidean distance if they are numbers, by edit distance
        if they are strings, by the `oracle` if there is one.

        - "euclidean", "manhattan", "chebyshev", "cosine", or another metric of SciPy's ``cdist``:
          X has numeric rows. The first four are fast.
        - "edit", "hamming": X has strings, in a sequence or one column. Edit distance counts
          insertions, deletions and replacements of characters; Hamming distance counts positions
          that differ, including the extra positions of the longer string.
        - "precomputed": X has distances: between all training rows in `fit`, and from each row to
          all training rows in prediction.
        - "oracle": X has objects of any kind, which only `oracle` uses.
        - a callable ``metric(u, v)`` that returns the distance of two rows (or strings).
    oracle : callable, default=None
        ``oracle(x, a, b)`` gets arrays of objects and returns a boolean array: whether each x[i]
        is closer to a[i] than to b[i].
    leaf_size : int, default=1
        A node with at most this many rows is a leaf.
    max_depth : int, default=None
        Largest depth; None means no limit."""


class BaseComparison(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of comparison trees and forests; not to be used directly."""

    _nodes: ComparisonTree
    _starts: Indices
    _pivots: ComparableRows
    _pivot_indices: Indices

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
        """Validate and encode y."""

    @abstractmethod
    def _grow(
        self, closer: Closer, targets: Targets, rows: Indices, weights: NDArray[np.float64]
    ) -> list[tuple[ComparisonTree, int]]:
        """Grow the trees; return each with its number of comparisons."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Grow the model from training rows.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights for the leaves and for the draws of pivots; None means equal weights. Rows
            of weight zero are ignored.

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
        training = read_comparable_rows(self, X)
        targets = self._read_targets(y)
        check_consistent_length(np.empty((training.n_rows, 0)), targets.codes)
        weights = check_weights(sample_weight, training.n_rows)
        rows = training.order()
        rows = rows[weights[rows] > 0]
        closer = training.closer(training, n_threads)
        grown = self._grow(closer, targets, rows, weights)
        self._nodes, self._starts = ComparisonTree.joined([tree for tree, _ in grown])
        self.n_comparisons_ = sum(n for _, n in grown)
        # Prediction needs only the pivots.
        is_inner = self._nodes.left >= 0
        is_pivot = np.zeros(training.n_rows, dtype=np.bool_)
        is_pivot[self._nodes.pivot_a[is_inner]] = True
        is_pivot[self._nodes.pivot_b[is_inner]] = True
        pivots = np.flatnonzero(is_pivot)
        self._pivots = training.take(pivots)
        self._pivot_indices = np.full(training.n_rows, -1, dtype=np.intp)
        self._pivot_indices[pivots] = np.arange(len(pivots))
        return self

    @classmethod
    def _upgraded_state(cls, state: dict[str, Any]) -> dict[str, Any]:
        if "_places" in state:  # language: allow
            state["_pivot_indices"] = state.pop("_places")  # language: allow
        return state

    def _seeds(self, n_trees: int) -> Any:
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=n_trees)

    def _grow_one(
        self, closer: Closer, targets: Targets, rows: Indices, weights: Any, rng: Any
    ) -> tuple[ComparisonTree, int]:
        return grow_tree(
            closer,
            targets,
            rows,
            weights,
            rng,
            leaf_size=self.leaf_size,
            max_depth=self.max_depth,
        )

    def _part(self, tree: int) -> ComparisonTree:
        return self._nodes.part(*self._starts[tree : tree + 2])

    # ------------------------------------------------------------------ prediction

    def _leaves(self, X: Any) -> Iterator[Indices]:
        """Yield, for each tree, the leaf of each row as an index into the joined nodes."""
        check_is_fitted(self)
        rows = self._pivots.read(self, X)
        closer = rows.closer(self._pivots, effective_n_jobs(self.n_jobs))
        pivot_index = self._pivot_indices  # index among the pivots; -1 for other rows
        n_together = max(1, _BATCH_SIZE // rows.n_rows)
        roots = self._starts[:-1]
        for first in range(0, len(roots), n_together):
            yield from walk(
                lambda x, a, b: closer(x, pivot_index[a], pivot_index[b]),
                self._nodes,
                roots[first : first + n_together],
                rows.n_rows,
            )

    def _means(self, X: Any) -> NDArray[np.float64]:
        """Return the mean of the leaf values over the trees, summed in tree order."""
        leaves = self._leaves(X)
        first = next(leaves)
        sums = self._nodes.value[first]
        for leaf in leaves:
            sums += self._nodes.value[leaf]
        return np.asarray(sums / (len(self._starts) - 1))

    def count_comparisons(self, X: Any) -> Indices:
        """Return the number of comparisons that the prediction of each row takes.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.

        Returns
        -------
        ndarray of shape (n_rows,)
            Number of comparisons, summed over all trees.
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
    """Base class of comparison tree and forest classifiers."""

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
            The rows, of the kind that `metric` requires.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Class shares of the leaves, averaged over the trees.
        """
        return self._means(X)

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict logarithms of class probabilities.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.

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
            The rows, of the kind that `metric` requires.

        Returns
        -------
        ndarray of shape (n_rows,)
            The classes with the largest probability.
        """
        codes = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_.take(codes, axis=0))


class ComparisonRegressor(IntervalsOnRequest, RegressorMixin, BaseComparison):
    """Base class of comparison tree and forest regressors."""

    def _read_targets(self, y: Any) -> Targets:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        numbers = np.asarray(column_or_1d(y, warn=True))
        codes = np.unique(numbers, return_inverse=True)[1]
        return Targets(codes.astype(np.intp), 0, numbers)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict regression targets.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.

        Returns
        -------
        ndarray of shape (n_rows,)
            Means of the leaves, averaged over the trees.
        """
        return self._means(X)[:, 0]
