"""Errors that are the user's to mend: one line, no traceback."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UserError", "unknown_column"]


class UserError(Exception):
    """Something the user can put right; the message is shown as it is, in one line."""


def unknown_column(name: str, columns: Iterable[str], where: str) -> UserError:
    """Say that there is no such column, and which one may have been meant."""
    columns = list(columns)
    by_lower_case = {column.lower(): column for column in columns}
    close = get_close_matches(name.lower(), by_lower_case, n=3)
    if close:
        meant = " or ".join(repr(by_lower_case[match]) for match in close)
        return UserError(f"no column {name!r} in {where}; did you mean {meant}?")
    shown = ", ".join(columns[:10]) + (", …" if len(columns) > 10 else "")
    return UserError(f"no column {name!r} in {where}; it has: {shown}")
