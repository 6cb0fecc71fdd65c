"""What spinney._table promises about arrays, frames, sparse matrices and categories."""

from __future__ import annotations

import dataclasses
import datetime
import pickle
import time
import warnings
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from spinney._table import Schema, Table, fit_table, read_table

BIG = 2**53


class Model(BaseEstimator):
    """An estimator for the tables to be of."""


class NearestMean(ClassifierMixin, BaseEstimator):
    """The least classifier that takes its rows from the tables, for scikit-learn's own checks."""

    def __init__(self, allow=True):
        self.allow = allow

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.allow
        tags.input_tags.allow_nan = self.allow
        return tags

    def fit(self, X, y):
        table, self.schema_ = fit_table(self, X, y, accept_sparse=self.allow, allow_nan=self.allow)
        y = column_or_1d(y, warn=True)
        if len(y) != table.n_rows:
            raise ValueError("Found input variables with inconsistent numbers of samples")
        validate_data(self, X="no_validation", y=y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        rows = np.nan_to_num(table.to_matrix().astype(np.float64))
        self.means_ = np.stack([rows[codes == k].mean(0) for k in range(len(self.classes_))])
        return self

    def predict(self, X):
        check_is_fitted(self)
        table = read_table(self, X, self.schema_, accept_sparse=self.allow, allow_nan=self.allow)
        rows = np.nan_to_num(table.to_matrix().astype(np.float64))
        distances = ((rows[:, None, :] - self.means_) ** 2).sum(-1)
        return self.classes_[distances.argmin(1)]


@parametrize_with_checks([NearestMean(), NearestMean(allow=False)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def fit(X, **options):
    """The fitted model, table and schema."""
    model = Model()
    table, schema = fit_table(model, X, **options)
    assert model.n_features_in_ == schema.n_features == table.n_features
    given_forms = [table.matrix is not None, table.columns is not None, table.sparse is not None]
    assert sum(given_forms) == 1
    return model, table, schema


def refit(X, Z, **options):
    """The table of Z read by the schema of X."""
    model, _, schema = fit(X, **options)
    return read_table(model, Z, schema)


def by_numpy_pandas(data):
    return pd.DataFrame(data)


def by_nullable_pandas(data):
    return pd.DataFrame(data).convert_dtypes()


def by_arrow_pandas(data):
    return pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow")


def by_object_pandas(data):
    return pd.DataFrame(data).astype(object)


def by_polars(data):
    return pl.DataFrame(data)


def by_arrow(data):
    return pa.table(data)


def by_record_batch(data):
    return pa.RecordBatch.from_pydict(data)


FRAMES = [
    by_numpy_pandas,
    by_nullable_pandas,
    by_arrow_pandas,
    by_object_pandas,
    by_polars,
    by_arrow,
    by_record_batch,
]
any_frame = pytest.mark.parametrize("frame", FRAMES)


# -------------------------------------------------------------------------- plain matrices


LAYOUTS = {
    "C": lambda X: X,
    "F": np.asfortranarray,
    "sliced": lambda X: np.repeat(X, 2, axis=0)[::2, ::-1],
    "read-only": lambda X: np.broadcast_to(X, X.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("missing", [False, True])
def test_float_matrices_are_views(layout, dtype, missing):
    X = LAYOUTS[layout](np.arange(12, dtype=dtype).reshape(4, 3))
    if missing:
        X = X.copy(order="K")
        X[1, 1] = np.nan
    model, table, schema = fit(X)
    assert schema.names is None
    assert schema.categories == (None, None, None)
    assert not schema.has_categories
    assert not schema.is_categorical.any()
    assert (table.n_rows, table.n_features) == (4, 3)
    for read in (table, read_table(model, X, schema)):
        assert read.matrix.dtype == dtype
        assert np.shares_memory(read.matrix, X)
        np.testing.assert_array_equal(read.matrix, X)


@settings(max_examples=60, deadline=None, database=None)
@given(
    n_rows=st.integers(1, 6),
    n_features=st.integers(1, 5),
    step=st.integers(1, 3),
    flip=st.booleans(),
    transpose=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_no_view_is_copied(n_rows, n_features, step, flip, transpose, dtype):
    base = np.arange(n_rows * step * n_features, dtype=dtype)
    X = base.reshape(n_rows * step, n_features)[::step]
    X = X[::-1] if flip else X
    X = X.T if transpose else X
    model, table, schema = fit(X)
    assert np.shares_memory(table.matrix, base)
    assert np.shares_memory(read_table(model, X, schema).matrix, base)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (np.int8, np.float64),
        (np.uint32, np.float64),
        (np.int64, np.float64),
        (np.uint64, np.float64),
        (np.bool_, np.float64),
        (np.float16, np.float32),
        (">f8", np.float64),
        (">f4", np.float32),
        (">i4", np.float64),
        (np.longdouble, np.float64),
        (object, np.float64),
    ],
)
def test_dtypes(source, target):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(source)
    model, table, schema = fit(X)
    for read in (table, read_table(model, X, schema)):
        assert read.matrix.dtype == target
        assert read.matrix.dtype.isnative
        np.testing.assert_array_equal(read.matrix, X.astype(target))


def test_double_precision_is_kept():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    assert len(np.unique(fit(X)[1].matrix)) == 2
    assert len(np.unique(fit(X.astype(">f8"))[1].matrix)) == 2


def test_lists_and_objects():
    rows = [[1, 2.5], [None, 4]]
    expected = [[1.0, 2.5], [np.nan, 4.0]]
    for X in (rows, [tuple(row) for row in rows], np.array(rows, dtype=object)):
        np.testing.assert_array_equal(fit(X)[1].matrix, expected)
    with_na = np.array([[1, 2.5], [pd.NA, 4]], dtype=object)
    np.testing.assert_array_equal(fit(with_na)[1].matrix, expected)
    assert with_na[1, 0] is pd.NA  # the caller's array is left alone
    decimals = np.array([[Decimal("0.5"), True]], dtype=object)
    np.testing.assert_array_equal(fit(decimals)[1].matrix, [[0.5, 1.0]])


@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, "a"], [2, "b"]], dtype=object),
        np.array([["1", "a"]]),
        [[1.0, "a"]],
    ],
)
@pytest.mark.parametrize("option", ["from_dtype", None, []])
def test_strings_in_arrays_name_their_column(X, option):
    column = 0 if isinstance(X, np.ndarray) and X.dtype.kind == "U" else 1
    with pytest.raises(ValueError, match=f"could not convert string to float: .* column {column}"):
        fit(X, categorical_features=option)


