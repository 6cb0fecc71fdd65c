"""Indexes of the estimators: brute force, graphs and trees.

Every index has two methods. `query` returns the k nearest rows and their distances, in ascending
order; if distances are equal, the smaller row number is first. `query_radius` returns all rows
within a radius, as arrays of arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import neighbors as sklearn_neighbors
from sklearn.metrics import DistanceMetric
from sklearn.utils import gen_even_slices

from spinney import _core
from spinney.neighbors._ball_tree import BallTree
from spinney.neighbors._brute_force import BruteForce
from spinney.neighbors._hnsw import HNSW
from spinney.neighbors._kd_tree import KDTree
from spinney.neighbors._metrics import VectorDistances

__all__ = ["TREES", "BlockIndex", "Index", "from_tree", "make_index"]

Floats = NDArray[np.float64]
RowIndices = NDArray[np.int64]
Ragged = NDArray[Any]  # an object array of arrays

_BLOCK_SIZE = 2**21  # distances that are in memory at a time
_TARGET_RECALL = 0.98  # fraction of the nearest rows that a graph should find

_SPINNEY_INDEXES: dict[str, Any] = {"kd_tree": KDTree, "ball_tree": BallTree, "brute": BruteForce}
_SKLEARN_TREES: dict[str, Any] = {
    "kd_tree": sklearn_neighbors.KDTree,
    "ball_tree": sklearn_neighbors.BallTree,
}

# Classes of indexes that `fit` accepts instead of rows.
TREES = (*_SPINNEY_INDEXES.values(), *_SKLEARN_TREES.values())


class Index(ABC):
    """Training rows that can be searched."""

    n_rows: int

    @abstractmethod
    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        """Find the k nearest rows of each query."""

    @abstractmethod
    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        """Find all rows within `radius`, which may be an array over the queries."""


def make_index(
    algorithm: str,
    X: Any,
    metric: Any,
    metric_params: dict[str, Any],
    leaf_size: int,
) -> Index:
    """Build an index; `algorithm` is "kd_tree", "ball_tree", "brute" or "hnsw"."""
    if algorithm == "hnsw":
        return GraphIndex(X, VectorDistances(metric, metric_params))
    if algorithm == "brute":
        distances = VectorDistances(metric, metric_params)
        if not sp.issparse(X) and distances.is_named("euclidean", "l2"):
            return OwnIndex(BruteForce(X))
        return VectorIndex(X, distances)
    params = {name: value for name, value in metric_params.items() if value is not None}
    kind = (
        _SPINNEY_INDEXES[algorithm]
        if _has_spinney_tree(algorithm, metric, params)
        else _SKLEARN_TREES[algorithm]
    )
    tree = kind(X, leaf_size, metric=metric, **params)
    return (
        OwnIndex(tree)
        if isinstance(tree, tuple(_SPINNEY_INDEXES.values()))
        else _ForeignIndex(tree)
    )


def from_tree(tree: Any) -> tuple[str, Any, Index]:
    """Return the algorithm, the rows and the index of a tree or brute-force search."""
    for name, kind in _SPINNEY_INDEXES.items():
        if isinstance(tree, kind):
            return name, tree.data, OwnIndex(tree)
    name = next(name for name, kind in _SKLEARN_TREES.items() if isinstance(tree, kind))
    return name, np.asarray(tree.data), _ForeignIndex(tree)


def _has_spinney_tree(algorithm: str, metric: Any, params: dict[str, Any]) -> bool:
    """Return whether Spinney's tree supports a metric."""
    if not isinstance(metric, str):
        return callable(metric) and not isinstance(metric, DistanceMetric)
    if metric == "mahalanobis":  # Spinney's tree needs distances that are 0 for equal rows only
        eigenvalues = np.linalg.eigvalsh(np.asarray(params["VI"]))
        return bool(eigenvalues[0] > 1e-12 * eigenvalues[-1])
    return metric in _SPINNEY_INDEXES[algorithm].valid_metrics


# ------------------------------------------------------------------------------- brute force


