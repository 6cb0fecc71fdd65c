"""The kind of one column: the decision, its reason, and warnings."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from spinney.data.notes import Note, NoteKind
from spinney.io._text_form import NUMBER

__all__ = ["KINDS", "LEARNED", "ColumnKind", "DecidedBy", "Kind", "find_kind", "infinite_flag"]

Kind = Literal["number", "category", "date", "text", "identifier", "constant", "dropped"]


class DecidedBy(Enum):
    """The origin of the kind of a column."""

    VALUES = "values"  # its values, its type and its name
    USER = "user"
    GROUP = "group"  # it defines the groups of rows


KINDS: tuple[Kind, ...] = get_args(Kind)
# pyarrow's names of the types of times without a date.
_TIMES_OF_DAY = frozenset({"time32[s]", "time32[ms]", "time64[us]", "time64[ns]"})
LEARNED = ("number", "category", "date")

_SAMPLE = 100_000
_FEW = 20  # rows: with fewer, values that all differ prove nothing
_NEARLY_ALL = 0.95
_EXACT = 2**53  # integers up to here are numbers in float64
_ID_WORD = re.compile("id|uuid|guid|key|identifier|row(id|num|names)|serial|pk|nr|no|number")
_ROW_NAMES = re.compile(r"|c1(_\d+)?|index|level_0|__index_level_0__|row|rows|obs|unnamed: ?0")
_TIME_WORD = re.compile("[a-z]|time|(time)?step|year|month|week|day|hour|minute|second|age|date")
_LOOKS = [
    (r"^\d{1,4}[/.-]\d{1,2}[/.-]\d{1,4}", "dates that are not written as 2024-12-31"),
    (r"^[-+]?\d{1,3}([.,' ]\d{3})+([.,]\d+)?$", "numbers with separated thousands"),
    (r"^[$€£¥]\s*[-+]?\d[\d.,' ]*$", "numbers with signs"),
    (r"^[-+]?\d[\d.,' ]*\s*([%$€£¥]|[A-Za-z]{1,3})$", "numbers with units"),
]


@dataclass(frozen=True)
class ColumnKind:
    """The kind of one column.

    Attributes
    ----------
    name : str
        The column.
    kind : {"number", "category", "date", "text", "identifier", "constant", "dropped"}
        The first three are features, the others are not used.
    reason : str
        Why it is of this kind.
    flags : tuple of str
        Warnings about it; `Note` objects unless they come from a file.
    type : str
        pyarrow's name of its type when the kind was decided.
    order : {"", "day", "month", "year"}
        The first field of dates that are not written as 2024-12-31.
    decided_by : DecidedBy
        The origin of the kind.
    """

    name: str
    kind: Kind
    reason: str
    flags: tuple[str, ...] = ()
    type: str = "string"
    order: str = ""
    decided_by: DecidedBy = DecidedBy.VALUES

    @property
    def has_times_of_day(self) -> bool:
        """Whether it was stored as times without a date."""
        return self.type in _TIMES_OF_DAY


def find_kind(name: str, column: pa.ChunkedArray, order: str = "") -> ColumnKind:
    """Decide the kind of a column from its name, its type and its values."""
    kind, reason, *flags = _find(name, column)
    notes = tuple(Note(text, kind=about, column=name) for about, text in flags)
    return ColumnKind(name, kind, reason, notes, str(column.type), order)


def _find(name: str, column: pa.ChunkedArray) -> tuple[Any, ...]:
    """Return the kind, the reason, and a pair (`NoteKind`, text) for each flag."""
    type_ = column.type
    if pa.types.is_null(type_):  # first, because there may be thousands
        return "constant", "no value in any row"
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
        if pa.types.is_nested(type_) or _is_bytes(type_):
            return "dropped", f"holds values of type {type_}"
        column = column.cast(type_)
        if not _is_text(type_):
            return _constant(column, type_) or ("category", "declared as categories")
    if pa.types.is_nested(type_) or _is_bytes(type_) or isinstance(type_, pa.BaseExtensionType):
        return "dropped", f"holds values of type {type_}"
    if _is_text(type_):
        type_ = pa.large_string()  # pyarrow's functions do not support all string types
        column = column.cast(type_)
    constant = _constant(column, type_)
    if constant is not None:
        return constant
    if pa.types.is_boolean(type_):
        return "category", "true or false"
    if pa.types.is_integer(type_):
        return _find_integer(name, column)
    if pa.types.is_floating(type_) or pa.types.is_decimal(type_) or pa.types.is_duration(type_):
        is_id = _is_named_id(name) and _is_whole(column) and _all_differ(column)
        if is_id:
            return "identifier", "integers that all differ, and a name like an identifier"
        return "number", "numbers", *_infinities(column)
    if pa.types.is_temporal(type_):
        return "date", "times of the day" if pa.types.is_time(type_) else "dates"
    if _is_text(type_):
        return _find_text(column)
    return "dropped", f"holds values of type {type_}"


def _infinities(column: pa.ChunkedArray) -> list[tuple[NoteKind, str]]:
    """Return a flag if some values are infinite."""
    if not pa.types.is_floating(column.type):
        return []
    count = pc.sum(pc.is_inf(_comparable(column, column.type))).as_py() or 0
    return [(NoteKind.INFINITE_VALUES, infinite_flag(count))] if count else []


def infinite_flag(count: int) -> str:
    """Return the text of a flag on infinite values."""
    return f"{count:,} infinite {'values are' if count > 1 else 'value is'} treated as missing"


def _constant(column: pa.ChunkedArray, type_: pa.DataType) -> tuple[Any, ...] | None:
    """Return kind and reason of a column with at most one value, else None."""
    column = _comparable(column, type_)
    missing = column.null_count
    if missing < len(column) and pa.types.is_floating(type_):
        missing += pc.sum(pc.is_nan(column)).as_py() or 0
    if missing == len(column):
        return "constant", "no value in any row"
    ends = pc.min_max(column).as_py()
    if ends["min"] != ends["max"]:
        return None
    value = ends["min"]
    if missing == 0:
        return "constant", f"has one value only: {_shorten(value)}"
    kind = "category" if _is_text(type_) or pa.types.is_boolean(type_) else "number"
    kind = "date" if pa.types.is_temporal(type_) else kind
    return (
        kind,
        f"{_shorten(value)} or missing",
        (NoteKind.CONSTANT_OR_MISSING, "one value only, and missing"),
    )


def _comparable(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Cast types that pyarrow cannot compare to types that it can."""
    if pa.types.is_float16(type_):
        return column.cast(pa.float32())
    return column.cast(pa.int64()) if pa.types.is_duration(type_) else column


