"""The kinds of all columns of a table, decided once and applied to new rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spinney.data.notes import Note, NoteKind
from spinney.data.rows import take_rows
from spinney.data.target import missing_rows, read_target
from spinney.io._text_form import Misfit, as_type, date_order, dated
from spinney.io.column_kind import (
    KINDS,
    LEARNED,
    ColumnKind,
    DecidedBy,
    find_kind,
    infinite_flag,
)
from spinney.io.table_file import unknown_column

__all__ = ["ColumnKinds", "as_arrow", "decide_kinds"]

_MICROSECONDS_A_DAY = 86_400_000_000
_TIMES = {
    "date32[day]": pa.date32(),
    "timestamp[us]": pa.timestamp("us"),
    "timestamp[us, tz=UTC]": pa.timestamp("us", "UTC"),
    "time64[us]": pa.time64("us"),
}


@dataclass(frozen=True)
class ColumnKinds:
    """The kinds of the columns of a table, and how rows are prepared for a model.

    Attributes
    ----------
    columns : list of ColumnKind
        The columns, in the table's order, without the target.
    target : str or None
        The column to predict.
    """

    columns: list[ColumnKind]
    target: str | None = None

    @property
    def used(self) -> list[str]:
        """Names of the columns that models use."""
        return [column.name for column in self.columns if column.kind in LEARNED]

    @property
    def schema(self) -> pa.Schema:
        """The types for `read_pieces` of the columns that models use."""
        used = [column for column in self.columns if column.kind in LEARNED]
        return pa.schema(
            [dated(column.name, _reading_type(column), column.order) for column in used]
        )

    def prepare(self, frame: Any, infinite: Counter[str] | None = None) -> pa.Table:
        """Return the columns that models use, in a form that models accept.

        Numbers stay numbers (infinite ones become missing), categories become dictionaries of
        strings, dates become days since 1970, and times of day a fraction of a day.

        Parameters
        ----------
        frame : pyarrow.Table or any data frame
            Rows with these columns, in any order; other columns are ignored.
        infinite : Counter, optional
            Incremented by the number of infinite values of each column.
        """
        frame = as_arrow(frame)
        by_name = dict(zip(frame.column_names, frame.columns, strict=True))
        out = {}
        for column in self.columns:
            if column.kind in LEARNED:
                if column.name not in by_name:
                    raise unknown_column(column.name, list(by_name), "the table")
                values, n_infinite = _prepare(column, by_name[column.name])
                out[column.name] = values
                if n_infinite and infinite is not None:
                    infinite[column.name] += n_infinite
        return pa.table(out)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `from_dict` converts them back."""
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "reason": column.reason,
                "flags": list(column.flags),
                "type": column.type,
                **({"order": column.order} if column.order else {}),
                **(
                    {"decided_by": column.decided_by.value}
                    if column.decided_by is not DecidedBy.VALUES
                    else {}
                ),
            }
            for column in self.columns
        ]
        return {"target": self.target, "columns": columns}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ColumnKinds:
        """Return the kinds that `to_dict` has converted."""
        columns = [
            ColumnKind(
                **{
                    **column,
                    "flags": tuple(column["flags"]),
                    "decided_by": DecidedBy(column.get("decided_by", "values")),
                }
            )
            for column in content["columns"]
        ]
        for column in columns:
            if column.order not in ("", "day", "month", "year"):
                raise ValueError(
                    f"column {column.name!r}: expected dates with day, month or year first, got "
                    f"{column.order!r}"
                )
        return cls(columns, content["target"])


