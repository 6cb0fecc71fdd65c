"""The frame of a chart: two axes with ticks and labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from spinney.report.page.charts.axis import LOG_SPAN, Axis
from spinney.report.page.charts.svg import TEXT, label, tag, width_of

__all__ = ["Frame", "make_frame"]

TOP, FOOT, RIGHT = 22.0, 36.0, 12.0  # margins for the axis labels


@dataclass(frozen=True)
class Frame:
    """A horizontal and a vertical axis; `drawn` is their SVG."""

    x: Axis
    y: Axis
    drawn: Markup


def make_frame(
    size: tuple[float, float],
    x_ends: tuple[float, float],
    y_ends: tuple[float, float],
    x_label: str,
    y_label: str,
    *,
    right: float = RIGHT,
    logarithmic: bool = False,
) -> Frame:
    """Return the axes of a chart of this size; `right` is the margin on the right."""
    width, height = size
    y = Axis(*y_ends, height - FOOT, TOP)
    y_ticks = y.ticks(6)
    left = max((width_of(text) for _, text in y_ticks), default=0.0) + 10
    logarithmic = logarithmic and x_ends[0] > 0 and x_ends[1] >= LOG_SPAN * x_ends[0]
    x = Axis(*x_ends, left, width - right, logarithmic)
    parts = []
    for value, text in y_ticks:
        at = y.at(value)
        parts.append(tag("line", x1=left, x2=x.end, y1=at, y2=at, class_="grid"))
        parts.append(label(left - 6, at + 3.5, text, class_="tick", text_anchor="end"))
    base = y.start
    parts.append(tag("line", x1=left, x2=x.end, y1=base, y2=base, class_="axis"))
    for value, text in fitting_ticks(x, width):
        at = x.at(value)
        parts.append(tag("line", x1=at, x2=at, y1=base, y2=base + 4, class_="axis"))
        parts.append(label(at, base + 15, text, class_="tick", text_anchor="middle"))
    parts.append(label(0, 10, y_label, room=width, class_="axis-label"))
    if x_label:
        parts.append(
            label(x.end, base + 30, x_label, room=width, class_="axis-label", text_anchor="end")
        )
    return Frame(x, y, Markup("").join(parts))


def fitting_ticks(axis: Axis, width: float, size: float = TEXT) -> Sequence[tuple[float, str]]:
    """Return as many ticks as fit without overlap."""
    ticks: list[tuple[float, str]] = []
    for at_most in range(7, 1, -1):
        ticks = axis.ticks(at_most)
        centres = [(axis.at(value), width_of(text, size) / 2) for value, text in ticks]
        clear = all(
            before + half + 6 <= after - other
            for (before, half), (after, other) in itertools.pairwise(centres)
        )
        if clear:
            break
    return [
        (value, text)
        for value, text in ticks
        if width_of(text, size) / 2 <= axis.at(value) <= width + 2 - width_of(text, size) / 2
    ]
