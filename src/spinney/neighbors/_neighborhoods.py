"""The training rows near each of many places, some places at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from spinney import _core
from spinney.neighbors._tree_index import check_points

__all__ = ["METRICS", "Neighborhoods", "find_closest", "find_neighbors", "make_tree"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# The power of the Minkowski distance.
METRICS = {"euclidean": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
# Pairs of places and rows that are held at once.
MOST_PAIRS = 1 << 21
LEAF_SIZE = 24
# With the k nearest rows the bandwidth ends a little beyond the k-th, which would else have no
# weight where a kernel ends at zero.
BEYOND = 1.001


@dataclass
class Neighborhoods:
    """Rows near places: those of place i are at starts[i] … starts[i + 1]."""

    places: Array  # which of the places asked for
    starts: NDArray[np.int64]
    rows: NDArray[np.int64]
    distances: Floats
    bandwidths: Floats


class RowTree:
    """Training rows in a k-d tree of the core.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    metric : str
        One of `METRICS`.
    n_threads : int
        Threads that build it.
    """

    def __init__(self, X: Floats, metric: str, n_threads: int) -> None:
        self.data, self.metric = np.ascontiguousarray(X), metric
        self._grow(n_threads)

    def _grow(self, n_threads: int) -> None:
        self._tree = _core.KdTree(self.data, METRICS[self.metric], LEAF_SIZE, n_threads)

    def __getstate__(self) -> dict[str, Any]:
        return {"data": self.data, "metric": self.metric}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.data = check_points(self.data, "data")  # a file may hold anything
        self._grow(1)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.data)

    def query(self, queries: Floats, k: int, n_threads: int) -> tuple[Floats, Array]:
        """Return distances and rows of the k nearest, (n_queries, k)."""
        distances, rows = self._tree.query(np.ascontiguousarray(queries), k, 0.0, 0, n_threads)
        return distances.reshape(-1, k), rows.reshape(-1, k)

    def count_within(self, queries: Floats, radius: float, n_threads: int) -> Array:
        """Return how many rows lie within a radius of each place."""
        radii = np.full(len(queries), radius)
        return self._tree.count_within(np.ascontiguousarray(queries), radii, n_threads)

    def within(self, queries: Floats, radius: float, n_threads: int) -> tuple[Array, Array, Floats]:
        """Return numbers of rows within a radius, the rows one after another, and distances."""
        radii = np.full(len(queries), radius)
        return self._tree.within(np.ascontiguousarray(queries), radii, False, n_threads)


def make_tree(X: Floats, metric: str, n_threads: int = 1) -> RowTree:
    return RowTree(X, metric, n_threads)


def find_closest(tree: RowTree, queries: Floats, n_threads: int) -> Array:
    """Find the two nearest rows of each place, (n_places, 2); one, if there is only one."""
    return tree.query(queries, min(2, tree.n), n_threads)[1]


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
    """Find the rows near places, a limited number of pairs at a time.

    Either the nearest rows of weight k together, with all that are as far as the last of them, and
    the bandwidth their distance; or, with k None, the rows within a radius of every place.
    """
    if k is None:
        assert bandwidth is not None
        return _find_within(tree, queries, radius, bandwidth, n_threads)
    return _find_nearest(tree, queries, k, weights, n_threads)


def _find_nearest(
    tree: RowTree, queries: Floats, k: float, weights: Floats | None, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n
    total = n_rows if weights is None else float(weights.sum())
    # One more than needed shows whether others are as far as the last.
    asked = min(n_rows, int(np.ceil(min(k / total, 1.0) * n_rows)) + 1)
    waiting = [(np.arange(len(queries)), asked)]
    while waiting:
        places, asked = waiting.pop()
        size = max(1, MOST_PAIRS // asked)
        if len(places) > size:
            waiting.append((places[size:], asked))
            places = places[:size]
        distances, rows = tree.query(queries[places], asked, n_threads)
        if weights is None:
            last = np.full(len(places), min(int(k), n_rows) - 1)
            reached = last < asked
        else:
            sums = np.cumsum(weights[rows], axis=1) >= k * (1 - 1e-12)
            reached = sums[:, -1]
            last = np.where(reached, sums.argmax(axis=1), asked - 1)
        ends = distances[np.arange(len(places)), last]
        done = (reached & (distances[:, -1] > ends)) | (asked == n_rows)
        if not done.all():
            waiting.append((places[~done], min(n_rows, 2 * asked)))
            places, distances, rows, ends = places[done], distances[done], rows[done], ends[done]
        if not len(places):
            continue
        # A difference that overflows has a distance that says nothing.
        known = np.isfinite(ends).all()
        if weights is None and asked == k + 1 < n_rows and known:
            # Nearly always: exactly k rows each, and nothing to look for.
            n_near = asked - 1
            starts = np.arange(len(places) + 1, dtype=np.int64) * n_near
            rows, distances = rows[:, :n_near].ravel(), distances[:, :n_near].ravel()
            yield Neighborhoods(places, starts, rows, distances, ends * BEYOND)
        else:
            near = (distances <= ends[:, np.newaxis]) & np.isfinite(distances)
            yield _as_neighborhoods(places, near, rows[near], distances[near], ends * BEYOND)


def _find_within(
    tree: RowTree, queries: Floats, radius: float, bandwidth: float, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n
    if np.isinf(radius):
        counts = np.full(len(queries), n_rows)
    else:
        counts = tree.count_within(queries, radius, n_threads)
    dense = counts * 4 >= n_rows
    for is_dense in (False, True):
        wanted = np.flatnonzero(dense == is_dense)
        costs = np.full(len(wanted), n_rows) if is_dense else counts[wanted]
        for places in _cut(wanted, costs):
            at = queries[places]
            if is_dense:
                name = "cityblock" if tree.metric == "manhattan" else tree.metric
                distances = cdist(at, tree.data, name)
                near = (distances <= radius) & np.isfinite(distances)
                rows = np.broadcast_to(np.arange(n_rows), near.shape)[near]
                yield _as_neighborhoods(places, near, rows, distances[near], bandwidth)
                continue
            lengths, rows, distances = tree.within(at, radius, n_threads)
            starts = np.zeros(len(places) + 1, dtype=np.int64)
            np.cumsum(lengths, out=starts[1:])
            bandwidths = np.full(len(places), float(bandwidth))
            yield Neighborhoods(places, starts, rows, distances, bandwidths)


def _cut(places: Array, costs: Array) -> Iterator[Array]:
    """Cut places into runs whose costs together stay below the limit, or that have one place."""
    begin = 0
    ends = np.cumsum(costs)
    while begin < len(places):
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + MOST_PAIRS, side="right")))
        yield places[begin:end]
        begin = end


def _as_neighborhoods(
    places: Array, near: Array, rows: Array, distances: Floats, bandwidths: Any
) -> Neighborhoods:
    starts = np.zeros(len(places) + 1, dtype=np.int64)
    np.cumsum(near.sum(axis=1), out=starts[1:])
    bandwidths = np.broadcast_to(np.asarray(bandwidths, dtype=np.float64), (len(places),)).copy()
    return Neighborhoods(places, starts, rows.astype(np.int64, copy=False), distances, bandwidths)
