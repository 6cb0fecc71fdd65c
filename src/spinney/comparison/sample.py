"""Sample the rows of tables that are too large for the time limit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FEWEST_DRAWN", "affordable_rows", "draw_rows"]

# Seconds of the default booster per row, output and column; work that does not depend on the
# columns counts as ten columns. Measured: 0.4e-6 to 1.2e-6 over tables of 18,000 to
# 550,000 rows, 3 to 784 columns and up to 26 classes, on two cores in 2026.
_SECONDS = 0.8e-6
_OWN_COLUMNS = 10

FEWEST_DRAWN = 1_000  # tables with at most this many rows are never sampled


def affordable_rows(seconds: float, n_columns: int, n_outputs: int) -> int:
    """Estimate the number of rows that the default booster can fit in this time."""
    return max(FEWEST_DRAWN, int(seconds / (_SECONDS * n_outputs * (n_columns + _OWN_COLUMNS))))


def draw_rows(y: NDArray[np.generic], n_drawn: int, random_state: int | None) -> NDArray[np.intp]:
    """Return a stratified random sample of row numbers, in the order of the table."""
    shuffled = np.random.default_rng(random_state).permutation(len(y))
    in_order = shuffled[np.argsort(y[shuffled], kind="stable")]
    positions = ((np.arange(n_drawn) + 0.5) * (len(y) / n_drawn)).astype(np.intp)
    return np.sort(in_order[positions])
