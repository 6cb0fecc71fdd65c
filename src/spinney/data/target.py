"""Targets: one column of classes or numbers without missing values."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter, Part
from spinney.data.notes import Note, NoteKind
from spinney.data.task import Task

__all__ = [
    "StrayValue",
    "as_column",
    "check_classes",
    "infer_task",
    "is_declared_category",
    "missing_rows",
    "notes_on_classes",
    "read_target",
]

# Integers with at most this many distinct values may be classes; more are a quantity.
_MAX_INTEGER_CLASSES = 20
_FEW_ROWS = 20  # with fewer rows, nearly distinct classes are not suspicious
_MAX_NUMERIC_TEXTS = 5  # texts such as "0.5 mg" may be classes up to this many distinct ones
_NEARLY_ALL = 0.9
_FEW_ROWS_PER_CLASS = 5

_SIGN = r"[$€£¥₹₽₩]"
_CURRENCY = (
    rf"[A-Z]{{0,2}}{_SIGN}|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL|Rs\.?)"
)
_UNIT = rf"[%‰°]|{_SIGN}|°[CF]|[^\W\d_](?:[^\W_]|[./]){{0,9}}"
_WITH_UNIT = re.compile(rf"([-+]?)\s*({_CURRENCY})?\s*([-+]?[\d.,][\d.,'’ \xa0\u202f]*)({_UNIT})?")
_THOUSANDS = re.compile(r"([-+]?[1-9]\d{0,2})((?:([.,'’ \xa0\u202f])\d{3})(?:\3\d{3})*)([.,]\d+)?")
_DECIMAL = re.compile(r"[-+]?(?:(?:0|[1-9]\d*)(?:[.,]\d*)?|[.,]\d+)")


class StrayValue(ParameterError):
    """A target has an unexpected value in a row.

    Parameters
    ----------
    before : str
        The message up to the location of the value.
    row : int
        The row of the value, counted from 0.
    *after : str or Parameter
        The rest of the message.
    """

    def __init__(self, before: str, row: int, *after: Part) -> None:
        super().__init__(before, f"row {row + 1:,}", *after)
        self.before, self.row, self.after = before, row, after

    def at(self, location: str) -> ParameterError:
        """Return the same error with a location in a file, such as "line 17"."""
        return ParameterError(self.before, location, *self.after)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments."""
        return type(self), (self.before, self.row, *self.after)


def read_target(
    y: Any,
    task: Literal["auto", "classification", "regression"] = "auto",
    to_learn: bool = True,
) -> tuple[NDArray[Any], Task]:
    """Convert the target to an array, and infer the task.

    Parameters
    ----------
    y : array-like, series or data frame of one column
        The target.
    task : {"auto", "classification", "regression"}, default="auto"
        With "auto" it is inferred, see `infer_task`.
    to_learn : bool, default=True
        Whether a model is trained on it, which needs at least two classes.

    Returns
    -------
    y : array of shape (n_rows,)
        Numbers for regression; numbers, booleans or text for classification.
    task : {"classification", "regression"}
    """
    if task not in ("auto", "classification", "regression"):
        raise ParameterError(
            Parameter("task"),
            f" must be 'auto', 'classification' or 'regression', got {task!r}",
        )
    values, name = as_column(y)
    missing = missing_rows(values)
    if missing.any():
        rows = "all rows" if missing.all() else f"{missing.sum():,} of {missing.size:,} rows"
        raise ValueError(f"target {name!r} is missing in {rows}")
    values = _common_dtype(values, name)
    if task == "auto":
        task = "classification" if is_declared_category(y) else infer_task(values)
    if task == "regression":
        return _as_numbers(values, name), task
    return _as_classes(values, name, to_learn), task


def infer_task(y: NDArray[Any]) -> Task:
    """Return the task that the values of a target imply.

    Text, categories and booleans are classes. So are integers with at most 20 distinct values
    that occur at least twice on average, and floats with only two values that are both integers,
    such as 0.0 and 1.0. Everything else is a quantity.
    """
    if y.dtype.kind not in "iuf":
        return "classification"
    distinct = np.unique(y)
    if y.dtype.kind == "f":
        whole = np.isfinite(distinct).all() and np.array_equal(distinct, np.rint(distinct))
        two_whole = len(distinct) == 2 and whole
        return "classification" if two_whole else "regression"
    few = len(distinct) <= _MAX_INTEGER_CLASSES and 2 * len(distinct) <= len(y)
    return "classification" if few else "regression"


