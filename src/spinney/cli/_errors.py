"""Errors that are the user's to mend: one line, no traceback."""

from __future__ import annotations

import os
import re
import sys

__all__ = ["UserError", "end_quietly", "one_line", "replace_closed_streams", "tell"]

# Parameters as errors name them, and options as they are typed; not within quotes.
_OPTIONS = [
    (re.compile(rf"(?<![\w'\"-]){parameter}(?==| must\b| has no\b| is empty\b)"), option)
    for parameter, option in {
        "cv": "--cv",
        "scoring": "--metric",
        "models": "--models",
        "task": "--task",
        "n_jobs": "--jobs",
        "time_limit": "--time-limit",
        "max_rows": "--max-rows",
    }.items()
]
_VALUE = re.compile(r"(--(?:cv|metric|task))=('?)([\w.]+)\2")


class UserError(Exception):
    """Something the user can put right; the message is shown as it is, in one line."""


def one_line(error: BaseException) -> str:
    """Return what an error says, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def in_words_of_the_shell(message: str) -> str:
    """Name options instead of parameters of Python: ``task='regression'``, ``cv must be``.

    Examples
    --------
    >>> in_words_of_the_shell("scoring='mae' is for regression")
    '--metric mae is for regression'
    >>> in_words_of_the_shell("cv must be between 2 and the number of rows (60), got 1")
    '--cv must be between 2 and the number of rows (60), got 1'
    """
    for parameter, option in _OPTIONS:
        message = parameter.sub(option, message)
    return _VALUE.sub(r"\1 \3", message)


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
        message, status = in_words_of_the_shell(one_line(error)), 2
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


def replace_closed_streams() -> None:
    """Put empty streams where the shell has closed one (``spinney … >&-``): Python has None there.

    Files that are opened later could get the number of a stream that is missing, and with it what
    libraries write there; so all three numbers are taken.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            nothing = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 (it stays open)
            if nothing.fileno() != number:
                os.dup2(nothing.fileno(), number)
            setattr(sys, name, nothing)


def end_quietly() -> None:
    """Keep the interpreter from complaining about what nobody reads any more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
