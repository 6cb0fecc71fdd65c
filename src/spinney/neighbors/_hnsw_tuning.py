"""Selection of HNSW's `ef` for a target recall."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["find_ef"]


def find_ef(
    index: _core.Hnsw, queries: NDArray[np.float32], k: int, target: float, n_threads: int
) -> tuple[int, float]:
    """Return the smallest ef that reaches a recall, and its recall.

    The search doubles ef and then bisects. It assumes that the recall increases with ef, which is
    almost true for hundreds of queries.
    """
    exact = _distances(index, queries, k, 0, n_threads, exact=True)
    # Comparing distances instead of rows counts ties as correct.
    farthest = exact[:, -1:] + 1e-6 * np.abs(exact[:, -1:])

    def recall(ef: int) -> float:
        found = _distances(index, queries, k, ef, n_threads, exact=False)
        return float(np.mean(found <= farthest))

    # With as many candidates as vectors, the search is exact.
    ef, too_small = k, k - 1
    best = recall(ef)
    while best < target and ef < len(index):
        ef, too_small = min(2 * ef, len(index)), ef
        best = recall(ef)
    while ef - too_small > 1:
        middle = (ef + too_small) // 2
        of_middle = recall(middle)
        if of_middle >= target:
            ef, best = middle, of_middle
        else:
            too_small = middle
    return ef, best


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
