"""Bounds of rounding errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["sum_rounding_error"]


def sum_rounding_error(size: NDArray[np.float64]) -> Any:
    """Return a bound of the rounding error in the difference of two sums.

    Parameters
    ----------
    size : ndarray of shape (n_numbers, n_columns)
        Absolute values of the numbers; each column is summed.

    Notes
    -----
    Each of n numbers is rounded at most n times (Higham 2002, section 4.2), and once more in a
    mean. Each rounding changes a number by at most half an ulp. Both sums have these errors.
    """
    return (size * ((len(size) + 1) * np.finfo(np.float64).eps)).sum(axis=0)
