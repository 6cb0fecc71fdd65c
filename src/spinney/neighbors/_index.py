"""The indexes behind the estimators; which library a tree comes from is decided here alone.

An index answers two questions about queries, on so many threads: `query`, the k nearest rows with
their distances, nearest first and of equals the smaller row, and `query_radius`, all rows within a
radius, as arrays of arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn import neighbors as theirs
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
Rows = NDArray[np.int64]
Ragged = NDArray[Any]  # an object array of arrays

_CELLS = 2**21  # of a block of distances
_RECALL = 0.98  # share of the nearest rows that a graph is to find

_OURS: dict[str, Any] = {"kd_tree": KDTree, "ball_tree": BallTree, "brute": BruteForce}
_THEIRS: dict[str, Any] = {"kd_tree": theirs.KDTree, "ball_tree": theirs.BallTree}

# Indexes that users may have built themselves, to be handed to `fit`.
TREES = (*_OURS.values(), *_THEIRS.values())


class Index(ABC):
    """Rows that can be searched."""

    n_rows: int

    @abstractmethod
    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
        """Find the k nearest rows of each query."""

    @abstractmethod
    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        """Find all rows that are no farther than `radius`, which may be one for each query."""


def make_index(
    algorithm: str,
    X: Any,
    metric: Any,
    metric_params: dict[str, Any],
    leaf_size: int,
) -> Index:
    """Build the index that `algorithm` names ("kd_tree", "ball_tree", "brute", "hnsw")."""
    if algorithm == "hnsw":
        return GraphIndex(X, VectorDistances(metric, metric_params))
    if algorithm == "brute":
        distances = VectorDistances(metric, metric_params)
        if not sp.issparse(X) and distances.is_named("euclidean", "l2"):
            return OwnIndex(BruteForce(X))
        return VectorIndex(X, distances)
    params = {name: value for name, value in metric_params.items() if value is not None}
    kind = _OURS[algorithm] if _is_ours(algorithm, metric, params) else _THEIRS[algorithm]
    tree = kind(X, leaf_size, metric=metric, **params)
    return OwnIndex(tree) if isinstance(tree, tuple(_OURS.values())) else _ForeignIndex(tree)


def from_tree(tree: Any) -> tuple[str, Any, Index]:
    """Name the kind of an index that a user has built, and give its rows and an index over it."""
    for name, kind in _OURS.items():
        if isinstance(tree, kind):
            return name, tree.data, OwnIndex(tree)
    name = next(name for name, kind in _THEIRS.items() if isinstance(tree, kind))
    return name, np.asarray(tree.data), _ForeignIndex(tree)


def _is_ours(algorithm: str, metric: Any, params: dict[str, Any]) -> bool:
    """Whether Spinney's tree takes a metric; scikit-learn's takes more."""
    if not isinstance(metric, str):
        return callable(metric) and not isinstance(metric, DistanceMetric)
    if metric == "mahalanobis":  # ours needs distances that are zero for equal rows only
        spread = np.linalg.eigvalsh(np.asarray(params["VI"]))
        return bool(spread[0] > 1e-12 * spread[-1])
    return metric in _OURS[algorithm].valid_metrics


# ------------------------------------------------------------------------------- brute force


class BlockIndex(Index):
    """Brute force: distances of a block of queries to all rows, and the smallest of them."""

    @abstractmethod
    def measure(self, X: Any, n_threads: int) -> Floats:
        """Give the distances of some queries to all rows."""

    def blocks(self, X: Any, n_threads: int) -> Iterator[tuple[slice, Floats]]:
        """Yield places and distances of so many queries at a time as memory is well used for."""
        n_queries = X.shape[0]
        length = max(1, _CELLS // self.n_rows)
        for first in range(0, n_queries, length):
            part = slice(first, min(n_queries, first + length))
            yield part, self.measure(X[part], n_threads)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
        distances = np.empty((X.shape[0], k))
        rows = np.empty((X.shape[0], k), dtype=np.int64)
        for part, block in self.blocks(X, n_threads):
            _core.select_nearest(block, n_threads, distances[part], rows[part])
        return distances, rows

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        reach = np.broadcast_to(np.asarray(radius, dtype=np.float64), X.shape[0])
        distances, rows = [], []
        for part, block in self.blocks(X, n_threads):
            for line, limit in zip(block, reach[part], strict=True):
                near = np.flatnonzero(line <= limit)
                rows.append(near)
                distances.append(line[near])
        return _ragged(distances, rows, sort_results)


class VectorIndex(BlockIndex):
    """Rows of numbers, dense or sparse."""

    def __init__(self, X: Any, distances: VectorDistances) -> None:
        self.X = X
        self.n_rows = X.shape[0]
        self.distances = distances

    def measure(self, X: Any, n_threads: int) -> Floats:
        return self.distances(X, self.X)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
        distances, rows = super().query(X, k, n_threads)
        is_sparse = sp.issparse(X) or sp.issparse(self.X)
        if is_sparse and self.distances.is_named("euclidean", "l2"):
            # They came from squares of lengths, which are much larger, and lost digits.
            ours, theirs = sp.csr_array(self.X), sp.csr_array(X)
            for j in range(k):
                difference = theirs - ours[rows[:, j]]
                distances[:, j] = np.sqrt(difference.multiply(difference).sum(axis=1))
            distances, rows = _sorted(distances, rows)
        return distances, rows


class GraphIndex(VectorIndex):
    """Rows in a graph, of which the nearest are found nearly always. Distances are exact."""

    def __init__(self, X: Any, distances: VectorDistances) -> None:
        if sp.issparse(X) or not distances.is_named("euclidean", "l2", "cosine"):
            raise ValueError(
                "algorithm: 'hnsw' takes dense rows and metric='euclidean' or 'cosine'; for others "
                "there are 'brute' and the trees"
            )
        super().__init__(X, distances)
        name = "cosine" if distances.is_named("cosine") else "euclidean"
        self.graph = HNSW(metric=name, target_recall=_RECALL).fit(X)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
        rows = self.graph.query(X, k, return_distance=False, n_jobs=n_threads)
        # The graph measures in single precision.
        distances = np.empty(rows.shape)
        length = max(1, _CELLS // (k * X.shape[1]))
        for first in range(0, len(rows), length):
            part = slice(first, first + length)
            distances[part] = self._measure_pairs(X[part], self.X[rows[part]])
        return _sorted(distances, rows)

    def _measure_pairs(self, X: Any, near: Any) -> Floats:
        """Distances of each query to rows of its own, (n_queries, k, n_features)."""
        if self.graph.metric == "euclidean":
            return np.sqrt(np.square(X[:, np.newaxis] - near, dtype=np.float64).sum(axis=2))
        products = np.einsum("ij,ikj->ik", X, near, dtype=np.float64)
        lengths = np.linalg.norm(X, axis=1)[:, np.newaxis] * np.linalg.norm(near, axis=2)
        return np.asarray(1 - products / np.where(lengths > 0, lengths, 1.0))

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        raise ValueError(
            "algorithm: 'hnsw' finds the k nearest rows; for those within a radius there are "
            "'brute' and the trees"
        )


# -------------------------------------------------------------------------------------- trees


class OwnIndex(Index):
    """A tree of Spinney's, or its search of all rows."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.n_rows = len(tree.data)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
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
    """A tree of scikit-learn's, made to break ties by row."""

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.n_rows = len(tree.data)

    def query(self, X: Any, k: int, n_threads: int) -> tuple[Floats, Rows]:
        more = min(k + 1, self.n_rows)
        parts = _in_slices(lambda part: self.tree.query(X[part], more), X.shape[0], n_threads)
        distances = np.vstack([part[0] for part in parts])
        rows = np.vstack([part[1] for part in parts]).astype(np.int64, copy=False)
        distances, rows = _sorted(distances, rows)
        if more > k:
            self._settle_ties(X, k, distances, rows)
        return distances[:, :k], rows[:, :k]

    def _settle_ties(self, X: Any, k: int, distances: Floats, rows: Rows) -> None:
        """Where row k + 1 is as far as row k, others may be too: take those with small numbers."""
        tied = np.flatnonzero(distances[:, k] == distances[:, k - 1])
        if len(tied) == 0:
            return
        reach = distances[tied, k]
        beyond = reach * (1 + 1e-9)  # the tree compares powers of distances, which are rounded
        found, lengths = self.tree.query_radius(X[tied], beyond, return_distance=True)
        for query, limit, near, far in zip(tied, reach, found, lengths, strict=True):
            near, far = near[far <= limit], far[far <= limit]
            order = np.lexsort((near, far))[:k]
            distances[query, : len(order)], rows[query, : len(order)] = far[order], near[order]

    def query_radius(
        self, X: Any, radius: Any, n_threads: int, sort_results: bool
    ) -> tuple[Ragged, Ragged]:
        reach = np.full(X.shape[0], radius, dtype=np.float64)
        parts = _in_slices(
            lambda part: self.tree.query_radius(X[part], reach[part], return_distance=True),
            X.shape[0],
            n_threads,
        )
        rows = [found for part in parts for found in part[0]]
        distances = [found for part in parts for found in part[1]]
        return _ragged(distances, rows, sort_results)


def _in_slices(ask: Callable[[slice], Any], n_queries: int, n_threads: int) -> list[Any]:
    """Ask about slices of the queries, one a thread; few queries are not worth a thread."""
    n_slices = max(1, min(n_threads, n_queries // 64))
    slices = list(gen_even_slices(n_queries, n_slices))
    if n_slices == 1:
        return [ask(part) for part in slices]
    with ThreadPoolExecutor(n_slices) as pool:
        return list(pool.map(ask, slices))


def _sorted(distances: Floats, rows: Rows) -> tuple[Floats, Rows]:
    order = np.lexsort((rows, distances), axis=1)
    return np.take_along_axis(distances, order, axis=1), np.take_along_axis(rows, order, axis=1)


def _ragged(
    distances: list[NDArray[Any]], rows: list[NDArray[Any]], sort_results: bool
) -> tuple[Ragged, Ragged]:
    """Put the arrays of all queries into an array, whatever their lengths."""
    out = np.empty((2, len(rows)), dtype=object)
    for i, (far, near) in enumerate(zip(distances, rows, strict=True)):
        order = np.lexsort((near, far)) if sort_results else slice(None)
        out[0, i], out[1, i] = far[order], near[order]
    return out[0], out[1]
