"""The common representation of trees of other libraries, and its validation.

Every reader creates a `SourceTree`; `append_tree` validates it and passes it to the core. Contents
of files must not reach the core without these checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.models.forest_store import ForestStore

__all__ = ["SourceTree", "append_tree", "tree_arrays"]


@dataclass
class SourceTree:
    """Nodes as parallel arrays, in any order; node 0 is the root.

    Parameters
    ----------
    left, right : ndarray of int64
        Children, negative at a leaf.
    feature : ndarray of int64
        The column that a node splits on.
    threshold : ndarray of float64
        Rows with ``x <= threshold`` go left.
    missing_left : ndarray of bool
        Whether a missing value goes left.
    value : ndarray of shape (n_nodes, width)
        The values of leaves; those of other nodes are ignored.
    weight : ndarray of float64
        The weight of a leaf's training rows (the sum of second derivatives).
    n_rows : ndarray of int64
        The number of training rows of a leaf.
    gain : ndarray of float64
        The decrease of the objective by a split.
    left_categories : dict, default={}
        Maps each node that splits on categories to the codes that go left.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]
    weight: NDArray[Any]
    n_rows: NDArray[Any]
    gain: NDArray[Any]
    left_categories: dict[int, NDArray[Any]] = field(default_factory=dict)


def append_tree(store: ForestStore, tree: SourceTree, label: str) -> None:
    """Validate a tree and append it to a forest.

    Parameters
    ----------
    store : ForestStore
        The forest; its shape determines the number of columns, categories and values.
    tree : SourceTree
        The tree.
    label : str
        The name of the tree in errors.
    """
    store.core.append(tree_arrays(tree, store.shape[4], store.width, label))


def tree_arrays(tree: SourceTree, n_categories: Any, width: int, label: str) -> dict[str, Any]:
    """Validate a tree and return its arrays, named as in `spinney.tree.Tree`."""
    levels = _levels(tree, len(n_categories), label)
    order = np.concatenate(levels)
    n = len(order)
    new_index = np.full(len(tree.left), -1)
    new_index[order] = np.arange(n)
    inner = tree.left[order] >= 0
    left = np.where(inner, new_index[np.maximum(tree.left[order], 0)], -1)
    right = np.where(inner, new_index[np.maximum(tree.right[order], 0)], -1)
    value = np.array(tree.value, dtype=np.float64).reshape(len(tree.left), width)[order]
    if not np.isfinite(value[~inner]).all():
        raise ValueError(f"{label}: expected finite values in its leaves, got others")
    weight = np.where(inner, 0.0, np.asarray(tree.weight, dtype=np.float64)[order])
    weight[~inner & ~(weight > 0)] = np.finfo(np.float32).tiny  # means need a positive weight
    n_rows = np.where(inner, 0, np.asarray(tree.n_rows)[order])
    objective = np.where(inner, np.nan_to_num(np.asarray(tree.gain, np.float64)[order]), 0.0)
    bounds = np.cumsum([0, *(len(level) for level in levels)])
    for begin, end in zip(bounds[-2::-1], bounds[:0:-1], strict=True):  # from the deepest level up
        nodes = np.arange(begin, end)[inner[begin:end]]
        for child in (left[nodes], right[nodes]):
            weight[nodes] += weight[child]
            n_rows[nodes] += n_rows[child]
            objective[nodes] += objective[child]
        share = (weight[left[nodes]] / weight[nodes])[:, np.newaxis]
        value[nodes] = share * value[left[nodes]] + (1 - share) * value[right[nodes]]
    starts, bits = _category_bits(tree, order, n_categories, label)
    is_numeric = inner & (starts < 0)
    threshold = np.asarray(tree.threshold, dtype=np.float64)[order]
    if np.isnan(threshold[is_numeric]).any():
        raise ValueError(f"{label}: expected thresholds that are numbers, got NaN")
    if any(n_categories[f] for f in np.unique(tree.feature[order][is_numeric])):
        raise ValueError(
            f"{label}: expected sets of categories in splits on a column of categories, got a "
            "threshold"
        )
    threshold = np.where(inner, np.where(starts >= 0, np.nan, threshold), -2.0)
    return {
        "children_left": left,
        "children_right": right,
        "feature": np.where(inner, tree.feature[order], -2),
        "threshold": threshold,
        "missing_go_to_left": (inner & np.asarray(tree.missing_left, bool)[order]).astype(np.uint8),
        "impurity": objective / weight,
        "n_node_samples": n_rows.astype(np.int64),
        "weighted_n_node_samples": weight,
        "value": np.ascontiguousarray(value.ravel()),
        "category_start": starts,
        "category_bits": bits,
        "max_depth": len(levels) - 1,
    }


def _levels(tree: SourceTree, n_features: int, label: str) -> list[NDArray[np.int64]]:
    """Return the nodes by level; raise an error if they do not form a tree."""
    n = len(tree.left)
    lengths = {len(getattr(tree, name)) for name in ("right", "feature", "threshold", "value")}
    lengths |= {len(getattr(tree, name)) for name in ("missing_left", "weight", "n_rows", "gain")}
    if n == 0 or lengths != {n}:
        raise ValueError(
            f"{label}: expected arrays of equal length, got lengths {sorted({n, *lengths})}"
        )
    visited = np.zeros(n, dtype=bool)
    levels = [np.zeros(1, dtype=np.int64)]
    visited[0] = True
    while True:
        level = levels[-1]
        level = level[tree.left[level] >= 0]
        if len(level) == 0:
            return levels
        children = np.stack([tree.left[level], tree.right[level]], axis=1).ravel()
        if (children < 0).any() or (children >= n).any():
            raise ValueError(f"{label}: expected children from 1 to {n - 1}, got others")
        if visited[children].any() or len(np.unique(children)) < len(children):
            raise ValueError(
                f"{label}: expected a tree, got a node that is the child of more than one"
            )
        features = tree.feature[level]
        if (features < 0).any() or (features >= n_features).any():
            raise ValueError(f"{label}: expected columns from 0 to {n_features - 1}, got others")
        visited[children] = True
        levels.append(children)


def _category_bits(
    tree: SourceTree, order: NDArray[np.int64], n_categories: Any, label: str
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Return the starts of the nodes' category sets (-1: none), and all sets.

    A node has two sets of bits: the categories that go left, and those that occurred in the node.
    """
    starts = np.full(len(order), -1, dtype=np.int64)
    words: list[NDArray[np.uint32]] = [np.empty(0, dtype=np.uint32)]
    used = 0
    for at, node in enumerate(order.tolist()) if tree.left_categories else ():
        if node not in tree.left_categories or tree.left[node] < 0:
            continue
        n = int(n_categories[tree.feature[node]])
        codes = np.asarray(tree.left_categories[node], dtype=np.int64)
        if n == 0 or (codes < 0).any() or (codes >= n).any():
            raise ValueError(f"{label}: expected categories below {n} in a split, got others")
        mask = np.zeros((2, 32 * ((n + 31) // 32)), dtype=bool)
        mask[0, codes] = True
        mask[1, :n] = True  # the node's own categories are unknown: assume all
        packed = np.packbits(mask, bitorder="little").view("<u4")
        starts[at] = used
        used += len(packed)
        words.append(packed.astype(np.uint32))
    return starts, np.concatenate(words)
