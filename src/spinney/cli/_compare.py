"""``spinney compare``: cross-validate all models on a table and rank them."""

from __future__ import annotations

import json
import os
import shlex
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.cli._completion import complete_column, complete_family, complete_measure
from spinney.cli._errors import UserError, one_line, shell_text
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
from spinney.comparison.outcomes import EndedBy, Failure, Stage

if TYPE_CHECKING:
    from spinney.comparison.comparison import Comparison
    from spinney.comparison.recipe import Origin
    from spinney.io import TrainingTable

__all__ = ["compare"]

_MODELS_HELP = "Models to run, separated by commas (all by default): " + ", ".join(
    family.name for family in FAMILIES
)
_SECONDS = 300.0  # default time limit
_DEMO_FOLDS = 5  # on the bundled data: half as many as usual take half the time
_DEMO_NOTE = f"{_DEMO_FOLDS} folds, to keep this demo short; full version: spinney compare --cv 10"
_SHARE = 0.75  # of the time limit for the comparison; the rest is for the report
_FOLDER = Path("spinney-report")
_SHOWN_NAMES = 8


def compare(
    data: Annotated[
        list[Path] | None,
        typer.Argument(
            help="The table: CSV (also packed), Parquet, Arrow or Feather; several files are one "
            "table; - is the standard input. Without it the bundled spam data are used.",
            metavar="DATA",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            help="The column to predict.",
            metavar="COL",
            show_default=False,
            autocompletion=complete_column,
        ),
    ] = None,
    task: Task = TaskName.auto,
    metric: Annotated[
        str | None,
        typer.Option(
            help="The measure to rank by: error, accuracy, balanced_accuracy, f1, log_loss, brier, "
            "roc_auc, average_precision; rmse, mae, median_absolute_error, mape, r2; or a scorer "
            "of scikit-learn.",
            metavar="NAME",
            show_default="error or rmse",
            autocompletion=complete_measure,
        ),
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            help="Number of folds of the cross-validation.",
            metavar="N",
            show_default=f"10, or fewer in small tables; {_DEMO_FOLDS} for the bundled data",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(
            help=_MODELS_HELP,
            metavar="A,B",
            show_default=False,
            autocompletion=complete_family,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Time limit in seconds, 300 by default; slow models are skipped. 0: unlimited.",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(
            help="Rows with the same value of this column stay together in a fold; it is not a "
            "feature.",
            metavar="COL",
            show_default=False,
            autocompletion=complete_column,
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            help="A column of times: test rows are later than training rows.",
            metavar="COL",
            show_default=False,
            autocompletion=complete_column,
        ),
    ] = None,
    kind: Kind = None,
    drop: Drop = None,
    max_rows: Annotated[
        int | None,
        typer.Option(
            help="If the table has more rows, a stratified sample of this size is used.",
            metavar="N",
            min=2,
            show_default="by the time limit",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report.html and result.json.",
            metavar="DIR",
            show_default=f"{_FOLDER}; none with --json",
        ),
    ] = None,
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
    if time_limit is None:
        time_limit = _SECONDS
    if not time_limit >= 0:
        raise UserError(f"--time-limit must be 0 (none) or more seconds, got {time_limit:g}")
    if no_report and out is not None:
        raise UserError("--out and --no-report cannot be given together")
    folder = None if no_report or (as_json and out is None) else (out or _FOLDER)
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UserError(f"--out {folder} is a file; name a folder")

    from spinney.cli._training_table import (
        bundled_spam,
        is_leak,
        notes_on_columns,
        overruled_kinds,
        read_training_table,
        source_of,
    )
    from spinney.comparison.compare import compare as run
    from spinney.comparison.folds import usual_folds

    start = perf_counter()
    header = False if no_header else None
    check_jobs(jobs)
    demo_notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for kind_of_warning in (ResourceWarning, DeprecationWarning, PendingDeprecationWarning):
            warnings.simplefilter("ignore", kind_of_warning)  # about code, not about data
        if data is None:
            about_data = (target, kind, drop, group, time, delimiter, encoding, no_header)
            if any(value for value in about_data):
                raise UserError(
                    "--target, --drop and their like are about DATA: name a file, or leave them out"
                )
            table = bundled_spam()
            if cv is None:
                cv = _DEMO_FOLDS
                demo_notes = [_DEMO_NOTE]
        else:
            table = read_training_table(
                data,
                target,
                task=task.value,
                kinds=kind or [],
                drop=drop or [],
                group=group,
                time=time,
                delimiter=delimiter,
                encoding=encoding,
                header=header,
                leaks=True,
            )
        if folder is not None:
            _make_folder(folder)  # fail before the work
        left = max(time_limit - (perf_counter() - start), 0.2 * time_limit)
        result = run(
            table.X,
            table.y,
            task=table.task,
            models=None if models is None else [m.strip() for m in models.split(",") if m.strip()],
            cv=usual_folds(table.y, table.task, table.group, table.time) if cv is None else cv,
            scoring=metric,
            groups=table.group,
            time=table.time,
            time_limit=_SHARE * left if time_limit else None,
            max_rows=max_rows,
            random_state=seed,
            n_jobs=jobs,
            verbose=not quiet,
        )
    notes: list[str] = demo_notes
    if data is not None:
        # The notes on columns include the leaks.
        notes += [note for note in table.notes if not is_leak(note)]
        notes += notes_on_columns(table)
    notes += result.notes
    notes += [one_line(warning.message) for warning in caught]  # type: ignore[arg-type]
    result = replace(result, notes=list(dict.fromkeys(map(shell_text, notes))))
    interrupted = result.ended_by is EndedBy.INTERRUPT
    if not as_json:
        _show(table, data is not None, result, _next_step(data, target, task, result))
    page = None
    if folder is not None:
        left = time_limit - (perf_counter() - start) if time_limit else 600.0
        if interrupted:  # after Ctrl-C the report should be quick
            left = min(left, 10.0)
        origin = _origin(
            table,
            None if data is None else source_of(data),
            task.value,
            overruled_kinds(kind or [], drop or []),
            group,
            time,
            {"delimiter": delimiter, "encoding": encoding, "header": header},
        )
        page = _write_report(folder, result, table, origin, max(left - 3.0, 2.0), quiet)
    if as_json:
        content = {"data": table.title, **result.to_dict(), "report": page and str(page)}
        typer.echo(json.dumps(content, indent=2))
    elif page is not None:
        typer.echo(f"Report: {page}")
    if interrupted:
        raise typer.Exit(130)
    if result.best is None:
        raise typer.Exit(1)


def _origin(
    table: TrainingTable,
    source: Any,
    task: str,
    overrule: dict[str, str],
    group: str | None,
    time: str | None,
    reading: dict[str, Any],
) -> Origin:
    """Return the Python code that reads the same table."""
    from spinney.comparison.recipe import Origin

    command = shlex.join(["spinney", *sys.argv[1:]])
    if source is None:
        load = ("X, y = spinney.datasets.load_spam(return_X_y=True)",)
        return Origin(table.name, table.target, load, command=command)
    arguments = [repr(source), repr(table.target)]
    asked = {"task": task if task != "auto" else None, "overrule": overrule or None}
    asked |= {"group": group, "time": time, **reading}
    arguments += [f"{name}={value!r}" for name, value in asked.items() if value is not None]
    marks = {"groups": group and "data.group", "time": time and "data.time"}
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
        raise UserError(f"--out {folder}: it cannot be written to")


def _write_report(
    folder: Path,
    result: Comparison,
    table: TrainingTable,
    origin: Origin,
    seconds: float,
    quiet: bool,
) -> Path:
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
            tell=lambda part: status.update(f"report: {part}"),
        )
    page = folder / "report.html"
    write_page(result, evidence, page)
    content = {"data": table.title, **result.to_dict(), "settings": evidence.settings}
    text = json.dumps(content, indent=2, ensure_ascii=False)
    (folder / "result.json").write_text(text + "\n", encoding="utf-8")
    return page


