"""Columns of many categories as numbers: ordered target statistics.

A category is replaced by the mean target of its rows, drawn towards the mean of all rows. Were a
row's own target part of it, a tree could read the target off; so the rows are put into a random
order, and each sees only those before it (Prokhorenkova et al. 2018). New rows see all. A second
column counts the rows of the category. Questions about such numbers are, in the finished tree,
questions about categories.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Statistic", "ordered_statistics"]

_DOUBT = 1.0  # rows' worth of the overall mean


@dataclass(frozen=True)
class Statistic:
    """A column made from one of categories.

    Parameters
    ----------
    source : int
        The column of categories.
    of_category : ndarray of shape (n_categories + 1,)
        Its number for each category and, last, for what is missing.
    of_row : ndarray of shape (n_rows,)
        Its number for each row of fit.
    """

    source: int
    of_category: NDArray[np.float64]
    of_row: NDArray[np.float64]

    def look_up(self, codes: Any) -> NDArray[np.float64]:
        """Give the numbers of other rows, whose missing categories have code -1."""
        return self.of_category[codes]


def ordered_statistics(
    source: int, codes: Any, n_categories: int, targets: Any, weights: Any, learned: Any, seed: int
) -> list[Statistic]:
    """Make the columns of one column of categories.

    Parameters
    ----------
    source : int
        Which column it is.
    codes : ndarray of int of shape (n_rows,)
        Categories; -1 is missing.
    n_categories : int
        How many there are.
    targets : ndarray of shape (n_rows, n_targets)
        What is averaged.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    learned : ndarray of int or None
        Rows that are learned from; the others are treated as new. None: all.
    seed : int
        Of the order.

    Returns
    -------
    list of Statistic
        One for each column of targets, and one that counts.
    """
    rows = np.arange(len(codes)) if learned is None else learned
    order = np.random.default_rng([seed, source]).permutation(rows)
    order = order[np.argsort(codes[order], kind="stable")]  # by category, at random within
    sorted_codes = codes[order]
    w = np.ones(len(order)) if weights is None else weights[order]
    first = np.flatnonzero(np.r_[True, np.diff(sorted_codes) != 0])
    group = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(order)]))
    made = []
    count = _before(w, first, group)
    total = np.zeros(n_categories + 1)
    total[sorted_codes[first]] = np.add.reduceat(w, first)
    for target in targets.T:
        y = target[order]
        mean = np.average(y, weights=w)
        seen = _before(w * y, first, group)
        sums = np.zeros(n_categories + 1)
        sums[sorted_codes[first]] = np.add.reduceat(w * y, first)
        of_category = (sums + _DOUBT * mean) / (total + _DOUBT)
        of_row = of_category[codes]
        of_row[order] = (seen + _DOUBT * mean) / (count + _DOUBT)
        made.append(Statistic(source, of_category, of_row))
    made.append(Statistic(source, total, total[codes]))
    return made


def _before(values: Any, first: Any, group: Any) -> Any:
    """Sum what stands before each value in its group."""
    sums = np.cumsum(values) - values
    return sums - sums[first][group]