def check_classes(y: NDArray[Any], name: str) -> None:
    """Raise `StrayValue` if the classes are numbers written as texts.

    An error is raised in two cases. First, there are more than half as many distinct texts as rows.
    Second, nearly all distinct texts are numbers with the same unit, currency or percent sign, or
    with thousands separators, and these numbers alone would be a quantity.
    """
    if y.dtype.kind not in "OU":
        return
    texts, inverse = np.unique(y, return_inverse=True)
    many = len(y) >= _FEW_ROWS and 2 * len(texts) > len(y)
    n_numbers = _count_numbers_of_a_quantity(texts, inverse)
    if not many and not n_numbers:
        return
    count, row = _find_stray(y)
    if not count:  # codes such as 0117
        return
    are = "value is not a number" if count == 1 else "values are not numbers"
    but = f"{len(y):,} rows have {len(texts):,} different values"
    if n_numbers:
        most = f"{n_numbers:,} of " if n_numbers < len(texts) else ""
        but = (
            f"{most}its {len(texts):,} different values are numbers, apart from units, signs and "
            "separators"
        )
    raise StrayValue(
        f"target {_shorten(name)} was read as classes, as {count:,} {are} "
        f"(the first is {_shorten(str(y[row]))} in ",
        row,
        f"), but {but}; write numbers plainly, such as 1234.5, or set ",
        Parameter("task", "classification"),
    )


def notes_on_classes(y: NDArray[Any]) -> list[Note]:
    """Return a note if there are many classes with few rows each."""
    n_rows, n_classes = len(y), len(np.unique(y))
    if n_classes <= _MAX_INTEGER_CLASSES or n_rows >= _FEW_ROWS_PER_CLASS * n_classes:
        return []
    text = (
        f"{n_classes:,} classes in {n_rows:,} rows, {n_rows / n_classes:.1f} rows per class on "
        "average: merge rare classes, or predict another column"
    )
    return [Note(text, kind=NoteKind.RARE_CLASSES)]


def _count_numbers_of_a_quantity(texts: NDArray[Any], inverse: NDArray[np.intp]) -> int:
    """Count the distinct texts that are numbers; 0 if the texts may be classes.

    Parameters
    ----------
    texts : array
        The distinct texts.
    inverse : array of int
        Index of the text of each row.
    """
    read = [_read_number(str(text)) for text in texts]
    units = Counter(unit for _, unit in filter(None, read))
    if not units or sum(units.values()) < _NEARLY_ALL * len(texts):
        return 0
    # Plain numbers may occur together with the most frequent unit; 12A and 12B are codes.
    unit, _ = max(units.items(), key=lambda item: (item[0] != "", item[1]))
    values = np.array([found[0] if found and found[1] in ("", unit) else np.nan for found in read])
    is_number = np.isfinite(values)
    n_numbers = int(is_number.sum())
    if n_numbers < _NEARLY_ALL * len(texts):
        return 0
    of_rows = values[inverse]
    of_rows = of_rows[np.isfinite(of_rows)]
    distinct = np.unique(of_rows)
    if len(distinct) <= _MAX_NUMERIC_TEXTS:
        return 0
    is_whole = np.array_equal(distinct, np.rint(distinct)) and np.abs(distinct).max() < 2**53
    task = infer_task(of_rows.astype(np.int64) if is_whole else of_rows)
    return n_numbers if task == "regression" else 0


def _read_number(text: str) -> tuple[float, str] | None:
    """Read "0.52 €" as (0.52, "€") and "1,234" as (1234.0, ""), other texts as None."""
    if _is_number(text):
        is_code = re.match(r"[-+]?0\d", text.strip()) is not None
        return None if is_code else (float(text), "")
    found = _WITH_UNIT.fullmatch(text.strip().replace("−", "-"))
    if found is None:
        return None
    sign, before, digits, after = found.groups(default="")
    digits = digits.strip()
    grouped = _THOUSANDS.fullmatch(digits)
    if grouped is not None and not (grouped[4] or "").startswith(grouped[3]):
        digits = grouped[1] + re.sub(r"\D", "", grouped[2]) + (grouped[4] or "")
    if _DECIMAL.fullmatch(digits) is None:
        return None
    number = float(digits.replace(",", "."))
    return -number if sign == "-" else number, before + after


def _find_stray(y: NDArray[Any]) -> tuple[int, int]:
    """Return the number of texts that are not numbers, and the row of the first."""
    stray = [row for row, text in enumerate(y) if not _is_number(text)]
    return len(stray), stray[0] if stray else 0


def _is_number(text: Any) -> bool:
    try:
        return math.isfinite(float(text)) and "_" not in str(text)
    except ValueError:
        return False


def _shorten(text: str) -> str:
    """Quote a text of at most 40 characters; cut a longer one."""
    return repr(text if len(text) <= 40 else text[:39] + "…")