def _find_integer(name: str, column: pa.ChunkedArray) -> tuple[Any, ...]:
    ends = pc.min_max(column).as_py()
    if max(abs(ends["min"]), abs(ends["max"])) > _EXACT:
        if _all_differ(column):
            return "identifier", "integers beyond 2**53 that all differ"
        return "category", "integers beyond 2**53, which float64 would round"
    is_named = _is_named_id(name)
    if is_named and _all_differ(column):
        return "identifier", "integers that all differ, and a name like an identifier"
    if ends["min"] in (0, 1) and _counts_rows(column):
        is_row_name = _ROW_NAMES.fullmatch(name.strip().lower()) is not None
        is_time = any(_TIME_WORD.fullmatch(word) for word in _words(name))
        if is_row_name and len(column) >= _FEW:
            return "identifier", "counts the rows"
        if len(column) >= 1000 and not is_time:
            return "identifier", "counts the rows"
        return "number", "integers", (NoteKind.COUNTS_ROWS, "counts the rows")
    if is_named:
        flag = NoteKind.LIKE_IDENTIFIER, "named like an identifier: perhaps a category"
        return "number", "integers", flag
    return "number", "integers"


def _find_text(column: pa.ChunkedArray) -> tuple[Any, ...]:
    present = len(column) - column.null_count
    sample = pc.drop_null(_sample(column))
    values = pc.drop_null(pc.unique(sample))
    share = len(values) / max(len(sample), 1)
    n_values = len(values)
    if len(sample) < present and share > 0.1:
        n_values = pc.count_distinct(column, mode="only_valid").as_py()
        share = n_values / present
    numbers = pc.mean(pc.cast(pc.match_substring_regex(sample, NUMBER), pa.int8())).as_py()
    if 0.9 <= numbers < 1.0 and (share > 0.5 or n_values > 100):
        others = sample.filter(pc.invert(pc.match_substring_regex(sample, NUMBER)))
        example = _shorten(others[0].as_py())
        return (
            "text",
            f"numbers mixed with other values such as {example}",
            (NoteKind.MIXED_VALUES, "mixed values"),
        )
    length = pc.mean(pc.utf8_length(values)).as_py()
    words = pc.mean(pc.count_substring_regex(values, r"\S+")).as_py()
    if present >= _FEW and share >= 0.9:
        for pattern, what in _LOOKS:
            if pc.mean(pc.cast(pc.match_substring_regex(values, pattern), pa.int8())).as_py() > 0.9:
                hint = f"{what}: write them plainly to learn from them"
                return "text", f"looks like {what}", (NoteKind.WRITTEN_NUMBERS, hint)
        if length > 50 or words >= 3:
            return "text", f"texts of {words:.0f} words that nearly all differ"
        return "identifier", "texts that nearly all differ"
    if share >= 0.5 and (length > 50 or words >= 6) and present >= _FEW:
        return "text", f"texts of {words:.0f} words, most of which differ"
    reason = f"{n_values:,} different value{'s' if n_values > 1 else ''}"
    if n_values > 20 and share > 0.3:
        flag = NoteKind.MANY_CATEGORIES, f"many values: {n_values:,} in {present:,} rows"
        return "category", reason, flag
    return "category", reason


