"""Kernels of density estimates and their normalisation, with scikit-learn's names."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammaln

__all__ = ["DENSITY_KERNELS", "kernel_values", "log_normalisation"]

DENSITY_KERNELS = ("gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine")


def kernel_values(kernel: str, u: Any) -> Any:
    """Return the values of a kernel at u = distance / bandwidth; the value at 0 is 1."""
    if kernel == "gaussian":
        return np.exp(-0.5 * u * u)
    if kernel == "exponential":
        return np.exp(-u)
    inside = u < 1
    if kernel == "tophat":
        return inside.astype(np.float64)
    if kernel == "epanechnikov":
        return np.where(inside, 1 - u * u, 0.0)
    if kernel == "linear":
        return np.where(inside, 1 - u, 0.0)
    return np.where(inside, np.cos(0.5 * np.pi * u), 0.0)


def log_volume(d: int) -> float:
    """Return the logarithm of the volume of the unit ball in d dimensions."""
    return float(0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1))


def log_normalisation(kernel: str, h: float, d: int) -> float:
    """Return the logarithm of the factor for which the kernel integrates to one."""
    if kernel == "gaussian":
        log_integral = 0.5 * d * np.log(2 * np.pi)
    elif kernel == "tophat":
        log_integral = log_volume(d)
    elif kernel == "epanechnikov":
        log_integral = log_volume(d) + np.log(2 / (d + 2))
    elif kernel == "exponential":
        # The surface of the unit sphere, d V(d), times Γ(d).
        log_integral = np.log(d) + log_volume(d) + gammaln(d)
    elif kernel == "linear":
        log_integral = log_volume(d) - np.log(d + 1)
    else:
        # d V(d) ∫ r^(d-1) cos(π r / 2) dr over [0, 1]: the recursion of integration by parts.
        a = np.pi / 2
        cosines = sines = 1 / a
        for m in range(1, d):
            cosines, sines = 1 / a - m / a * sines, m / a * cosines
        log_integral = np.log(d) + log_volume(d) + np.log(cosines)
    return float(-log_integral - d * np.log(h))
