"""``spinney compare``: which learner does best on a table."""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.cli._errors import UserError
from spinney.report.families import FAMILIES

if TYPE_CHECKING:
    from spinney.report.comparison import Comparison

__all__ = ["compare"]

_MODELS_HELP = "Models to run, separated by commas (all by default): " + ", ".join(
    family.name for family in FAMILIES
)


class _Task(StrEnum):
    auto = "auto"
    classification = "classification"
    regression = "regression"


@dataclass(frozen=True)
class _Data:
    """What is compared on."""

    title: str
    X: Any
    y: Any
    categorical_features: Any
    notes: list[str]


def compare(
    data: Annotated[
        str | None,
        typer.Argument(
            help="The table: CSV (also packed), Parquet, Arrow or Feather; a file, a pattern or -. "
            "Without it the bundled spam data are used.",
            metavar="DATA",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="The column to predict.", metavar="COL", show_default=False)
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            help="A column to leave out; may be given several times.",
            metavar="COL",
            show_default=False,
        ),
    ] = None,
    task: Annotated[
        _Task,
        typer.Option(
            help="classification (classes), regression (numbers), or auto: look at the target.",
            metavar="TASK",
        ),
    ] = _Task.auto,
    cv: Annotated[
        int, typer.Option(help="Number of folds of the cross-validation.", metavar="N")
    ] = 10,
    models: Annotated[
        str | None, typer.Option(help=_MODELS_HELP, metavar="A,B", show_default=False)
    ] = None,
    seed: Annotated[
        int, typer.Option(help="Seed of the folds and of the models.", metavar="N")
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(help="Number of threads; -1 is all CPUs.", metavar="N", show_default="auto"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress bar.")] = False,
) -> None:
    """Cross-validate every learner on a table, and rank them by their error."""
    source = _spam(target, drop) if data is None else _file(data, target, drop or [])

    from spinney._threads import effective_n_jobs
    from spinney.report.compare import compare as run

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            if jobs is not None:
                effective_n_jobs(jobs)  # refused here, and not once for every model
            result = run(
                source.X,
                source.y,
                task=task.value,
                models=None if models is None else [m.strip() for m in models.split(",")],
                cv=cv,
                random_state=seed,
                n_jobs=jobs,
                categorical_features=source.categorical_features,
                verbose=not quiet,
            )
        except ValueError as error:
            raise UserError(" ".join(str(error).split())) from error
    said = dict.fromkeys(" ".join(str(warning.message).split()) for warning in caught)
    result = replace(result, notes=[*source.notes, *result.notes, *said])
    if as_json:
        typer.echo(json.dumps({"data": source.title, **result.to_dict()}, indent=2))
    else:
        _show(source.title, result, _next_step(data, target, task, result))
    if result.best is None:
        raise typer.Exit(1)


def _spam(target: str | None, drop: list[str] | None) -> _Data:
    if target is not None or drop:
        raise UserError("--target and --drop are about DATA: name a file, or leave them out")
    from spinney.datasets import load_spam

    X, y = load_spam(return_X_y=True)
    return _Data("spam (bundled): is a mail spam?", X, y, "from_dtype", [])


def _file(path: str, target: str | None, drop: list[str]) -> _Data:
    import numpy as np

    from spinney.cli._errors import unknown_column
    from spinney.io import decide_kinds, read_table
    from spinney.report.rows import take_rows
    from spinney.report.target import missing_rows

    try:
        table = read_table(path)
    except (ValueError, OSError) as error:
        raise UserError(" ".join(str(error).split())) from error
    if target is None:
        shown = ", ".join(table.columns[:10]) + (", …" if len(table.columns) > 10 else "")
        raise UserError(f"say which column to predict: --target COL; {table.name} has: {shown}")
    for name in [target, *drop]:
        if name not in table.columns:
            raise unknown_column(name, table.columns, table.name)
    if target in drop:
        raise UserError(f"{target!r} cannot be both --target and --drop")
    y = table.frame.select([target])  # a column by itself has no name
    try:
        kinds = decide_kinds(table.frame, target, overrule=dict.fromkeys(drop, "dropped"))
        X = kinds.prepare(table.frame)
    except ValueError as error:
        raise UserError(f"{table.name}: {error}") from error
    left_out = [column for column in kinds.columns if column.name not in {*kinds.used, *drop}]
    notes = [*table.notes]
    notes += [f"left out {column.name!r}: {column.reason}" for column in left_out]
    missing = missing_rows(y)
    if missing.all():
        raise UserError(f"target {target!r} has no value in any row of {table.name}")
    if missing.any():
        kept = np.flatnonzero(~missing)
        X, y = take_rows(X, kept), take_rows(y, kept)
        count = f"{missing.sum():,} row{'s' if missing.sum() > 1 else ''}"
        notes.append(f"left out {count} without a value of {target!r}")
    return _Data(f"{table.name}: {target}", X, y, "from_dtype", notes)


def _show(title: str, result: Comparison, next_step: str) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    console.print(Text(title, style="bold"))
    console.print(result)
    console.print(Text(next_step))


def _next_step(data: str | None, target: str | None, task: _Task, result: Comparison) -> str:
    if data is None:
        return "Next, your own table: spinney compare DATA.csv --target COLUMN"
    best = result.best
    if best is None or any(model.failure for model in result.results):
        return "Next: --drop COL leaves out a column that a model cannot read."
    if best.name == "baseline":
        return (
            "No model beats the baseline: the columns may say nothing about the target,\n"
            "or the rows may be too few."
        )
    drop = "Next: --drop COL leaves out a column, such as one that gives the answer away."
    if task is not _Task.auto:
        return drop
    if result.task == "classification":
        return f"{target!r} was taken for classes; for numbers say --task regression.\n{drop}"
    return f"{target!r} was taken for numbers; for classes say --task classification.\n{drop}"
