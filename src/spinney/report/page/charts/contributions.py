"""Contributions of columns: a swarm of rows per column, and bars for single rows."""

from __future__ import annotations

import math
from collections import defaultdict

from markupsafe import Markup

from spinney.report.evidence import Contributions, ExplainedRow
from spinney.report.page.charts.axis import Axis, padded
from spinney.report.page.charts.frame import fitting_ticks
from spinney.report.page.charts.svg import (
    coordinate,
    drawable,
    label,
    make_svg,
    plain,
    polyline,
    short,
    tag,
    width_of,
)
from spinney.report.page.numbers import value

__all__ = ["draw_contributions", "draw_explained"]

WIDTH = 384.0
NAME_ROOM = 0.38 * WIDTH
ROW, TOP, FOOT = 25.0, 26.0, 36.0
DOT = 2.9  # width of a dot; the stroke width in style.css
BAR_ROW = 20.0
COLOURS = 4  # from low to high values


def draw_contributions(contributions: Contributions) -> Markup | None:
    """Draw the rows of each column as dots, blue for low values of the column, orange for high."""
    kept = [
        (column, mean, amounts, ranks)
        for column, mean, amounts, ranks in zip(
            contributions.columns,
            contributions.means,
            contributions.amounts,
            contributions.ranks,
            strict=False,
        )
        if drawable(mean) and any(drawable(amount) for amount in amounts)
    ]
    if not kept:
        return None
    texts = [value(mean) for _, mean, _, _ in kept]
    left = max(width_of(short(column, NAME_ROOM)) for column, _, _, _ in kept) + 12
    right = WIDTH - max(width_of("mean"), *(width_of(text) for text in texts)) - 12
    every = [amount for _, _, amounts, _ in kept for amount in amounts if drawable(amount)]
    axis = Axis(*padded(every, around_zero=True), left, right)
    base = TOP + ROW * len(kept)
    coloured = not contributions.by_row and any(
        p is not None for _, _, _, ranks in kept for p in ranks
    )
    parts = _scale(axis, TOP - 4, base)
    parts.append(label(WIDTH, 12, "mean", class_="tick", text_anchor="end"))
    if coloured:
        parts += _key(left)
    for number, (column, mean, amounts, ranks) in enumerate(kept):
        y = TOP + ROW * (number + 0.5)
        parts.append(
            label(left - 10, y + 3.6, column, room=NAME_ROOM, class_="name", text_anchor="end")
        )
        parts += _swarm(axis, y, amounts, ranks if coloured else [None] * len(amounts))
        title = f"{plain(column)}: {value(mean)} on average"
        text = label(WIDTH, y + 3.6, texts[number], class_="name", text_anchor="end")
        parts.append(tag("g", tag("title", title), text))
    axis_label = f"contribution to the {plain(contributions.about)}"
    parts.append(
        label(right, base + 30, axis_label, room=right, class_="axis-label", text_anchor="end")
    )
    about = f"Contributions of columns to predictions of {plain(contributions.model)}"
    return make_svg(WIDTH, base + FOOT, about, *parts)


