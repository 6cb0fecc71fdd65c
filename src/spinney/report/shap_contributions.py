"""Contributions of columns to predictions (Shapley values): over many rows, and row by row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.deadline import TimeUp
from spinney.comparison.measure import class_probabilities
from spinney.data.rows import take_rows
from spinney.inspection.table_view import TableView
from spinney.report.conformal_evidence import show_rows
from spinney.report.evidence import Contributions, ExplainedRow
from spinney.report.importances_and_dependence import FittedOnFold
from spinney.report.model_explainer import Amounts, ModelExplainer

__all__ = ["contributions"]

_MOST_ROWS = 500
_FEWEST_ROWS = 30
_MOST_NUMBERS = 4_000_000  # rows × columns × classes in memory
_BACKGROUND = 1_000  # training rows that a linear model is compared with
_SAMPLED = ((200, 20), (100, 20), (50, 10), (_FEWEST_ROWS, 5))  # rows, background rows
_MOST_SECONDS = 10.0
_EXACT_SECONDS = 3.0
# Seconds per leaf and row, and per leaf, row and output. Measured with forests of 100 trees (500
# leaves and 2 classes; 3,000 leaves and 26 classes) on two cores in 2026.
_LEAF_SECONDS, _OUTPUT_SECONDS = 15e-9, 3e-9
_COLUMNS = 15  # columns in the chart with a dot for each row
_DRAWN = 200  # rows in this chart
_PARTS = 6  # columns named for a single row


def contributions(
    fitted: FittedOnFold,
    seconds: float,
    numbers: NDArray[np.intp] | None = None,
    dates: Mapping[str, Callable[[float], str]] | None = None,
) -> Contributions:
    """Explain predictions of held-out rows, exactly or by sampling as time allows.

    Parameters
    ----------
    fitted : FittedOnFold
        The model, and its rows.
    seconds : float
        The time limit; `TimeUp` is raised if sampling would take longer.
    numbers : array or None
        Row numbers in the file, if some of its rows were dropped.
    dates : dict of str to callable or None
        For each column of dates, the function that formats its numbers.
    """
    explainer = ModelExplainer(fitted.model)
    rows, n_background = _affordable(fitted, explainer, min(seconds, _MOST_SECONDS))
    X = take_rows(fitted.X, rows)
    train = fitted.train[_spread(len(fitted.train), _BACKGROUND)]
    background = None if explainer.exact and not explainer.compares else train
    table = None if background is None else take_rows(fitted.compared.X, background)
    predicted = np.asarray(fitted.model.predict(X))
    amounts = explainer.explain(X, predicted, table, max_background=n_background)
    view = TableView(X, fitted.model)
    means = np.abs(amounts.values).mean(axis=0)
    order = np.argsort(-means, kind="stable")
    first = [int(j) for j in order[:_COLUMNS] if means[j] > 0]
    drawn = slice(0, _DRAWN)
    return Contributions(
        fitted.name,
        amounts.about,
        amounts.method,
        amounts.by_row,
        len(rows),
        [view.names[j] for j in order],
        [float(means[j]) for j in order],
        [[float(v) for v in amounts.values[drawn, j]] for j in first],
        [_ranks(view, j)[drawn] for j in first],
        _examples(
            fitted,
            amounts,
            view,
            _choose(fitted, rows, X, predicted),
            rows=rows,
            numbers=numbers,
            dates=dates or {},
        ),
        amounts.output,
    )


def _affordable(
    fitted: FittedOnFold, explainer: ModelExplainer, seconds: float
) -> tuple[NDArray[np.intp], int]:
    """Return the rows to explain and the number of background rows.

    Both depend on fixed costs per row, not on measured times, so that runs are reproducible.
    """
    n_rows, n_columns = len(fitted.y), fitted.X.shape[1]
    classes = fitted.compared.classes
    n_outputs = 1 if classes is None else len(classes)
    if explainer.exact:
        row_seconds = explainer.n_leaves * (_LEAF_SECONDS + _OUTPUT_SECONDS * n_outputs)
        in_time = int(_EXACT_SECONDS / row_seconds) if row_seconds > 0 else _MOST_ROWS
        in_memory = _MOST_NUMBERS // (n_columns * n_outputs)
        most = max(_FEWEST_ROWS, min(_MOST_ROWS, in_time, in_memory))
        if most * row_seconds > seconds:
            raise TimeUp
        return _spread(n_rows, most), 0
    # The last terms are the time to build a table of changed rows for each prediction.
    row_seconds = fitted.predict_seconds / n_rows + 1e-7 * n_columns + 2e-6
    for most, n_background in _SAMPLED:
        rows = _spread(n_rows, most)
        if len(rows) * 2 * n_columns * n_background * row_seconds <= seconds:
            return rows, n_background
    raise TimeUp


def _spread(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced indices below `n_rows`."""
    n_taken = min(n_rows, most)
    return (np.arange(n_taken) * n_rows) // n_taken


