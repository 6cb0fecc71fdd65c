"""Which index ``algorithm="auto"`` stands for."""

from __future__ import annotations

import math
from typing import Any

from spinney.neighbors._metrics import takes_tree

__all__ = ["choose_algorithm"]

# Nanoseconds, as far as they are known.
_PAIR = 2.0  # a distance in brute force, and
_PAIR_COLUMN = 0.7  # more for each column
_TREE_PAIR = 6.0  # the same in the leaf of a tree, whose rows come in short runs
_TREE_PAIR_COLUMN = 1.0
_BUILD = 15.0  # a row on one level of a tree
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
) -> str:
    """Choose between "kd_tree", "ball_tree" and "brute" by what they are expected to cost.

    Brute force looks at all rows. A tree looks at the leaves that the ball around the query
    touches, which are about ``(1 + (k / leaf_size)**(1 / n_features))**n_features`` if rows are
    spread evenly (Friedman, Bentley and Finkel, 1977); a row there costs more, and the tree must
    be built first. Real rows often lie on fewer dimensions than they have columns, so that trees
    are at times better than this.

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

    Returns
    -------
    str
        The name of the cheapest.
    """
    trees = [name for name in ("kd_tree", "ball_tree") if takes_tree(name, metric, params)]
    if not trees or n_features == 0:
        return "brute"
    n_queries = n_rows if n_queries is None else n_queries
    k = leaf_size if n_neighbors is None else n_neighbors
    leaves = (1 + (k / leaf_size) ** (1 / n_features)) ** min(n_features, 60)
    looked_at = min(float(n_rows), leaf_size * leaves)
    pair, tree_pair = _PAIR + _PAIR_COLUMN * n_features, _TREE_PAIR + _TREE_PAIR_COLUMN * n_features
    if callable(metric):
        pair, tree_pair = _CALL, _CALL
    levels = max(1.0, math.log2(max(2, n_rows / leaf_size)))
    brute = n_queries * n_rows * pair
    tree = n_rows * levels * _BUILD + n_queries * looked_at * tree_pair
    return trees[0] if tree < brute else "brute"
