"""Rows in, columns out: the only file that knows frames.

A *frame* is a pandas, Polars or Arrow table (or whatever else narwhals reads), anything else an
*array* (NumPy, SciPy sparse, nested lists). The *levels* of a categorical column are the distinct
values in the rows at hand, in any order; its *categories* are the sorted levels of the rows of fit.
A *code* is an index into either. Levels meet categories by value, however a frame stores them.

Arrays without categorical columns go through scikit-learn's ``validate_data``, so that its error
texts are ours; all else is read column by column, so that an error can name the column.
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
from sklearn.utils.validation import _num_samples, check_array, validate_data

__all__ = [
    "Schema",
    "Table",
    "check_rows",
    "column_kind",
    "column_of",
    "fit_table",
    "read_categories",
    "read_table",
]

Array: TypeAlias = NDArray[Any]
Column: TypeAlias = "Array | nw.Series[Any]"
Columns: TypeAlias = "Sequence[Column] | Array"  # an array's rows, where one dtype serves all

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_NUMBERS = (numbers.Real, Decimal, np.bool_)
_VALUES = (str, bytes, *_NUMBERS)  # what a cell may hold
_NULLS = ("NoneType", "NAType", "NaTType")  # by name: pandas may be absent
_EXACT = 2**53  # up to here float64 tells every integer from its neighbours


@dataclass(frozen=True)
class Schema:
    """What fit learned about the columns.

    Parameters
    ----------
    names : ndarray of object or None
        Column names by scikit-learn's ``feature_names_in_`` rule: all strings, or None.
    categories : tuple of (ndarray or None)
        For each column None when it is numeric, else the sorted values seen at fit; the position
        of a value is its code.
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
        """Return numeric rows as one dense matrix, copied only if they came otherwise."""
        if self.columns is None:
            return np.asarray(self.sparse.toarray() if self.matrix is None else self.matrix)
        if any(column.dtype.kind == "i" for column in self.columns):
            raise ValueError("X: expected numeric columns only, got categorical ones")
        return np.stack(self.columns).T

    def take(self, rows: Array) -> Table:
        """Return some of the rows."""
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
    """Read the rows of fit and learn their schema.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_`` as from scikit-learn.
    X : array, nested list, sparse matrix or frame of shape (n_rows, n_features)
        The rows.
    y : object, optional
        Looked at only to refuse None for an estimator whose tags require a target.
    categorical_features : 'from_dtype', None or array-like
        'from_dtype' takes a frame's string, category, enum and dictionary columns. None means all
        numeric. Else a boolean mask, column indices or column names.
    accept_sparse, allow_nan : bool
        Whether sparse rows, and missing values in dense rows, are accepted.

    Returns
    -------
    (Table, Schema)
        The rows, and what `read_table` needs in order to read others the same way.
    """
    X, is_frame = _as_frame(X)
    if y is None:  # raises scikit-learn's own message when the tags ask for a target
        validate_data(estimator, X, y, skip_check_array=True)
    from_dtype = isinstance(categorical_features, str) and categorical_features == "from_dtype"
    if not is_frame and (from_dtype or categorical_features is None):
        table = _read_array(estimator, X, True, accept_sparse, allow_nan)
        return table, Schema(None, (None,) * table.n_features)

    columns, labels = _split(estimator, X, is_frame, True)
    by_dtype = (column_kind(column) == "categories" for column in columns)
    is_categorical = by_dtype if from_dtype else _declared(categorical_features, labels)
    wanted = [... if flag else None for flag in is_categorical]
    table, categories = _read_columns(estimator, columns, labels, wanted, allow_nan)
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
    """Read rows in the form that `fit_table` gave those of fit.

    Parameters
    ----------
    estimator, X, accept_sparse, allow_nan
        As in `fit_table`; number and names of columns are checked as by scikit-learn. Where fit
        saw a frame, an array of the same values will do.
    schema : Schema
        From `fit_table`.
    unseen : int
        The code of a category that fit did not see; unless told, that of a missing one.

    Returns
    -------
    Table
        The rows.
    """
    X, is_frame = _as_frame(X)
    if not is_frame and not schema.has_categories:
        return _read_array(estimator, X, False, accept_sparse, allow_nan)
    columns, labels = _split(estimator, X, is_frame, False)
    return _read_columns(estimator, columns, labels, schema.categories, allow_nan, unseen)[0]