def _ranks(view: TableView, j: int) -> list[float | None]:
    """Return the rank of each row's value: 0 for the lowest, 1 for the highest.

    Equal values have their mean rank; the ranks are then scaled to [0, 1].
    """
    if view.is_category(j):
        return [None] * view.n_rows
    column = view.numbers(j)
    known = np.sort(column[~np.isnan(column)])
    if len(known) == 0 or known[0] == known[-1]:
        return [None] * view.n_rows
    below, above = np.searchsorted(known, column), np.searchsorted(known, column, side="right")
    rank = (below + above).astype(np.float64)
    lowest, highest = rank[~np.isnan(column)].min(), rank[~np.isnan(column)].max()
    rank = (rank - lowest) / (highest - lowest)
    return [None if math.isnan(v) else float(r) for v, r in zip(column, rank, strict=True)]


def _examples(
    fitted: FittedOnFold,
    explained: Amounts,
    view: TableView,
    chosen: list[tuple[str, int]],
    *,
    rows: NDArray[np.intp],
    numbers: NDArray[np.intp] | None,
    dates: Mapping[str, Callable[[float], str]],
) -> list[ExplainedRow]:
    """Explain the chosen rows; `chosen` has titles and indices into `rows`."""
    titles: dict[int, str] = {}
    for title, index in chosen:
        titles.setdefault(index, title)
    given = [int(fitted.rows[rows[index]]) for index in titles]
    shown = show_rows(fitted.compared, fitted.name, given, numbers=numbers)
    values = view.values()

    def part(index: int, j: int) -> tuple[str, str, float]:
        name = view.names[j]
        return name, _written(values[index, j], dates.get(name)), float(explained.values[index, j])

    found = []
    for index, row in zip(titles, shown, strict=True):
        amounts = explained.values[index]
        order = np.argsort(-np.abs(amounts), kind="stable")
        named = [int(j) for j in order[:_PARTS] if amounts[j] != 0]
        rest = [int(j) for j in order if int(j) not in named]
        found.append(
            ExplainedRow(
                titles[index],
                row,
                float(explained.base[index]),
                _total(explained.base[index], amounts),
                [part(index, j) for j in named],
                float(amounts[rest].sum()),
                len(rest),
            )
        )
    return found


def _choose(
    fitted: FittedOnFold, rows: NDArray[np.intp], X: Any, predicted: NDArray[Any]
) -> list[tuple[str, int]]:
    """Return titles and rows: the worst, highest, median and lowest prediction."""
    y, classes = fitted.y[rows], fitted.compared.classes
    if classes is None:
        off = np.abs(y - predicted)
        titles, key = ("Lowest", "In the middle", "Highest"), predicted
    else:
        wrong = predicted != y
        titles, key = ("Least confident", "In the middle", "Most confident"), np.zeros(len(rows))
        off = wrong.astype(np.float64)
        if hasattr(fitted.model, "predict_proba"):
            shares = class_probabilities(fitted.model, X, classes)
            key = shares.max(axis=1)
            improbability = 1 - shares[np.arange(len(y)), np.searchsorted(classes, y)]
            off = np.where(wrong, improbability, 0.0)
    order = np.argsort(key, kind="stable")
    middle = order[len(order) // 2]
    chosen = [(titles[2], order[-1]), (titles[1], middle), (titles[0], order[0])]
    if off.max() > 0:
        chosen.insert(0, ("Most wrong", np.argmax(off)))
    return [(title, int(index)) for title, index in chosen]


def _total(base: float, amounts: NDArray[np.float64]) -> float:
    total = float(base + amounts.sum())
    # If the terms cancel, the rest is only a rounding error.
    largest = max(abs(float(base)), float(np.abs(amounts).max()))
    return 0.0 if abs(total) < 1e-9 * largest else total


def _written(value: Any, as_date: Callable[[float], str] | None = None) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if as_date is not None:
        return as_date(float(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
