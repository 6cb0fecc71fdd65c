"""Plot of predictions and decision boundaries over one or two columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.inspection.table_view import as_numbers, as_vector
from spinney.plot._calculate_boundary import Boundary, calculate_boundary
from spinney.plot._style import (
    ACCENT,
    GREY,
    class_colours,
    class_key,
    fills,
    label_categories,
    legend,
    mark_points,
    note,
    shortened,
    styled,
    value_scale,
)

__all__ = ["decision_boundary"]

_MOST_POINTS = 3000
_MOST_LINES = 8
_SHADE = 0.65  # share of white in a colour where all classes have the same probability


def decision_boundary(
    model: Any, X: Any, y: Any = None, *, features: Any = None, n_steps: int = 150, ax: Any = None
) -> Any:
    """Draw the predictions of a model over two columns, or along one.

    A classifier's regions have the colours of the classes, paler where the probability is lower. A
    regressor's predictions have a colour scale. Columns that are not shown are fixed at their
    median or their most frequent category. Rows with a missing value in a shown column are not
    drawn.

    Parameters
    ----------
    model : fitted classifier or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        Rows: they define the ranges, the columns' names and categories, and the points.
    y : array-like of shape (n_rows,), default=None
        Targets, which colour the points. None draws no points.
    features : pair of str or int, one of them, or None, default=None
        The columns to show, by name or number; None shows the first two. With one column, a
        classifier's probabilities (or a regressor's prediction) are drawn along it.
    n_steps : int, default=150
        The number of grid steps in each direction.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import plot
    >>> from spinney.tree import DecisionTreeClassifier
    >>> iris = load_iris(as_frame=True)
    >>> tree = DecisionTreeClassifier(max_depth=3).fit(iris.data, iris.target)
    >>> petals = ["petal length (cm)", "petal width (cm)"]
    >>> axes = plot.decision_boundary(tree, iris.data, iris.target, features=petals)
    >>> axes.get_xlabel()
    'petal length (cm)'
    """
    if n_steps < 2:
        raise ValueError(f"n_steps: expected 2 or more, got {n_steps}")
    boundary = calculate_boundary(model, X, features=features, n_steps=n_steps)
    truth = None
    if y is not None:
        truth = as_vector(y) if boundary.classes is not None else as_numbers(y, "y")
    n_rows = len(boundary.axes[0].rows)
    if truth is not None and len(truth) != n_rows:
        raise ValueError(f"y: expected {n_rows} values, one for each row of X, got {len(truth)}")
    ax = styled(ax, (5.6, 4.2), grid="none" if len(boundary.axes) == 2 else "both")
    classes = None if boundary.classes is None else np.asarray(model.classes_)
    if len(boundary.axes) == 2:
        _draw_plane(ax, boundary, classes, truth)
    else:
        _draw_line(ax, boundary, classes, truth)
    if boundary.held:
        n = len(boundary.held)
        note(ax, f"{n} other column{'s' if n > 1 else ''} held at the median or mode")
    for axis, which in zip(boundary.axes, "xy", strict=False):
        if axis.labels is not None:
            label_categories(ax, which, axis.labels)
    ax.set_xlabel(shortened(boundary.axes[0].name, 40))
    return ax


def _draw_plane(ax: Any, boundary: Boundary, classes: Any, truth: Any) -> None:
    """Draw predictions over two columns, and the rows if there are targets."""
    across, up = boundary.axes
    ax.set_ylabel(shortened(up.name, 40))
    if boundary.classes is None:
        shown = boundary.predicted if truth is None else np.r_[boundary.predicted.ravel(), truth]
        limits = {"vmin": float(np.min(shown)), "vmax": float(np.max(shown))}
        drawn = ax.pcolormesh(
            across.steps,
            up.steps,
            boundary.predicted,
            cmap="viridis",
            shading="nearest",
            rasterized=True,
            **limits,
        )
        value_scale(ax, drawn, "prediction")
        if truth is not None:
            rows = _sample_rows(_rows_with_values(boundary))
            x, y = _jittered(across, rows), _jittered(up, rows)
            mark_points(ax, x, y, truth[rows], cmap="viridis", **limits)
        return
    colours = class_colours(len(boundary.classes))
    ax.pcolormesh(
        across.steps, up.steps, _region_colours(boundary), shading="nearest", rasterized=True
    )
    _draw_borders(ax, boundary)
    if truth is not None:
        rows = _sample_rows(_rows_with_values(boundary))
        codes = _class_codes(classes, truth)[rows]
        x, y = _jittered(across, rows), _jittered(up, rows)
        mark_points(ax, x, y, [colours[code] if code >= 0 else GREY for code in codes])
    class_key(ax, boundary.classes, colours)


def _draw_borders(ax: Any, boundary: Boundary) -> None:
    """Draw a line between the regions of classes, unless a column has categories."""
    if any(axis.labels is not None for axis in boundary.axes) or len(boundary.classes or ()) > 30:
        return
    across, up = boundary.axes
    for c in range(len(boundary.classes or ())):
        own = (boundary.predicted == c).astype(float)
        if 0 < own.mean() < 1:
            ax.contour(across.steps, up.steps, own, [0.5], colors=GREY, linewidths=0.7)


def _region_colours(boundary: Boundary) -> NDArray[np.float64]:
    """Return the colours of grid points, paler for lower probabilities."""
    from matplotlib.colors import to_rgb  # an optional dependency

    n = len(boundary.classes or ())
    light = np.array([to_rgb(colour) for colour in fills(n)])
    colours = light[boundary.predicted.astype(int)]
    if boundary.probabilities is not None and n > 1:
        highest = boundary.probabilities.max(axis=-1)
        confidence = np.clip((highest - 1 / n) / (1 - 1 / n), 0, 1)[..., None]
        colours = colours + (1 - colours) * (1 - confidence) * _SHADE
    return np.clip(colours, 0, 1)


def _draw_line(ax: Any, boundary: Boundary, classes: Any, truth: Any) -> None:
    """Draw predictions along one column, and the rows if there are targets."""
    (axis,) = boundary.axes
    rows = _sample_rows(_rows_with_values(boundary))
    if boundary.classes is None:
        _draw_function(ax, axis, boundary.predicted, ACCENT, "prediction")
        ax.set_ylabel("prediction")
        if truth is not None:
            mark_points(ax, _jittered(axis, rows), truth[rows], GREY, zorder=1)
        return
    colours = class_colours(len(boundary.classes))
    shares = boundary.probabilities
    if shares is None:  # without probabilities: 1 for the predicted class, otherwise 0
        shares = np.eye(len(boundary.classes))[boundary.predicted.astype(int)]
    many = len(boundary.classes) > _MOST_LINES
    shown = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_LINES])
    for c in shown:
        _draw_function(ax, axis, shares[:, c], colours[c], shortened(boundary.classes[c]))
    if many:
        note(ax, f"{_MOST_LINES} of {len(boundary.classes)} classes")
    if truth is not None:
        codes = _class_codes(classes, truth)
        for c in shown:
            own = rows[codes[rows] == c]
            # A rug below the curves, with one line for each class to avoid overlaps.
            below = np.full(len(own), -0.04 - 0.03 * np.searchsorted(shown, c))
            ax.plot(axis.rows[own], below, "|", color=colours[c], ms=4, alpha=0.6)
    ax.set_yticks(np.linspace(0, 1, 5))
    ax.set_ylabel("probability" if boundary.probabilities is not None else "predicted")
    legend(ax)


def _draw_function(ax: Any, axis: Any, values: Any, colour: str, label: str) -> None:
    style = {"marker": "o", "linestyle": ":"} if axis.labels is not None else {}
    ax.plot(axis.steps, values, color=colour, lw=1.5, label=label, **style)


def _rows_with_values(boundary: Boundary) -> NDArray[np.intp]:
    """Return the rows with values in all shown columns."""
    return np.flatnonzero(np.all([~np.isnan(axis.rows) for axis in boundary.axes], axis=0))


def _sample_rows(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows, or evenly spaced ones of them if there are too many to draw."""
    if len(rows) <= _MOST_POINTS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, _MOST_POINTS).astype(int)]


def _jittered(axis: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the coordinates of rows; those of the same category are spread a little."""
    coordinates = axis.rows[rows]
    if axis.labels is None:
        return coordinates
    # Multiples of the golden ratio spread any number of rows evenly and deterministically.
    return coordinates + 0.6 * ((np.arange(len(rows)) * 0.6180339887) % 1 - 0.5)


def _class_codes(classes: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.intp]:
    """Return the index of each row's class, or -1 if the model has no such class."""
    indices = {label: index for index, label in enumerate(classes.tolist())}
    return np.array([indices.get(label, -1) for label in truth.tolist()], dtype=np.intp)
