"""How far a place looks, chosen by leaving rows out one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.neighbors._neighborhoods import find_neighbors
from spinney.neighbors._smoother import KERNELS, Smoother, Width

__all__ = ["choose_width"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Rows that are left out: as many suffice to tell widths apart.
MOST_ROWS = 5_000
# Widths that are tried, and how many rows the widest takes in of a large table.
N_WIDTHS = 15
WIDEST = 1_000


def choose_width(
    smoother: Smoother, kind: str, finish: Callable[[Floats], Floats], n_threads: int
) -> tuple[Width, Floats, Floats]:
    """Return the best width, and which ones were tried with their mean squared errors.

    `kind` says what a width is, "n_neighbors" or "bandwidth", and `finish` makes predictions of
    what the smoother says.
    """
    rows = np.unique(np.linspace(0, smoother.n_rows - 1, MOST_ROWS).astype(np.intp))
    n_features = smoother.X.shape[1]
    n_terms = [0, n_features, n_features + n_features * (n_features + 1) // 2][smoother.degree]
    most = max(1.0, smoother.total)
    narrow = min(most, max(3.0, n_terms + 2.0))
    wide = min(most, max(WIDEST, 4 * narrow))
    tried = np.unique(np.floor(np.geomspace(narrow, wide, N_WIDTHS) + 1e-9))
    if kind == "bandwidth":
        tried = _bandwidths(smoother, rows, narrow, wide, n_threads)
    targets, weights = smoother.targets[rows], smoother.weights[rows]
    errors = np.empty(len(tried))
    for i, width in enumerate(tried):
        left_out = finish(smoother.leave_one_out(rows, _as_width(kind, width), n_threads))
        errors[i] = weights @ ((left_out - targets) ** 2).sum(axis=1) / weights.sum()
    return _as_width(kind, tried[errors.argmin()]), tried, errors


def _as_width(kind: str, value: float) -> Width:
    return Width(k=int(value)) if kind == "n_neighbors" else Width(bandwidth=float(value))


def _bandwidths(
    smoother: Smoother, rows: Array, narrow: float, wide: float, n_threads: int
) -> Floats:
    """Widths between those that take in few rows and many, at half of the places."""
    ends = []
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
        ends.append(float(np.median(np.concatenate([near.bandwidths for near in found]))))
    low, high = ends
    if not np.isfinite(high) or high <= 0:
        return np.ones(1)  # all rows at one place
    # Most rows are one: from the smallest step that there is.
    low = low if low > 0 else high * 1e-3
    if isinstance(smoother.kernel, str) and KERNELS[smoother.kernel] > 1:
        # Kernels without an end have most of their weight within a few bandwidths.
        low, high = low / 3, high / 3
    return np.geomspace(low, high, N_WIDTHS)
