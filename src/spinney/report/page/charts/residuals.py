"""Residuals: predictions against the truth, and how far they are off."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.evidence import Histogram, Residuals
from spinney.report.page.charts.axis import padded
from spinney.report.page.charts.frame import make_frame
from spinney.report.page.charts.svg import coordinate, drawable, picture, plain, polyline, tag
from spinney.report.page.numbers import value

__all__ = ["draw_histogram", "draw_predicted"]

WIDTH, HEIGHT = 340.0, 290.0
CLOUDS = 12


def draw_predicted(residuals: Residuals) -> Markup | None:
    """Draw a dot for each row; on the diagonal the prediction is right."""
    pairs = [
        (predicted, actual)
        for predicted, actual in zip(residuals.predicted, residuals.actual, strict=True)
        if drawable(predicted) and drawable(actual)
    ]
    if not pairs:
        return None
    ends = padded([number for pair in pairs for number in pair], 0.03)
    frame = make_frame(WIDTH, HEIGHT, ends, ends, "predicted", "actual")
    diagonal = [(frame.x.start, frame.y.start), (frame.x.end, frame.y.end)]
    # A few paths of many dots: an element for each dot would make the page heavy, and in a single
    # path dots that lie on each other would not be darker.
    clouds = []
    for first in range(min(CLOUDS, len(pairs))):
        dots = "".join(
            f"M{coordinate(frame.x.at(predicted))} {coordinate(frame.y.at(actual))}h0"
            for predicted, actual in pairs[first::CLOUDS]
        )
        clouds.append(tag("path", d=dots, class_="cloud"))
    about = f"Actual against predicted numbers of {plain(residuals.model)}, {len(pairs)} rows"
    return picture(
        WIDTH,
        HEIGHT,
        about,
        frame.drawn,
        polyline(diagonal, class_="guide"),
        *clouds,
    )


def draw_histogram(histogram: Histogram, words: str, *, zero: bool = False) -> Markup | None:
    """Draw counts between edges; `zero` marks where nothing is off."""
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
    frame = make_frame(WIDTH, HEIGHT, ends, (0.0, most * 1.04), words, "rows")
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
    return picture(WIDTH, HEIGHT, f"Histogram of {plain(words)}", frame.drawn, *parts)
