"""The leaves of a tree ensemble as boxes in the grid of all split thresholds.

A column has *options*: the cells between the thresholds of the splits, or its categories. A leaf
is reached from a range of options of each numeric column, and from a set of options of each column
of categories. A *point* has one option for each column; a *box* has a range or set of options.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.models.form import TreeScores
from spinney.models.tree import Tree

__all__ = ["Boxes", "LeafBoxes", "find_cuts"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def find_cuts(scores: TreeScores, column: int) -> Floats:
    """Return the thresholds of all splits on a numeric column, ascending."""
    found = [
        tree.threshold[(tree.feature == column) & (tree.category_start < 0)]
        for tree in scores.trees
    ]
    cuts = np.unique(np.concatenate(found)) if found else np.empty(0)
    return cuts[np.isfinite(cuts)]


@dataclass(frozen=True)
class Boxes:
    """A range or set of options for every column.

    Parameters
    ----------
    low, high : ndarray of int
        The first option, and the end (exclusive), of each numeric column.
    kept : dict of int to ndarray of bool
        Whether each option belongs to the box, for each column of categories.
    """

    low: Ints
    high: Ints
    kept: dict[int, NDArray[np.bool_]]


class LeafBoxes:
    """The leaves of all trees that a row can reach by changes of some columns.

    Parameters
    ----------
    scores : TreeScores
        The trees.
    row : ndarray of shape (n_features,)
        The row as the trees read it: numbers or codes, NaN where a value is missing.
    cuts : dict of int to ndarray
        The thresholds of each numeric column that may change.
    categories : dict of int to int
        The number of categories of each column of categories that may change.
    """

    def __init__(
        self,
        scores: TreeScores,
        row: Floats,
        cuts: dict[int, Floats],
        categories: dict[int, int],
    ) -> None:
        self.numbers = list(cuts)
        self.classes = list(categories)
        self._cuts, self._categories, self._row = cuts, categories, row
        lows, highs, sets, values, trees = [], [], [], [], []
        n_scores = len(scores.start)
        for t, (tree, own) in enumerate(zip(scores.trees, scores.values, strict=True)):
            low, high, kept, leaves = self._leaves(tree)
            added = np.zeros((len(leaves), n_scores))
            to = scores.adds_to[t]
            added[:, slice(None) if to is None else slice(to, to + 1)] = own[leaves]
            lows.append(low)
            highs.append(high)
            sets.append(kept)
            values.append(added)
            trees.append(np.full(len(leaves), t))
        self.low, self.high = np.concatenate(lows), np.concatenate(highs)
        self.kept = {j: np.concatenate([kept[j] for kept in sets]) for j in categories}
        self.value, self.tree = np.concatenate(values), np.concatenate(trees)
        self.n_trees = len(scores.trees)
        self.start = np.asarray(scores.start, dtype=np.float64)

    def _leaves(self, tree: Tree) -> Any:
        """Return (low, high, kept, nodes) of the leaves of a tree that the row can reach."""
        top = np.array([len(self._cuts[j]) + 1 for j in self.numbers], dtype=np.int64)
        index = {j: k for k, j in enumerate(self.numbers)}
        whole = {j: np.ones(n, dtype=bool) for j, n in self._categories.items()}
        stack: list[Any] = [(0, np.zeros(len(top), dtype=np.int64), top, whole)]
        found = []
        while stack:
            node, low, high, kept = stack.pop()
            left, right = int(tree.children_left[node]), int(tree.children_right[node])
            if left < 0:
                found.append((low, high, kept, node))
                continue
            j = int(tree.feature[node])
            if j in index:
                k, cut = index[j], _cut_number(tree, node, self._cuts[j])
                if cut + 1 < high[k]:
                    stack.append((right, _with(low, k, max(int(low[k]), cut + 1)), high, kept))
                if cut >= low[k]:
                    stack.append((left, low, _with(high, k, min(int(high[k]), cut + 1)), kept))
            elif j in kept:
                goes_left = _categories_left(tree, node, self._categories[j])
                for child, some in ((right, kept[j] & ~goes_left), (left, kept[j] & goes_left)):
                    if some.any():
                        stack.append((child, low, high, {**kept, j: some}))
            else:
                stack.append(
                    (left if _row_goes_left(tree, node, self._row[j]) else right, low, high, kept)
                )
        sets = {j: np.array([kept[j] for _, _, kept, _ in found]) for j in self._categories}
        return (
            np.array([low for low, *_ in found]),
            np.array([high for _, high, *_ in found]),
            sets,
            np.array([node for *_, node in found]),
        )

    def inside(
        self, numbers: Ints, classes: dict[int, int], ignored: int = -1
    ) -> NDArray[np.bool_]:
        """Return which leaves contain a point, for any option of the column `ignored`."""
        held = np.ones(len(self.tree), dtype=bool)
        for k, j in enumerate(self.numbers):
            if j != ignored:
                held &= (self.low[:, k] <= numbers[k]) & (numbers[k] < self.high[:, k])
        for j, option in classes.items():
            if j != ignored:
                held &= self.kept[j][:, option]
        return held

    def reached(self, boxes: Boxes, among: Ints, column: int) -> Ints:
        """Return the leaves of `among` that a box reaches, checking only one column."""
        if column in self.kept:
            return among[(self.kept[column][among] & boxes.kept[column]).any(axis=1)]
        k = self.numbers.index(column)
        low, high = boxes.low[k], boxes.high[k]
        return among[(self.low[among, k] < high) & (self.high[among, k] > low)]


def _with(values: Ints, k: int, value: int) -> Ints:
    changed = values.copy()
    changed[k] = value
    return changed


def _cut_number(tree: Tree, node: int, cuts: Floats) -> int:
    """Return the index of a node's threshold; -1 or n for an infinite one."""
    threshold = tree.threshold[node]
    if np.isfinite(threshold):
        return int(np.searchsorted(cuts, threshold))
    return len(cuts) if threshold > 0 else -1


def _categories_left(tree: Tree, node: int, n: int) -> NDArray[np.bool_]:
    """Return which of n categories go to the left child."""
    start = int(tree.category_start[node])
    codes = np.arange(n)
    words = tree.category_bits[start + codes // 32]
    return np.asarray((words >> (codes % 32).astype(np.uint32)) & 1 == 1)


def _row_goes_left(tree: Tree, node: int, value: float) -> bool:
    if np.isnan(value):
        return bool(tree.missing_go_to_left[node])
    if tree.category_start[node] >= 0:
        return bool(_categories_left(tree, node, int(value) + 1)[int(value)])
    return bool(value <= tree.threshold[node])
