"""Conversion of frames and arrays to tables; only this module handles data frames.

A *frame* is a pandas, Polars or Arrow table (or another one that narwhals reads), anything else is
an *array* (NumPy, SciPy sparse, nested lists). The *levels* of a categorical column are the
distinct values in the given rows, in any order; its *categories* are the sorted levels of the
training rows. A *code* is an index into either. Levels are matched to categories by value,
independent of how a frame stores them.

Arrays without categorical columns go through scikit-learn's ``validate_data``, so that errors have
its texts. Everything else is read column by column, so that errors can name the column.
"""

from __future__ import annotations

import numbers
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, check_array

from spinney.data.sklearn_versions import validate_data

__all__ = [
    "Schema",
    "Table",
    "check_rows",
    "column_kind",
    "column_of",
    "fit_table",
    "read_categories",
    "read_table",
    "schema_of",
    "set_columns",
    "set_schema",
]

Array: TypeAlias = NDArray[Any]
Column: TypeAlias = "Array | nw.Series[Any]"
Columns: TypeAlias = "Sequence[Column] | Array"  # an array has a column in each of its rows

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_NUMBER_TYPES = (numbers.Real, Decimal, np.bool_)
_CELL_TYPES = (str, bytes, *_NUMBER_TYPES)  # valid types of a cell
_NULLS = ("NoneType", "NAType", "NaTType")  # names, as pandas may be absent
_EXACT = 2**53  # up to this absolute value float64 represents every integer exactly


