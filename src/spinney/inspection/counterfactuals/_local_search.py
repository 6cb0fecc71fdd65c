"""Local search for cheap points near a row, before the branch and bound.

The search changes one column at a time. A *state* is a point and, for every leaf, the number of
columns that exclude the point from it. The margins for all options of a column then follow from
the leaves that no other column excludes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.inspection.counterfactuals._leaf_boxes import LeafBoxes

__all__ = ["LocalSearch"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Point = tuple[Ints, dict[int, int]]
_MAX_PROFILES = 60_000  # maximum number of evaluations of a column in one search
_N_IMPROVED = 8  # number of starts, the cheapest ones, that are improved


@dataclass
class _State:
    options: dict[int, int]
    n_out: NDArray[np.int16]

    def copy(self) -> _State:
        return _State(dict(self.options), self.n_out.copy())


class LocalSearch:
    """A search for cheap points that reach a goal.

    Parameters
    ----------
    leaves : LeafBoxes
        The ensemble.
    margins : ndarray of shape (n_leaves, n_margins)
        The contribution of each leaf to the margins; the goal is that all margins exceed `close`.
    base, close : ndarray of shape (n_margins,)
        The initial margins, and the thresholds above which they count as positive.
    costs : dict of int to ndarray
        For each column the cost of its options; infinite for options that are not allowed.
    """

    def __init__(
        self,
        leaves: LeafBoxes,
        margins: Floats,
        base: Floats,
        close: Floats,
        costs: dict[int, Floats],
    ) -> None:
        self._margins, self._base, self._close, self._costs = margins, base, close, costs
        self._columns = [*leaves.numbers, *leaves.classes]
        self._low = {
            j: np.ascontiguousarray(leaves.low[:, k]) for k, j in enumerate(leaves.numbers)
        }
        self._high = {
            j: np.ascontiguousarray(leaves.high[:, k]) for k, j in enumerate(leaves.numbers)
        }
        self._kept = {j: np.ascontiguousarray(leaves.kept[j].T) for j in leaves.classes}
        self._numbers, self._n_leaves = leaves.numbers, len(leaves.tree)
        self._n_profiles = 0

    def search(self, start: Point, candidates: list[Point]) -> list[tuple[Point, float]]:
        """Return points that reach the goal with their costs, the cheapest first.

        Parameters
        ----------
        start : point
            The row itself.
        candidates : list of points
            Points that reach the goal already.
        """
        states = []
        climbed = self._climb(self._state(start), set())
        if climbed is not None:
            states.append(climbed)
        states += [self._state(point) for point in candidates]
        found = [(self._cheapen(state), state) for state in states if self._reaches(state)]
        found.sort(key=lambda one: one[0])
        improved = [self._improve(state, cost) for cost, state in found[:_N_IMPROVED]]
        improved += [(state, cost) for cost, state in found[_N_IMPROVED:]]
        improved.sort(key=lambda one: one[1])
        return [(self._point(state), cost) for state, cost in improved]

    def _state(self, point: Point) -> _State:
        options = {j: int(at) for j, at in zip(self._numbers, point[0], strict=True)} | point[1]
        n_out = np.zeros(self._n_leaves, dtype=np.int16)
        for j, option in options.items():
            n_out += self._excludes(j, option)
        return _State(options, n_out)

    def _point(self, state: _State) -> Point:
        numbers = np.array([state.options[j] for j in self._numbers], dtype=np.int64)
        return numbers, {j: state.options[j] for j in self._kept}

    def _excludes(self, j: int, option: int) -> NDArray[np.bool_]:
        """Return the leaves that an option of a column excludes."""
        if j in self._kept:
            return ~self._kept[j][option]
        return (self._low[j] > option) | (self._high[j] <= option)

    def _move(self, state: _State, j: int, option: int) -> None:
        state.n_out -= self._excludes(j, state.options[j])
        state.n_out += self._excludes(j, option)
        state.options[j] = option

    def _cost(self, state: _State) -> float:
        return float(sum(self._costs[j][option] for j, option in state.options.items()))

    def _reaches(self, state: _State) -> bool:
        margins = self._base + self._margins[state.n_out == 0].sum(axis=0)
        return bool((margins > self._close).all())

    def _profile(self, state: _State, j: int) -> Floats:
        """Return the margins for every option of one column, (n_options, n_margins)."""
        self._n_profiles += 1
        held = np.flatnonzero(state.n_out == self._excludes(j, state.options[j]))
        added = self._margins[held]
        if j in self._kept:
            return self._base + self._kept[j][:, held].astype(np.float64) @ added
        n = len(self._costs[j]) + 1
        low, high = self._low[j][held], self._high[j][held]
        steps = [
            np.bincount(low, of_one, n)[:-1] - np.bincount(high, of_one, n)[:-1]
            for of_one in added.T
        ]
        return self._base + np.cumsum(np.array(steps), axis=1).T

    def _climb(self, state: _State, fixed: set[int]) -> _State | None:
        """Make the change with the largest gain per cost until the goal is reached.

        Returns None if the goal is not reached without changing the columns `fixed`.
        """
        columns = [j for j in self._columns if j not in fixed]
        for _ in range(3 * len(columns)):
            best, most = None, 0.0
            arrived, least = None, np.inf
            for j in columns:
                margins, now = self._profile(state, j), state.options[j]
                with np.errstate(invalid="ignore"):
                    more = self._costs[j] - self._costs[j][now]
                allowed = np.isfinite(more)
                reaches = (margins > self._close).all(axis=1) & allowed
                if reaches.any():
                    option = int(np.argmin(np.where(reaches, more, np.inf)))
                    if more[option] < least:
                        arrived, least = (j, option), float(more[option])
                short = np.minimum(margins, 0).sum(axis=1)
                rate = np.where(allowed, (short - short[now]) / np.maximum(more, 1e-3), -np.inf)
                option = int(np.argmax(rate))
                if rate[option] > most:
                    best, most = (j, option), float(rate[option])
            if arrived is not None:
                self._move(state, *arrived)
                return state
            if best is None:
                return None
            self._move(state, *best)
        return None

    def _cheapen(self, state: _State) -> float:
        """Move single columns to cheaper options within the goal; return the cost."""
        changed = True
        while changed:
            changed = False
            costs = {j: self._costs[j][option] for j, option in state.options.items()}
            for j in sorted((j for j in self._columns if costs[j] > 0), key=lambda j: -costs[j]):
                good = (self._profile(state, j) > self._close).all(axis=1)
                cost = np.where(good, self._costs[j], np.inf)
                option = int(np.argmin(cost))
                if cost[option] < costs[j]:
                    self._move(state, j, option)
                    changed = True
        return self._cost(state)

    def _improve(self, state: _State, cost: float) -> tuple[_State, float]:
        """Reset one or two columns, reach the goal by others, and keep cheaper results."""
        home = {j: int(np.argmin(self._costs[j])) for j in self._columns}
        stop = self._n_profiles + _MAX_PROFILES // _N_IMPROVED
        improved = True
        while improved and self._n_profiles < stop:
            improved = False
            changed = [j for j in self._columns if self._costs[j][state.options[j]] > 0]
            changed.sort(key=lambda j: -self._costs[j][state.options[j]])
            pairs = [(j, other) for j in changed for other in changed if j < other]
            for back in [*((j,) for j in changed), *pairs]:
                if self._n_profiles >= stop:
                    break
                trial = state.copy()
                for j in back:
                    self._move(trial, j, home[j])
                repaired = self._climb(trial, set(back))
                if repaired is None:
                    continue
                less = self._cheapen(repaired)
                if less < cost * (1 - 1e-12):
                    state, cost, improved = repaired, less, True
                    break
        return state, cost
