"""A fitted tree as parallel arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["Tree"]

_ARRAYS = {
    "children_left": np.int64,
    "children_right": np.int64,
    "feature": np.int64,
    "threshold": np.float64,
    "impurity": np.float64,
    "n_node_samples": np.int64,
    "weighted_n_node_samples": np.float64,
    "missing_go_to_left": np.uint8,
    "category_start": np.int64,
    "category_bits": np.uint32,
}


class Tree:
    """The nodes of a fitted tree, as parallel arrays; node 0 is the root.

    The attributes are those of scikit-learn's ``tree_``. Categorical splits are described by
    `category_start` and `category_bits`; `left_categories` and `right_categories` decode them.

    Attributes
    ----------
    node_count, capacity : int
        Number of nodes.
    max_depth : int
        Depth of the deepest leaf.
    n_leaves : int
        Number of leaves.
    n_features, n_outputs : int
        Number of columns of X and of y.
    n_classes : ndarray of shape (n_outputs,)
        Number of classes of each output; 1 for regression.
    children_left, children_right : ndarray of int64
        Children, -1 at a leaf.
    feature : ndarray of int64
        The column that a node splits on, -2 at a leaf.
    threshold : ndarray of float64
        Rows with ``x <= threshold`` go left. NaN for a categorical split, infinity for a split of
        present from missing values, -2 at a leaf.
    missing_go_to_left : ndarray of uint8
        Whether a missing value goes left.
    impurity, n_node_samples, weighted_n_node_samples : ndarray
        Impurity, number and total weight of the training rows of each node.
    value : ndarray of shape (node_count, n_outputs, max_n_classes)
        Class fractions, means or medians.
    category_start : ndarray of int64
        Start of a node's words in `category_bits`; -1 for a numeric split.
    category_bits : ndarray of uint32
        For each categorical split, one bit per category: categories that go left, then categories
        present in the node's training rows.
    n_categories : ndarray of int32
        Number of categories of each column, 0 for a numeric one.
    """

    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    impurity: NDArray[np.float64]
    n_node_samples: NDArray[np.int64]
    weighted_n_node_samples: NDArray[np.float64]
    missing_go_to_left: NDArray[np.uint8]
    category_start: NDArray[np.int64]
    category_bits: NDArray[np.uint32]
    value: NDArray[np.float64]

    def __init__(self, n_features: int, n_classes: Any, n_outputs: int) -> None:
        self.n_features = int(n_features)
        self.n_classes = np.asarray(n_classes, dtype=np.intp)
        self.n_outputs = int(n_outputs)
        # A broadcast array takes no memory: a file's n_features is not validated before its arrays.
        self.n_categories = np.broadcast_to(np.int32(0), (self.n_features,))
        self.max_depth = 0
        self._reader: Any = None
        self._labels: Any = None
        self._lock = threading.Lock()

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, Any], *, n_features: int, n_classes: Any, n_categories: Any
    ) -> Tree:
        """Create a tree from the arrays that the core returns."""
        tree = cls(n_features, n_classes, len(n_classes))
        tree.__setstate__({**arrays, "n_categories": n_categories})
        return tree

    @property
    def max_n_classes(self) -> int:
        """Largest number of classes of an output."""
        return int(self.n_classes.max())

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.children_left)

    @property
    def capacity(self) -> int:
        """Number of nodes; for compatibility with scikit-learn."""
        return self.node_count

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.children_left < 0))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree, (self.n_features, self.n_classes, self.n_outputs), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        state["value"] = self.value
        state["n_categories"] = self.n_categories
        state["max_depth"] = self.max_depth
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A file may have been written with another byte order.
        for name, dtype in _ARRAYS.items():
            setattr(self, name, np.ascontiguousarray(state[name], dtype=dtype))
        shape = (self.node_count, self.n_outputs, self.max_n_classes)
        self.value = np.ascontiguousarray(state["value"], dtype=np.float64).reshape(shape)
        self.n_categories = np.ascontiguousarray(state["n_categories"], dtype=np.int32)
        self.max_depth = int(state["max_depth"])

    @property
    def reader(self) -> Any:
        """The core's packed copy of the tree, created on first use and never pickled."""
        if self._reader is None:
            with self._lock:
                if self._reader is None:
                    self._reader = _core.Predictor(
                        self.children_left,
                        self.children_right,
                        self.feature,
                        self.threshold,
                        self.missing_go_to_left,
                        self.category_start,
                        self.category_bits,
                    )
        return self._reader

    @property
    def labels(self) -> NDArray[np.int64]:
        """Code of the majority class of each node and output, (n_outputs, node_count)."""
        if self._labels is None:
            self._labels = np.ascontiguousarray(self.value.argmax(axis=2).T)
        return self._labels

    def category_masks(self, node: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return masks of the categories that go left and of those in the training rows."""
        start = int(self.category_start[node])
        if start < 0:
            raise ValueError(f"node {node}: expected a categorical split, got a numeric one")
        n_categories = int(self.n_categories[self.feature[node]])
        n_words = (n_categories + 31) // 32
        words = self.category_bits[start : start + 2 * n_words].reshape(2, n_words)
        codes = np.arange(n_categories)
        bits = ((words[:, codes // 32] >> (codes % 32).astype(np.uint32)) & 1).astype(bool)
        return bits[0], bits[1]

    def left_categories(self, node: int) -> NDArray[np.int64]:
        """Return the codes of the categories in the node's training rows that go left."""
        left, seen = self.category_masks(node)
        return np.flatnonzero(left & seen)

    def right_categories(self, node: int) -> NDArray[np.int64]:
        """Return the codes of the categories in the node's training rows that go right."""
        left, seen = self.category_masks(node)
        return np.flatnonzero(~left & seen)

    def _table(self, X: Any) -> Any:
        if hasattr(X, "toarray"):
            X = X.toarray()
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X: expected {self.n_features} columns, got shape {X.shape}")
        if self.n_categories.any():
            raise ValueError("X: the tree has categories; use the methods of its estimator")
        if X.dtype not in (np.float32, np.float64):
            X = X.astype(np.float64)
        return _core.Table.from_matrix(X)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the index of the leaf of each row of a numeric matrix."""
        return self.apply_table(self._table(X), 1)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the value of each row of a numeric matrix.

        The shape is (n_rows, max_n_classes) for one output.
        """
        out = self.predict_table(self._table(X), 1)
        return out[:, 0] if self.n_outputs == 1 else out

    def decision_path(self, X: Any) -> Any:
        """Return the nodes on the path of each row of a matrix, as a sparse matrix."""
        return self.decision_path_table(self._table(X), 1)

    def apply_table(self, table: Any, n_threads: int) -> NDArray[np.int64]:
        """Return the index of the leaf of each row of a core table."""
        out = np.empty(table.n_rows, dtype=np.int64)
        self.reader.apply(table, n_threads, out)
        return out

    def predict_table(self, table: Any, n_threads: int) -> NDArray[np.float64]:
        """Return the values of the rows, (n_rows, n_outputs, max_n_classes)."""
        out = np.empty((table.n_rows, self.n_outputs, self.max_n_classes))
        width = self.n_outputs * self.max_n_classes
        self.reader.predict(table, n_threads, self.value, width, out)
        return out

    def decision_path_table(self, table: Any, n_threads: int) -> Any:
        """Return the nodes on the path of each row of a core table, as a sparse matrix."""
        # Imported here because only this method needs scipy.sparse (start-up time).
        from scipy.sparse import csr_matrix

        indptr, indices = self.reader.decision_path(table, n_threads)
        data = np.ones(len(indices), dtype=np.int64)
        return csr_matrix((data, indices, indptr), shape=(table.n_rows, self.node_count))

    def compute_node_depths(self) -> NDArray[np.int64]:
        """Return the depth of each node; 1 at the root, as in scikit-learn."""
        depths = np.ones(self.node_count, dtype=np.int64)
        level = np.array([0])
        while True:
            level = level[self.children_left[level] >= 0]
            if len(level) == 0:
                return depths
            children = np.concatenate([self.children_left[level], self.children_right[level]])
            depths[children] = np.tile(depths[level] + 1, 2)
            level = children

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Return the total decrease of the impurity by each feature."""
        nodes = np.flatnonzero(self.children_left >= 0)
        weighted = self.weighted_n_node_samples * self.impurity
        decrease = (
            weighted[nodes]
            - weighted[self.children_left[nodes]]
            - weighted[self.children_right[nodes]]
        )
        importances = np.bincount(
            self.feature[nodes], weights=decrease, minlength=self.n_features
        ).astype(np.float64)
        if self.weighted_n_node_samples[0] > 0:
            importances /= self.weighted_n_node_samples[0]
        total = importances.sum()
        if normalize and total > 0.0:
            importances /= total
        return importances

    def collapse(self, is_leaf: NDArray[np.bool_]) -> Tree:
        """Return a copy of the tree in which the marked nodes are leaves."""
        is_leaf = is_leaf | (self.children_left < 0)
        kept: list[int] = []
        parents: list[tuple[int, bool]] = []
        depths: list[int] = []
        stack = [(0, -1, False, 0)]
        while stack:
            node, parent, is_left, depth = stack.pop()
            new = len(kept)
            kept.append(node)
            parents.append((parent, is_left))
            depths.append(depth)
            if not is_leaf[node]:
                stack.append((int(self.children_right[node]), new, False, depth + 1))
                stack.append((int(self.children_left[node]), new, True, depth + 1))
        nodes = np.array(kept)
        state = self.__getstate__()
        per_node = [name for name in _ARRAYS if name != "category_bits"]
        for name in [*per_node, "value"]:
            state[name] = state[name][nodes]
        state["children_left"] = np.full(len(nodes), -1)
        state["children_right"] = np.full(len(nodes), -1)
        for new, (parent, is_left) in enumerate(parents[1:], start=1):
            state["children_left" if is_left else "children_right"][parent] = new
        leaves = is_leaf[nodes]
        state["feature"][leaves] = -2
        state["threshold"][leaves] = -2.0
        state["missing_go_to_left"][leaves] = 0
        state["category_start"][leaves] = -1
        state["max_depth"] = max(depths)
        tree = Tree(self.n_features, self.n_classes, self.n_outputs)
        tree.__setstate__(state)
        return tree
