"""Explanations: all rows, one column, one row."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from spinney.plot._calculate_shap import (
    Explained,
    as_explained,
    calculate_shap_dependence,
    calculate_summary,
    calculate_waterfall,
)
from spinney.plot._style import (
    ACCENT,
    GREY,
    label_categories,
    label_missing,
    mark_points,
    note,
    shortened,
    styled,
    value_scale,
)
from spinney.tree.export.colors import DOTS

__all__ = ["shap_dependence", "shap_summary", "shap_waterfall"]

_UP, _DOWN = DOTS[1], DOTS[0]


def shap_summary(
    explanation: Any,
    *,
    output: Any = None,
    kind: str = "dots",
    max_columns: int = 20,
    max_rows: int | None = 2_000,
    random_state: Any = 0,
    ax: Any = None,
) -> Any:
    """Draw what the columns add to all answers: a dot for each row, the largest columns on top.

    Parameters
    ----------
    explanation : Explanation
        From `spinney.inspection.explain` (or one of shap's).
    output : int, str or None, default=None
        Which class or target, where there are several.
    kind : {"dots", "bars"}, default="dots"
        "bars" are the means of absolute values.
    max_columns : int, default=20
        How many columns are shown.
    max_rows : int or None, default=2_000
        Dots drawn at most, of rows chosen at random; the order of columns takes all rows.
    random_state : int, RandomState or None, default=0
        Seed of that choice.
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
    >>> from spinney.inspection import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> axes = plot.shap_summary(explain(forest, X))
    >>> axes.get_xlabel()
    'part of the prediction'
    """
    if kind not in ("dots", "bars"):
        raise ValueError(f"kind: expected 'dots' or 'bars', got {kind!r}")
    _check_count("max_columns", max_columns)
    if max_rows is not None:
        _check_count("max_rows", max_rows)
    told = calculate_summary(as_explained(explanation, output), int(max_columns))
    n_shown = len(told.names)
    ax = styled(ax, (5.6, max(1.6, 0.9 + 0.26 * n_shown)), grid="x")
    if kind == "bars":
        ax.barh(np.arange(n_shown), told.mean, height=0.7, color=ACCENT)
        ax.set_xlabel(f"mean absolute part of the {told.output}")
    else:
        rows = np.arange(len(told.values))
        if max_rows is not None and len(rows) > max_rows:
            from sklearn.utils import check_random_state

            chosen = check_random_state(random_state).choice(rows, int(max_rows), replace=False)
            rows = np.sort(chosen)
            note(ax, f"{len(rows):,} of {len(told.values):,} rows")
        drawn = None
        for place in range(n_shown):
            y = place + 0.4 * told.offsets[rows, place]
            drawn = _dots(ax, told.values[rows, place], y, told.levels[rows, place]) or drawn
        if drawn is not None:
            value_scale(ax, drawn, "value, by rank")
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_xlabel(f"part of the {told.output}")
    ax.set_ylim(n_shown - 0.4, -0.6)
    label_categories(ax, "y", told.names)
    ax.tick_params(axis="y", length=0)
    if n_shown < told.n_columns:
        note(ax, f"{n_shown} of {told.n_columns} columns")
    return ax


def shap_dependence(
    explanation: Any,
    column: Any,
    *,
    colour_by: Any = None,
    output: Any = None,
    ax: Any = None,
) -> Any:
    """Draw what one column adds to the answers, by its value.

    Parameters
    ----------
    explanation : Explanation
        From `spinney.inspection.explain` (or one of shap's).
    column : int or str
        The column, by number or name.
    colour_by : int, str or None, default=None
        Another column that colours the dots: where colours part, the two columns act together.
    output : int, str or None, default=None
        Which class or target, where there are several.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Missing values have a place of their own at the right.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestRegressor
    >>> from spinney.inspection import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> axes = plot.shap_dependence(explain(forest, X), "bmi", colour_by="s5")
    >>> axes.get_xlabel(), axes.get_ylabel()
    ('bmi', 'part of the prediction')
    """
    explained = as_explained(explanation, output)
    place = _find(explained, column, "column")
    other = None if colour_by is None else _find(explained, colour_by, "colour_by")
    told = calculate_shap_dependence(explained, place, other)
    ax = styled(ax)
    known = ~np.isnan(told.x)
    low, high = 0.0, 1.0
    if known.any():
        low, high = float(told.x[known].min()), float(told.x[known].max())
    beyond = high + 0.12 * ((high - low) or 1.0)
    x = np.where(known, told.x, beyond)
    if told.other is None:
        mark_points(ax, x, told.values, ACCENT)
    else:
        drawn = _dots(ax, x, told.values, told.levels)
        if drawn is not None:
            value_scale(ax, drawn, f"{shortened(told.other)}, by rank")
    if told.labels is not None:
        labels = told.labels
        if not known.all():
            x[~known] = len(labels)
            ax.collections[-1].set_offsets(np.column_stack([x, told.values]))
            labels = [*labels, "missing"]
        ax.set_xlim(-0.6, len(labels) - 0.4)
        label_categories(ax, "x", labels)
    elif not known.all():
        label_missing(ax, "x", low, high, beyond)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlabel(shortened(told.name))
    ax.set_ylabel(f"part of the {shortened(told.output, 40)}")
    return ax


def shap_waterfall(
    explanation: Any,
    row: int = 0,
    *,
    output: Any = None,
    max_columns: int = 12,
    ax: Any = None,
) -> Any:
    """Draw the way from the base value to one answer, column by column.

    Parameters
    ----------
    explanation : Explanation
        From `spinney.inspection.explain` (or one of shap's).
    row : int, default=0
        Which row.
    output : int, str or None, default=None
        Which class or target, where there are several.
    max_columns : int, default=12
        Steps at most; the smallest are put together in one.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. The way goes from the bottom, where the base value is, to the top.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestRegressor
    >>> from spinney.inspection import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> axes = plot.shap_waterfall(explain(forest, X), 3)
    >>> len(axes.patches)
    10
    """
    _check_count("max_columns", max_columns)
    explained = as_explained(explanation, output)
    n = len(explained.values)
    if isinstance(row, bool) or not isinstance(row, Integral) or not -n <= row < n:
        raise ValueError(f"row: expected a number below {n}, got {row!r}")
    told = calculate_waterfall(explained, int(row), int(max_columns))
    n_steps = len(told.labels)
    ax = styled(ax, (5.6, max(1.8, 1.1 + 0.28 * n_steps)), grid="x")
    places = np.arange(n_steps)
    colours = [_UP if step >= 0 else _DOWN for step in told.steps]
    ax.barh(places, told.steps, left=told.starts, height=0.6, color=colours)
    for place in range(n_steps - 1):
        end = told.starts[place] + told.steps[place]
        ax.plot([end, end], [place - 0.3, place + 1.3], color=GREY, linewidth=0.6)
    for place, step in enumerate(told.steps):
        end = told.starts[place] + step
        ax.annotate(
            f"{step:+.3g}",
            (end, place),
            xytext=(3 if step >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if step >= 0 else "right",
            va="center",
            fontsize=7,
        )
    ax.axvline(told.base, color=GREY, linewidth=0.8, linestyle="--")
    ax.axvline(told.answer, color=GREY, linewidth=0.8)
    ends = np.concatenate([told.starts, told.starts + told.steps])
    room = 0.2 * (float(np.ptp(ends)) or 1.0)  # for the numbers
    ax.set_xlim(float(ends.min()) - room, float(ends.max()) + room)
    ax.set_ylim(-0.6, n_steps - 0.4)
    label_categories(ax, "y", told.labels)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(shortened(told.output, 50))
    note(ax, f"from {told.base:.4g} to {told.answer:.4g}")
    return ax


def _dots(ax: Any, x: Any, y: Any, levels: Any) -> Any:
    """Dots coloured by rank, grey where there is none; returns what a scale needs, or None."""
    from matplotlib.colors import LinearSegmentedColormap

    unknown = np.isnan(levels)
    if unknown.all():
        mark_points(ax, x, y, GREY)
        return None
    if unknown.any():
        mark_points(ax, x[unknown], y[unknown], GREY)
    scale = LinearSegmentedColormap.from_list("spinney", [_DOWN, "#d9d0e0", _UP])
    return mark_points(
        ax, x[~unknown], y[~unknown], levels[~unknown], cmap=scale, vmin=0.0, vmax=1.0
    )


def _find(explained: Explained, column: Any, parameter: str) -> int:
    n = len(explained.names)
    if isinstance(column, str):
        if column in explained.names:
            return explained.names.index(column)
        raise ValueError(f"{parameter}: expected a column of the explanation, got {column!r}")
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and -n <= column < n:
        return int(column) % n
    raise ValueError(
        f"{parameter}: expected a name, or a number below {n}, the number of columns, "
        f"got {column!r}"
    )


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}: expected a positive whole number, got {value!r}")
