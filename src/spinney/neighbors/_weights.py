"""Weights of neighbours from their distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KERNELS", "WEIGHTS", "weigh", "weigh_ragged"]

Floats = NDArray[np.float64]

# Functions of u, the distance divided by that of the farthest neighbour (or by the radius),
# without constant factors. They are zero for u >= 1, except for the unbounded kernels.
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
_UNBOUNDED = {"gaussian", "logistic"}

# All names of the parameter `weights`.
WEIGHTS = {"uniform", "distance", *KERNELS}


def weigh(weights: Any, distances: NDArray[Any]) -> NDArray[Any] | None:
    """Return the weights of the neighbours, (n_queries, k); None if all are equal.

    Kernels are functions of distance / distance of the k-th neighbour (0 if that is 0). If all
    weights of a query are 0, for example because all distances are equal, they become 1.
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
    weights: Any, distances: NDArray[Any], query: NDArray[np.intp], radius: Any
) -> Floats | None:
    """Return the weights of neighbours in a radius; None if all are equal.

    The weights of all queries are concatenated.

    `distances` has an array for each query, and `query` is the number of each neighbour's query.
    Kernels are functions of distance / radius. If all weights of a query are 0, they become 1.
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
        has_same = np.bincount(query, is_same, minlength=n) > 0
        with np.errstate(divide="ignore"):
            return np.where(has_same[query], is_same, 1 / flat)
    widths = np.broadcast_to(np.asarray(radius, dtype=np.float64), n)[query]
    out = _kernel(weights, flat, widths)
    out[(np.bincount(query, out, minlength=n) == 0)[query]] = 1.0
    return out


def _kernel(name: str, distances: Floats, widths: Floats) -> Floats:
    """Return the values of a kernel at u = distance / width; u is 0 at width 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        u = np.where(widths > 0, distances / widths, 0.0)
    u[np.isnan(u)] = 1.0  # both are infinite
    if name in _UNBOUNDED:
        return KERNELS[name](u)
    return np.where(u < 1, KERNELS[name](np.minimum(u, 1.0)), 0.0)
