"""Boosted trees as `TreePredictor` of scikit-learn's histogram boosters.

Explainers and converters for those boosters read their private attribute `_predictors`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

__all__ = ["as_predictor"]

_WORDS = 8  # 32-bit words with one bit for each of 256 categories


def as_predictor(tree: Any, categories: list[Any]) -> TreePredictor:
    """Convert a tree to a predictor.

    Parameters
    ----------
    tree : Tree
        A tree with one value per node.
    categories : list of (array or None)
        The categories of each column, None for a numeric one.

    Returns
    -------
    TreePredictor
        The same splits. Categories that are integers below 256 are represented by their value,
        others by their code.
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
    is_category_split = inner & np.isnan(tree.threshold)
    nodes["num_threshold"] = np.where(inner & ~is_category_split, tree.threshold, 0.0)
    nodes["is_categorical"] = is_category_split
    bits = np.zeros((int(is_category_split.sum()), _WORDS), dtype=np.uint32)
    for index, node in enumerate(np.flatnonzero(is_category_split)):
        nodes["bitset_idx"][node] = index
        for value in _category_numbers(tree.left_categories(node), categories[tree.feature[node]]):
            bits[index, value // 32] |= np.uint32(1 << (value % 32))
    return TreePredictor(nodes, np.zeros_like(bits), bits)


def _gains(tree: Any) -> Any:
    """Return the decrease of the objective by each split."""
    weighted = tree.weighted_n_node_samples * tree.impurity
    left, right = tree.children_left, tree.children_right
    return weighted - weighted[left] - weighted[right]


def _category_numbers(codes: Any, values: Any) -> list[int]:
    chosen = values[codes].tolist()
    are_small = all(isinstance(v, (int, float)) and v == int(v) and 0 <= v < 256 for v in chosen)
    return [int(v) for v in chosen] if are_small else [int(code) for code in codes if code < 256]