def test_numbers_spelled_as_strings_are_not_parsed():
    for X in ([["1.5"]], np.array([["1.5"]]), np.array([["1.5"]], dtype=object)):
        with pytest.raises(ValueError, match=r"'1.5' in column 0.*categorical_features"):
            fit(X)


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_times_in_arrays_are_refused(dtype):
    X = np.array([[1, 2]]).astype(dtype)
    for option in ("from_dtype", None, [0]):
        with pytest.raises(ValueError, match=rf"column 0: expected numbers.*{dtype[3]}\]"):
            fit(X, categorical_features=option)


@pytest.mark.parametrize("value", [BIG + 1, -BIG - 1, 2**62, -(2**63)])
def test_integers_beyond_float64_are_refused(value):
    message = rf"column 1: expected integers .*2\*\*53.*got {value}.*categorical_features"
    for X in (np.array([[1, 2], [3, value]]), [[1, 2], [3, value]], [[0.5, 2], [0.5, value]]):
        with pytest.raises(ValueError, match=message):
            fit(X)
    with pytest.raises(ValueError, match=message):
        fit(np.array([[1, 2], [3, value]], dtype=object))
    model, _, schema = fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match=message):
        read_table(model, np.array([[3, value]]), schema)
    for form in ("csr", "csc", "coo"):
        with pytest.raises(ValueError, match=message):
            fit(sp.csr_array(np.array([[0, 0], [0, value]])).asformat(form))


def test_integers_at_the_bound_and_floats_beyond_are_kept():
    assert fit(np.array([[BIG], [-BIG]]))[1].matrix.tolist() == [[float(BIG)], [-float(BIG)]]
    assert fit([[BIG, 2.0**60]])[1].matrix.tolist() == [[2.0**53, 2.0**60]]
    assert fit(np.array([[1e300], [2.0**60]]))[1].matrix[0, 0] == 1e300
    assert fit(sp.csr_array([[BIG, 0]]))[1].sparse.toarray().tolist() == [[float(BIG), 0.0]]
    assert fit(sp.csr_array([[2.0**60]]))[1].sparse.toarray().tolist() == [[2.0**60]]
    with pytest.raises(ValueError, match=f"got {2**64 - 1}"):
        fit(np.array([[2**64 - 1]], dtype=np.uint64))


@any_frame
@pytest.mark.parametrize("value", [BIG + 1, -BIG - 1])
def test_integers_beyond_float64_are_refused_in_frames(frame, value):
    X = frame({"a": [1, 2], "id": [3, value]})
    with pytest.raises(ValueError, match=rf"column 'id': expected integers .*got {value}"):
        fit(X)
    mixed = frame({"id": [3, value], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=rf"column 'id': expected integers .*got {value}"):
        fit(mixed)
    schema = fit(X, categorical_features=["id"])[2]
    assert sorted(schema.categories[1].tolist()) == sorted([3, value])
    assert fit(frame({"a": [BIG], "b": ["x"]}))[1].columns[0].tolist() == [float(BIG)]


# ------------------------------------------------------------- scikit-learn's words for errors


def _scikit_learns(X, fitted=None, **options):
    model = Model()
    params = {"dtype": [np.float64, np.float32], "accept_sparse": "csc"}
    params |= {"ensure_all_finite": "allow-nan"} | options
    try:
        if fitted is not None:
            validate_data(model, fitted, **params)
        validate_data(model, X, reset=fitted is None, **params)
    except (ValueError, TypeError) as error:
        return type(error), str(error)
    raise AssertionError("scikit-learn has no objection")


WRONG = {
    "1-d": np.ones(3),
    "1-d list": [1.0, 2.0],
    "scalar": 3.0,
    "3-d": np.ones((2, 2, 2)),
    "no rows": np.ones((0, 3)),
    "no columns": np.ones((3, 0)),
    "complex": np.ones((2, 2), dtype=complex),
    "infinity": np.array([[1.0, np.inf]]),
    "both infinities": np.array([[1.0, np.inf], [-np.inf, np.nan]]),
    "infinity in float32": np.array([[1.0, -np.inf]], dtype=np.float32),
    "matrix": np.matrix([[1.0]]),
    "dict in a cell": np.array([[1.0, {"a": 1}]], dtype=object),
    "ragged": [[1.0], [1.0, 2.0]],
    "series": pd.Series([1.0]),
    "sparse 1-d": sp.coo_array(np.ones(3)),
    "sparse infinity": sp.csr_array(np.array([[np.inf]])),
    "sparse complex": sp.csr_array(np.array([[1j]])),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # in scikit-learn's own sum
def test_errors_are_scikit_learns(case):
    kind, message = _scikit_learns(WRONG[case])
    with pytest.raises(kind) as caught:
        fit(WRONG[case])
    assert str(caught.value) == message
    model, _, schema = fit(np.ones((2, 3)))
    kind, message = _scikit_learns(WRONG[case], np.ones((2, 3)))
    with pytest.raises(kind) as caught:
        read_table(model, WRONG[case], schema)
    assert str(caught.value) == message


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1, 2]], sp.csc_array(np.ones((2, 2)))])
def test_number_of_features(X):
    model, _, schema = fit(np.ones((2, 3)))
    kind, message = _scikit_learns(X, np.ones((2, 3)))
    assert "X has 2 features, but Model is expecting 3 features as input" in message
    with pytest.raises(kind) as caught:
        read_table(model, X, schema)
    assert str(caught.value) == message


