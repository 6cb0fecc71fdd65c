"""Higher limits for categories whose rows the common limit of sets would let down.

Sets of classes hold the truth as often as asked over all rows, and may do so at the expense of
some: where one class is rare but for one category, the likeliest class alone can be right in nine
rows of ten and in half of that category's. Here such categories, of any column, get a limit of
their own, at which at most three fifths more of their rows held out are missed than was asked for.
Limits are only raised, so that what the common one promises stays true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.table import Schema, Table

__all__ = ["RowCategories", "categories_of", "raised_limits"]

Floats = NDArray[np.float64]

# Rows held as often as asked that each category has beside its own, so that few rows say little;
# and the fewest that say anything.
_PRIOR_ROWS = 10
_FEWEST = 10
_ALSO_MISSED = 0.6  # of what may be missed over all rows, within a category
_ROUNDING = 1e-9


@dataclass(frozen=True)
class RowCategories:
    """The categories of rows.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_columns)
        Of the columns of categories alone, in the order of the table; the last code of a column
        is that of missing values and of categories that fit did not see.
    """

    codes: NDArray[Any]

    def take(self, chosen: Any) -> RowCategories:
        """Return those of some of the rows."""
        return RowCategories(self.codes[chosen])


def categories_of(table: Table, schema: Schema) -> RowCategories | None:
    """Return the categories of a table's rows; None if it has no column of them."""
    if table.columns is None or not schema.has_categories:
        return None
    named = [
        (column, len(known))
        for column, known in zip(table.columns, schema.categories, strict=True)
        if known is not None
    ]
    widest = max(n for _, n in named)
    codes = np.empty((table.n_rows, len(named)), dtype=np.min_scalar_type(widest))
    for place, (column, n) in enumerate(named):
        codes[:, place] = np.where((column < 0) | (column > n), n, column)
    return RowCategories(codes)


def raised_limits(
    own: Floats,
    limit: float,
    coverage: float,
    weights: Floats | None,
    held: RowCategories,
    asked: RowCategories,
) -> Floats:
    """Return the limits of new rows.

    Parameters
    ----------
    own : ndarray of shape (n_rows,)
        Scores of the right classes of rows held out.
    limit : float
        The limit of all rows.
    coverage : float
        What was asked for, between 0 and 1.
    weights : ndarray of shape (n_rows,) or None
        What rows held out count.
    held, asked : RowCategories
        The categories of rows held out and of new rows, by the same columns.

    Returns
    -------
    ndarray of shape (n_asked, 1)
        For each row the largest of the common limit and those of its categories.
    """
    limits = np.full((len(asked.codes), 1), limit)
    if held.codes.shape[1:] != asked.codes.shape[1:] or len(held.codes) != len(own):
        raise ValueError("rows held out and new rows have not the same columns of categories")
    for column, code, raised in _raises(own, limit, coverage, weights, held.codes):
        mine = asked.codes[:, column] == code
        limits[mine] = np.maximum(limits[mine], raised)
    return limits


def _raises(
    own: Floats, limit: float, coverage: float, weights: Floats | None, codes: NDArray[Any]
) -> list[tuple[int, Any, float]]:
    """Return which categories need more, as (column, code, limit), those that need most first."""
    floor = coverage - _ALSO_MISSED * (1 - coverage)
    counted = np.ones(len(own)) if weights is None else weights / weights.mean()
    covered = own <= limit
    # Categories that occur are numbered through all columns.
    places: list[NDArray[np.intp]] = []
    known: list[tuple[int, Any]] = []
    for column in range(codes.shape[1]):
        codes_there, place = np.unique(codes[:, column], return_inverse=True)
        places.append(place + len(known))
        known += [(column, code) for code in codes_there]
    if not known:
        return []
    place_of = np.column_stack(places)
    n_rows = np.bincount(place_of.ravel(), minlength=len(known))
    size, inside = np.zeros(len(known)), np.zeros(len(known))
    for place in places:
        size += np.bincount(place, counted, len(known))
        inside += np.bincount(place, counted * covered, len(known))
    missing = floor * (size + 1 + _PRIOR_ROWS) - _PRIOR_ROWS * coverage - inside
    missing[n_rows < _FEWEST] = -np.inf
    raises = []
    while (missing > _ROUNDING).any():
        worst = int(missing.argmax())
        column, code = known[worst]
        rows = np.flatnonzero((place_of[:, column] == worst) & ~covered)
        rows = rows[np.argsort(own[rows], kind="stable")]
        needed = int(np.searchsorted(np.cumsum(counted[rows]), missing[worst] - _ROUNDING))
        raised = own[rows[min(needed, len(rows) - 1)]] if len(rows) else limit
        new = rows[own[rows] <= raised]
        covered[new] = True
        for other in range(place_of.shape[1]):
            missing -= np.bincount(place_of[new, other], counted[new], len(known))
        missing[worst] = -np.inf
        raises.append((column, code, float(raised)))
    return raises
