"""Predicted against actual values, and histograms of residuals."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.evidence import Histogram, ResidualSummary
from spinney.report.page.charts.axis import padded
from spinney.report.page.charts.frame import make_frame
from spinney.report.page.charts.svg import coordinate, drawable, make_svg, plain, polyline, tag
from spinney.report.page.numbers import value

__all__ = ["draw_histogram", "draw_predicted"]

WIDTH, HEIGHT = 340.0, 290.0
CLOUDS = 12


def draw_predicted(residuals: ResidualSummary) -> Markup | None:
    """Draw a dot for each row; on the diagonal the prediction is right."""
    pairs = [
        (predicted, actual)
        for predicted, actual in zip(residuals.predicted, residuals.actual, strict=True)
        if drawable(predicted) and drawable(actual)
    ]
    if not pairs:
        return None
    ends = padded([number for pair in pairs for number in pair], 0.03)
    frame = make_frame((WIDTH, HEIGHT), ends, ends, "predicted", "actual")
    diagonal = [(frame.x.start, frame.y.start), (frame.x.end, frame.y.end)]
    # A few paths of many dots: an element for each dot would make the page heavy, and in a
    # single path dots that overlap would not be darker.
    clouds = []
    for first in range(min(CLOUDS, len(pairs))):
        dots = "".join(
            f"M{coordinate(frame.x.at(predicted))} {coordinate(frame.y.at(actual))}h0"
            for predicted, actual in pairs[first::CLOUDS]
        )
        clouds.append(tag("path", d=dots, class_="cloud"))
    about = f"Actual against predicted values of {plain(residuals.model)}, {len(pairs)} rows"
    return make_svg(
        WIDTH,
        HEIGHT,
        about,
        frame.drawn,
        polyline(diagonal, class_="guide"),
        *clouds,
    )


def draw_histogram(histogram: Histogram, axis_label: str, *, zero: bool = False) -> Markup | None:
    """Draw counts between edges; `zero` marks a residual of zero."""
    bars = [
        (low, high, count)
        for low, high, count in zip(
            histogram.edges, histogram.edges[1:], histogram.counts, strict=False
        )
        if drawable(low) and drawable(high) and high >= low
    ]
    if not any(count > 0 for _, _, count in bars):
        return None
    ends = padded([edge for low, high, _ in bars for edge in (low, high)], 0.0)
    most = float(max(count for _, _, count in bars))
    frame = make_frame((WIDTH, HEIGHT), ends, (0.0, most * 1.04), axis_label, "rows")
    parts = []
    for low, high, count in bars:
        if count <= 0:
            continue
        x0, x1, y = frame.x.at(low), frame.x.at(high), frame.y.at(float(count))
        title = f"{value(low)} to {value(high)}: {count:,} rows"
        width = max(x1 - x0 - 1, 0.6)
        height = frame.y.start - y
        parts.append(
            tag("rect", tag("title", title), x=x0, y=y, width=width, height=height, class_="bar")
        )
    if zero and ends[0] < 0 < ends[1]:
        x = frame.x.at(0.0)
        parts.append(polyline([(x, frame.y.start), (x, frame.y.end)], class_="guide strong"))
    return make_svg(WIDTH, HEIGHT, f"Histogram of {plain(axis_label)}", frame.drawn, *parts)