def read_categories(X: Any, schema: Schema | None = None) -> tuple[Table, Schema]:
    """Read a frame's columns of categories alone, whatever its other columns hold.

    Parameters
    ----------
    X : object
        Rows of any kind; of what is no frame there are no such columns.
    schema : Schema or None
        What this function has returned for other rows; None finds the columns.

    Returns
    -------
    (Table, Schema)
        Codes, and the names and categories of the columns.
    """
    X, is_frame = _as_frame(X)
    if not is_frame:
        return Table(_num_samples(X), 0, columns=[]), Schema(None, ())
    frame = nw.from_native(X, eager_only=True)
    if schema is None:
        named = [one for one in frame.iter_columns() if isinstance(one.name, str)]
        series = {one.name: _column(one) for one in named}
        found = [name for name, column in series.items() if column_kind(column) == "categories"]
        known: list[Any] = [_sorted_categories(_levels(series[name])[0]) for name in found]
        schema = Schema(np.array(found, dtype=object), tuple(known))
    columns: list[Array] = []
    for name, categories in zip(
        schema.names if schema.names is not None else (), schema.categories, strict=True
    ):
        levels, codes = _levels(_column(frame[name]))
        columns.append(_match(levels, codes, np.asarray(categories), -1))
    return Table(frame.shape[0], len(columns), columns=columns), schema


def column_of(X: Any, column: str | int) -> Array:
    """Return one column of rows as it is, a frame's by name or place, an array's by place."""
    X, is_frame = _as_frame(X)
    if is_frame:
        names = list(X.columns)
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"no column {column!r} among {', '.join(map(repr, names[:8]))}")
            return np.asarray(X[column].to_list(), dtype=object)
        return np.asarray(X[names[column]].to_list(), dtype=object)
    if isinstance(column, str):
        raise ValueError(f"the name of a column, {column!r}, needs a frame, got an array")
    if sp.issparse(X):
        return np.asarray(X.tocsc()[:, [column]].toarray()[:, 0], dtype=object)
    return np.asarray(X)[:, column].astype(object)


def check_rows(estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> None:
    """Check number and names of the columns of rows that learners of any make will read.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_`` with `reset`, else is asked for them.
    X, y : object
        Anything; only shapes and names are looked at.
    reset : bool
        Whether these are the rows of fit.
    """
    flat = not _as_frame(X)[1] and getattr(X, "ndim", None) != 2 and np.asarray(X).ndim == 1
    if flat and not reset and hasattr(estimator, "n_features_in_"):
        check_array(np.zeros(len(X)), estimator=estimator)  # says so in scikit-learn's words
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)


_ALMOST_INFINITE = 1e300


def tame(estimator: Any, values: Array) -> Array:
    """Make infinities huge numbers for an estimator that takes them (`_takes_infinity`)."""
    if not getattr(estimator, "_takes_infinity", False) or not np.isinf(values).any():
        return values
    return np.clip(values.astype(np.float64), -_ALMOST_INFINITE, _ALMOST_INFINITE)


