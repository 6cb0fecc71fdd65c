"""Plot of accumulated local effects: a line with a band, bars or a map."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.inspection import accumulated as _accumulated
from spinney.inspection.accumulated import AccumulatedEffects
from spinney.plot._style import (
    ACCENT,
    GREY,
    class_colours,
    label_categories,
    legend,
    note,
    shortened,
    styled,
    value_scale,
)

__all__ = ["accumulated_local_effects"]

_MOST_LINES = 8


def accumulated_local_effects(
    model: Any,
    X: Any,
    columns: Any,
    *,
    target: Any = None,
    n_intervals: int = 20,
    max_rows: int | None = 10_000,
    random_state: Any = 0,
    ax: Any = None,
) -> Any:
    """Draw the accumulated local effects of one column, or of two columns.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
    target : object, default=None
        The class whose probability is drawn. None: the second of two, or all if there are more;
        required for two columns and more than two classes.
    n_intervals : int, default=20
        The number of intervals between quantiles of a numeric column.
    max_rows : int or None, default=10_000
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of that sample.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Bands, or lines across bars, are plus and minus two standard errors.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> axes = plot.accumulated_local_effects(forest, X, "bmi")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('bmi', 'effect on the prediction')
    """
    effects = _accumulated.accumulated_local_effects(
        model,
        X,
        columns,
        target=target,
        n_intervals=n_intervals,
        max_rows=max_rows,
        random_state=random_state,
    )
    if len(effects.grids) == 2:
        if len(effects.outputs) > 1:
            raise ValueError("target: expected the class to draw for two columns, got None")
        return _draw_map(ax, effects)
    ax = styled(ax)
    (_draw_bars if effects.grids[0].is_category else _draw_lines)(ax, effects)
    ax.axhline(0, color=GREY, lw=0.8)
    ax.set_xlabel(shortened(effects.grids[0].name, 40))
    ax.set_ylabel(_label(effects))
    if len(effects.outputs) > 1:
        legend(ax)
    _note_missing(ax, effects)
    return ax


def _note_missing(ax: Any, effects: AccumulatedEffects) -> None:
    if effects.n_missing:
        note(ax, f"{effects.n_missing} rows with missing values omitted")


def _label(effects: AccumulatedEffects) -> str:
    """Return the axis label of the effect."""
    if not effects.is_probability:
        return "effect on the prediction"
    if len(effects.outputs) == 1:
        return f"effect on the probability of {shortened(effects.outputs[0])}"
    return "effect on the probability"


def _shown_outputs(effects: AccumulatedEffects) -> list[tuple[int, str, str | None]]:
    """Return the outputs that are drawn, with colours and labels."""
    if len(effects.outputs) == 1:
        return [(0, ACCENT, None)]
    varies = np.ptp(effects.effect, axis=1)
    shown = np.sort(np.argsort(-varies, kind="stable")[:_MOST_LINES])
    colours = class_colours(len(shown))
    return [(int(c), colours[i], shortened(effects.outputs[c])) for i, c in enumerate(shown)]


def _draw_lines(ax: Any, effects: AccumulatedEffects) -> None:
    values = np.asarray(effects.grids[0].values, dtype=np.float64)
    for c, colour, label in _shown_outputs(effects):
        effect, room = effects.effect[c], 2 * effects.error[c]
        ax.fill_between(values, effect - room, effect + room, color=colour, alpha=0.2, lw=0)
        ax.plot(values, effect, color=colour, lw=2, marker="o", ms=3, label=label)
    tenths = np.unique(np.quantile(effects.observed[0], np.linspace(0.1, 0.9, 9)))
    ax.vlines(tenths, 0, 0.03, transform=ax.get_xaxis_transform(), color=GREY, lw=1)


def _draw_bars(ax: Any, effects: AccumulatedEffects) -> None:
    outputs = _shown_outputs(effects)
    labels = [str(value) for value in effects.grids[0].values]
    positions, width = np.arange(len(labels)), 0.8 / len(outputs)
    for i, (c, colour, label) in enumerate(outputs):
        shift = (i - (len(outputs) - 1) / 2) * width
        ax.bar(
            positions + shift,
            effects.effect[c],
            0.95 * width,
            yerr=2 * effects.error[c],
            color=colour,
            ecolor=GREY,
            label=label,
        )
    label_categories(ax, "x", labels)
    ax.tick_params(axis="x", length=0)
    ax.grid(False, axis="x")


def _draw_map(ax: Any, effects: AccumulatedEffects) -> Any:
    shown = effects.effect[0]
    sides = []
    for number, grid in enumerate(effects.grids):
        if len(grid) < 2:
            raise ValueError(
                f"columns: expected at least two values in column {grid.name!r}, got a constant"
            )
        if grid.is_category:  # one stripe for each, in the order of accumulation
            sides.append(np.arange(len(grid) + 1) - 0.5)
        else:  # one stripe between neighbouring edges, with the mean of both
            sides.append(np.asarray(grid.values, dtype=np.float64))
            shown = np.moveaxis(shown, number, 0)
            shown = np.moveaxis((shown[1:] + shown[:-1]) / 2, 0, number)
    ax = styled(ax, (5.6, 4.2), grid="none")
    # Cells without rows are not drawn.
    shown = np.where(effects.counts > 0, shown, np.nan)
    most = float(np.nanmax(np.abs(shown))) or 1.0
    drawn = ax.pcolormesh(*sides, shown.T, cmap="RdBu_r", vmin=-most, vmax=most, rasterized=True)
    for grid, which in zip(effects.grids, "xy", strict=True):
        getattr(ax, f"set_{which}label")(shortened(grid.name, 40))
        if grid.is_category:
            label_categories(ax, which, [str(value) for value in grid.values])
            ax.tick_params(axis=which, length=0)
    value_scale(ax, drawn, f"joint {_label(effects)}")
    _note_missing(ax, effects)
    return ax