class BlockIndex(Index):
    """Brute force with blocks of queries, whose distances to all rows are in memory."""

    @abstractmethod
    def measure(self, X: Any, n_threads: int) -> Floats:
        """Return the distances of queries to all rows, (n_queries, n_rows)."""

    def blocks(self, X: Any, n_threads: int) -> Iterator[tuple[slice, Floats]]:
        """Yield blocks of queries, as slices, and their distances to all rows."""
        n_queries = X.shape[0]
        length = max(1, _BLOCK_SIZE // self.n_rows)
        for first in range(0, n_queries, length):
            block = slice(first, min(n_queries, first + length))
            yield block, self.measure(X[block], n_threads)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        distances = np.empty((X.shape[0], k))
        rows = np.empty((X.shape[0], k), dtype=np.int64)
        for block, to_all in self.blocks(X, n_threads):
            _core.select_nearest(to_all, n_threads, distances[block], rows[block])
        return distances, rows

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        radii = np.broadcast_to(np.asarray(radius, dtype=np.float64), X.shape[0])
        distances, rows = [], []
        for block, to_all in self.blocks(X, n_threads):
            for of_query, limit in zip(to_all, radii[block], strict=True):
                near = np.flatnonzero(of_query <= limit)
                rows.append(near)
                distances.append(of_query[near])
        return _ragged(distances, rows, sort_results)


class VectorIndex(BlockIndex):
    """Brute force for numeric rows, dense or sparse, with any metric."""

    def __init__(self, X: Any, distances: VectorDistances) -> None:
        self.X = X
        self.n_rows = X.shape[0]
        self.distances = distances

    def measure(self, X: Any, n_threads: int) -> Floats:
        return self.distances(X, self.X)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        distances, rows = super().query(X, k, n_threads)
        is_sparse = sp.issparse(X) or sp.issparse(self.X)
        if is_sparse and self.distances.is_named("euclidean", "l2"):
            # Distances from products of sparse rows lose digits, so they are computed again from
            # differences.
            train, queries = sp.csr_array(self.X), sp.csr_array(X)
            for j in range(k):
                difference = queries - train[rows[:, j]]
                distances[:, j] = np.sqrt(difference.multiply(difference).sum(axis=1))
            distances, rows = _sorted(distances, rows)
        return distances, rows


class GraphIndex(VectorIndex):
    """An approximate graph index (HNSW), with exact distances."""

    def __init__(self, X: Any, distances: VectorDistances) -> None:
        if sp.issparse(X) or not distances.is_named("euclidean", "l2", "cosine"):
            raise ValueError(
                "algorithm='hnsw': expected dense rows and metric='euclidean' or 'cosine'; use "
                "'brute' or a tree for other rows and metrics"
            )
        super().__init__(X, distances)
        name = "cosine" if distances.is_named("cosine") else "euclidean"
        self.graph = HNSW(metric=name, target_recall=_TARGET_RECALL).fit(X)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        rows = self.graph.query(X, k, return_distance=False, n_jobs=n_threads)
        # The graph's distances are in single precision.
        distances = np.empty(rows.shape)
        length = max(1, _BLOCK_SIZE // (k * X.shape[1]))
        for first in range(0, len(rows), length):
            block = slice(first, first + length)
            distances[block] = self._measure_pairs(X[block], self.X[rows[block]])
        return _sorted(distances, rows)

    def _measure_pairs(self, X: Any, near: Any) -> Floats:
        """Return the distances of each query to its own rows, (n_queries, k, n_features)."""
        if self.graph.metric == "euclidean":
            return np.sqrt(np.square(X[:, np.newaxis] - near, dtype=np.float64).sum(axis=2))
        products = np.einsum("ij,ikj->ik", X, near, dtype=np.float64)
        lengths = np.linalg.norm(X, axis=1)[:, np.newaxis] * np.linalg.norm(near, axis=2)
        return np.asarray(1 - products / np.where(lengths > 0, lengths, 1.0))

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        raise ValueError(
            "algorithm='hnsw' only finds the k nearest rows; use 'brute' or a tree for a radius"
        )


# -------------------------------------------------------------------------------------- trees


class OwnIndex(Index):
    """A Spinney tree, or the brute-force search."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.n_rows = len(tree.data)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        queries = X.toarray() if sp.issparse(X) else X
        distances, rows = self.tree.query(queries, k, n_jobs=n_threads)
        return distances, rows

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        queries = X.toarray() if sp.issparse(X) else X
        rows, distances = self.tree.query_radius(
            queries, radius, return_distance=True, sort_results=sort_results, n_jobs=n_threads
        )
        return distances, rows


class _ForeignIndex(Index):
    """A scikit-learn tree; ties are broken by row number."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.n_rows = len(tree.data)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, RowIndices]:
        n_found = min(k + 1, self.n_rows)
        results = _query_slices(lambda s: self.tree.query(X[s], n_found), X.shape[0], n_threads)
        distances = np.vstack([result[0] for result in results])
        rows = np.vstack([result[1] for result in results]).astype(np.int64, copy=False)
        distances, rows = _sorted(distances, rows)
        if n_found > k:
            self._break_ties(X, k, distances, rows)
        return distances[:, :k], rows[:, :k]

    def _break_ties(self, X: Any, k: int, distances: Floats, rows: RowIndices) -> None:
        """Select the smallest row numbers if neighbours k and k + 1 have equal distances."""
        tied = np.flatnonzero(distances[:, k] == distances[:, k - 1])
        if len(tied) == 0:
            return
        limits = distances[tied, k]
        radii = limits * (1 + 1e-9)  # the tree compares rounded powers of distances
        found, found_distances = self.tree.query_radius(X[tied], radii, return_distance=True)
        for query, limit, near, far in zip(tied, limits, found, found_distances, strict=True):
            near, far = near[far <= limit], far[far <= limit]
            order = np.lexsort((near, far))[:k]
            distances[query, : len(order)], rows[query, : len(order)] = far[order], near[order]

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        radii = np.full(X.shape[0], radius, dtype=np.float64)
        results = _query_slices(
            lambda s: self.tree.query_radius(X[s], radii[s], return_distance=True),
            X.shape[0],
            n_threads,
        )
        rows = [found for result in results for found in result[0]]
        distances = [found for result in results for found in result[1]]
        return _ragged(distances, rows, sort_results)


def _query_slices(search: Callable[[slice], Any], n_queries: int, n_threads: int) -> list[Any]:
    """Call `search` for slices of at least 64 queries, each in a thread."""
    n_slices = max(1, min(n_threads, n_queries // 64))
    slices = list(gen_even_slices(n_queries, n_slices))
    if n_slices == 1:
        return [search(one) for one in slices]
    with ThreadPoolExecutor(n_slices) as pool:
        return list(pool.map(search, slices))


def _sorted(distances: Floats, rows: RowIndices) -> tuple[Floats, RowIndices]:
    """Sort neighbours by distance, then by row number."""
    order = np.lexsort((rows, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _ragged(
    distances: list[NDArray[Any]], rows: list[NDArray[Any]], sort_results: bool
) -> tuple[Ragged, Ragged]:
    """Return object arrays of the distances and of the rows of all queries."""
    out = np.empty((2, len(rows)), dtype=object)
    for i, (far, near) in enumerate(zip(distances, rows, strict=True)):
        order = np.lexsort((near, far)) if sort_results else slice(None)
        out[0, i], out[1, i] = far[order], near[order]
    return out[0], out[1]
