"""The training rows near each of many places, some places at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

__all__ = ["METRICS", "Neighborhoods", "find_closest", "find_neighbors", "make_tree"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# The power of the Minkowski distance.
METRICS = {"euclidean": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
# Pairs of places and rows that are held at once.
MOST_PAIRS = 1 << 21
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


def make_tree(X: Floats) -> Any:
    return cKDTree(X)


def find_closest(tree: Any, queries: Floats, metric: str, n_threads: int) -> Array:
    """Find the two nearest rows of each place, (n_places, 2); one, if there is only one."""
    ranks = np.arange(1, min(2, tree.n) + 1)
    _, rows = tree.query(queries, k=ranks, p=METRICS[metric], workers=n_threads)
    return np.minimum(rows, tree.n - 1)  # tree.n where all distances are infinite


def find_neighbors(
    tree: Any,
    queries: Floats,
    *,
    k: float | None,
    radius: float,
    bandwidth: float | None,
    weights: Floats | None,
    metric: str,
    n_threads: int,
) -> Iterator[Neighborhoods]:
    """Find the rows near places, a limited number of pairs at a time.

    Either the nearest rows of weight k together, with all that are as far as the last of them, and
    the bandwidth their distance; or, with k None, the rows within a radius of every place.
    """
    if k is None:
        assert bandwidth is not None
        return _find_within(tree, queries, radius, bandwidth, metric, n_threads)
    return _find_nearest(tree, queries, k, weights, METRICS[metric], n_threads)


def _find_nearest(
    tree: Any, queries: Floats, k: float, weights: Floats | None, power: float, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n
    total = n_rows if weights is None else float(weights.sum())
    # One more than needed shows whether others are as far as the last.
    asked = min(n_rows, int(np.ceil(min(k / total, 1.0) * n_rows)) + 1)
    waiting = [(_order(queries), asked)]
    while waiting:
        places, asked = waiting.pop()
        size = max(1, MOST_PAIRS // asked)
        if len(places) > size:
            waiting.append((places[size:], asked))
            places = places[:size]
        distances, rows = tree.query(
            queries[places], k=np.arange(1, asked + 1), p=power, workers=n_threads
        )
        if weights is None:
            last = np.full(len(places), min(int(k), n_rows) - 1)
            reached = last < asked
        else:
            sums = np.cumsum(np.append(weights, 0.0)[rows], axis=1) >= k * (1 - 1e-12)
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
            near = (distances <= ends[:, np.newaxis]) & (rows < n_rows)
            yield _as_neighborhoods(places, near, rows[near], distances[near], ends * BEYOND)


def _find_within(
    tree: Any, queries: Floats, radius: float, bandwidth: float, metric: str, n_threads: int
) -> Iterator[Neighborhoods]:
    n_rows = tree.n
    if np.isinf(radius):
        counts = np.full(len(queries), n_rows)
    else:
        # The tree rounds in its own way: a little more, and the distances below decide.
        asked_radius = radius * (1 + 1e-9)
        counts = tree.query_ball_point(
            queries, asked_radius, p=METRICS[metric], workers=n_threads, return_length=True
        )
    dense = counts * 4 >= n_rows
    order = _order(queries)
    for is_dense in (False, True):
        wanted = order[dense[order] == is_dense]
        costs = np.full(len(wanted), n_rows) if is_dense else counts[wanted]
        for places in _cut(wanted, costs):
            at = queries[places]
            if is_dense:
                name = "cityblock" if metric == "manhattan" else metric
                distances = cdist(at, tree.data, name)
                near = (distances <= radius) & np.isfinite(distances)
                rows = np.broadcast_to(np.arange(n_rows), near.shape)[near]
                yield _as_neighborhoods(places, near, rows, distances[near], bandwidth)
                continue
            found = tree.query_ball_point(
                at, asked_radius, p=METRICS[metric], workers=n_threads, return_sorted=True
            )
            lengths = np.fromiter(map(len, found), dtype=np.int64, count=len(found))
            rows = np.concatenate([np.empty(0, dtype=np.int64), *found]).astype(np.int64)
            which = np.repeat(np.arange(len(places)), lengths)
            gaps = np.linalg.norm(tree.data[rows] - at[which], METRICS[metric], axis=1)
            close = gaps <= radius
            starts = np.zeros(len(places) + 1, dtype=np.int64)
            np.cumsum(np.bincount(which[close], minlength=len(places)), out=starts[1:])
            bandwidths = np.full(len(places), float(bandwidth))
            yield Neighborhoods(places, starts, rows[close], gaps[close], bandwidths)


def _order(queries: Floats) -> Array:
    """Order places so that one is near the next: what a search has read is read again soon."""
    if len(queries) < 10_000:
        return np.arange(len(queries))
    return cKDTree(queries, leafsize=32, compact_nodes=False, balanced_tree=False).indices


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