def _all_differ(column: pa.ChunkedArray) -> bool:
    """Return whether nearly all present values differ, in at least 20 rows."""
    sample = pc.drop_null(_sample(column))
    if len(sample) < _FEW or pc.count_distinct(sample).as_py() < _NEARLY_ALL * len(sample):
        return False
    present = len(column) - column.null_count
    if len(sample) == present:
        return True
    # A sample may differ although all values occur more than once.
    return bool(pc.count_distinct(column, mode="only_valid").as_py() >= _NEARLY_ALL * present)


def _counts_rows(column: pa.ChunkedArray) -> bool:
    """Return whether the values increase by one from row to row."""
    if column.null_count or column[-1].as_py() - column[0].as_py() != len(column) - 1:
        return False
    values = column.cast(pa.int64()).to_numpy()
    return bool((values[1:] - values[:-1] == 1).all())


def _is_whole(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(column.type):
        return False
    return pc.all(pc.equal(pc.floor(column), column)).as_py() is not False


def _is_named_id(name: str) -> bool:
    """Whether the name is that of an identifier: id, user_id, PassengerId, row number."""
    words = _words(name)
    return bool(words) and (words[0] == "id" or _ID_WORD.fullmatch(words[-1]) is not None)


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower())


def _sample(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Take evenly spaced rows of a long column."""
    if len(column) <= _SAMPLE:
        return column
    rows = pa.array(range(0, len(column), -(-len(column) // _SAMPLE)))
    return column.take(rows)


def _is_text(type_: pa.DataType) -> bool:
    return str(type_) in ("string", "large_string", "string_view")


def _is_bytes(type_: pa.DataType) -> bool:
    return "binary" in str(type_)


def _shorten(value: Any) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else text[:39] + "…"