def decide_kinds(
    frame: Any,
    target: str | None = None,
    *,
    overrule: Mapping[str, str] | None = None,
    y: Any = None,
    task: Literal["auto", "classification", "regression"] | None = None,
) -> ColumnKinds:
    """Decide the kinds of the columns of a table.

    Parameters
    ----------
    frame : pyarrow.Table or any data frame
        The rows.
    target : str, optional
        The column to predict, which gets no kind.
    overrule : dict of str to str, optional
        Kinds that replace the automatic ones: "number", "category" or "date" for features,
        "dropped" (or "text", "identifier", "constant") for columns that models do not use.
    y : array-like, optional
        The target's values. With them, columns that predict it alone are flagged; see
        `suspect_leakage`.

    task : {"auto", "classification", "regression"}, optional
        Whether `y` holds classes or numbers; its values decide by default.

    Returns
    -------
    ColumnKinds

    Examples
    --------
    >>> import pyarrow as pa
    >>> from spinney.io import decide_kinds
    >>> shop = pa.table({"age": [31, 45, 52], "zip": [2134, 2139, 2134], "bought": ["y", "n", "y"]})
    >>> kinds = decide_kinds(shop, "bought", overrule={"zip": "category"})
    >>> [(column.name, column.kind) for column in kinds.columns]
    [('age', 'number'), ('zip', 'category')]
    >>> kinds.prepare(shop)["zip"].to_pylist()
    ['2134', '2139', '2134']
    """
    frame = as_arrow(frame)
    names = frame.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"expected distinct column names, got {twice!r} twice")
    if target is not None and target not in names:
        raise unknown_column(target, names, "the table")
    overrule = dict(overrule or {})
    for name, kind in overrule.items():
        if name not in names:
            raise unknown_column(name, names, "the table")
        if name == target:
            raise ValueError(f"column {name!r} is the target: it cannot get a kind")
        if kind not in KINDS:
            raise ValueError(
                f"kind of column {name!r}: expected one of {', '.join(KINDS)}, got {kind!r}"
            )
    columns = []
    for field, column in zip(frame.schema, frame.columns, strict=True):
        name, order = field.name, date_order(field)
        if name in overrule:
            columns.append(_overruled(name, column, overrule[name], order))
        elif name != target:
            columns.append(find_kind(name, column, order))
    kinds = ColumnKinds(columns, target)
    if not kinds.used:
        raise ValueError(f"no column is left to learn from{_why(columns)}")
    if y is None:
        return kinds
    return _flag_leaks(kinds, frame, y, task or "auto")


def _why(columns: list[ColumnKind]) -> str:
    """Return the end of an error message: the reasons why no column can be used."""
    if not columns:
        return ""
    left = {column.kind for column in columns}
    if len(columns) == 1:
        return f": {columns[0].name!r} is unused ({columns[0].reason})"
    reasons = {column.reason for column in columns}
    shown = reasons.pop() if len(reasons) == 1 else ", ".join(sorted(left))
    return f": all {len(columns):,} are unused ({shown})"


def _overruled(name: str, column: pa.ChunkedArray, kind: Any, order: str) -> ColumnKind:
    type_ = str(column.type)
    decided = ColumnKind(name, kind, "set by the user", (), type_, order, DecidedBy.USER)
    if kind not in LEARNED:
        return decided
    try:
        _, n_infinite = _prepare(decided, column)
    except ValueError as error:
        raise ValueError(f"{error}; it cannot be a {kind}") from None
    if not n_infinite:
        return decided
    flag = Note(infinite_flag(n_infinite), kind=NoteKind.INFINITE_VALUES, column=name)
    return replace(decided, flags=(flag,))


def _flag_leaks(
    kinds: ColumnKinds,
    frame: pa.Table,
    y: Any,
    task: Literal["auto", "classification", "regression"],
) -> ColumnKinds:
    # Imported late, as `_leakage` imports this module.
    from spinney.io._leakage import suspect_leakage

    present = np.flatnonzero(~missing_rows(y))
    if len(present) < frame.num_rows:
        frame, y = frame.take(pa.array(present)), take_rows(y, present)
    values, task = read_target(y, task)
    leaks = dict(suspect_leakage(frame, values, task, kinds))
    columns = [
        replace(column, flags=(*column.flags, _leak_flag(column.name, leaks[column.name], task)))
        if column.name in leaks
        else column
        for column in kinds.columns
    ]
    return replace(kinds, columns=columns)


def _leak_flag(name: str, score: float, task: str) -> Note:
    quantity = "of the errors" if task == "classification" else "of the variance"
    text = f"leak suspected: alone it removes {score:.1%} {quantity}"
    return Note(text, kind=NoteKind.LEAK, column=name)


