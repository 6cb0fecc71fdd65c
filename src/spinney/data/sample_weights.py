"""Checks of sample weights, and scaling of extreme ones to avoid overflow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.sklearn_versions import check_sample_weight

__all__ = ["check_weights", "scale_extreme", "times_class_weights"]

_LARGEST = 2.0**256  # about 1e77; smaller weights are not changed at all


def scale_extreme(weights: Any, largest: float | None = None) -> tuple[Any, int]:
    """Scale weights by a power of two if the largest is above 2^256 or below 2^-256.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Weights, finite and at least 0.
    largest : float, default=None
        The largest weight to consider, for example of all workers; None: that of `weights`.

    Returns
    -------
    weights : ndarray of shape (n_rows,)
        The weights divided by 2^exponent, so that `largest` is between 2^-33 and 2^32. Weights that
        underflow become 0; they would be lost in any sum.
    exponent : int
        The power of two; 0 for ordinary weights.
    """
    if largest is None:
        largest = float(weights.max(initial=0.0))
    if largest == 0 or 1 / _LARGEST <= largest <= _LARGEST:
        return weights, 0
    exponent = 64 * round(int(np.frexp(largest)[1]) / 64)  # usually the same for all folds
    with np.errstate(over="ignore"):  # weights above `largest` may overflow
        return np.ldexp(weights, -exponent), exponent


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Check weights, and scale extreme ones: only the ratios of weights matter."""
    weights = check_sample_weight(
        sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
    )
    return scale_extreme(weights)[0]


def times_class_weights(weights: Any, of_class: Any) -> Any:
    """Multiply the weights of rows (or 1, for None) by those of their classes."""
    if weights is None:
        return of_class
    with np.errstate(over="ignore"):
        product = weights * of_class
    if not np.isfinite(product).all():
        raise ValueError(
            "sample_weight times class_weight must be finite, at most about 1.8e308; "
            f"got weights up to {weights.max():.3g} and class weights up to {of_class.max():.3g}"
        )
    return product
