"""Charts of partial dependence and accumulated local effects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from spinney.report.evidence import DependenceCurve
from spinney.report.page.charts.axis import padded
from spinney.report.page.charts.dots import NamedDot, draw_dots
from spinney.report.page.charts.frame import make_frame
from spinney.report.page.charts.svg import coordinate, drawable, make_svg, plain, polyline, tag
from spinney.report.page.numbers import share, value

__all__ = ["draw_dependence", "prediction_ends"]

WIDTH, HEIGHT = 276.0, 214.0
RUG = 12.0  # height of the tallest stroke, which shows the number of rows near a value
MOST_CATEGORIES = 12


def prediction_ends(dependences: Sequence[DependenceCurve]) -> tuple[float, float]:
    """Return the ends of the prediction axis, the same for all columns."""
    numbers = [
        number
        for d in dependences
        for number in (*d.means, *d.lows, *d.highs, *(level for _, level in _near(d)))
        if drawable(number)
    ]
    return padded(numbers)


def draw_dependence(
    dependence: DependenceCurve, ends: tuple[float, float], unit: str = ""
) -> Markup | None:
    """Draw a line with a band (numeric column) or dots with whiskers (categories)."""
    about = f"Partial dependence of {plain(dependence.model)} on {plain(dependence.column)}"
    # Values without a drawable prediction are skipped in all of these lists.
    columns = (dependence.means, dependence.lows, dependence.highs, dependence.weights)
    rows: list[tuple[Any, float, float, float, float]] = [
        row
        for row in zip(dependence.values, *columns, strict=True)
        if all(drawable(number) for number in row[1:4])
    ]
    if any(isinstance(level, str) for level in dependence.values):
        effects = {str(category): effect for category, effect in _near(dependence)}
        dots = [
            NamedDot(
                str(category),
                low,
                mean,
                high,
                _title(str(category), mean, low, high, weight),
                effects.get(str(category)),
            )
            for category, mean, low, high, weight in rows[:MOST_CATEGORIES]
        ]
        return draw_dots(dots, dependence.about, about, ends=ends, width=WIDTH)
    points = sorted(
        (float(x), mean, low, high, weight if drawable(weight) else 0.0)
        for x, mean, low, high, weight in rows
        if drawable(float(x))
    )
    if not points:
        return None
    xs = [point[0] for point in points]
    x_ends = (xs[0], xs[-1]) if xs[-1] > xs[0] else padded(xs)
    span = ends[1] - ends[0]
    # Space for the rug below the lowest prediction.
    y_ends = (ends[0] - span * 0.08, ends[1])
    frame = make_frame((WIDTH, HEIGHT), x_ends, y_ends, unit, dependence.about)
    parts = _rug(frame.x.at, frame.y.start, [(p[0], p[4]) for p in points])
    means = [(frame.x.at(p[0]), frame.y.at(p[1])) for p in points]
    if len(points) > 1:
        upper = [(frame.x.at(p[0]), frame.y.at(p[3])) for p in points]
        lower = [(frame.x.at(p[0]), frame.y.at(p[2])) for p in points]
        parts.append(polyline([*upper, *reversed(lower)], class_="band s1"))
        parts.append(polyline(means, class_="line s1"))
    for (x, y), (number, mean, low, high, weight) in zip(means, points, strict=True):
        title = _title(f"{plain(dependence.column)} = {value(number)}", mean, low, high, weight)
        radius = 3.4 if len(points) == 1 else 1.6
        parts.append(tag("circle", tag("title", title), cx=x, cy=y, r=radius, class_="dot s1"))
    local = [(frame.x.at(float(x)), frame.y.at(level)) for x, level in _near(dependence)]
    if len(local) > 1:
        title = tag("title", "accumulated local effects")
        path = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in local)
        parts.append(tag("path", title, d=f"M{path}", class_="line s2"))
    return make_svg(WIDTH, HEIGHT, about, frame.drawn, *parts)


def _near(dependence: DependenceCurve) -> list[tuple[float | str, float]]:
    """Return accumulated effects within the range of the partial dependence."""
    kept = [
        (x, level)
        for x, level in dependence.accumulated
        if drawable(level) and (isinstance(x, str) or drawable(x))
    ]
    numbers = [p for p in dependence.values if not isinstance(p, str) and drawable(p)]
    if not numbers:
        return kept
    low, high = min(numbers), max(numbers)
    points = sorted((float(x), level) for x, level in kept if not isinstance(x, str))
    inside: list[tuple[float | str, float]] = [p for p in points if low <= p[0] <= high]
    # Interpolate at an end of the range inside a segment.
    for end in (low, high):
        for (x, a), (z, b) in pairwise(points):
            if x < end < z:
                inside.append((end, a + (b - a) * ((end - x) / (z - x))))
    return sorted(inside, key=lambda point: float(point[0]))


def _rug(
    at: Callable[[float], float], base: float, weights: Sequence[tuple[float, float]]
) -> list[Markup]:
    most = max(weight for _, weight in weights)
    if not most > 0:
        return []
    return [
        polyline([(at(x), base), (at(x), base - RUG * weight / most)], class_="rug")
        for x, weight in weights
        if weight > 0
    ]


def _title(text: str, mean: float, low: float, high: float, weight: float) -> str:
    rows = f", {share(weight)} of rows" if drawable(weight) else ""
    return f"{plain(text)}: {value(mean)}, 80 % between {value(low)} and {value(high)}{rows}"
