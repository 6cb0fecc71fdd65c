"""Columns prepared for a solver: of similar size, independent, orthogonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

__all__ = ["Columns", "is_constant", "power_of_two"]

Floats = NDArray[np.float64]

# A column depends on the columns before it if its distance from their span is below this share of
# its size.
DEPENDENT = 1e-11


def power_of_two(sizes: Any) -> Any:
    """Return powers of two just above the sizes (1 for zero), as exact divisors."""
    sizes = np.asarray(sizes, dtype=np.float64)
    exponents = np.frexp(np.where(sizes > 0, sizes, 0.5))[1]
    # 2**1024 overflows. After division by 2**1023, the largest numbers are below two, not below
    # one.
    return np.ldexp(1.0, np.minimum(exponents, 1023))


def is_constant(X: Floats) -> NDArray[np.bool_]:
    """Return whether each column is constant, up to rounding."""
    low, high = X.min(axis=0), X.max(axis=0)
    return high - low <= 4 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))


@dataclass
class Columns:
    """Centred and scaled columns of a dense matrix, and the map of coefficients back.

    Attributes
    ----------
    design : ndarray of shape (n_rows, n_kept)
        The independent columns, centred and scaled. The constant column comes last, if there is
        one.
    kept : ndarray of int
        The features of these columns, without the constant column.
    centers, scales : ndarray of shape (n_features,)
        Feature j is `centers[j] + scales[j] * column`.
    fit_intercept : bool
        Whether there is a constant column.
    """

    design: Floats
    kept: NDArray[np.intp]
    centers: Floats
    scales: Floats
    fit_intercept: bool

    @classmethod
    def from_rows(cls, X: Floats, fit_intercept: bool) -> Columns:
        """Center and scale the columns of `X`, and drop those that depend on others."""
        n_rows, n_features = X.shape
        scales = power_of_two(np.abs(X).max(axis=0, initial=0.0))
        scaled = X / scales
        centers = np.zeros(n_features)
        if fit_intercept:
            constant = is_constant(scaled)
            centers = scaled.mean(axis=0)
            scaled -= centers
            # The rest of a constant column is rounding errors; scaling would make them large.
            scaled[:, constant] = 0.0
            wider = power_of_two(np.where(constant, 1.0, np.abs(scaled).max(axis=0, initial=0.0)))
            with np.errstate(over="ignore"):
                wider = np.minimum(wider, 2.0**1023 / scales)  # the product must be finite
            scaled /= wider
            centers = centers * scales
            scales = scales * wider
        if n_features:
            _, R, order = qr(np.linalg.qr(scaled, mode="r"), mode="economic", pivoting=True)
            diagonal = np.abs(np.diag(R))
            n_kept = int(np.sum(diagonal > DEPENDENT * np.sqrt(n_rows) * max(diagonal[0], 1e-300)))
            if fit_intercept:
                # Centred columns have at most rank n_rows - 1.
                n_kept = min(n_kept, n_rows - 1)
            kept = np.sort(order[:n_kept])
        else:
            kept = np.zeros(0, dtype=np.intp)
        design = scaled[:, kept]
        if fit_intercept:
            design = np.column_stack([design, np.ones(n_rows)])
        return cls(design, kept, centers, scales, fit_intercept)

    def orthogonal(self, weights: Floats) -> Floats:
        """Return an orthonormal basis of the weighted design, times sqrt(n_rows)."""
        weighted = self.design * weights[:, None]
        Q = np.linalg.qr(weighted)[0]
        return np.ascontiguousarray(Q * np.sqrt(len(Q)))

    def restore_coef(self, solution: Floats, scale: float) -> tuple[Floats, float]:
        """Return the coefficients of the features and the intercept, both times `scale`."""
        coef = np.zeros(len(self.scales))
        # The caller checks for coefficients that overflow.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            coef[self.kept] = solution[: len(self.kept)] / self.scales[self.kept] * scale
            if not self.fit_intercept:
                return coef, 0.0
            return coef, float(solution[-1] * scale - self.centers @ coef)