def test_nan_only_where_allowed():
    X = np.array([[1.0, np.nan]])
    kind, message = _scikit_learns(X, ensure_all_finite=True)
    with pytest.raises(kind) as caught:
        fit(X, allow_nan=False)
    assert str(caught.value) == message
    assert "contains NaN" in message
    model, _, schema = fit(np.ones((1, 2)), allow_nan=False)
    with pytest.raises(ValueError, match="contains NaN"):
        read_table(model, X, schema, allow_nan=False)
    assert np.isnan(read_table(model, X, schema).matrix[0, 1])
    for frame in (pd.DataFrame({"a": [1.0, np.nan]}), pl.DataFrame({"a": [1.0, None]})):
        with pytest.raises(ValueError, match="contains NaN in column 'a': Model"):
            fit(frame, allow_nan=False)
    with pytest.raises(ValueError, match="contains NaN in column 'b'"):
        fit(pl.DataFrame({"a": [1.0, 2.0], "b": ["x", None]}), allow_nan=False)
    # An unseen category is not a missing one.
    model, _, schema = fit(pl.DataFrame({"b": ["x", "y"]}), allow_nan=False)
    unseen = read_table(model, pl.DataFrame({"b": ["z"]}), schema, allow_nan=False)
    assert unseen.columns[0].tolist() == [-1]


def test_large_values_are_finite():
    X = np.full((3, 2), np.finfo(float).max)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for allow_nan in (True, False):
            assert np.shares_memory(fit(X, allow_nan=allow_nan)[1].matrix, X)
            assert fit(pl.DataFrame(X), allow_nan=allow_nan)[1].n_rows == 3


def test_a_missing_target_is_refused_where_the_tags_require_it():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        fit_table(NearestMean(), np.ones((2, 2)), None)
    for X in (np.array([[np.nan]]), np.array([["x"]], dtype=object), pl.DataFrame({"a": ["x"]})):
        assert fit_table(Model(), X, None, categorical_features=[0])[1].has_categories


# --------------------------------------------------------------------------------- sparse