@dataclass(frozen=True)
class Schema:
    """The names and categories of the columns, from the training rows.

    Parameters
    ----------
    names : ndarray of object or None
        Column names by scikit-learn's ``feature_names_in_`` rule: all strings, or None.
    categories : tuple of (ndarray or None)
        For each column None if it is numeric, else the sorted values in the training rows; the
        index of a value is its code.
    """

    names: Array | None
    categories: tuple[Array | None, ...]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.categories)

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Whether each column is categorical."""
        return np.array([values is not None for values in self.categories], dtype=np.bool_)

    @cached_property
    def has_categories(self) -> bool:
        """Whether any column is categorical."""
        return bool(self.is_categorical.any())

    @property
    def n_categories(self) -> list[int]:
        """Number of categories of each column, 0 for a numeric one."""
        return [0 if values is None else len(values) for values in self.categories]


def schema_of(estimator: Any) -> Any:
    """Return the schema of a fitted estimator, or None if it is unknown."""
    attributes = getattr(estimator, "__dict__", {})
    schema = getattr(attributes.get("_model"), "schema", None)
    return attributes.get("_schema") if schema is None else schema


def set_schema(estimator: Any, schema: Schema) -> None:
    """Set the schema and the public attributes of the columns on an estimator without `fit`."""
    estimator._schema = schema
    set_columns(estimator, schema)


def set_columns(estimator: Any, schema: Schema) -> None:
    """Set the public attributes of the columns on an estimator without `fit`."""
    estimator.n_features_in_ = len(schema.categories)
    if schema.names is not None:
        estimator.feature_names_in_ = schema.names
    estimator.categories_ = list(schema.categories)


@dataclass(frozen=True)
class Table:
    """Rows for the core: exactly one of `matrix`, `columns` and `sparse` is not None.

    Parameters
    ----------
    n_rows, n_features : int
        Shape.
    matrix : ndarray of shape (n_rows, n_features) or None
        All columns numeric: float64 or float32 with any strides, NaN where missing.
    columns : list of ndarray of shape (n_rows,) or None
        float64 or float32 for a numeric column (NaN where missing), int32 codes for a categorical
        one (-1 where missing or not seen at fit). Any strides.
    sparse : csc_array or csc_matrix or None
        float64 or float32, indices sorted, no duplicates, nothing missing.
    """

    n_rows: int
    n_features: int
    matrix: Array | None = None
    columns: list[Array] | None = None
    sparse: Any = None

    def to_matrix(self) -> Array:
        """Return numeric rows as one dense matrix, without a copy if possible."""
        if self.columns is None:
            return np.asarray(self.sparse.toarray() if self.matrix is None else self.matrix)
        if any(column.dtype.kind == "i" for column in self.columns):
            raise ValueError("X: expected numeric columns only, got categorical ones")
        return np.stack(self.columns).T

    def take(self, rows: Array) -> Table:
        """Return a selection of the rows."""
        return Table(
            len(rows),
            self.n_features,
            None if self.matrix is None else self.matrix[rows],
            None if self.columns is None else [column[rows] for column in self.columns],
            None if self.sparse is None else self.sparse.tocsr()[rows].tocsc(),
        )


def fit_table(
    estimator: Any,
    X: Any,
    y: Any = "no_validation",
    *,
    categorical_features: Any = "from_dtype",
    accept_sparse: bool = True,
    allow_nan: bool = True,
) -> tuple[Table, Schema]:
    """Read the training rows, and return them with their schema.

    Parameters
    ----------
    estimator : estimator instance
        Gets ``n_features_in_`` and ``feature_names_in_`` like a scikit-learn estimator.
    X : array, nested list, sparse matrix or frame of shape (n_rows, n_features)
        The rows.
    y : object, optional
        Only checked for None if the estimator's tags require a target.
    categorical_features : 'from_dtype', None or array-like
        'from_dtype': the string, category, enum and dictionary columns of a frame. None: all
        columns are numeric. Else a boolean mask, column indices or column names.
    accept_sparse, allow_nan : bool
        Whether sparse rows, and missing values in dense rows, are accepted.

    Returns
    -------
    (Table, Schema)
        The rows, and the schema with which `read_table` reads other rows in the same way.
    """
    X, is_frame = _as_frame(X)
    if y is None:  # raises scikit-learn's own message if the tags require a target
        validate_data(estimator, X, y, skip_check_array=True)
    from_dtype = isinstance(categorical_features, str) and categorical_features == "from_dtype"
    if not is_frame and (from_dtype or categorical_features is None):
        table = _read_array(estimator, X, True, accept_sparse, allow_nan)
        return table, Schema(None, (None,) * table.n_features)

    columns, labels = _split(estimator, X, is_frame, True)
    by_dtype = (column_kind(column) == "categories" for column in columns)
    is_categorical = by_dtype if from_dtype else _declared_columns(categorical_features, labels)
    wanted = [... if flag else None for flag in is_categorical]
    table, categories = _read_columns(estimator, columns, labels, wanted, allow_nan=allow_nan)
    return table, Schema(getattr(estimator, "feature_names_in_", None), categories)


def read_table(
    estimator: Any,
    X: Any,
    schema: Schema,
    *,
    accept_sparse: bool = True,
    allow_nan: bool = True,
    unseen: int = -1,
) -> Table:
    """Read rows in the same form as the training rows.

    Parameters
    ----------
    estimator, X, accept_sparse, allow_nan
        See `fit_table`. The number and the names of columns are checked like in scikit-learn. An
        array is accepted even if the training rows were a frame.
    schema : Schema
        The schema from `fit_table`.
    unseen : int, default=-1
        The code of unknown categories; the default is the code of missing values.

    Returns
    -------
    Table
        The rows.
    """
    X, is_frame = _as_frame(X)
    if not is_frame and not schema.has_categories:
        return _read_array(estimator, X, False, accept_sparse, allow_nan)
    columns, labels = _split(estimator, X, is_frame, False)
    return _read_columns(
        estimator, columns, labels, schema.categories, allow_nan=allow_nan, unseen=unseen
    )[0]


def read_categories(X: Any, schema: Schema | None = None) -> tuple[Table, Schema]:
    """Read only the categorical columns of a frame.

    Parameters
    ----------
    X : object
        Rows of any kind. If it is not a frame, it has no categorical columns.
    schema : Schema or None
        The schema that this function returned for other rows; None detects the columns.

    Returns
    -------
    (Table, Schema)
        The codes, and the names and categories of the columns.
    """
    X, is_frame = _as_frame(X)
    if not is_frame:
        return Table(_num_samples(X), 0, columns=[]), Schema(None, ())
    frame = nw.from_native(X, eager_only=True)
    if schema is None:
        named = [one for one in frame.iter_columns() if isinstance(one.name, str)]
        series = {one.name: _column(one) for one in named}
        found = [name for name, column in series.items() if column_kind(column) == "categories"]
        categories_found: list[Any] = [
            _sorted_categories(_levels(series[name])[0]) for name in found
        ]
        schema = Schema(np.array(found, dtype=object), tuple(categories_found))
    columns: list[Array] = []
    for name, categories in zip(
        schema.names if schema.names is not None else (), schema.categories, strict=True
    ):
        levels, codes = _levels(_column(frame[name]))
        columns.append(_category_codes(levels, codes, np.asarray(categories), -1))
    return Table(frame.shape[0], len(columns), columns=columns), schema


def column_of(X: Any, column: str | int) -> Array:
    """Return one column unchanged: of a frame by name or index, of an array by index."""
    X, is_frame = _as_frame(X)
    if is_frame:
        names = list(X.columns)
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"no column {column!r} among {', '.join(map(repr, names[:8]))}")
            return np.asarray(X[column].to_list(), dtype=object)
        return np.asarray(X[names[column]].to_list(), dtype=object)
    if isinstance(column, str):
        raise ValueError(f"column {column!r}: expected a frame for a column name, got an array")
    if sp.issparse(X):
        return np.asarray(X.tocsc()[:, [column]].toarray()[:, 0], dtype=object)
    return np.asarray(X)[:, column].astype(object)


def check_rows(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> None:
    """Check the number and names of columns, and nothing else.

    Parameters
    ----------
    estimator : estimator instance
        With `reset` its ``n_features_in_`` and ``feature_names_in_`` are set, else compared.
    X, y : object
        Anything; only shapes and names are checked.
    reset : bool
        Whether these are the training rows.
    """
    flat = not _as_frame(X)[1] and getattr(X, "ndim", None) != 2 and np.asarray(X).ndim == 1
    if flat and not reset and hasattr(estimator, "n_features_in_"):
        check_array(np.zeros(len(X)), estimator=estimator)  # raises scikit-learn's own message
    native = nw.to_native(X, pass_through=True)
    validate_data(estimator, native, y, reset=reset, skip_check_array=True)


_ALMOST_INFINITE = 1e300


def clip_infinities(estimator: Any, values: Array) -> Array:
    """Clip infinite values to ±1e300 if `_accepts_infinity` of an estimator is True."""
    if not getattr(estimator, "_accepts_infinity", False) or not np.isinf(values).any():
        return values
    return np.clip(values.astype(np.float64), -_ALMOST_INFINITE, _ALMOST_INFINITE)


def _all_finite(values: Array, allow_nan: bool) -> bool:
    """Return whether all values are finite (or NaN, if allowed); False may be wrong."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # needs no extra memory, and is finite only if all values are
    return bool(np.isfinite(total)) or (allow_nan and not np.isinf(values).any())


