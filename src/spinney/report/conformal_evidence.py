"""Conformal intervals and prediction sets of out-of-fold predictions, and their coverage."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.comparison_data import ComparisonData
from spinney.conformal.rules import class_scores, largest_score, sets_within
from spinney.report.evidence import OwnCoverage, PredictedRow, Predictions
from spinney.report.importances_and_dependence import FittedOnFold

__all__ = ["NoHeldOutRows", "own_coverage", "predicted_rows", "show_rows"]

_TYPICAL = 8
_WORST = 8


class NoHeldOutRows(Exception):
    """A model cannot make intervals or sets: its fit held out no rows, or too few."""


def predicted_rows(
    compared: ComparisonData,
    name: str,
    coverage: float = 0.9,
    numbers: NDArray[np.intp] | None = None,
) -> Predictions | None:
    """Return out-of-fold predictions with cross-conformal intervals or prediction sets.

    The half-width of a row's interval is the `coverage` quantile of the errors in the *other*
    folds, so a row does not affect its own interval. Returns None for a single fold and for a
    classifier without probabilities. `numbers` are the row numbers in the file, if some of its
    rows were left out.
    """
    found = _predict_rows(compared, name, coverage, numbers)
    if found is None:
        return None
    return Predictions(
        name,
        coverage,
        found.reached,
        found.width,
        found.method,
        [found.show(row) for row in _typical(compared.tested)],
        [found.show(row) for row in found.worst],
    )


def show_rows(
    compared: ComparisonData,
    name: str,
    rows: list[int],
    coverage: float = 0.9,
    numbers: NDArray[np.intp] | None = None,
) -> list[PredictedRow]:
    """Return single rows as `predicted_rows` does, without intervals if it has none."""
    found = _predict_rows(compared, name, coverage, numbers)
    if found is not None:
        return [found.show(row) for row in rows]
    predicted = compared.predictions(name)
    write = str if compared.classes is not None else _number
    return [
        PredictedRow(
            _given_row(compared, row, numbers),
            write(compared.y[row]),
            write(predicted[row]),
            bool(predicted[row] == compared.y[row]),
        )
        for row in rows
    ]


def own_coverage(fitted: FittedOnFold, coverage: float = 0.9) -> OwnCoverage | None:
    """Measure the coverage of the model's own intervals or sets on held-out rows.

    Returns None if the model has neither; raises `NoHeldOutRows` if its fit held out too few rows.
    """
    model, y = fitted.model, fitted.y
    classes = fitted.compared.classes
    if not getattr(model, "_holds_out_rows", True):
        return None
    if classes is None and hasattr(model, "predict_interval"):
        with warnings.catch_warnings():
            # Of intervals that nothing corrects: the method's words and what they held say it.
            warnings.simplefilter("ignore", UserWarning)
            try:
                low, high = np.asarray(model.predict_interval(fitted.X, coverage=coverage)).T
            except ValueError as error:
                raise NoHeldOutRows from error
        held, width = (low <= y) & (y <= high), float(np.median(high - low))
        method = model.interval_method_
    elif classes is not None and hasattr(model, "predict_set"):
        try:
            inside = np.asarray(model.predict_set(fitted.X, coverage=coverage))
        except ValueError as error:
            raise NoHeldOutRows from error
        known = np.asarray(model.classes_)
        places = np.minimum(np.searchsorted(known, y), len(known) - 1)
        held = inside[np.arange(len(y)), places] & (known[places] == y)
        width, method = float(inside.sum(axis=1).mean()), model.set_method_
    else:
        return None
    if not math.isfinite(width):
        return None
    return OwnCoverage(fitted.name, method, coverage, float(held.mean()), len(y), width)


@dataclass(frozen=True)
class _RowPredictions:
    """Intervals or sets of all rows."""

    reached: float
    width: float
    method: str
    worst: NDArray[np.intp]
    show: Callable[[int], PredictedRow]


def _predict_rows(
    compared: ComparisonData, name: str, coverage: float, numbers: NDArray[np.intp] | None
) -> _RowPredictions | None:
    if len(compared.splits) < 2:
        return None
    if compared.classes is None:
        return _intervals(compared, name, coverage, numbers)
    return _sets(compared, name, coverage, numbers)


def _intervals(
    compared: ComparisonData, name: str, coverage: float, numbers: NDArray[np.intp] | None
) -> _RowPredictions:
    rows = compared.tested
    predicted, actual = compared.predictions(name), compared.y
    errors = np.abs(actual - predicted)
    half = _allowed(compared, errors, coverage)
    held = errors[rows] <= half[rows]

    def show(row: int) -> PredictedRow:
        return PredictedRow(
            _given_row(compared, row, numbers),
            _number(actual[row]),
            _number(predicted[row]),
            bool(errors[row] <= half[row]),
            low=float(predicted[row] - half[row]),
            high=float(predicted[row] + half[row]),
            actual_value=float(actual[row]),
            predicted_value=float(predicted[row]),
        )

    worst = rows[np.argsort(-errors[rows], kind="stable")[:_WORST]]
    return _RowPredictions(
        float(held.mean()),
        float(np.median(2 * half[rows])),
        "The half-width is the quantile of the errors in the other folds at this coverage.",
        worst,
        show,
    )


def _sets(
    compared: ComparisonData, name: str, coverage: float, numbers: NDArray[np.intp] | None
) -> _RowPredictions | None:
    probabilities = compared.probabilities(name)
    if probabilities is None or compared.classes is None:
        return None
    rows, classes = compared.tested, compared.classes
    truth = np.searchsorted(classes, compared.y)
    doubt = np.full(len(compared.y), np.nan)
    doubt[rows] = 1 - probabilities[rows, truth[rows]]
    # The sets of `predict_set`: adaptive ones.
    scores = np.full(probabilities.shape, np.nan)
    scores[rows] = class_scores(probabilities[rows], "aps")
    own = np.full(len(compared.y), np.nan)
    own[rows] = scores[rows, truth[rows]]
    inside = np.zeros(probabilities.shape, dtype=bool)
    inside[rows] = sets_within(scores[rows], _allowed(compared, own, coverage)[rows, None])
    held = inside[rows, truth[rows]]
    likeliest = probabilities[rows].argmax(axis=1)
    place = dict(zip(rows.tolist(), likeliest.tolist(), strict=True))

    def show(row: int) -> PredictedRow:
        order = np.argsort(-probabilities[row], kind="stable")
        return PredictedRow(
            _given_row(compared, row, numbers),
            str(compared.y[row]),
            str(classes[place[row]]),
            bool(place[row] == truth[row]),
            probability=float(probabilities[row, place[row]]),
            prediction_set=[str(classes[c]) for c in order if inside[row, c]],
        )

    wrong = rows[likeliest != truth[rows]]
    worst = wrong[np.argsort(-doubt[wrong], kind="stable")[:_WORST]]
    return _RowPredictions(
        float(held.mean()),
        float(inside[rows].sum(axis=1).mean()),
        "A set has the classes from the likeliest on, until their probabilities add up to what "
        "this share of the other folds' rows need to reach their own class.",
        worst,
        show,
    )


def _allowed(
    compared: ComparisonData, errors: NDArray[np.float64], coverage: float
) -> NDArray[np.float64]:
    """Return for each row the `coverage` quantile of the scores in the other folds."""
    allowed = np.full(len(errors), np.nan)
    for number, (_, test) in enumerate(compared.splits):
        others = np.concatenate([t for k, (_, t) in enumerate(compared.splits) if k != number])
        # With too few rows the quantile is infinite; the largest score is shown instead. (It may
        # also be minus infinity for an accurate model: its sets are the most probable class.)
        limit = largest_score(errors[others], coverage)
        allowed[test] = limit if limit < math.inf else errors[others].max()
    return allowed


def _typical(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    chosen = np.random.default_rng(0).choice(len(rows), min(_TYPICAL, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _given_row(compared: ComparisonData, row: int, numbers: NDArray[np.intp] | None) -> int:
    """Return the row's number in the table or file, counted from one."""
    place = int(row if compared.rows is None else compared.rows[row])
    return 1 + int(place if numbers is None else numbers[place])


def _number(value: float) -> str:
    return f"{value:.6g}"
