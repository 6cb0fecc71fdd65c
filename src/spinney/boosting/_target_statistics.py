"""Ordered target statistics: numeric columns that replace categorical columns.

A category is replaced by the mean target of its rows, shrunk towards the mean of all rows. If a
row's own target were included, trees would overfit to it. So the training rows are put into a
random order, and the mean of a row includes only earlier rows (Prokhorenkova et al. 2018). The mean
of a new row includes all training rows. A second column has the number of rows of the category. In
the finished tree, splits on these columns become splits on categories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Statistic", "ordered_statistics"]

_PRIOR_ROWS = 1.0  # weight of the mean of all rows, in rows


@dataclass(frozen=True)
class Statistic:
    """A numeric column that replaces a categorical column.

    Parameters
    ----------
    source : int
        Index of the column of categories.
    of_category : ndarray of shape (n_categories + 1,)
        The value of each category and, last, of missing values.
    of_row : ndarray of shape (n_rows,)
        The value of each training row.
    """

    source: int
    of_category: NDArray[np.float64]
    of_row: NDArray[np.float64]

    def look_up(self, codes: Any) -> NDArray[np.float64]:
        """Return the values of other rows; code -1 is a missing category."""
        return self.of_category[codes]


def ordered_statistics(
    source: int,
    codes: Any,
    *,
    n_categories: int,
    targets: Any,
    weights: Any,
    train_rows: Any,
    seed: int,
) -> list[Statistic]:
    """Return the statistics of one categorical column.

    Parameters
    ----------
    source : int
        Index of the column.
    codes : ndarray of int of shape (n_rows,)
        Categories; -1 is missing.
    n_categories : int
        Number of categories.
    targets : ndarray of shape (n_rows, n_targets)
        The targets to average.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    train_rows : ndarray of int or None
        Training rows; the others are treated as new rows. None: all.
    seed : int
        Determines the order of the rows.

    Returns
    -------
    list of Statistic
        One for each column of targets, and the number of rows.
    """
    rows = np.arange(len(codes)) if train_rows is None else train_rows
    order = np.random.default_rng([seed, source]).permutation(rows)
    # Sort by category; the order within a category stays random.
    order = order[np.argsort(codes[order], kind="stable")]
    sorted_codes = codes[order]
    w = np.ones(len(order)) if weights is None else weights[order]
    first = np.flatnonzero(np.r_[True, np.diff(sorted_codes) != 0])
    group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(order)]))
    statistics = []
    count = _before(w, first, group)
    total = np.zeros(n_categories + 1)
    total[sorted_codes[first]] = np.add.reduceat(w, first)
    for target in targets.T:
        y = target[order]
        mean = np.average(y, weights=w)
        earlier = _before(w * y, first, group)
        sums = np.zeros(n_categories + 1)
        sums[sorted_codes[first]] = np.add.reduceat(w * y, first)
        of_category = (sums + _PRIOR_ROWS * mean) / (total + _PRIOR_ROWS)
        of_row = of_category[codes]
        of_row[order] = (earlier + _PRIOR_ROWS * mean) / (count + _PRIOR_ROWS)
        statistics.append(Statistic(source, of_category, of_row))
    statistics.append(Statistic(source, total, total[codes]))
    return statistics


def _before(values: Any, first: Any, group: Any) -> Any:
    """Return the sum of the earlier values in the group of each value."""
    sums = np.cumsum(values) - values
    return sums - sums[first][group]
