"""A table to learn from: read, its target taken out, its columns' kinds settled."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from spinney.cli._errors import UserError, unknown_column

if TYPE_CHECKING:
    from spinney.io import ColumnKinds
    from spinney.report.families import Task

__all__ = ["TrainingTable", "read_training_table"]


@dataclass(frozen=True)
class TrainingTable:
    """What a model is fitted on.

    Attributes
    ----------
    name : str
        What to call it.
    target : str
        The column to predict.
    task : {"classification", "regression"}
        What the target asks for.
    X : pyarrow.Table
        The columns to learn from, prepared.
    y : array
        The target, without gaps.
    kinds : ColumnKinds
        What the columns are, to prepare other tables in the same way.
    notes : list of str
        What was found out on the way.
    """

    name: str
    target: str
    task: Task
    X: Any
    y: Any
    kinds: ColumnKinds
    notes: list[str]


def read_training_table(
    data: list[Path],
    target: str,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    kinds: Iterable[str] = (),
    drop: Iterable[str] = (),
    delimiter: str | None = None,
    encoding: str | None = None,
) -> TrainingTable:
    """Read a table; `kinds` are texts ``COL=KIND``, `drop` names of columns to leave out."""
    import numpy as np
    import pyarrow as pa

    from spinney.io import decide_kinds, read_table
    from spinney.report.target import missing_rows, read_target

    table = read_table(source_of(data), delimiter=delimiter, encoding=encoding)
    if target not in table.columns:
        raise unknown_column(target, table.columns, table.name)
    overrule = _overrule(kinds, drop, target, table.columns, table.name)
    frame, notes = table.frame, list(table.notes)
    missing = missing_rows(_alone(frame, target))
    if missing.all():
        raise UserError(f"target {target!r} has no value in any row of {table.name}")
    if missing.any():
        frame = frame.filter(pa.array(np.logical_not(missing)))
        count = f"{missing.sum():,} row{'s' if missing.sum() > 1 else ''}"
        notes.append(f"left out {count} without a value of {target!r}")
    y, settled = read_target(_alone(frame, target), task)
    decided = decide_kinds(frame, target, overrule=overrule)
    if not decided.used:
        raise UserError(f"{table.name} has no column left to learn from")
    for column in decided.columns:
        if column.name not in decided.used and column.name not in overrule:
            notes.append(f"left out {column.name!r}: {column.reason}")
        notes += [f"column {column.name!r}: {flag}" for flag in column.flags]
    return TrainingTable(table.name, target, settled, decided.prepare(frame), y, decided, notes)


def source_of(data: list[Path]) -> Any:
    """Return the paths of an argument as `spinney.io` takes them."""
    return str(data[0]) if len(data) == 1 else [str(path) for path in data]


def _alone(frame: Any, name: str) -> Any:
    """Return one column as a table, so that messages know its name; categories as their values."""
    import pyarrow as pa

    column = frame[name]
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pa.table({name: column})


def _overrule(
    kinds: Iterable[str], drop: Iterable[str], target: str, columns: list[str], where: str
) -> dict[str, str]:
    overrule = dict.fromkeys(drop, "dropped")
    for text in kinds:
        name, sign, kind = text.rpartition("=")
        if not sign:
            raise UserError(f"--kind: expected COL=KIND, got {text!r}")
        if name in overrule:
            raise UserError(f"{name!r} cannot be both --drop and --kind")
        overrule[name] = kind
    for name in overrule:
        if name not in columns:
            raise unknown_column(name, columns, where)
        if name == target:
            raise UserError(f"{target!r} is the target; --drop and --kind are about other columns")
    return overrule
