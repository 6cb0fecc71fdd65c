"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from spinney.cli._completion import complete_column
from spinney.cli._errors import UserError

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
    """What is to be predicted."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


Data = Annotated[
    list[Path],
    typer.Argument(
        help="The table: CSV (also packed), Parquet, Arrow, Feather; several files are one table; "
        "- is the standard input.",
        metavar="DATA",
        show_default=False,
    ),
]
Kind = Annotated[
    list[str] | None,
    typer.Option(
        help="What a column holds, where the guess is wrong: number, category, date, text, "
        "identifier; may be given several times.",
        metavar="COL=KIND",
        show_default=False,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="A column to leave out; may be given several times.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
Task = Annotated[
    TaskName,
    typer.Option(
        help="classification (classes), regression (numbers), or auto: look at the target.",
        metavar="TASK",
    ),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        help="What separates columns of text files: a character, or tab, space, ….",
        show_default="found out",
    ),
]
Encoding = Annotated[
    str | None, typer.Option(help="How text files are encoded.", show_default="found out")
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        help="The first line of text files is a row; columns are called c1, c2, ….",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the folds and of the models.", metavar="N")]
Jobs = Annotated[
    int | None,
    typer.Option(help="Number of threads; -1 is all CPUs.", metavar="N", show_default="auto"),
]


def check_jobs(jobs: int | None) -> None:
    """Raise a UserError if the number of threads makes no sense."""
    if jobs == 0:
        raise UserError("--jobs must be a number other than 0 (-1: every CPU, -2: all but one)")
