"""Plots of Shapley values: of all rows, of one column, and of one row."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from spinney.plot._calculate_shap import (
    OutputValues,
    calculate_shap_dependence,
    calculate_summary,
    calculate_waterfall,
    read_explanation,
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
    """Draw Shapley values of all rows, by column, the most important on top.

    Parameters
    ----------
    explanation : Explanation
        The result of `spinney.inspection.explain` (or a ``shap.Explanation``).
    output : int, str or None, default=None
        The class or target, if there are several.
    kind : {"dots", "bars"}, default="dots"
        "dots" draws one dot for each row, "bars" the mean absolute values.
    max_columns : int, default=20
        The maximum number of columns that are shown.
    max_rows : int or None, default=2_000
        The size of a random sample of rows that get dots if there are more; None draws all. The
        order of columns is calculated from all rows.
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
    >>> from spinney.inspection import explain
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> forest = RandomForestRegressor(20, random_state=0).fit(X, y)
    >>> axes = plot.shap_summary(explain(forest, X))
    >>> axes.get_xlabel()
    'contribution to the prediction'
    """
    if kind not in ("dots", "bars"):
        raise ValueError(f"kind: expected 'dots' or 'bars', got {kind!r}")
    _check_count("max_columns", max_columns)
    if max_rows is not None:
        _check_count("max_rows", max_rows)
    summary = calculate_summary(read_explanation(explanation, output), int(max_columns))
    n_shown = len(summary.names)
    ax = styled(ax, (5.6, max(1.6, 0.9 + 0.26 * n_shown)), grid="x")
    if kind == "bars":
        ax.barh(np.arange(n_shown), summary.mean, height=0.7, color=ACCENT)
        ax.set_xlabel(f"mean |contribution| to the {summary.output}")
    else:
        rows = np.arange(len(summary.values))
        if max_rows is not None and len(rows) > max_rows:
            chosen = check_random_state(random_state).choice(rows, int(max_rows), replace=False)
            rows = np.sort(chosen)
            note(ax, f"{len(rows):,} of {len(summary.values):,} rows")
        drawn = None
        for k in range(n_shown):
            y = k + 0.4 * summary.offsets[rows, k]
            drawn = _dots(ax, summary.values[rows, k], y, summary.levels[rows, k]) or drawn
        if drawn is not None:
            value_scale(ax, drawn, "rank of the value")
        ax.axvline(0, color=GREY, linewidth=0.8)
        ax.set_xlabel(f"contribution to the {summary.output}")
    ax.set_ylim(n_shown - 0.4, -0.6)
    label_categories(ax, "y", summary.names)
    ax.tick_params(axis="y", length=0)
    if n_shown < summary.n_columns:
        note(ax, f"{n_shown} of {summary.n_columns} columns")
    return ax


def shap_dependence(
    explanation: Any,
    column: Any,
    *,
    colour_by: Any = None,
    output: Any = None,
    ax: Any = None,
) -> Any:
    """Draw the Shapley values of one column against its values.

    Parameters
    ----------
    explanation : Explanation
        The result of `spinney.inspection.explain` (or a ``shap.Explanation``).
    column : int or str
        The column, by number or name.
    colour_by : int, str or None, default=None
        Another column that colours the dots: if colours separate, the two columns interact.
    output : int, str or None, default=None
        The class or target, if there are several.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Missing values are at the right, labelled "missing".

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
    ('bmi', 'contribution to the prediction')
    """
    output_values = read_explanation(explanation, output)
    index = _find(output_values, column, "column")
    other = None if colour_by is None else _find(output_values, colour_by, "colour_by")
    dependence = calculate_shap_dependence(output_values, index, other)
    ax = styled(ax)
    known = ~np.isnan(dependence.x)
    low, high = 0.0, 1.0
    if known.any():
        low, high = float(dependence.x[known].min()), float(dependence.x[known].max())
    beyond = high + 0.12 * ((high - low) or 1.0)
    x = np.where(known, dependence.x, beyond)
    if dependence.other is None:
        mark_points(ax, x, dependence.values, ACCENT)
    else:
        drawn = _dots(ax, x, dependence.values, dependence.levels)
        if drawn is not None:
            value_scale(ax, drawn, f"rank of {shortened(dependence.other)}")
    if dependence.labels is not None:
        labels = dependence.labels
        if not known.all():
            x[~known] = len(labels)
            ax.collections[-1].set_offsets(np.column_stack([x, dependence.values]))
            labels = [*labels, "missing"]
        ax.set_xlim(-0.6, len(labels) - 0.4)
        label_categories(ax, "x", labels)
    elif not known.all():
        label_missing(ax, "x", low, high, beyond)
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xlabel(shortened(dependence.name))
    ax.set_ylabel(f"contribution to the {shortened(dependence.output, 40)}")
    return ax


def shap_waterfall(
    explanation: Any,
    row: int = 0,
    *,
    output: Any = None,
    max_columns: int = 12,
    ax: Any = None,
) -> Any:
    """Draw the Shapley values of one row as steps up to the prediction.

    Parameters
    ----------
    explanation : Explanation
        The result of `spinney.inspection.explain` (or a ``shap.Explanation``).
    row : int, default=0
        The row.
    output : int, str or None, default=None
        The class or target, if there are several.
    max_columns : int, default=12
        The maximum number of steps; the smallest contributions are merged.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Steps start from the base value at the bottom; the top is the prediction.

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
    output_values = read_explanation(explanation, output)
    n = len(output_values.values)
    if isinstance(row, bool) or not isinstance(row, Integral) or not -n <= row < n:
        raise ValueError(f"row: expected a number below {n}, got {row!r}")
    waterfall = calculate_waterfall(output_values, int(row), int(max_columns))
    n_steps = len(waterfall.labels)
    ax = styled(ax, (5.6, max(1.8, 1.1 + 0.28 * n_steps)), grid="x")
    positions = np.arange(n_steps)
    colours = [_UP if step >= 0 else _DOWN for step in waterfall.steps]
    ax.barh(positions, waterfall.steps, left=waterfall.starts, height=0.6, color=colours)
    for k in range(n_steps - 1):
        end = waterfall.starts[k] + waterfall.steps[k]
        ax.plot([end, end], [k - 0.3, k + 1.3], color=GREY, linewidth=0.6)
    for k, step in enumerate(waterfall.steps):
        end = waterfall.starts[k] + step
        ax.annotate(
            f"{step:+.3g}",
            (end, k),
            xytext=(3 if step >= 0 else -3, 0),
            textcoords="offset points",
            ha="left" if step >= 0 else "right",
            va="center",
            fontsize=7,
        )
    ax.axvline(waterfall.base, color=GREY, linewidth=0.8, linestyle="--")
    ax.axvline(waterfall.prediction, color=GREY, linewidth=0.8)
    ends = np.concatenate([waterfall.starts, waterfall.starts + waterfall.steps])
    room = 0.2 * (float(np.ptp(ends)) or 1.0)  # space for the labels of steps
    ax.set_xlim(float(ends.min()) - room, float(ends.max()) + room)
    ax.set_ylim(-0.6, n_steps - 0.4)
    label_categories(ax, "y", waterfall.labels)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(shortened(waterfall.output, 50))
    note(ax, f"from {waterfall.base:.4g} to {waterfall.prediction:.4g}")
    return ax


def _dots(ax: Any, x: Any, y: Any, levels: Any) -> Any:
    """Draw dots coloured by rank, grey without one; return the mappable or None."""
    from matplotlib.colors import LinearSegmentedColormap  # an optional dependency

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


def _find(output_values: OutputValues, column: Any, parameter: str) -> int:
    """Return the index of a column given by name or number."""
    n = len(output_values.names)
    if isinstance(column, str):
        if column in output_values.names:
            return output_values.names.index(column)
        raise ValueError(f"{parameter}: expected a column of the explanation, got {column!r}")
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and -n <= column < n:
        return int(column) % n
    raise ValueError(
        f"{parameter}: expected a name, or a number below {n}, the number of columns, "
        f"got {column!r}"
    )


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}: expected a positive integer, got {value!r}")
