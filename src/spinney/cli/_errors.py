"""Errors that are the user's to mend: one line, no traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["UserError", "end_quietly", "one_line", "tell", "unknown_column"]


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


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def tell(error: BaseException) -> int:
    """Say in one line on the standard error what went wrong, and return the exit status for it.

    2 is for what the user can mend, 1 for what failed otherwise, 130 for Ctrl-C and 141 for a pipe
    whose reader has gone, which is no news. With ``SPINNEY_DEBUG`` set in the environment Python
    shows where it happened.
    """
    if isinstance(error, BrokenPipeError):
        return 141
    if isinstance(error, KeyboardInterrupt):
        message, status = "interrupted", 130
    elif isinstance(error, UserError | ValueError | OSError | TypeError):
        message, status = one_line(error), 2
        if isinstance(error, OSError) and error.strerror:  # without its number
            where = f"{error.filename}: " if error.filename else ""
            message = f"{where}{error.strerror}"
    elif isinstance(error, MemoryError):
        message, status = "not enough memory", 1
    else:
        message = f"{type(error).__name__}: {one_line(error)}"
        message, status = f"{message} (SPINNEY_DEBUG=1 shows where)", 1
    if os.environ.get("SPINNEY_DEBUG"):
        import traceback

        traceback.print_exception(error)
    print(f"spinney: {message}", file=sys.stderr)
    return status


def end_quietly() -> None:
    """Keep the interpreter from complaining about what nobody reads any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