def _all_finite(values: Array, allow_nan: bool) -> bool:
    """Whether no value is infinite (nor NaN, unless allowed); False may be a false alarm."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()  # one pass without memory: finite only if every value is
    return bool(np.isfinite(total)) or (allow_nan and not np.isinf(values).any())


def _read_array(estimator: Any, X: Any, reset: bool, accept_sparse: bool, allow_nan: bool) -> Table:
    """Read an array of numbers by scikit-learn's rules."""
    plain = type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in _FLOATS
    if plain and _all_finite(X, allow_nan):  # the short way: validate_data takes ten times as long
        fitted = vars(estimator)
        if reset:
            fitted.pop("feature_names_in_", None)
            estimator.n_features_in_ = X.shape[1]
        if "feature_names_in_" not in fitted and fitted.get("n_features_in_") == X.shape[1]:
            return Table(len(X), X.shape[1], matrix=X)
    source = np.asarray(X) if isinstance(X, (list, tuple)) else X
    if source is not X and source.dtype.kind in "US":
        source = np.array(X, dtype=object)  # with the numbers beside the strings as they were
    if isinstance(source, np.ndarray) and source.ndim == 2:
        source = _tidy(source, range(source.shape[1]))
    is_sparse = sp.issparse(X)
    finite: Any = "allow-nan" if allow_nan and not is_sparse else True  # sparse NaN: a mistake
    if not is_sparse and getattr(estimator, "_takes_infinity", False):
        finite = False
    form = {"dtype": _FLOATS, "accept_sparse": accept_sparse and "csc", "ensure_all_finite": finite}
    values = validate_data(estimator, source, reset=reset, **form)
    if not is_sparse:
        _check_integers(X, values, range(values.shape[1]))
        values = tame(estimator, values)
        return Table(len(values), values.shape[1], matrix=values)
    if X.dtype.kind in "iu":
        for j in np.unique(values.tocoo().col[np.abs(values.data) >= _EXACT]):
            _check_integers(X.tocsc()[:, [j]].toarray(), values[:, [j]].toarray(), [int(j)])
    if not values.has_canonical_format:
        values = values.copy()  # the caller's matrix stays as it is
        values.sum_duplicates()
    return Table(values.shape[0], values.shape[1], sparse=values)


def _tidy(values: Array, labels: Sequence[Any]) -> Array:
    """Forestall what others do to such arrays: widen float16, parse strings, refuse pandas' NA."""
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
        values[np.vectorize(_is_null, otypes=[bool])(values)] = None  # NumPy makes it NaN
    return values


def _check_integers(source: Any, values: Array, labels: Sequence[Any]) -> None:
    """Refuse integers that lost their identity on the way from `source` to the float `values`."""
    if isinstance(source, np.ndarray) and (source.dtype.kind in "fb" or source.itemsize < 8):
        return
    floats = values.reshape(-1, len(labels))
    large = (floats >= _EXACT) | (floats <= -_EXACT)  # the bound too: 2**53 + 1 is rounded to it
    exact = np.asarray(source, dtype=object) if large.any() else values
    for row, j in np.argwhere(large):
        value = exact.reshape(-1, len(labels))[row, j]
        if isinstance(value, numbers.Integral) and abs(int(value)) > _EXACT:
            raise ValueError(
                f"column {labels[j]!r}: expected integers up to 2**53, beyond which float64 cannot "
                f"tell them apart, got {value}; name identifiers in categorical_features"
            )


def _as_frame(X: Any) -> tuple[Any, bool]:
    """X, made a table if it is an Arrow record batch, and whether it is a frame."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(X, pyarrow.RecordBatch):
        return pyarrow.Table.from_batches([X]), True
    return X, type(X) is not np.ndarray and nw.dependencies.is_into_dataframe(X)


def _split(estimator: Any, X: Any, is_frame: bool, reset: bool) -> tuple[Columns, Sequence[Any]]:
    """Cut X into columns with labels, after scikit-learn's checks of shape and names."""
    if not is_frame:
        if sp.issparse(X):
            raise TypeError("X: expected dense rows, as there are categorical_features, got sparse")
        # Lists as objects: NumPy would make a string of a number that has one beside it.
        values = np.array(X, dtype=object) if isinstance(X, (list, tuple)) else X
        values = validate_data(estimator, values, reset=reset, dtype=None, ensure_all_finite=False)
        return values.T, range(values.shape[1])
    frame = nw.from_native(X, eager_only=True)
    labels = frame.columns  # a ValueError where two are the same
    validate_data(estimator, X, reset=reset, skip_check_array=True)  # sets or checks the names
    if 0 in frame.shape:  # says so in scikit-learn's words
        check_array(np.empty(frame.shape), estimator=estimator)
    if frame.implementation.is_pandas():
        native = frame.to_native()
        dtype, *more = set(native.dtypes)
        if not more and isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            return native.to_numpy().T, labels  # a view where pandas keeps them in one block
    return [_column(series) for series in frame.iter_columns()], labels


