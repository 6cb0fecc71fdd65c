"""Metrics by name: supporting indexes, and estimates of their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.neighbors import VALID_METRICS

from spinney.data.distances import measure_pairs

__all__ = [
    "METRIC_NAMES",
    "METRIC_POWERS",
    "MIXED",
    "STRINGS",
    "VectorDistances",
    "estimate_params",
    "is_true_metric",
    "takes_tree",
    "violates_triangle_inequality",
]

STRINGS = {"edit", "hamming"}  # "hamming" is also a metric of vectors
MIXED = {"gower"}

# Powers of the metrics that are Minkowski distances.
METRIC_POWERS = {
    "euclidean": 2.0,
    "l2": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
    "infinity": np.inf,
}

# All names of the parameter `metric`.
METRIC_NAMES = {
    *(name for names in VALID_METRICS.values() for name in names),
    *STRINGS,
    *MIXED,
    "kernel",
}

# Distances that violate the triangle inequality, by name and by scikit-learn's class. The trees of
# scikit-learn accept them, but may miss rows.
_NOT_METRICS = {"dice", "russellrao", "braycurtis"}
_NOT_METRIC_CLASSES = {"DiceDistance", "RussellRaoDistance", "BrayCurtisDistance"}


def takes_tree(algorithm: str, metric: Any, params: dict[str, Any]) -> bool:
    """Return whether "kd_tree" or "ball_tree" supports a metric."""
    if isinstance(metric, DistanceMetric) or callable(metric):
        return algorithm == "ball_tree"
    if metric == "minkowski" and params.get("p", 2) < 1:
        return False
    if metric == "minkowski" and params.get("w") is not None and algorithm == "kd_tree":
        return False
    return metric in VALID_METRICS[algorithm]


def violates_triangle_inequality(metric: Any) -> bool:
    """Return whether a metric is known to violate the triangle inequality."""
    if isinstance(metric, DistanceMetric):
        return _class_name(metric) in _NOT_METRIC_CLASSES
    return isinstance(metric, str) and metric in _NOT_METRICS


def is_true_metric(metric: Any) -> bool:
    """Return whether trees are exact for a metric.

    A function must declare that it is a metric with the attribute ``is_metric = True``.
    """
    if isinstance(metric, DistanceMetric):
        return _class_name(metric) not in {*_NOT_METRIC_CLASSES, "PyFuncDistance"}
    if callable(metric):
        return bool(getattr(metric, "is_metric", False))
    return not violates_triangle_inequality(metric)


def _class_name(metric: DistanceMetric) -> str:
    return type(metric).__name__.removesuffix("32").removesuffix("64")


def estimate_params(metric: Any, params: dict[str, Any], X: Any) -> dict[str, Any]:
    """Return the parameters of a metric; estimate missing ones from the training rows."""
    if not isinstance(metric, str) or sp.issparse(X):
        return params
    if metric == "mahalanobis" and "V" in params and "VI" not in params:
        rest = {name: value for name, value in params.items() if name != "V"}
        return {**rest, "VI": np.linalg.pinv(np.asarray(params["V"], dtype=np.float64))}
    if metric == "mahalanobis" and "VI" not in params:
        spread = np.eye(X.shape[1]) if len(X) < 2 else np.cov(X, rowvar=False)
        return {**params, "VI": np.linalg.pinv(np.atleast_2d(spread))}
    if metric == "seuclidean" and "V" not in params:
        variance = np.var(X, axis=0, ddof=min(1, len(X) - 1), dtype=np.float64)
        return {**params, "V": np.where(variance > 0, variance, 1.0)}
    return params


@dataclass(frozen=True)
class VectorDistances:
    """A function that returns all distances between two sets of numeric rows.

    Parameters
    ----------
    metric : str, callable or DistanceMetric
        A name ("precomputed": the first set contains the distances), a function of two rows, or a
        scikit-learn object.
    params : dict
        Parameters of the metric.
    """

    metric: Any
    params: dict[str, Any]

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Return the distances, (n_rows of X, n_rows of Y)."""
        if isinstance(self.metric, DistanceMetric):
            return np.asarray(self.metric.pairwise(X, Y), dtype=np.float64)
        if self.is_named("precomputed"):
            return np.ascontiguousarray(X, dtype=np.float64)
        if self.is_named("kernel"):
            return _kernel_distances(X, Y, self.params)
        if isinstance(self.metric, str) and not (sp.issparse(X) or sp.issparse(Y)):
            return measure_pairs(X, Y, self.metric, self.params)
        out = pairwise_distances(X, Y, metric=self.metric, n_jobs=1, **self.params)
        return np.ascontiguousarray(out, dtype=np.float64)

    def is_named(self, *names: str) -> bool:
        """Return whether the metric has one of the names."""
        return isinstance(self.metric, str) and self.metric in names


def _kernel_distances(X: Any, Y: Any, params: dict[str, Any]) -> NDArray[np.float64]:
    """Return feature-space distances: the root of k(x, x) + k(z, z) - 2 k(x, z)."""
    rest = dict(params)
    kernel = rest.pop("kernel", None)
    if kernel is None:
        raise ValueError(
            "metric_params: expected the key 'kernel' with a name such as 'rbf' or a function of "
            f"two rows for metric='kernel', got {params}"
        )
    squares = np.asarray(pairwise_kernels(X, Y, metric=kernel, **rest), dtype=np.float64) * -2.0
    squares += _kernel_diagonal(X, kernel, rest)[:, np.newaxis]
    squares += _kernel_diagonal(Y, kernel, rest)
    return np.sqrt(np.maximum(squares, 0.0))  # rounding may make zero squares negative


def _kernel_diagonal(X: Any, kernel: Any, params: dict[str, Any]) -> NDArray[np.float64]:
    """Return k(x, x) for each row.

    scikit-learn only computes all pairs of rows, so the rows are read in small blocks.
    """
    length = 1 if callable(kernel) else 64
    blocks = [
        np.diagonal(pairwise_kernels(X[first : first + length], metric=kernel, **params))
        for first in range(0, X.shape[0], length)
    ]
    return np.concatenate(blocks) if blocks else np.empty(0)
