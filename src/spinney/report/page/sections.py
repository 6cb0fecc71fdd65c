"""Charts and tables of all sections; None or empty if the evidence has no data for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from markupsafe import Markup

from spinney.report.evidence import Curve, Evidence, PredictedRow
from spinney.report.page import numbers
from spinney.report.page.charts.calibration import draw_calibration
from spinney.report.page.charts.confusion import (
    draw_confusion,
    hardest_classes,
    most_frequent_confusions,
)
from spinney.report.page.charts.contributions import draw_contributions, draw_explained
from spinney.report.page.charts.curves import KEYED, draw_curves, order_curves
from spinney.report.page.charts.dependence import draw_dependence, prediction_ends
from spinney.report.page.charts.importances import draw_importances
from spinney.report.page.charts.learning import draw_learning_curves, last_steps
from spinney.report.page.charts.residuals import draw_histogram, draw_predicted
from spinney.report.page.charts.svg import drawable, plain, short
from spinney.report.page.numbers import MeasureFormat
from spinney.report.page.predictions import prediction_tables

__all__ = ["Figure", "make_sections"]

LISTED_CONFUSIONS = 8


class Figure(NamedTuple):
    """A chart with its heading, caption and legend (`key`)."""

    heading: str
    drawing: Markup
    caption: str = ""
    key: tuple[tuple[str, str], ...] = ()
    more: str = ""


def make_sections(evidence: Evidence, measure: MeasureFormat) -> dict[str, Any]:
    """Return the variables of the templates."""
    target = evidence.target
    histogram = target.histogram
    confusion = evidence.confusion
    residuals = evidence.residuals
    predicted = draw_predicted(residuals) if residuals else None
    off = (
        draw_histogram(residuals.histogram, "actual − predicted", zero=True) if residuals else None
    )
    ends = prediction_ends(evidence.dependences)
    units = {column.name: "days since 1970" for column in evidence.columns if column.kind == "date"}
    return {
        "target_histogram": draw_histogram(histogram, target.name) if histogram else None,
        "learning": draw_learning_curves(evidence.learning_curves, measure),
        "last_steps": last_steps(evidence.learning_curves, measure),
        "confusion_drawing": draw_confusion(hardest_classes(confusion)) if confusion else None,
        "confusions": most_frequent_confusions(confusion, LISTED_CONFUSIONS) if confusion else [],
        "n_confused": len(hardest_classes(confusion).classes) if confusion else 0,
        "calibrations": _calibrations(evidence),
        "curves": [
            figure
            for figure in (
                _curves(evidence.rocs, "ROC", precision=False),
                _curves(evidence.precision_recalls, "Precision and recall", precision=True),
            )
            if figure
        ],
        "residual_figures": [
            Figure(heading, drawing)
            for heading, drawing in (("Actual against predicted", predicted), ("Residuals", off))
            if drawing
        ],
        "importances": _importances(evidence),
        "dependences": [
            Figure(plain(dependence.column), drawing)
            for dependence in evidence.dependences
            if (drawing := draw_dependence(dependence, ends, units.get(dependence.column, "")))
        ],
        "contribution_figures": _contributions(evidence),
        "explained_figures": _explained(evidence),
        "prediction_tables": (
            prediction_tables(evidence.predictions) if evidence.predictions else []
        ),
    }


def _calibrations(evidence: Evidence) -> list[Figure]:
    figures = []
    for calibration in evidence.calibrations:
        drawing = draw_calibration(calibration)
        if drawing is not None:
            caption = (
                f"mean distance {numbers.share(calibration.error)}; {plain(calibration.about)}"
            )
            figures.append(Figure(plain(calibration.model), drawing, caption))
    return figures


def _curves(curves: list[Curve], heading: str, *, precision: bool) -> Figure | None:
    by_model = len({curve.model for curve in curves}) > 1
    ordered = curves[:KEYED] if by_model else order_curves(curves)
    drawing = draw_curves(ordered, precision=precision)
    if drawing is None:
        return None
    key = tuple(
        (plain(curve.model if by_model else curve.about), _area(curve)) for curve in ordered[:KEYED]
    )
    if by_model:
        caption = f"area under the curve, {plain(curves[0].about)} against the rest"
    else:
        caption = f"area under the curve of {plain(curves[0].model)}, each class against the rest"
    rest = ordered[KEYED:]
    more = ""
    if rest:
        more = (
            f"The {len(ordered[:KEYED])} classes with the smallest areas; the other {len(rest)}, "
            f"in grey, have areas from {_area(rest[0])} to {_area(rest[-1])}."
        )
    return Figure(heading, drawing, caption, key, more)


def _area(curve: Curve) -> str:
    return f"{curve.area:.3f}" if drawable(curve.area) else "–"


def _importances(evidence: Evidence) -> list[Figure]:
    figures = []
    for importances in evidence.importances:
        in_percent = importances.measure == "error"
        unit = ", percentage points" if in_percent else ""
        name = "RMSE" if importances.measure == "rmse" else plain(importances.measure)
        axis_label = f"{name} gets worse by{unit}"
        drawing = draw_importances(importances, 100.0 if in_percent else 1.0, axis_label)
        if drawing is not None:
            figures.append(Figure(plain(importances.model), drawing))
    return figures


def _contributions(evidence: Evidence) -> list[Figure]:
    contributions = evidence.contributions
    drawing = draw_contributions(contributions) if contributions else None
    return (
        []
        if contributions is None or drawing is None
        else [Figure(plain(contributions.model), drawing)]
    )


def _explained(evidence: Evidence) -> list[Figure]:
    contributions = evidence.contributions
    figures = []
    for row in contributions.examples if contributions else []:
        assert contributions is not None
        about = plain(contributions.about_row(row.prediction.predicted))
        drawing = draw_explained(row, about)
        if drawing is not None:
            heading = f"{plain(row.title)}: row {row.prediction.row:,}"
            figures.append(Figure(heading, drawing, _outcome(row.prediction)))
    return figures


def _outcome(row: PredictedRow) -> str:
    """Return one line with the prediction, its interval or set, and the actual value."""
    text = f"predicted {short(row.predicted, 150)}"
    if row.probability is not None and drawable(row.probability):
        text += f" with probability {numbers.share(row.probability)}"
    if row.low is not None and row.high is not None:
        text += f", interval {numbers.value(row.low)} … {numbers.value(row.high)}"
    elif row.prediction_set:
        text += ", set of " + short(", ".join(plain(name) for name in row.prediction_set), 150)
    return f"{text}; actual {short(row.actual, 150)}"
