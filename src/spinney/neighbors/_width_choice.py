"""Selection of the width of neighbourhoods by leave-one-out errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.neighbors._neighborhoods import find_neighbors
from spinney.neighbors._smoother import KERNEL_SUPPORTS, Smoother, Width

__all__ = ["choose_width"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

_MAX_LEFT_OUT = 5_000  # rows whose leave-one-out errors are averaged
_N_WIDTHS = 15  # number of candidates
_MAX_NEIGHBORS = 1_000  # rows in the widest neighbourhoods of large tables


def choose_width(
    smoother: Smoother, kind: str, finish: Callable[[Floats], Floats], n_threads: int
) -> tuple[Width, Floats, Floats]:
    """Return the best width, all candidates, and their mean squared errors.

    `kind` is "n_neighbors" or "bandwidth", and `finish` converts the smoother's values to
    predictions.
    """
    rows = np.unique(np.linspace(0, smoother.n_rows - 1, _MAX_LEFT_OUT).astype(np.intp))
    n_features = smoother.X.shape[1]
    n_terms = [0, n_features, n_features + n_features * (n_features + 1) // 2][smoother.degree]
    most = max(1.0, smoother.total)
    narrow = min(most, max(3.0, n_terms + 2.0))
    wide = min(most, max(_MAX_NEIGHBORS, 4 * narrow))
    candidates = np.unique(np.floor(np.geomspace(narrow, wide, _N_WIDTHS) + 1e-9))
    if kind == "bandwidth":
        candidates = _bandwidths(smoother, rows, narrow, wide, n_threads)
    targets, weights = smoother.targets[rows], smoother.weights[rows]
    errors = np.empty(len(candidates))
    for i, width in enumerate(candidates):
        predicted = finish(smoother.leave_one_out(rows, _as_width(kind, width), n_threads))
        errors[i] = weights @ ((predicted - targets) ** 2).sum(axis=1) / weights.sum()
    return _as_width(kind, candidates[errors.argmin()]), candidates, errors


def _as_width(kind: str, value: float) -> Width:
    return Width(k=int(value)) if kind == "n_neighbors" else Width(bandwidth=float(value))


def _bandwidths(
    smoother: Smoother, rows: Array, narrow: float, wide: float, n_threads: int
) -> Floats:
    """Return candidates between the median bandwidths of two neighbour counts."""
    medians = []
    for k in (narrow, wide):
        found = find_neighbors(
            smoother.tree,
            smoother.X[rows],
            k=k,
            radius=np.inf,
            bandwidth=None,
            weights=smoother.counted,
            n_threads=n_threads,
        )
        medians.append(float(np.median(np.concatenate([near.bandwidths for near in found]))))
    low, high = medians
    if not np.isfinite(high) or high <= 0:
        return np.ones(1)  # all rows are equal
    low = low if low > 0 else high * 1e-3  # most rows have duplicates
    if isinstance(smoother.kernel, str) and KERNEL_SUPPORTS[smoother.kernel] > 1:
        # Unbounded kernels have weight beyond the bandwidth.
        low, high = low / 3, high / 3
    return np.geomspace(low, high, _N_WIDTHS)
