"""Numbers, strings, tables and comments in C syntax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["as_double", "as_string", "comment", "table"]

_WIDTH = 96


def as_double(value: float) -> str:
    """Return a number as a C literal with the same bits."""
    value = float(value)
    if math.isfinite(value):
        return repr(value)
    if math.isnan(value):
        return "NAN"
    return "INFINITY" if value > 0 else "-INFINITY"


def as_string(text: str) -> str:
    """Return a string literal of UTF-8 bytes."""
    written = []
    for byte in text.encode():
        # "?" is escaped to avoid trigraphs. Octal escapes have at most three digits.
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        written.append(chr(byte) if plain else f"\\{byte:03o}")
    return f'"{"".join(written)}"'


def table(declaration: str, cells: Iterable[str]) -> str:
    """Return an array definition with lines of limited width."""
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {cell},"
    return "\n".join([f"static const {declaration} = {{", *lines, line, "};", ""])


def comment(lines: Sequence[Any]) -> str:
    """Return a comment; comment marks and trigraphs in its lines are broken up."""
    return "/* " + "\n".join(f" * {_sanitize(line)}".rstrip() for line in lines)[3:] + "\n */\n"


def _sanitize(line: Any) -> str:
    """Return a line that is safe inside a C comment."""
    text = "".join(c if c.isprintable() else " " for c in str(line))
    for mark in ("*/", "/*", "??"):  # compilers warn about "/*" in comments
        while mark in text:  # repeated, because replacing "???" once leaves "??"
            text = text.replace(mark, " ".join(mark))
    return text.rstrip(" \\")
