"""Checks of arguments."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_count", "check_number", "check_posteriors", "normalized_weights"]

Floats = NDArray[np.float64]


def check_number(
    name: str, value: Any, low: float, high: float, *, closed: str = "neither"
) -> float:
    """Return a finite number between `low` and `high`; `closed` as in pandas.Interval."""
    good = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if good:
        number = float(value)
        good = np.isfinite(number) and low <= number <= high
        good = good and (number > low or closed in ("left", "both"))
        good = good and (number < high or closed in ("right", "both"))
    if not good:
        left = "[" if closed in ("left", "both") else "("
        right = "]" if closed in ("right", "both") else ")"
        raise ValueError(f"{name}: expected a number in {left}{low}, {high}{right}, got {value!r}")
    return float(value)


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return an integer >= `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}: expected an integer >= {least}, got {value!r}")
    return int(value)


def check_posteriors(name: str, values: Any) -> Floats:
    """Return class probabilities (n_points, n_classes); 1-d input is the second class."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name}: expected an array (points,) or (points, classes), got shape "
            f"{np.shape(values)}"
        )
    if not (array >= 0).all() or not np.allclose(array.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        raise ValueError(f"{name}: expected probabilities >= 0 with sum 1 in each row")
    return array


def normalized_weights(weights: Any, n_points: int) -> Floats:
    """Return the probabilities of the points, normalized; all equal for None."""
    if weights is None:
        return np.full(n_points, 1.0 / n_points)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_points,):
        raise ValueError(f"weights: expected shape ({n_points},), got {array.shape}")
    total = array.sum()
    if not ((array >= 0).all() and 0 < total < np.inf):
        raise ValueError("weights: expected finite numbers >= 0, not all zero")
    return array / total
