"""Names of columns, classes and models as HTML; they may contain any character."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.page.charts.svg import is_control, plain

__all__ = ["clip", "listing", "model_name", "name_html"]

LONGEST = 72  # characters of a name; the tooltip has the whole name


def clip(text: str, most: int = LONGEST) -> str:
    """Return the text in one line, truncated to `most` characters."""
    text = plain(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def name_html(text: str, most: int = LONGEST, kind: str = "long") -> Markup:
    """Return the text in a <bdi> element, which isolates its writing direction."""
    whole, shown = plain(text), clip(text, most)
    if shown == whole:
        return Markup('<bdi class="{}">{}</bdi>').format(kind, shown)
    return Markup('<bdi class="{}" title="{}">{}</bdi>').format(kind, whole[:1000], shown)


def listing(code: str) -> str:
    """Return source code without control characters, which could hide parts of it."""
    return "".join(char for char in code if char in "\n\t" or not is_control(char))


def model_name(name: str) -> Markup:
    """Return the name of a model in the style of code."""
    return name_html(name, 48, "model")
