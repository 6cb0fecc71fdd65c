"""Diagnostics of out-of-fold predictions: confusion, ROC, calibration, residuals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.comparison.comparison_data import ComparisonData
from spinney.plot.calculate_scores import (
    ModelScores,
    Rates,
    calculate_calibration,
    calculate_confusion,
    calculate_precision_recall,
    calculate_roc,
)
from spinney.report.evidence import CalibrationCurve, ConfusionMatrix, Curve, ResidualSummary
from spinney.report.profile import histogram_of

__all__ = ["calibration_curves", "count_confusion", "rate_curves", "summarize_residuals"]

_MOST_CURVES = 60  # classes with a curve of their own
_MOST_POINTS = 200  # per curve
_MOST_DOTS = 1_500  # predicted against actual values
_TAIL = 0.005  # share of the residuals at either end that the histogram omits


def count_confusion(compared: ComparisonData, name: str) -> ConfusionMatrix:
    """Return the confusion matrix of out-of-fold predictions."""
    rows = compared.tested
    predicted = compared.predictions(name)[rows].astype(compared.y.dtype)
    counted = calculate_confusion(predicted, None, compared.y[rows])
    return ConfusionMatrix(name, counted.classes, [[int(n) for n in row] for row in counted.counts])


def calibration_curves(compared: ComparisonData, names: list[str]) -> list[CalibrationCurve]:
    """Return calibration curves of the models that predict probabilities."""
    found = []
    for name in names:
        scores, y = _class_scores(compared, name)
        if scores is None:
            continue
        positive = scores.classes[1] if len(scores.classes) == 2 else None
        curve = calculate_calibration(scores, y, strategy="quantile", positive=positive)
        distance = np.abs(curve.predicted - curve.observed)
        found.append(
            CalibrationCurve(
                name,
                curve.event,
                [float(p) for p in curve.predicted],
                [float(p) for p in curve.observed],
                [int(n) for n in curve.counts],
                float(np.average(distance, weights=curve.counts)),
            )
        )
    return found


def rate_curves(compared: ComparisonData, names: list[str]) -> tuple[list[Curve], list[Curve]]:
    """Return ROC and precision–recall curves.

    Two classes: one curve per model. More classes: one curve per class of the first model.
    """
    assert compared.classes is not None
    rocs: list[Curve] = []
    precisions: list[Curve] = []
    two = len(compared.classes) == 2
    for name in names if two else names[:1]:
        scores, y = _class_scores(compared, name)
        if scores is None:
            continue
        classes, counts = np.unique(y, return_counts=True)
        shown = classes[np.argsort(-counts, kind="stable")[:_MOST_CURVES]]
        for label in [scores.classes[1]] if two else shown:
            positive = y == label
            if not positive.any() or positive.all():
                continue
            roc = calculate_roc(scores, y, positive=label)
            rocs.append(_curve(name, label, roc, 0.5))
            precision = calculate_precision_recall(scores, y, positive=label)
            precisions.append(_curve(name, label, precision, float(positive.mean())))
    return rocs, precisions


def summarize_residuals(compared: ComparisonData, name: str) -> ResidualSummary:
    """Summarize the residuals of out-of-fold predictions."""
    rows = compared.tested
    predicted, actual = compared.predictions(name)[rows], compared.y[rows]
    left = actual - predicted
    ends = np.quantile(left, [_TAIL, 1 - _TAIL])
    inner = histogram_of(left[(left >= ends[0]) & (left <= ends[1])], bins=40)
    assert inner is not None or not np.isfinite(left).all()
    shown = _even_sample(len(rows), _MOST_DOTS)
    return ResidualSummary(
        name,
        [float(v) for v in predicted[shown]],
        [float(v) for v in actual[shown]],
        inner or histogram_of(np.zeros(1)),  # type: ignore[arg-type]
        bias=float(left.mean()),
        median_absolute=float(np.median(np.abs(left))),
        within_90=float(np.quantile(np.abs(left), 0.9)),
    )


def _class_scores(compared: ComparisonData, name: str) -> tuple[ModelScores | None, NDArray[Any]]:
    assert compared.classes is not None
    probabilities = compared.probabilities(name)
    if probabilities is None:
        return None, compared.y
    rows = compared.tested
    return ModelScores(name, compared.classes, probabilities[rows], True), compared.y[rows]


def _curve(name: str, label: Any, rates: Rates, floor: float) -> Curve:
    shown = _even_sample(len(rates.across), _MOST_POINTS)
    return Curve(
        name,
        str(label),
        [float(v) for v in rates.across[shown]],
        [float(v) for v in rates.up[shown]],
        float(rates.area),
        floor,
    )


def _even_sample(n: int, most: int) -> NDArray[np.intp]:
    """Return at most `most` evenly spaced indices below n, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.intp))
