"""Boosted trees in the form that scikit-learn's histogram boosters keep theirs in.

Tools that look inside those boosters (explainers, converters) read the private `_predictors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

__all__ = ["as_predictor"]

_WORDS = 8  # of 32 bits: one for each of 256 categories


def as_predictor(tree: Any, categories: list[Any]) -> TreePredictor:
    """Make a predictor of a tree.

    Parameters
    ----------
    tree : Tree
        A tree with one value a node.
    categories : list of (array or None)
        Of each column, None if it is of numbers.

    Returns
    -------
    TreePredictor
        The same questions; categories are marked by their value where that is an integer below
        256, else by their place.
    """
    nodes = np.zeros(tree.node_count, dtype=PREDICTOR_RECORD_DTYPE)
    leaf = tree.children_left < 0
    nodes["value"] = tree.value[:, 0, 0]
    nodes["count"] = tree.n_node_samples
    nodes["depth"] = tree.compute_node_depths() - 1  # the root's is 0
    nodes["is_leaf"] = leaf
    inner = ~leaf
    nodes["feature_idx"][inner] = tree.feature[inner]
    nodes["left"][inner] = tree.children_left[inner]
    nodes["right"][inner] = tree.children_right[inner]
    nodes["missing_go_to_left"][inner] = tree.missing_go_to_left[inner]
    nodes["gain"][inner] = _gains(tree)[inner]
    asks_category = inner & np.isnan(tree.threshold)
    nodes["num_threshold"] = np.where(inner & ~asks_category, tree.threshold, 0.0)
    nodes["is_categorical"] = asks_category
    bits = np.zeros((int(asks_category.sum()), _WORDS), dtype=np.uint32)
    for place, node in enumerate(np.flatnonzero(asks_category)):
        nodes["bitset_idx"][node] = place
        for value in _marks(tree.left_categories(node), categories[tree.feature[node]]):
            bits[place, value // 32] |= np.uint32(1 << (value % 32))
    return TreePredictor(nodes, np.zeros_like(bits), bits)


def _gains(tree: Any) -> Any:
    """How much each question takes off the objective."""
    weighted = tree.weighted_n_node_samples * tree.impurity
    left, right = tree.children_left, tree.children_right
    return weighted - weighted[left] - weighted[right]


def _marks(codes: Any, values: Any) -> list[int]:
    chosen = values[codes].tolist()
    whole = all(isinstance(v, (int, float)) and v == int(v) and 0 <= v < 256 for v in chosen)
    return [int(v) for v in chosen] if whole else [int(code) for code in codes if code < 256]
