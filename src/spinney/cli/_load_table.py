"""Training tables of shell commands, and notes on their columns."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from spinney.cli._error_messages import UserError
from spinney.data.notes import Note, NoteKind
from spinney.io import TrainingTable, decide_kinds, read_training_table
from spinney.io.column_kind import DecidedBy

__all__ = [
    "bundled_spam",
    "first_notes",
    "is_leak",
    "load_training_table",
    "notes_on_columns",
    "overruled_kinds",
    "source_of",
]

_SHOWN_NAMES = 5
_MOST_NOTES = 10


def load_training_table(
    data: list[Path],
    target: str | None,
    *,
    task: Literal["auto", "classification", "regression"] = "auto",
    kinds: Iterable[str] = (),
    drop: Iterable[str] = (),
    **more: Any,
) -> TrainingTable:
    """Read a table; `kinds` are texts ``COL=KIND``, and `drop` has columns to drop."""
    overrule = overruled_kinds(kinds, drop)
    return read_training_table(source_of(data), target, task=task, overrule=overrule, **more)


def bundled_spam() -> TrainingTable:
    """Return the bundled spam data."""
    # Imported late, as only `spinney compare` without DATA needs it.
    from spinney.datasets import load_spam

    spam = load_spam()
    X = pa.table(dict(zip(spam.feature_names, spam.data.T, strict=True)))
    kinds = decide_kinds(X)
    return TrainingTable(
        "spam (bundled)", "is a mail spam?", "classification", X, spam.target, kinds
    )


def notes_on_columns(table: TrainingTable) -> list[str]:
    """Return notes on columns that were dropped automatically, and the flags of all columns.

    Columns with the same text share a note. At most about ten notes are returned.
    """
    names: dict[tuple[str, str], list[str]] = {}
    used = set(table.kinds.used)
    for column in table.kinds.columns:
        if column.name not in used and column.decided_by is DecidedBy.VALUES:
            names.setdefault(("unused", column.reason), []).append(repr(column.name))
        for flag in column.flags:
            names.setdefault(("column", flag), []).append(repr(column.name))
    notes = []
    for (what, text), columns in names.items():
        shown = ", ".join(columns[:_SHOWN_NAMES])
        more = len(columns) - _SHOWN_NAMES
        what = "columns" if what == "column" and len(columns) > 1 else what
        notes.append(f"{what} {shown}{f' and {more:,} more' if more > 0 else ''}: {text}")
    return first_notes(notes)


def is_leak(note: str) -> bool:
    """Return whether a note is about a column that predicts the target alone."""
    return isinstance(note, Note) and note.kind is NoteKind.LEAK


def first_notes(notes: list[str]) -> list[str]:
    """Return the first notes on columns, and a note with the number of others."""
    more = len(notes) - _MOST_NOTES
    if more <= 1:
        return notes
    return [*notes[:_MOST_NOTES], f"{more:,} more notes on columns are not shown"]


def source_of(data: list[Path]) -> Any:
    """Return the paths of an argument in the form that `spinney.io` expects."""
    return str(data[0]) if len(data) == 1 else [str(path) for path in data]


def overruled_kinds(kinds: Iterable[str], drop: Iterable[str]) -> dict[str, str]:
    """Return the kinds given by ``--kind COL=KIND`` and ``--drop COL``, by column."""
    overrule = dict.fromkeys(drop, "dropped")
    for text in kinds:
        name, sign, kind = text.rpartition("=")
        if not sign:
            raise UserError(f"--kind: expected COL=KIND, got {text!r}")
        if name in overrule:
            raise UserError(f"{name!r} cannot be both --drop and --kind")
        overrule[name] = kind
    return overrule
