"""How wide a walk must be for the recall that is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["find_ef"]


def find_ef(
    index: _core.Hnsw, queries: NDArray[np.float32], k: int, target: float, n_threads: int
) -> tuple[int, float]:
    """Return the smallest ef that reaches the recall, and the recall it reaches.

    The width is doubled until it is enough and then halved in between. Recall need not grow with
    every step of ef, but over hundreds of queries it very nearly does.
    """
    exact = _distances(index, queries, k, 0, n_threads, exact=True)
    # By distance, so that ties count whichever of them is found.
    farthest = exact[:, -1:] + 1e-6 * np.abs(exact[:, -1:])

    def recall(ef: int) -> float:
        found = _distances(index, queries, k, ef, n_threads, exact=False)
        return float(np.mean(found <= farthest))

    # The search is exact with as many candidates as vectors.
    enough, too_few = k, k - 1
    reached = recall(enough)
    while reached < target and enough < len(index):
        enough, too_few = min(2 * enough, len(index)), enough
        reached = recall(enough)
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        reached_there = recall(middle)
        if reached_there >= target:
            enough, reached = middle, reached_there
        else:
            too_few = middle
    return enough, reached


def _distances(
    index: _core.Hnsw, queries: Any, k: int, ef: int, n_threads: int, *, exact: bool
) -> NDArray[np.float32]:
    distances = np.empty((len(queries), k), dtype=np.float32)
    slots = np.empty((len(queries), k), dtype=np.uint32)
    index.search(
        queries,
        k=k,
        ef=ef,
        allowed=None,
        exact=exact,
        n_threads=n_threads,
        distances=distances,
        slots=slots,
    )
    return distances
