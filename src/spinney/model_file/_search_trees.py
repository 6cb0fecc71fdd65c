"""scikit-learn's search trees as data: their points and metric, not their nodes.

A tree is built again from its points when a file is read. The same points give the same tree, so
that a file cannot contain nodes with indexes out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["is_search_tree", "parts_of_search_tree", "search_tree_from_parts"]

_TREES = ("KDTree", "BallTree")  # names instead of classes, to import scikit-learn only if needed
_METRICS = {
    "EuclideanDistance64": "euclidean",
    "ManhattanDistance64": "manhattan",
    "ChebyshevDistance64": "chebyshev",
    "MinkowskiDistance64": "minkowski",
    "SEuclideanDistance64": "seuclidean",
    "MahalanobisDistance64": "mahalanobis",
    "CanberraDistance64": "canberra",
    "BrayCurtisDistance64": "braycurtis",
    "HammingDistance64": "hamming",
    "HaversineDistance64": "haversine",
    "JaccardDistance64": "jaccard",
    "DiceDistance64": "dice",
    "RogersTanimotoDistance64": "rogerstanimoto",
    "RussellRaoDistance64": "russellrao",
    "SokalSneathDistance64": "sokalsneath",
}


def is_search_tree(thing: Any) -> bool:
    """Return whether an object is a search tree of scikit-learn."""
    kind = type(thing)
    return kind.__name__ in _TREES and kind.__module__.startswith("sklearn.neighbors.")


def parts_of_search_tree(tree: Any) -> dict[str, Any]:
    """Return the data of a tree; raise a TypeError if its metric is a user's function."""
    state = tree.__getstate__()
    points, leaf_size, distance, weights = state[0], state[4], state[11], state[12]
    metric = _METRICS.get(type(distance).__name__)
    if metric is None:
        raise TypeError(
            f"a {type(tree).__name__} with the metric {type(distance).__name__}: "
            "a model file holds only data of known classes, no code"
        )
    p, vector, matrix = distance.__getstate__()[:3]
    params: dict[str, Any] = {}
    if metric == "minkowski":
        params = {"p": float(p), **({"w": np.asarray(vector)} if len(vector) else {})}
    elif metric == "seuclidean":
        params = {"V": np.asarray(vector)}
    elif metric == "mahalanobis":
        params = {"VI": np.asarray(matrix)}
    return {
        "tree": type(tree).__name__,
        "points": np.asarray(points),
        "leaf_size": int(leaf_size),
        "metric": metric,
        "params": params,
        "weights": None if weights is None else np.asarray(weights),
    }


def search_tree_from_parts(parts: dict[str, Any]) -> Any:
    """Build a tree from its data."""
    from sklearn import neighbors  # only if a model has a search tree: it takes time to import

    if parts["tree"] not in _TREES or parts["metric"] not in _METRICS.values():
        raise ValueError(f"unknown search tree {parts['tree']!r} or metric {parts['metric']!r}")
    weights = {} if parts["weights"] is None else {"sample_weight": parts["weights"]}
    return getattr(neighbors, parts["tree"])(
        parts["points"], parts["leaf_size"], metric=parts["metric"], **parts["params"], **weights
    )
