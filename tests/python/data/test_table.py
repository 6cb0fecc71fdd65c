"""Tables from arrays and sparse matrices."""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from decimal import Decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from spinney.data.table import Schema, Table, fit_table, read_table
from support.frames import (
    BIG,
    Model,
    any_frame,
    fit,
)


class NearestMean(ClassifierMixin, BaseEstimator):
    """Minimal classifier that reads its rows from tables, for scikit-learn's checks."""

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
        X_dense = np.nan_to_num(table.to_matrix().astype(np.float64))
        self.means_ = np.stack([X_dense[codes == k].mean(0) for k in range(len(self.classes_))])
        return self

    def predict(self, X):
        check_is_fitted(self)
        table = read_table(self, X, self.schema_, accept_sparse=self.allow, allow_nan=self.allow)
        X_dense = np.nan_to_num(table.to_matrix().astype(np.float64))
        distances = ((X_dense[:, None, :] - self.means_) ** 2).sum(-1)
        return self.classes_[distances.argmin(1)]


@parametrize_with_checks([NearestMean(), NearestMean(allow=False)])
def test_minimal_classifier_passes_the_scikit_learn_checks(estimator, check):
    check(estimator)


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
def test_views_are_not_copied(n_rows, n_features, step, flip, transpose, dtype):
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
def test_dtypes_are_converted_to_floats(source, target):
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


def test_lists_and_object_arrays():
    rows = [[1, 2.5], [None, 4]]
    expected = [[1.0, 2.5], [np.nan, 4.0]]
    for X in (rows, [tuple(row) for row in rows], np.array(rows, dtype=object)):
        np.testing.assert_array_equal(fit(X)[1].matrix, expected)
    with_na = np.array([[1, 2.5], [pd.NA, 4]], dtype=object)
    np.testing.assert_array_equal(fit(with_na)[1].matrix, expected)
    assert with_na[1, 0] is pd.NA  # the caller's array is unchanged
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


def test_numbers_as_strings_are_not_parsed():
    for X in ([["1.5"]], np.array([["1.5"]]), np.array([["1.5"]], dtype=object)):
        with pytest.raises(ValueError, match=r"'1.5' in column 0.*categorical_features"):
            fit(X)


@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_times_in_arrays_raise(dtype):
    X = np.array([[1, 2]]).astype(dtype)
    for option in ("from_dtype", None, [0]):
        with pytest.raises(ValueError, match=rf"column 0: expected numbers.*{dtype[3]}\]"):
            fit(X, categorical_features=option)


@pytest.mark.parametrize("value", [BIG + 1, -BIG - 1, 2**62, -(2**63)])
def test_integers_beyond_float64_raise(value):
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


def test_integers_at_the_bound_and_large_floats_are_kept():
    assert fit(np.array([[BIG], [-BIG]]))[1].matrix.tolist() == [[float(BIG)], [-float(BIG)]]
    assert fit([[BIG, 2.0**60]])[1].matrix.tolist() == [[2.0**53, 2.0**60]]
    assert fit(np.array([[1e300], [2.0**60]]))[1].matrix[0, 0] == 1e300
    assert fit(sp.csr_array([[BIG, 0]]))[1].sparse.toarray().tolist() == [[float(BIG), 0.0]]
    assert fit(sp.csr_array([[2.0**60]]))[1].sparse.toarray().tolist() == [[2.0**60]]
    with pytest.raises(ValueError, match=f"got {2**64 - 1}"):
        fit(np.array([[2**64 - 1]], dtype=np.uint64))


@any_frame
@pytest.mark.parametrize("value", [BIG + 1, -BIG - 1])
def test_integers_beyond_float64_in_frames_raise(frame, value):
    X = frame({"a": [1, 2], "id": [3, value]})
    with pytest.raises(ValueError, match=rf"column 'id': expected integers .*got {value}"):
        fit(X)
    mixed = frame({"id": [3, value], "b": ["x", "y"]})
    with pytest.raises(ValueError, match=rf"column 'id': expected integers .*got {value}"):
        fit(mixed)
    schema = fit(X, categorical_features=["id"])[2]
    assert sorted(schema.categories[1].tolist()) == sorted([3, value])
    assert fit(frame({"a": [BIG], "b": ["x"]}))[1].columns[0].tolist() == [float(BIG)]


# ------------------------------------------------------------- error messages of scikit-learn


def scikit_learn_error(X, fitted=None, **options):
    model = Model()
    params = {"dtype": [np.float64, np.float32], "accept_sparse": "csc"}
    params |= {"ensure_all_finite": "allow-nan"} | options
    try:
        if fitted is not None:
            validate_data(model, fitted, **params)
        validate_data(model, X, reset=fitted is None, **params)
    except (ValueError, TypeError) as error:
        return type(error), str(error)
    raise AssertionError("scikit-learn accepts this input")


