"""An order of categories in which neighbours have rows that are alike in their other columns."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spinney.inspection._table_view import TableView

__all__ = ["order_categories"]

Rows = NDArray[np.intp]
_QUANTILES = np.linspace(0, 1, 101)


def order_categories(view: TableView, rows: Rows, column: int, codes: Rows, present: Rows) -> Rows:
    """Return places of the categories `present`, ordered along one line.

    The distance of two categories is a sum over the other columns: the largest difference of their
    distribution functions, or half the sum of the differences of their shares of categories. The
    line is the first one of classical scaling (the way of Apley and Zhu, 2020), turned such that
    the more frequent of its two ends comes first.
    """
    n = len(present)
    if n <= 2:
        return np.arange(n)
    at = np.searchsorted(present, codes)
    distances = np.zeros((n, n))
    for j in range(view.n_columns):
        if j == column:
            continue
        shares = _shares(view, rows, j, at, n)
        if shares is None:
            continue
        apart = np.abs(shares[:, np.newaxis] - shares[np.newaxis])
        if view.is_category(j):
            distances += apart.sum(axis=2) / 2
        else:
            distances += apart.max(axis=2)
    if not distances.any():
        return np.arange(n)
    middle = np.eye(n) - 1 / n
    _, vectors = np.linalg.eigh(-0.5 * middle @ distances**2 @ middle)
    order = np.argsort(vectors[:, -1], kind="stable")
    counts = np.bincount(at, minlength=n)
    if (counts[order[-1]], -order[-1]) > (counts[order[0]], -order[0]):
        order = order[::-1]
    return order


def _shares(view: TableView, rows: Rows, j: int, at: Rows, n: int) -> NDArray[np.float64] | None:
    """Return for each category shares of categories, or distribution functions, of column j."""
    if view.is_category(j):
        other = view.levels(j).codes[rows]
        width = int(other.max(initial=-1)) + 1
        if width == 0:
            return None
        known = other >= 0
        table = np.bincount(at[known] * width + other[known], minlength=n * width)
        shares = table.reshape(n, width).astype(np.float64)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
    values = view.numbers(j)[rows]
    known = ~np.isnan(values)
    if not known.any():
        return None
    cuts = np.unique(np.quantile(values[known], _QUANTILES))
    functions = np.zeros((n, len(cuts)))
    for k in range(n):
        own = np.sort(values[known & (at == k)])
        if len(own):
            functions[k] = np.searchsorted(own, cuts, side="right") / len(own)
    return functions