def _column(series: nw.Series[Any]) -> Column:
    """Hand a column over to NumPy where narwhals does not know what it holds."""
    if isinstance(series.dtype, (nw.Int128, nw.UInt128)):
        return np.array(series.to_list(), dtype=object)
    # narwhals judges an object column by its first 100 values, and has no name for null, sparse
    # and byte-swapped ones.
    known = str(getattr(series.to_native(), "dtype", "")) != "object"
    known &= not isinstance(series.dtype, (nw.Object, nw.Unknown))
    return series if known else series.to_numpy()


def _declared(declared: Any, labels: Sequence[Any]) -> list[bool]:
    """Whether `categorical_features`, which is not 'from_dtype', names each column."""
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
    known = dict.fromkeys(labels if by_name else range(n))
    for item, count in counts.items():
        if item not in known and by_name:
            if isinstance(labels, range):
                raise ValueError(
                    "categorical_features should be passed as an array of integers or as a boolean "
                    "mask when the model is fitted on data without feature names."
                )
            raise ValueError(
                f"categorical_features has an item value {item!r} which is not a valid feature "
                f"name of the training data. Its columns are {list(labels)[:20]}."
            )
        if item not in known:
            raise ValueError(
                "categorical_features set as integer indices must be in [0, n_features - 1] = "
                f"[0, {n - 1}], got {item}"
            )
        if count > 1:
            raise ValueError(f"categorical_features: expected each column once, got {item!r} twice")
    return [item in counts for item in known]


def _is_null(value: Any) -> bool:
    return type(value).__name__ in _NULLS or bool(value != value)  # pandas' NA would not be a bool


def column_kind(column: Column) -> str:
    """'numbers', 'categories', 'nulls' (and nothing else) or 'unsupported'."""
    if not isinstance(column, np.ndarray):
        if column.dtype.is_numeric() or isinstance(column.dtype, nw.Boolean):
            return "numbers"
        if isinstance(column.dtype, (nw.String, nw.Categorical, nw.Enum)):
            return "categories"
        return "nulls" if column.is_null().all() else "unsupported"
    if column.dtype.kind in "biuf":
        return "numbers"
    types = {t for t in set(map(type, column.tolist())) if t.__name__ not in _NULLS}
    if not types or column.dtype.kind in "mM" or not all(issubclass(t, _VALUES) for t in types):
        return "unsupported" if types else "nulls"
    return "categories" if any(issubclass(t, (str, bytes)) for t in types) else "numbers"


def _read_columns(
    estimator: Any,
    columns: Columns,
    labels: Sequence[Any],
    wanted: Sequence[Any],
    allow_nan: bool,
    unseen: int = -1,
) -> tuple[Table, tuple[Array | None, ...]]:
    """Read each column as numbers (`wanted` None), by its categories, or learning them (...)."""
    if isinstance(columns, np.ndarray) and all(want is None for want in wanted):
        matrix = _checked(estimator, _floats(columns.T, labels), labels, allow_nan)
        return Table(len(matrix), len(labels), matrix=matrix), (None,) * len(labels)
    out: list[Array] = []
    categories: list[Array | None] = []
    for label, column, want in zip(labels, columns, wanted, strict=True):
        kind = column_kind(column)
        refusal = ""
        if kind == "unsupported":
            refusal = "numbers, booleans, strings or a categorical dtype"
        elif want is None and kind == "categories" and len(_levels(column)[0]) > 0:
            refusal = "numbers, as at fit or by categorical_features"
        elif want is None:
            values = _floats(column, [label]) if kind == "numbers" else np.full(len(column), np.nan)
            out.append(_checked(estimator, values, [label], allow_nan))
        else:
            levels, codes = _levels(column)
            want = _sorted_categories(levels) if want is ... else want
            if levels.dtype.kind in "mM" and len(levels) > 0:
                refusal = "categories that are strings or numbers, not times"
            elif _conflict(levels, want):
                refusal = f"categories as at fit, such as {want[:3].tolist()}"
            if not allow_nan:
                _checked(estimator, np.where(codes < 0, np.nan, 0.0), [label], allow_nan)
            out.append(_match(levels, codes, want, unseen))
        if refusal:
            raise ValueError(f"column {label!r}: expected {refusal}, got {kind} ({column.dtype})")
        categories.append(want)
    return Table(len(out[0]), len(out), columns=out), tuple(categories)


