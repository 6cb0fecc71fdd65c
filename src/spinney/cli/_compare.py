"""``spinney compare``: cross-validate all models on a table and rank them."""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

import typer

from spinney.cli._completion import complete_column, complete_family, complete_measure
from spinney.cli._error_messages import UserError, one_line, shell_text
from spinney.cli._options import (
    Delimiter,
    Drop,
    Encoding,
    Jobs,
    Kind,
    NoHeader,
    Seed,
    Task,
    TaskName,
    check_jobs,
)
from spinney.comparison.families import FAMILIES

if TYPE_CHECKING:
    from spinney.comparison.comparison import Comparison
    from spinney.comparison.recipe import Origin
    from spinney.io import TrainingTable

__all__ = ["compare_command"]

_MODELS_HELP = "Models to run, separated by commas (all by default): " + ", ".join(
    family.name for family in FAMILIES
)
_SECONDS = 300.0  # default time limit
_DEMO_FOLDS = 5  # on the bundled data: half the usual number, to halve the time
_DEMO_NOTE = f"{_DEMO_FOLDS} folds, to keep this demo short; full version: spinney compare --cv 10"
_SHARE = 0.75  # of the time limit for the comparison; the rest is for the report
_FOLDER = Path("spinney-report")
_SHOWN_NAMES = 8


