"""Plot of partial dependence: lines, bars or a map for two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.inspection import dependence as _dependence
from spinney.inspection.dependence import MISSING, Dependence, EffectGrid
from spinney.plot._style import (
    ACCENT,
    GREY,
    class_colours,
    label_categories,
    label_missing,
    legend,
    note,
    shortened,
    styled,
    value_scale,
)

__all__ = ["partial_dependence"]

_MOST_LINES = 8


def partial_dependence(
    model: Any,
    X: Any,
    columns: Any,
    *,
    target: Any = None,
    individual: bool | int = False,
    centred: bool = False,
    n_values: int = 40,
    max_rows: int | None = 1000,
    random_state: Any = 0,
    ax: Any = None,
) -> Any:
    """Draw how the mean prediction depends on one column, or on two columns.

    The column is set to one value after another in all rows, and the predictions are averaged; the
    other columns do not change. Numeric values range from the 5 % to the 95 % quantile. If the
    column has missing values, the mean prediction for "missing" is shown at the right.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
    target : object, default=None
        The class whose probability is drawn. None: the second of two; with more classes all, or
        the 8 that vary most. Required for two columns and more than two classes.
    individual : bool or int, default=False
        Whether to draw lines of single rows, too: True for at most 50 rows, or the number of rows.
    centred : bool, default=False
        Whether all lines start from zero. Diverging lines of single rows then show interactions.
    n_values : int, default=40
        The grid size of a numeric column (at most 20 for each of two columns).
    max_rows : int or None, default=1000
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of that sample.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestRegressor
    >>> data = load_diabetes(as_frame=True)
    >>> forest = RandomForestRegressor(random_state=0).fit(data.data, data.target)
    >>> axes = plot.partial_dependence(forest, data.data, "bmi")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('bmi', 'mean prediction')
    """
    if individual is not True and individual < 0:
        raise ValueError(
            f"individual: expected True, False or a number of rows from 0, got {individual}"
        )
    dependence = _dependence.partial_dependence(
        model,
        X,
        columns,
        target=target,
        n_values=n_values,
        individual=individual is True or individual > 0,
        max_rows=max_rows,
        random_state=random_state,
    )
    if centred:
        dependence = dependence.centred()
    if len(dependence.grids) == 2:
        if len(dependence.outputs) > 1:
            raise ValueError("target: expected the class to draw for two columns, got None")
        return _draw_map(styled(ax, (5.6, 4.2), grid="none"), dependence)
    ax = styled(ax)
    if dependence.grids[0].is_category:
        _draw_bars(ax, dependence, individual)
    else:
        _draw_lines(ax, dependence, individual)
    ax.set_xlabel(shortened(dependence.grids[0].name, 40))
    what = "change of the " if centred else ""
    if not dependence.is_probability:
        ax.set_ylabel(f"{what}mean prediction")
    elif len(dependence.outputs) == 1:
        ax.set_ylabel(f"{what}probability of {shortened(dependence.outputs[0])}")
    else:
        ax.set_ylabel(f"{what}probability")
        legend(ax)
    return ax


def _drawn_outputs(ax: Any, dependence: Dependence) -> list[tuple[int, str, str | None]]:
    """Return the indices of the outputs that are drawn, with colours and labels."""
    n = len(dependence.outputs)
    if n == 1:
        return [(0, ACCENT, None)]
    varies = np.ptp(dependence.average, axis=1)
    shown = np.sort(np.argsort(-varies, kind="stable")[:_MOST_LINES])
    if len(shown) < n:
        note(ax, f"{len(shown)} of {n} classes")
    colours = class_colours(len(shown))
    return [(int(c), colours[i], shortened(dependence.outputs[c])) for i, c in enumerate(shown)]


def _some_rows(dependence: Dependence, individual: bool | int) -> Any:
    """Return evenly spaced rows whose lines are drawn."""
    if individual is False or dependence.individual is None:
        return np.array([], dtype=int)
    wanted = 50 if individual is True else int(individual)
    n = dependence.individual.shape[1]
    return np.unique(np.linspace(0, n - 1, min(wanted, n)).astype(int))


def _draw_lines(ax: Any, dependence: Dependence, individual: bool | int) -> None:
    (grid,) = dependence.grids
    values = np.asarray(grid.values, dtype=np.float64)
    k = len(values)
    step = (values[-1] - values[0]) or 1.0
    apart = values[-1] + 0.12 * step
    for c, colour, label in _drawn_outputs(ax, dependence):
        for row in _some_rows(dependence, individual):
            own = dependence.individual[c, row]  # type: ignore[index]
            ax.plot(values, own[:k], color=colour, lw=0.5, alpha=0.25, zorder=1)
        ax.plot(
            values,
            dependence.average[c, :k],
            color=colour,
            lw=2,
            label=label,
            marker="o" if k <= 12 else None,
            ms=4,
        )
        if grid.has_missing:
            ax.plot([apart], dependence.average[c, k:], "D", color=colour, ms=6)
    if grid.has_missing:
        ax.axvline(values[-1] + 0.06 * step, color=GREY, lw=0.8, ls=":")
        label_missing(ax, "x", values[0], values[-1], apart)
    _draw_rug(ax, dependence.observed[0], values[0], values[-1])


def _draw_rug(ax: Any, observed: Any, low: float, high: float) -> None:
    """Mark the deciles of the column: the range in which curves are supported by data."""
    known = observed[~np.isnan(observed)]
    tenths = np.quantile(known, np.linspace(0.1, 0.9, 9))
    tenths = np.unique(tenths[(tenths >= low) & (tenths <= high)])
    transform = ax.get_xaxis_transform()
    ax.vlines(tenths, 0, 0.03, transform=transform, color=GREY, lw=1)


def _draw_bars(ax: Any, dependence: Dependence, individual: bool | int) -> None:
    (grid,) = dependence.grids
    outputs = _drawn_outputs(ax, dependence)
    positions, width = np.arange(len(grid)), 0.8 / len(outputs)
    for i, (c, colour, label) in enumerate(outputs):
        shift = (i - (len(outputs) - 1) / 2) * width
        bars = ax.bar(
            positions + shift, dependence.average[c], 0.95 * width, color=colour, label=label
        )
        if grid.has_missing:
            bars[-1].set_alpha(0.5)
        for row in _some_rows(dependence, individual):
            own = dependence.individual[c, row]  # type: ignore[index]
            ax.plot(positions + shift, own, "_", color=GREY, ms=4, alpha=0.4)
    label_categories(ax, "x", _labels(grid))
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    if grid.n_left_out:
        note(ax, f"{len(grid.values)} most frequent of {len(grid.values) + grid.n_left_out} values")


def _labels(grid: EffectGrid) -> list[str]:
    return [str(value) for value in grid.values] + [MISSING] * grid.has_missing


def _draw_map(ax: Any, dependence: Dependence) -> Any:
    sides, shown = [], dependence.average[0]
    for number, (grid, which) in enumerate(zip(dependence.grids, "xy", strict=True)):
        if grid.is_category:
            sides.append(np.arange(len(grid), dtype=np.float64))
        else:
            values = np.asarray(grid.values, dtype=np.float64)
            step = (values[-1] - values[0]) / max(len(values) - 1, 1) or 1.0
            if grid.has_missing:  # a column of its own, after an empty one
                shown = np.insert(shown, len(values), np.nan, axis=number)
                values = np.r_[values, values[-1] + step, values[-1] + 2 * step]
            sides.append(values)
        getattr(ax, f"set_{which}label")(shortened(grid.name, 40))
    drawn = ax.pcolormesh(*sides, shown.T, cmap="viridis", shading="nearest", rasterized=True)
    for grid, side, which in zip(dependence.grids, sides, "xy", strict=True):
        if grid.is_category:
            label_categories(ax, which, _labels(grid))
        elif grid.has_missing:
            label_missing(ax, which, side[0], side[-3], side[-1])
    what = "mean prediction"
    if dependence.is_probability:
        what = f"probability of {shortened(dependence.outputs[0])}"
    value_scale(ax, drawn, what)
    return ax
