"""Access to tables of any kind by column, and copies with changed columns."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from spinney.data.table import fit_table, schema_of
from spinney.data.target import missing_rows

__all__ = [
    "Levels",
    "TableView",
    "as_numbers",
    "as_targets",
    "as_vector",
    "as_weights",
    "dense",
    "stacked",
]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class Levels:
    """The categories that occur in a column, sorted.

    Attributes
    ----------
    labels : list of str
        The categories.
    counts : ndarray of int
        The number of rows of each category.
    rows : ndarray of int
        One row of each category.
    codes : ndarray of int
        The index of each row's category in `labels`, -1 where it is missing.
    """

    labels: list[str]
    counts: NDArray[np.intp]
    rows: Rows
    codes: NDArray[np.intp]


class TableView:
    """A table for calculations that change a column and predict again.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The table. A sparse matrix is converted to a dense array.
    model : estimator or None, default=None
        Numeric columns that this model treats as categories are categories here, too.
    """

    def __init__(self, X: Any, model: Any = None) -> None:
        self._native = dense(X)
        if len(self._native.shape) == 2 and 0 in self._native.shape:
            n_rows, n_columns = self._native.shape
            raise ValueError(
                f"X: expected at least 1 row and 1 column, got {n_rows} rows of {n_columns} columns"
            )
        self._table, schema = fit_table(
            _Reader(), self._native, categorical_features=_categorical(self._native, model)
        )
        self.n_rows, self.n_columns = self._table.n_rows, self._table.n_features
        names = (
            schema.names if schema.names is not None else getattr(model, "feature_names_in_", ())
        )
        if len(names) != self.n_columns:
            names = [f"column {j}" for j in range(self.n_columns)]
        self.names = [str(name) for name in names]
        self._categories = schema.categories

    def find(self, column: Any, parameter: str) -> int:
        """Return the index of a column given by name or number."""
        if isinstance(column, str):
            if column in self.names:
                return self.names.index(column)
            shown = ", ".join(map(repr, self.names[:5])) + (", …" if self.n_columns > 5 else "")
            raise ValueError(f"{parameter}: expected a column of X ({shown}), got {column!r}")
        if isinstance(column, Integral) and not isinstance(column, bool):
            if -self.n_columns <= int(column) < self.n_columns:
                return int(column) % self.n_columns
            raise ValueError(
                f"{parameter}: expected a number below {self.n_columns}, the number of columns, "
                f"got {column}"
            )
        raise TypeError(
            f"{parameter}: expected the name or number of a column, got {type(column).__name__}"
        )

    def is_category(self, j: int) -> bool:
        """Return whether column j holds categories."""
        return self._categories[j] is not None

    def numbers(self, j: int) -> Floats:
        """Return column j as float64, NaN where it is missing."""
        return np.asarray(self._read(j), dtype=np.float64)

    def levels(self, j: int) -> Levels:
        """Return the categories of column j."""
        values = self._categories[j]
        assert values is not None, "a numeric column has no levels"
        codes = self._read(j)
        present, rows, counts = np.unique(codes, return_index=True, return_counts=True)
        known = present >= 0
        codes = np.where(codes < 0, -1, np.searchsorted(present[known], codes))
        labels = [str(values[code]) for code in present[known]]
        return Levels(labels, counts[known], rows[known], codes)

    def values(self) -> NDArray[Any]:
        """Return all columns as one array, of objects if there are categories."""
        if not any(self.is_category(j) for j in range(self.n_columns)):
            return np.ascontiguousarray(self._table.to_matrix(), dtype=np.float64)
        out = np.empty((self.n_rows, self.n_columns), dtype=object)
        for j in range(self.n_columns):
            categories, column = self._categories[j], self._read(j)
            if categories is None:
                out[:, j] = column.astype(np.float64)
            else:
                named = np.array([*categories.tolist(), None], dtype=object)
                out[:, j] = named[column]  # the code -1 of a missing value selects the last: None
        return out

    def missing_rows(self, j: int) -> Rows:
        """Return the rows in which column j is missing."""
        column = self._read(j)
        return np.flatnonzero(column < 0 if self.is_category(j) else np.isnan(column))

    def is_bool(self, j: int) -> bool:
        """Return whether column j has a boolean type."""
        frame = nw.from_native(self._native, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return bool(frame.get_column(frame.columns[j]).dtype == nw.Boolean)
        return bool(frame.dtype.kind == "b")

    def make(self, rows: Rows | None, changes: dict[int, NDArray[Any]]) -> Any:
        """Return rows of the table, in its own type, with other values in some columns.

        Parameters
        ----------
        rows : array of int or None
            The rows of the new table before the changes; None uses all rows.
        changes : dict of int to ndarray
            Maps a column to its new values: floats, or integers, which are the rows whose values
            the column gets. Integers keep the column's type.
        """
        frame = nw.from_native(self._native, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            is_pandas = frame.implementation.is_pandas()
            return (_make_pandas if is_pandas else _make_frame)(frame, rows, changes)
        made = np.array(frame) if rows is None else frame[rows]
        if made.dtype.kind in "biu" and any(new.dtype.kind == "f" for new in changes.values()):
            made = made.astype(np.float64)
        for j, new in changes.items():
            made[:, j] = new if new.dtype.kind == "f" else frame[new, j]
        return made

    def without(self, columns: list[int]) -> Any:
        """Return the table, in its own type, without some columns."""
        frame = nw.from_native(self._native, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame):
            return frame.drop([frame.columns[j] for j in columns]).to_native()
        return np.delete(frame, columns, axis=1)

    def _read(self, j: int) -> NDArray[Any]:
        if self._table.columns is not None:
            return self._table.columns[j]
        return self._table.to_matrix()[:, j]


def _make_frame(
    frame: nw.DataFrame[Any], rows: Rows | None, changes: dict[int, NDArray[Any]]
) -> Any:
    """Return rows of a frame with other values in some columns, as `TableView.make`."""
    columns = []
    for j, new in changes.items():
        name = frame.columns[j]
        if new.dtype.kind == "f":
            backend = frame.implementation
            columns.append(nw.new_series(name, new, nw.Float64, backend=backend))
        else:
            columns.append(frame.get_column(name)[new])
    made = frame if rows is None else frame[rows, :]
    return made.with_columns(*columns).to_native()


def _make_pandas(
    frame: nw.DataFrame[Any], rows: Rows | None, changes: dict[int, NDArray[Any]]
) -> Any:
    """Do the same as `_make_frame`, ten times as fast for wide pandas frames."""
    native = frame.to_native()
    made = native.copy(deep=False) if rows is None else native.take(rows)
    for j, new in changes.items():
        made.isetitem(j, new if new.dtype.kind == "f" else native.iloc[new, j].array)
    return made


class _Reader(BaseEstimator):  # type: ignore[misc]
    """An estimator for `fit_table`, which sets attributes on it."""


def dense(X: Any) -> Any:
    """Return X as a frame or an array, whose rows can be indexed by number."""
    if hasattr(X, "toarray"):
        return X.toarray()
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X])
    if hasattr(X, "shape"):
        return X
    array = np.asarray(X)
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def _categorical(X: Any, model: Any) -> Any:
    """Return which columns hold categories, by the model or by their values."""
    schema = schema_of(model)
    if schema is not None and schema.n_features == X.shape[1]:
        return schema.is_categorical
    if isinstance(X, np.ndarray) and X.dtype.kind in "OUS":
        return np.array([not _is_numeric(X[:, j]) for j in range(X.shape[1])])
    return "from_dtype"


def _is_numeric(values: NDArray[Any]) -> bool:
    return not any(isinstance(value, str | bytes) for value in values)


def as_vector(y: Any, parameter: str = "y") -> NDArray[Any]:
    """Return a target or predictions as an array of one dimension."""
    series = nw.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(series, nw.DataFrame) and series.shape[1] == 1:
        series = series.get_column(series.columns[0])
    array = series.to_numpy() if isinstance(series, nw.Series) else np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{parameter}: expected one dimension, got shape {array.shape}")
    if len(array) == 0:
        raise ValueError(f"{parameter}: expected at least one row, got none")
    if n_missing := int(missing_rows(array).sum()):
        raise ValueError(f"{parameter}: expected no missing values, got {n_missing}")
    return array


def as_targets(y: Any, n_rows: int) -> NDArray[Any]:
    """Return targets as an array, two-dimensional for several targets."""
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [as_vector(frame.get_column(name)) for name in frame.columns]
    else:
        array = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        columns = [as_vector(one) for one in array.T] if array.ndim == 2 else [as_vector(y)]
    if not columns:
        raise ValueError("y: expected at least one column, got none")
    if len(columns[0]) != n_rows:
        n = len(columns[0])
        raise ValueError(f"y: expected {n_rows} values, one for each row of X, got {n}")
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def as_weights(weights: Any, n_rows: int, fewest: int = 1) -> Floats | None:
    """Return the weights of rows; at least `fewest` of them must be positive."""
    if weights is None:
        return None
    numbers = as_numbers(weights, "sample_weight")
    if len(numbers) != n_rows:
        raise ValueError(
            f"sample_weight: expected {n_rows} values, one for each row of X, got {len(numbers)}"
        )
    if (numbers < 0).any():
        raise ValueError(f"sample_weight: expected no negative weights, got {numbers.min():g}")
    if np.count_nonzero(numbers) < fewest:
        raise ValueError(
            f"sample_weight: expected at least {fewest} rows of positive weight, got "
            f"{np.count_nonzero(numbers)}"
        )
    return numbers


def as_numbers(values: Any, parameter: str) -> Floats:
    """Return targets or predictions as finite numbers."""
    vector = as_vector(values, parameter)
    try:
        numbers = vector.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{parameter}: expected numbers, got {vector.tolist()[0]!r}") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{parameter}: expected finite numbers, got inf or NaN")
    return numbers


def stacked(X: Any, others: Any) -> tuple[Any, int, Rows]:
    """Concatenate the rows of two tables with the same columns.

    Parameters
    ----------
    X : array, sparse matrix or frame
        The first table.
    others : array, sparse matrix or frame, or None
        The second table; None uses the rows of the first one again, without a copy.

    Returns
    -------
    (table, int, ndarray of int)
        The table, the number of rows of X in it, and the numbers of the rows of `others`.
    """
    X = dense(X)
    upper = nw.from_native(X, eager_only=True, pass_through=True)
    n = len(upper)
    if others is None:
        return X, n, np.arange(n)
    others = dense(others)
    lower = nw.from_native(others, eager_only=True, pass_through=True)
    if isinstance(upper, nw.DataFrame) != isinstance(lower, nw.DataFrame):
        raise TypeError(
            f"background: expected the same type of table as X, {type(X).__name__}, "
            f"got {type(others).__name__}"
        )
    if upper.shape[1:] != lower.shape[1:]:
        raise ValueError(
            f"background: expected {upper.shape[1]} columns, like X, got shape {lower.shape}"
        )
    rows = np.arange(n, n + len(lower))
    if isinstance(upper, nw.DataFrame):
        if list(upper.columns) != list(lower.columns):
            raise ValueError("background: expected the columns of X in the same order, got others")
        return nw.concat([upper, lower], how="vertical").to_native(), n, rows
    return np.concatenate([upper, lower]), n, rows
