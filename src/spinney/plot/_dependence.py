"""Partial dependence: lines for numbers, bars for categories, a map for two columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.inspection import dependence as _dependence
from spinney.inspection.dependence import MISSING, Dependence, Grid
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
    """Draw how the mean prediction goes with one column, or two.

    The column is set to one value in all rows, the others stay as they are, and predictions are
    averaged; then to the next value. Numbers go over the middle nine tenths of the rows. If the
    column has gaps, what the model says about a gap is shown at the right.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
    target : object, default=None
        The class whose probability is drawn. None: the second of two; of several all, or, if there
        are many, those that vary most. Needed for two columns and several classes.
    individual : bool or int, default=False
        Whether to draw a line for each row too: True for up to 50 of them, or how many.
    centred : bool, default=False
        Whether all lines start from zero: those of single rows that part act together with others.
    n_values : int, default=40
        Values of a column of numbers (at most 20 each way for two columns).
    max_rows : int or None, default=1000
        Rows drawn at random from X if it has more; None takes all.
    random_state : int, RandomState or None, default=0
        Seed of that draw.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

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
        raise ValueError(f"individual: expected True, False or a number, got {individual}")
    told = _dependence.partial_dependence(
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
        told = told.centred()
    if len(told.grids) == 2:
        if len(told.outputs) > 1:
            raise ValueError("target: expected the class to draw over two columns, got None")
        return _draw_map(styled(ax, (5.6, 4.2), grid="none"), told)
    ax = styled(ax)
    if told.grids[0].is_category:
        _draw_bars(ax, told, individual)
    else:
        _draw_lines(ax, told, individual)
    ax.set_xlabel(shortened(told.grids[0].name, 40))
    what = "change of the " if centred else ""
    if not told.is_probability:
        ax.set_ylabel(f"{what}mean prediction")
    elif len(told.outputs) == 1:
        ax.set_ylabel(f"{what}probability of {shortened(told.outputs[0])}")
    else:
        ax.set_ylabel(f"{what}probability")
        legend(ax)
    return ax


def _drawn_outputs(ax: Any, told: Dependence) -> list[tuple[int, str, str | None]]:
    """Return which outputs are drawn, with colours and labels."""
    n = len(told.outputs)
    if n == 1:
        return [(0, ACCENT, None)]
    varies = np.ptp(told.average, axis=1)
    shown = np.sort(np.argsort(-varies, kind="stable")[:_MOST_LINES])
    if len(shown) < n:
        note(ax, f"{len(shown)} of {n} classes")
    colours = class_colours(len(shown))
    return [(int(c), colours[i], shortened(told.outputs[c])) for i, c in enumerate(shown)]


def _some_rows(told: Dependence, individual: bool | int) -> Any:
    if individual is False or told.individual is None:
        return np.array([], dtype=int)
    wanted = 50 if individual is True else int(individual)
    n = told.individual.shape[1]
    return np.unique(np.linspace(0, n - 1, min(wanted, n)).astype(int))


def _draw_lines(ax: Any, told: Dependence, individual: bool | int) -> None:
    (grid,) = told.grids
    values = np.asarray(grid.values, dtype=np.float64)
    k = len(values)
    step = (values[-1] - values[0]) or 1.0
    apart = values[-1] + 0.12 * step
    for c, colour, label in _drawn_outputs(ax, told):
        for row in _some_rows(told, individual):
            own = told.individual[c, row]  # type: ignore[index]
            ax.plot(values, own[:k], color=colour, lw=0.5, alpha=0.25, zorder=1)
        ax.plot(
            values,
            told.average[c, :k],
            color=colour,
            lw=2,
            label=label,
            marker="o" if k <= 12 else None,
            ms=4,
        )
        if grid.has_missing:
            ax.plot([apart], told.average[c, k:], "D", color=colour, ms=6)
    if grid.has_missing:
        ax.axvline(values[-1] + 0.06 * step, color=GREY, lw=0.8, ls=":")
        label_missing(ax, "x", values[0], values[-1], apart)
    _draw_rug(ax, told.observed[0], values[0], values[-1])


def _draw_rug(ax: Any, observed: Any, low: float, high: float) -> None:
    """Mark the tenths of the rows: where curves have data behind them."""
    known = observed[~np.isnan(observed)]
    tenths = np.quantile(known, np.linspace(0.1, 0.9, 9))
    tenths = np.unique(tenths[(tenths >= low) & (tenths <= high)])
    place = ax.get_xaxis_transform()
    ax.vlines(tenths, 0, 0.03, transform=place, color=GREY, lw=1)


def _draw_bars(ax: Any, told: Dependence, individual: bool | int) -> None:
    (grid,) = told.grids
    outputs = _drawn_outputs(ax, told)
    places, width = np.arange(len(grid)), 0.8 / len(outputs)
    for i, (c, colour, label) in enumerate(outputs):
        shift = (i - (len(outputs) - 1) / 2) * width
        bars = ax.bar(places + shift, told.average[c], 0.95 * width, color=colour, label=label)
        if grid.has_missing:
            bars[-1].set_alpha(0.5)
        for row in _some_rows(told, individual):
            own = told.individual[c, row]  # type: ignore[index]
            ax.plot(places + shift, own, "_", color=GREY, ms=4, alpha=0.4)
    label_categories(ax, "x", _labels(grid))
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")
    if grid.n_left_out:
        note(ax, f"{len(grid.values)} most frequent of {len(grid.values) + grid.n_left_out} values")


def _labels(grid: Grid) -> list[str]:
    return [str(value) for value in grid.values] + [MISSING] * grid.has_missing


def _draw_map(ax: Any, told: Dependence) -> Any:
    sides, shown = [], told.average[0]
    for number, (grid, which) in enumerate(zip(told.grids, "xy", strict=True)):
        if grid.is_category:
            sides.append(np.arange(len(grid), dtype=np.float64))
        else:
            values = np.asarray(grid.values, dtype=np.float64)
            step = (values[-1] - values[0]) / max(len(values) - 1, 1) or 1.0
            if grid.has_missing:  # apart from the numbers
                shown = np.insert(shown, len(values), np.nan, axis=number)
                values = np.r_[values, values[-1] + step, values[-1] + 2 * step]
            sides.append(values)
        getattr(ax, f"set_{which}label")(shortened(grid.name, 40))
    drawn = ax.pcolormesh(*sides, shown.T, cmap="viridis", shading="nearest", rasterized=True)
    for grid, side, which in zip(told.grids, sides, "xy", strict=True):
        if grid.is_category:
            label_categories(ax, which, _labels(grid))
        elif grid.has_missing:
            label_missing(ax, which, side[0], side[-3], side[-1])
    what = "mean prediction"
    if told.is_probability:
        what = f"probability of {shortened(told.outputs[0])}"
    value_scale(ax, drawn, what)
    return ax
