"""Numbers, strings and tables as C writes them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["as_double", "as_string", "comment", "table"]

_WIDTH = 96


def as_double(value: float) -> str:
    """Write a number so that a compiler reads the same bits."""
    value = float(value)
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "NAN"
    return "INFINITY" if value > 0 else "-INFINITY"


def as_string(text: str) -> str:
    """Write a string literal of UTF-8 bytes."""
    written = []
    for byte in text.encode():
        # Question marks could make trigraphs; three octal digits end by themselves.
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        written.append(chr(byte) if plain else f"\\{byte:03o}")
    return f'"{"".join(written)}"'


def table(declaration: str, cells: Iterable[str]) -> str:
    """Write an array, as many cells a line as there is room."""
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    return "\n".join([f"static const {declaration} = {{", *lines, line, "};", ""])


def comment(lines: Sequence[Any]) -> str:
    """Write a comment that no line can end early, begin again, or change by a trigraph."""
    return "/* " + "\n".join(f" * {_tame(line)}".rstrip() for line in lines)[3:] + "\n */\n"


def _tame(line: Any) -> str:
    text = "".join(c if c.isprintable() else " " for c in str(line))
    for mark in ("*/", "/*", "??"):  # compilers warn of the second
        while mark in text:  # of three question marks the last two stay beside each other
            text = text.replace(mark, " ".join(mark))
    return text.rstrip(" \\")
