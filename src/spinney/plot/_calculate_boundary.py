"""Predictions of a model over a grid of one or two columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.inspection.table_view import TableView

__all__ = ["Boundary", "GridAxis", "calculate_boundary"]

Floats = NDArray[np.float64]
_MARGIN = 0.05  # margin around the rows, relative to their range


@dataclass(frozen=True)
class GridAxis:
    """One column of the grid.

    Attributes
    ----------
    name : str
        The column.
    steps : ndarray of shape (n_steps,)
        The grid values: numbers, or 0, 1, … for categories.
    labels : list of str or None
        The categories.
    rows : ndarray of shape (n_rows,)
        The values of the rows, NaN where missing.
    """

    name: str
    steps: Floats
    labels: list[str] | None
    rows: Floats


@dataclass(frozen=True)
class Boundary:
    """Predictions over a grid of two columns, or of one.

    Attributes
    ----------
    axes : list of GridAxis
        One column or two.
    classes : list of str or None
        The classes of a classifier.
    predicted : ndarray of shape (len(axes[1].steps), len(axes[0].steps)), or of one dimension
        The index of the predicted class, or the predicted value.
    probabilities : ndarray of shape (…, n_classes) or None
        Class probabilities, or None if the model has none.
    held : list of str
        The columns that are fixed at their median or most frequent category.
    """

    axes: list[GridAxis]
    classes: list[str] | None
    predicted: Floats
    probabilities: Floats | None
    held: list[str]


def calculate_boundary(model: Any, X: Any, *, features: Any = None, n_steps: int = 150) -> Boundary:
    """Predict over a grid of one or two columns."""
    check_is_fitted(model)
    view = TableView(X, model)
    columns = _find_columns(view, features)
    axes, changes = [], []
    for j in columns:
        axis, new = _axis(view, j, n_steps if len(columns) == 2 else 4 * n_steps)
        axes.append(axis)
        changes.append(new)
    shape = tuple(len(new) for new in reversed(changes))
    index = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    typical = _typical(view)
    filled = {j: np.full(len(index[0]), value) for j, value in typical.items()}
    for j, new, chosen in zip(columns, changes, reversed(index), strict=True):
        filled[j] = new[chosen]
    grid = view.make(np.zeros(len(index[0]), dtype=np.intp), filled)
    held = [name for j, name in enumerate(view.names) if j not in columns]
    predicted = np.asarray(model.predict(grid))
    if predicted.ndim > 1 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]
    if predicted.ndim > 1:
        raise ValueError(f"model: expected one output, got {predicted.shape[1]}")
    if not is_classifier(model):
        return Boundary(axes, None, predicted.astype(np.float64).reshape(shape), None, held)
    classes = np.asarray(model.classes_)
    probabilities = None
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(grid)).reshape(*shape, len(classes))
    codes = np.searchsorted(classes, predicted).astype(np.float64).reshape(shape)
    return Boundary(axes, [str(label) for label in classes], codes, probabilities, held)


def _find_columns(view: TableView, features: Any) -> list[int]:
    """Return the indices of the columns that are shown: by default, the first two."""
    if features is None:
        return list(range(min(view.n_columns, 2)))
    wanted = [features] if isinstance(features, str | int | np.integer) else list(features)
    if len(wanted) not in (1, 2):
        raise ValueError(f"features: expected one column or two, got {len(wanted)}")
    columns = [view.find(feature, "features") for feature in wanted]
    if len(set(columns)) < len(columns):
        raise ValueError(f"features: expected two different columns, got {wanted}")
    return columns


def _axis(view: TableView, j: int, n_steps: int) -> tuple[GridAxis, NDArray[Any]]:
    """Return an axis, and its grid values in the format of `TableView.make`."""
    if view.is_category(j):
        levels = view.levels(j)
        if not levels.labels:
            raise ValueError(f"features: expected a value in column {view.names[j]!r}, got none")
        rows = np.where(levels.codes < 0, np.nan, levels.codes)
        steps = np.arange(len(levels.labels), dtype=np.float64)
        return GridAxis(view.names[j], steps, levels.labels, rows), levels.rows
    rows = view.numbers(j)
    if np.isnan(rows).all():
        raise ValueError(f"features: expected a value in column {view.names[j]!r}, got none")
    low, high = float(np.nanmin(rows)), float(np.nanmax(rows))
    # Dividing first avoids an overflow: the range of huge values may exceed the largest float.
    margin = 2 * _MARGIN * (high / 2 - low / 2) or 0.5
    steps = np.linspace(low - margin, high + margin, n_steps)
    return GridAxis(view.names[j], steps, None, rows), steps


def _typical(view: TableView) -> dict[int, float | np.intp]:
    """Return medians of numeric columns, and rows with the modes of the others."""
    typical: dict[int, float | np.intp] = {}
    for j in range(view.n_columns):
        if view.is_category(j):
            levels = view.levels(j)
            # If all values are missing, any row is typical.
            typical[j] = levels.rows[np.argmax(levels.counts)] if levels.labels else np.intp(0)
        else:
            numbers = view.numbers(j)
            typical[j] = np.nan if np.isnan(numbers).all() else float(np.nanmedian(numbers))
    return typical