def _read_array(estimator: Any, X: Any, reset: bool, accept_sparse: bool, allow_nan: bool) -> Table:
    """Read a numeric array by scikit-learn's rules."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in _FLOATS
    if plain and _all_finite(X, allow_nan):  # shortcut: validate_data takes ten times as long
        fitted = vars(estimator)
        if reset:
            fitted.pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
        if "feature_names_in_" not in fitted and fitted.get("n_features_in_") == X.shape[1]:
            return Table(len(X), X.shape[1], matrix=X)
    source = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if source is not X and source.dtype.kind in "US":
        source = np.array(X, dtype=object)  # NumPy converted numbers next to strings
    if isinstance(source, np.ndarray) and source.ndim == 2:
        source = _prepare_values(source, range(source.shape[1]))
    is_sparse = sp.issparse(X)
    finite: Any = "allow-nan" if allow_nan and not is_sparse else True  # no NaN in sparse rows
    if not is_sparse and getattr(estimator, "_accepts_infinity", False):
        finite = False
    form = {"dtype": _FLOATS, "accept_sparse": accept_sparse and "csc", "ensure_all_finite": finite}
    values = validate_data(estimator, source, reset=reset, **form)
    if not is_sparse:
        _check_integers(X, values, range(values.shape[1]))
        values = clip_infinities(estimator, values)
        return Table(len(values), values.shape[1], matrix=values)
    if X.dtype.kind in "iu":
        for j in np.unique(values.tocoo().col[np.abs(values.data) >= _EXACT]):
            _check_integers(X.tocsc()[:, [j]].toarray(), values[:, [j]].toarray(), [int(j)])
    if not values.has_canonical_format:
        values = values.copy()  # the caller's matrix stays as it is
        values.sum_duplicates()
    return Table(values.shape[0], values.shape[1], sparse=values)


def _prepare_values(values: Array, labels: Sequence[Any]) -> Array:
    """Convert float16 and pandas' NA; raise errors for times and strings."""
    if values.dtype.kind == "f":
        native = values.dtype.newbyteorder("=")
        return values.astype(np.float32 if native.itemsize == 2 else native, copy=False)
    if values.dtype.kind in "mM":
        raise ValueError(f"column {labels[0]!r}: expected numbers, got {values.dtype}")
    if values.dtype.kind not in "OUS":
        return values
    for label, column in zip(labels, values.reshape(-1, len(labels)).T, strict=True):
        text = next((v for v in column.tolist() if isinstance(v, (str, bytes))), None)
        if text is not None:
            raise ValueError(
                f"could not convert string to float: {text!r} in column {label!r}; expected "
                "numbers, unless categorical_features names the column"
            )
    if any(t.__name__ in _NULLS[1:] for t in set(map(type, values.ravel().tolist()))):
        values = values.copy()
        values[np.vectorize(_is_null, otypes=[bool])(values)] = None  # NumPy converts it to NaN
    return values