FORMATS = ["csc", "csr", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_sparse(format, container, dtype):
    dense = np.array([[0, 1, 0], [2, 0, 3]], dtype=dtype)
    X = container(dense).asformat(format)
    model, table, schema = fit(X)
    for read in (table, read_table(model, X, schema)):
        assert read.sparse.format == "csc"
        assert isinstance(read.sparse, type(X.tocsc()))
        assert read.sparse.dtype == (np.float32 if dtype == np.float32 else np.float64)
        assert read.sparse.has_canonical_format
        assert read.sparse.has_sorted_indices
        np.testing.assert_array_equal(read.sparse.toarray(), dense)
        np.testing.assert_array_equal(read.to_matrix(), dense)


def test_sparse_is_not_copied_where_it_need_not_be_and_never_changed():
    X = sp.csc_array(np.array([[0.0, 1.0], [2.0, 0.0]]))
    assert np.shares_memory(fit(X)[1].sparse.data, X.data)
    indices, data = np.array([1, 0, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    messy = sp.csc_array((data, indices, np.array([0, 3, 4])), shape=(2, 2))
    read = fit(messy)[1].sparse
    assert read.has_sorted_indices
    assert read.nnz == 3
    np.testing.assert_array_equal(read.toarray(), [[2.0, 4.0], [4.0, 0.0]])
    assert messy.indices.tolist() == [1, 0, 1, 0]
    assert messy.data.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_sparse_refusals():
    X = sp.csr_array(np.eye(2))
    kind, message = _scikit_learns(X, accept_sparse=False)
    with pytest.raises(kind) as caught:
        fit(X, accept_sparse=False)
    assert str(caught.value) == message
    model, _, schema = fit(np.ones((2, 2)))
    with pytest.raises(TypeError, match="Sparse data was passed for X"):
        read_table(model, X, schema, accept_sparse=False)
    assert read_table(model, X, schema).sparse is not None
    with pytest.raises(ValueError, match="contains NaN"):
        fit(sp.csr_array(np.array([[np.nan, 1.0]])))
    with pytest.raises(TypeError, match=r"categorical_features.*sparse"):
        fit(X, categorical_features=[0])
    model, _, schema = fit(np.eye(2), categorical_features=[0])
    with pytest.raises(TypeError, match=r"categorical_features.*sparse"):
        read_table(model, X, schema)


# --------------------------------------------------------------------------------- names


@any_frame
def test_names_are_scikit_learns(frame):
    X = frame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    model, table, schema = fit(X)
    assert schema.names.dtype == object
    assert schema.names.tolist() == ["a", "b"]
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(table.to_matrix(), [[1.0, 3.0], [2.0, 4.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(
            read_table(model, X, schema).to_matrix(), [[1.0, 3.0], [2.0, 4.0]]
        )
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        read_table(model, frame({"b": [3.0], "a": [1.0]}), schema)
    with pytest.raises(ValueError, match=r"(?s)unseen at fit time:\n- c.*now missing:\n- b"):
        read_table(model, frame({"a": [1.0], "c": [3.0]}), schema)
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        read_table(model, frame({"a": [1.0]}), schema)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but Model"):
        read = read_table(model, np.array([[1.0, 3.0]]), schema)
    assert read.matrix.tolist() == [[1.0, 3.0]]
    model, _, schema = fit(np.ones((2, 2)))
    with pytest.warns(UserWarning, match="X has feature names, but Model was fitted without"):
        read_table(model, X, schema)
    with (
        pytest.raises(ValueError, match="X has 1 features, but Model is expecting 2"),
        pytest.warns(UserWarning, match="X has feature names"),
    ):
        read_table(model, frame({"a": [1.0]}), schema)


def test_a_new_fit_forgets_the_names():
    model = Model()
    fit_table(model, pd.DataFrame({"a": [1.0]}))
    assert model.feature_names_in_.tolist() == ["a"]
    _, schema = fit_table(model, np.ones((2, 2)))
    assert not hasattr(model, "feature_names_in_")
    assert schema.names is None
    assert model.n_features_in_ == 2


def test_names_that_are_not_strings():
    X = pd.DataFrame({0: [1.0], 1: ["a"]})
    model, table, schema = fit(X)
    assert schema.names is None
    assert not hasattr(model, "feature_names_in_")
    assert table.columns[1].tolist() == [0]
    assert read_table(model, X, schema).columns[1].tolist() == [0]
    with pytest.raises(TypeError, match="Feature names are only supported if all"):
        fit(pd.DataFrame({0: [1.0], "a": [2.0]}))


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame([[1.0, 2.0, 3.0]], columns=["twice", "b", "twice"]),
        pd.DataFrame([[1.0, "x", 3.0]], columns=["twice", "b", "twice"]),
        pa.table([[1.0], [2.0]], names=["twice", "twice"]),
    ],
)
def test_duplicate_names(X):
    with pytest.raises(ValueError, match=r"(?s)unique column names.*'twice'"):
        fit(X)


@any_frame
def test_frames_without_rows_or_columns(frame):
    empty = pl.DataFrame({"a": [1.0], "b": ["x"]}) if frame is by_polars else None
    empty = frame({"a": [1.0], "b": ["x"]})[:0] if empty is None else empty[:0]
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\) \(shape=\(0, 2\)\)"):
        fit(empty)
    model, _, schema = fit(frame({"a": [1.0], "b": ["x"]}))
    with pytest.raises(ValueError, match=r"0 sample\(s\).*minimum of 1 is required by Model"):
        read_table(model, empty, schema)
    if frame is by_numpy_pandas:
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            fit(pd.DataFrame(index=[0, 1]))


# ------------------------------------------------------------------------ numeric columns


@any_frame
def test_numbers_in_frames(frame):
    X = frame(
        {
            "float": [0.5, None, 2.5],
            "int": [1, 2, None],
            "full": [1, 2, 3],
            "bool": [True, False, True],
            "maybe": [True, None, False],
            "text": ["x", None, "x"],
        }
    )
    expected = [
        [0.5, np.nan, 2.5],
        [1.0, 2.0, np.nan],
        [1.0, 2.0, 3.0],
        [1.0, 0.0, 1.0],
        [1.0, np.nan, 0.0],
        [0, -1, 0],
    ]
    model, table, schema = fit(X)
    assert schema.is_categorical.tolist() == [False] * 5 + [True]
    assert schema.has_categories
    for read in (table, read_table(model, X, schema)):
        for column, values in zip(read.columns, expected, strict=True):
            np.testing.assert_array_equal(column, values)
        assert all(column.dtype == np.float64 for column in read.columns[:5])
        assert read.columns[5].dtype == np.int32
        with pytest.raises(ValueError, match="numeric columns only, got categorical"):
            read.to_matrix()


def test_precision_in_frames():
    data = {"f4": np.ones(2, np.float32), "f8": np.ones(2), "f2": np.ones(2, np.float16)}
    for X in (pd.DataFrame(data), pl.DataFrame(data), pa.table(data)):
        dtypes = [column.dtype for column in fit(X)[1].columns]
        assert dtypes == [np.float32, np.float64, np.float32]
    matrix = fit(pd.DataFrame({"a": np.ones(2, np.float32), "b": np.ones(2, np.float32)}))[1]
    assert matrix.matrix.dtype == np.float32
    half = fit(pd.DataFrame(np.ones((2, 2), np.float16)))[1].matrix
    assert half.dtype == np.float32
    swapped = fit(pd.DataFrame({"a": np.array([1.0, 2.0], ">f4"), "b": ["x", "y"]}))[1]
    assert swapped.columns[0].dtype == np.float32
    assert swapped.columns[0].tolist() == [1.0, 2.0]
    decimals = pa.table({"d": pa.array([Decimal("1.5"), None]), "b": ["x", "y"]})
    np.testing.assert_array_equal(fit(decimals)[1].columns[0], [1.5, np.nan])


def test_frames_are_not_copied():
    values = np.arange(6.0).reshape(3, 2)
    block = pd.DataFrame(values, columns=["a", "b"], copy=False)
    model, table, schema = fit(block)
    assert np.shares_memory(table.matrix, values)
    assert np.shares_memory(read_table(model, block, schema).matrix, values)
    mixed = block.assign(c=["x", "y", "x"])
    assert np.shares_memory(fit(mixed)[1].columns[0], mixed["a"].to_numpy())
    series = pl.Series("a", values[:, 0])
    frame = pl.DataFrame([series])
    assert np.shares_memory(fit(frame)[1].columns[0], frame["a"].to_numpy())
    arrow = pa.array(values[:, 0])
    assert np.shares_memory(fit(pa.table({"a": arrow}))[1].columns[0], arrow.to_numpy())
    batch = pa.RecordBatch.from_arrays([arrow], names=["a"])
    assert np.shares_memory(fit(batch)[1].columns[0], arrow.to_numpy())


def test_arrow_chunks():
    chunks = [pa.array([1.0, None]), pa.array([3.0])]
    words = [pa.array(["b", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]
    X = pa.table({"a": pa.chunked_array(chunks), "b": pa.chunked_array(words)})
    _, table, schema = fit(X)
    np.testing.assert_array_equal(table.columns[0], [1.0, np.nan, 3.0])
    assert table.columns[1].tolist() == [1, -1, 0]
    assert schema.categories[1].tolist() == ["a", "b"]


def test_pandas_sparse_columns_are_made_dense():
    X = pd.DataFrame(
        {
            "a": pd.arrays.SparseArray([0.0, 1.5]),
            "b": pd.arrays.SparseArray([0, 2]),
        }
    )
    np.testing.assert_array_equal(fit(X)[1].to_matrix(), [[0.0, 0.0], [1.5, 2.0]])
    mixed = fit(X.assign(c=["x", "y"]))[1]
    np.testing.assert_array_equal(mixed.columns[0], [0.0, 1.5])
    np.testing.assert_array_equal(mixed.columns[1], [0.0, 2.0])


@any_frame
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_names_its_column(frame, value):
    good, bad = [1.0, 2.0], [1.0, value]
    for beside in ([0.5, 0.5], ["x", "y"]):
        with pytest.raises(ValueError, match="contains infinity in column 'bad'"):
            fit(frame({"a": good, "b": beside, "bad": bad}))
        model, _, schema = fit(frame({"a": good, "b": beside, "bad": good}))
        with pytest.raises(ValueError, match="contains infinity in column 'bad'"):
            read_table(model, frame({"a": good, "b": beside, "bad": bad}), schema)


def test_infinity_beside_categories_in_an_array():
    X = np.array([[1.0, 0.0], [np.inf, 1.0]])
    with pytest.raises(ValueError, match="contains infinity in column 0"):
        fit(X, categorical_features=[1])


NULLS = [
    pl.Series("a", [None, None]),
    pl.Series("a", [None, None], dtype=pl.Float64),
    pl.Series("a", [None, None], dtype=pl.Int64),
    pl.Series("a", [None, None], dtype=pl.String),
    pl.Series("a", [None, None], dtype=pl.Categorical),
    pl.Series("a", [None, None], dtype=pl.Datetime),
    pd.Series([None, None], name="a"),
    pd.Series([np.nan, np.nan], name="a"),
    pd.Series([None, None], name="a", dtype="str"),
    pd.Series([None, None], name="a", dtype="category"),
    pd.Series([None, None], name="a", dtype="Int64"),
    pd.Series([pd.NaT, pd.NaT], name="a"),
    pd.Series(pd.Categorical([pd.NaT] * 2, categories=pd.to_datetime(["2020-01-01"])), name="a"),
    pd.Series([pd.NA, pd.NA], name="a", dtype=object),
    pa.table({"a": pa.array([None, None])}),
    pa.table({"a": pa.array([None, None], pa.string())}),
    pa.table({"a": pa.array([None, None]).cast(pa.string()).dictionary_encode()}),
]


@pytest.mark.parametrize("nulls", NULLS)
@pytest.mark.parametrize("option", ["from_dtype", None, ["a"]])
def test_columns_of_nothing_but_nulls(nulls, option):
    X = nulls if isinstance(nulls, pa.Table) else nulls.to_frame()
    fit(X, categorical_features=option)
    numeric = refit(pd.DataFrame({"a": [1.0, 2.0]}), X)
    assert np.isnan(numeric.to_matrix()).all()
    assert numeric.n_rows == 2
    words = refit(pd.DataFrame({"a": ["x", "y"]}), X)
    assert words.columns[0].tolist() == [-1, -1]


def test_an_object_column_is_judged_by_all_its_values():
    late_number = [None] * 500 + [1.5]
    late_word = [None] * 500 + ["x"]
    X = pd.DataFrame({"a": late_number, "b": late_word}, dtype=object)
    _, table, schema = fit(X)
    assert schema.is_categorical.tolist() == [False, True]
    assert table.columns[0][-1] == 1.5
    assert table.columns[1][-1] == 0


# --------------------------------------------------------------------- categorical columns


def words_as(values, how):
    """The same words in each of the ways in which frames store them."""
    order = sorted({value for value in values if value is not None}, reverse=True)
    match how:
        case "pandas str":
            return pd.DataFrame({"a": pd.Series(values, dtype="str")})
        case "pandas object":
            return pd.DataFrame({"a": pd.Series(values, dtype=object)})
        case "pandas string":
            return pd.DataFrame({"a": pd.Series(values, dtype="string")})
        case "pandas category":
            return pd.DataFrame({"a": pd.Categorical(values, categories=["unused", *order])})
        case "pandas ordered":
            categorical = pd.Categorical(values, categories=[*order, "unused"], ordered=True)
            return pd.DataFrame({"a": categorical})
        case "pandas arrow string":
            return pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(pa.string()))})
        case "pandas arrow dictionary":
            dtype = pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
            return pd.DataFrame({"a": pd.Series(values, dtype=dtype)})
        case "polars string":
            return pl.DataFrame({"a": pl.Series(values, dtype=pl.String)})
        case "polars categorical":
            return pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)})
        case "polars enum":
            return pl.DataFrame({"a": pl.Series(values, dtype=pl.Enum(["unused", *order]))})
        case "arrow string":
            return pa.table({"a": pa.array(values, pa.string())})
        case "arrow large string":
            return pa.table({"a": pa.array(values, pa.large_string())})
        case "arrow string view":
            return pa.table({"a": pa.array(values, pa.string_view())})
        case "arrow dictionary":
            levels = [None, *order, "unused"]
            positions = [None if v is None else levels.index(v) for v in values]
            codes = pa.array(positions, pa.uint8())
            return pa.table({"a": pa.DictionaryArray.from_arrays(codes, pa.array(levels))})
        case "numpy object":
            return np.array([[value] for value in values], dtype=object)
        case "list":
            return [[value] for value in values]
    raise AssertionError(how)


