"""Comparison trees for classification and regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.tree.triplet._describe import NamedComparisonTree
from spinney.tree.triplet.base import PARAMETERS, ComparisonClassifier, ComparisonRegressor
from spinney.tree.triplet.tree import Closer, ComparisonTree, Indices, Targets

__all__ = ["ComparisonTreeClassifier", "ComparisonTreeRegressor"]

_OWN = """random_state : int, RandomState instance or None, default=None
        Seed for the draws of pivots.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it. None means the value of
        `spinney.set_num_threads`."""


class _OneTree:
    """Parameters and methods of both comparison trees."""

    def __init__(
        self,
        *,
        metric: Any = "auto",
        oracle: Any = None,
        leaf_size: int = 1,
        max_depth: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.oracle = oracle
        self.leaf_size = leaf_size
        self.max_depth = max_depth
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _grow(
        self: Any, closer: Closer, targets: Targets, rows: Indices, weights: NDArray[np.float64]
    ) -> list[tuple[ComparisonTree, int]]:
        rng = np.random.default_rng(self._seeds(1)[0])
        return [self._grow_one(closer, targets, rows, weights, rng)]

    @property
    def tree_(self: Any) -> ComparisonTree:
        """The nodes, as parallel arrays."""
        check_is_fitted(self)
        return self._part(0)

    def is_closer(self: Any, X: Any, near: int, far: int) -> NDArray[np.bool_]:
        """Return whether each row is closer to one training row than to another.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.
        near, far : int
            Indices of training rows that are pivots of the tree.

        Returns
        -------
        ndarray of bool of shape (n_rows,)
            Whether each row is closer to `near` than to `far`.
        """
        check_is_fitted(self)
        a, b = int(self._pivot_indices[near]), int(self._pivot_indices[far])
        if a < 0 or b < 0:
            raise ValueError(
                f"near, far: expected training rows that are pivots of the tree, got {near}, {far}"
            )
        rows = self._pivots.read(self, X)
        closer = rows.closer(self._pivots, 1)
        x = np.arange(rows.n_rows)
        return np.asarray(closer(x, np.full_like(x, a), np.full_like(x, b)))

    def pivot_name(self: Any, row: int) -> str:
        """Return the name of a training row in texts: the string itself, or its index.

        Parameters
        ----------
        row : int
            Index of a training row that is a pivot of the tree.

        Returns
        -------
        str
            The name.
        """
        return str(self._pivots.name(int(self._pivot_indices[row]), row))

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedComparisonTree(self, feature_names, class_names)

    def apply(self: Any, X: Any) -> Indices:
        """Return the leaf of each row.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, of the kind that `metric` requires.

        Returns
        -------
        ndarray of shape (n_rows,)
            Nodes of `tree_`.
        """
        (leaves,) = self._leaves(X)
        return leaves


class ComparisonTreeClassifier(_OneTree, ComparisonClassifier):
    __doc__ = f"""A classification tree that compares distances to two training rows.

    A node draws two of its training rows with different classes, the pivots. Rows that are closer
    to the first pivot go left; other rows, including ties, go right. A node is a leaf if its rows
    have one class, or if six draws do not split it.

    Parameters
    ----------
    {PARAMETERS}
    {_OWN}

    Attributes
    ----------
    tree_ : ComparisonTree
        The nodes, as parallel arrays: `left`, `right`, `pivot_a`, `pivot_b` (training rows),
        `value`, `n_node_samples`, `weighted_n_node_samples`, `depth`.
    n_comparisons_ : int
        Number of comparisons in `fit`.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of columns seen in fit, for vectors and matrices.

    See Also
    --------
    spinney.ensemble.ComparisonForestClassifier : An average of many such trees.

    References
    ----------
    S. Haghiri, D. Garreau, U. von Luxburg, "Comparison-Based Random Forests", ICML 2018.

    Examples
    --------
    >>> from spinney.tree import ComparisonTreeClassifier
    >>> words = ["aardvark", "aardwolf", "antelope", "tomato", "tomatoes", "potato"]
    >>> tree = ComparisonTreeClassifier(random_state=0).fit(words, [0, 0, 0, 1, 1, 1])
    >>> tree.predict(["potatoes", "aardwark"])
    array([1, 0])
    """


class ComparisonTreeRegressor(_OneTree, ComparisonRegressor):
    __doc__ = f"""A regression tree that compares distances to two training rows.

    A node draws two of its training rows with different targets, the pivots. Rows that are closer
    to the first pivot go left; other rows, including ties, go right. A node is a leaf if its rows
    have one target, or if six draws do not split it.

    Parameters
    ----------
    {PARAMETERS}
    {_OWN}

    Attributes
    ----------
    tree_ : ComparisonTree
        The nodes, as parallel arrays: `left`, `right`, `pivot_a`, `pivot_b` (training rows),
        `value`, `n_node_samples`, `weighted_n_node_samples`, `depth`.
    n_comparisons_ : int
        Number of comparisons in `fit`.
    n_features_in_ : int
        Number of columns seen in fit, for vectors and matrices.

    See Also
    --------
    spinney.ensemble.ComparisonForestRegressor : An average of many such trees.

    References
    ----------
    S. Haghiri, D. Garreau, U. von Luxburg, "Comparison-Based Random Forests", ICML 2018.

    Examples
    --------
    >>> from spinney.tree import ComparisonTreeRegressor
    >>> tree = ComparisonTreeRegressor(random_state=0).fit([[0.0], [1.0], [5.0]], [0.0, 1.0, 25.0])
    >>> tree.predict([[4.6], [0.1]])
    array([25.,  0.])
    """
