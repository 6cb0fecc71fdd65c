"""A column along which effects are accumulated: its places, and where the rows are among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.inspection._category_order import order_categories
from spinney.inspection.dependence import Grid
from spinney.inspection.table_view import TableView

__all__ = ["EffectAxis", "make_axis"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class EffectAxis:
    """Places of a column, steps between neighbouring places, and cells in which rows are.

    Places of numbers are the ends of intervals, which are the cells: a row takes part in the one
    step across its interval. Places of categories are the categories, which are the cells, too: a
    row takes part in the steps to both of its neighbours.

    Attributes
    ----------
    column : int
        The column.
    grid : Grid
        Its places.
    settings : ndarray
        What `TableView.make` takes to put rows at each place.
    at : ndarray of shape (n_rows,)
        The cell of each row.
    observed : ndarray of shape (n_rows,)
        The values of the rows; of categories their places.
    """

    column: int
    grid: Grid
    settings: NDArray[Any]
    at: Rows
    observed: Floats

    @property
    def is_category(self) -> bool:
        """Whether the places are categories."""
        return self.grid.is_category

    @property
    def n_places(self) -> int:
        """How many places there are: one more than steps."""
        return len(self.grid)

    @property
    def n_cells(self) -> int:
        """How many cells there are; a column of one value has one."""
        return self.n_places if self.is_category else max(self.n_places - 1, 1)

    def steps(self) -> list[tuple[Rows, Rows]]:
        """Return which rows take part in which steps; no row is twice in the same pair."""
        if not self.is_category:
            return [(np.arange(len(self.at)), self.at)]
        up, down = np.flatnonzero(self.at < self.n_places - 1), np.flatnonzero(self.at > 0)
        return [(up, self.at[up]), (down, self.at[down] - 1)]

    def by_step(self, counts: Floats, axis: int) -> Floats:
        """Return how many rows take part in each step, from how many are in each cell."""
        counts = np.moveaxis(counts, axis, 0)
        if self.is_category:
            counts = counts[1:] + counts[:-1]
        return np.moveaxis(counts, 0, axis)

    def by_place(self, counts: Floats, axis: int) -> Floats:
        """Return how many rows are at each place; of an interval half are at either end."""
        if self.is_category:
            return counts
        counts = np.moveaxis(counts, axis, 0)
        none = np.zeros_like(counts[:1])
        halves = (np.concatenate([none, counts]) + np.concatenate([counts, none])) / 2
        return np.moveaxis(halves, 0, axis)


def make_axis(view: TableView, rows: Rows, j: int, n_intervals: int, known: Rows) -> EffectAxis:
    """Find the places of column j, which has a value in all rows.

    The order of categories is that of all rows in which it is known: it does not depend on
    which other column the effects are asked for.
    """
    if not view.is_category(j):
        values = view.numbers(j)[rows]
        edges = _edges(values, n_intervals)
        at = _intervals(values, edges) if len(edges) > 1 else np.zeros(len(rows), dtype=np.intp)
        return EffectAxis(j, Grid(view.names[j], edges, False), edges, at, values)
    levels = view.levels(j)
    codes = levels.codes[known]
    present = np.unique(codes)
    order = present[order_categories(view, known, j, codes, present)]
    codes = levels.codes[rows]
    order = order[np.isin(order, codes)]
    place = np.full(len(levels.labels), -1)
    place[order] = np.arange(len(order))
    at = place[codes]
    grid = Grid(view.names[j], [levels.labels[level] for level in order], False)
    return EffectAxis(j, grid, levels.rows[order], at, at.astype(np.float64))


def _edges(values: Floats, n_intervals: int) -> Floats:
    """Ends of intervals with about as many rows each: values that occur."""
    edges = np.quantile(values, np.linspace(0, 1, n_intervals + 1), method="inverted_cdf")
    return np.unique(edges)


def _intervals(values: Floats, edges: Floats) -> Rows:
    """Return the interval of each value: (edge k, edge k + 1], the first one with both ends."""
    return np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
