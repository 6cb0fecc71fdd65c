"""Arguments of the functions here, checked, with texts that say what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_count", "check_number", "check_posteriors", "check_weights"]

Floats = NDArray[np.float64]


def check_number(
    name: str, value: Any, low: float, high: float, *, closed: str = "neither"
) -> float:
    """A finite number between `low` and `high`; `closed` as in intervals of pandas."""
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
    """A whole number of at least `least`."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}: expected a whole number >= {least}, got {value!r}")
    return int(value)


def check_posteriors(name: str, values: Any) -> Floats:
    """Probabilities of classes: rows with sum one, or the second class's as one column."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 1:
        array = np.column_stack([1 - array, array])
    if array.ndim != 2 or array.size == 0:
        raise ValueError(
            f"{name}: expected an array (places,) or (places, classes), got shape "
            f"{np.shape(values)}"
        )
    if not (array >= 0).all() or not np.allclose(array.sum(axis=1), 1.0, rtol=0, atol=1e-9):
        raise ValueError(f"{name}: expected probabilities >= 0 with sum 1 in each row, got others")
    return array


def check_weights(weights: Any, n_places: int) -> Floats:
    """Probabilities of the places, with sum one; equal ones for None."""
    if weights is None:
        return np.full(n_places, 1.0 / n_places)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_places,):
        raise ValueError(f"weights: expected shape ({n_places},), got {array.shape}")
    total = array.sum()
    if not ((array >= 0).all() and 0 < total < np.inf):
        raise ValueError("weights: expected finite numbers >= 0, not all zero, got others")
    return array / total
