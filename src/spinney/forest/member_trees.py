"""The trees of an ensemble as estimators, created on first access."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from spinney.data.table import Schema, set_schema
from spinney.models.tree import Tree
from spinney.tree.options import n_features_drawn

__all__ = ["LazyTrees", "tree_of_subset"]


class LazyTrees(Sequence[Any]):
    """A sequence of estimators; each is created on first access and kept.

    Parameters
    ----------
    n_trees : int
        Number of estimators.
    make : callable
        ``make(i)`` returns estimator i.
    """

    def __init__(self, n_trees: int, make: Callable[[int], Any]) -> None:
        self._n_trees = n_trees
        self._make = make
        self._made: dict[int, Any] = {}

    def extended(self, n_trees: int) -> LazyTrees:
        """Return a longer sequence with the same objects for trees created so far."""
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
    """Turn an unfitted estimator into a fitted one with a tree of an ensemble.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or the like
        The unfitted estimator. It is returned; the caller sets attributes of targets.
    tree : Tree
        The tree. Its features are columns of the whole table.
    features : ndarray of int
        The columns of the estimator, in this order.
    schema : Schema
        Schema of the whole table.
    """
    if not np.array_equal(features, np.arange(tree.n_features)):
        state = tree.__getstate__()
        position = np.full(tree.n_features, -1)
        position[features[::-1]] = np.arange(len(features))[::-1]  # first of repeated columns
        inner = state["feature"] >= 0
        state["feature"] = np.where(inner, position[np.maximum(state["feature"], 0)], -2)
        state["n_categories"] = state["n_categories"][features]
        small = Tree(len(features), tree.n_classes, tree.n_outputs)
        small.__setstate__(state)
        tree = small
    estimator.tree_ = tree
    # Ensembles pass rows without names to their members.
    set_schema(estimator, Schema(None, tuple(schema.categories[f] for f in features)))
    estimator.n_outputs_ = tree.n_outputs
    estimator.max_features_ = n_features_drawn(estimator.max_features, len(features))
    return estimator