STORAGES = [
    "pandas str",
    "pandas object",
    "pandas string",
    "pandas category",
    "pandas ordered",
    "pandas arrow string",
    "pandas arrow dictionary",
    "polars string",
    "polars categorical",
    "polars enum",
    "arrow string",
    "arrow large string",
    "arrow string view",
    "arrow dictionary",
    "numpy object",
    "list",
]


@pytest.mark.parametrize("stored", STORAGES)
@pytest.mark.parametrize("read_as", STORAGES)
@pytest.mark.filterwarnings("ignore:X .*feature names")
def test_categories_are_matched_by_value(stored, read_as):
    array = stored in ("numpy object", "list")
    X = words_as(["pear", "fig", None, "plum", "fig"], stored)
    model, table, schema = fit(X, categorical_features=[0] if array else "from_dtype")
    assert schema.categories[0].tolist() == ["fig", "pear", "plum"]
    assert table.columns[0].dtype == np.int32
    assert table.columns[0].tolist() == [1, 0, -1, 2, 0]
    other = words_as(["plum", "kiwi", "fig", None], read_as)
    assert read_table(model, other, schema).columns[0].tolist() == [2, -1, 0, -1]


@settings(max_examples=80, deadline=None, database=None)
@given(data=st.data(), stored=st.sampled_from(STORAGES), read_as=st.sampled_from(STORAGES))
@pytest.mark.filterwarnings("ignore:X .*feature names")
def test_codes_lead_back_to_the_values(data, stored, read_as):
    alphabet = st.characters(codec="utf-8", exclude_characters="\0")
    word = st.one_of(st.none(), st.text(alphabet, max_size=4))
    seen = data.draw(st.lists(word, min_size=1, max_size=12))
    later = data.draw(st.permutations(seen))
    later = [*later, *data.draw(st.lists(word, max_size=4))]
    array = stored in ("numpy object", "list")
    X = words_as(seen, stored)
    model, table, schema = fit(X, categorical_features=[0] if array else ["a"])
    categories = schema.categories[0].tolist()
    assert categories == sorted({value for value in seen if value is not None})
    for rows, read in (
        (seen, table),
        (later, read_table(model, words_as(later, read_as), schema)),
    ):
        for value, code in zip(rows, read.columns[0].tolist(), strict=True):
            assert (categories[code] == value) if value in categories else code == -1


