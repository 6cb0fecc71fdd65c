"""Neighbourhoods: the training rows near each of many points, in blocks of points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from spinney import _core
from spinney.neighbors._metrics import METRIC_POWERS
from spinney.neighbors._tree_index import check_points

__all__ = ["LOCAL_METRICS", "Neighborhoods", "RowTree", "find_closest", "find_neighbors"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# The metrics of local regression.
LOCAL_METRICS = ("euclidean", "manhattan", "chebyshev")
_BLOCK_SIZE = 1 << 21  # pairs of a point and a row that are in memory at a time
_LEAF_SIZE = 24
# Ratio of the bandwidth to the distance of the k-th nearest row. With a larger bandwidth, this row
# has a positive weight in kernels that are zero from u = 1 on.
_BANDWIDTH_RATIO = 1.001


@dataclass
class Neighborhoods:
    """Rows near a block of points; point i has the entries starts[i] … starts[i + 1]."""

    points: Array  # indices of the points
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    distances: Floats
    bandwidths: Floats


class RowTree:
    """Training rows in a k-d tree.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    metric : str
        One of `LOCAL_METRICS`.
    n_threads : int, default=1
        Number of threads of the construction.
    """

    def __init__(self, X: Floats, metric: str, n_threads: int = 1) -> None:
        self.data, self.metric = np.ascontiguousarray(X), metric
        self._grow(n_threads)

    def _grow(self, n_threads: int) -> None:
        self._tree = _core.KdTree(self.data, METRIC_POWERS[self.metric], _LEAF_SIZE, n_threads)

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "metric": self.metric}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.data = check_points(self.data, "data")  # a damaged file may contain any values
        self._grow(1)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    def query(self, queries: Floats, k: int, n_threads: int) -> tuple[Floats, Array]:
        """Return the distances and numbers of the k nearest rows, (n_queries, k)."""
        distances, rows = self._tree.query(np.ascontiguousarray(queries), k, 0.0, 0, n_threads)
        return distances.reshape(-1, k), rows.reshape(-1, k)

    def count_within(self, queries: Floats, radius: float, n_threads: int) -> Array:
        """Return the number of rows within a radius of each query."""
        radii = np.full(len(queries), radius)
        return self._tree.count_within(np.ascontiguousarray(queries), radii, n_threads)

    def within(self, queries: Floats, radius: float, n_threads: int) -> tuple[Array, Array, Floats]:
        """Return counts of the rows within a radius, the concatenated rows, and distances."""
        radii = np.full(len(queries), radius)
        return self._tree.within(np.ascontiguousarray(queries), radii, False, n_threads)


def find_closest(tree: RowTree, queries: Floats, n_threads: int) -> Array:
    """Return the two nearest rows of each point, (n_points, 2).

    If there is only one row, the shape is (n_points, 1).
    """
    distances, rows = tree.query(queries, min(2, tree.n_rows), n_threads)
    _check_distances(distances[:, 0])
    return rows


def _check_distances(distances: Floats) -> None:
    """Raise an error if distances overflow: the nearest rows would be arbitrary."""
    if np.isinf(distances).any():
        raise ValueError(
            "X: expected finite distances of the nearest rows, but differences of the values or "
            "their squares overflow; scale the columns or remove outliers"
        )


def find_neighbors(
    tree: RowTree,
    queries: Floats,
    *,
    k: float | None,
    radius: float,
    bandwidth: float | None,
    weights: Floats | None,
    n_threads: int,
) -> Iterator[Neighborhoods]:
    """Yield the neighbourhoods of points, in blocks of limited size.

    With `k`, a neighbourhood is the nearest rows with a total weight of k, and all rows as far as
    the last of them; its bandwidth is the distance of the last. If k is None, a neighbourhood is
    all rows within `radius`.
    """
    if k is None:
        assert bandwidth is not None
        return _find_within(tree, queries, radius, bandwidth, n_threads)
    return _find_nearest(tree, queries, k, weights, n_threads)


def _find_nearest(
    tree: RowTree, queries: Floats, k: float, weights: Floats | None, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n_rows
    total = n_rows if weights is None else float(weights.sum())
    # One row more than needed shows whether there are ties with the last.
    n_found = min(n_rows, int(np.ceil(min(k / total, 1.0) * n_rows)) + 1)
    waiting = [(np.arange(len(queries)), n_found)]
    while waiting:
        points, n_found = waiting.pop()
        size = max(1, _BLOCK_SIZE // n_found)
        if len(points) > size:
            waiting.append((points[size:], n_found))
            points = points[:size]
        distances, rows = tree.query(queries[points], n_found, n_threads)
        if weights is None:
            last = np.full(len(points), min(int(k), n_rows) - 1)
            is_reached = last < n_found
        else:
            has_weight = np.cumsum(weights[rows], axis=1) >= k * (1 - 1e-12)
            is_reached = has_weight[:, -1]
            last = np.where(is_reached, has_weight.argmax(axis=1), n_found - 1)
        ends = distances[np.arange(len(points)), last]
        is_done = (is_reached & (distances[:, -1] > ends)) | (n_found == n_rows)
        if not is_done.all():
            waiting.append((points[~is_done], min(n_rows, 2 * n_found)))
            points, distances = points[is_done], distances[is_done]
            rows, ends = rows[is_done], ends[is_done]
        if not len(points):
            continue
        _check_distances(ends)
        if weights is None and n_found == k + 1 < n_rows:
            # The usual case: without ties, every point has exactly k rows.
            n_near = n_found - 1
            starts = np.arange(len(points) + 1, dtype=np.int64) * n_near
            rows, distances = rows[:, :n_near].ravel(), distances[:, :n_near].ravel()
            yield Neighborhoods(points, starts, rows, distances, ends * _BANDWIDTH_RATIO)
        else:
            is_near = (distances <= ends[:, np.newaxis]) & np.isfinite(distances)
            bandwidths = ends * _BANDWIDTH_RATIO
            yield _as_neighborhoods(points, is_near, rows[is_near], distances[is_near], bandwidths)


def _find_within(
    tree: RowTree, queries: Floats, radius: float, bandwidth: float, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n_rows
    if np.isinf(radius):
        counts = np.full(len(queries), n_rows)
    else:
        counts = tree.count_within(queries, radius, n_threads)
    # Neighbourhoods of many rows take less time with all distances than with the tree.
    has_many = counts * 4 >= n_rows
    for with_all_rows in (False, True):
        selected = np.flatnonzero(has_many == with_all_rows)
        costs = np.full(len(selected), n_rows) if with_all_rows else counts[selected]
        for points in _split_into_blocks(selected, costs):
            if with_all_rows:
                name = "cityblock" if tree.metric == "manhattan" else tree.metric
                distances = cdist(queries[points], tree.data, name)
                is_near = (distances <= radius) & np.isfinite(distances)
                rows = np.broadcast_to(np.arange(n_rows), is_near.shape)[is_near]
                yield _as_neighborhoods(points, is_near, rows, distances[is_near], bandwidth)
                continue
            lengths, rows, distances = tree.within(queries[points], radius, n_threads)
            starts = np.zeros(len(points) + 1, dtype=np.int64)
            np.cumsum(lengths, out=starts[1:])
            bandwidths = np.full(len(points), float(bandwidth))
            yield Neighborhoods(points, starts, rows, distances, bandwidths)


def _split_into_blocks(points: Array, costs: Array) -> Iterator[Array]:
    """Split points into blocks of one point, or of total costs up to the block size."""
    begin = 0
    ends = np.cumsum(costs)
    while begin < len(points):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + _BLOCK_SIZE, side="right")))
        yield points[begin:end]
        begin = end


def _as_neighborhoods(
    points: Array, is_near: Array, rows: Array, distances: Floats, bandwidths: Any
) -> Neighborhoods:
    """Return neighbourhoods; `is_near` has a row for each point."""
    starts = np.zeros(len(points) + 1, dtype=np.int64)
    np.cumsum(is_near.sum(axis=1), out=starts[1:])
    bandwidths = np.broadcast_to(np.asarray(bandwidths, dtype=np.float64), (len(points),)).copy()
    return Neighborhoods(points, starts, rows.astype(np.int64, copy=False), distances, bandwidths)
