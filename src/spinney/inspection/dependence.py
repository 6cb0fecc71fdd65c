"""Partial dependence: mean predictions with a column set to values of a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._predictor import Predictor
from spinney.inspection.table_view import TableView

__all__ = [
    "MISSING",
    "Dependence",
    "EffectGrid",
    "find_columns",
    "partial_dependence",
    "sample_rows",
]

Floats = NDArray[np.float64]
MISSING = "missing"
_MOST_CATEGORIES = 20
_MOST_ACROSS = 20  # maximum grid size of each of two columns


@dataclass(frozen=True)
class EffectGrid:
    """The values that a column is set to.

    Attributes
    ----------
    name : str
        The column.
    values : ndarray of float or list of str
        Numbers, ascending, or categories (the most frequent ones, sorted).
    has_missing : bool
        Whether "missing" is one more value at the end.
    n_left_out : int
        The number of categories that are omitted because they are rare.
    """

    name: str
    values: Floats | list[str]
    has_missing: bool
    n_left_out: int = 0

    @property
    def is_category(self) -> bool:
        """Whether the values are categories."""
        return isinstance(self.values, list)

    def __len__(self) -> int:
        return len(self.values) + self.has_missing


@dataclass(frozen=True)
class Dependence:
    """Mean predictions over a grid.

    Attributes
    ----------
    grids : list of EffectGrid
        One or two columns.
    average : ndarray of shape (n_outputs, len(grid), …)
        The mean prediction over the rows for each value (pair of values).
    individual : ndarray of shape (n_outputs, n_rows, len(grid), …) or None
        The predictions of each row.
    outputs : list of str
        Names of the outputs: classes, or "prediction" for a regressor.
    is_probability : bool
        Whether predictions are probabilities of these classes.
    observed : list of ndarray
        The values of the columns in the rows: the distribution of the data.
    """

    grids: list[EffectGrid]
    average: Floats
    individual: Floats | None
    outputs: list[str]
    is_probability: bool
    observed: list[Floats]

    def centred(self) -> Dependence:
        """Return a copy in which every curve is zero at the first value of the grid.

        Curves of single rows that diverge from there show an interaction of the column with others.
        """
        first = (slice(None), *(slice(0, 1) for _ in self.grids))
        average = self.average - self.average[first]
        individual = self.individual
        if individual is not None:
            individual = individual - individual[(slice(None), *first)]
        return replace(self, average=average, individual=individual)


def partial_dependence(
    model: Any,
    X: Any,
    columns: Any,
    *,
    target: Any = None,
    values: Any = None,
    n_values: int = 40,
    individual: bool = False,
    max_rows: int | None = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Dependence:
    """Return mean predictions with one or two columns set to values of a grid.

    For trees, forests, bagging and boosting, the core evaluates all values in one pass of each row
    through each tree. Up to rounding, the result is that of predicting one table per value.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
    target : object, default=None
        The class whose probability is explained. None: the second of two, or all if there are more.
    values : array-like, or pair of them, default=None
        The grid: numbers, or categories of the column; one grid for each of the columns. None: the
        distinct values, or `n_values` values between the 5 % and 95 % quantiles; the 20 most
        frequent categories; and "missing" if the column has missing values.
    n_values : int, default=40
        The grid size of a numeric column (at most 20 for each of two columns).
    individual : bool, default=False
        Whether to return the predictions of each row, too.
    max_rows : int or None, default=10_000
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of that sample.
    n_jobs : int or None, default=None
        The number of threads; it does not change the result.

    Returns
    -------
    Dependence
        The grid and the mean predictions.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import RandomForestRegressor
    >>> from spinney.inspection import partial_dependence
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(random_state=0).fit(X, y)
    >>> dependence = partial_dependence(forest, X, "bmi", values=[-0.05, 0.0, 0.05])
    >>> dependence.average[0].round(0).tolist()
    [129.0, 142.0, 177.0]
    """
    check_is_fitted(model)
    view = TableView(X, model)
    indices = find_columns(view, columns)
    if n_values < 2:
        raise ValueError(f"n_values: expected 2 or more, got {n_values}")
    rows = sample_rows(view.n_rows, max_rows, random_state)
    n_values = n_values if len(indices) == 1 else min(n_values, _MOST_ACROSS)
    if values is None:
        settings = [_default_grid(view, j, n_values) for j in indices]
    else:
        given = [values] if len(indices) == 1 else list(values)
        if len(given) != len(indices):
            raise ValueError(f"values: expected {len(indices)} grids, got {len(given)}")
        settings = [_requested_grid(view, j, some) for j, some in zip(indices, given, strict=True)]
    predictor = Predictor(model, view, target, n_jobs)
    sizes = [len(grid) for grid, _ in settings]
    pairs = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes))
    changes = {j: new[chosen] for j, (_, new), chosen in zip(indices, settings, pairs, strict=True)}
    each = None
    if individual:
        each = predictor.each(rows, changes)
        average = each.mean(axis=1)
        each = each.reshape(*each.shape[:2], *sizes)
    else:
        average = predictor.average(rows, changes)
    return Dependence(
        [grid for grid, _ in settings],
        average.reshape(len(predictor.outputs), *sizes),
        each,
        predictor.outputs,
        predictor.is_probability,
        [_observed(view, j)[rows] for j in indices],
    )


def find_columns(view: TableView, columns: Any) -> list[int]:
    """Return the indices of one column or two."""
    wanted = list(columns) if isinstance(columns, tuple | list) else [columns]
    if len(wanted) not in (1, 2):
        raise ValueError(f"columns: expected one column or two, got {len(wanted)}")
    indices = [view.find(column, "columns") for column in wanted]
    if len(set(indices)) < len(indices):
        raise ValueError(f"columns: expected two different columns, got {wanted}")
    return indices


def sample_rows(n_rows: int, max_rows: int | None, random_state: Any) -> NDArray[np.intp]:
    """Return the numbers of all rows, or of a random sample of `max_rows` rows."""
    if max_rows is not None and max_rows < 1:
        raise ValueError(f"max_rows: expected a positive number or None, got {max_rows}")
    if max_rows is None or n_rows <= max_rows:
        return np.arange(n_rows)
    return np.sort(check_random_state(random_state).choice(n_rows, max_rows, replace=False))


def _requested_grid(view: TableView, j: int, values: Any) -> tuple[EffectGrid, NDArray[Any]]:
    """Return a grid of the values that the caller requests, and how to set them."""
    if view.is_category(j):
        levels = view.levels(j)
        labels = [str(value) for value in values]
        unknown = [label for label in labels if label not in levels.labels]
        if unknown or not labels:
            raise ValueError(
                f"values: expected categories of column {view.names[j]!r} in X, got {unknown}"
            )
        rows = levels.rows[[levels.labels.index(label) for label in labels]]
        return EffectGrid(view.names[j], labels, False), rows
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"values: expected numbers for column {view.names[j]!r}, got {values!r}"
        ) from None
    if numbers.ndim != 1 or len(numbers) == 0 or not np.isfinite(numbers).all():
        raise ValueError(f"values: expected finite numbers in a list, got {values!r}")
    return EffectGrid(view.names[j], numbers, False), numbers


def _default_grid(view: TableView, j: int, n_values: int) -> tuple[EffectGrid, NDArray[Any]]:
    """Return the default grid of a column, and its values for `TableView.make`."""
    missing = view.missing_rows(j)
    if len(missing) == view.n_rows:
        raise ValueError(
            f"columns: expected a value in column {view.names[j]!r}, got only missing values"
        )
    if view.is_category(j):
        levels = view.levels(j)
        kept = np.sort(np.argsort(-levels.counts, kind="stable")[:_MOST_CATEGORIES])
        grid = EffectGrid(
            view.names[j],
            [levels.labels[level] for level in kept],
            len(missing) > 0,
            len(levels.labels) - len(kept),
        )
        return grid, np.concatenate([levels.rows[kept], missing[:1]])
    values = view.numbers(j)
    values = values[~np.isnan(values)]
    distinct = np.unique(values)
    if len(distinct) > n_values:
        # Only the range from the 5 % to the 95 % quantile: too few rows lie outside.
        low, high = np.quantile(values, [0.05, 0.95])
        if low == high:
            low, high = distinct[0], distinct[-1]
        distinct = np.linspace(low, high, n_values)
    grid = EffectGrid(view.names[j], distinct, len(missing) > 0)
    return grid, np.concatenate([distinct, np.full(int(grid.has_missing), np.nan)])


def _observed(view: TableView, j: int) -> Floats:
    return view.levels(j).codes.astype(np.float64) if view.is_category(j) else view.numbers(j)