@settings(max_examples=50, deadline=None, database=None)
@given(
    levels=st.permutations(["a", "b", "c", "d"]),
    relevels=st.permutations(["a", "b", "c", "d", "e"]),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=20),
)
def test_the_order_of_levels_does_not_matter(levels, relevels, rows):
    values = ["abcd"[row] for row in rows]
    model, table, schema = fit(pd.DataFrame({"x": pd.Categorical(values, categories=levels)}))
    assert schema.categories[0].tolist() == sorted(set(values))
    decoded = schema.categories[0][table.columns[0]]
    assert decoded.tolist() == values
    again = pd.DataFrame({"x": pd.Categorical(values, categories=relevels)})
    np.testing.assert_array_equal(read_table(model, again, schema).columns[0], table.columns[0])


def test_a_polars_categorical_made_after_others():
    others = pl.Series([f"before {i}" for i in range(50)], dtype=pl.Categorical)
    X = pl.DataFrame({"a": pl.Series(["y", "x"], dtype=pl.Categorical)})
    _, table, schema = fit(X)
    assert table.columns[0].tolist() == [1, 0]
    assert len(schema.categories[0]) == 2
    assert len(others) == 50


def test_a_dictionary_with_repeated_entries():
    codes = pa.array([0, 1, 2, None], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y", "x"]))
    _, table, schema = fit(pa.table({"a": column}))
    assert schema.categories[0].tolist() == ["x", "y"]
    assert table.columns[0].tolist() == [0, 1, 0, -1]


def test_mixed_categories_are_ordered_by_type_and_value():
    values = ["b", 10, None, 2, "a", (1, 2)[0]]
    for rows in (values, values[::-1]):
        _, table, schema = fit(pd.DataFrame({"a": pd.Series(rows, dtype=object)}))
        categories = schema.categories[0].tolist()
        assert categories == [1, 2, 10, "a", "b"]
        for value, code in zip(rows, table.columns[0].tolist(), strict=True):
            assert code == (-1 if value is None else categories.index(value))


def test_categories_of_intervals():
    X = pd.DataFrame({"a": pd.cut(pd.Series([9.0, 1.0, 5.0, np.nan]), 3)})
    model, table, schema = fit(X)
    assert table.columns[0].tolist() == [2, 0, 1, -1]
    assert read_table(model, X.iloc[[2]], schema).columns[0].tolist() == [1]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.float64, np.float32, bool])
def test_numbers_declared_categorical_in_an_array(dtype):
    X = np.array([[1, 0], [0, 1], [1, 1]]).astype(dtype)
    model, table, schema = fit(X, categorical_features=[1])
    assert schema.categories[0] is None
    assert schema.categories[1].dtype == dtype
    assert schema.categories[1].tolist() == [0, 1]
    assert table.columns[1].tolist() == [0, 1, 1]
    assert table.columns[0].dtype == (np.float32 if dtype == np.float32 else np.float64)
    unseen = read_table(model, [[1, 7], [0, None], [0, 1.0]], schema)
    assert unseen.columns[1].tolist() == [-1, -1, 1]


@any_frame
def test_numbers_declared_categorical_in_a_frame(frame):
    floats = [0.5, None, 2.0, 0.5]
    X = frame({"id": [7, BIG + 1, BIG, 7], "b": [True, False, None, True], "c": floats})
    model, table, schema = fit(X, categorical_features=["id", "b", "c"])
    assert schema.categories[0].tolist() == [7, BIG, BIG + 1]
    assert schema.categories[1].tolist() == [False, True]
    assert schema.categories[2].tolist() == [0.5, 2]
    if frame is not by_object_pandas:
        assert schema.categories[0].dtype.kind == "i"
    for read in (table, read_table(model, X, schema)):
        assert [column.tolist() for column in read.columns] == [
            [0, 2, 1, 0],
            [1, 0, -1, 1],
            [0, -1, 1, 0],
        ]


def test_integers_with_nulls_stay_exact_as_categories():
    values = [BIG + 1, None, BIG]
    frames = [
        pd.DataFrame({"a": pd.array(values, dtype="Int64")}),
        pd.DataFrame({"a": pd.array(values, dtype="int64[pyarrow]")}),
        pl.DataFrame({"a": values}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.UInt64)}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.Int128)}),
        pa.table({"a": values}),
    ]
    for X in frames:
        _, table, schema = fit(X, categorical_features=["a"])
        assert schema.categories[0].tolist() == [BIG, BIG + 1]
        assert table.columns[0].tolist() == [1, -1, 0]
    wide = pl.DataFrame({"a": pl.Series([2**64 - 1, 2**64 - 2], dtype=pl.UInt64)})
    assert fit(wide, categorical_features=[0])[1].columns[0].tolist() == [1, 0]
    with pytest.raises(ValueError, match=f"column 'a'.*got {2**100}"):
        fit(pl.DataFrame({"a": pl.Series([1, 2**100], dtype=pl.Int128)}))


def test_nan_is_a_missing_category():
    X = np.array([[0.5], [np.nan], [0.25], [np.nan]])
    for rows in (X, X.astype(object), pl.DataFrame(X, schema=["a"]), pa.table({"a": X[:, 0]})):
        _, table, schema = fit(rows, categorical_features=[0])
        assert schema.categories[0].tolist() == [0.25, 0.5]
        assert table.columns[0].tolist() == [1, -1, 0, -1]


