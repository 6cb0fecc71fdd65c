"""SVG elements as text: escaped, with finite coordinates only."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Sequence

from markupsafe import Markup, escape

from spinney.tree.export.describe import fit_text, text_width

__all__ = [
    "LARGEST",
    "TEXT",
    "coordinate",
    "drawable",
    "is_control",
    "label",
    "make_svg",
    "plain",
    "polyline",
    "short",
    "tag",
    "thin_out",
    "width_of",
]

TEXT = 10.5  # font size in every chart, in the units of its view box
LARGEST = 1e300  # larger values are not drawn: their differences would overflow
DIRECTION_MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
WIDE = 1.13  # the browser's font may be wider than the font of `text_width`
LONGEST = 160  # characters of a label that are considered before it is truncated


def drawable(value: float | None) -> bool:
    """Whether a value can be drawn: finite, and not too large."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def plain(text: str) -> str:
    """Return the text in one line, without control characters, and never empty."""
    spaced = (" " if char.isspace() else char for char in str(text))
    return " ".join("".join(c for c in spaced if not is_control(c)).split()) or "(empty)"


def is_control(char: str) -> bool:
    """Whether a character must not occur in the page.

    Surrogates cannot be encoded; direction marks would reverse the text after them.
    """
    return char in DIRECTION_MARKS or unicodedata.category(char) in {"Cc", "Cs"}


def width_of(text: str, size: float = TEXT) -> float:
    """Return the approximate width of a text."""
    return WIDE * text_width(text[:LONGEST], size)


def short(text: str, room: float, size: float = TEXT) -> str:
    """Return the text in one line, truncated to the room."""
    text = plain(text)
    return fit_text(text[:LONGEST] + ("…" if len(text) > LONGEST else ""), room / WIDE, size)


def tag(name: str, *children: object, **attributes: object) -> Markup:
    """Return an element; ``class_`` and ``x_y`` become ``class`` and ``x-y``."""
    written = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _attribute(value))
        for key, value in attributes.items()
        if value is not None
    )
    if not children:
        return Markup("<{0}{1}/>").format(Markup(name), written)
    body = Markup("").join(escape(child) for child in children)
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), written, body)


def _attribute(value: object) -> str:
    return coordinate(value) if isinstance(value, float) else str(value)


def coordinate(value: float) -> str:
    """Return a coordinate with two decimals; raise ValueError if it is not finite."""
    if not math.isfinite(value):
        raise ValueError(f"a coordinate must be finite, got {value}")
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def label(
    x: float,
    y: float,
    text: str,
    *,
    room: float | None = None,
    size: float | None = None,
    **attributes: object,
) -> Markup:
    """Return a text element; a text truncated to the room has a tooltip."""
    shown = text if room is None else short(text, room, size or TEXT)
    whole = plain(text) if room is not None else text
    title = [tag("title", whole)] if shown != whole else []
    return tag("text", shown, *title, x=float(x), y=float(y), font_size=size, **attributes)


def polyline(points: Iterable[tuple[float, float]], **attributes: object) -> Markup:
    """Return a path through points."""
    path = "L".join(f"{coordinate(x)} {coordinate(y)}" for x, y in points)
    return tag("path", d=f"M{path}", **attributes)


def thin_out(points: Sequence[tuple[float, float]], step: float) -> list[tuple[float, float]]:
    """Drop points less than a step from the point before, but keep the last point."""
    kept: list[tuple[float, float]] = []
    for point in points:
        if not kept or math.dist(kept[-1], point) >= step:
            kept.append(point)
    if kept and kept[-1] != points[-1]:
        kept.append(points[-1])
    return kept


def make_svg(
    width: float, height: float, about: str, *body: object, class_: str = "chart"
) -> Markup:
    """Return an <svg> element; `about` is its accessible name."""
    return tag(
        "svg",
        *body,
        class_=class_,
        viewBox=f"0 0 {coordinate(width)} {coordinate(height)}",
        width=float(width),
        height=float(height),
        # A larger chart would have larger text than the page.
        style=f"max-width:{coordinate(1.25 * width)}px" if class_ == "chart" else None,
        role="img",
        aria_label=plain(about),
    )
