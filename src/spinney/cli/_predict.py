"""``spinney predict``: predictions for the rows of a table, piece by piece."""

from __future__ import annotations

import warnings
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from spinney.cli._completion import complete_column
from spinney.cli._errors import UserError, one_line
from spinney.cli._model_path import model_path, summary_of_fit
from spinney.cli._options import Data, Delimiter, Encoding, Jobs, NoHeader, check_jobs
from spinney.cli._table_writer import check_output, is_text, open_writer
from spinney.comparison.number_format import shown_time
from spinney.data.task import Task

if TYPE_CHECKING:
    from spinney.cli._calibration_rows import CalibrationRows
    from spinney.cli._explanations import RowExplainer

__all__ = ["predict"]


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            help="A file that spinney fit wrote; - is the standard input.", show_default=False
        ),
    ],
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where predictions go: .csv, .tsv (also .gz), .parquet, .arrow or .jsonl.",
            metavar="FILE",
            show_default="standard output, as CSV",
        ),
    ] = None,
    proba: Annotated[
        bool, typer.Option("--proba", help="Add a column with the probability of each class.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            help="Add an interval that covers the truth with this probability, such as 0.9.",
            metavar="P",
            show_default=False,
        ),
    ] = None,
    classes_set: Annotated[
        float | None,
        typer.Option(
            "--set",
            help="Add a set of classes that holds the right one with this probability, as 0.9.",
            metavar="P",
            show_default=False,
        ),
    ] = None,
    calibration: Annotated[
        Path | None,
        typer.Option(
            help="Rows that the model did not learn from, with their targets: intervals and sets "
            "are made from these, for any model.",
            metavar="FILE",
            show_default=False,
        ),
    ] = None,
    explain: Annotated[
        str | None,
        typer.Option(
            help="Add the N columns that moved each prediction most, and by how much; or all.",
            metavar="N|all",
            show_default=False,
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="A column of DATA to carry along; may be given several times.",
            metavar="COL",
            show_default=False,
            autocompletion=complete_column,
        ),
    ] = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Carry along all columns of DATA.")
    ] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    rows: Annotated[
        int, typer.Option(help="How many rows are read at a time.", metavar="N", min=1)
    ] = 65_536,
    jobs: Jobs = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a line of JSON for each row.")
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", "-q", help="Print no notes, and not how many rows were written."),
    ] = False,
) -> None:
    """Predict the rows of a table with a fitted model."""
    ending = check_output(output)
    if as_json and ending not in ("", ".jsonl"):
        raise UserError(f"--json writes lines of JSON, and {output} is named otherwise")
    if interval is not None and not 0 < interval < 1:
        raise UserError(f"--interval must lie between 0 and 1, got {interval}")
    if classes_set is not None and not 0 < classes_set < 1:
        raise UserError(f"--set must lie between 0 and 1, got {classes_set}")
    if calibration is not None and interval is None and classes_set is None:
        raise UserError("--calibration is for --interval or --set")

    from spinney import set_num_threads
    from spinney.cli._explanations import read_amount
    from spinney.cli._training_table import source_of
    from spinney.io import read_pieces
    from spinney.runtime.threads import effective_n_jobs

    check_jobs(jobs)
    if jobs is not None:
        set_num_threads(effective_n_jobs(jobs))
    if str(model) == "-" and "-" in map(str, data):
        raise UserError("the model and the rows cannot both come from standard input")
    with model_path(model) as path:
        predictor = _Predictor(
            path,
            proba=proba,
            interval=interval,
            classes_set=classes_set,
            needs_rows=calibration is None,
        )
    if calibration is not None:
        predictor.calibrate(
            calibration,
            delimiter=delimiter,
            encoding=encoding,
            header=False if no_header else None,
        )
    if explain is not None:
        predictor.explain(read_amount(explain))
    kept = list(dict.fromkeys(keep or []))
    wanted = None if keep_all else predictor.columns_to_read(kept)
    source = source_of(data)
    start, n_rows = perf_counter(), 0
    pieces = read_pieces(
        source,
        rows=rows,
        columns=wanted,
        schema=predictor.schema(kept if is_text(ending) and not as_json else []),
        delimiter=delimiter,
        encoding=encoding,
        header=False if no_header else None,
    )
    with open_writer(output, as_json=as_json) as write:
        piece = None
        for piece in pieces:
            carried = piece.column_names if keep_all else kept
            table = _beside(piece.select(_known(carried, piece)), predictor.predict(piece))
            # Before the first rows, as the reader may close the pipe early.
            if n_rows == 0 and not quiet:
                for line in predictor.notes():
                    typer.echo(line, err=True)
            write(table)
            n_rows += piece.num_rows
        if piece is None:  # no rows: an empty table with the columns that there would be
            write(_beside(_empty(kept), predictor.no_predictions()))
    if not quiet:  # at the end, when the counts include all rows
        for line in predictor.notes_on_values():
            typer.echo(f"note: {line}", err=True)
    if output is not None and str(output) != "-" and not quiet:
        seconds = shown_time(perf_counter() - start)
        typer.echo(f"wrote {output}: {n_rows:,} rows in {seconds}", err=True)