def missing_rows(y: Any) -> NDArray[np.bool_]:
    """Return a mask of the rows in which the target has no value."""
    values, _ = as_column(y)
    missing = np.zeros(len(values), dtype=np.bool_)
    if values.dtype.kind == "f":
        missing[:] = np.isnan(values)
    elif values.dtype.kind in "mM":
        missing[:] = np.isnat(values)
    elif values.dtype == object:
        missing[:] = [_is_missing(value) for value in values]
    return missing


def as_column(y: Any) -> tuple[NDArray[Any], str]:
    """Return the target as a one-dimensional array, and its name (``y`` if it has none)."""
    # Imported here for start-up time: arrays do not need it.
    import narwhals.stable.v2 as nw

    column = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(column, nw.DataFrame) and column.shape[1] == 1:
        column = column[column.columns[0]]
    if isinstance(column, nw.Series):
        name = str(column.name) if column.name else "y"
        # Nulls would turn integers into floats, and some libraries distinguish NaN from null.
        if column.null_count() > 0:
            values = np.empty(len(column), dtype=object)
            values[:] = column.to_list()
            return values, name
        return column.to_numpy(), name
    if isinstance(column, nw.DataFrame):
        raise ValueError(f"target 'y' must be one column, got {column.shape[1]}")
    if isinstance(y, np.ma.MaskedArray):
        y = np.ma.filled(y.astype(object), None)
    # A list becomes an object array: NumPy would convert ["a", nan] to the strings "a" and "nan".
    array = y if isinstance(y, np.ndarray) else np.asarray(y, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"target 'y' must be one column, got shape {array.shape}")
    return array, "y"


def is_declared_category(y: Any) -> bool:
    """Return whether the target is a series or one-column frame of categorical type."""
    # Imported here for start-up time: arrays do not need it.
    import narwhals.stable.v2 as nw

    column = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(column, nw.DataFrame) and column.shape[1] == 1:
        column = column[column.columns[0]]
    return isinstance(column, nw.Series) and isinstance(column.dtype, nw.Categorical | nw.Enum)


def _is_missing(value: Any) -> bool:
    # pandas' NA and NaT are recognized by their type's name, to avoid importing pandas.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


def _common_dtype(y: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert an array of Python objects to the common dtype of its values."""
    if y.dtype.kind in "mM":
        raise ValueError(f"target {name!r} holds dates; turn them into numbers or classes")
    if y.dtype.kind in "cV":
        kind = {"c": "complex numbers", "V": "records"}[y.dtype.kind]
        raise ValueError(f"target {name!r} must hold text or numbers, got {kind}")
    if y.dtype != object:
        return y
    if all(isinstance(value, bool | np.bool_) for value in y):
        return y.astype(bool)
    if all(isinstance(value, int | np.integer) for value in y):
        whole = np.asarray(y.tolist())
        return whole if whole.dtype != object else y.astype(np.float64)  # beyond 64 bits
    if any(isinstance(value, str) for value in y):
        if not all(isinstance(value, str) for value in y):
            raise ValueError(f"target {name!r} mixes text with other values")
        return y
    try:
        return y.astype(np.float64)  # also Decimal
    except (TypeError, ValueError):
        kind = type(y[0]).__name__
        raise ValueError(f"target {name!r} must hold text or numbers, got {kind}") from None


def _as_numbers(y: NDArray[Any], name: str) -> NDArray[Any]:
    if y.dtype.kind == "S":
        raise ValueError(f"target {name!r} must hold numbers for regression, got bytes")
    if y.dtype.kind not in "biuf":
        count, row = _find_stray(y)
        if not count:
            raise ValueError(
                f"target {name!r} must hold numbers for regression, got texts such as {str(y[0])!r}"
            )
        are = "value is not a number" if count == 1 else f"of {len(y):,} values are not numbers"
        raise StrayValue(
            f"target {_shorten(name)} must hold numbers for regression; {count:,} {are}, "
            f"the first is {_shorten(str(y[row]))} in ",
            row,
        )
    numbers = y.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise ValueError(f"target {name!r} holds infinite values")
    if numbers.size and numbers.min() == numbers.max():
        raise ValueError(f"target {name!r} has one value only: {numbers[0]:g}")
    return numbers


def _as_classes(y: NDArray[Any], name: str, to_learn: bool) -> NDArray[Any]:
    if y.dtype.kind == "f":
        if not np.isfinite(y).all():
            raise ValueError(f"target {name!r} holds infinite values")
        if not np.array_equal(y, np.rint(y)):
            raise ParameterError(
                f"target {name!r} holds fractions, which cannot be classes; "
                "turn them into text, or set ",
                Parameter("task", "regression"),
            )
        y = y.astype(np.int64)
    if to_learn and y.size and len(np.unique(y)) == 1:
        raise ValueError(f"target {name!r} has one class only: {y[0]!s}")
    return y
