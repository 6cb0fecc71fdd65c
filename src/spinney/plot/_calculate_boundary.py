"""What a model predicts over a plane of two columns (or along one), the others held fixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.inspection.table_view import TableView

__all__ = ["Axis", "Boundary", "calculate_boundary"]

Floats = NDArray[np.float64]
_MARGIN = 0.05  # beyond the rows, in units of their range


@dataclass(frozen=True)
class Axis:
    """One column of the plane.

    Attributes
    ----------
    name : str
        The column.
    places : ndarray of shape (n_steps,)
        Numbers, or 0, 1, … for categories.
    labels : list of str or None
        The categories.
    rows : ndarray of shape (n_rows,)
        Where the rows are, NaN where the column is missing.
    """

    name: str
    places: Floats
    labels: list[str] | None
    rows: Floats


@dataclass(frozen=True)
class Boundary:
    """Predictions over a plane (or a line).

    Attributes
    ----------
    axes : list of Axis
        One column or two.
    classes : list of str or None
        The classes of a classifier.
    told : ndarray of shape (len(axes[1].places), len(axes[0].places)), or of one dimension
        The predicted class as a number, or the predicted value.
    chances : ndarray of shape (…, n_classes) or None
        Probabilities, where the model has them.
    held : list of str
        The columns that are held at their median or most frequent category.
    """

    axes: list[Axis]
    classes: list[str] | None
    told: Floats
    chances: Floats | None
    held: list[str]


def calculate_boundary(model: Any, X: Any, *, features: Any = None, n_steps: int = 150) -> Boundary:
    """Predict over a grid of one or two columns."""
    check_is_fitted(model)
    view = TableView(X, model)
    places = _places(view, features)
    axes, changes = [], []
    for j in places:
        axis, new = _axis(view, j, n_steps if len(places) == 2 else 4 * n_steps)
        axes.append(axis)
        changes.append(new)
    shape = tuple(len(new) for new in reversed(changes))
    index = np.unravel_index(np.arange(int(np.prod(shape))), shape)
    typical = _typical(view)
    filled = {j: np.full(len(index[0]), value) for j, value in typical.items()}
    for j, new, chosen in zip(places, changes, reversed(index), strict=True):
        filled[j] = new[chosen]
    grid = view.make(np.zeros(len(index[0]), dtype=np.intp), filled)
    held = [name for j, name in enumerate(view.names) if j not in places]
    told = np.asarray(model.predict(grid))
    if told.ndim > 1 and told.shape[1] == 1:
        told = told[:, 0]
    if told.ndim > 1:
        raise ValueError(f"model: expected one output, got {told.shape[1]}")
    if not is_classifier(model):
        return Boundary(axes, None, told.astype(np.float64).reshape(shape), None, held)
    classes = np.asarray(model.classes_)
    chances = None
    if hasattr(model, "predict_proba"):
        chances = np.asarray(model.predict_proba(grid)).reshape(*shape, len(classes))
    codes = np.searchsorted(classes, told).astype(np.float64).reshape(shape)
    return Boundary(axes, [str(label) for label in classes], codes, chances, held)


def _places(view: TableView, features: Any) -> list[int]:
    if features is None:
        return list(range(min(view.n_columns, 2)))
    wanted = [features] if isinstance(features, str | int | np.integer) else list(features)
    if len(wanted) not in (1, 2):
        raise ValueError(f"features: expected one column or two, got {len(wanted)}")
    places = [view.find(feature, "features") for feature in wanted]
    if len(set(places)) < len(places):
        raise ValueError(f"features: expected two different ones, got {wanted}")
    return places


def _axis(view: TableView, j: int, n_steps: int) -> tuple[Axis, NDArray[Any]]:
    """Return an axis, and what `TableView.make` needs for each of its places."""
    if view.is_category(j):
        levels = view.levels(j)
        if not levels.labels:
            raise ValueError(f"features: expected a value in column {view.names[j]!r}, got none")
        rows = np.where(levels.codes < 0, np.nan, levels.codes)
        places = np.arange(len(levels.labels), dtype=np.float64)
        return Axis(view.names[j], places, levels.labels, rows), levels.rows
    rows = view.numbers(j)
    if np.isnan(rows).all():
        raise ValueError(f"features: expected a value in column {view.names[j]!r}, got none")
    low, high = float(np.nanmin(rows)), float(np.nanmax(rows))
    # Halves first: the range of huge values may be larger than any float.
    beyond = 2 * _MARGIN * (high / 2 - low / 2) or 0.5
    places = np.linspace(low - beyond, high + beyond, n_steps)
    return Axis(view.names[j], places, None, rows), places


def _typical(view: TableView) -> dict[int, float | np.intp]:
    """Return the median of each column of numbers, and a row with the most frequent category."""
    typical: dict[int, float | np.intp] = {}
    for j in range(view.n_columns):
        if view.is_category(j):
            levels = view.levels(j)
            # Where all is missing any row is typical.
            typical[j] = levels.rows[np.argmax(levels.counts)] if levels.labels else np.intp(0)
        else:
            numbers = view.numbers(j)
            typical[j] = np.nan if np.isnan(numbers).all() else float(np.nanmedian(numbers))
    return typical