def _checked(estimator: Any, values: Array, labels: Sequence[Any], allow_nan: bool) -> Array:
    """Give the values back, or refuse infinity, and NaN unless allowed, naming the column."""
    if _all_finite(values, allow_nan):
        return values
    values = tame(estimator, values)
    for label, column in zip(labels, values.reshape(-1, len(labels)).T, strict=True):
        found = "infinity" if np.isinf(column).any() else "NaN"
        if found == "infinity" or (not allow_nan and np.isnan(column).any()):
            name = type(estimator).__name__
            raise ValueError(f"Input X contains {found} in column {label!r}: {name} takes none")
    return values


def _floats(column: Column, labels: Sequence[Any]) -> Array:
    """Give numbers as float64 or float32, NaN where missing; a view where that is possible."""
    if isinstance(column, np.ndarray):
        values = _tidy(column, labels)
        values = values if values.dtype in _FLOATS else values.astype(np.float64)
        _check_integers(column, values, labels)
        return values
    if isinstance(column.dtype, (nw.Int64, nw.UInt64)):  # Arrow would refuse the cast less kindly
        ends = [int(end) for end in (column.min(), column.max()) if not _is_null(end)]
        _check_integers(ends, np.array(ends, dtype=np.float64), labels)
    if not isinstance(column.dtype, (nw.Float32, nw.Float64)):
        column = column.cast(nw.Float32 if isinstance(column.dtype, nw.Float16) else nw.Float64)
    return column.to_numpy()


def _levels(column: Column) -> tuple[Array, Array]:
    """Find the distinct values of a column and each row's index among them (-1 where missing)."""
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
        if hasattr(series, "cat"):  # has its codes already
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
    # A dictionary may list null, and values that no row has. The last entry serves code -1.
    used = np.zeros(len(levels) + 1, dtype=np.bool_)
    used[codes] = True
    used[-1] = False
    used[:-1] &= np.array([not _is_null(value) for value in levels.tolist()], dtype=np.bool_)
    if used[:-1].all():
        return levels, codes
    return levels[used[:-1]], np.where(used, np.cumsum(used) - 1, -1)[codes]


def _sorted_categories(levels: Array) -> Array:
    """Sort levels, by type name first where the types do not compare."""
    ordered = list(set(levels.tolist()))
    try:
        ordered.sort()
    except TypeError:
        ordered.sort(key=lambda value: (type(value).__name__, value))
    return np.fromiter(ordered, dtype=levels.dtype, count=len(ordered))


def _match(levels: Array, codes: Array, categories: Array, unseen: int) -> NDArray[np.int32]:
    """Turn codes of levels into codes of categories by one look-up for each level."""
    index = {value: code for code, value in enumerate(categories.tolist())}
    lookup = [index.get(value, unseen) for value in levels.tolist()]
    return np.array([*lookup, -1], dtype=np.int32)[codes]  # the last entry serves code -1


def _conflict(levels: Array, categories: Array) -> bool:
    """Whether one side is all numbers and the other has none (an empty one agrees with any)."""
    ours = {issubclass(t, _NUMBERS) for t in set(map(type, levels.tolist()))}
    theirs = {issubclass(t, _NUMBERS) for t in set(map(type, categories.tolist()))}
    return len(ours) > 0 and len(theirs) > 0 and ours.isdisjoint(theirs)
