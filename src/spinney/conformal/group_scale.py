"""Factors of categories by which errors are larger or smaller than on average.

Errors of a model may be twice as large for one category as for another. Intervals of the same
width would then cover one category too rarely and the other too often. Each category of each
column gets a factor: the mean absolute error of its rows divided by the overall mean, given the
factors of the other columns. The expected error of a row is proportional to the product of its
factors. Factors of categories with few rows are shrunk towards one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.table import Table

__all__ = ["GroupScale", "learn_group_scale"]

Floats = NDArray[np.float64]

# Shrinkage: number of additional rows with the mean error. It is smaller for categories with larger
# errors, because intervals that are too narrow are the worse mistake.
_PRIOR_ROWS, _PRIOR_ROWS_OF_LARGER = 50, 20
_SWEEPS = 2  # passes over the columns: the factors of a column depend on those of the others
_FOLDS = 5  # a row's own error must not influence its factor
_FEWEST = 100  # no factors are estimated from fewer rows


@dataclass(frozen=True)
class GroupScale:
    """Factors of categories.

    Parameters
    ----------
    columns : list of int
        Indexes of the categorical columns.
    factors : list of ndarray
        For each of these columns a factor for each code. The last factor is used for missing
        values (code -1) and unknown categories.
    """

    columns: list[int]
    factors: list[Floats]

    def of(self, table: Table) -> Floats:
        """Return the factor of each row: the product over its categories."""
        out = np.ones(table.n_rows)
        if table.columns is not None:
            for column, factors in zip(self.columns, self.factors, strict=True):
                out *= factors[table.columns[column]]
        return out


def learn_group_scale(table: Table, schema: Any, sizes: Floats) -> tuple[GroupScale, Floats] | None:
    """Return factors estimated from held-out rows, and their out-of-fold factors.

    Parameters
    ----------
    table : Table
        The held-out rows.
    schema : Schema
        The schema of the table.
    sizes : ndarray of shape (n_rows,)
        Absolute errors of these rows, divided by the model's own error scale if it has one.

    Returns
    -------
    (GroupScale, ndarray of shape (n_rows,)) or None
        The factors, and for each row its factor estimated from the other folds. None without
        categorical columns, with fewer than 100 rows, or if all errors are zero.
    """
    columns = [j for j, is_one in enumerate(schema.is_categorical) if is_one]
    if not columns or table.columns is None or table.n_rows < _FEWEST or not sizes.any():
        return None
    n_codes = [len(schema.categories[j]) + 1 for j in columns]
    codes = [
        np.where(table.columns[j] < 0, n - 1, table.columns[j])
        for j, n in zip(columns, n_codes, strict=True)
    ]
    fold = np.random.default_rng(0).permutation(table.n_rows) % _FOLDS
    own = np.ones(table.n_rows)
    for k in range(_FOLDS):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        factors = _factors([code[train] for code in codes], n_codes, sizes[train])
        for code, factor in zip(codes, factors, strict=True):
            own[test] *= factor[code[test]]
    return GroupScale(columns, _factors(codes, n_codes, sizes)), own


def _factors(codes: list[Any], n_codes: list[int], sizes: Floats) -> list[Floats]:
    factors = [np.ones(n) for n in n_codes]
    remaining = sizes.copy()  # sizes divided by the factors of all columns
    for _ in range(_SWEEPS):
        for j, (code, n) in enumerate(zip(codes, n_codes, strict=True)):
            remaining *= factors[j][code]
            usual = remaining.mean()
            if usual > 0:
                count = np.bincount(code, minlength=n)
                sums = np.bincount(code, remaining, n) / usual
                prior = np.where(sums > count, _PRIOR_ROWS_OF_LARGER, _PRIOR_ROWS)
                factors[j] = (sums + prior) / (count + prior)
            remaining /= factors[j][code]
    return factors
