"""Thresholds in double precision that are equivalent to those for float32 rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["last_at_most", "last_below"]


def last_at_most(threshold: Any) -> NDArray[np.float64]:
    """Return the largest double that rounds to a float32 up to the threshold.

    Libraries that store rows as float32 round them before they compare. ``x <= last_at_most(t)`` is
    the result of their comparison, for x in float32 or float64.
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = threshold.astype(np.float32)
        single = np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
        above = np.nextafter(single, np.float32(np.inf))
    # For rounding, infinity is treated as the number after the largest finite one.
    middle = _as_number(single) / 2 + _as_number(above) / 2
    # Ties are rounded to the float whose last bit is 0.
    even = (single.view(np.uint32) & 1) == 0
    limit = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(single), threshold, limit)


def _as_number(single: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.clip(single.astype(np.float64), -(2.0**128), 2.0**128)


def last_below(threshold: Any) -> NDArray[np.float64]:
    """Return the largest double that rounds to a float32 below the threshold."""
    single = np.asarray(threshold, dtype=np.float32)
    return last_at_most(np.nextafter(single, np.float32(-np.inf)))