def draw_explained(row: ExplainedRow, about: str) -> Markup | None:
    """Draw a waterfall chart from the mean output to the output of the row."""
    steps = [(_named(column, cell), amount) for column, cell, amount in row.parts]
    whole = [f"{plain(column)} = {plain(cell)}" for column, cell, _ in row.parts]
    if row.n_rest:
        others = "the other column" if row.n_rest == 1 else f"{row.n_rest:,} other columns"
        steps.append((others, row.rest))
        whole.append(others)
    levels = [row.base]
    for _, amount in steps:
        levels.append(levels[-1] + amount)
    if not all(drawable(level) for level in levels):
        return None
    names = ["mean", *(name for name, _ in steps), "this row"]
    texts = [value(row.base), *(_signed(amount) for _, amount in steps), value(row.output)]
    left = max(width_of(short(name, NAME_ROOM)) for name in names) + 12
    right = WIDTH - max(width_of(text) for text in texts) - 12
    axis = Axis(*padded(levels), left, right)
    top, base = 6.0, 6.0 + BAR_ROW * len(names)
    parts = _scale(axis, top, base, zero=False)
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        y = top + BAR_ROW * (number + 0.5)
        parts.append(
            label(left - 10, y + 3.6, name, room=NAME_ROOM, class_="name", text_anchor="end")
        )
        parts.append(label(WIDTH, y + 3.6, text, class_="name", text_anchor="end"))
        if 0 < number <= len(steps):
            start, end = axis.at(levels[number - 1]), axis.at(levels[number])
            kind = "more" if end >= start else "less"
            title = tag("title", f"{whole[number - 1]}: {text}")
            width = max(abs(end - start), 0.8)
            parts.append(
                tag("rect", title, x=min(start, end), y=y - 5.5, width=width, height=11.0,
                    class_=f"bar {kind}")
            )  # fmt: skip
        else:
            x = axis.at(levels[0] if number == 0 else levels[-1])
            parts.append(tag("circle", cx=x, cy=y, r=3.8, class_="dot s1"))
        if number:  # a connection to the end of the bar above
            x = axis.at(levels[min(number, len(levels)) - 1])
            parts.append(polyline([(x, y - BAR_ROW / 2 - 4), (x, y - 5.5)], class_="axis"))
    parts.append(label(right, base + 30, about, room=right, class_="axis-label", text_anchor="end"))
    return make_svg(
        WIDTH, base + FOOT, f"Contributions to the prediction of row {row.prediction.row}", *parts
    )


def _scale(axis: Axis, top: float, base: float, *, zero: bool = True) -> list[Markup]:
    parts = []
    for number, text in fitting_ticks(axis, WIDTH):
        x = axis.at(number)
        parts.append(polyline([(x, top), (x, base + 4)], class_="grid"))
        parts.append(label(x, base + 15, text, class_="tick", text_anchor="middle"))
    if zero:
        parts.append(polyline([(axis.at(0.0), top), (axis.at(0.0), base)], class_="axis"))
    return parts


def _key(left: float) -> list[Markup]:
    """Draw the legend of the colours."""
    parts = [label(left, 12, "low", class_="tick")]
    x = left + width_of("low") + 8
    for colour in range(1, COLOURS + 1):
        dot = f"M{coordinate(x)} 8.5h0"
        parts.append(tag("path", d=dot, class_=f"swarm v{colour}"))
        x += 7
    parts.append(label(x, 12, "high values of the column", class_="tick"))
    return parts


def _swarm(axis: Axis, y: float, amounts: list[float], ranks: list[float | None]) -> list[Markup]:
    """Draw dots at their values; stack dots that would overlap."""
    piles: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for amount, rank in zip(amounts, ranks, strict=True):
        if drawable(amount):
            x = axis.at(amount)
            colour = 0 if rank is None else 1 + min(int(rank * COLOURS), COLOURS - 1)
            piles[round(x / DOT)].append((x, colour))
    if not piles:
        return []
    tallest = max(len(pile) for pile in piles.values())
    step = min(DOT * 0.9, (ROW / 2 - DOT / 2 - 1) / max(math.ceil((tallest - 1) / 2), 1))
    dots: dict[int, str] = defaultdict(str)
    for pile in piles.values():
        # Sorted by colour, so that a rare colour stays visible.
        for number, (x, colour) in enumerate(sorted(pile, key=lambda dot: dot[1])):
            away = step * math.ceil(number / 2) * (1 if number % 2 else -1)
            dots[colour] += f"M{coordinate(x)} {coordinate(y + away)}h0"
    return [tag("path", d=dots[colour], class_=f"swarm v{colour}") for colour in sorted(dots)]


def _named(column: str, cell: str) -> str:
    """Return "column = value", with both truncated if they are long."""
    cell = short(cell, 0.4 * NAME_ROOM)
    return f"{short(column, NAME_ROOM - width_of(f' = {cell}') - 2)} = {cell}"


def _signed(amount: float) -> str:
    return f"+{value(amount)}" if amount > 0 else value(amount)
