"""Scaling of values whose squares overflow or underflow.

Columns, targets and weights are multiplied by powers of two, which rounds nothing. Ordinary values
are not scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from spinney.linear_model.design import Design, Floats

__all__ = [
    "Rescaled",
    "check_coefficients",
    "explain_overflow",
    "largest_of_columns",
    "normalize_extreme_weights",
    "rescale",
]

_LARGE = 2.0**400  # squares of smaller values can be summed
_SMALL = 2.0**-400


def normalize_extreme_weights(weights: Floats) -> Floats:
    """Scale extreme weights to about one, if only their ratios matter."""
    shift = extreme_exponents(weights.max(initial=0.0))
    return weights if shift == 0 else np.asarray(np.ldexp(weights, -shift))


def extreme_exponents(largest: Any, small: float = _SMALL) -> Any:
    """Return the binary exponents of extreme sizes, and 0 for ordinary ones."""
    exponents = np.frexp(largest)[1]
    extreme = (largest > _LARGE) | ((largest > 0) & (largest < small))
    return np.where(extreme, exponents, 0)


def largest_of_columns(X: Any) -> Floats:
    """Return the largest absolute value of each column."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=0).toarray(), dtype=np.float64).ravel()
    return np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)


@dataclass(frozen=True)
class Rescaled:
    """A problem whose columns, targets and weights were multiplied by powers of two.

    Parameters
    ----------
    design : Design
        Rows and weights.
    targets : ndarray of shape (n_rows, n_targets)
        Targets.
    columns, outputs : ndarray of int
        Column j was divided by ``2**columns[j]``, target k by ``2**outputs[k]``.
    weights : int
        The weights were divided by ``2**weights``.
    """

    design: Design
    targets: Floats
    columns: Any
    outputs: Any
    weights: int

    def restore_coef(self, coef: Floats) -> Floats:
        """Return coefficients, (n_features, n_targets), in the units of the given values."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(coef, self.outputs - self.columns[:, np.newaxis]))

    def restore_targets(self, values: Floats) -> Floats:
        """Return one value for each target in the units of the given targets."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.ldexp(values, self.outputs))


def rescale(design: Design, targets: Floats, *, tiny: bool) -> Rescaled | None:
    """Return the problem with extreme columns, targets and weights scaled, or None.

    Parameters
    ----------
    design : Design
        Rows and weights, which are finite.
    targets : ndarray of shape (n_rows, n_targets)
        Targets.
    tiny : bool
        Whether to scale up tiny columns; must be False with a penalty, whose effect depends on the
        units.
    """
    columns = extreme_exponents(largest_of_columns(design.X), _SMALL if tiny else 0.0)
    outputs = extreme_exponents(np.abs(targets).max(axis=0, initial=0.0))
    weight_exponent = 0
    if design.weights is not None:
        weight_exponent = int(extreme_exponents(design.weights.max(initial=0.0), 0.0))
    if not (columns.any() or outputs.any() or weight_exponent):
        return None
    X: Any
    if design.is_sparse:
        X = design.X.copy()
        X.data = np.ldexp(X.data, -columns[X.indices])
    else:
        X = np.ldexp(np.asarray(design.X, dtype=np.float64), -columns)
    weights = None if design.weights is None else np.ldexp(design.weights, -weight_exponent)
    return Rescaled(
        Design(X, weights, design.n_threads),
        np.ldexp(targets, -outputs),
        columns,
        outputs,
        weight_exponent,
    )


def explain_overflow(design: Design, targets: Any = None, names: Any = None) -> ValueError:
    """Return an error that names the argument with too large values."""
    if not isinstance(design.X, np.ndarray) and not sp.issparse(
        design.X
    ):  # rows in other processes
        return ValueError(
            "X: values are so large that sums of their squares overflow; divide large columns by "
            "a power of ten"
        )
    sizes = largest_of_columns(design.X)
    j = int(np.argmax(sizes))
    column = f"column {j}" if names is None else f"column {names[j]!r}"
    largest_target = 0.0 if targets is None else float(np.abs(targets).max(initial=0.0))
    largest_weight = 0.0 if design.weights is None else float(design.weights.max())
    # Sums have the weight times the square of a value.
    if np.sqrt(largest_weight) > max(sizes[j], largest_target):
        return ValueError(
            f"sample_weight: weights up to {largest_weight:.3g} are so large that sums overflow; "
            "divide all weights by the same number"
        )
    if largest_target > sizes[j]:
        return ValueError(
            f"y: values up to {largest_target:.3g} are so large that sums of their squares "
            "overflow; divide y by a power of ten"
        )
    return ValueError(
        f"X: values are so large that sums of their squares overflow ({column} has values up to "
        f"{sizes[j]:.3g}); divide the column by a power of ten"
    )


def check_coefficients(estimator: Any, coef: Floats, intercept: Any) -> None:
    """Raise an error if a coefficient or an intercept overflows.

    `coef` has shape (n_features, n_targets).
    """
    overflowing = np.flatnonzero(~np.isfinite(coef).all(axis=1))
    if len(overflowing):
        names = getattr(estimator, "feature_names_in_", None)
        column = (
            f"column {overflowing[0]}" if names is None else f"column {names[overflowing[0]]!r}"
        )
        raise ValueError(
            f"X: the coefficient of {column} is beyond the range of float64; its values are too "
            "small compared with y: multiply the column, or divide y, by a power of ten"
        )
    if not np.isfinite(intercept).all():
        raise ValueError(
            "y: the intercept is beyond the range of float64; divide y by a power of ten"
        )
