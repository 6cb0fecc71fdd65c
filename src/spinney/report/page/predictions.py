"""Tables of single rows: prediction, interval or set, and actual value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from spinney.report.evidence import PredictedRow, Predictions
from spinney.report.page import numbers
from spinney.report.page.charts.axis import Axis, padded
from spinney.report.page.charts.sparkline import INSET, draw_interval
from spinney.report.page.charts.svg import drawable, plain, short

__all__ = ["PredictionRow", "PredictionTable", "prediction_tables"]

WIDTH = 170.0
MOST_CLASSES = 6  # classes of a set in the table; others are only counted


@dataclass(frozen=True)
class PredictionRow:
    """The formatted cells of a row."""

    row: str
    actual: str
    predicted: str
    right: bool
    probability: str
    interval: str
    drawing: Markup | None
    prediction_set: str


@dataclass(frozen=True)
class PredictionTable:
    """Rows with a heading and the columns that they have."""

    heading: str
    rows: list[PredictionRow]
    has_interval: bool
    has_probability: bool
    has_set: bool


def prediction_tables(predictions: Predictions) -> list[PredictionTable]:
    """Return tables of a random sample and of the worst rows, with one common axis."""
    tables = [("Random rows", predictions.typical), ("Most wrong", predictions.worst)]
    every = [*predictions.typical, *predictions.worst]
    ends = [n for row in every for n in (row.low, row.high, row.actual_value) if drawable(n)]
    axis = Axis(*padded([n for n in ends if n is not None]), INSET, WIDTH - INSET)
    return [_table(heading, rows, axis) for heading, rows in tables if rows]


def _table(heading: str, rows: Sequence[PredictedRow], axis: Axis) -> PredictionTable:
    return PredictionTable(
        heading,
        [_row(row, axis) for row in rows],
        any(row.low is not None for row in rows),
        any(row.probability is not None for row in rows),
        any(row.prediction_set for row in rows),
    )


def _row(row: PredictedRow, axis: Axis) -> PredictionRow:
    interval, drawing = "", None
    if row.low is not None and row.high is not None:
        interval = f"{numbers.value(row.low)} … {numbers.value(row.high)}"
        if drawable(row.low) and drawable(row.high):
            about = f"Row {row.row}: interval {interval}, actual {plain(row.actual)}"
            drawing = draw_interval(
                axis,
                (row.low, row.high),
                predicted=row.predicted_value,
                actual=row.actual_value,
                about=about,
            )
    shown_set = ", ".join(short(name, 120) for name in row.prediction_set[:MOST_CLASSES])
    if len(row.prediction_set) > MOST_CLASSES:
        shown_set += f" and {len(row.prediction_set) - MOST_CLASSES} more"
    return PredictionRow(
        f"{row.row:,}",
        plain(row.actual),
        plain(row.predicted),
        row.right,
        "" if row.probability is None else numbers.share(row.probability),
        interval,
        drawing,
        shown_set,
    )
