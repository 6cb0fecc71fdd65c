"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spinney.cli._completion import complete_column
from spinney.cli._error_messages import UserError

__all__ = [
    "Data",
    "Delimiter",
    "Drop",
    "Encoding",
    "Jobs",
    "Kind",
    "NoHeader",
    "Seed",
    "Task",
    "TaskName",
    "check_jobs",
]


class TaskName(StrEnum):
    """Values of --task."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


Data = Annotated[
    list[Path],
    typer.Argument(
        help="The table: CSV (also compressed), Parquet, Arrow, Feather; several files are read as "
        "one table; - is the standard input.",
        metavar="DATA",
        show_default=False,
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help="The kind of a column, if the automatic choice is wrong: number, category, date, "
        "text, identifier; can be repeated.",
        metavar="COL=KIND",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="A column to drop; can be repeated.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
Task = Annotated[
    TaskName,
    typer.Option(
        help="classification (classes), regression (numeric target), or auto (by the values of "
        "the target).",
        metavar="TASK",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="Separator of columns in text files: a character, or tab, space, ….",
        show_default="detected",
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="Encoding of text files.", show_default="detected")
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="Text files have no header: the first line is a row, and columns are named c1, c2, ….",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the folds and of the models.", metavar="N")]
Jobs = Annotated[
    int | None,
    typer.Option(help="Number of threads; -1 is all CPUs.", metavar="N", show_default="auto"),
]


def check_jobs(jobs: int | None) -> None:
    """Raise a UserError if the number of threads is 0."""
    if jobs == 0:
        raise UserError("--jobs must be an integer other than 0 (-1: all CPUs, -2: all but one)")
