"""Questions about rows in single precision, asked about rows in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["last_at_most", "last_below"]


def last_at_most(threshold: Any) -> NDArray[np.float64]:
    """Largest double that, rounded to single precision, is at most the threshold.

    Libraries that keep rows as float32 round before they compare; ``x <= last_at_most(t)`` is what
    they then say of x, whether it comes as float32 or as float64.
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    with np.errstate(over="ignore"):
        single = threshold.astype(np.float32)
        single = np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
        above = np.nextafter(single, np.float32(np.inf))
    # To rounding, infinity is the number that would come after the largest one.
    middle = _as_number(single) / 2 + _as_number(above) / 2
    # Halfway, the one of the two floats whose last bit is 0 wins.
    even = (single.view(np.uint32) & 1) == 0
    limit = np.where(even, middle, np.nextafter(middle, -np.inf))
    return np.where(np.isposinf(single), threshold, limit)


def _as_number(single: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.clip(single.astype(np.float64), -(2.0**128), 2.0**128)


def last_below(threshold: Any) -> NDArray[np.float64]:
    """Largest double that, rounded to single precision, is below a float32 threshold."""
    single = np.asarray(threshold, dtype=np.float32)
    return last_at_most(np.nextafter(single, np.float32(-np.inf)))
