"""Errors that the user can correct: one line, no traceback."""

from __future__ import annotations

import os
import shlex
import sys
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spinney.data.messages import Parameter

__all__ = [
    "UserError",
    "discard_unwritten",
    "one_line",
    "option_text",
    "print_error",
    "replace_closed_streams",
    "shell_text",
]

_OPTIONS = {
    "cv": "--cv",
    "encoding": "--encoding",
    "groups": "--group",
    "max_rows": "--max-rows",
    "models": "--models",
    "scoring": "--metric",
    "target": "--target",
    "task": "--task",
    "time": "--time",
    "time_limit": "--time-limit",
}


class UserError(Exception):
    """An error that the user can correct; the message is printed in one line."""


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line, with options in place of parameters."""
    # Imported late, for the start-up time of --help.
    from spinney.data.errors import ParameterError
    from spinney.data.messages import join_parts

    text = str(error)
    if isinstance(error, ParameterError):
        text = join_parts(error.parts, option_text)
    return " ".join(text.split()) or type(error).__name__


def shell_text(note: str) -> str:
    """Return the text of a note with options in place of parameters."""
    # Imported late, for the start-up time of --help.
    from spinney.data.notes import Note

    return note.render(option_text) if isinstance(note, Note) else note


def option_text(parameter: Parameter) -> str:
    """Return a parameter of Python as an option of the shell.

    Examples
    --------
    >>> from spinney.data.messages import Parameter
    >>> option_text(Parameter("scoring", "mae"))
    '--metric mae'
    >>> option_text(Parameter("overrule", {"zip": "category", "id": "dropped"}))
    '--kind zip=category --drop id'
    """
    name, value = parameter.name, parameter.value
    if name == "header" and value is False:
        return "--no-header"
    if name == "overrule" and parameter.has_value:
        options = [
            f"--drop {shlex.quote(column)}"
            if kind == "dropped"
            else f"--kind {shlex.quote(f'{column}={kind}')}"
            for column, kind in value.items()
        ]
        return " ".join(options)
    if name not in _OPTIONS:
        return str(parameter)
    return f"{_OPTIONS[name]} {value}" if parameter.has_value else _OPTIONS[name]


def print_error(error: BaseException) -> int:
    """Print an error in one line on standard error and return its exit status.

    The status is 2 for an error that the user can correct, 1 for other failures, 130 for Ctrl-C
    and 141 for a closed pipe, which is not an error and prints nothing. If the environment variable
    ``SPINNEY_DEBUG`` is set, the traceback is printed, too.
    """
    if isinstance(error, BrokenPipeError):
        return 141
    if isinstance(error, KeyboardInterrupt):
        message, status = "interrupted", 130
    elif isinstance(error, UserError | ValueError | OSError | TypeError):
        message, status = one_line(error), 2
        if isinstance(error, OSError) and error.strerror:  # without the number of the error
            where = f"{error.filename}: " if error.filename else ""
            message = f"{where}{error.strerror}"
    elif isinstance(error, MemoryError):
        message, status = "not enough memory", 1
    elif isinstance(error, ModuleNotFoundError) and error.name == "pyarrow":
        message, status = "tables in files need pyarrow: pip install pyarrow", 2
    else:
        message = f"{type(error).__name__}: {one_line(error)}"
        message, status = f"{message} (SPINNEY_DEBUG=1 shows where)", 1
    if os.environ.get("SPINNEY_DEBUG"):
        traceback.print_exception(error)
    print(f"spinney: {message}", file=sys.stderr)
    return status


def replace_closed_streams() -> None:
    """Replace standard streams that the shell has closed (``spinney … >&-``) by ``os.devnull``.

    Otherwise a file that is opened later could get the descriptor 0, 1 or 2, and with it the output
    of libraries.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            empty = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 (it stays open)
            if empty.fileno() != number:
                os.dup2(empty.fileno(), number)
            setattr(sys, name, empty)


def discard_unwritten() -> None:
    """Flush the streams, so that the interpreter prints no error about a closed pipe."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(devnull, stream.fileno())
