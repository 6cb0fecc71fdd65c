"""Words of others on the page: names of columns, classes and models, whatever is in them."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.page.charts.svg import is_control, plain

__all__ = ["clip", "listing", "model_name", "word"]

LONGEST = 72  # characters of a name that are shown; the rest is under the pointer


def clip(text: str, most: int = LONGEST) -> str:
    """Return the text in one line, cut where it is very long."""
    text = plain(text)
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def word(text: str, most: int = LONGEST, kind: str = "long") -> Markup:
    """Return the text in an element of its own, so that its direction changes nothing around it."""
    whole, shown = plain(text), clip(text, most)
    if shown == whole:
        return Markup('<bdi class="{}">{}</bdi>').format(kind, shown)
    return Markup('<bdi class="{}" title="{}">{}</bdi>').format(kind, whole[:1000], shown)


def listing(code: str) -> str:
    """Return lines of a program without what cannot be written, or would hide what they do."""
    return "".join(char for char in code if char in "\n\t" or not is_control(char))


def model_name(name: str) -> Markup:
    """Return the name of a model as it is typed."""
    return word(name, 48, "model")
