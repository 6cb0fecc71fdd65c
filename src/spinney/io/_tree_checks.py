"""Trees from files are checked before the core walks through them, where nothing is checked."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["check_model", "check_tree"]

_NODE_ARRAYS = (
    "children_right",
    "feature",
    "threshold",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
    "category_start",
    "value",
)

# Ensembles whose trees see the table; trees of others see some columns, or columns made of them.
_WHOLE_TABLE = frozenset(
    {
        "AdaBoostClassifier",
        "AdaBoostRegressor",
        "ExtraTreesClassifier",
        "ExtraTreesRegressor",
        "RandomForestClassifier",
        "RandomForestRegressor",
    }
)


def check_tree(tree: Any) -> None:
    """Refuse a `spinney.tree.Tree` that points beyond its nodes, columns or categories."""
    n = tree.node_count
    if any(len(getattr(tree, name)) != n for name in _NODE_ARRAYS) or n == 0:
        raise ValueError("a tree whose arrays differ in length")
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    inner = np.flatnonzero(left >= 0)
    if not np.array_equal(inner, np.flatnonzero(right >= 0)):
        raise ValueError("a tree with a node of one child")
    children = np.concatenate([left[inner], right[inner]])
    if not np.array_equal(np.sort(children), np.arange(1, n)):
        raise ValueError("a tree whose nodes are not each the child of one node")
    if (left[inner] <= inner).any() or (right[inner] <= inner).any():
        raise ValueError("a tree with a child before its parent")
    if ((feature[inner] < 0) | (feature[inner] >= tree.n_features)).any():
        raise ValueError("a tree that asks about a column that there is not")
    if tree.n_categories.shape != (tree.n_features,) or (tree.n_categories < 0).any():
        raise ValueError("a tree that does not know the categories of each column")
    asking = inner[tree.category_start[inner] >= 0]
    n_words = (tree.n_categories[feature[asking]].astype(np.int64) + 31) // 32
    most = len(tree.category_bits) - 2 * n_words
    if (n_words == 0).any() or (tree.category_start[asking] > most).any():
        raise ValueError("a tree that asks about categories that there are not")


def check_model(model: Any) -> None:
    """Refuse a model whose trees read other columns than its table has."""
    attributes = getattr(model, "__dict__", {})
    schema: Any = attributes.get("_schema")
    tree: Any = attributes.get("tree_")
    store: Any = attributes.get("_store")
    if schema is None:
        return
    expected = [0 if values is None else len(values) for values in schema.categories]
    if type(tree).__name__ == "Tree" and tree.n_categories.tolist() != expected:
        raise ValueError("a tree that was grown on other columns than its model has")
    if store is not None and type(model).__name__ in _WHOLE_TABLE and store.shape[4] != expected:
        raise ValueError("a forest that was grown on other columns than its model has")