def _reading_type(column: ColumnKind) -> pa.DataType:
    if column.type == "bool":
        return pa.bool_()
    if column.kind == "date" or (column.kind == "number" and column.type in _TIMES):
        return pa.time64("us") if column.has_times_of_day else pa.timestamp("us")
    if column.kind == "number":
        return pa.float64()  # even for a column of integers: the next file may have 1.5
    # A category is its text, except for types with several texts for a value.
    return _TIMES.get(column.type, pa.float64() if column.type == "double" else pa.string())


def _prepare(column: ColumnKind, values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Return a column in a form that models accept, and its number of infinite values."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    type_ = values.type
    refusal = f"column {column.name!r}: expected {_EXPECTED[column.kind]}, got "
    if pa.types.is_nested(type_) or "binary" in str(type_):
        raise ValueError(f"{refusal}values of type {type_}")
    if "string" in str(type_) and type_ != pa.string():
        values = values.cast(pa.string())
    try:
        return _without_infinite(_PREPARE[column.kind](column, values))
    except Misfit as misfit:
        raise ValueError(f"{refusal}{misfit.text!r} in row {misfit.row + 1:,}") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ValueError(f"{refusal}values of type {type_}") from None


def _as_number(column: ColumnKind, values: pa.ChunkedArray) -> pa.ChunkedArray:
    type_ = values.type
    if pa.types.is_temporal(type_):
        return _as_days(column, values)
    if column.type in _TIMES or "timestamp" in column.type:
        return _as_days(column, as_type(values, pa.timestamp("us"), order=column.order))
    if pa.types.is_string(type_):
        return as_type(values, pa.float64())
    if pa.types.is_boolean(type_):
        return values.cast(pa.int8())
    if pa.types.is_integer(type_):
        ends = pc.min_max(values).as_py()
        if max(abs(ends["min"] or 0), abs(ends["max"] or 0)) <= 2**53:
            return values
        return pc.cast(values, pa.float64(), safe=False)  # the user accepts the lost digits
    if pa.types.is_float64(type_) or pa.types.is_float32(type_):
        return values
    return values.cast(pa.float64())


def _without_infinite(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Replace infinite values by missing ones, as few models accept them; count them."""
    if not pa.types.is_floating(values.type):
        return values, 0
    is_infinite = pc.is_inf(values)
    count = pc.sum(is_infinite).as_py() or 0
    return (
        pc.if_else(is_infinite, pa.scalar(None, values.type), values) if count else values
    ), count


def _as_category(column: ColumnKind, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)
        if "int" in column.type:  # pandas stores integers with missing values as floats
            with suppress(pa.ArrowInvalid):
                values = values.cast(pa.int64())
    if "int" in column.type and pa.types.is_string(values.type):
        values = pc.replace_substring_regex(values, r"^([-+]?\d+)\.0*$", r"\1")  # also in texts
    if str(values.type) != column.type and column.type in _TIMES:
        values = values.cast(_TIMES[column.type])
    return values.cast(pa.string()).dictionary_encode()


def _as_days(column: ColumnKind, values: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_string(values.type):
        values = as_type(values, _reading_type(column), order=column.order)
    if pa.types.is_null(values.type) or not pa.types.is_temporal(values.type):
        if values.null_count < len(values):
            raise pa.ArrowInvalid("no dates")
        return values.cast(pa.float64())
    if pa.types.is_time(values.type):
        values = values.cast(pa.time64("us"))
    elif pa.types.is_duration(values.type):
        values = values.cast(pa.duration("us"), safe=False)
    else:
        values = values.cast(pa.timestamp("us"), safe=False)  # the moment in UTC
    return pc.divide(values.cast(pa.int64()).cast(pa.float64(), safe=False), _MICROSECONDS_A_DAY)


_EXPECTED = {"number": "numbers", "category": "categories", "date": "dates"}
_PREPARE = {"number": _as_number, "category": _as_category, "date": _as_days}


def as_arrow(frame: Any) -> pa.Table:
    """Return any data frame as an Arrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    # Imported late, for start-up time; Arrow tables do not need it.
    import narwhals.stable.v2 as nw

    return nw.from_native(frame, eager_only=True).to_arrow()
