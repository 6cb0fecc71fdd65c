"""Reading of the model file of a command."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spinney.cli._error_messages import UserError, one_line

__all__ = ["model_path", "summary_of_fit"]

# The keys that `spinney fit` stores with a model. Callers of `spinney.save` can store any facts.
_SUMMARY = frozenset(
    {
        "model",
        "class",
        "settings",
        "data",
        "target",
        "task",
        "rows",
        "columns",
        "kinds",
        "seed",
        "scores",
        "seconds",
    }
)


def summary_of_fit(about: dict[str, Any]) -> dict[str, Any]:
    """Return the summary that `spinney fit` has stored; empty for other models."""
    training = about["training"] or {}
    return training if training.keys() >= _SUMMARY else {}


@contextmanager
def model_path(given: Path) -> Iterator[Path]:
    """Yield a path that can be read more than once.

    Standard input (``-``) and pipes are copied to a temporary file; errors name the argument.
    """
    is_input = str(given) == "-"
    if given.is_dir():
        raise UserError(f"{given} is a folder; name a model file in it")
    if not is_input and (given.is_file() or not given.exists()):
        yield given
        return
    with tempfile.NamedTemporaryFile(prefix="spinney-") as copy:
        if is_input:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        else:
            with given.open("rb") as stream:
                shutil.copyfileobj(stream, copy)
        copy.flush()
        try:
            yield Path(copy.name)
        except (UserError, ValueError, OSError) as error:
            name = "standard input" if is_input else str(given)
            raise UserError(one_line(error).replace(copy.name, name)) from error