_Data = Annotated[
    list[Path] | None,
    typer.Argument(
        help="The table: CSV (also compressed), Parquet, Arrow or Feather; several files are "
        "read as one table; - is the standard input. Default: the bundled spam data.",
        metavar="DATA",
        show_default=False,
    ),
]
_Target = Annotated[
    str | None,
    typer.Option(
        help="The column to predict.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
_Metric = Annotated[
    str | None,
    typer.Option(
        help="The metric of the ranking: error, accuracy, balanced_accuracy, f1, log_loss, "
        "brier, roc_auc, average_precision; rmse, mae, median_absolute_error, mape, r2; or a "
        "scorer of scikit-learn.",
        metavar="NAME",
        show_default="error or rmse",
        autocompletion=complete_measure,
    ),
]
_Cv = Annotated[
    int | None,
    typer.Option(
        help="Number of folds of the cross-validation.",
        metavar="N",
        show_default=f"10, or fewer in small tables; {_DEMO_FOLDS} for the bundled data",
    ),
]
_Models = Annotated[
    str | None,
    typer.Option(
        help=_MODELS_HELP,
        metavar="A,B",
        show_default=False,
        autocompletion=complete_family,
    ),
]
_TimeLimit = Annotated[
    float | None,
    typer.Option(
        help="Time limit in seconds, 300 by default; slow models are skipped. 0: unlimited.",
        metavar="SECONDS",
        show_default=False,
    ),
]
_Group = Annotated[
    str | None,
    typer.Option(
        help="A column that is not a feature: rows with the same value are in the same fold.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
_Time = Annotated[
    str | None,
    typer.Option(
        help="A column of times: test rows are later than training rows.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
_MaxRows = Annotated[
    int | None,
    typer.Option(
        help="If the table has more rows, a stratified sample of this size is used.",
        metavar="N",
        min=2,
        show_default="by the time limit",
    ),
]
_Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for report.html and result.json.",
        metavar="DIR",
        show_default=f"{_FOLDER}; none with --json",
    ),
]


def compare_command(
    data: _Data = None,
    *,
    target: _Target = None,
    task: Task = TaskName.auto,
    metric: _Metric = None,
    cv: _Cv = None,
    models: _Models = None,
    time_limit: _TimeLimit = None,
    group: _Group = None,
    time: _Time = None,
    kind: Kind = None,
    drop: Drop = None,
    max_rows: _MaxRows = None,
    out: _Out = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Cross-validate every learner on a table, rank them, and write a report."""
    seconds = _SECONDS if time_limit is None else time_limit
    folder = _report_folder(out, time_limit=seconds, no_report=no_report, as_json=as_json)
    # Imported late, as the other commands and --help do not need the learners.
    from spinney.comparison.compare import compare
    from spinney.comparison.folds import usual_folds
    from spinney.comparison.outcomes import EndedBy

    start = perf_counter()
    check_jobs(jobs)
    options = _TableOptions(
        data=data,
        target=target,
        task=task,
        kinds=kind or [],
        drop=drop or [],
        group=group,
        time=time,
        delimiter=delimiter,
        encoding=encoding,
        header=False if no_header else None,
    )
    is_short_demo = data is None and cv is None
    with _record_warnings() as caught:
        table = _read_table(options)
        if folder is not None:
            _make_folder(folder)  # fail before the work
        if is_short_demo:
            cv = _DEMO_FOLDS
        elif cv is None:
            cv = usual_folds(table.y, table.task, table.group, table.time)
        left = max(seconds - (perf_counter() - start), 0.2 * seconds)
        result = compare(
            table.X,
            table.y,
            task=table.task,
            models=None if models is None else [m.strip() for m in models.split(",") if m.strip()],
            cv=cv,
            scoring=metric,
            groups=table.group,
            time=table.time,
            time_limit=_SHARE * left if seconds else None,
            max_rows=max_rows,
            random_state=seed,
            n_jobs=jobs,
            verbose=not quiet,
        )
    notes = [_DEMO_NOTE] if is_short_demo else []
    notes += [] if data is None else _table_notes(table)
    notes += result.notes
    notes += [one_line(warning.message) for warning in caught]  # type: ignore[arg-type]
    result = replace(result, notes=list(dict.fromkeys(map(shell_text, notes))))
    if not as_json:
        _show(table, data is not None, result, _next_step(options, result))
    interrupted = result.ended_by is EndedBy.INTERRUPT
    page = None
    if folder is not None:
        left = seconds - (perf_counter() - start) if seconds else 600.0
        if interrupted:  # after Ctrl-C the report should be quick
            left = min(left, 10.0)
        origin = _origin(table, options)
        page = _write_report(
            folder, result, table, origin=origin, seconds=max(left - 3.0, 2.0), quiet=quiet
        )
    if as_json:
        content = {"data": table.title, **result.to_dict(), "report": page and str(page)}
        typer.echo(json.dumps(content, indent=2))
    elif page is not None:
        typer.echo(f"Report: {page}")
    if interrupted:
        raise typer.Exit(130)
    if result.best is None:
        raise typer.Exit(1)


@dataclass(frozen=True)
class _TableOptions:
    """The options that choose the table and its columns."""

    data: list[Path] | None
    target: str | None
    task: TaskName
    kinds: list[str]
    drop: list[str]
    group: str | None
    time: str | None
    delimiter: str | None
    encoding: str | None
    header: bool | None

    def need_data(self) -> bool:
        """Return whether an option was given that the bundled data do not have."""
        columns = (self.target, self.kinds, self.drop, self.group, self.time)
        return any(columns) or bool(self.delimiter or self.encoding) or self.header is False


def _report_folder(
    out: Path | None, *, time_limit: float, no_report: bool, as_json: bool
) -> Path | None:
    """Check the options of the output and return the folder of the report, if there is one."""
    if not time_limit >= 0:
        raise UserError(f"--time-limit must be at least 0 (0: unlimited), got {time_limit:g}")
    if no_report and out is not None:
        raise UserError("--out and --no-report cannot be given together")
    folder = None if no_report or (as_json and out is None) else (out or _FOLDER)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder} is a file; name a folder")
    return folder


@contextmanager
def _record_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Record warnings about the data; ignore those about code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for category in (ResourceWarning, DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", category)
        yield caught


def _read_table(options: _TableOptions) -> TrainingTable:
    """Read the table of the options; without DATA, the bundled one."""
    # Imported late, as --help needs no tables.
    from spinney.cli._load_table import bundled_spam, load_training_table

    if options.data is None:
        if options.need_data():
            raise UserError(
                "--target, --drop and similar options need DATA: name a file, or omit the options"
            )
        return bundled_spam()
    return load_training_table(
        options.data,
        options.target,
        task=options.task.value,
        kinds=options.kinds,
        drop=options.drop,
        group=options.group,
        time=options.time,
        delimiter=options.delimiter,
        encoding=options.encoding,
        header=options.header,
        leaks=True,
    )


def _table_notes(table: TrainingTable) -> list[str]:
    """Return the notes on the table and its columns."""
    # Imported late, as --help needs no tables.
    from spinney.cli._load_table import is_leak, notes_on_columns

    # The notes on columns include the leaks.
    return [note for note in table.notes if not is_leak(note)] + notes_on_columns(table)


def _origin(table: TrainingTable, options: _TableOptions) -> Origin:
    """Return the Python code that reads the same table."""
    # Imported late, as --help needs no tables.
    from spinney.cli._load_table import overruled_kinds, source_of
    from spinney.comparison.recipe import Origin

    command = shlex.join(["spinney", *sys.argv[1:]])
    if options.data is None:
        load = ("X, y = spinney.datasets.load_spam(return_X_y=True)",)
        return Origin(table.name, table.target, load, command=command)
    arguments = [repr(source_of(options.data)), repr(table.target)]
    settings = {
        "task": None if options.task is TaskName.auto else options.task.value,
        "overrule": overruled_kinds(options.kinds, options.drop) or None,
        "group": options.group,
        "time": options.time,
        "delimiter": options.delimiter,
        "encoding": options.encoding,
        "header": options.header,
    }
    arguments += [f"{name}={value!r}" for name, value in settings.items() if value is not None]
    marks = {
        "groups": options.group and "data.group",
        "time": options.time and "data.time",
    }
    return Origin(
        table.name,
        table.target,
        (f"data = spinney.io.read_training_table({', '.join(arguments)})", "X, y = data.X, data.y"),
        tuple((name, value) for name, value in marks.items() if value),
        command,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: {error.strerror}") from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"--out {folder}: the folder is not writable")


def _write_report(
    folder: Path,
    result: Comparison,
    table: TrainingTable,
    *,
    origin: Origin,
    seconds: float,
    quiet: bool,
) -> Path:
    # Imported late, as --help and the other commands write no report.
    from rich.console import Console

    from spinney.report.build_evidence import build_evidence
    from spinney.report.page import write_page

    console = Console(stderr=True, quiet=quiet)
    with console.status("report") as status:
        evidence = build_evidence(
            result,
            origin=origin,
            kinds=table.kinds,
            frame=table.frame,
            row_numbers=table.rows,
            seconds=seconds,
            on_step=lambda part: status.update(f"report: {part}"),
        )
    page = folder / "report.html"
    write_page(result, evidence, page)
    content = {"data": table.title, **result.to_dict(), "settings": evidence.settings}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / "result.json").write_text(text + "\n", encoding="utf-8")
    return page


def _show(table: TrainingTable, with_kinds: bool, result: Comparison, next_step: str) -> None:
    # Imported late, as --json prints no table.
    from rich.console import Console
    from rich.text import Text

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # a closed pipe is not an error; rich would exit with 1

    console = Output(highlight=False)
    console.print(Text(table.title, style="bold"))
    for line in _kind_lines(table) if with_kinds else []:
        console.print(Text(line, style="dim"), soft_wrap=True)
    console.print(result)
    console.print(Text(next_step))


def _kind_lines(table: TrainingTable) -> list[str]:
    """Return lines that list the columns by kind."""
    by_kind: dict[str, list[str]] = {}
    for column in table.kinds.columns:
        by_kind.setdefault(column.kind, []).append(column.name)
    lines = []
    for kind, names in by_kind.items():
        shown = ", ".join(" ".join(name.split()) for name in names[:_SHOWN_NAMES])
        more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
        unused = "" if kind in ("number", "category", "date") else " (unused)"
        lines.append(f"{kind}{unused}: {shown}{more}")
    return lines


def _next_step(options: _TableOptions, result: Comparison) -> str:
    """Return a suggestion for the next command."""
    # Imported late, as --help needs no results.
    from spinney.comparison.outcomes import Failure, Stage

    if options.data is None:
        return "Next, your own table: spinney compare DATA.csv --target COLUMN"
    best = result.best
    failures = [model.failure for model in result.results if model.failure]
    if any(isinstance(f, Failure) and f.stage is Stage.FIT for f in failures):
        return "Next: --drop COL drops a column that a model does not support."
    if failures:  # the models were fitted, but the metric failed
        return "Next: --metric NAME ranks by another metric."
    if best is None:
        return "Next: --time-limit SECONDS allows more time."
    if best.name == "baseline":
        return (
            "No model beats the baseline: the columns may not be related to the target,\n"
            "or there are too few rows."
        )
    drop = (
        "Next: --drop COL drops a column, such as one that leaks the target;\n"
        "--kind COL=KIND sets the kind of a column."
    )
    classes = result.compared.classes if result.compared is not None else None
    if options.task is not TaskName.auto or (
        classes is not None and classes.dtype.kind not in "iuf"
    ):
        return drop  # the user has set the task, or the classes are names
    other = "regression" if result.task == "classification" else "classification"
    return f"The task for {options.target!r} is {result.task}; --task {other} changes it.\n{drop}"
