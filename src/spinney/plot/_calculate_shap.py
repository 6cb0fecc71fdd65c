"""Explanations as dots, curves and steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Dependence",
    "Summary",
    "Waterfall",
    "as_explained",
    "calculate_shap_dependence",
    "calculate_summary",
    "calculate_waterfall",
]

Floats = NDArray[np.float64]
_CELLS = 120  # along the axis, within which dots are piled up


@dataclass(frozen=True)
class Explained:
    """What plots read of an explanation, of one output."""

    values: Floats
    base: Floats
    data: NDArray[Any]
    names: list[str]
    output: str


@dataclass(frozen=True)
class Summary:
    """Parts of the columns with the largest ones, the largest first.

    Attributes
    ----------
    columns : ndarray of int
        Which columns.
    names : list of str
        Their names.
    mean : ndarray of shape (n_shown,)
        Mean absolute values.
    values, offsets, levels : ndarray of shape (n_rows, n_shown)
        Each row's part, how far from the middle of its line its dot is drawn (−1 to 1), and how
        large the column's value is among all rows (0 to 1; NaN for a missing one or a category).
    n_columns : int
        How many columns there are in all.
    output : str
        What is explained.
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
class Dependence:
    """Parts of one column by its value.

    Attributes
    ----------
    name : str
        The column.
    x : ndarray of shape (n_rows,)
        Its values, or places of its categories; NaN where missing.
    labels : list of str or None
        Its categories.
    values : ndarray of shape (n_rows,)
        Its parts.
    other : str or None
        The column that colours the dots.
    levels : ndarray of shape (n_rows,)
        How large that column's value is among all rows, 0 to 1 or NaN.
    output : str
        What is explained.
    """

    name: str
    x: Floats
    labels: list[str] | None
    values: Floats
    other: str | None
    levels: Floats
    output: str


@dataclass(frozen=True)
class Waterfall:
    """The way from the base value to one answer, the smallest step first.

    Attributes
    ----------
    labels : list of str
        Columns with their values; the first may stand for several.
    starts, steps : ndarray
        Where each step begins, and how far it goes.
    base, answer : float
        Where the way begins and ends.
    output : str
        What is explained.
    """

    labels: list[str]
    starts: Floats
    steps: Floats
    base: float
    answer: float
    output: str


def as_explained(explanation: Any, output: Any = None) -> Explained:
    """Read an explanation, ours or one of shap's, of one output."""
    needed = ("values", "base_values", "data", "feature_names")
    if not all(hasattr(explanation, name) for name in needed):
        raise TypeError(
            "explanation: expected what spinney.inspection.explain returns, got "
            f"{type(explanation).__name__}"
        )
    values = np.asarray(explanation.values, dtype=np.float64)
    base = np.asarray(explanation.base_values, dtype=np.float64)
    if values.ndim not in (2, 3) or len(values) == 0:
        raise ValueError(
            f"explanation: expected values of some rows and columns, got shape {values.shape}"
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
        raise ValueError(f"output: expected None, as there is one output only, got {output!r}")
    data = explanation.data
    data = np.full(values.shape, np.nan) if data is None else np.asarray(data)
    names = explanation.feature_names
    if names is None:
        names = [f"column {j}" for j in range(values.shape[1])]
    return Explained(values, base, data, [str(name) for name in names], title)


def calculate_summary(explained: Explained, max_columns: int) -> Summary:
    """Order columns by their mean absolute parts, and pile up dots that would cover each other."""
    mean = np.abs(explained.values).mean(axis=0)
    shown = np.argsort(-mean, kind="stable")[:max_columns]
    values = explained.values[:, shown]
    low, high = float(values.min()), float(values.max())
    offsets = np.column_stack([_offsets(column, low, high) for column in values.T])
    levels = np.column_stack([_levels(explained.data[:, j]) for j in shown])
    names = [explained.names[j] for j in shown]
    n = explained.values.shape[1]
    return Summary(shown, names, mean[shown], values, offsets, levels, n, explained.output)


def _offsets(values: Floats, low: float, high: float) -> Floats:
    """Piles of dots: rows of a cell lie above and below the middle in turns."""
    cell = np.zeros(len(values), dtype=np.intp)
    if high > low:
        cell = ((values - low) / (high - low) * _CELLS).astype(np.intp)
    order = np.argsort(cell, kind="stable")
    ordered = cell[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    start = np.maximum.accumulate(np.where(first, np.arange(len(values)), 0))
    place = np.arange(len(values)) - start
    height = np.where(place % 2 == 1, (place + 1) // 2, -(place // 2)).astype(np.float64)
    out = np.empty(len(values))
    out[order] = height
    largest = max(float(np.abs(out).max()), 10.0)  # a few dots stay near the line
    return out / largest


def _numbers(column: NDArray[Any]) -> Floats | None:
    """A column of the rows as floats, or None if it holds categories."""
    try:
        numbers: Floats = column.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers


def _levels(column: NDArray[Any]) -> Floats:
    numbers = _numbers(column)
    out = np.full(len(column), np.nan)
    if numbers is None:
        return out
    known = ~np.isnan(numbers)
    distinct, place = np.unique(numbers[known], return_inverse=True)
    if len(distinct) > 0:
        counts = np.bincount(place)
        middle = np.cumsum(counts) - (counts + 1) / 2
        out[known] = middle[place] / max(int(known.sum()) - 1, 1)
    return out


def calculate_shap_dependence(explained: Explained, column: int, other: int | None) -> Dependence:
    """Part the explanation of one column by its values; `other` colours them."""
    values = explained.values[:, column]
    raw = explained.data[:, column]
    numbers = _numbers(raw)
    labels = None
    if numbers is None:
        known = np.array([value is not None and value == value for value in raw])
        labels = sorted({str(value) for value in raw[known]})
        place = {label: k for k, label in enumerate(labels)}
        numbers = np.array(
            [place[str(v)] if k else np.nan for v, k in zip(raw, known, strict=True)]
        )
    levels = np.full(len(values), np.nan)
    if other is not None:
        levels = _levels(explained.data[:, other])
    return Dependence(
        explained.names[column],
        numbers,
        labels,
        values,
        None if other is None else explained.names[other],
        levels,
        explained.output,
    )


def calculate_waterfall(explained: Explained, row: int, max_columns: int) -> Waterfall:
    """Order the steps of one row by size; the smallest become one where there are too many."""
    values = explained.values[row]
    order = np.argsort(-np.abs(values), kind="stable")
    shown = order if len(order) <= max_columns else order[: max_columns - 1]
    steps = [float(values[j]) for j in shown][::-1]
    labels = [f"{explained.names[j]} = {_shown(explained.data[row, j])}" for j in shown][::-1]
    rest = order[len(shown) :]
    if len(rest) > 0:
        steps.insert(0, float(values[rest].sum()))
        labels.insert(0, f"{len(rest)} other columns")
    base = float(explained.base[row])
    starts = base + np.concatenate([[0.0], np.cumsum(steps)[:-1]])
    return Waterfall(
        labels, starts, np.array(steps), base, base + float(values.sum()), explained.output
    )


def _shown(value: Any) -> str:
    if value is None or value != value:
        return "missing"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
