"""Selection of the index for ``algorithm="auto"``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from spinney.neighbors._metrics import is_true_metric, takes_tree

__all__ = ["choose_algorithm", "intrinsic_dimension"]

# Costs in nanoseconds on one thread: per query, per distance, and per column of a distance.
# Measured with 200 to 100,000 normally distributed rows of 2 to 20 columns.
_PRODUCT_COST = (16_000.0, 1.5, 0.03)  # brute force, Euclidean distances by matrix products
_BRUTE_COST = (2_000.0, 2.0, 0.7)  # brute force, any other metric
_TREE_COST = (200.0, 4.0, 0.8)  # rows in the searched leaves of a tree
_BUILD_COST = 30.0  # a row on one level of a tree
_CALL_COST = 2_000.0  # a distance that is a Python function
_BALL_FACTOR = 8.0  # rows and nodes that a ball tree searches, relative to a k-d tree


def choose_algorithm(
    n_rows: int,
    n_features: int,
    metric: Any,
    params: dict[str, Any],
    *,
    n_neighbors: int | None = None,
    leaf_size: int = 30,
    n_queries: int | None = None,
    dimension: float | None = None,
) -> str:
    """Return the cheapest algorithm: "kd_tree", "ball_tree" or "brute".

    Brute force computes the distances to all rows. A tree searches the leaves that intersect the
    ball around the query. For evenly spread rows these are about
    ``(1 + (k / leaf_size)**(1 / n_features))**n_features`` leaves (Friedman, Bentley and Finkel,
    1977), and more for a ball tree. A distance costs more in a tree, which must also be built. If
    rows lie near a surface of fewer dimensions than columns, `dimension` replaces `n_features`.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the training rows.
    metric : str, callable or DistanceMetric
        The metric; trees support only some metrics.
    params : dict
        Parameters of the metric.
    n_neighbors : int or None, default=None
        Number of neighbours of a query; None means `leaf_size`.
    leaf_size : int, default=30
        Number of rows in a leaf.
    n_queries : int or None, default=None
        Expected number of queries; None means `n_rows`.
    dimension : float or None, default=None
        The intrinsic dimension of the rows; None means `n_features`.

    Returns
    -------
    str
        The name of the algorithm.
    """
    trees = [name for name in ("kd_tree", "ball_tree") if takes_tree(name, metric, params)]
    if not trees or n_features == 0 or not is_true_metric(metric):
        return "brute"
    n_queries = n_rows if n_queries is None else n_queries
    k = leaf_size if n_neighbors is None else n_neighbors
    d = float(n_features if dimension is None else dimension)
    leaves = (1 + (k / leaf_size) ** (1 / d)) ** min(d, 60.0)
    searched = leaf_size * leaves * (_BALL_FACTOR if trees[0] == "ball_tree" else 1.0)
    searched = n_rows * -math.expm1(-searched / n_rows)  # each row counts once
    by_products = isinstance(metric, str) and metric in ("euclidean", "l2")
    query, pair, column = _PRODUCT_COST if by_products else _BRUTE_COST
    distance = _CALL_COST if callable(metric) else pair + column * n_features
    brute = n_queries * (query + n_rows * distance)
    query, pair, column = _TREE_COST
    distance = _CALL_COST if callable(metric) else pair + column * n_features
    levels = max(1.0, math.log2(max(2.0, n_rows / leaf_size)))
    tree = n_rows * levels * _BUILD_COST + n_queries * (query + searched * distance)
    return trees[0] if tree < brute else "brute"


_DIMENSION_SAMPLE = (200, 2_000)  # queries and rows of the estimate of the dimension
_N_NEAREST = 10  # neighbours of each query


def intrinsic_dimension(X: Any) -> float:
    """Estimate the intrinsic dimension of rows from the distances of their neighbours.

    This is the maximum-likelihood estimate of Levina and Bickel (2005) on a sample of the rows. In
    many dimensions it is too small, at twenty dimensions by a third: rows near the border of the
    data have fewer neighbours.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    float
        The dimension: at least 1, at most the number of columns.
    """
    n_rows, n_features = X.shape
    if n_rows <= 2 * _N_NEAREST or n_features < 2:
        return float(max(1, n_features))
    rows = X[:: max(1, n_rows // _DIMENSION_SAMPLE[1])][: _DIMENSION_SAMPLE[1]]
    queries = rows[:: max(1, len(rows) // _DIMENSION_SAMPLE[0])][: _DIMENSION_SAMPLE[0]]
    nearest = np.partition(cdist(queries, rows), _N_NEAREST, axis=1)[:, : _N_NEAREST + 1]
    nearest = np.sort(nearest, axis=1)[:, 1:]  # the first is the row itself
    logs = np.log(np.maximum(nearest, np.finfo(np.float64).tiny))
    with np.errstate(invalid="ignore"):  # distances of huge values are infinite
        growth = (logs[:, -1:] - logs[:, :-1]).mean(axis=1)
    growth = growth[(nearest[:, 0] > 0) & np.isfinite(growth)]  # without duplicate rows
    if len(growth) == 0 or not growth.mean() > 0:
        return 1.0
    return float(np.clip(1 / growth.mean(), 1.0, n_features))