def test_integer_categories_accept_integers_floats_and_category_dtypes():
    model, _, schema = fit(pd.DataFrame({"a": pd.Categorical([3, 1, 3])}))
    assert schema.categories[0].tolist() == [1, 3]
    for rows in (
        pd.DataFrame({"a": [1, 3, 4]}),
        pd.DataFrame({"a": [1.0, 3.0, 3.5]}),
        pd.DataFrame({"a": pd.Categorical([1, 3, 4], categories=[4, 3, 1])}),
        pd.DataFrame({"a": pd.Series([1, 3, 4], dtype="Int64")}),
        pl.DataFrame({"a": [1, 3, 4]}),
        pa.table({"a": pa.array([1, 3, 4]).dictionary_encode()}),
    ):
        assert read_table(model, rows, schema).columns[0].tolist() == [0, 1, -1]


def test_words_and_numbers_in_one_array():
    X = np.array([["x", 1.5, "p"], ["y", None, "q"]], dtype=object)
    model, table, schema = fit(X, categorical_features=[True, False, True])
    assert table.columns[0].tolist() == [0, 1]
    assert table.columns[2].tolist() == [0, 1]
    np.testing.assert_array_equal(table.columns[1], [1.5, np.nan])
    again = read_table(model, [["y", 2, "p"], ["z", 3, None]], schema)
    assert [column.tolist() for column in again.columns] == [[1, -1], [2.0, 3.0], [0, -1]]
    strings = np.array([["x", "1"], ["y", "2"]])
    assert fit(strings, categorical_features=[0, 1])[1].columns[1].tolist() == [0, 1]
    assert fit(strings, categorical_features=[0, 1])[2].categories[0].dtype == object
    with pytest.raises(ValueError, match="column 1: expected numbers"):
        fit(strings, categorical_features=[0])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_an_array_may_stand_for_the_frame_of_fit():
    model, _, schema = fit(pl.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}))
    read = read_table(model, np.array([["y", 4.0]], dtype=object), schema)
    assert [column.tolist() for column in read.columns] == [[1], [4.0]]
    with pytest.raises(ValueError, match="column 0: expected categories as at fit"):
        read_table(model, np.array([[1.0, 4.0]]), schema)
    with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 2"):
        read_table(model, np.ones((1, 3)), schema)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        read_table(model, np.ones(2), schema)


# --------------------------------------------------------------------------- changed kinds


@any_frame
def test_a_changed_kind_is_an_error(frame):
    model, _, schema = fit(frame({"n": [1.0, 2.0], "w": ["x", "y"]}))
    with pytest.raises(ValueError, match=r"column 'n': expected numbers, .* got categories"):
        read_table(model, frame({"n": ["1", "2"], "w": ["x", "y"]}), schema)
    for numbers in ([1.0, 2.0], [1, 2], [True, False]):
        with pytest.raises(ValueError, match=r"column 'w': expected categories .*'x'.*numbers"):
            read_table(model, frame({"n": [1.0, 2.0], "w": numbers}), schema)
    model, _, schema = fit(frame({"n": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"column 'n': expected numbers, .* got categories"):
        read_table(model, frame({"n": ["1", "2"]}), schema)


def test_other_changes_of_kind():
    model, _, schema = fit(pd.DataFrame({"n": [1, 2]}))
    for levels in ([1, 2], ["1", "2"]):
        with pytest.raises(ValueError, match=r"column 'n': expected numbers, .*Categorical"):
            read_table(model, pd.DataFrame({"n": pd.Categorical(levels)}), schema)
    with pytest.raises(ValueError, match=r"column 'n': expected numbers.*Datetime"):
        read_table(model, pd.DataFrame({"n": pd.to_datetime(["2020-01-01"])}), schema)
    model, _, schema = fit(pd.DataFrame({"i": pd.Categorical([1, 2])}))
    with pytest.raises(ValueError, match=r"column 'i': expected categories as at fit, .*\[1, 2\]"):
        read_table(model, pd.DataFrame({"i": ["1", "2"]}), schema)
    # Mixed categories go with either; a column that was all null at fit with anything.
    model, _, schema = fit(pd.DataFrame({"m": pd.Series([1, "x"], dtype=object)}))
    assert read_table(model, pd.DataFrame({"m": [1, 2]}), schema).columns[0].tolist() == [0, -1]
    model, _, schema = fit(pl.DataFrame({"m": pl.Series([None], dtype=pl.String)}))
    assert read_table(model, pl.DataFrame({"m": [1]}), schema).columns[0].tolist() == [-1]
    # Unused levels have no say.
    model, _, schema = fit(pd.DataFrame({"w": ["x", "y"]}))
    levels = pd.Categorical(["x"], categories=["x", 1, 2])
    assert read_table(model, pd.DataFrame({"w": levels}), schema).columns[0].tolist() == [0]


MOMENT = datetime.datetime(2020, 1, 2)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"ok": [1.0], "when": [MOMENT]}),
        pd.DataFrame({"ok": ["x"], "when": pd.Series([MOMENT], dtype=object)}),
        pd.DataFrame({"ok": [1.0], "when": pd.Categorical([MOMENT])}),
        pd.DataFrame({"ok": [1.0], "when": pd.Series(pd.period_range("2020", periods=1))}),
        pd.DataFrame({"ok": [1.0], "when": pd.Series([{"a": 1}])}),
        pd.DataFrame({"ok": [1.0], "when": pd.Series([1j])}),
        pd.DataFrame({"ok": [1.0, 2.0], "when": pd.Series(["a", ["b"]], dtype=object)}),
        pl.DataFrame({"ok": [1.0], "when": [MOMENT]}),
        pl.DataFrame({"ok": [1.0], "when": [MOMENT.date()]}),
        pl.DataFrame({"ok": [1.0], "when": [[1.0]]}),
        pa.table({"ok": [1.0], "when": [MOMENT]}),
        pa.table({"ok": [1.0], "when": [b"bytes"]}),
    ],
)
@pytest.mark.parametrize("option", ["from_dtype", None, ["when"]])
def test_columns_of_no_known_kind(X, option):
    if option != "from_dtype" and isinstance(X, pd.DataFrame) and X["ok"].dtype == "str":
        option = ["ok", *(option or [])]
    with pytest.raises(ValueError, match=r"column 'when': expected .*, got "):
        fit(X, categorical_features=option)


# ---------------------------------------------------------------------- categorical_features


