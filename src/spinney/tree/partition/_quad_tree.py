"""Quad trees: boxes that are divided in every feature at once where there are many rows."""

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

_MOST_FEATURES = 10
_BLOCK = 1 << 15  # of rows that go down together: what they need stays in the cache


@dataclass
class QuadTree:
    """A fitted quad tree as parallel arrays. Node 0 is the root; parents come before children.

    Attributes
    ----------
    low, high : ndarray of shape (n_nodes, n_features)
        Boxes of the nodes. The root's is the range of the data.
    center : ndarray of shape (n_nodes, n_features)
        Where nodes are split; NaN for leaves.
    depth : ndarray of shape (n_nodes,)
        Number of nodes above.
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
    # Children of the nodes that have any: a leaf of 10 features would have a thousand of no use.
    _inner: Array
    _slots: Array

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
        """Which nodes have no children."""
        return np.asarray(self._inner < 0)

    @property
    def children(self) -> Array:
        """Children, (n_nodes, 2**n_features), −1 for none.

        Bit j of the index of a child is set if it has the rows with ``x[j] > center[j]``.
        """
        out = np.full((self.n_nodes, self._slots.shape[1]), -1, dtype=self._slots.dtype)
        out[self._inner >= 0] = self._slots
        return out

    def apply(self, X: Floats) -> Array:
        """Find the node that answers for each row: the last one on its way down.

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
            # An empty child leaves its row where it is, and without children to go to.
            node = np.where(child >= 0, child, node)
            out[rows] = node
            inner = np.where(child >= 0, self._inner[node], -1)


