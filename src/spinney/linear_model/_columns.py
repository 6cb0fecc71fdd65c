"""Columns made ready for a solver: alike in size, independent, orthogonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

__all__ = ["Columns", "is_flat", "power_of_two"]

Floats = NDArray[np.float64]

# A column whose distance from those before it is below this, in units of its size, repeats them.
DEPENDENT = 1e-11


def power_of_two(sizes: Any) -> Any:
    """Powers of two just above the sizes (1 for zero): dividing by them rounds nothing."""
    sizes = np.asarray(sizes, dtype=np.float64)
    exponents = np.frexp(np.where(sizes > 0, sizes, 0.5))[1]
    # 2**1024 does not exist; numbers that need it are then below two instead of one.
    return np.ldexp(1.0, np.minimum(exponents, 1023))


def is_flat(X: Floats) -> NDArray[np.bool_]:
    """Which columns are constant, but for the last bits."""
    low, high = X.min(axis=0), X.max(axis=0)
    return high - low <= 4 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))


@dataclass
class Columns:
    """Centred and scaled columns of a dense matrix, and how to get back.

    Attributes
    ----------
    design : ndarray of shape (n_rows, n_kept)
        Independent columns, the constant among them, centred, scaled.
    kept : ndarray of int
        Which features they are of; the constant column, if there is one, comes last in `design`
        and is not listed.
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
    def of(cls, X: Floats, fit_intercept: bool) -> Columns:
        n_rows, n_features = X.shape
        scales = power_of_two(np.abs(X).max(axis=0, initial=0.0))
        scaled = X / scales
        centers = np.zeros(n_features)
        if fit_intercept:
            flat = is_flat(scaled)
            centers = scaled.mean(axis=0)
            scaled -= centers
            # A constant column less its mean is rounding, nothing to be made large.
            scaled[:, flat] = 0.0
            wider = power_of_two(np.where(flat, 1.0, np.abs(scaled).max(axis=0, initial=0.0)))
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
                # Columns that are centred leave room for one less than there are rows.
                n_kept = min(n_kept, n_rows - 1)
            kept = np.sort(order[:n_kept])
        else:
            kept = np.zeros(0, dtype=np.intp)
        design = scaled[:, kept]
        if fit_intercept:
            design = np.column_stack([design, np.ones(n_rows)])
        return cls(design, kept, centers, scales, fit_intercept)

    def orthogonal(self, weights: Floats) -> Floats:
        """Orthonormal columns that span the weighted design, times the root of the rows."""
        weighted = self.design * weights[:, None]
        Q = np.linalg.qr(weighted)[0]
        return np.ascontiguousarray(Q * np.sqrt(len(Q)))

    def back(self, solution: Floats, scale: float) -> tuple[Floats, float]:
        """Coefficients of the features, and the intercept."""
        coef = np.zeros(len(self.scales))
        # What float64 cannot hold the caller sees.
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            coef[self.kept] = solution[: len(self.kept)] / self.scales[self.kept] * scale
            if not self.fit_intercept:
                return coef, 0.0
            return coef, float(solution[-1] * scale - self.centers @ coef)