def _check_integers(source: Any, values: Array, labels: Sequence[Any]) -> None:
    """Raise an error for integers of `source` that float64 `values` cannot represent."""
    if isinstance(source, np.ndarray) and (source.dtype.kind in "fb" or source.itemsize < 8):
        return
    floats = values.reshape(-1, len(labels))
    large = (floats >= _EXACT) | (floats <= -_EXACT)  # 2**53 itself, too: 2**53 + 1 rounds to it
    exact = np.asarray(source, dtype=object) if large.any() else values
    for row, j in np.argwhere(large):
        value = exact.reshape(-1, len(labels))[row, j]
        if isinstance(value, numbers.Integral) and abs(int(value)) > _EXACT:
            raise ValueError(
                f"column {labels[j]!r}: expected integers up to 2**53, as float64 rounds larger "
                f"ones, got {value}; name identifiers in categorical_features"
            )


def _as_frame(X: Any) -> tuple[Any, bool]:
    """Return X (an Arrow record batch as a table), and whether it is a frame."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X]), True
    return X, type(X) is not np.ndarray and nw.dependencies.is_into_dataframe(X)


def _split(estimator: Any, X: Any, is_frame: bool, reset: bool) -> tuple[Columns, Sequence[Any]]:
    """Return the columns of X and their labels, after scikit-learn's checks."""
    if not is_frame:
        if sp.issparse(X):
            raise TypeError("X: expected dense rows for categorical_features, got sparse ones")
        # Lists become objects: NumPy would convert numbers next to strings to strings.
        values = np.array(X, dtype=object) if isinstance(X, (list, tuple)) else X
        values = validate_data(estimator, values, reset=reset, dtype=None, ensure_all_finite=False)
        return values.T, range(values.shape[1])
    frame = nw.from_native(X, eager_only=True)
    labels = frame.columns  # raises a ValueError for duplicate names
    # This sets or checks the names.
    validate_data(estimator, frame.to_native(), reset=reset, skip_check_array=True)
    if 0 in frame.shape:  # raises scikit-learn's own message
        check_array(np.empty(frame.shape), estimator=estimator)
    if frame.implementation.is_pandas():
        native = frame.to_native()
        dtype, *more = set(native.dtypes)
        if not more and isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            return native.to_numpy().T, labels  # a view if pandas stores them in one block
    return [_column(series) for series in frame.iter_columns()], labels


def _column(series: nw.Series[Any]) -> Column:
    """Return a series, as a NumPy array if narwhals does not support its dtype."""
    if isinstance(series.dtype, (nw.Int128, nw.UInt128)):
        return np.array(series.to_list(), dtype=object)
    # narwhals infers the dtype of an object column from its first 100 values, and has no dtype for
    # null, sparse and byte-swapped columns.
    supported = str(getattr(series.to_native(), "dtype", "")) != "object"
    supported &= not isinstance(series.dtype, (nw.Object, nw.Unknown))
    return series if supported else series.to_numpy()