class BaseQuadTree(BaseCells):
    """Base class of both kinds; not to be used directly."""

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
        self, leaves: Array, targets: Array, weights: Floats, value: Floats, climb: _Climb
    ) -> Floats:
        """Impurity of each node."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Divide the space by the rows, and take the shares or the mean of each box.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers, at most 10 features.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the values. Boxes are divided by the number of rows, whatever
            their weights are; rows of weight zero are left out.

        Returns
        -------
        estimator
            Itself.
        """
        X, targets, weights = self._read(X, y, sample_weight)
        n_features = X.shape[1]
        if n_features > _MOST_FEATURES:
            raise ValueError(
                f"X: expected at most {_MOST_FEATURES} features, got {n_features}, since every "
                "node would have 2**d children"
            )
        at_points = self.split == "point"
        if at_points:
            order = check_random_state(self.random_state).permutation(len(X))
            X, targets, weights = X[order], targets[order], weights[order]
        skeleton, leaves = grow(X, self.leaf_capacity, self.max_depth, at_points)
        n_nodes = len(skeleton.depth)
        climb = _Climb(skeleton, leaves, weights)
        value = climb.add(self._sums(leaves, n_nodes, targets, weights)) / climb.weights
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
            weighted_n_node_samples=climb.weights[:, 0],
            value=value,
            impurity=self._impurity(leaves, targets, weights, value, climb),
            _inner=inner,
            _slots=slots,
        )
        self._remember_rows(leaves, targets, weights)
        return self

    def _left_out(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        tree = self.tree_
        parent = np.zeros(tree.n_nodes, dtype=np.intp)
        inner = np.flatnonzero(tree._inner >= 0)
        has_child = tree._slots >= 0
        parent[tree._slots[has_child]] = np.repeat(inner, has_child.sum(axis=1))
        # Without the row its box may be empty, or one above it need not be divided.
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
        """Return the node that answers for each row.

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
            How many nodes have no children; boxes without rows are not counted.
        """
        check_is_fitted(self)
        return self.tree_.n_leaves


class _Climb:
    """Sums over the leaves below each node; `weights` (n_nodes, 1) are those of the rows."""

    def __init__(self, skeleton: Skeleton, leaves: Array, weights: Floats) -> None:
        self.parent = skeleton.parent
        order = np.argsort(skeleton.depth, kind="stable")
        starts = np.flatnonzero(np.diff(skeleton.depth[order])) + 1
        # The deepest first, and never the root.
        self.levels = np.split(order, starts)[:0:-1]
        own = np.bincount(leaves, weights, len(self.parent))
        self.weights = self.add(own[:, np.newaxis])

    def add(self, sums: Array, extra: Array | None = None) -> Floats:
        """Add to each node what its children have, and what they have beside it; in place."""
        for nodes in self.levels:
            told = sums[nodes] if extra is None else sums[nodes] + extra[nodes]
            np.add.at(sums, self.parent[nodes], told)
        return sums


class QuadTreeClassifier(CellClassifier, BaseQuadTree):
    """A quad tree of classes: 2^d children a node, and shares of the classes in the leaves.

    A node with more than `leaf_capacity` rows is split in all d features at once. The targets have
    no say in where: this is the partition that adapts to the rows alone.

    Parameters
    ----------
    split : {"midpoint", "point"}, default="midpoint"
        Where a node is split. "midpoint": in the middle of its box; the root's box is the range of
        the data. "point": at the row of the node that was inserted first (Finkel and Bentley 1974),
        or, if no row is above that one in any feature, at the first one that differs from it. Rows
        are inserted in random order, so that sorted data do no harm.
    leaf_capacity : int, default=10
        A node with more rows than that is split, unless they are all the same.
    max_depth : int, default=None
        The depth that no leaf exceeds.
    random_state : int, RandomState instance or None, default=None
        Draws the order of insertion for "point".

    Attributes
    ----------
    tree_ : QuadTree
        The tree: `children`, `center`, `low`, `high`, `value`, `impurity` (Gini) and so on.
    classes_ : ndarray of shape (n_classes,)
        The classes. Of equal shares the first class is predicted.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PartitionClassifier : Cells that are fixed beforehand.
    DecisionTreeClassifier : Boxes that follow the targets, for any number of features.

    Notes
    -----
    A row with ``x[j] <= center[j]`` is on the low side of feature j. A box without rows has no
    node: its parent answers.

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
        self, leaves: Array, targets: Array, weights: Floats, value: Floats, climb: _Climb
    ) -> Floats:
        return np.asarray(1 - np.square(value).sum(axis=1))


class QuadTreeRegressor(CellRegressor, BaseQuadTree):
    """A quad tree of numbers: 2^d children a node, and means in the leaves.

    A node with more than `leaf_capacity` rows is split in all d features at once. The targets have
    no say in where: this is the partition that adapts to the rows alone.

    Parameters
    ----------
    split : {"midpoint", "point"}, default="midpoint"
        Where a node is split. "midpoint": in the middle of its box; the root's box is the range of
        the data. "point": at the row of the node that was inserted first (Finkel and Bentley 1974),
        or, if no row is above that one in any feature, at the first one that differs from it. Rows
        are inserted in random order, so that sorted data do no harm.
    leaf_capacity : int, default=10
        A node with more rows than that is split, unless they are all the same.
    max_depth : int, default=None
        The depth that no leaf exceeds.
    random_state : int, RandomState instance or None, default=None
        Draws the order of insertion for "point".

    Attributes
    ----------
    tree_ : QuadTree
        The tree: `children`, `center`, `low`, `high`, `value`, `impurity` (variance) and so on.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PartitionRegressor : Cells that are fixed beforehand.
    DecisionTreeRegressor : Boxes that follow the targets, for any number of features.

    Notes
    -----
    A row with ``x[j] <= center[j]`` is on the low side of feature j. A box without rows has no
    node: its parent answers.

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
        self, leaves: Array, targets: Array, weights: Floats, value: Floats, climb: _Climb
    ) -> Floats:
        with np.errstate(over="ignore"):  # of huge targets the variance is infinite
            within = np.square(targets - value[leaves, 0]) * weights
            squares = np.bincount(leaves, within, len(value))[:, np.newaxis]
            # Around a parent's mean a child's rows vary as around its own, and as the means differ.
            between = climb.weights * np.square(value - value[climb.parent])
            return (climb.add(squares, between) / climb.weights)[:, 0]
