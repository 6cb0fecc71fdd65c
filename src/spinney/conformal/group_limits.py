"""Higher limits of prediction sets for categories that they cover too rarely.

Prediction sets reach the requested coverage on average over all rows, but some categories can get
less. Example: a class is rare except in one category. The most probable class alone can then be
right in nine of ten rows, and in half of that category's rows. Such a category, of any column,
gets a higher limit. Its sets then miss at most 1.6 times the share of held-out rows that may be
missed over all rows. Limits are only raised, so that the coverage over all rows is still
guaranteed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.table import Schema, Table

__all__ = ["RowCategories", "categories_of", "raised_limits"]

Floats = NDArray[np.float64]

# Shrinkage: each category gets this many additional rows that have the requested coverage.
_PRIOR_ROWS = 10
_FEWEST = 10  # a category with fewer held-out rows keeps the common limit
_ALSO_MISSED = 0.6  # additional misses in a category, as a share of 1 - coverage
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RowCategories:
    """The categories of rows.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_columns)
        Codes of the categorical columns only, in the order of the table. The last code of a
        column stands for missing values and unknown categories.
    """

    codes: NDArray[Any]

    def take(self, chosen: Any) -> RowCategories:
        """Return the categories of a selection of rows."""
        return RowCategories(self.codes[chosen])


def categories_of(table: Table, schema: Schema) -> RowCategories | None:
    """Return the categories of a table's rows, or None without categorical columns."""
    if table.columns is None or not schema.has_categories:
        return None
    named = [
        (column, len(known))
        for column, known in zip(table.columns, schema.categories, strict=True)
        if known is not None
    ]
    widest = max(n for _, n in named)
    codes = np.empty((table.n_rows, len(named)), dtype=np.min_scalar_type(widest))
    for index, (column, n) in enumerate(named):
        codes[:, index] = np.where((column < 0) | (column > n), n, column)
    return RowCategories(codes)


def raised_limits(
    own: Floats,
    limit: float,
    coverage: float,
    *,
    weights: Floats | None,
    held: RowCategories,
    new: RowCategories,
) -> Floats:
    """Return the limits of new rows.

    Parameters
    ----------
    own : ndarray of shape (n_rows,)
        Scores of the true classes of the held-out rows.
    limit : float
        The common limit.
    coverage : float
        The requested coverage, between 0 and 1.
    weights : ndarray of shape (n_rows,) or None
        Weights of the held-out rows.
    held, new : RowCategories
        The categories of the held-out rows and of the new rows, with the same columns.

    Returns
    -------
    ndarray of shape (n_new, 1)
        For each new row the largest of the common limit and the limits of its categories.
    """
    limits = np.full((len(new.codes), 1), limit)
    if held.codes.shape[1:] != new.codes.shape[1:] or len(held.codes) != len(own):
        raise ValueError("held-out rows and new rows must have the same categorical columns")
    for column, code, raised in _raises(own, limit, coverage, weights, held.codes):
        in_category = new.codes[:, column] == code
        limits[in_category] = np.maximum(limits[in_category], raised)
    return limits


def _raises(
    own: Floats, limit: float, coverage: float, weights: Floats | None, codes: NDArray[Any]
) -> list[tuple[int, Any, float]]:
    """Return (column, code, limit) of categories to raise, the least covered first."""
    floor = coverage - _ALSO_MISSED * (1 - coverage)
    counted = np.ones(len(own)) if weights is None else weights / weights.mean()
    covered = own <= limit
    # Number the categories that occur consecutively over all columns.
    indexes: list[NDArray[np.intp]] = []
    known: list[tuple[int, Any]] = []
    for column in range(codes.shape[1]):
        present_codes, index = np.unique(codes[:, column], return_inverse=True)
        indexes.append(index + len(known))
        known += [(column, code) for code in present_codes]
    if not known:
        return []
    indexes_of = np.column_stack(indexes)
    n_rows = np.bincount(indexes_of.ravel(), minlength=len(known))
    size, inside = np.zeros(len(known)), np.zeros(len(known))
    for index in indexes:
        size += np.bincount(index, counted, len(known))
        inside += np.bincount(index, counted * covered, len(known))
    missing = floor * (size + 1 + _PRIOR_ROWS) - _PRIOR_ROWS * coverage - inside
    missing[n_rows < _FEWEST] = -np.inf
    raises = []
    while (missing > _ROUNDING).any():
        worst = int(missing.argmax())
        column, code = known[worst]
        rows = np.flatnonzero((indexes_of[:, column] == worst) & ~covered)
        rows = rows[np.argsort(own[rows], kind="stable")]
        n_needed = int(np.searchsorted(np.cumsum(counted[rows]), missing[worst] - _ROUNDING))
        raised = own[rows[min(n_needed, len(rows) - 1)]] if len(rows) else limit
        added = rows[own[rows] <= raised]
        covered[added] = True
        for other in range(indexes_of.shape[1]):
            missing -= np.bincount(indexes_of[added, other], counted[added], len(known))
        missing[worst] = -np.inf
        raises.append((column, code, float(raised)))
    return raises
