"""The trees of a forest as estimators, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spinney.data.table import Schema
from spinney.models.tree import Tree

__all__ = ["LazyTrees", "tree_of_subset"]


class LazyTrees(Sequence[Any]):
    """A sequence of estimators of which each is made at its first use, and kept.

    Parameters
    ----------
    n_trees : int
        How many there are.
    make : callable
        ``make(i)`` returns the i-th.
    """

    def __init__(self, n_trees: int, make: Callable[[int], Any]) -> None:
        self._n_trees = n_trees
        self._make = make
        self._made: dict[int, Any] = {}

    def extended(self, n_trees: int) -> LazyTrees:
        """Return the same trees and more; what was made stays the same object."""
        more = LazyTrees(n_trees, self._make)
        more._made = self._made
        return more

    def __len__(self) -> int:
        return self._n_trees

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._n_trees))]
        i = range(self._n_trees)[index]  # negative and out of range as for a list
        if i not in self._made:
            self._made[i] = self._make(i)
        return self._made[i]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._n_trees))

    def __repr__(self) -> str:
        return f"<{self._n_trees} trees>"


def tree_of_subset(estimator: Any, tree: Tree, features: Any, schema: Schema) -> Any:
    """Make a fitted estimator of a tree that saw some columns of a table only.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or the like
        Not fitted; it is filled and returned. Targets are the caller's business.
    tree : Tree
        Its features are columns of the whole table.
    features : ndarray of int
        The columns that the estimator is to take, in this order.
    schema : Schema
        Of the whole table.
    """
    if not np.array_equal(features, np.arange(tree.n_features)):
        state = tree.__getstate__()
        place = np.full(tree.n_features, -1)
        place[features[::-1]] = np.arange(len(features))[::-1]  # of repeated ones the first
        inner = state["feature"] >= 0
        state["feature"] = np.where(inner, place[np.maximum(state["feature"], 0)], -2)
        state["n_categories"] = state["n_categories"][features]
        small = Tree(len(features), tree.n_classes, tree.n_outputs)
        small.__setstate__(state)
        tree = small
    estimator.tree_ = tree
    # Rows that an ensemble hands to its members have no names.
    estimator._schema = Schema(None, tuple(schema.categories[f] for f in features))
    estimator.categories_ = list(estimator._schema.categories)
    estimator.n_features_in_ = len(features)
    estimator.n_outputs_ = tree.n_outputs
    estimator.max_features_ = estimator._n_features_drawn()
    return estimator
