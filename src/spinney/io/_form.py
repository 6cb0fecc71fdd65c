"""What the texts of a column are: numbers, truth values, dates or just texts.

A column's **form** is found from all its values. Forms can be joined, so that a column may be
looked at piece by piece: the form of the whole is the join of the forms of its pieces.

Dates such as 31/12/2024 are read where their order is beyond doubt: where some value can only be a
day, or points stand between the numbers, which nobody puts after a month. A column of which all
values can be read both ways stays text.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spinney.io._dialect import MISSING

__all__ = [
    "NUMBER",
    "Form",
    "Misfit",
    "as_type",
    "date_order",
    "dated",
    "join",
    "settle",
    "trim",
]

NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
_COMMA_NUMBER = r"^[-+]?(\d+|(\d+,\d*|,\d+)([eE][-+]?\d+)?)$"
_WHOLE = r"^[-+]?\d+$"
_PADDED = r"^[-+]?0[0-9xX]"  # a code rather than a number: zip codes, article numbers, 0x1f
_DAY = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?"
_LATER_CLOCK = r"([ T]\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?"
_DAY_AND_MONTH = rf"^\d{{1,2}}[./-]\d{{1,2}}[./-][12]\d{{3}}{_LATER_CLOCK}$"
_YEAR_FIRST = rf"^[12]\d{{3}}[./-]\d{{1,2}}[./-]\d{{1,2}}{_LATER_CLOCK}$"
_ONLY_DAY_FIRST = r"^(1[3-9]|[23]\d)[/-]|^\d+\."
_ONLY_MONTH_FIRST = r"^\d+[/.-](1[3-9]|[23]\d)[/.-]"
_ORDER = b"order of dates"  # under which a field keeps it
_BLANKS = " \t\n\v\f\r\xa0"
_BLANK_END = f"^[{_BLANKS}]|[{_BLANKS}]$"
_TRUTHS = ["true", "false", "True", "False", "TRUE", "FALSE"]


class Form(Enum):
    """What all texts of a column are."""

    EMPTY = "no values"
    BOOLEAN = "true and false"
    INTEGER = "integers"
    LARGE = "integers beyond 64 bits"  # kept as texts, which tell them apart
    CODE = "digits with leading zeros"
    REAL = "numbers"
    COMMA = "numbers with a decimal comma"
    DATE = "dates"
    MOMENT = "dates with times"
    ZONED = "dates with times and zones"
    DAY_FIRST = "dates, day before month"
    MONTH_FIRST = "dates, month before day"
    YEAR_FIRST = "dates, year first"
    EITHER_FIRST = "dates of which day and month cannot be told apart"  # kept as texts
    TIME = "times of the day"
    TEXT = "texts"

    @property
    def type(self) -> pa.DataType:
        """The type of the column in memory."""
        return _TYPES.get(self, pa.string())

    @property
    def order(self) -> str:
        """Of dates that are not written as 2024-12-31: what comes first."""
        return _ORDERS.get(self, "")


_TYPES = {
    Form.EMPTY: pa.null(),
    Form.BOOLEAN: pa.bool_(),
    Form.INTEGER: pa.int64(),
    Form.REAL: pa.float64(),
    Form.COMMA: pa.float64(),
    Form.DATE: pa.date32(),
    Form.MOMENT: pa.timestamp("us"),
    Form.ZONED: pa.timestamp("us", "UTC"),
    Form.DAY_FIRST: pa.timestamp("us"),
    Form.MONTH_FIRST: pa.timestamp("us"),
    Form.YEAR_FIRST: pa.timestamp("us"),
    Form.TIME: pa.time64("us"),
}
_ORDERS = {Form.DAY_FIRST: "day", Form.MONTH_FIRST: "month", Form.YEAR_FIRST: "year"}
_TIMES = {
    Form.DATE: f"^{_DAY}$",
    Form.MOMENT: f"^{_DAY}([ T]{_CLOCK})?$",
    Form.ZONED: f"^{_DAY}[ T]{_CLOCK}(Z|[-+]\\d{{2}}:?\\d{{2}})$",
    Form.TIME: f"^{_CLOCK}$",
}
# Each form of a chain takes in those before it.
_CHAINS = [
    [Form.INTEGER, Form.LARGE, Form.CODE, Form.REAL],
    [Form.INTEGER, Form.LARGE, Form.CODE, Form.COMMA],
    [Form.DATE, Form.MOMENT, Form.YEAR_FIRST],
    [Form.EITHER_FIRST, Form.DAY_FIRST],
    [Form.EITHER_FIRST, Form.MONTH_FIRST],
]


def join(one: Form, other: Form) -> Form:
    """Return the form that takes in both."""
    if one is other or other is Form.EMPTY:
        return one
    if one is Form.EMPTY:
        return other
    for chain in _CHAINS:
        if one in chain and other in chain:
            return max(one, other, key=chain.index)
    return Form.TEXT


def settle(column: Any, *, comma: bool) -> tuple[Form, Any]:
    """Find the form of a column of texts, and read them by it.

    Blanks at both ends of texts are cut off, also around missing markers.

    Parameters
    ----------
    column : ChunkedArray of strings
    comma : bool
        Whether 1,5 may be a number (where the comma is no delimiter).

    Returns
    -------
    form : Form
    values : ChunkedArray
        Of the form's type.
    """
    if column.null_count == len(column):
        return Form.EMPTY, pa.chunked_array([pa.nulls(len(column))])
    integers = _cast(column, pa.int64())
    if integers is not None and not _any_padded(column):
        return Form.INTEGER, integers
    reals = _cast(column, pa.float64())
    if reals is not None or integers is not None:
        form = _form_of_numbers(column, reals)
        return form, reals if form is Form.REAL else as_type(column, form.type)
    values = pc.drop_null(pc.unique(column))
    if pc.any(pc.match_substring_regex(values, _BLANK_END)).as_py():
        return settle(trim(column), comma=comma)
    form = _form_of_texts(values, comma)
    if form is Form.TEXT:
        return form, column
    return form, as_type(column, form.type, comma=form is Form.COMMA, order=form.order)


def _form_of_numbers(column: Any, reals: Any) -> Form:
    if not _all_match(column, _WHOLE):
        return Form.TEXT if reals is None else Form.REAL
    if _any_padded(column):
        return Form.CODE
    return Form.INTEGER if _fits(column, pa.int64()) else Form.LARGE


def _form_of_texts(values: Any, comma: bool) -> Form:
    if len(values) <= len(_TRUTHS) and pc.all(pc.is_in(values, pa.array(_TRUTHS))).as_py():
        return Form.BOOLEAN
    if comma and _all_match(values, _COMMA_NUMBER):
        return Form.COMMA
    for form, pattern in _TIMES.items():
        if _all_match(values, pattern):
            return form if _fits(values, form.type) else Form.TEXT  # there is no 30 February
    form = _form_of_dates(values)
    # What could be either is a date in both orders, and one is tried.
    is_real = form is Form.TEXT or _fits(values, pa.timestamp("us"), form.order or "day")
    return form if is_real else Form.TEXT


def _form_of_dates(values: Any) -> Form:
    """Find the order of dates that are not written as 2024-12-31."""
    if _all_match(values, _YEAR_FIRST):
        return Form.YEAR_FIRST
    if not _all_match(values, _DAY_AND_MONTH):
        return Form.TEXT
    by_day, by_month = (
        pc.any(pc.match_substring_regex(values, pattern)).as_py()
        for pattern in (_ONLY_DAY_FIRST, _ONLY_MONTH_FIRST)
    )
    if by_day and by_month:
        return Form.TEXT
    if by_day:
        return Form.DAY_FIRST
    return Form.MONTH_FIRST if by_month else Form.EITHER_FIRST


def dated(name: str, type_: pa.DataType, order: str) -> pa.Field:
    """Make a field of a schema that keeps the order in which its dates are written."""
    return pa.field(name, type_, metadata={_ORDER: order} if order else None)


def date_order(field: pa.Field) -> str:
    """Return the order of dates that a field keeps: "day", "month" or "year" first, or ""."""
    return (field.metadata or {}).get(_ORDER, b"").decode()


def trim(column: Any) -> Any:
    """Cut off blanks, and let words for missing values be missing."""
    column = pc.utf8_trim(column, characters=_BLANKS)
    missing = pc.is_in(column, value_set=pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, column.type), column)


class Misfit(ValueError):
    """A text that is none of what its column should hold.

    Attributes
    ----------
    row : int
        Its place in the column.
    text : str
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(f"row {row}: {text!r}")
        self.row = row
        self.text = text


