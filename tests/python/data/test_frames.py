"""Tables from data frames: names, numbers, missing values."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spinney.data.table import fit_table, read_table
from support.frames import (
    Model,
    any_frame,
    by_numpy_pandas,
    by_polars,
    fit,
    refit,
)

# --------------------------------------------------------------------------------- names


@any_frame
def test_names_are_checked_like_in_scikit_learn(frame):
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


def test_new_fit_removes_the_names():
    model = Model()
    fit_table(model, pd.DataFrame({"a": [1.0]}))
    assert model.feature_names_in_.tolist() == ["a"]
    _, schema = fit_table(model, np.ones((2, 2)))
    assert not hasattr(model, "feature_names_in_")
    assert schema.names is None
    assert model.n_features_in_ == 2


def test_names_that_are_not_strings_are_ignored():
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
def test_duplicate_names_raise(X):
    with pytest.raises(ValueError, match=r"(?s)unique column names.*'twice'"):
        fit(X)


@any_frame
def test_frames_without_rows_or_columns_raise(frame):
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
def test_numeric_columns_become_floats(frame):
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


def test_precision_of_columns_is_kept():
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


def test_arrow_chunks_are_joined():
    chunks = [pa.array([1.0, None]), pa.array([3.0])]
    strings = [pa.array(["b", None]).dictionary_encode(), pa.array(["a"]).dictionary_encode()]
    X = pa.table({"a": pa.chunked_array(chunks), "b": pa.chunked_array(strings)})
    _, table, schema = fit(X)
    np.testing.assert_array_equal(table.columns[0], [1.0, np.nan, 3.0])
    assert table.columns[1].tolist() == [1, -1, 0]
    assert schema.categories[1].tolist() == ["a", "b"]


def test_sparse_columns_of_pandas_become_dense():
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


def test_infinity_next_to_categories_raises():
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
def test_columns_without_values(nulls, option):
    X = nulls if isinstance(nulls, pa.Table) else nulls.to_frame()
    fit(X, categorical_features=option)
    numeric = refit(pd.DataFrame({"a": [1.0, 2.0]}), X)
    assert np.isnan(numeric.to_matrix()).all()
    assert numeric.n_rows == 2
    strings = refit(pd.DataFrame({"a": ["x", "y"]}), X)
    assert strings.columns[0].tolist() == [-1, -1]


def test_kind_of_object_columns_depends_on_all_values():
    late_number = [None] * 500 + [1.5]
    late_string = [None] * 500 + ["x"]
    X = pd.DataFrame({"a": late_number, "b": late_string}, dtype=object)
    _, table, schema = fit(X)
    assert schema.is_categorical.tolist() == [False, True]
    assert table.columns[0][-1] == 1.5
    assert table.columns[1][-1] == 0
