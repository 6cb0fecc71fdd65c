"""Metrics by name: which there are, which index takes them, and what they learn from the rows."""

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
    "METRICS",
    "MIXED",
    "STRINGS",
    "VectorDistances",
    "is_true_metric",
    "learn_params",
    "takes_tree",
    "violates_triangle_inequality",
]

STRINGS = {"edit", "hamming"}  # of which the second is also one of vectors
MIXED = {"gower"}

# Every name that the parameter `metric` may have.
METRICS = {
    *(name for names in VALID_METRICS.values() for name in names),
    *STRINGS,
    *MIXED,
    "kernel",
}

# They violate the triangle inequality: scikit-learn's trees take them, but may miss rows.
_NO_METRICS = {"dice", "russellrao", "braycurtis"}
_NO_OBJECTS = {"DiceDistance", "RussellRaoDistance", "BrayCurtisDistance"}


def takes_tree(algorithm: str, metric: Any, params: dict[str, Any]) -> bool:
    """Whether "kd_tree" or "ball_tree" can search by a metric: it must obey the triangle's law."""
    if isinstance(metric, DistanceMetric) or callable(metric):
        return algorithm == "ball_tree"
    if metric == "minkowski" and params.get("p", 2) < 1:
        return False
    if metric == "minkowski" and params.get("w") is not None and algorithm == "kd_tree":
        return False
    return metric in VALID_METRICS[algorithm]


def violates_triangle_inequality(metric: Any) -> bool:
    """Return whether a metric, by name or object, is known to violate the triangle inequality."""
    if isinstance(metric, DistanceMetric):
        return _class_name(metric) in _NO_OBJECTS
    return isinstance(metric, str) and metric in _NO_METRICS


def is_true_metric(metric: Any) -> bool:
    """Whether trees find the right rows by it; a function has to say so (``is_metric = True``)."""
    if isinstance(metric, DistanceMetric):
        return _class_name(metric) not in {*_NO_OBJECTS, "PyFuncDistance"}
    if callable(metric):
        return bool(getattr(metric, "is_metric", False))
    return not violates_triangle_inequality(metric)


def _class_name(metric: DistanceMetric) -> str:
    return type(metric).__name__.removesuffix("32").removesuffix("64")


def learn_params(metric: Any, params: dict[str, Any], X: Any) -> dict[str, Any]:
    """Parameters of a metric, with what was not given estimated from the rows of fit."""
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
    """All distances between two sets of rows of numbers.

    Parameters
    ----------
    metric : str, callable or DistanceMetric
        A name ("precomputed": the first set has the distances), a function of two rows, or an
        object of scikit-learn's.
    params : dict
        Parameters of the metric.
    """

    metric: Any
    params: dict[str, Any]

    def __call__(self, X: Any, Y: Any) -> NDArray[np.float64]:
        """Give a row for each row of X, a column for each of Y."""
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
        """Whether the metric is one of those."""
        return isinstance(self.metric, str) and self.metric in names


def _kernel_distances(X: Any, Y: Any, params: dict[str, Any]) -> NDArray[np.float64]:
    """Distances in the space of a kernel: the root of k(x, x) + k(z, z) - 2 k(x, z)."""
    rest = dict(params)
    kernel = rest.pop("kernel", None)
    if kernel is None:
        raise ValueError(
            "metric_params: the metric 'kernel' needs a kernel, a name such as 'rbf' or a function "
            f"of two rows; got {params}"
        )
    squares = np.asarray(pairwise_kernels(X, Y, metric=kernel, **rest), dtype=np.float64) * -2.0
    squares += _with_itself(X, kernel, rest)[:, np.newaxis]
    squares += _with_itself(Y, kernel, rest)
    return np.sqrt(np.maximum(squares, 0.0))  # rounding may leave less than nothing


def _with_itself(X: Any, kernel: Any, params: dict[str, Any]) -> NDArray[np.float64]:
    """k(x, x) of each row; from small blocks, as kernels by name know of pairs only."""
    step = 1 if callable(kernel) else 64
    parts = [
        np.diagonal(pairwise_kernels(X[first : first + step], metric=kernel, **params))
        for first in range(0, X.shape[0], step)
    ]
    return np.concatenate(parts) if parts else np.empty(0)
