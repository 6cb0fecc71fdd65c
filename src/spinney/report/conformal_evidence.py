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
    """Raised if a model has no intervals or sets: its fit held out too few rows."""


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
    rows were dropped.
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
            _row_number(compared, row, numbers),
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
            # The warning about uncorrected intervals: the report shows method and coverage.
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
        codes = np.minimum(np.searchsorted(known, y), len(known) - 1)
        held = inside[np.arange(len(y)), codes] & (known[codes] == y)
        width, method = float(inside.sum(axis=1).mean()), model.set_method_
    else:
        return None
    if not math.isfinite(width):
        return None
    return OwnCoverage(fitted.name, method, coverage, float(held.mean()), len(y), width)


@dataclass(frozen=True)
class _RowPredictions:
    """Intervals or sets of all rows: observed coverage, mean size, worst rows, formatting."""

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
    half = _limits(compared, errors, coverage)
    held = errors[rows] <= half[rows]

    def show(row: int) -> PredictedRow:
        return PredictedRow(
            _row_number(compared, row, numbers),
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
        "The half-width is the quantile of absolute errors in the other folds at this coverage.",
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
    improbability = np.full(len(compared.y), np.nan)
    improbability[rows] = 1 - probabilities[rows, truth[rows]]
    # Adaptive sets, the default of `predict_set`.
    scores = np.full(probabilities.shape, np.nan)
    scores[rows] = class_scores(probabilities[rows], "aps")
    own = np.full(len(compared.y), np.nan)
    own[rows] = scores[rows, truth[rows]]
    inside = np.zeros(probabilities.shape, dtype=bool)
    inside[rows] = sets_within(scores[rows], _limits(compared, own, coverage)[rows, None])
    held = inside[rows, truth[rows]]
    most_probable = probabilities[rows].argmax(axis=1)
    code_of = dict(zip(rows.tolist(), most_probable.tolist(), strict=True))

    def show(row: int) -> PredictedRow:
        order = np.argsort(-probabilities[row], kind="stable")
        return PredictedRow(
            _row_number(compared, row, numbers),
            str(compared.y[row]),
            str(classes[code_of[row]]),
            bool(code_of[row] == truth[row]),
            probability=float(probabilities[row, code_of[row]]),
            prediction_set=[str(classes[c]) for c in order if inside[row, c]],
        )

    wrong = rows[most_probable != truth[rows]]
    worst = wrong[np.argsort(-improbability[wrong], kind="stable")[:_WORST]]
    return _RowPredictions(
        float(held.mean()),
        float(inside[rows].sum(axis=1).mean()),
        "A set contains the most probable classes until their total probability reaches the "
        "quantile of the scores in the other folds at this coverage.",
        worst,
        show,
    )


def _limits(
    compared: ComparisonData, errors: NDArray[np.float64], coverage: float
) -> NDArray[np.float64]:
    """Return the `coverage` quantile of the scores in the other folds for each row."""
    limits = np.full(len(errors), np.nan)
    for number, (_, test) in enumerate(compared.splits):
        others = np.concatenate([t for k, (_, t) in enumerate(compared.splits) if k != number])
        # With too few rows the quantile is infinite; the largest score is shown instead. (It may
        # also be minus infinity for an accurate model: its sets are the most probable class.)
        limit = largest_score(errors[others], coverage)
        limits[test] = limit if limit < math.inf else errors[others].max()
    return limits


def _typical(rows: NDArray[np.intp]) -> NDArray[np.intp]:
    chosen = np.random.default_rng(0).choice(len(rows), min(_TYPICAL, len(rows)), replace=False)
    return rows[np.sort(chosen)]


def _row_number(compared: ComparisonData, row: int, numbers: NDArray[np.intp] | None) -> int:
    """Return the row's number in the table or file, starting at 1."""
    index = int(row if compared.rows is None else compared.rows[row])
    return 1 + int(index if numbers is None else numbers[index])


def _number(value: float) -> str:
    return f"{value:.6g}"
