"""Types of text columns: numbers, booleans, dates or plain text.

The **form** of a column is inferred from all its values. Forms can be joined, so that a column can
be read in blocks: the form of the column is the join of the forms of its blocks.

Dates such as 31/12/2024 are parsed if their order is certain. It is if some value can only be a
day, or if the separator is a point, which follows only days. A column in which every value can be
read both ways stays text.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spinney.io._dialect import MISSING

__all__ = [
    "NUMBER",
    "Misfit",
    "TextForm",
    "as_type",
    "date_order",
    "dated",
    "infer_form",
    "join",
    "trim",
]

NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
_COMMA_NUMBER = r"^[-+]?(\d+|(\d+,\d*|,\d+)([eE][-+]?\d+)?)$"
_WHOLE = r"^[-+]?\d+$"
_PADDED = r"^[-+]?0[0-9xX]"  # codes, not numbers: zip codes, article numbers, 0x1f
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_LATER_CLOCK = r"([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?"
_DAY_AND_MONTH = rf"^\d{{1,2}}[./-]\d{{1,2}}[./-][12]\d{{3}}{_LATER_CLOCK}$"
_YEAR_FIRST = rf"^[12]\d{{3}}[./-]\d{{1,2}}[./-]\d{{1,2}}{_LATER_CLOCK}$"
_ONLY_DAY_FIRST = r"^(1[3-9]|[23]\d)[/-]|^\d+\."
_ONLY_MONTH_FIRST = r"^\d+[/.-](1[3-9]|[23]\d)[/.-]"
_ORDER = b"order of dates"  # key in the metadata of a field
_BLANKS = " \t\n\v\f\r\xa0"
_BLANK_END = f"^[{_BLANKS}]|[{_BLANKS}]$"
_TRUTHS = ["true", "false", "True", "False", "TRUE", "FALSE"]


class TextForm(Enum):
    """The common form of all texts of a column."""

    EMPTY = "no values"
    BOOLEAN = "true and false"
    INTEGER = "integers"
    LARGE = "integers beyond 64 bits"  # kept as text, as float64 would round them
    CODE = "digits with leading zeros"
    REAL = "numbers"
    COMMA = "numbers with a decimal comma"
    DATE = "dates"
    MOMENT = "dates with times"
    ZONED = "dates with times and zones"
    DAY_FIRST = "dates, day before month"
    MONTH_FIRST = "dates, month before day"
    YEAR_FIRST = "dates, year first"
    EITHER_FIRST = "dates with an ambiguous order of day and month"  # kept as text
    TIME = "times of the day"
    TEXT = "texts"

    @property
    def type(self) -> pa.DataType:
        """The type of the column in memory."""
        return _TYPES.get(self, pa.string())

    @property
    def order(self) -> str:
        """The first field of dates that are not written as 2024-12-31, else ""."""
        return _ORDERS.get(self, "")


_TYPES = {
    TextForm.EMPTY: pa.null(),
    TextForm.BOOLEAN: pa.bool_(),
    TextForm.INTEGER: pa.int64(),
    TextForm.REAL: pa.float64(),
    TextForm.COMMA: pa.float64(),
    TextForm.DATE: pa.date32(),
    TextForm.MOMENT: pa.timestamp("us"),
    TextForm.ZONED: pa.timestamp("us", "UTC"),
    TextForm.DAY_FIRST: pa.timestamp("us"),
    TextForm.MONTH_FIRST: pa.timestamp("us"),
    TextForm.YEAR_FIRST: pa.timestamp("us"),
    TextForm.TIME: pa.time64("us"),
}
_ORDERS = {TextForm.DAY_FIRST: "day", TextForm.MONTH_FIRST: "month", TextForm.YEAR_FIRST: "year"}
_TIMES = {
    TextForm.DATE: f"^{_DAY}$",
    TextForm.MOMENT: f"^{_DAY}([ T]{_CLOCK})?$",
    TextForm.ZONED: f"^{_DAY}[ T]{_CLOCK}(Z|[-+]\\d{{2}}:?\\d{{2}})$",
    TextForm.TIME: f"^{_CLOCK}$",
}
# Each form of a chain includes the forms before it.
_CHAINS = [
    [TextForm.INTEGER, TextForm.LARGE, TextForm.CODE, TextForm.REAL],
    [TextForm.INTEGER, TextForm.LARGE, TextForm.CODE, TextForm.COMMA],
    [TextForm.DATE, TextForm.MOMENT, TextForm.YEAR_FIRST],
    [TextForm.EITHER_FIRST, TextForm.DAY_FIRST],
    [TextForm.EITHER_FIRST, TextForm.MONTH_FIRST],
]


def join(one: TextForm, other: TextForm) -> TextForm:
    """Return the smallest form that includes both."""
    if one is other or other is TextForm.EMPTY:
        return one
    if one is TextForm.EMPTY:
        return other
    for chain in _CHAINS:
        if one in chain and other in chain:
            return max(one, other, key=chain.index)
    return TextForm.TEXT


def infer_form(column: Any, *, comma: bool) -> tuple[TextForm, Any]:
    """Infer the form of a column of texts, and parse them.

    Blanks at both ends of texts are removed, also around markers of missing values.

    Parameters
    ----------
    column : ChunkedArray of strings
    comma : bool
        Whether 1,5 may be a number: the comma is not the delimiter.

    Returns
    -------
    form : TextForm
    values : ChunkedArray
        The values, with the type of the form.
    """
    if column.null_count == len(column):
        return TextForm.EMPTY, pa.chunked_array([pa.nulls(len(column))])
    integers = _cast(column, pa.int64())
    if integers is not None and not _any_padded(column):
        return TextForm.INTEGER, integers
    reals = _cast(column, pa.float64())
    if reals is not None or integers is not None:
        form = _numeric_form(column, reals)
        return form, reals if form is TextForm.REAL else as_type(column, form.type)
    values = pc.drop_null(pc.unique(column))
    if pc.any(pc.match_substring_regex(values, _BLANK_END)).as_py():
        return infer_form(trim(column), comma=comma)
    form = _form_of_texts(values, comma)
    if form is TextForm.TEXT:
        return form, column
    return form, as_type(column, form.type, comma=form is TextForm.COMMA, order=form.order)


def _numeric_form(column: Any, reals: Any) -> TextForm:
    if not _all_match(column, _WHOLE):
        return TextForm.TEXT if reals is None else TextForm.REAL
    if _any_padded(column):
        return TextForm.CODE
    return TextForm.INTEGER if _fits(column, pa.int64()) else TextForm.LARGE


def _form_of_texts(values: Any, comma: bool) -> TextForm:
    if len(values) <= len(_TRUTHS) and pc.all(pc.is_in(values, pa.array(_TRUTHS))).as_py():
        return TextForm.BOOLEAN
    if comma and _all_match(values, _COMMA_NUMBER):
        return TextForm.COMMA
    for form, pattern in _TIMES.items():
        if _all_match(values, pattern):
            return form if _fits(values, form.type) else TextForm.TEXT  # such as 30 February
    form = _form_of_dates(values)
    # Ambiguous values are valid dates in both orders, so that it suffices to try one.
    is_real = form is TextForm.TEXT or _fits(values, pa.timestamp("us"), form.order or "day")
    return form if is_real else TextForm.TEXT


def _form_of_dates(values: Any) -> TextForm:
    """Infer the order of dates that are not written as 2024-12-31."""
    if _all_match(values, _YEAR_FIRST):
        return TextForm.YEAR_FIRST
    if not _all_match(values, _DAY_AND_MONTH):
        return TextForm.TEXT
    by_day, by_month = (
        pc.any(pc.match_substring_regex(values, pattern)).as_py()
        for pattern in (_ONLY_DAY_FIRST, _ONLY_MONTH_FIRST)
    )
    if by_day and by_month:
        return TextForm.TEXT
    if by_day:
        return TextForm.DAY_FIRST
    return TextForm.MONTH_FIRST if by_month else TextForm.EITHER_FIRST


def dated(name: str, type_: pa.DataType, order: str) -> pa.Field:
    """Return a schema field with the order of its dates in its metadata."""
    return pa.field(name, type_, metadata={_ORDER: order} if order else None)


def date_order(field: pa.Field) -> str:
    """Return the order of dates in a field's metadata: "day", "month", "year" or ""."""
    return (field.metadata or {}).get(_ORDER, b"").decode()


