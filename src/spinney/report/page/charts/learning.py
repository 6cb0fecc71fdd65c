"""Learning curves: the metric by the number of training rows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from spinney.report.evidence import LearningCurve
from spinney.report.page.charts.axis import padded
from spinney.report.page.charts.frame import TOP, make_frame
from spinney.report.page.charts.svg import (
    drawable,
    label,
    make_svg,
    plain,
    polyline,
    short,
    tag,
    width_of,
)
from spinney.report.page.numbers import MeasureFormat

__all__ = ["LastStep", "draw_learning_curves", "last_steps"]

WIDTH, HEIGHT = 400.0, 260.0
NAME_ROOM, NAME_STEP = 126.0, 13.0
MOST = 6  # distinguishable colours and dashes


class LastStep(NamedTuple):
    """The change of the metric between the last two points of a learning curve."""

    model: str
    rows: str
    change: str


def draw_learning_curves(curves: Sequence[LearningCurve], measure: MeasureFormat) -> Markup | None:
    """Draw the curves with bands of one standard error and names at their ends."""
    shown = [(curve.model, _points(curve, measure)) for curve in curves[:MOST]]
    shown = [(model, points) for model, points in shown if points]
    if not shown:
        return None
    sizes = [float(size) for _, points in shown for size, _, _ in points]
    ends = [mean + sign * se for _, points in shown for _, mean, se in points for sign in (-1, 1)]
    names = [short(model, NAME_ROOM) for model, _ in shown]
    right = max(width_of(name) for name in names) + 20
    x_ends = (min(sizes), max(sizes)) if max(sizes) > min(sizes) else padded(sizes)
    frame = make_frame(
        (WIDTH, HEIGHT), x_ends, padded(ends), "training rows", measure.heading,
        right=right, logarithmic=True,
    )  # fmt: skip
    bands, lines = [], []
    ends_at: list[tuple[float, float]] = []
    for number, (model, points) in enumerate(shown, 1):
        dots = [(frame.x.at(size), frame.y.at(mean)) for size, mean, _ in points]
        upper = [(frame.x.at(size), frame.y.at(mean + se)) for size, mean, se in points]
        lower = [(frame.x.at(size), frame.y.at(mean - se)) for size, mean, se in points]
        if len(points) > 1 and any(se > 0 for _, _, se in points):
            bands.append(polyline([*upper, *reversed(lower)], class_=f"band s{number}"))
        if len(points) > 1:
            lines.append(polyline(dots, class_=f"line s{number}"))
        for (x, y), (size, mean, _) in zip(dots, points, strict=True):
            title = f"{plain(model)}, {size:,} rows: {measure.number(mean / measure.scale)}"
            lines.append(
                tag("circle", tag("title", title), cx=x, cy=y, r=2.6, class_=f"dot s{number}")
            )
        ends_at.append(dots[-1])
    names_at = spread([y for _, y in ends_at], NAME_STEP)
    for number, ((model, _), (x, y), name_y) in enumerate(
        zip(shown, ends_at, names_at, strict=True), 1
    ):
        left = frame.x.end + 14
        lines.append(polyline([(x, y), (left - 3, name_y)], class_=f"leader s{number}"))
        lines.append(label(left, name_y + 3.5, model, room=NAME_ROOM, class_=f"name s{number}"))
    about = "Learning curves of " + ", ".join(plain(model) for model, _ in shown)
    return make_svg(WIDTH, HEIGHT, about, frame.drawn, *bands, *lines)


def last_steps(curves: Sequence[LearningCurve], measure: MeasureFormat) -> list[LastStep]:
    """Return the last change of the metric for each model in the chart."""
    steps = []
    for curve in curves[:MOST]:
        points = _points(curve, measure)
        if len(points) > 1:
            (fewer, before, _), (more, after, _) = points[-2:]
            change = (after - before) / measure.scale
            sign = "+" if change > 0 else ""
            steps.append(
                LastStep(plain(curve.model), f"{fewer:,} → {more:,}",
                         f"{sign}{measure.number(change)}")
            )  # fmt: skip
    return steps


def _points(curve: LearningCurve, measure: MeasureFormat) -> list[tuple[int, float, float]]:
    points = []
    for size, mean, se in sorted(zip(curve.sizes, curve.means, curve.ses, strict=True)):
        if size > 0 and drawable(mean * measure.scale):
            spread_of_mean = se * measure.scale if drawable(se * measure.scale) else 0.0
            points.append((size, mean * measure.scale, spread_of_mean))
    return points


def spread(heights: Sequence[float], step: float) -> list[float]:
    """Move heights apart until neighbours differ by `step`, as little as possible."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    moved = list(heights)
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + step)
    limit = HEIGHT - 40.0
    for after in reversed(order):
        moved[after] = min(moved[after], limit)
        limit = moved[after] - step
    return [max(height, TOP - 4) for height in moved]
