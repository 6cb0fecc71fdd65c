"""``spinney predict``: predictions for the rows of a table, in blocks."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.cli._completion import complete_column
from spinney.cli._error_messages import UserError, one_line
from spinney.cli._model_path import model_path, summary_of_fit
from spinney.cli._models import MODEL_NAMES, create_model
from spinney.cli._options import Data, Delimiter, Encoding, Jobs, NoHeader, check_jobs
from spinney.data.task import Task

if TYPE_CHECKING:
    from spinney.cli._calibration_rows import CalibrationRows
    from spinney.cli._explanations import RowExplainer

__all__ = ["predict"]


_Model = Annotated[
    Path,
    typer.Argument(
        help="A model file of spinney fit; - is the standard input.", show_default=False
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Output file: .csv, .tsv (also .gz), .parquet, .arrow or .jsonl.",
        metavar="FILE",
        show_default="standard output, as CSV",
    ),
]
_Proba = Annotated[
    bool, typer.Option("--proba", help="Add a column with the probability of each class.")
]
_Interval = Annotated[
    float | None,
    typer.Option(
        help="Add an interval with this coverage, such as 0.9.",
        metavar="P",
        show_default=False,
    ),
]
_ClassesSet = Annotated[
    float | None,
    typer.Option(
        "--set",
        help="Add a prediction set (classes) with this coverage, such as 0.9.",
        metavar="P",
        show_default=False,
    ),
]
_Calibration = Annotated[
    Path | None,
    typer.Option(
        help="Calibration rows: held-out rows with targets. Intervals and sets are based on "
        "them, for any model.",
        metavar="FILE",
        show_default=False,
    ),
]
_Explain = Annotated[
    str | None,
    typer.Option(
        help="Add the N columns with the largest contributions to each prediction, or all.",
        metavar="N|all",
        show_default=False,
    ),
]
_Keep = Annotated[
    list[str] | None,
    typer.Option(
        help="A column of DATA to copy to the output; can be repeated.",
        metavar="COL",
        show_default=False,
        autocompletion=complete_column,
    ),
]
_KeepAll = Annotated[
    bool, typer.Option("--keep-all", help="Copy all columns of DATA to the output.")
]
_Rows = Annotated[int, typer.Option(help="Number of rows per block.", metavar="N", min=1)]
_Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print no notes and no summary."),
]


def predict(
    model: _Model,
    data: Data,
    *,
    output: _Output = None,
    proba: _Proba = False,
    interval: _Interval = None,
    classes_set: _ClassesSet = None,
    calibration: _Calibration = None,
    explain: _Explain = None,
    keep: _Keep = None,
    keep_all: _KeepAll = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    rows: _Rows = 65_536,
    jobs: Jobs = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write one JSON object per row.")] = False,
    quiet: _Quiet = False,
) -> None:
    """Predict the rows of a table with a fitted model."""
    # Imported late, so that --help and completion start fast.
    from spinney.cli._table_writer import check_output, is_text, open_writer
    from spinney.comparison.number_format import shown_time

    ending = check_output(output)
    if as_json and ending not in ("", ".jsonl"):
        raise UserError(f"--json writes lines of JSON, but the ending of {output} is {ending}")
    _check_coverages(interval, classes_set, has_calibration=calibration is not None)
    # Imported late, as --help needs no tables.
    from spinney import set_num_threads
    from spinney.cli._explanations import read_amount
    from spinney.cli._load_table import source_of
    from spinney.io import read_pieces
    from spinney.runtime.threads import effective_n_jobs

    check_jobs(jobs)
    if jobs is not None:
        set_num_threads(effective_n_jobs(jobs))
    if str(model) == "-" and "-" in map(str, data):
        raise UserError("the model and the rows cannot both come from standard input")
    reading: dict[str, Any] = {
        "delimiter": delimiter,
        "encoding": encoding,
        "header": False if no_header else None,
    }
    with model_path(model) as path:
        predictor = _LoadedModel(
            path,
            proba=proba,
            interval=interval,
            classes_set=classes_set,
            needs_rows=calibration is None,
        )
    if calibration is not None:
        predictor.calibrate(calibration, **reading)
    if explain is not None:
        predictor.explain(read_amount(explain))
    kept = list(dict.fromkeys(keep or []))
    start = perf_counter()
    blocks = read_pieces(
        source_of(data),
        rows=rows,
        columns=None if keep_all else predictor.columns_to_read(kept),
        schema=predictor.schema(kept if is_text(ending) and not as_json else []),
        **reading,
    )
    with open_writer(output, as_json=as_json) as write:
        n_rows = _predict_blocks(
            predictor, blocks, None if keep_all else kept, write, print_notes=not quiet
        )
    if not quiet:  # at the end, when the counts include all rows
        for line in predictor.notes_on_values():
            typer.echo(f"note: {line}", err=True)
    if output is not None and str(output) != "-" and not quiet:
        seconds = shown_time(perf_counter() - start)
        typer.echo(f"wrote {output}: {n_rows:,} rows in {seconds}", err=True)


def _check_coverages(
    interval: float | None, classes_set: float | None, *, has_calibration: bool
) -> None:
    """Raise a UserError if the options on intervals and sets are invalid."""
    if interval is not None and not 0 < interval < 1:
        raise UserError(f"--interval must be between 0 and 1, got {interval}")
    if classes_set is not None and not 0 < classes_set < 1:
        raise UserError(f"--set must be between 0 and 1, got {classes_set}")
    if has_calibration and interval is None and classes_set is None:
        raise UserError("--calibration needs --interval or --set")


def _predict_blocks(
    predictor: _LoadedModel,
    blocks: Iterable[Any],
    kept: list[str] | None,
    write: Callable[[Any], None],
    *,
    print_notes: bool,
) -> int:
    """Write the predictions of all blocks and return the number of rows.

    `kept` are the columns to copy to the output, None for all.
    """
    n_rows = 0
    block = None
    for block in blocks:
        copied = block.column_names if kept is None else kept
        table = _with_columns(block.select(_existing(copied, block)), predictor.predict(block))
        # Before the first rows, as the reader may close the pipe early.
        if n_rows == 0 and print_notes:
            for line in predictor.notes():
                typer.echo(line, err=True)
        write(table)
        n_rows += block.num_rows
    if block is None:  # no rows: an empty table with the same columns
        write(_with_columns(_empty(kept or []), predictor.no_predictions()))
    return n_rows


class _LoadedModel:
    """A model from a file with the preparation of its tables."""

    def __init__(
        self,
        path: Path,
        *,
        proba: bool,
        interval: float | None,
        classes_set: float | None,
        needs_rows: bool,
    ) -> None:
        # Imported late, so that --help and completion start fast.
        from spinney.io import ColumnKinds, load, read_about

        about = read_about(path)
        training = summary_of_fit(about)
        self._model = load(path)
        self._name = training.get("model") or type(self._model).__name__
        self._features: list[str] | None = about["features"]
        self._n_features: int | None = about["n_features"]
        self._kinds = ColumnKinds.from_dict(training["kinds"]) if training else None
        self._interval = interval
        self._set = classes_set
        self._proba = proba
        self._explainer: RowExplainer | None = None
        self._rows: CalibrationRows | None = None
        self._infinite: Counter[str] = Counter()  # values by column, in the rows predicted so far
        self._infinite_in_calibration: Counter[str] = Counter()
        self._target: str | None = training.get("target")
        self._task: Task | None = training.get("task")
        if not hasattr(self._model, "predict"):
            raise UserError(f"{path} is a {self._name}, which has no predict method")
        if proba and not hasattr(self._model, "predict_proba"):
            raise UserError(f"--proba: {self._name} in {path} has no predict_proba")
        if not needs_rows:
            return
        if interval is not None and not _has(self._model, "predict_interval"):
            able = ", ".join(_models_with("predict_interval", "regression"))
            raise UserError(
                f"--interval: {self._name} in {path} has no intervals without calibration rows "
                f"(--calibration FILE); regressors with intervals: {able}"
            )
        if classes_set is not None and not _has(self._model, "predict_set"):
            able = ", ".join(_models_with("predict_set", "classification"))
            raise UserError(
                f"--set: {self._name} in {path} has no sets without calibration rows "
                f"(--calibration FILE); classifiers with sets: {able}"
            )

    def calibrate(self, file: Path, **reading: Any) -> None:
        """Read the calibration rows for intervals and sets."""
        # Imported late, so that --help and completion start fast.
        import pyarrow as pa

        from spinney.cli._calibration_rows import CalibrationRows, read_targets
        from spinney.io import read_pieces

        if self._target is None or self._task is None:
            raise UserError(
                f"--calibration: the target of {self._name} is unknown; expected a model file of "
                "spinney fit"
            )
        classes = hasattr(self._model, "classes_")
        if classes and self._interval is not None:
            raise UserError(f"--interval: {self._name} is a classifier; use --set")
        if not classes and self._set is not None:
            raise UserError(f"--set: {self._name} is a regressor; use --interval")
        wanted = self.columns_to_read([self._target])
        blocks = list(read_pieces(str(file), columns=wanted, schema=self.schema([]), **reading))
        if not sum(block.num_rows for block in blocks):
            raise UserError(f"--calibration: {file} has no rows")
        table, y = read_targets(pa.concat_tables(blocks), self._target, self._task)
        self._rows = CalibrationRows(self._prepare(table, self._infinite_in_calibration), y)

    def explain(self, most: int | None) -> None:
        """Add contributions: of `most` columns per row, or of all columns."""
        # Imported late, so that --help and completion start fast.
        from spinney.cli._explanations import RowExplainer

        known = getattr(self._model, "feature_names_in_", None)
        n_features = 0 if self._n_features is None else self._n_features
        names = [f"column {j}" for j in range(n_features)] if known is None else list(known)
        self._explainer = RowExplainer(self._model, self._name, most, [str(n) for n in names])

    def notes(self) -> list[str]:
        """Return the methods of intervals, sets and amounts, after the first prediction."""
        lines = []
        if self._interval is not None:
            method = self._model.interval_method_ if self._rows is None else self._rows.description
            lines.append(f"intervals: {method}")
        if self._set is not None:
            method = self._model.set_method_ if self._rows is None else self._rows.description
            lines.append(f"sets: {method}")
        if self._explainer is not None:
            lines.append(self._explainer.description)
        return lines

    def notes_on_values(self) -> list[str]:
        """Return a note for each column with infinite values, after the last prediction."""
        # Imported late, so that --help and completion start fast.
        from spinney.cli._load_table import first_notes
        from spinney.io.column_kind import infinite_flag

        tables = (("", self._infinite), (" of the calibration rows", self._infinite_in_calibration))
        return first_notes(
            [
                f"column {name!r}{of_table}: {infinite_flag(count)}"
                for of_table, counts in tables
                for name, count in counts.items()
            ]
        )

    def columns_to_read(self, kept: list[str]) -> list[str] | None:
        """Return the columns to read from a file, None for all."""
        used = self._kinds.used if self._kinds is not None else self._features
        return None if used is None else list(dict.fromkeys([*used, *kept]))

    def schema(self, kept: list[str]) -> Any:
        """Return the schema of text files: the kinds of the fit, and `kept` as text."""
        if self._kinds is None:
            return None
        # Imported late, so that --help and completion start fast.
        import pyarrow as pa

        schema = self._kinds.schema
        copied = [pa.field(name, pa.large_string()) for name in kept if name not in schema.names]
        return pa.schema([*schema, *copied])

    def predict(self, block: Any) -> dict[str, Any]:
        """Return the columns to write for some rows."""
        # Imported late, so that --help and completion start fast.
        import numpy as np

        X = self._prepare(block, self._infinite)
        if not block.num_rows:
            return self.no_predictions()
        try:
            out = {"prediction": np.asarray(self._model.predict(X))}
            if self._proba:
                probabilities = self._model.predict_proba(X)
                for number, label in enumerate(self._model.classes_):
                    out[f"proba_{label}"] = probabilities[:, number]
            if self._interval is not None and self._rows is not None:
                ends = self._rows.intervals(self._model, X, self._interval)
                out["lower"], out["upper"] = ends[:, 0], ends[:, 1]
            elif self._interval is not None:
                with warnings.catch_warnings():
                    # The warning about uncorrected intervals is in `notes`.
                    warnings.simplefilter("ignore", UserWarning)
                    ends = self._model.predict_interval(X, coverage=self._interval)
                out["lower"], out["upper"] = ends[:, 0], ends[:, 1]
            if self._set is not None:
                sets = (
                    self._model.predict_set(X, coverage=self._set)
                    if self._rows is None
                    else self._rows.sets(self._model, X, self._set)
                )
                for number, label in enumerate(self._model.classes_):
                    out[f"set_{label}"] = sets[:, number]
            if self._explainer is not None:
                out |= self._explainer.columns(X, out["prediction"])
        except (ValueError, TypeError) as error:
            raise UserError(f"{self._name}: {one_line(error)}") from error
        return out

    def no_predictions(self) -> dict[str, Any]:
        """Return the columns to write for a table without rows."""
        # Imported late, so that --help and completion start fast.
        import numpy as np

        labels = self._model.classes_ if hasattr(self._model, "classes_") else np.empty(0)
        names = ["lower", "upper"] if self._interval is not None else []
        names = [*(f"proba_{label}" for label in labels if self._proba), *names]
        sets = [f"set_{label}" for label in labels if self._set is not None]
        return {
            "prediction": labels[:0],
            **{name: np.empty(0) for name in names},
            **{name: np.empty(0, dtype=bool) for name in sets},
            **({} if self._explainer is None else self._explainer.no_columns()),
        }

    def _prepare(self, block: Any, infinite: Counter[str]) -> Any:
        if self._kinds is not None:
            return self._kinds.prepare(block, infinite)
        if self._features is not None:
            return block.select(_existing(self._features, block))
        if block.num_columns != self._n_features:
            raise UserError(
                f"{self._name} was fitted on {self._n_features} columns without names, "
                f"the data have {block.num_columns}"
            )
        return _as_matrix(block)


def _as_matrix(block: Any) -> Any:
    """Return a table as a matrix, for a model that was fitted on an array."""
    # Imported late, so that --help and completion start fast.
    import numpy as np

    try:
        columns = [np.asarray(column, dtype=np.float64) for column in block.columns]
    except ValueError as error:
        raise UserError(f"the model was fitted on a numeric array: {one_line(error)}") from error
    return np.column_stack(columns)


def _existing(names: list[str], block: Any) -> list[str]:
    """Return the names; raise an error if the block has no such column."""
    for name in names:
        if name not in block.column_names:
            # Imported late, so that --help and completion start fast.
            from spinney.io.table_file import unknown_column

            raise unknown_column(name, block.column_names, "the data")
    return names


def _empty(names: list[str]) -> Any:
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.string()) for name in names})


def _with_columns(copied: Any, predicted: dict[str, Any]) -> Any:
    """Append predictions to the columns that are copied to the output."""
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa

    for name, values in predicted.items():
        if name in copied.column_names:
            raise UserError(
                f"--keep: the copied column {name!r} has the name of a column of predictions"
            )
        if values.ndim != 1:
            raise UserError(f"{name}: several outputs cannot be written as one column")
        copied = copied.append_column(
            name, pa.array(values.tolist() if values.dtype == object else values)
        )
    return copied


def _has(model: Any, method: str) -> bool:
    """Return whether a model has intervals or sets without calibration rows."""
    return hasattr(model, method) and getattr(model, "_holds_out_rows", True)


def _models_with(method: str, task: Task) -> list[str]:
    """Return the names of models that have intervals or sets of their own."""
    able = []
    for name in MODEL_NAMES:
        try:
            model = create_model(name, task, None, None)
        except UserError:  # a model for the other task only
            continue
        # Forests without bootstrap, such as extra trees, have no out-of-bag rows.
        if _has(model, method) and getattr(model, "bootstrap", True):
            able.append(name)
    return able