class _Predictor:
    """A model from a file, and how tables are prepared for it."""

    def __init__(
        self,
        path: Path,
        *,
        proba: bool,
        interval: float | None,
        classes_set: float | None,
        needs_rows: bool,
    ) -> None:
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
            raise UserError(f"{path} is a {self._name}, which predicts nothing")
        if proba and not hasattr(self._model, "predict_proba"):
            raise UserError(f"--proba: {self._name} in {path} knows no probabilities")
        if not needs_rows:
            return
        if interval is not None and not _has(self._model, "predict_interval"):
            able = ", ".join(_models_with("predict_interval", "regression"))
            raise UserError(
                f"--interval: {self._name} in {path} has no intervals without rows that it did not "
                f"learn from (--calibration FILE); these have, for numbers: {able}"
            )
        if classes_set is not None and not _has(self._model, "predict_set"):
            able = ", ".join(_models_with("predict_set", "classification"))
            raise UserError(
                f"--set: {self._name} in {path} has no sets without rows that it did not learn "
                f"from (--calibration FILE); these have, for classes: {able}"
            )

    def calibrate(self, file: Path, **reading: Any) -> None:
        """Read rows that the model did not learn from, for intervals and sets."""
        import pyarrow as pa

        from spinney.cli._calibration_rows import CalibrationRows, read_targets
        from spinney.io import read_pieces

        if self._target is None or self._task is None:
            raise UserError(
                f"--calibration: {self._name} does not say which column it predicts, as models do "
                "that spinney fit wrote"
            )
        classes = hasattr(self._model, "classes_")
        if classes and self._interval is not None:
            raise UserError(f"--interval: {self._name} tells classes, which have sets (--set)")
        if not classes and self._set is not None:
            raise UserError(f"--set: {self._name} tells numbers, which have intervals (--interval)")
        wanted = self.columns_to_read([self._target])
        pieces = list(read_pieces(str(file), columns=wanted, schema=self.schema([]), **reading))
        if not sum(piece.num_rows for piece in pieces):
            raise UserError(f"--calibration: {file} has no rows")
        table, y = read_targets(pa.concat_tables(pieces), self._target, self._task)
        self._rows = CalibrationRows(self._prepare(table, self._infinite_in_calibration), y)

    def explain(self, most: int | None) -> None:
        """Add what moved each prediction: so many columns, or all."""
        from spinney.cli._explanations import RowExplainer

        known = getattr(self._model, "feature_names_in_", None)
        n_features = 0 if self._n_features is None else self._n_features
        names = [f"column {j}" for j in range(n_features)] if known is None else list(known)
        self._explainer = RowExplainer(self._model, self._name, most, [str(n) for n in names])

    def notes(self) -> list[str]:
        """Return what intervals, sets and amounts are, after the first prediction."""
        said = []
        if self._interval is not None:
            own = self._model.interval_method_ if self._rows is None else self._rows.said
            said.append(f"intervals: {own}")
        if self._set is not None:
            own = self._model.set_method_ if self._rows is None else self._rows.said
            said.append(f"sets: {own}")
        if self._explainer is not None:
            said.append(self._explainer.said)
        return said

    def notes_on_values(self) -> list[str]:
        """Return a note for each column with infinite values, after the last prediction."""
        from spinney.cli._training_table import first_notes
        from spinney.io.column_kind import infinite_flag

        places = (("", self._infinite), (" of the calibration rows", self._infinite_in_calibration))
        return first_notes(
            [
                f"column {name!r}{place}: {infinite_flag(count)}"
                for place, counts in places
                for name, count in counts.items()
            ]
        )

    def columns_to_read(self, kept: list[str]) -> list[str] | None:
        """Return the columns that are needed of a file, or None for all."""
        used = self._kinds.used if self._kinds is not None else self._features
        return None if used is None else list(dict.fromkeys([*used, *kept]))

    def schema(self, kept: list[str]) -> Any:
        """Return how text is to be read: as when the model was fitted, and `kept` as it is."""
        if self._kinds is None:
            return None
        import pyarrow as pa

        schema = self._kinds.schema
        carried = [pa.field(name, pa.large_string()) for name in kept if name not in schema.names]
        return pa.schema([*schema, *carried])

    def predict(self, piece: Any) -> dict[str, Any]:
        """Return the columns to write for some rows."""
        import numpy as np

        X = self._prepare(piece, self._infinite)
        if not piece.num_rows:
            return self.no_predictions()
        try:
            out = {"prediction": np.asarray(self._model.predict(X))}
            if self._proba:
                shares = self._model.predict_proba(X)
                for number, label in enumerate(self._model.classes_):
                    out[f"proba_{label}"] = shares[:, number]
            if self._interval is not None and self._rows is not None:
                both = self._rows.intervals(self._model, X, self._interval)
                out["lower"], out["upper"] = both[:, 0], both[:, 1]
            elif self._interval is not None:
                with warnings.catch_warnings():
                    # Of intervals that nothing corrects: `notes` has it.
                    warnings.simplefilter("ignore", UserWarning)
                    both = self._model.predict_interval(X, coverage=self._interval)
                out["lower"], out["upper"] = both[:, 0], both[:, 1]
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
        """Return the columns to write where there are no rows."""
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

    def _prepare(self, piece: Any, infinite: Counter[str]) -> Any:
        if self._kinds is not None:
            return self._kinds.prepare(piece, infinite)
        if self._features is not None:
            return piece.select(_known(self._features, piece))
        if piece.num_columns != self._n_features:
            raise UserError(
                f"{self._name} was fitted on {self._n_features} columns without names, "
                f"the data have {piece.num_columns}"
            )
        return _as_matrix(piece)