@any_frame
def test_ways_to_declare(frame):
    X = frame({"a": [1, 2], "b": [5, 6], "c": [1.5, 2.5]})
    for option in (
        [False, True, False],
        np.array([False, True, False]),
        [1],
        np.array([1]),
        (1,),
        ["b"],
        np.array(["b"]),
        {"b"},
        pd.Index(["b"]),
    ):
        schema = fit(X, categorical_features=option)[2]
        assert schema.is_categorical.tolist() == [False, True, False]
        assert schema.categories[1].tolist() == [5, 6]
    for option in ("from_dtype", None, [], [False] * 3, np.array([], dtype=int)):
        assert not fit(X, categorical_features=option)[2].has_categories


BAD_OPTIONS = [
    ("by_type", ValueError, "'from_dtype'.*got 'by_type'"),
    ("a", ValueError, "'from_dtype'.*got 'a'"),
    (3, ValueError, "'from_dtype'.*got 3"),
    ([1.5], ValueError, "bool, int or str, got: float64"),
    ([None], ValueError, "bool, int or str, got: NoneType"),
    ([[True, False]], ValueError, "bool, int or str, got: bool"),
    ([True], ValueError, "expected 2 entries, got 1"),
    ([True, False, True], ValueError, "expected 2 entries, got 3"),
    ([2], ValueError, "\\[0, 1\\], got 2"),
    ([-1], ValueError, "\\[0, 1\\], got -1"),
    ([0, 0], ValueError, "each column once, got 0 twice"),
    (["z"], ValueError, "'z' which is not|without feature names"),
    (["a", "a"], ValueError, "each column once, got 'a' twice|without feature names"),
    ([0, "a"], ValueError, "0 which is not|without feature names"),
]


@pytest.mark.parametrize(("option", "kind", "message"), BAD_OPTIONS)
@pytest.mark.parametrize(
    "X", [pd.DataFrame({"a": [1.0], "b": [2.0]}), pl.DataFrame({"a": ["x"], "b": [2.0]})]
)
def test_bad_declarations(X, option, kind, message):
    with pytest.raises(kind, match=f"categorical_features.*({message})"):
        fit(X, categorical_features=option)


@pytest.mark.parametrize(("option", "kind", "message"), BAD_OPTIONS)
def test_bad_declarations_for_arrays(option, kind, message):
    for X in (np.ones((2, 2)), [[1, 2]]):
        with pytest.raises(kind, match=f"categorical_features.*({message})"):
            fit(X, categorical_features=option)


def test_an_array_has_no_column_names():
    with pytest.raises(ValueError, match=r"categorical_features.*without feature names"):
        fit(np.ones((2, 2)), categorical_features=["a"])


@any_frame
def test_words_that_are_not_declared(frame):
    X = frame({"a": ["x", "y"], "b": ["p", "q"]})
    for option, name in ((None, "a"), (["a"], "b"), ([1], "a"), ([False, False], "a")):
        with pytest.raises(ValueError, match=f"column '{name}'.*categorical_features"):
            fit(X, categorical_features=option)


def test_an_empty_declaration_reads_an_array_as_a_matrix():
    X = np.ones((3, 2))
    for option in ([], [False, False]):
        table = fit(X, categorical_features=option)[1]
        assert np.shares_memory(table.matrix, X)
    with pytest.raises(ValueError, match="infinity"):
        fit(np.array([[np.inf]]), categorical_features=[])


# -------------------------------------------------------------------------------- the rest


def test_a_narwhals_frame():
    for native in (pd.DataFrame({"a": [1.0], "b": ["x"]}), pl.DataFrame({"a": [1.0], "b": ["x"]})):
        X = nw.from_native(native)
        model, table, schema = fit(X)
        assert schema.names.tolist() == ["a", "b"]
        assert table.columns[1].tolist() == [0]
        assert read_table(model, native, schema).columns[0].tolist() == [1.0]


def test_several_blocks_of_one_dtype():
    X = pd.DataFrame({"a": np.ones(3)}).assign(b=np.zeros(3))
    assert fit(X)[1].matrix.tolist() == [[1.0, 0.0]] * 3
    X = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    assert fit(X)[1].matrix.dtype == np.float64
    assert fit(X)[1].matrix.tolist() == [[1, 3], [2, 4]]


def test_tables_and_schemas_do_not_change():
    _, table, schema = fit(np.ones((2, 2)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.n_rows = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.names = None


def test_to_matrix():
    data = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0], np.float32)}
    table = fit(pl.DataFrame(data))[1]
    assert table.matrix is None
    assert table.to_matrix().dtype == np.float64
    np.testing.assert_array_equal(table.to_matrix(), [[1.0, 3.0], [2.0, 4.0]])
    X = np.ones((2, 2))
    assert fit(X)[1].to_matrix() is X


@any_frame
def test_a_schema_survives_pickling(frame):
    X = frame({"a": [1.0, 2.0], "b": ["x", "y"]})
    model, _, schema = fit(X)
    again = pickle.loads(pickle.dumps(schema))
    assert isinstance(again, Schema)
    assert again.names.tolist() == ["a", "b"]
    assert again.has_categories
    assert again.is_categorical.tolist() == [False, True]
    read = read_table(model, frame({"a": [1.0], "b": ["y"]}), again)
    assert isinstance(read, Table)
    assert read.columns[1].tolist() == [1]


def test_a_million_words_take_well_under_a_second():
    rng = np.random.default_rng(0)
    words = np.array([f"word {i}" for i in range(1000)], dtype=object)[
        rng.integers(0, 1000, 1_000_000)
    ]
    for X in (
        pd.DataFrame({"a": words}),
        pl.DataFrame({"a": words}),
        pa.table({"a": words}),
        words[:, None],
    ):
        start = time.perf_counter()
        fit(X, categorical_features=[0])
        assert time.perf_counter() - start < 1.0


def test_small_arrays_cost_little():
    X = np.random.default_rng(0).normal(size=(150, 4))
    model, _, schema = fit(X)

    def best(call):
        times = []
        for _ in range(200):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(lambda: fit_table(model, X)) < 150e-6
    assert best(lambda: read_table(model, X, schema)) < 60e-6
