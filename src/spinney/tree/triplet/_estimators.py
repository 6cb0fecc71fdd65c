"""Trees of comparisons for classes and for numbers."""

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
        Decides the pivots.
    n_jobs : int, default=None
        Threads; they do not change the result. None means the value of
        `spinney.set_num_threads`."""


class _OneTree:
    """What both trees share."""

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
        """Ask whether rows are closer to one training row than to another.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.
        near, far : int
            Numbers of training rows that the tree compares with.

        Returns
        -------
        ndarray of bool
            One answer for each row.
        """
        check_is_fitted(self)
        a, b = int(self._places[near]), int(self._places[far])
        if a < 0 or b < 0:
            raise ValueError(f"near, far: expected rows that the tree asks for, got {near}, {far}")
        rows = self._pivots.read(self, X)
        closer = rows.closer(self._pivots, 1)
        x = np.arange(rows.n_rows)
        return np.asarray(closer(x, np.full_like(x, a), np.full_like(x, b)))

    def pivot_name(self: Any, row: int) -> str:
        """Say what a training row is called in texts: a string itself, or its number.

        Parameters
        ----------
        row : int
            Number of a training row that the tree compares with.

        Returns
        -------
        str
            The name.
        """
        return str(self._pivots.name(int(self._places[row]), row))

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedComparisonTree(self, feature_names, class_names)

    def apply(self: Any, X: Any) -> Indices:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array, frame or sequence
            The rows, as `metric` asks for.

        Returns
        -------
        ndarray of shape (n_rows,)
            Nodes of `tree_`.
        """
        (leaves,) = self._leaves(X)
        return leaves


class ComparisonTreeClassifier(_OneTree, ComparisonClassifier):
    __doc__ = f"""A tree for classes that asks which of two training rows a row is closer to.

    A node draws two of its training rows that have different classes, the pivots. Rows that are
    closer to the first go left; others go right, those as close to one as to the other too. A node
    whose rows are of one class, or that six draws could not divide, is a leaf.

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
        Comparisons that `fit` asked for.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Columns seen in fit, of vectors and matrices.

    See Also
    --------
    spinney.ensemble.ComparisonForestClassifier : Many of them, averaged.

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
    __doc__ = f"""A tree for numbers that asks which of two training rows a row is closer to.

    A node draws two of its training rows that have different targets, the pivots. Rows that are
    closer to the first go left; others go right, those as close to one as to the other too. A node
    whose rows have one target, or that six draws could not divide, is a leaf.

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
        Comparisons that `fit` asked for.
    n_features_in_ : int
        Columns seen in fit, of vectors and matrices.

    See Also
    --------
    spinney.ensemble.ComparisonForestRegressor : Many of them, averaged.

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
