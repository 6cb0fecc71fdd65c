"""``spinney fit``: fit one model to a table and write it to a file."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.cli._completion import complete_column, complete_model
from spinney.cli._error_messages import UserError, one_line, shell_text
from spinney.cli._models import MODEL_NAMES, check_model_name, create_model
from spinney.cli._options import (
    Data,
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

if TYPE_CHECKING:
    from spinney.comparison.comparison import Estimate
    from spinney.io import TrainingTable

__all__ = ["fit"]


_Target = Annotated[
    str,
    typer.Option(help="The column to predict.", metavar="COL", autocompletion=complete_column),
]
_Model = Annotated[
    str,
    typer.Option(
        help="The model to fit: " + ", ".join(MODEL_NAMES),
        metavar="NAME",
        autocompletion=complete_model,
    ),
]
_Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="Output file; - is the standard output.", metavar="FILE"),
]
_Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="A parameter of the model; can be repeated. Values are numbers, true, false, "
        "null, lists such as [1,2], or plain text.",
        metavar="PARAM=VALUE",
        show_default=False,
    ),
]
_Cv = Annotated[
    int | None,
    typer.Option(help="Number of folds of an additional cross-validation.", metavar="N"),
]


def fit(
    data: Data,
    *,
    target: _Target,
    model: _Model,
    output: _Output,
    settings: _Settings = None,
    kind: Kind = None,
    drop: Drop = None,
    task: Task = TaskName.auto,
    cv: _Cv = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
) -> None:
    """Fit one model to a table and write it to a file."""
    # Imported late, so that --help and completion start fast.
    from spinney.cli._settings import apply_settings, parse_settings

    check_model_name(model)
    wanted = parse_settings(settings or [])
    if output.is_dir():
        raise UserError(f"-o {output} is a folder; name a file in it")
    if not output.parent.is_dir():  # fail before the work
        raise UserError(f"-o {output}: the folder {output.parent} does not exist")

    # Imported late, so that --help and completion start fast.
    from spinney.cli._load_table import load_training_table, notes_on_columns

    check_jobs(jobs)
    table = load_training_table(
        data,
        target,
        task=task.value,
        kinds=kind or [],
        drop=drop or [],
        delimiter=delimiter,
        encoding=encoding,
        header=False if no_header else None,
    )
    unfitted = apply_settings(create_model(model, table.task, seed, jobs), wanted, model)
    folds = _cross_validate(unfitted, table, cv, seed) if cv is not None else None
    fitted, seconds, warned = _fit(unfitted, table, model)
    summary = _summary(
        fitted, table, folds, name=model, settings=wanted, seed=seed, seconds=seconds
    )
    notes = [*table.notes, *notes_on_columns(table), *warned]
    summary["notes"] = [shell_text(note) for note in notes]
    summary["bytes"] = _write(fitted, output, summary)
    if quiet:
        return
    text = json.dumps(summary, indent=2) if as_json else _as_text(summary, output)
    typer.echo(text, err=str(output) == "-")


def _fit(model: Any, table: TrainingTable, name: str) -> tuple[Any, float, list[str]]:
    """Return the fitted model, the time of the fit and the texts of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        start = perf_counter()
        try:
            model.fit(table.X, table.y)
        except (ValueError, TypeError) as error:
            raise UserError(f"{name}: {one_line(error)}{_hint(model, table, error)}") from error
        seconds = perf_counter() - start
    return model, seconds, list(dict.fromkeys(one_line(w.message) for w in caught))  # type: ignore[arg-type]


def _hint(model: Any, table: TrainingTable, error: Exception) -> str:
    """Return a hint if the table has categories and the model supports only numbers."""
    # Imported late, so that --help and completion start fast.
    from sklearn.utils._param_validation import InvalidParameterError

    from spinney.comparison.scaled_table import ScaledTable

    categories = [column.name for column in table.kinds.columns if column.kind == "category"]
    supports_categories = "categorical_features" in model.get_params()
    if not categories or supports_categories or isinstance(model, ScaledTable):
        return ""
    if isinstance(error, InvalidParameterError):
        return ""
    return f" (columns of categories: {', '.join(categories[:5])}; --drop COL drops one)"


def _error(predicted: Any, y: Any, task: str) -> float:
    # Imported late, so that --help and completion start fast.
    import numpy as np

    if task == "classification":
        return float(np.mean(predicted != y))
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def _cross_validate(model: Any, table: TrainingTable, cv: int, seed: int) -> Estimate:
    # Imported late, so that --help and completion start fast.
    from sklearn.base import clone

    from spinney.comparison.comparison import Estimate
    from spinney.comparison.folds import make_folds
    from spinney.data.rows import take_rows

    folds = make_folds(table.y, table.task, cv, groups=None, time=None, random_state=seed, notes=[])
    errors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the fit on all rows has issued the same warnings
        for train, test in folds.splits:
            fitted = clone(model).fit(take_rows(table.X, train), table.y[train])
            predicted = fitted.predict(take_rows(table.X, test))
            errors.append(_error(predicted, table.y[test], table.task))
    return Estimate.from_folds(errors)


def _summary(
    model: Any,
    table: TrainingTable,
    folds: Estimate | None,
    *,
    name: str,
    settings: dict[str, Any],
    seed: int,
    seconds: float,
) -> dict[str, Any]:
    """Return a summary of the fit, which is also stored in the model file."""
    measure = "error" if table.task == "classification" else "rmse"
    scores: dict[str, Any] = {
        "measure": measure,
        "training": _error(model.predict(table.X), table.y, table.task),
    }
    if folds is not None:
        scores["cross_validation"] = {"mean": folds.mean, "standard_error": folds.se}
    return {
        "model": name,
        "class": type(model).__name__,
        "settings": settings,
        "data": table.name,
        "target": table.target,
        "task": table.task,
        "rows": len(table.y),
        "columns": len(table.kinds.used),
        "kinds": table.kinds.to_dict(),
        "seed": seed,
        "scores": scores,
        "seconds": seconds,
    }


def _write(model: Any, output: Path, summary: dict[str, Any]) -> int:
    """Write the model and return its size."""
    # Imported late, so that --help and completion start fast.
    from spinney.model_file.files import model_to_bytes, write_model

    if str(output) == "-":
        written = model_to_bytes(model, training=summary)
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
        return len(written)
    return write_model(model, output, summary)


def _as_text(summary: dict[str, Any], output: Path) -> str:
    # Imported late, so that --help and completion start fast.
    from spinney.comparison.number_format import shown_error, shown_size, shown_time

    scores = summary["scores"]
    lines = [
        f"{summary['model']} ({summary['class']}) on {summary['data']}: {summary['target']}",
        f"{summary['rows']:,} rows × {summary['columns']:,} columns · {summary['task']}",
        f"training {scores['measure']}: {shown_error(scores['training'], scores['measure'])}",
    ]
    if "cross_validation" in scores:
        folds = scores["cross_validation"]
        shown = shown_error(folds["mean"], scores["measure"], folds["standard_error"])
        lines.append(f"cross-validated {scores['measure']}: {shown}")
    lines += [f"note: {note}" for note in summary["notes"]]
    size, seconds = shown_size(summary["bytes"]), shown_time(summary["seconds"])
    lines.append(f"fitted in {seconds}, wrote {output} ({size})")
    return "\n".join(lines)
