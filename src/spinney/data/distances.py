"""Distances between numeric rows by the name of a metric, for all estimators.

The definitions are those of scikit-learn's `DistanceMetric`, even if SciPy defines a metric in
another way (Bray-Curtis of negative values). This module defines the distance if the formula
divides zero by zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

__all__ = ["measure_pairs"]

_SCIPY_NAMES = {
    "l2": "euclidean",
    "manhattan": "cityblock",
    "l1": "cityblock",
    "infinity": "chebyshev",
    "p": "minkowski",
    "sokalmichener": "rogerstanimoto",  # the same formula
}
_BOOLEAN = {"dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"}
_SCIKIT_LEARN = {"cosine", "haversine", "nan_euclidean"}  # cdist lacks them, or zero rows


def measure_pairs(X: Any, Y: Any, metric: str, params: dict[str, Any]) -> NDArray[np.float64]:
    """Return the distance of each row of X to each row of Y.

    Parameters
    ----------
    X, Y : ndarray of shape (n_rows, n_features)
        The rows.
    metric : str
        A metric of scikit-learn or of SciPy's ``cdist``.
    params : dict
        Parameters of the metric.

    Returns
    -------
    ndarray of shape (n_rows of X, n_rows of Y)
        The distances. Two rows without a true value are equal under "dice" and "sokalsneath"; a
        constant row has "correlation" distance 1 to every row, as a row of zeros has "cosine"
        distance 1.
    """
    name = _SCIPY_NAMES.get(metric, metric)
    if name in _SCIKIT_LEARN:
        return np.ascontiguousarray(
            pairwise_distances(X, Y, metric=name, n_jobs=1, **params), dtype=np.float64
        )
    if name == "braycurtis":
        return _bray_curtis(X, Y, **params)
    if name == "minkowski" and params.get("p", 2) == np.inf:
        w = params.get("w")  # SciPy checks only whether a weight is zero
        w = 1.0 if w is None else np.asarray(w, dtype=np.float64)
        return np.asarray(cdist(X * w, Y * w, "chebyshev"))
    if name in _BOOLEAN:
        X, Y = np.asarray(X) != 0, np.asarray(Y) != 0
    with np.errstate(invalid="ignore", divide="ignore"):
        distances = np.asarray(cdist(X, Y, name, **params), dtype=np.float64)
    if name in ("dice", "sokalsneath"):
        distances[np.isnan(distances)] = 0.0
    elif name == "correlation":
        distances[np.isnan(distances)] = 1.0
    return distances


def _bray_curtis(X: Any, Y: Any, w: Any = None) -> NDArray[np.float64]:
    """Return Σ w|x − y| / Σ w(|x| + |y|), or 0 if all values are 0."""
    if w is not None:
        weights = np.asarray(w, dtype=np.float64)
        if not (weights >= 0).all():
            raise ValueError(f"w: expected weights of at least 0 with metric='braycurtis', got {w}")
        X, Y = X * weights, Y * weights
    sums = np.abs(X).sum(axis=1)[:, np.newaxis] + np.abs(Y).sum(axis=1)
    return np.asarray(cdist(X, Y, "cityblock") / np.where(sums > 0, sums, 1.0))
