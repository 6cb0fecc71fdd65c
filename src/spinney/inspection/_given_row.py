"""A row passed along with a table: a number, table, array, dict or Series."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from spinney.inspection.table_view import dense

__all__ = ["with_row"]


def with_row(X: Any, x: Any) -> tuple[Any, int, int]:
    """Append a row to a table, unless it is the number of a row of the table.

    Parameters
    ----------
    X : array, sparse matrix or frame
        The table.
    x : int, or table of one row, array, sequence, mapping or Series
        The number of a row of X, or a new row: values in the order of X's columns, or by name.

    Returns
    -------
    (table, int, int)
        The table, the number of the row in it, and the number of rows of X.
    """
    X = dense(X)
    table = nw.from_native(X, eager_only=True, pass_through=True)
    n_rows, n_columns = table.shape
    if isinstance(x, Integral) and not isinstance(x, bool | np.bool_):
        if not -n_rows <= int(x) < n_rows:
            raise ValueError(
                f"x: expected a number below {n_rows}, the number of rows of X, got {x}"
            )
        return X, int(x) % n_rows, n_rows
    if isinstance(table, nw.DataFrame):
        values = _values(x, n_columns, list(table.columns))
        return _append_to_frame(table, values), n_rows, n_rows
    row = np.array(_values(x, n_columns, None), dtype=object)
    if table.dtype.kind != "O":
        try:
            row = row.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(
                "x: expected numbers, because X is numeric; got other values"
            ) from None
        whole = np.isfinite(row).all() and np.array_equal(row, np.floor(row))
        if table.dtype.kind in "biu" and whole:
            row = row.astype(table.dtype)
    return np.concatenate([table, row[np.newaxis]]), n_rows, n_rows


def _values(x: Any, n_columns: int, names: list[str] | None) -> list[Any]:
    """Return the row's values in the order of the columns."""
    no_row = isinstance(x, str | bytes) or not (np.iterable(x) or hasattr(x, "shape"))
    if no_row or (isinstance(x, np.ndarray | np.generic) and x.ndim not in (1, 2)):
        raise TypeError(
            "x: expected the number of a row of X, or a row (a table of one row, an array, a dict "
            f"or a Series), got {type(x).__name__}"
        )
    frame = nw.from_native(x, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        if len(frame) != 1:
            raise ValueError(f"x: expected one row, got {len(frame)}")
        x = {name: frame.get_column(name)[0] for name in frame.columns}
    elif isinstance(frame, nw.Series):
        index = getattr(x, "index", None)  # a row of a pandas frame has the columns as its index
        if index is not None and names is not None and set(names) <= set(index):
            x = dict(zip(index, frame.to_list(), strict=True))
        else:
            x = frame.to_list()
    elif hasattr(x, "toarray"):
        x = x.toarray()
    if isinstance(x, Mapping):
        if names is None:
            values = list(x.values())
        else:
            missing = [name for name in names if name not in x]
            if missing:
                shown = ", ".join(map(repr, missing[:5]))
                raise ValueError(f"x: expected a value for every column of X, got none for {shown}")
            return [x[name] for name in names]
    else:
        values = list(x[0]) if np.ndim(x) == 2 and len(x) == 1 else list(x)
    if len(values) != n_columns or any(np.ndim(value) for value in values):
        got = f"shape {np.shape(x)}" if np.ndim(x) == 2 else f"{len(values)} values"
        raise ValueError(f"x: expected one row of {n_columns} values, as X has columns, got {got}")
    return values


def _append_to_frame(table: nw.DataFrame[Any], values: list[Any]) -> Any:
    """Append a row to a frame; integer columns become float where needed."""
    columns, upper = {}, []
    for name, value in zip(table.columns, values, strict=True):
        series = table.get_column(name)
        value = value.item() if isinstance(value, np.generic) else value
        missing = value is None or value != value
        dtype: Any = series.dtype
        if dtype.is_numeric() or dtype == nw.Boolean:
            try:
                number = np.nan if missing else float(value)
            except (TypeError, ValueError):
                raise ValueError(
                    f"x: expected a number in column {name!r}, got {value!r}"
                ) from None
            if not dtype.is_float() and (missing or number != int(number)):
                dtype = nw.Float64()
                upper.append(series.cast(dtype))
            value = number if dtype.is_float() else int(number)
            value = bool(value) if dtype == nw.Boolean else value
        elif missing:
            value = None
        columns[name] = nw.new_series(name, [value], dtype, backend=table.implementation)
    first = next(iter(columns.values())).to_frame()
    row = first.with_columns(*columns.values()).select(list(table.columns))
    whole = table.with_columns(*upper) if upper else table
    return nw.concat([whole, row], how="vertical").to_native()
