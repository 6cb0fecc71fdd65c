"""Partial dependence: the mean prediction when a column is set to one value in all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from spinney.plot._table_view import TableView

__all__ = ["Dependence", "Grid", "calculate_dependence"]

Floats = NDArray[np.float64]
MISSING = "missing"
_MOST_CATEGORIES = 20
_MOST_ACROSS = 20  # values of each of two columns
_ROWS_AT_ONCE = 50_000  # so that a grid of a large table stays small in memory


@dataclass(frozen=True)
class Grid:
    """The values that a column is set to.

    Attributes
    ----------
    name : str
        The column.
    values : ndarray of float or list of str
        Numbers, ascending, or categories (the most frequent ones, sorted).
    has_missing : bool
        Whether "missing" comes as one more value at the end.
    n_left_out : int
        How many categories are too rare to be shown.
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
    grids : list of Grid
        One or two columns.
    average : ndarray of shape (n_outputs, len(grid), …)
        The mean prediction over the rows for each value (pair of values).
    individual : ndarray of shape (n_outputs, n_rows, len(grid)) or None
        The predictions of each row, for one column.
    outputs : list of str
        What is predicted: classes, or the one word "prediction".
    is_probability : bool
        Whether predictions are probabilities of these classes.
    observed : list of ndarray
        The values of the columns in the rows: where there are data.
    """

    grids: list[Grid]
    average: Floats
    individual: Floats | None
    outputs: list[str]
    is_probability: bool
    observed: list[Floats]


def calculate_dependence(
    model: Any,
    X: Any,
    columns: Any,
    *,
    target: Any = None,
    n_values: int = 40,
    max_rows: int | None = 1000,
    random_state: Any = 0,
) -> Dependence:
    """Set one or two columns to each value of a grid, in all rows, and average the predictions."""
    check_is_fitted(model)
    view = TableView(X, model)
    wanted = list(columns) if isinstance(columns, tuple | list) else [columns]
    if len(wanted) not in (1, 2):
        raise ValueError(f"columns: expected one column or two, got {len(wanted)}")
    places = [view.find(column, "columns") for column in wanted]
    if len(set(places)) < len(places):
        raise ValueError(f"columns: expected two different ones, got {wanted}")
    if n_values < 2:
        raise ValueError(f"n_values: expected 2 or more, got {n_values}")

    rows = np.arange(view.n_rows)
    if max_rows is not None and view.n_rows > max_rows:
        drawn = check_random_state(random_state).choice(view.n_rows, max_rows, replace=False)
        rows = np.sort(drawn)
    n_values = n_values if len(places) == 1 else min(n_values, _MOST_ACROSS)
    settings = [_setting(view, j, n_values) for j in places]
    predict, outputs, is_probability = _prediction(model, target)

    sizes = [len(grid) for grid, _ in settings]
    pairs = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes))
    told = np.empty((len(outputs), pairs.shape[1], len(rows)))
    at_once = max(1, _ROWS_AT_ONCE // len(rows))
    for first in range(0, pairs.shape[1], at_once):
        some = pairs[:, first : first + at_once]
        changes = {
            j: np.repeat(new[chosen], len(rows))
            for j, (_, new), chosen in zip(places, settings, some, strict=True)
        }
        predicted = predict(view.make(np.tile(rows, some.shape[1]), changes))
        told[:, first : first + at_once] = predicted.reshape(len(outputs), -1, len(rows))
    told = told.reshape(len(outputs), *sizes, len(rows))
    individual = np.moveaxis(told, -1, 1) if len(places) == 1 else None
    observed = [_observed(view, j)[rows] for j in places]
    return Dependence(
        [grid for grid, _ in settings],
        told.mean(axis=-1),
        individual,
        outputs,
        is_probability,
        observed,
    )


def _setting(view: TableView, j: int, n_values: int) -> tuple[Grid, NDArray[Any]]:
    """Return the grid of a column, and what `TableView.make` needs to set each value."""
    missing = view.missing_rows(j)
    if len(missing) == view.n_rows:
        raise ValueError(f"columns: expected a value in column {view.names[j]!r}, all are missing")
    if view.is_category(j):
        levels = view.levels(j)
        kept = np.sort(np.argsort(-levels.counts, kind="stable")[:_MOST_CATEGORIES])
        grid = Grid(
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
        # The middle nine tenths: beyond are too few rows to say much.
        low, high = np.quantile(values, [0.05, 0.95])
        if low == high:
            low, high = distinct[0], distinct[-1]
        distinct = np.linspace(low, high, n_values)
    grid = Grid(view.names[j], distinct, len(missing) > 0)
    return grid, np.concatenate([distinct, np.full(int(grid.has_missing), np.nan)])


def _observed(view: TableView, j: int) -> Floats:
    return view.levels(j).codes.astype(np.float64) if view.is_category(j) else view.numbers(j)


def _prediction(model: Any, target: Any) -> tuple[Any, list[str], bool]:
    """Return a function from X to (n_outputs, n_rows), the outputs, and if these are shares."""
    if not is_classifier(model):
        if target is not None:
            raise ValueError(f"target: expected None for a regressor, got {target!r}")

        def values(X: Any) -> Any:
            told = np.asarray(model.predict(X), dtype=np.float64)
            if told.ndim > 1 and told.shape[1] > 1:
                raise ValueError(f"model: expected one output, got {told.shape[1]}")
            return told.reshape(1, -1)

        return values, ["prediction"], False

    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model: expected a classifier with predict_proba, got {type(model).__name__}"
        )
    if isinstance(model.classes_, list):
        raise ValueError(f"model: expected one output, got {len(model.classes_)}")
    classes = list(model.classes_)
    if target is not None:
        if target not in classes:
            shown = ", ".join(repr(one) for one in np.asarray(classes)[:8].tolist())
            raise ValueError(f"target: expected a class of the model ({shown}), got {target!r}")
        picked = [classes.index(target)]
    else:
        picked = [1] if len(classes) == 2 else list(range(len(classes)))

    def shares(X: Any) -> Any:
        return np.asarray(model.predict_proba(X)).T[picked]

    return shares, [str(classes[place]) for place in picked], True
