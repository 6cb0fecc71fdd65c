"""Data of the plots of Shapley values: dots, curves and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ShapDependence",
    "ShapSummary",
    "ShapWaterfall",
    "calculate_shap_dependence",
    "calculate_summary",
    "calculate_waterfall",
    "read_explanation",
]

Floats = NDArray[np.float64]
_CELLS = 120  # number of cells along the axis; the dots of a cell are stacked


@dataclass(frozen=True)
class OutputValues:
    """The values of an explanation for one output."""

    values: Floats
    base: Floats
    data: NDArray[Any]
    names: list[str]
    output: str


@dataclass(frozen=True)
class ShapSummary:
    """Shapley values of the most important columns, the most important first.

    Attributes
    ----------
    columns : ndarray of int
        The columns.
    names : list of str
        Their names.
    mean : ndarray of shape (n_shown,)
        Mean absolute Shapley values.
    values, offsets, levels : ndarray of shape (n_rows, n_shown)
        Each row's Shapley value, the offset of its dot from the middle of the line (−1 to 1), and
        the rank of the column's value among all rows (0 to 1; NaN if missing or a category).
    n_columns : int
        The total number of columns.
    output : str
        A description of the output.
    """

    columns: NDArray[np.intp]
    names: list[str]
    mean: Floats
    values: Floats
    offsets: Floats
    levels: Floats
    n_columns: int
    output: str


@dataclass(frozen=True)
class ShapDependence:
    """Shapley values of one column by its value.

    Attributes
    ----------
    name : str
        The column.
    x : ndarray of shape (n_rows,)
        Its values, or indices of its categories; NaN where missing.
    labels : list of str or None
        Its categories.
    values : ndarray of shape (n_rows,)
        Its Shapley values.
    other : str or None
        The column that colours the dots.
    levels : ndarray of shape (n_rows,)
        The rank of that column's value among all rows, 0 to 1 or NaN.
    output : str
        A description of the output.
    """

    name: str
    x: Floats
    labels: list[str] | None
    values: Floats
    other: str | None
    levels: Floats
    output: str


@dataclass(frozen=True)
class ShapWaterfall:
    """The steps from the base value to one prediction, the smallest first.

    Attributes
    ----------
    labels : list of str
        Columns with their values; the first may stand for several columns.
    starts, steps : ndarray
        The start of each step, and its signed length.
    base, prediction : float
        The start of the first step, and the end of the last.
    output : str
        A description of the output.
    """

    labels: list[str]
    starts: Floats
    steps: Floats
    base: float
    prediction: float
    output: str


def read_explanation(explanation: Any, output: Any = None) -> OutputValues:
    """Return the values for one output of an explanation, Spinney's or shap's."""
    needed = ("values", "base_values", "data", "feature_names")
    if not all(hasattr(explanation, name) for name in needed):
        raise TypeError(
            "explanation: expected the result of spinney.inspection.explain, got "
            f"{type(explanation).__name__}"
        )
    values = np.asarray(explanation.values, dtype=np.float64)
    base = np.asarray(explanation.base_values, dtype=np.float64)
    if values.ndim not in (2, 3) or len(values) == 0:
        raise ValueError(
            f"explanation: expected values for at least one row, got shape {values.shape}"
        )
    base = np.broadcast_to(base, (len(values), *values.shape[2:]))
    title = str(getattr(explanation, "output", "output"))
    if values.ndim == 3:
        names = getattr(explanation, "output_names", None)
        names = [str(k) for k in range(values.shape[2])] if names is None else list(names)
        if isinstance(output, str) and output in names:
            output = names.index(output)
        if isinstance(output, bool) or not isinstance(output, int | np.integer):
            listed = ", ".join(map(repr, names[:6])) + (", …" if len(names) > 6 else "")
            raise ValueError(f"output: expected a number or one of {listed}, got {output!r}")
        if not -len(names) <= output < len(names):
            raise ValueError(f"output: expected a number below {len(names)}, got {output}")
        values, base = values[:, :, output], base[:, output]
        title = f"{title} of {names[output]}"
    elif output not in (None, 0):
        raise ValueError(f"output: expected None, because there is one output; got {output!r}")
    data = explanation.data
    data = np.full(values.shape, np.nan) if data is None else np.asarray(data)
    names = explanation.feature_names
    if names is None:
        names = [f"column {j}" for j in range(values.shape[1])]
    return OutputValues(values, base, data, [str(name) for name in names], title)


def calculate_summary(output_values: OutputValues, max_columns: int) -> ShapSummary:
    """Sort columns by mean absolute Shapley values, and stack dots that would overlap."""
    mean = np.abs(output_values.values).mean(axis=0)
    shown = np.argsort(-mean, kind="stable")[:max_columns]
    values = output_values.values[:, shown]
    low, high = float(values.min()), float(values.max())
    offsets = np.column_stack([_offsets(column, low, high) for column in values.T])
    levels = np.column_stack([_levels(output_values.data[:, j]) for j in shown])
    names = [output_values.names[j] for j in shown]
    n = output_values.values.shape[1]
    return ShapSummary(shown, names, mean[shown], values, offsets, levels, n, output_values.output)


def _offsets(values: Floats, low: float, high: float) -> Floats:
    """Return offsets of stacked dots, alternately above and below the middle."""
    cell = np.zeros(len(values), dtype=np.intp)
    if high > low:
        cell = ((values - low) / (high - low) * _CELLS).astype(np.intp)
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(len(values)), 0))
    index = np.arange(len(values)) - start
    height = np.where(index % 2 == 1, (index + 1) // 2, -(index // 2)).astype(np.float64)
    out = np.empty(len(values))
    out[order] = height
    largest = max(float(np.abs(out).max()), 10.0)  # small stacks stay near the line
    return out / largest


def _numbers(column: NDArray[Any]) -> Floats | None:
    """Return a column as floats, or None if it holds categories."""
    try:
        numbers: Floats = column.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers


def _levels(column: NDArray[Any]) -> Floats:
    """Return mid-ranks scaled to 0 to 1; NaN for missing values and categories."""
    numbers = _numbers(column)
    out = np.full(len(column), np.nan)
    if numbers is None:
        return out
    known = ~np.isnan(numbers)
    distinct, index = np.unique(numbers[known], return_inverse=True)
    if len(distinct) > 0:
        counts = np.bincount(index)
        middle = np.cumsum(counts) - (counts + 1) / 2
        out[known] = middle[index] / max(int(known.sum()) - 1, 1)
    return out


def calculate_shap_dependence(
    output_values: OutputValues, column: int, other: int | None
) -> ShapDependence:
    """Return a column's Shapley values by its values; `other` sets the colours."""
    values = output_values.values[:, column]
    raw = output_values.data[:, column]
    numbers = _numbers(raw)
    labels = None
    if numbers is None:
        known = np.array([value is not None and value == value for value in raw])
        labels = sorted({str(value) for value in raw[known]})
        index = {label: k for k, label in enumerate(labels)}
        numbers = np.array(
            [index[str(v)] if k else np.nan for v, k in zip(raw, known, strict=True)]
        )
    levels = np.full(len(values), np.nan)
    if other is not None:
        levels = _levels(output_values.data[:, other])
    return ShapDependence(
        output_values.names[column],
        numbers,
        labels,
        values,
        None if other is None else output_values.names[other],
        levels,
        output_values.output,
    )


def calculate_waterfall(output_values: OutputValues, row: int, max_columns: int) -> ShapWaterfall:
    """Sort the steps of one row by size; merge the smallest if there are too many."""
    values = output_values.values[row]
    order = np.argsort(-np.abs(values), kind="stable")
    shown = order if len(order) <= max_columns else order[: max_columns - 1]
    steps = [float(values[j]) for j in shown][::-1]
    labels = [
        f"{output_values.names[j]} = {_value_text(output_values.data[row, j])}" for j in shown
    ][::-1]
    rest = order[len(shown) :]
    if len(rest) > 0:
        steps.insert(0, float(values[rest].sum()))
        labels.insert(0, f"{len(rest)} other columns")
    base = float(output_values.base[row])
    starts = base + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return ShapWaterfall(
        labels, starts, np.array(steps), base, base + float(values.sum()), output_values.output
    )


def _value_text(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