def _declared_columns(declared: Any, labels: Sequence[Any]) -> list[bool]:
    """Return for each column whether `categorical_features` selects it."""
    if declared is None:
        return [False] * len(labels)
    if isinstance(declared, str) or not np.iterable(declared):
        raise ValueError(
            "categorical_features: expected 'from_dtype', None, a boolean mask, column indices or "
            f"names, got {declared!r}"
        )
    items = list(declared)
    n = len(labels)
    if items and all(isinstance(item, (bool, np.bool_)) for item in items):
        if len(items) != n:
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,): "
                f"expected {n} entries, got {len(items)}"
            )
        return [bool(item) for item in items]
    if not all(isinstance(item, (numbers.Integral, str)) for item in items):
        given = np.asarray(declared)
        kinds = {given.dtype.name}
        if given.dtype == object:
            kinds = {type(item).__name__ for item in items}
        raise ValueError(
            "categorical_features must be an array-like of bool, int or str, "
            f"got: {', '.join(sorted(kinds))}."
        )
    counts = Counter(items)
    by_name = any(isinstance(item, str) for item in items)
    requested = dict.fromkeys(labels if by_name else range(n))
    for item, count in counts.items():
        if item not in requested and by_name:
            if isinstance(labels, range):
                raise ValueError(
                    "categorical_features should be passed as an array of integers or as a boolean "
                    "mask when the model is fitted on data without feature names."
                )
            raise ValueError(
                f"categorical_features has an item value {item!r} which is not a valid feature "
                f"name of the training data. Its columns are {list(labels)[:20]}."
            )
        if item not in requested:
            raise ValueError(
                "categorical_features set as integer indices must be in [0, n_features - 1] = "
                f"[0, {n - 1}], got {item}"
            )
        if count > 1:
            raise ValueError(f"categorical_features: expected each column once, got {item!r} twice")
    return [item in counts for item in requested]


def _is_null(value: Any) -> bool:
    return type(value).__name__ in _NULLS or bool(value != value)  # NA != NA is not a bool


def column_kind(column: Column) -> str:
    """Return 'numbers', 'categories', 'nulls' (only nulls) or 'unsupported'."""
    if not isinstance(column, np.ndarray):
        if column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean):
            return "numbers"
        if isinstance(column.dtype, (nw.String, nw.Categorical, nw.Enum)):
            return "categories"
        return "nulls" if column.is_null().all() else "unsupported"
    if column.dtype.kind in "biuf":
        return "numbers"
    types = {t for t in set(map(type, column.tolist())) if t.__name__ not in _NULLS}
    if not types or column.dtype.kind in "mM" or not all(issubclass(t, _CELL_TYPES) for t in types):
        return "unsupported" if types else "nulls"
    return "categories" if any(issubclass(t, (str, bytes)) for t in types) else "numbers"


def _read_columns(
    estimator: Any,
    columns: Columns,
    labels: Sequence[Any],
    wanted: Sequence[Any],
    *,
    allow_nan: bool,
    unseen: int = -1,
) -> tuple[Table, tuple[Array | None, ...]]:
    """Read columns, and return them with their categories.

    The entry of `wanted` for a column is None (numeric), its categories, or ... for a categorical
    column whose categories are those of these rows.
    """
    if isinstance(columns, np.ndarray) and all(schema_values is None for schema_values in wanted):
        matrix = _check_values(estimator, _floats(columns.T, labels), labels, allow_nan)
        return Table(len(matrix), len(labels), matrix=matrix), (None,) * len(labels)
    out: list[Array] = []
    categories: list[Array | None] = []
    for label, column, schema_values in zip(labels, columns, wanted, strict=True):
        kind = column_kind(column)
        refusal = ""
        if kind == "unsupported":
            refusal = "numbers, booleans, strings or a categorical dtype"
        elif schema_values is None and kind == "categories" and len(_levels(column)[0]) > 0:
            refusal = "numbers, as in fit or by categorical_features"
        elif schema_values is None:
            values = _floats(column, [label]) if kind == "numbers" else np.full(len(column), np.nan)
            out.append(_check_values(estimator, values, [label], allow_nan))
        else:
            levels, codes = _levels(column)
            schema_values = _sorted_categories(levels) if schema_values is ... else schema_values
            if levels.dtype.kind in "mM" and len(levels) > 0:
                refusal = "categories that are strings or numbers, not times"
            elif _is_type_conflict(levels, schema_values):
                refusal = f"categories like those in fit, such as {schema_values[:3].tolist()}"
            if not allow_nan:
                _check_values(estimator, np.where(codes < 0, np.nan, 0.0), [label], allow_nan)
            out.append(_category_codes(levels, codes, schema_values, unseen))
        if refusal:
            raise ValueError(f"column {label!r}: expected {refusal}, got {kind} ({column.dtype})")
        categories.append(schema_values)
    return Table(len(out[0]), len(out), columns=out), tuple(categories)


def _check_values(estimator: Any, values: Array, labels: Sequence[Any], allow_nan: bool) -> Array:
    """Return the values; raise a ValueError for infinity, and for NaN unless allowed."""
    if _all_finite(values, allow_nan):
        return values
    values = clip_infinities(estimator, values)
    for label, column in zip(labels, values.reshape(-1, len(labels)).T, strict=True):
        found = "infinity" if np.isinf(column).any() else "NaN"
        if found == "infinity" or (not allow_nan and np.isnan(column).any()):
            name = type(estimator).__name__
            raise ValueError(
                f"Input X contains {found} in column {label!r}: {name} does not accept it"
            )
    return values


