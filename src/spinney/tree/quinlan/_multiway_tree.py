"""The nodes of a tree with any number of branches per split."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["MultiwayTree"]

_ARRAYS = {
    "feature": np.int32,
    "threshold": np.float64,
    "child_start": np.int64,
    "children": np.int32,
    "shares": np.float64,
    "branch_start": np.int64,
    "branch_of": np.int32,
    "counts": np.float64,
    "fractions": np.float64,
    "weight": np.float64,
    "n_rows": np.int64,
}


class MultiwayTree:
    """A fitted tree as parallel arrays, parents before their children.

    Attributes
    ----------
    feature : ndarray of int32
        The column that each node splits on; -2 in a leaf.
    threshold : ndarray of float64
        Threshold of a numeric split; values up to it take the first of two branches. NaN elsewhere.
    n_node_samples : ndarray of int64
        Number of training rows that reach each node, also with a fractional weight.
    weighted_n_node_samples : ndarray of float64
        Total weight of these rows.
    value : ndarray of shape (n_nodes, 1, n_classes)
        Class fractions; for a node without rows, those of its parent.
    counts : ndarray of shape (n_nodes, n_classes)
        Weights of the classes.
    impurity : ndarray of float64
        Entropy of the classes, in bits.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    child_start: NDArray[np.int64]
    children: NDArray[np.int32]
    shares: NDArray[np.float64]
    branch_start: NDArray[np.int64]
    branch_of: NDArray[np.int32]
    counts: NDArray[np.float64]
    fractions: NDArray[np.float64]
    weight: NDArray[np.float64]
    n_rows: NDArray[np.int64]

    n_outputs = 1

    def __init__(
        self, arrays: dict[str, Any], n_features: int, n_classes: int, missing_is_category: bool
    ) -> None:
        for name, dtype in _ARRAYS.items():
            setattr(self, name, np.ascontiguousarray(arrays[name], dtype=dtype))
        self.n_features = int(n_features)
        self.n_classes = np.array([n_classes], dtype=np.intp)
        self.missing_is_category = bool(missing_is_category)
        shape = (len(self.feature), n_classes)
        self.counts = self.counts.reshape(shape)
        self.fractions = self.fractions.reshape(shape)
        self._reader: Any = None
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = {name: getattr(self, name) for name in _ARRAYS}
        state = (arrays, self.n_features, int(self.n_classes[0]), self.missing_is_category)
        return MultiwayTree, state

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, including those without training rows."""
        return int(np.count_nonzero(np.diff(self.child_start) == 0))

    @property
    def n_node_samples(self) -> NDArray[np.int64]:
        """Number of training rows that reach each node, also with a fractional weight."""
        return self.n_rows

    @property
    def weighted_n_node_samples(self) -> NDArray[np.float64]:
        """Total weight of the training rows in each node."""
        return self.weight

    @property
    def value(self) -> NDArray[np.float64]:
        """Fractions of the classes."""
        return self.fractions[:, np.newaxis, :]

    @cached_property
    def impurity(self) -> NDArray[np.float64]:
        """Entropy of the classes, in bits."""
        p = self.fractions
        logs = np.log2(np.where(p > 0, p, 1.0))
        return np.asarray(np.abs((p * logs).sum(axis=1)))

    @cached_property
    def depth(self) -> NDArray[np.int64]:
        """Number of splits above each node."""
        depth = np.zeros(self.node_count, dtype=np.int64)
        for node in range(self.node_count):
            depth[self.children_of(node)] = depth[node] + 1
        return depth

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    def children_of(self, node: int) -> NDArray[np.int32]:
        """Return the children of a node, one for each branch."""
        return self.children[self.child_start[node] : self.child_start[node + 1]]

    def is_leaf(self, node: int) -> bool:
        """Return whether a node has no split."""
        return bool(self.child_start[node] == self.child_start[node + 1])

    def is_categorical(self, node: int) -> bool:
        """Return whether a node splits on a categorical column."""
        return bool(self.branch_start[node] != self.branch_start[node + 1])

    def codes_of_branches(self, node: int) -> list[list[int]]:
        """Return the codes of the categories that take each branch of a node."""
        branches = self.branch_of[self.branch_start[node] : self.branch_start[node + 1]]
        return [np.flatnonzero(branches == b).tolist() for b in range(len(self.children_of(node)))]

    def compute_feature_importances(self) -> NDArray[np.float64]:
        """Return the share of each column in the total information gain."""
        out = np.zeros(self.n_features)
        bits = self.weight * self.impurity
        for node in np.flatnonzero(self.feature >= 0).tolist():
            out[self.feature[node]] += max(bits[node] - bits[self.children_of(node)].sum(), 0.0)
        total = out.sum()
        return out / total if total > 0 else out

    @property
    def reader(self) -> Any:
        """The tree in the core, which validates the arrays."""
        with self._lock:
            if self._reader is None:
                self._reader = _core.MultiwayTree.from_arrays(
                    int(self.n_classes[0]),
                    self.missing_is_category,
                    self.feature,
                    self.threshold,
                    self.child_start,
                    self.children,
                    self.shares,
                    self.branch_start,
                    self.branch_of,
                    self.fractions.ravel(),
                )
            return self._reader

    def predict_table(self, table: Any, n_threads: int) -> NDArray[np.float64]:
        """Return class probabilities for the rows of a core table."""
        return np.asarray(self.reader.predict(table, n_threads)).reshape(table.n_rows, -1)
