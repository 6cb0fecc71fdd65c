"""How much each neighbour counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KERNELS", "WEIGHTS", "weigh", "weigh_ragged"]

Floats = NDArray[np.float64]

# Functions of u, the distance over the distance to the farthest neighbour (or over the radius).
# Factors that are the same for all neighbours are left out. All but two vanish from u = 1 on.
KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u**2,
    "biweight": lambda u: (1 - u**2) ** 2,
    "triweight": lambda u: (1 - u**2) ** 3,
    "tricube": lambda u: (1 - u**3) ** 3,
    "cosine": lambda u: np.cos(np.pi / 2 * u),
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "logistic": lambda u: 1 / (np.exp(u) + 2 + np.exp(-u)),
}
_ENDLESS = {"gaussian", "logistic"}

# Every name that the parameter `weights` may have.
WEIGHTS = {"uniform", "distance", *KERNELS}


def weigh(weights: Any, distances: NDArray[Any]) -> NDArray[Any] | None:
    """Weights of k neighbours a row; None where all count the same.

    Kernels get distance / distance of the farthest of the k (0 if that is 0). Where all weights
    of a row vanish, as they do if all k are equally far, all of the row are 1.
    """
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return None
    if callable(weights):
        return np.asarray(weights(distances))
    if weights == "distance":
        is_same = distances == 0
        with np.errstate(divide="ignore"):
            return np.where(is_same.any(axis=1, keepdims=True), is_same, 1 / distances)
    out = _kernel(weights, distances, distances.max(axis=1, keepdims=True))
    out[~out.any(axis=1)] = 1.0
    return out


def weigh_ragged(
    weights: Any, distances: NDArray[Any], row: NDArray[np.intp], radius: Any
) -> Floats | None:
    """Weights of all neighbours within a radius, one after the other; None where all are the same.

    `distances` has an array for each query, `row` says which query each neighbour belongs to.
    Kernels get distance / radius; where all weights of a query vanish, all of them are 1.
    """
    if weights is None or (isinstance(weights, str) and weights == "uniform"):
        return None
    n = len(distances)
    if callable(weights):
        out = np.concatenate([np.empty(0), *weights(distances)])
        return np.asarray(out, dtype=np.float64)
    flat = np.concatenate([np.empty(0), *distances])
    if weights == "distance":
        is_same = flat == 0
        has_same = np.bincount(row, is_same, minlength=n) > 0
        with np.errstate(divide="ignore"):
            return np.where(has_same[row], is_same, 1 / flat)
    reach = np.broadcast_to(np.asarray(radius, dtype=np.float64), n)[row]
    out = _kernel(weights, flat, reach)
    out[(np.bincount(row, out, minlength=n) == 0)[row]] = 1.0
    return out


def _kernel(name: str, distances: Floats, reach: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        u = np.where(reach > 0, distances / reach, 0.0)
    u[np.isnan(u)] = 1.0  # infinitely far, as the farthest is
    if name in _ENDLESS:
        return KERNELS[name](u)
    return np.where(u < 1, KERNELS[name](np.minimum(u, 1.0)), 0.0)