def _floats(column: Column, labels: Sequence[Any]) -> Array:
    """Return numbers as float64 or float32, NaN where missing; a view if possible."""
    if isinstance(column, np.ndarray):
        values = _prepare_values(column, labels)
        values = values if values.dtype in _FLOATS else values.astype(np.float64)
        _check_integers(column, values, labels)
        return values
    if isinstance(column.dtype, (nw.Int64, nw.UInt64)):  # before the cast, whose error is unclear
        ends = [int(end) for end in (column.min(), column.max()) if not _is_null(end)]
        _check_integers(ends, np.array(ends, dtype=np.float64), labels)
    if not isinstance(column.dtype, (nw.Float32, nw.Float64)):
        # narwhals has a type of half precision only since 2.23.
        column = column.cast(nw.Float32 if str(column.dtype) == "Float16" else nw.Float64)
    return column.to_numpy()


def _levels(column: Column) -> tuple[Array, Array]:
    """Return the distinct values of a column, and each row's index (-1 where missing)."""
    codes: Any
    if column_kind(column) == "nulls":
        return np.empty(0, dtype=object), np.full(len(column), -1)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        levels, codes = np.unique(column, return_inverse=True)
    elif isinstance(column, np.ndarray):
        rows = column.tolist()
        index = {value: code for code, value in enumerate(dict.fromkeys(rows))}
        levels = np.fromiter(index, dtype=object, count=len(index))
        codes = np.fromiter(map(index.__getitem__, rows), dtype=np.int64, count=len(rows))
    elif column.implementation.is_pandas_like():
        series = column.to_pandas()
        if hasattr(series, "cat"):  # pandas has stored the codes
            codes, levels = series.cat.codes.to_numpy(), series.cat.categories.to_numpy()
        else:
            codes, uniques = series.factorize()
            levels = uniques.to_numpy()
    elif column.implementation.is_pyarrow():
        encoded = column.to_native().dictionary_encode().unify_dictionaries().combine_chunks()
        codes = encoded.indices.cast("int32").fill_null(-1).to_numpy()
        levels = encoded.dictionary.to_numpy(zero_copy_only=False)
    else:
        series = column.to_polars()
        uniques = series.unique().drop_nulls()
        codes = series.replace_strict(uniques, list(range(len(uniques))), default=-1).to_numpy()
        levels = uniques.to_numpy()
    # Drop nulls and unused values of dictionaries. The last entry stands for code -1.
    used = np.zeros(len(levels) + 1, dtype=np.bool_)
    used[codes] = True
    used[-1] = False
    used[:-1] &= np.array([not _is_null(value) for value in levels.tolist()], dtype=np.bool_)
    if used[:-1].all():
        return levels, codes
    return levels[used[:-1]], np.where(used, np.cumsum(used) - 1, -1)[codes]


def _sorted_categories(levels: Array) -> Array:
    """Sort levels; by type name first if they cannot be compared."""
    ordered = list(set(levels.tolist()))
    try:
        ordered.sort()
    except TypeError:
        ordered.sort(key=lambda value: (type(value).__name__, value))
    return np.fromiter(ordered, dtype=levels.dtype, count=len(ordered))


def _category_codes(
    levels: Array, codes: Array, categories: Array, unseen: int
) -> NDArray[np.int32]:
    """Convert codes of levels to codes of categories, with one lookup per level."""
    index = {value: code for code, value in enumerate(categories.tolist())}
    lookup = [index.get(value, unseen) for value in levels.tolist()]
    return np.array([*lookup, -1], dtype=np.int32)[codes]  # the last entry stands for code -1


def _is_type_conflict(levels: Array, categories: Array) -> bool:
    """Return whether one of both has only numbers and the other has none.

    There is no conflict if one of them is empty.
    """
    level_kinds = {issubclass(t, _NUMBER_TYPES) for t in set(map(type, levels.tolist()))}
    category_kinds = {issubclass(t, _NUMBER_TYPES) for t in set(map(type, categories.tolist()))}
    return (
        len(level_kinds) > 0 and len(category_kinds) > 0 and level_kinds.isdisjoint(category_kinds)
    )