def _show(table: TrainingTable, with_kinds: bool, result: Comparison, next_step: str) -> None:
    from rich.console import Console
    from rich.text import Text

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # a closed pipe is not an error; rich would exit with 1

    console = Output(highlight=False)
    console.print(Text(table.title, style="bold"))
    for line in _kinds_in_words(table) if with_kinds else []:
        console.print(Text(line, style="dim"), soft_wrap=True)
    console.print(result)
    console.print(Text(next_step))


def _kinds_in_words(table: TrainingTable) -> list[str]:
    """Return lines that list the columns by kind."""
    by_kind: dict[str, list[str]] = {}
    for column in table.kinds.columns:
        by_kind.setdefault(column.kind, []).append(column.name)
    lines = []
    for kind, names in by_kind.items():
        shown = ", ".join(" ".join(name.split()) for name in names[:_SHOWN_NAMES])
        more = f" and {len(names) - _SHOWN_NAMES:,} more" if len(names) > _SHOWN_NAMES else ""
        left_out = "" if kind in ("number", "category", "date") else " (left out)"
        lines.append(f"{kind}{left_out}: {shown}{more}")
    return lines


def _next_step(
    data: list[Path] | None, target: str | None, task: TaskName, result: Comparison
) -> str:
    if data is None:
        return "Next, your own table: spinney compare DATA.csv --target COLUMN"
    best = result.best
    failures = [model.failure for model in result.results if model.failure]
    if any(isinstance(f, Failure) and f.stage is Stage.FIT for f in failures):
        return "Next: --drop COL leaves out a column that a model cannot read."
    if failures:  # the models were fitted, but calculating the measure failed
        return "Next: --metric NAME ranks by another measure."
    if best is None:
        return "Next: give it more time, with --time-limit."
    if best.name == "baseline":
        return (
            "No model beats the baseline: the columns may say nothing about the target,\n"
            "or the rows may be too few."
        )
    drop = (
        "Next: --drop COL leaves out a column, such as one that gives the answer away;\n"
        "--kind COL=KIND says what one holds."
    )
    classes = result.compared.classes if result.compared is not None else None
    if task is not TaskName.auto or (classes is not None and classes.dtype.kind not in "iuf"):
        return drop  # there is no other task: the user has said so, or the classes are names
    if result.task == "classification":
        return f"{target!r} was taken for classes; for numbers say --task regression.\n{drop}"
    return f"{target!r} was taken for numbers; for classes say --task classification.\n{drop}"
