"""How much larger errors are for some categories than for others.

Errors of the same model may be twice as large for one category as for another: intervals that do
not know it hold too little of the one and too much of the other. Each column gets a factor for each
category, the mean size of the errors there over the usual one, given the factors of all other
columns; a row's errors are expected to be as large as the product of its factors says. Categories
with few rows stay near one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.table import Table

__all__ = ["GroupScale", "learn_group_scale"]

Floats = NDArray[np.float64]

# Rows of the usual error that each category has beside its own: fewer where its errors are larger,
# as falling short there is the worse mistake.
_PRIOR_ROWS, _PRIOR_ROWS_OF_LARGER = 50, 20
_SWEEPS = 2  # over the columns, as one column's factors change what is left for others
_FOLDS = 5  # so that no row's error decides its own factor
_FEWEST = 100  # rows, below which nothing is learned


@dataclass(frozen=True)
class GroupScale:
    """Factors of categories.

    Parameters
    ----------
    columns : list of int
        Which columns are categorical.
    factors : list of ndarray
        For each of these a factor for each code; the last is that of missing values, which have
        the code -1, and of categories that were not seen.
    """

    columns: list[int]
    factors: list[Floats]

    def of(self, table: Table) -> Floats:
        """Return what the errors of rows are to be multiplied by."""
        out = np.ones(table.n_rows)
        if table.columns is not None:
            for column, factors in zip(self.columns, self.factors, strict=True):
                out *= factors[table.columns[column]]
        return out


def learn_group_scale(table: Table, schema: Any, sizes: Floats) -> tuple[GroupScale, Floats] | None:
    """Learn factors, and say for each row what it would be without that row's own error.

    Parameters
    ----------
    table : Table
        Rows that a model did not learn from.
    schema : Schema
        Of their columns.
    sizes : ndarray of shape (n_rows,)
        Sizes of their errors, in the model's own units where it has some.

    Returns
    -------
    (GroupScale, ndarray of shape (n_rows,)) or None
        The factors, and those of the rows themselves, by other folds; None if there is nothing to
        learn.
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
        learned, asked = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        factors = _factors([code[learned] for code in codes], n_codes, sizes[learned])
        for code, factor in zip(codes, factors, strict=True):
            own[asked] *= factor[code[asked]]
    return GroupScale(columns, _factors(codes, n_codes, sizes)), own


def _factors(codes: list[Any], n_codes: list[int], sizes: Floats) -> list[Floats]:
    factors = [np.ones(n) for n in n_codes]
    left = sizes.copy()  # what all factors together leave of the sizes
    for _ in range(_SWEEPS):
        for j, (code, n) in enumerate(zip(codes, n_codes, strict=True)):
            left *= factors[j][code]
            usual = left.mean()
            if usual > 0:
                count = np.bincount(code, minlength=n)
                sums = np.bincount(code, left, n) / usual
                prior = np.where(sums > count, _PRIOR_ROWS_OF_LARGER, _PRIOR_ROWS)
                factors[j] = (sums + prior) / (count + prior)
            left /= factors[j][code]
    return factors
