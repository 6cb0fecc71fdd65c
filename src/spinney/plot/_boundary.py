"""What a model predicts over two columns."""

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
_SHADE = 0.65  # how much of a colour is lost where a class is no likelier than another


def decision_boundary(
    model: Any, X: Any, y: Any = None, *, features: Any = None, n_steps: int = 150, ax: Any = None
) -> Any:
    """Draw what a model predicts over two columns, or along one.

    A classifier's regions have the colours of the classes, paler where the model is less sure; a
    regressor's values have a scale. Columns that are not shown are held at their median, or their
    most frequent category. Rows in which a shown column is missing are not drawn.

    Parameters
    ----------
    model : fitted classifier or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        Rows: they give the ranges, the columns' names and categories, and the points.
    y : array-like of shape (n_rows,), default=None
        Targets, which colour the points. None draws no points.
    features : pair of str or int, one of them, or None, default=None
        The columns to show, by name or number; None shows the first two. With one column, a
        classifier's probabilities (or a regressor's prediction) are drawn along it.
    n_steps : int, default=150
        Steps of the grid, each way.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

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
    told = calculate_boundary(model, X, features=features, n_steps=n_steps)
    truth = None
    if y is not None:
        truth = as_vector(y) if told.classes is not None else as_numbers(y, "y")
    if truth is not None and len(truth) != len(told.axes[0].rows):
        raise ValueError(
            f"y: expected {len(told.axes[0].rows)} values, one for each row of X, got {len(truth)}"
        )
    ax = styled(ax, (5.6, 4.2), grid="none" if len(told.axes) == 2 else "both")
    classes = None if told.classes is None else np.asarray(model.classes_)
    if len(told.axes) == 2:
        _draw_plane(ax, told, classes, truth)
    else:
        _draw_line(ax, told, classes, truth)
    if told.held:
        n = len(told.held)
        note(ax, f"{n} other column{'s' if n > 1 else ''} held at the median or mode")
    for axis, which in zip(told.axes, "xy", strict=False):
        if axis.labels is not None:
            label_categories(ax, which, axis.labels)
    ax.set_xlabel(shortened(told.axes[0].name, 40))
    return ax


def _draw_plane(ax: Any, told: Boundary, classes: Any, truth: Any) -> None:
    across, up = told.axes
    ax.set_ylabel(shortened(up.name, 40))
    if told.classes is None:
        shown = told.told if truth is None else np.r_[told.told.ravel(), truth]
        limits = {"vmin": float(np.min(shown)), "vmax": float(np.max(shown))}
        drawn = ax.pcolormesh(
            across.places,
            up.places,
            told.told,
            cmap="viridis",
            shading="nearest",
            rasterized=True,
            **limits,
        )
        value_scale(ax, drawn, "prediction")
        if truth is not None:
            rows = _some(_shown(told))
            x, y = _beside(across, rows), _beside(up, rows)
            mark_points(ax, x, y, truth[rows], cmap="viridis", **limits)
        return
    colours = class_colours(len(told.classes))
    ax.pcolormesh(across.places, up.places, _painted(told), shading="nearest", rasterized=True)
    _draw_borders(ax, told)
    if truth is not None:
        rows = _some(_shown(told))
        owners = _places_of(classes, truth)[rows]
        x, y = _beside(across, rows), _beside(up, rows)
        mark_points(ax, x, y, [colours[owner] if owner >= 0 else GREY for owner in owners])
    class_key(ax, told.classes, colours)


def _draw_borders(ax: Any, told: Boundary) -> None:
    """Draw a line between the regions of classes, unless a column has categories."""
    if any(axis.labels is not None for axis in told.axes) or len(told.classes or ()) > 30:
        return
    across, up = told.axes
    for c in range(len(told.classes or ())):
        own = (told.told == c).astype(float)
        if 0 < own.mean() < 1:
            ax.contour(across.places, up.places, own, [0.5], colors=GREY, linewidths=0.7)


def _painted(told: Boundary) -> NDArray[np.float64]:
    """Return the colour of each place: its class's, paler where that is less sure."""
    from matplotlib.colors import to_rgb

    n = len(told.classes or ())
    light = np.array([to_rgb(colour) for colour in fills(n)])
    picture = light[told.told.astype(int)]
    if told.chances is not None and n > 1:
        sure = np.clip((told.chances.max(axis=-1) - 1 / n) / (1 - 1 / n), 0, 1)[..., None]
        picture = picture + (1 - picture) * (1 - sure) * _SHADE
    return np.clip(picture, 0, 1)


def _draw_line(ax: Any, told: Boundary, classes: Any, truth: Any) -> None:
    (axis,) = told.axes
    rows = _some(_shown(told))
    if told.classes is None:
        _draw_function(ax, axis, told.told, ACCENT, "prediction")
        ax.set_ylabel("prediction")
        if truth is not None:
            mark_points(ax, _beside(axis, rows), truth[rows], GREY, zorder=1)
        return
    colours = class_colours(len(told.classes))
    shares = told.chances
    if shares is None:  # the predicted class has it all
        shares = np.eye(len(told.classes))[told.told.astype(int)]
    many = len(told.classes) > _MOST_LINES
    shown = np.sort(np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_LINES])
    for c in shown:
        _draw_function(ax, axis, shares[:, c], colours[c], shortened(told.classes[c]))
    if many:
        note(ax, f"{_MOST_LINES} of {len(told.classes)} classes")
    if truth is not None:
        owners = _places_of(classes, truth)
        for c in shown:
            own = rows[owners[rows] == c]
            # A rug below the curves, a line for each class, so that they do not hide each other.
            below = np.full(len(own), -0.04 - 0.03 * np.searchsorted(shown, c))
            ax.plot(axis.rows[own], below, "|", color=colours[c], ms=4, alpha=0.6)
    ax.set_yticks(np.linspace(0, 1, 5))
    ax.set_ylabel("probability" if told.chances is not None else "predicted")
    legend(ax)


def _draw_function(ax: Any, axis: Any, values: Any, colour: str, label: str) -> None:
    style = {"marker": "o", "linestyle": ":"} if axis.labels is not None else {}
    ax.plot(axis.places, values, color=colour, lw=1.5, label=label, **style)


def _shown(told: Boundary) -> NDArray[np.intp]:
    return np.flatnonzero(np.all([~np.isnan(axis.rows) for axis in told.axes], axis=0))


def _some(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the rows, or evenly spaced ones of them if there are too many to be seen."""
    if len(rows) <= _MOST_POINTS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, _MOST_POINTS).astype(int)]


def _beside(axis: Any, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return where rows are drawn; those of one category are spread a little."""
    places = axis.rows[rows]
    if axis.labels is None:
        return places
    # The golden ratio spreads any number of rows evenly, without chance.
    return places + 0.6 * ((np.arange(len(rows)) * 0.6180339887) % 1 - 0.5)


def _places_of(classes: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.intp]:
    """Return each row's class as a number, -1 for a class that the model does not know."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    return np.array([places.get(label, -1) for label in truth.tolist()], dtype=np.intp)
