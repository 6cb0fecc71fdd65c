"""Dots or bars with names and whiskers: importances, and effects of categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from spinney.report.page.charts.axis import Axis, padded
from spinney.report.page.charts.frame import fitting_ticks
from spinney.report.page.charts.svg import label, make_svg, polyline, short, tag, width_of

__all__ = ["NamedDot", "draw_dots"]

ROW, TOP, FOOT = 19.0, 6.0, 34.0


@dataclass(frozen=True)
class NamedDot:
    """A value with the ends of its whisker; `title` is its tooltip.

    `other` is a second value, drawn as a ring.
    """

    name: str
    low: float
    middle: float
    high: float
    title: str
    other: float | None = None


def draw_dots(
    dots: Sequence[NamedDot],
    axis_label: str,
    about: str,
    *,
    bars: bool = False,
    ends: tuple[float, float] | None = None,
    width: float = 360.0,
) -> Markup | None:
    """Draw the dots, or, with `bars`, bars that start at zero."""
    if not dots:
        return None
    name_room = 0.43 * width
    left = max(width_of(short(dot.name, name_room)) for dot in dots) + 10
    if ends is None:
        numbers = [number for dot in dots for number in (dot.low, dot.middle, dot.high)]
        ends = padded(numbers, around_zero=bars)
    axis = Axis(*ends, left, width - 14)
    base = TOP + ROW * len(dots)
    parts = []
    for value, text in fitting_ticks(axis, width):
        x = axis.at(value)
        parts.append(polyline([(x, TOP), (x, base + 4)], class_="grid"))
        parts.append(label(x, base + 15, text, class_="tick", text_anchor="middle"))
    if bars:
        zero = axis.at(0.0)
        parts.append(polyline([(zero, TOP), (zero, base)], class_="axis"))
    parts.append(
        label(width, base + 30, axis_label, room=width, class_="axis-label", text_anchor="end")
    )
    for number, dot in enumerate(dots):
        y = TOP + ROW * (number + 0.5)
        x, low, high = axis.at(dot.middle), axis.at(dot.low), axis.at(dot.high)
        marks = [tag("title", dot.title)]
        if bars:
            start = min(axis.at(0.0), x)
            marks.append(
                tag("rect", x=start, y=y - 5, width=max(abs(x - axis.at(0.0)), 0.5), height=10.0,
                    class_="bar")
            )  # fmt: skip
        if high > low:
            marks.append(polyline([(low, y), (high, y)], class_="whisker"))
        if not bars:
            marks.append(tag("circle", cx=x, cy=y, r=3.4, class_="dot s1"))
        if dot.other is not None:
            marks.append(tag("circle", cx=axis.at(dot.other), cy=y, r=4.4, class_="ring s2"))
        parts.append(
            label(left - 8, y + 3.6, dot.name, room=name_room, class_="name", text_anchor="end")
        )
        parts.append(tag("g", *marks))
    return make_svg(width, base + FOOT, about, *parts)
