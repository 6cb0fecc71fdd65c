"""Small charts in the cells of tables: histograms, shares and intervals."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from spinney.report.page.charts.axis import Axis
from spinney.report.page.charts.svg import coordinate, drawable, make_svg, polyline, tag

__all__ = ["draw_interval", "draw_share", "draw_sparkline", "draw_whisker"]

SPARK_WIDTH, SPARK_HEIGHT = 96.0, 22.0
WHISKER_WIDTH, WHISKER_HEIGHT = 200.0, 22.0
INSET = 8.0


def draw_sparkline(counts: Sequence[int], about: str, *, categories: bool = False) -> Markup | None:
    """Draw counts as bars; bars of categories have gaps between them."""
    counts = [max(0, count) for count in counts]
    if not any(counts):
        return None
    most, step = max(counts), SPARK_WIDTH / max(len(counts), 8 if categories else 1)
    gap = min(3.0 if categories else 1.0, step / 4)
    # One path for all bars: a page has hundreds of these drawings.
    bars = ""
    for index, count in enumerate(counts):
        if count:
            height = coordinate(max(1.0, (SPARK_HEIGHT - 1) * count / most))
            left, width = coordinate(index * step), coordinate(step - gap)
            bars += f"M{left} {coordinate(SPARK_HEIGHT)}v-{height}h{width}v{height}z"
    base = polyline([(0, SPARK_HEIGHT), (SPARK_WIDTH, SPARK_HEIGHT)], class_="axis")
    drawn = tag("path", d=bars, class_="bar")
    return make_svg(SPARK_WIDTH, SPARK_HEIGHT, about, drawn, base, class_="spark")


def draw_share(part: float, about: str) -> Markup:
    """Draw a share as a bar."""
    width = max(1.0, 160.0 * min(max(part, 0.0), 1.0)) if drawable(part) else 1.0
    bar = tag("rect", x=0.0, y=3.0, width=width, height=8.0, class_="bar")
    return make_svg(160.0, 14.0, about, bar, class_="spark")


def draw_whisker(axis: Axis, mean: float, se: float, about: str, *, best: bool) -> Markup:
    """Draw a score with one standard error; an arrow if it is beyond the axis."""
    middle = WHISKER_HEIGHT / 2
    kind = "best" if best else "rest"
    if not axis.low <= mean <= axis.high:
        tip, back = (axis.end + 5, axis.end - 4) if mean > axis.high else (2.0, 11.0)
        arrow = [(tip, middle), (back, middle - 4.5), (back, middle + 4.5), (tip, middle)]
        body = [polyline(arrow, class_=f"beyond {kind}")]
    else:
        low, high = axis.at(mean - se), axis.at(mean + se)
        body = [tag("circle", cx=axis.at(mean), cy=middle, r=4.0, class_=f"point {kind}")]
        if high > low:
            body.insert(0, polyline([(low, middle), (high, middle)], class_=f"whisker {kind}"))
    return make_svg(WHISKER_WIDTH, WHISKER_HEIGHT, about, *body, class_="spark")


def draw_interval(
    axis: Axis,
    ends: tuple[float, float],
    *,
    predicted: float | None,
    actual: float | None,
    about: str,
) -> Markup:
    """Draw an interval, the prediction as a dot and the actual value as a stroke."""
    middle = WHISKER_HEIGHT / 2
    body = [polyline([(axis.at(end), middle) for end in ends], class_="interval")]
    if predicted is not None and drawable(predicted):
        body.append(tag("circle", cx=axis.at(predicted), cy=middle, r=3.5, class_="point best"))
    if actual is not None and drawable(actual):
        x = axis.at(actual)
        body.append(polyline([(x, 3), (x, WHISKER_HEIGHT - 3)], class_="truth"))
    return make_svg(axis.end + INSET, WHISKER_HEIGHT, about, *body, class_="spark")