def _as_matrix(piece: Any) -> Any:
    """Return a table as numbers, for a model that was fitted on an array."""
    import numpy as np

    try:
        columns = [np.asarray(column, dtype=np.float64) for column in piece.columns]
    except ValueError as error:
        raise UserError(f"the model reads numbers only: {one_line(error)}") from error
    return np.column_stack(columns)


def _known(names: list[str], piece: Any) -> list[str]:
    for name in names:
        if name not in piece.column_names:
            from spinney.io.table_file import unknown_column

            raise unknown_column(name, piece.column_names, "the data")
    return names


def _empty(names: list[str]) -> Any:
    import pyarrow as pa

    return pa.table({name: pa.array([], pa.string()) for name in names})


def _beside(carried: Any, predicted: dict[str, Any]) -> Any:
    """Put predictions beside the columns that are carried along."""
    import pyarrow as pa

    for name, values in predicted.items():
        if name in carried.column_names:
            raise UserError(f"a column {name!r} is carried along, and predictions need that name")
        if values.ndim != 1:
            raise UserError(f"{name}: several outputs cannot be written as one column")
        carried = carried.append_column(
            name, pa.array(values.tolist() if values.dtype == object else values)
        )
    return carried


def _has(model: Any, method: str) -> bool:
    """Whether a model has intervals or sets without rows that it would have to be given."""
    return hasattr(model, method) and getattr(model, "_holds_out_rows", True)


def _models_with(method: str, task: Task) -> list[str]:
    from spinney.cli._models import MODEL_NAMES, make_model

    able = []
    for name in MODEL_NAMES:
        try:
            model = make_model(name, task, None, None)
        except UserError:  # for the other task only
            continue
        # Without a bag, as extra trees are by default, a forest has no rows out of it.
        if _has(model, method) and getattr(model, "bootstrap", True):
            able.append(name)
    return able