INVALID = {
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


@pytest.mark.parametrize("case", INVALID)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # from a sum in scikit-learn
def test_errors_equal_those_of_scikit_learn(case):
    kind, message = scikit_learn_error(INVALID[case])
    with pytest.raises(kind) as caught:
        fit(INVALID[case])
    assert str(caught.value) == message
    model, _, schema = fit(np.ones((2, 3)))
    kind, message = scikit_learn_error(INVALID[case], np.ones((2, 3)))
    with pytest.raises(kind) as caught:
        read_table(model, INVALID[case], schema)
    assert str(caught.value) == message


@pytest.mark.parametrize("X", [np.ones((2, 2)), [[1, 2]], sp.csc_array(np.ones((2, 2)))])
def test_wrong_number_of_features_raises(X):
    model, _, schema = fit(np.ones((2, 3)))
    kind, message = scikit_learn_error(X, np.ones((2, 3)))
    assert "X has 2 features, but Model is expecting 3 features as input" in message
    with pytest.raises(kind) as caught:
        read_table(model, X, schema)
    assert str(caught.value) == message


def test_nan_raises_unless_allowed():
    X = np.array([[1.0, np.nan]])
    kind, message = scikit_learn_error(X, ensure_all_finite=True)
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
    # An unseen category is not a missing value.
    model, _, schema = fit(pl.DataFrame({"b": ["x", "y"]}), allow_nan=False)
    unseen = read_table(model, pl.DataFrame({"b": ["z"]}), schema, allow_nan=False)
    assert unseen.columns[0].tolist() == [-1]


def test_large_values_count_as_finite():
    X = np.full((3, 2), np.finfo(float).max)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for allow_nan in (True, False):
            assert np.shares_memory(fit(X, allow_nan=allow_nan)[1].matrix, X)
            assert fit(pl.DataFrame(X), allow_nan=allow_nan)[1].n_rows == 3


def test_missing_target_raises_if_the_tags_require_it():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        fit_table(NearestMean(), np.ones((2, 2)), None)
    for X in (np.array([[np.nan]]), np.array([["x"]], dtype=object), pl.DataFrame({"a": ["x"]})):
        assert fit_table(Model(), X, None, categorical_features=[0])[1].has_categories


# --------------------------------------------------------------------------------- sparse


FORMATS = ["csc", "csr", "coo", "lil", "dok", "bsr", "dia"]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("container", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32])
def test_sparse_formats_become_csc(format, container, dtype):
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


def test_sparse_matrix_is_copied_only_if_necessary():
    X = sp.csc_array(np.array([[0.0, 1.0], [2.0, 0.0]]))
    assert np.shares_memory(fit(X)[1].sparse.data, X.data)
    indices, data = np.array([1, 0, 1, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    unsorted = sp.csc_array((data, indices, np.array([0, 3, 4])), shape=(2, 2))
    read = fit(unsorted)[1].sparse
    assert read.has_sorted_indices
    assert read.nnz == 3
    np.testing.assert_array_equal(read.toarray(), [[2.0, 4.0], [4.0, 0.0]])
    assert unsorted.indices.tolist() == [1, 0, 1, 0]
    assert unsorted.data.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_sparse_matrices_that_are_not_accepted_raise():
    X = sp.csr_array(np.eye(2))
    kind, message = scikit_learn_error(X, accept_sparse=False)
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


# -------------------------------------------------------------------------------- others


def test_narwhals_frames_are_accepted():
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


def test_tables_and_schemas_are_frozen():
    _, table, schema = fit(np.ones((2, 2)))
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.n_rows = 3
    with pytest.raises(dataclasses.FrozenInstanceError):
        schema.names = None


def test_to_matrix_joins_columns():
    data = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0], np.float32)}
    table = fit(pl.DataFrame(data))[1]
    assert table.matrix is None
    assert table.to_matrix().dtype == np.float64
    np.testing.assert_array_equal(table.to_matrix(), [[1.0, 3.0], [2.0, 4.0]])
    X = np.ones((2, 2))
    assert fit(X)[1].to_matrix() is X


@any_frame
def test_schema_can_be_pickled(frame):
    X = frame({"a": [1.0, 2.0], "b": ["x", "y"]})
    model, _, schema = fit(X)
    restored = pickle.loads(pickle.dumps(schema))
    assert isinstance(restored, Schema)
    assert restored.names.tolist() == ["a", "b"]
    assert restored.has_categories
    assert restored.is_categorical.tolist() == [False, True]
    read = read_table(model, frame({"a": [1.0], "b": ["y"]}), restored)
    assert isinstance(read, Table)
    assert read.columns[1].tolist() == [1]
