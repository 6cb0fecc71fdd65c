"""A column along which effects are accumulated: its grid, and the rows' cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.inspection._category_order import order_categories
from spinney.inspection.dependence import EffectGrid
from spinney.inspection.table_view import TableView

__all__ = ["EffectAxis", "make_axis"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class EffectAxis:
    """Grid points of a column, the steps between them, and the cells of the rows.

    In a numeric column, the points are the ends of intervals, and the intervals are the cells: a
    row takes part in the step across its interval. In a column of categories, the categories are
    both points and cells: a row takes part in the steps to both neighbours of its category.

    Attributes
    ----------
    column : int
        The column.
    grid : EffectGrid
        Its grid points.
    settings : ndarray
        The values that set the column to each point, in the format of `TableView.make`.
    at : ndarray of shape (n_rows,)
        The cell of each row.
    observed : ndarray of shape (n_rows,)
        The values of the rows, or the positions of their categories in the grid.
    """

    column: int
    grid: EffectGrid
    settings: NDArray[Any]
    at: Rows
    observed: Floats

    @property
    def is_category(self) -> bool:
        """Whether the grid points are categories."""
        return self.grid.is_category

    @property
    def n_points(self) -> int:
        """The number of grid points: one more than steps."""
        return len(self.grid)

    @property
    def n_cells(self) -> int:
        """The number of cells; a constant column has one."""
        return self.n_points if self.is_category else max(self.n_points - 1, 1)

    def steps(self) -> list[tuple[Rows, Rows]]:
        """Return pairs (rows, step of each row); a row occurs at most once in a pair."""
        if not self.is_category:
            return [(np.arange(len(self.at)), self.at)]
        up, down = np.flatnonzero(self.at < self.n_points - 1), np.flatnonzero(self.at > 0)
        return [(up, self.at[up]), (down, self.at[down] - 1)]

    def per_step(self, counts: Floats, axis: int) -> Floats:
        """Convert row counts per cell to row counts per step."""
        counts = np.moveaxis(counts, axis, 0)
        if self.is_category:
            counts = counts[1:] + counts[:-1]
        return np.moveaxis(counts, 0, axis)

    def per_point(self, counts: Floats, axis: int) -> Floats:
        """Convert row counts per cell to counts per point (half to each end)."""
        if self.is_category:
            return counts
        counts = np.moveaxis(counts, axis, 0)
        none = np.zeros_like(counts[:1])
        halves = (np.concatenate([none, counts]) + np.concatenate([counts, none])) / 2
        return np.moveaxis(halves, 0, axis)


def make_axis(view: TableView, rows: Rows, j: int, n_intervals: int, known: Rows) -> EffectAxis:
    """Return the axis of column j, which must have a value in all of `rows`.

    The rows `known`, all in which the column has a value, determine the order of categories. So
    the order does not depend on the second column of a pair.
    """
    if not view.is_category(j):
        values = view.numbers(j)[rows]
        edges = _edges(values, n_intervals)
        at = _intervals(values, edges) if len(edges) > 1 else np.zeros(len(rows), dtype=np.intp)
        return EffectAxis(j, EffectGrid(view.names[j], edges, False), edges, at, values)
    levels = view.levels(j)
    codes = levels.codes[known]
    present = np.unique(codes)
    order = present[order_categories(view, known, j, codes, present)]
    codes = levels.codes[rows]
    order = order[np.isin(order, codes)]
    rank = np.full(len(levels.labels), -1)
    rank[order] = np.arange(len(order))
    at = rank[codes]
    grid = EffectGrid(view.names[j], [levels.labels[level] for level in order], False)
    return EffectAxis(j, grid, levels.rows[order], at, at.astype(np.float64))


def _edges(values: Floats, n_intervals: int) -> Floats:
    """Return ends of intervals of similar row counts; all ends are observed values."""
    edges = np.quantile(values, np.linspace(0, 1, n_intervals + 1), method="inverted_cdf")
    return np.unique(edges)


def _intervals(values: Floats, edges: Floats) -> Rows:
    """Return the interval of each value: (edge k, edge k + 1]; the first is closed."""
    return np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)
