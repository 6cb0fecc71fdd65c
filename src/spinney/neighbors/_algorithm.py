"""Which index ``algorithm="auto"`` stands for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from spinney.neighbors._metrics import is_true_metric, takes_tree

__all__ = ["choose_algorithm", "intrinsic_dimension"]

# Nanoseconds on one thread, from normal rows of 2 to 20 columns, 200 to 100,000 of them.
_PRODUCT = (16_000.0, 1.5, 0.03)  # Euclidean by products: a query, a row, and a row's column
_BRUTE = (2_000.0, 2.0, 0.7)  # by any other metric
_TREE = (200.0, 4.0, 0.8)  # where leaves are looked at; rows come in short runs there
_BALL = 8.0  # times as many rows does a ball tree look at, or nodes
_BUILD = 30.0  # a row on one level of a tree
_CALL = 2_000.0  # a distance that is a Python function


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
    """Choose between "kd_tree", "ball_tree" and "brute" by what they are expected to cost.

    Brute force looks at all rows. A tree looks at the leaves that the ball around the query
    touches, which are about ``(1 + (k / leaf_size)**(1 / n_features))**n_features`` if rows are
    spread evenly (Friedman, Bentley and Finkel, 1977), for balls more; a row there costs more, and
    the tree must be built first. Real rows often lie on fewer dimensions than they have columns:
    `dimension` takes the place of the number of columns then.

    Parameters
    ----------
    n_rows, n_features : int
        Shape of the rows of fit.
    metric : str, callable or DistanceMetric
        The metric that is used; trees take only some.
    params : dict
        Its parameters.
    n_neighbors : int or None
        How many neighbours will be asked for; None counts as a leaf full.
    leaf_size : int
        Rows in a leaf.
    n_queries : int or None
        How many queries there will be; None stands for as many as rows.
    dimension : float or None
        Of the rows, as `intrinsic_dimension` finds it; None stands for the number of columns.

    Returns
    -------
    str
        The name of the cheapest.
    """
    trees = [name for name in ("kd_tree", "ball_tree") if takes_tree(name, metric, params)]
    if not trees or n_features == 0 or not is_true_metric(metric):
        return "brute"
    n_queries = n_rows if n_queries is None else n_queries
    k = leaf_size if n_neighbors is None else n_neighbors
    spread = float(n_features if dimension is None else dimension)
    leaves = (1 + (k / leaf_size) ** (1 / spread)) ** min(spread, 60.0)
    looked_at = leaf_size * leaves * (_BALL if trees[0] == "ball_tree" else 1.0)
    looked_at = n_rows * -math.expm1(-looked_at / n_rows)  # no row twice
    by_products = isinstance(metric, str) and metric in ("euclidean", "l2")
    start, row, column = _PRODUCT if by_products else _BRUTE
    brute = n_queries * (
        start + n_rows * (_CALL if callable(metric) else row + column * n_features)
    )
    start, row, column = _TREE
    pair = _CALL if callable(metric) else row + column * n_features
    levels = max(1.0, math.log2(max(2.0, n_rows / leaf_size)))
    tree = n_rows * levels * _BUILD + n_queries * (start + looked_at * pair)
    return trees[0] if tree < brute else "brute"


_SAMPLE = (200, 2_000)  # rows that are looked from, and at
_NEAR = 10  # neighbours whose distances tell the dimension


def intrinsic_dimension(X: Any) -> float:
    """Estimate on how many dimensions rows lie, from how fast neighbours become more.

    The maximum-likelihood estimate of Levina and Bickel (2005), over some rows. It is too small
    where there are many dimensions, by a third at twenty, as rows near a border have few
    neighbours beyond it.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.

    Returns
    -------
    float
        At least 1, and at most the number of columns.
    """
    n_rows, n_features = X.shape
    if n_rows <= 2 * _NEAR or n_features < 2:
        return float(max(1, n_features))
    some = X[:: max(1, n_rows // _SAMPLE[1])][: _SAMPLE[1]]
    few = some[:: max(1, len(some) // _SAMPLE[0])][: _SAMPLE[0]]
    nearest = np.partition(cdist(few, some), _NEAR, axis=1)[:, : _NEAR + 1]
    nearest = np.sort(nearest, axis=1)[:, 1:]  # the first is the row itself
    logs = np.log(np.maximum(nearest, np.finfo(np.float64).tiny))
    growth = (logs[:, -1:] - logs[:, :-1]).mean(axis=1)
    growth = growth[(nearest[:, 0] > 0) & np.isfinite(growth)]  # copies of a row tell nothing
    if len(growth) == 0 or not growth.mean() > 0:
        return 1.0
    return float(np.clip(1 / growth.mean(), 1.0, n_features))