def trim(column: Any) -> Any:
    """Remove blanks at both ends, and replace markers of missing values by null."""
    column = pc.utf8_trim(column, characters=_BLANKS)
    missing = pc.is_in(column, value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, column.type), column)


class Misfit(ValueError):
    """A text that cannot be parsed as the type of its column.

    Attributes
    ----------
    row : int
        Its index in the column.
    text : str
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(f"row {row}: {text!r}")
        self.row = row
        self.text = text


def as_type(column: Any, type_: pa.DataType, *, comma: bool = False, order: str = "") -> Any:
    """Parse texts as values of a type, or raise a `Misfit` for the first invalid one.

    Parameters
    ----------
    column : Array or ChunkedArray of strings
    type_ : DataType
        The type of a form.
    comma : bool, default=False
        Whether 1,5 may be a number.
    order : {"", "day", "month", "year"}, default=""
        The first field of dates that are not written as 2024-12-31.
    """
    if pa.types.is_string(type_):
        blank = pc.any(pc.match_substring_regex(column, _BLANK_END)).as_py()
        return trim(column) if blank else column
    values = _read(column, type_, comma, order)
    if values is None:
        column = trim(column)
        values = _read(column, type_, comma, order)
    if values is not None:
        return values
    for row, text in enumerate(column):
        if text.is_valid and _read(pa.array([text.as_py()]), type_, comma, order) is None:
            raise Misfit(row, text.as_py())
    raise AssertionError("every value can be read by itself")  # pragma: no cover


def _read(column: Any, type_: pa.DataType, comma: bool, order: str = "") -> Any:
    """Parse texts as a type, or return None if one is invalid."""
    values = _cast(column, type_) if not pa.types.is_time(type_) else None
    if values is not None:
        return values
    if pa.types.is_time(type_):
        moments = _cast(pc.binary_join_element_wise("1970-01-01", column, " "), pa.timestamp("us"))
        return None if moments is None else pc.cast(moments, type_)
    if order and (pa.types.is_timestamp(type_) or pa.types.is_date(type_)):
        values = _cast(_as_iso(column, order), type_)
        if values is not None:
            return values
    if pa.types.is_timestamp(type_):  # times with a zone are converted to UTC
        moments = _cast(column, pa.timestamp("us", "UTC"))
        return None if moments is None else pc.cast(moments, type_)
    if pa.types.is_integer(type_):  # Arrow does not parse integers with a plus sign
        return _cast(pc.replace_substring_regex(column, r"^\+", ""), type_)
    if comma and pa.types.is_floating(type_):
        return _cast(pc.replace_substring(column, ",", ".", max_replacements=1), type_)
    return None


def _as_iso(texts: Any, order: str) -> Any:
    """Rewrite dates of an order as 2024-12-31, and their hours with two digits."""
    part, year = r"(\d{1,2})", r"([12]\d{3})"
    parts = [year, part, part] if order == "year" else [part, part, year]
    # Put a zero before every day and month, then remove it before two digits.
    pattern = {"year": r"\1-0\2-0\3", "day": r"\3-0\2-0\1", "month": r"\3-0\1-0\2"}[order]
    texts = pc.replace_substring_regex(texts, "^" + "[./-]".join(parts), pattern)
    texts = pc.replace_substring_regex(texts, r"^(\d{4})-0?(\d\d)-0?(\d\d)", r"\1-\2-\3")
    return pc.replace_substring_regex(texts, r"([ T])(\d):", r"\10\2:")


def _cast(values: Any, type_: pa.DataType) -> Any:
    """Cast values, or return None if that fails."""
    try:
        # A failing cast of all values is slow, so a few are tried first.
        pc.cast(values.slice(0, 100), type_)
        return pc.cast(values, type_)
    except pa.ArrowInvalid:
        return None


def _fits(values: Any, type_: pa.DataType, order: str = "") -> bool:
    return _read(values, type_, False, order) is not None


def _any_padded(column: Any) -> bool:
    # The cheap test first: most columns have no leading zero at all.
    starts = pc.or_(pc.starts_with(column, "0"), pc.starts_with(column, "-0"))
    if not pc.any(pc.or_(starts, pc.starts_with(column, "+0"))).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(column, _PADDED)).as_py())


def _all_match(values: Any, pattern: str) -> bool:
    # The first values rule out most patterns at a fraction of the cost.
    return all(
        pc.all(pc.match_substring_regex(sample, pattern)).as_py() is not False
        for sample in (values.slice(0, 100), values)
    )
