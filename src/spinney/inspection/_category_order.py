"""An order of categories that puts similar categories next to each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from spinney.inspection.table_view import TableView

__all__ = ["order_categories"]

Rows = NDArray[np.intp]
_QUANTILES = np.linspace(0, 1, 101)
_LANDMARKS = 200  # categories used for classical scaling; the others are projected on the line
_SHARES = 100  # most frequent categories of another column that are counted; the rest are merged


def order_categories(view: TableView, rows: Rows, column: int, codes: Rows, present: Rows) -> Rows:
    """Return indices into `present` that order the categories along one line.

    The distance of two categories is a sum over the other columns. A numeric column adds the
    largest difference of their distribution functions; a column of categories adds half the sum of
    the differences of their relative frequencies. The line is the first dimension of classical
    scaling (Apley and Zhu, 2020); the more frequent of its two ends comes first. With more than
    200 categories, the 200 most frequent define the line. The others are placed by their distances
    from these (landmark scaling, de Silva and Tenenbaum, 2004).
    """
    n = len(present)
    if n <= 2:
        return np.arange(n)
    at = np.searchsorted(present, codes)
    counts = np.bincount(at, minlength=n)
    landmarks = np.sort(np.argsort(-counts, kind="stable")[:_LANDMARKS])
    distances = np.zeros((n, len(landmarks)))
    for j in range(view.n_columns):
        if j == column:
            continue
        shares = _shares(view, rows, j, at, n)
        if shares is None:
            continue
        if view.is_category(j):
            distances += cdist(shares, shares[landmarks], "cityblock") / 2
        else:
            distances += cdist(shares, shares[landmarks], "chebyshev")
    if not distances.any():
        return np.arange(n)
    order = np.argsort(_line(distances, landmarks), kind="stable")
    if (counts[order[-1]], -order[-1]) > (counts[order[0]], -order[0]):
        order = order[::-1]
    return order


def _line(distances: NDArray[np.float64], landmarks: Rows) -> NDArray[np.float64]:
    """Return the coordinate of each category on the line, from its landmark distances."""
    m = len(landmarks)
    squares = distances**2
    middle = np.eye(m) - 1 / m
    values, vectors = np.linalg.eigh(-0.5 * middle @ squares[landmarks] @ middle)
    line = vectors[:, -1]
    if m == len(distances) or values[-1] <= 0:
        return np.asarray(line if m == len(distances) else np.zeros(len(distances)))
    return (squares[landmarks].mean(axis=0) - squares) @ (line / (2 * values[-1]))


def _shares(view: TableView, rows: Rows, j: int, at: Rows, n: int) -> NDArray[np.float64] | None:
    """Return the distribution of column j in each category: frequencies, or the CDF."""
    if view.is_category(j):
        other = view.levels(j).codes[rows]
        known = other >= 0
        if not known.any():
            return None
        of_other = np.bincount(other[known])
        column_of = np.full(len(of_other), _SHARES)
        common = np.sort(np.argsort(-of_other, kind="stable")[:_SHARES])
        column_of[common] = np.arange(len(common))
        width = min(len(of_other), _SHARES + 1)
        table = np.bincount(at[known] * width + column_of[other[known]], minlength=n * width)
        shares = table.reshape(n, width).astype(np.float64)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1)
    values = view.numbers(j)[rows]
    known = ~np.isnan(values)
    if not known.any():
        return None
    cuts = np.unique(np.quantile(values[known], _QUANTILES))
    width = len(cuts)  # no value is above the last one
    bins = np.searchsorted(cuts, values[known], side="left")
    table = np.bincount(at[known] * width + bins, minlength=n * width).reshape(n, width)
    return table.cumsum(axis=1) / np.maximum(table.sum(axis=1, keepdims=True), 1)
