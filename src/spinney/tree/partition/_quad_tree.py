"""Quad trees: boxes that are split in all features at once."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney.tree.partition._cells import BaseCells, CellClassifier, CellRegressor
from spinney.tree.partition._describe_cells import NamedQuadTree
from spinney.tree.partition._quad_grower import Skeleton, grow

__all__ = ["QuadTree", "QuadTreeClassifier", "QuadTreeRegressor"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

_MAX_FEATURES = 10
_BLOCK = 1 << 15  # rows per block of predictions; the working set fits in the cache


@dataclass
class QuadTree:
    """A fitted quad tree as parallel arrays.

    Node 0 is the root; parents come before their children.

    Attributes
    ----------
    low, high : ndarray of shape (n_nodes, n_features)
        Boxes of the nodes. The box of the root is the range of the data.
    center : ndarray of shape (n_nodes, n_features)
        Split points; NaN for leaves.
    depth : ndarray of shape (n_nodes,)
        Depth of each node; the root has depth 0.
    n_node_samples, weighted_n_node_samples : ndarray of shape (n_nodes,)
        Numbers of rows, and sums of their weights.
    value : ndarray of shape (n_nodes, n_values)
        Shares of the classes, or the mean.
    impurity : ndarray of shape (n_nodes,)
        Gini impurity, or the variance.
    """

    low: Floats
    high: Floats
    center: Floats
    depth: Array
    n_node_samples: Array
    weighted_n_node_samples: Floats
    value: Floats
    impurity: Floats
    # Children of internal nodes only: with 10 features, each leaf would need 1024 unused slots.
    _inner: Array
    _slots: Array

    @property
    def internal_index(self) -> Array:
        """Index of each node among the internal nodes, -1 for leaves."""
        return self._inner

    @property
    def child_slots(self) -> Array:
        """Children of the internal nodes by quadrant, -1 where a quadrant is empty."""
        return self._slots

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.depth)

    @property
    def n_leaves(self) -> int:
        """Number of nodes without children."""
        return self.n_nodes - len(self._slots)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest node."""
        return int(self.depth.max())

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Mask of the nodes without children."""
        return np.asarray(self._inner < 0)

    @property
    def children(self) -> Array:
        """Children, (n_nodes, 2**n_features), −1 for none.

        Bit j of the index of a child is set if it contains the rows with ``x[j] > center[j]``.
        """
        out = np.full((self.n_nodes, self._slots.shape[1]), -1, dtype=self._slots.dtype)
        out[self._inner >= 0] = self._slots
        return out

    def apply(self, X: Floats) -> Array:
        """Return the node that predicts each row: the last node on its path.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            A leaf, or the parent of the empty child that a row would fall into.
        """
        out = np.empty(len(X), dtype=np.intp)
        for start in range(0, len(X), _BLOCK):
            out[start : start + _BLOCK] = self._descend(X[start : start + _BLOCK])
        return out

    def _descend(self, X: Floats) -> Array:
        columns = [np.ascontiguousarray(column) for column in X.T]
        n_slots = self._slots.shape[1]
        slots = self._slots.ravel()
        node = np.zeros(len(X), dtype=np.intp)
        out = np.zeros(len(X), dtype=np.intp)
        rows = np.arange(len(X))
        inner = self._inner[node]
        while True:
            stays = inner >= 0
            if not stays.all():
                rows, node, inner = rows[stays], node[stays], inner[stays]
                columns = [column[stays] for column in columns]
            if not len(rows):
                return out
            slot = inner * n_slots
            for j, column in enumerate(columns):
                slot += (column > self.center[node, j]).astype(np.intp) << j
            child = slots[slot].astype(np.intp)
            # A row whose child is empty stays at the parent and stops there.
            node = np.where(child >= 0, child, node)
            out[rows] = node
            inner = np.where(child >= 0, self._inner[node], -1)


class BaseQuadTree(BaseCells):
    """Base class of both quad trees; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        "split": [StrOptions({"midpoint", "point"})],
        "leaf_capacity": [Interval(Integral, 1, None, closed="left")],
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        split: str = "midpoint",
        leaf_capacity: int = 10,
        max_depth: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.split = split
        self.leaf_capacity = leaf_capacity
        self.max_depth = max_depth
        self.random_state = random_state

    @abstractmethod
    def _impurity(
        self,
        leaves: Array,
        targets: Array,
        weights: Floats,
        value: Floats,
        subtree_sums: _SubtreeSums,
    ) -> Floats:
        """Return the impurity of each node."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Partition the space and compute the class shares or the mean of each box.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers, at most 10 features.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights for the predicted values; None means equal weights. Splits depend on the
            number of rows, not on weights. Rows of weight zero are ignored.

        Returns
        -------
        estimator
            Itself.
        """
        X, targets, weights = self._read(X, y, sample_weight)
        n_features = X.shape[1]
        if n_features > _MAX_FEATURES:
            raise ValueError(
                f"X: expected at most {_MAX_FEATURES} features, got {n_features}; each node has "
                "2**n_features children"
            )
        at_points = self.split == "point"
        if at_points:
            order = check_random_state(self.random_state).permutation(len(X))
            X, targets, weights = X[order], targets[order], weights[order]
        skeleton, leaves = grow(X, self.leaf_capacity, self.max_depth, at_points)
        n_nodes = len(skeleton.depth)
        subtree_sums = _SubtreeSums(skeleton, leaves, weights)
        value = (
            subtree_sums.add(self._sums(leaves, n_nodes, targets, weights)) / subtree_sums.weights
        )
        is_inner = np.zeros(n_nodes, dtype=bool)
        is_inner[skeleton.parent[1:]] = True
        inner = np.where(is_inner, np.cumsum(is_inner) - 1, -1)
        slots = np.full((is_inner.sum(), 1 << n_features), -1, dtype=np.int32)
        slots[inner[skeleton.parent[1:]], skeleton.slot[1:]] = np.arange(1, n_nodes)
        self.tree_ = QuadTree(
            low=skeleton.low,
            high=skeleton.high,
            center=skeleton.center,
            depth=skeleton.depth,
            n_node_samples=skeleton.n_rows,
            weighted_n_node_samples=subtree_sums.weights[:, 0],
            value=value,
            impurity=self._impurity(leaves, targets, weights, value, subtree_sums),
            _inner=inner,
            _slots=slots,
        )
        self._store_training_rows(leaves, targets, weights)
        return self

    def _leave_one_out_values(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        tree = self.tree_
        parent = np.zeros(tree.n_nodes, dtype=np.intp)
        inner = np.flatnonzero(tree._inner >= 0)
        has_child = tree._slots >= 0
        parent[tree._slots[has_child]] = np.repeat(inner, has_child.sum(axis=1))
        # Without the row, its box may be empty, or a box above it may not be split.
        n_others = tree.n_node_samples - 1
        climbs = (n_others == 0) | (n_others[parent] <= self.leaf_capacity)
        climbs[0] = False
        node = cells.astype(np.intp)
        while climbs[node].any():
            node = np.where(climbs[node], parent[node], node)
        if n_others[0] == 0:
            return None
        w, total = weights[:, np.newaxis], tree.weighted_n_node_samples[node][:, np.newaxis]
        return np.asarray((tree.value[node] * total - w * own) / (total - w))

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedQuadTree(self, feature_names, class_names)

    def apply(self, X: Any) -> Array:
        """Return the node that predicts each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            A leaf, or the parent of the empty child that a row would fall into.
        """
        X = self._read_rows(X)
        return self.tree_.apply(X)

    def _locate(self, X: Floats) -> tuple[Floats, Array]:
        return self.tree_.value, self.tree_.apply(X)

    def get_depth(self) -> int:
        """Return the depth of the tree.

        Returns
        -------
        int
            Depth of the deepest leaf; 0 for a root alone.
        """
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves.

        Returns
        -------
        int
            Number of nodes without children; boxes without rows are not counted.
        """
        check_is_fitted(self)
        return self.tree_.n_leaves


class _SubtreeSums:
    """Sums over the leaves below each node.

    `weights` holds the total row weight of each node, (n_nodes, 1).
    """

    def __init__(self, skeleton: Skeleton, leaves: Array, weights: Floats) -> None:
        self.parent = skeleton.parent
        order = np.argsort(skeleton.depth, kind="stable")
        starts = np.flatnonzero(np.diff(skeleton.depth[order])) + 1
        # Deepest level first; the root is omitted because it has no parent.
        self.levels = np.split(order, starts)[:0:-1]
        own = np.bincount(leaves, weights, len(self.parent))
        self.weights = self.add(own[:, np.newaxis])

    def add(self, sums: Array, extra: Array | None = None) -> Floats:
        """Add the sums of the children, plus `extra` per child, to each node, in place."""
        for nodes in self.levels:
            child_sums = sums[nodes] if extra is None else sums[nodes] + extra[nodes]
            np.add.at(sums, self.parent[nodes], child_sums)
        return sums


class QuadTreeClassifier(CellClassifier, BaseQuadTree):
    """A quad tree for classification: 2^d children per node, leaves with class shares.

    A node with more than `leaf_capacity` rows is split in all d features at once. The splits adapt
    to the distribution of the rows but do not depend on the targets.

    Parameters
    ----------
    split : {"midpoint", "point"}, default="midpoint"
        Where a node is split. "midpoint": at the centre of its box; the root's box is the range of
        the data. "point": at the first inserted row of the node (Finkel and Bentley 1974), or, if
        no row is above that one in any feature, at the first row that differs from it. Rows are
        inserted in random order, so sorted data do not degrade the tree.
    leaf_capacity : int, default=10
        A node with more rows is split, unless its rows are all equal.
    max_depth : int, default=None
        Largest depth of a leaf; None means no limit.
    random_state : int, RandomState instance or None, default=None
        Seed for the order of insertion with ``split="point"``.

    Attributes
    ----------
    tree_ : QuadTree
        The tree: `children`, `center`, `low`, `high`, `value`, `impurity` (Gini) and so on.
    classes_ : ndarray of shape (n_classes,)
        The classes. Ties between shares go to the first class.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PartitionClassifier : Fixed cells.
    DecisionTreeClassifier : Boxes that depend on the targets, for any number of features.

    Notes
    -----
    A row with ``x[j] <= center[j]`` is on the low side of feature j. A box without rows has no
    node; its parent predicts.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from spinney.tree import QuadTreeClassifier
    >>> X, y = make_moons(500, noise=0.1, random_state=0)
    >>> model = QuadTreeClassifier(leaf_capacity=5).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def _impurity(
        self,
        leaves: Array,
        targets: Array,
        weights: Floats,
        value: Floats,
        subtree_sums: _SubtreeSums,
    ) -> Floats:
        return np.asarray(1 - np.square(value).sum(axis=1))


class QuadTreeRegressor(CellRegressor, BaseQuadTree):
    """A quad tree for regression: 2^d children per node, means in the leaves.

    A node with more than `leaf_capacity` rows is split in all d features at once. The splits adapt
    to the distribution of the rows but do not depend on the targets.

    Parameters
    ----------
    split : {"midpoint", "point"}, default="midpoint"
        Where a node is split. "midpoint": at the centre of its box; the root's box is the range of
        the data. "point": at the first inserted row of the node (Finkel and Bentley 1974), or, if
        no row is above that one in any feature, at the first row that differs from it. Rows are
        inserted in random order, so sorted data do not degrade the tree.
    leaf_capacity : int, default=10
        A node with more rows is split, unless its rows are all equal.
    max_depth : int, default=None
        Largest depth of a leaf; None means no limit.
    random_state : int, RandomState instance or None, default=None
        Seed for the order of insertion with ``split="point"``.

    Attributes
    ----------
    tree_ : QuadTree
        The tree: `children`, `center`, `low`, `high`, `value`, `impurity` (variance) and so on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PartitionRegressor : Fixed cells.
    DecisionTreeRegressor : Boxes that depend on the targets, for any number of features.

    Notes
    -----
    A row with ``x[j] <= center[j]`` is on the low side of feature j. A box without rows has no
    node; its parent predicts.

    Examples
    --------
    >>> from spinney.tree import QuadTreeRegressor
    >>> X = [[0.0, 0.0], [0.0, 1.0], [4.0, 0.0], [4.0, 4.0]]
    >>> model = QuadTreeRegressor(leaf_capacity=2).fit(X, [1.0, 3.0, 5.0, 7.0])
    >>> model.tree_.children[0].tolist()
    [1, 2, -1, 3]
    >>> model.predict([[1.0, 1.0], [1.0, 3.0]]).tolist()
    [2.0, 4.0]
    """

    def _impurity(
        self,
        leaves: Array,
        targets: Array,
        weights: Floats,
        value: Floats,
        subtree_sums: _SubtreeSums,
    ) -> Floats:
        with np.errstate(over="ignore"):  # the variance of huge targets is infinite
            within = np.square(targets - value[leaves, 0]) * weights
            squares = np.bincount(leaves, within, len(value))[:, np.newaxis]
            # Sum of squares around the parent's mean = within the child + weight × (mean shift)².
            between = subtree_sums.weights * np.square(value - value[subtree_sums.parent])
            return (subtree_sums.add(squares, between) / subtree_sums.weights)[:, 0]
