"""Class labels as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def encode_labels(y: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the classes, ascending, and each row's index among them.

    The result is that of np.unique, but integers of a small range are counted, not sorted.
    """
    if y.dtype.kind not in "biu" or len(y) == 0:
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes
    low, high = int(y.min()), int(y.max())
    if high - low > len(y):
        classes, codes = np.unique(y, return_inverse=True)
        return classes, codes
    # Subtract the lowest value with 64 bits, so that no difference overflows.
    wide = y.astype(np.uint64 if low >= 0 else np.int64)
    shifted = (wide - wide.dtype.type(low)).astype(np.intp)
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    classes = np.array([low + int(i) for i in np.flatnonzero(present)]).astype(y.dtype)
    return classes, (np.cumsum(present) - 1)[shifted]