def as_type(column: Any, type_: pa.DataType, *, comma: bool = False, order: str = "") -> Any:
    """Read texts as values of a type, or raise a `Misfit` for the first that is none.

    Parameters
    ----------
    column : Array or ChunkedArray of strings
    type_ : DataType
        One of those that forms have.
    comma : bool, default=False
        Whether 1,5 may be a number.
    order : {"", "day", "month", "year"}, default=""
        What comes first in dates that are not written as 2024-12-31.
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
    """Read texts as a type, or return None where that fails."""
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
    if pa.types.is_timestamp(type_):  # with a zone: the same moment in UTC
        moments = _cast(column, pa.timestamp("us", "UTC"))
        return None if moments is None else pc.cast(moments, type_)
    if pa.types.is_integer(type_):  # Arrow's integers have no plus sign
        return _cast(pc.replace_substring_regex(column, r"^\+", ""), type_)
    if comma and pa.types.is_floating(type_):
        return _cast(pc.replace_substring(column, ",", ".", max_replacements=1), type_)
    return None


def _as_iso(texts: Any, order: str) -> Any:
    """Write dates of an order as 2024-12-31, and their hours with two digits."""
    part, year = r"(\d{1,2})", r"([12]\d{3})"
    parts = [year, part, part] if order == "year" else [part, part, year]
    # A zero before every day and month; before two digits it is taken away again.
    written = {"year": r"\1-0\2-0\3", "day": r"\3-0\2-0\1", "month": r"\3-0\1-0\2"}[order]
    texts = pc.replace_substring_regex(texts, "^" + "[./-]".join(parts), written)
    texts = pc.replace_substring_regex(texts, r"^(\d{4})-0?(\d\d)-0?(\d\d)", r"\1-\2-\3")
    return pc.replace_substring_regex(texts, r"([ T])(\d):", r"\10\2:")


def _cast(values: Any, type_: pa.DataType) -> Any:
    """Cast, or return None where that fails."""
    try:
        # Failing is slow, as pyarrow words an error for every value: a few are tried first.
        pc.cast(values.slice(0, 100), type_)
        return pc.cast(values, type_)
    except pa.ArrowInvalid:
        return None


def _fits(values: Any, type_: pa.DataType, order: str = "") -> bool:
    return _read(values, type_, False, order) is not None


def _any_padded(column: Any) -> bool:
    # The cheap question first: most columns have no zero in front at all.
    starts = pc.or_(pc.starts_with(column, "0"), pc.starts_with(column, "-0"))
    if not pc.any(pc.or_(starts, pc.starts_with(column, "+0"))).as_py():
        return False
    return bool(pc.any(pc.match_substring_regex(column, _PADDED)).as_py())


def _all_match(values: Any, pattern: str) -> bool:
    # The first values tell most columns apart, for a thousandth of the work.
    return all(
        pc.all(pc.match_substring_regex(some, pattern)).as_py() is not False
        for some in (values.slice(0, 100), values)
    )
