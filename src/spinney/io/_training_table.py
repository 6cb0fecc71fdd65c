"""Training tables: features, target and column kinds, read from files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter
from spinney.data.notes import Note, NoteKind
from spinney.data.target import (
    StrayValue,
    check_classes,
    missing_rows,
    notes_on_classes,
    read_target,
)
from spinney.data.task import Task
from spinney.io._column_kinds import ColumnKinds, decide_kinds
from spinney.io.column_kind import DecidedBy
from spinney.io.table_file import TableFile, read_table, unknown_column

__all__ = ["TrainingTable", "read_training_table"]


@dataclass(frozen=True)
class TrainingTable:
    """A table prepared for fitting.

    Attributes
    ----------
    name, target : str
        The name of the table, and the column to predict.
    task : {"classification", "regression"}
        The task, by the target.
    X : pyarrow.Table
        The feature columns, prepared.
    y : array
        The target, without missing values.
    kinds : ColumnKinds
        The kinds of the columns, to prepare other tables in the same way.
    notes : list of str
        Remarks on the table; `Note` objects.
    frame : pyarrow.Table or None
        All columns as read, for the rows that have a target.
    group, time : array or None
        The group and the time of each row.
    rows : array or None
        Row numbers in the file, if some rows have no target; None for all rows.
    """

    name: str
    target: str
    task: Task
    X: Any
    y: Any
    kinds: ColumnKinds
    notes: list[str] = field(default_factory=list)
    frame: Any = None
    group: Any = None
    time: Any = None
    rows: Any = None

    @property
    def title(self) -> str:
        """The table and its target."""
        return f"{self.name}: {self.target}"


def read_training_table(
    source: Any,
    target: str | None = None,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    overrule: Mapping[str, str] | None = None,
    group: str | None = None,
    time: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    leaks: bool = False,
) -> TrainingTable:
    """Read a table and prepare it for fitting.

    Rows without a target are dropped; so are columns of texts, identifiers and constants.

    Parameters
    ----------
    source : str, path or list of these
        As for `read_table`.
    target : str
        The column to predict.
    task : {"auto", "classification", "regression"}, default="auto"
        With "auto" the target's values decide.
    overrule : dict of str to str, optional
        Kinds of columns, see `decide_kinds`; "dropped" excludes a column.
    group : str, optional
        The column of groups. It is not a feature.
    time : str, optional
        The column of times.
    delimiter, encoding, header : optional
        As for `read_table`.
    leaks : bool, default=False
        Whether to find columns that predict the target alone, and note them.

    Returns
    -------
    TrainingTable

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from spinney.io import read_training_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "shop.csv"
    ...     _ = path.write_text("age,city,bought\\n31,Bath,yes\\n45,Ely,no\\n52,Ely,\\n")
    ...     data = read_training_table(path, "bought")
    >>> data.X.column_names, data.y, data.task
    (['age', 'city'], array(['yes', 'no'], dtype=object), 'classification')
    >>> data.notes
    ["dropped 1 row without a value of 'bought'"]
    """
    table = read_table(source, delimiter=delimiter, encoding=encoding, header=header)
    target, overrule = _check_names(table, target, dict(overrule or {}), group=group, time=time)
    frame, rows, dropped = _rows_with_target(table, target)
    y, chosen, class_notes = _read_target(table, frame, rows, target=target, task=task)
    kinds = decide_kinds(
        frame, target, overrule=overrule, y=y if leaks else None, task=chosen if leaks else None
    )
    if not kinds.used:
        raise ValueError(f"{table.name} has no column left to learn from")
    if group is not None:
        kinds = _mark_group(kinds, group)
    return TrainingTable(
        table.name,
        target,
        chosen,
        kinds.prepare(frame),
        y,
        kinds,
        [*table.notes, *dropped, *class_notes, *(_leak_notes(kinds) if leaks else [])],
        frame,
        None if group is None else _values(frame, group),
        None if time is None else _moments(frame, time),
        rows,
    )


def _check_names(
    table: TableFile,
    target: str | None,
    overrule: dict[str, str],
    *,
    group: str | None,
    time: str | None,
) -> tuple[str, dict[str, str]]:
    """Return the target, and the overruled kinds with the column of groups dropped."""
    if target is None:
        shown = ", ".join(table.columns[:10]) + (", …" if len(table.columns) > 10 else "")
        raise ParameterError(
            Parameter("target"), f" must name the column to predict; {table.name} has: {shown}"
        )
    for name in [target, *overrule, *filter(None, (group, time))]:
        if name not in table.columns:
            raise unknown_column(name, table.columns, table.name)
    if target in (group, time):
        raise ValueError(f"{target!r} is the target: it cannot also be the group or the time")
    if target in overrule:
        raise ValueError(f"{target!r} is the target: it cannot be dropped or get a kind")
    alike = [name for name, old in table.renamed.items() if old == target]
    if any(overrule.get(name) != "dropped" for name in alike):
        called = ", ".join(repr(name) for name in [target, *alike])
        raise ParameterError(
            f"target {target!r} is ambiguous: {table.name} has {len(alike) + 1} columns of that "
            f"name, called {called} here; rename them, or drop all but one with ",
            Parameter("overrule", dict.fromkeys(alike, "dropped")),
        )
    return target, overrule if group is None else {**overrule, group: "dropped"}


def _rows_with_target(
    table: TableFile, target: str
) -> tuple[pa.Table, NDArray[np.intp] | None, list[Note]]:
    """Return the rows that have a target, their numbers (None for all), and a note."""
    frame = table.frame
    rows: NDArray[np.intp] | None = None
    notes = []
    missing = missing_rows(frame.select([target]))
    if missing.all():
        raise ValueError(f"target {target!r} has no value in any row of {table.name}")
    if missing.any():
        frame = frame.filter(pa.array(np.logical_not(missing)))
        rows = np.flatnonzero(~missing)
        count = f"{missing.sum():,} row{'s' if missing.sum() > 1 else ''}"
        text = f"dropped {count} without a value of {target!r}"
        notes.append(Note(text, kind=NoteKind.MISSING_TARGET, column=target))
    if frame.num_rows < 2:
        raise ValueError(f"{table.name} has only one row with a target; expected at least two")
    return frame, rows, notes


def _read_target(
    table: TableFile,
    frame: pa.Table,
    rows: NDArray[np.intp] | None,
    *,
    target: str,
    task: Literal["auto", "classification", "regression"],
) -> tuple[Any, Task, list[Note]]:
    """Return the target, the task, and notes on the classes."""
    if task == "auto" and pa.types.is_dictionary(frame[target].type):
        task = "classification"
    is_declared = task != "auto"
    try:
        y, chosen = read_target(_plain(frame, target), task)
        if chosen == "classification" and not is_declared:
            check_classes(y, target)
    except StrayValue as error:
        row = error.row if rows is None else int(rows[error.row])
        raise error.at(table.location_of(row)) from None
    return y, chosen, notes_on_classes(y) if chosen == "classification" else []


def _mark_group(kinds: ColumnKinds, group: str) -> ColumnKinds:
    """Set the reason why the column of groups is not a feature."""
    columns = [
        replace(column, reason="defines the groups of rows", decided_by=DecidedBy.GROUP)
        if column.name == group
        else column
        for column in kinds.columns
    ]
    return replace(kinds, columns=columns)


def _leak_notes(kinds: ColumnKinds) -> list[Note]:
    """Return a note for each column that is flagged as a leak."""
    return [
        Note(f"column {column.name!r}: {flag}", kind=NoteKind.LEAK, column=column.name)
        for column in kinds.columns
        for flag in column.flags
        if isinstance(flag, Note) and flag.kind is NoteKind.LEAK
    ]


def _plain(frame: pa.Table, name: str) -> pa.Table:
    """Return one column as a table; categories become plain values."""
    column = frame[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.table({name: column})


def _values(frame: pa.Table, name: str) -> Any:
    column = _plain(frame, name)[name]
    if column.null_count:
        raise ValueError(
            f"column {name!r} is missing in {column.null_count:,} of {len(column):,} rows; "
            "a group or time needs a value in every row"
        )
    return column.to_numpy()


def _moments(frame: pa.Table, name: str) -> Any:
    values = _values(frame, name)
    type_ = _plain(frame, name)[name].type
    if not (
        pa.types.is_temporal(type_) or pa.types.is_integer(type_) or pa.types.is_floating(type_)
    ):
        raise ValueError(
            f"column {name!r} does not hold times: expected dates written as 2024-12-31, or "
            f"numbers, got {values[0]!r}"
        )
    return values
