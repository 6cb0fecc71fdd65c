"""Branch and bound for the nearest point with another prediction.

Boxes of options are opened in the order of their lower cost bounds. If the cheapest point of the
cheapest box reaches the goal, no point is nearer. If not, the box is split between that point and
the leaf with the largest gain. Boxes in which no choice of leaves reaches the goal are dropped. A
local search finds a good point first, whose cost is an upper bound.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.inspection.counterfactuals._leaf_boxes import Boxes, LeafBoxes
from spinney.inspection.counterfactuals._local_search import LocalSearch

__all__ = ["Goal", "NearestFlip", "SearchResult"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Point = tuple[Ints, dict[int, int]]
_CLOSE = 1e-9  # relative size below which rounding decides, so that the model itself is evaluated


@dataclass(frozen=True)
class Goal:
    """Margins that must be positive: ``scores @ factors + offsets``."""

    factors: Floats
    offsets: Floats


@dataclass(frozen=True)
class SearchResult:
    """The best point or None, its cost, a lower bound, and the boxes opened."""

    point: Point | None
    cost: float
    bound: float
    n_boxes: int


class NearestFlip:
    """A search for the cheapest point that reaches a goal.

    Parameters
    ----------
    leaves : LeafBoxes
        The ensemble.
    goal : Goal
        The margins that must become positive.
    costs : dict of int to ndarray
        For each column the cost of its options; infinite for options that are not allowed.
    confirm : callable
        ``confirm(point)`` evaluates the model itself; used where rounding decides.
    """

    def __init__(
        self,
        leaves: LeafBoxes,
        goal: Goal,
        costs: dict[int, Floats],
        confirm: Callable[[Point], bool],
    ) -> None:
        self._leaves, self._goal, self._costs, self._confirm = leaves, goal, costs, confirm
        self._margins = leaves.value @ goal.factors  # contribution of each leaf to each margin
        self._base = leaves.start @ goal.factors + goal.offsets
        scale = np.abs(self._margins).max(axis=0, initial=0.0) * leaves.n_trees
        self._close = _CLOSE * (np.abs(self._base) + scale + 1e-300)

    def search(self, start: Point, candidates: list[Point], max_boxes: int) -> SearchResult:
        """Search from the row's point; `candidates` are points that may reach the goal."""
        best, least = self._find_good_point(start, candidates)
        everything = Boxes(
            np.zeros(len(self._leaves.numbers), dtype=np.int64),
            np.array([len(self._costs[j]) for j in self._leaves.numbers], dtype=np.int64),
            {j: np.isfinite(self._costs[j]) for j in self._leaves.classes},
        )
        reach = np.arange(len(self._leaves.tree))
        order = count()
        heap: list[Any] = []
        self._push(heap, order, everything, reach, least)
        n_boxes = 0
        while heap:
            cost, _, boxes, reach = heapq.heappop(heap)
            if cost >= least:
                break
            if n_boxes == max_boxes:
                return SearchResult(best, least, cost, n_boxes)
            n_boxes += 1
            point = self._cheapest(boxes)
            held = reach[self._leaves.inside(*point)[reach]]
            margins = self._base + self._margins[held].sum(axis=0)
            if self._reaches(margins, point):
                return SearchResult(point, cost, cost, n_boxes)
            for half, column in self._split(boxes, reach, held, point, margins):
                within = self._leaves.reached(half, reach, column)
                self._push(heap, order, half, within, least)
        return SearchResult(best, least, least, n_boxes)

    def _push(self, heap: list[Any], order: Any, boxes: Boxes, reach: Ints, least: float) -> None:
        """Add a box to the heap unless it is too expensive or cannot reach the goal."""
        cost = self._least_cost(boxes)
        if cost >= least or (self._upper(reach) < -self._close).any():
            return
        heapq.heappush(heap, (cost, next(order), boxes, reach))

    def _upper(self, reach: Ints) -> Floats:
        """Return upper bounds of the margins: the best reachable leaf of every tree."""
        first = np.flatnonzero(np.diff(self._leaves.tree[reach], prepend=-1))
        return self._base + np.maximum.reduceat(self._margins[reach], first).sum(axis=0)

    def _least_cost(self, boxes: Boxes) -> float:
        total = 0.0
        for k, j in enumerate(self._leaves.numbers):
            total += float(self._costs[j][boxes.low[k] : boxes.high[k]].min())
        for j, kept in boxes.kept.items():
            total += float(self._costs[j][kept].min(initial=np.inf))
        return total

    def _cheapest(self, boxes: Boxes) -> Point:
        numbers = [
            int(boxes.low[k] + np.argmin(self._costs[j][boxes.low[k] : boxes.high[k]]))
            for k, j in enumerate(self._leaves.numbers)
        ]
        classes = {
            j: int(np.argmin(np.where(kept, self._costs[j], np.inf)))
            for j, kept in boxes.kept.items()
        }
        return np.array(numbers, dtype=np.int64), classes

    def _reaches(self, margins: Floats, point: Point) -> bool:
        if (margins > self._close).all():
            return True
        if (margins < -self._close).any():
            return False
        return self._confirm(point)

    def _split(
        self, boxes: Boxes, reach: Ints, held: Ints, point: Point, margins: Floats
    ) -> list[tuple[Boxes, int]]:
        """Split a box between its cheapest point and the leaf with the largest gain."""
        leaves = self._leaves
        short = int(np.argmin(margins / self._close))
        trees = leaves.tree[reach]
        first = np.flatnonzero(np.diff(trees, prepend=-1))
        highest = np.maximum.reduceat(self._margins[reach, short], first)
        gains = highest - self._margins[held, short]  # one leaf of every tree contains the point
        tree = int(np.argmax(gains))
        of_tree = reach[trees == trees[first[tree]]]
        if gains[tree] <= 0:  # this margin is at its bound: split by any other leaf
            other = reach[~np.isin(reach, held)]
            if len(other) == 0:
                return []
            target = int(other[0])
        else:
            target = int(of_tree[np.argmax(self._margins[of_tree, short])])
        numbers, classes = point
        for k, j in enumerate(leaves.numbers):
            low, high, at = leaves.low[target, k], leaves.high[target, k], numbers[k]
            if low <= at < high:
                continue
            cut = low if at < low else high
            near_low, near_high = boxes.low.copy(), boxes.high.copy()
            near_low[k] = cut
            near_high[k] = cut
            return [
                (Boxes(boxes.low, near_high, boxes.kept), j),
                (Boxes(near_low, boxes.high, boxes.kept), j),
            ]
        for j, option in classes.items():
            own = leaves.kept[j][target]
            if not own[option]:
                return [
                    (Boxes(boxes.low, boxes.high, {**boxes.kept, j: boxes.kept[j] & side}), j)
                    for side in (own, ~own)
                ]
        return []

    def _find_good_point(self, start: Point, candidates: list[Point]) -> tuple[Point | None, float]:
        """Return a point that reaches the goal and its cost, or None and infinity."""
        local = LocalSearch(self._leaves, self._margins, self._base, self._close, self._costs)
        for point, cost in local.search(start, candidates):
            if self._confirm(point):
                return point, cost
        return None, np.inf
