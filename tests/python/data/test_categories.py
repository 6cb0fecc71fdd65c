"""Tables with categories, and columns whose kind changes after fit."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.api.types import is_numeric_dtype

from spinney.data.table import read_table
from support.frames import (
    BIG,
    any_frame,
    by_object_pandas,
    fit,
)

# --------------------------------------------------------------------- categorical columns


def strings_as(values, how):
    """Return the strings in one of the types in which frames store them."""
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
    X = strings_as(["pear", "fig", None, "plum", "fig"], stored)
    model, table, schema = fit(X, categorical_features=[0] if array else "from_dtype")
    assert schema.categories[0].tolist() == ["fig", "pear", "plum"]
    assert table.columns[0].dtype == np.int32
    assert table.columns[0].tolist() == [1, 0, -1, 2, 0]
    other = strings_as(["plum", "kiwi", "fig", None], read_as)
    assert read_table(model, other, schema).columns[0].tolist() == [2, -1, 0, -1]


@settings(max_examples=80, deadline=None, database=None)
@given(data=st.data(), stored=st.sampled_from(STORAGES), read_as=st.sampled_from(STORAGES))
@pytest.mark.filterwarnings("ignore:X .*feature names")
def test_codes_decode_to_the_values(data, stored, read_as):
    alphabet = st.characters(codec="utf-8", exclude_characters="\0")
    strings = st.one_of(st.none(), st.text(alphabet, max_size=4))
    fit_values = data.draw(st.lists(strings, min_size=1, max_size=12))
    new_values = data.draw(st.permutations(fit_values))
    new_values = [*new_values, *data.draw(st.lists(strings, max_size=4))]
    array = stored in ("numpy object", "list")
    X = strings_as(fit_values, stored)
    model, table, schema = fit(X, categorical_features=[0] if array else ["a"])
    categories = schema.categories[0].tolist()
    assert categories == sorted({value for value in fit_values if value is not None})
    for rows, read in (
        (fit_values, table),
        (new_values, read_table(model, strings_as(new_values, read_as), schema)),
    ):
        for value, code in zip(rows, read.columns[0].tolist(), strict=True):
            assert (categories[code] == value) if value in categories else code == -1


@settings(max_examples=50, deadline=None, database=None)
@given(
    levels=st.permutations(["a", "b", "c", "d"]),
    relevels=st.permutations(["a", "b", "c", "d", "e"]),
    rows=st.lists(st.integers(0, 3), min_size=1, max_size=20),
)
def test_order_of_levels_does_not_matter(levels, relevels, rows):
    values = ["abcd"[row] for row in rows]
    model, table, schema = fit(pd.DataFrame({"x": pd.Categorical(values, categories=levels)}))
    assert schema.categories[0].tolist() == sorted(set(values))
    decoded = schema.categories[0][table.columns[0]]
    assert decoded.tolist() == values
    relevelled = pd.DataFrame({"x": pd.Categorical(values, categories=relevels)})
    np.testing.assert_array_equal(
        read_table(model, relevelled, schema).columns[0], table.columns[0]
    )


def test_polars_categorical_with_offset_codes():
    others = pl.Series([f"before {i}" for i in range(50)], dtype=pl.Categorical)
    X = pl.DataFrame({"a": pl.Series(["y", "x"], dtype=pl.Categorical)})
    _, table, schema = fit(X)
    assert table.columns[0].tolist() == [1, 0]
    assert len(schema.categories[0]) == 2
    assert len(others) == 50


def test_dictionary_with_repeated_entries():
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


def test_intervals_are_categories():
    X = pd.DataFrame({"a": pd.cut(pd.Series([9.0, 1.0, 5.0, np.nan]), 3)})
    model, table, schema = fit(X)
    assert table.columns[0].tolist() == [2, 0, 1, -1]
    assert read_table(model, X.iloc[[2]], schema).columns[0].tolist() == [1]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int8, np.float64, np.float32, bool])
def test_numbers_of_an_array_as_categories(dtype):
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
def test_numbers_of_a_frame_as_categories(frame):
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


def test_large_integers_with_nulls_stay_exact_as_categories():
    values = [BIG + 1, None, BIG]
    frames = [
        pd.DataFrame({"a": pd.array(values, dtype="Int64")}),
        pd.DataFrame({"a": pd.array(values, dtype="int64[pyarrow]")}),
        pl.DataFrame({"a": values}),
        pl.DataFrame({"a": pl.Series(values, dtype=pl.UInt64)}),
        pa.table({"a": values}),
    ]
    if hasattr(pl, "Int128"):  # not in the first versions of Polars 1
        frames.append(pl.DataFrame({"a": pl.Series(values, dtype=pl.Int128)}))
    for X in frames:
        _, table, schema = fit(X, categorical_features=["a"])
        assert schema.categories[0].tolist() == [BIG, BIG + 1]
        assert table.columns[0].tolist() == [1, -1, 0]
    wide = pl.DataFrame({"a": pl.Series([2**64 - 1, 2**64 - 2], dtype=pl.UInt64)})
    assert fit(wide, categorical_features=[0])[1].columns[0].tolist() == [1, 0]
    if hasattr(pl, "Int128"):
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


def test_strings_and_numbers_in_one_array():
    X = np.array([["x", 1.5, "p"], ["y", None, "q"]], dtype=object)
    model, table, schema = fit(X, categorical_features=[True, False, True])
    assert table.columns[0].tolist() == [0, 1]
    assert table.columns[2].tolist() == [0, 1]
    np.testing.assert_array_equal(table.columns[1], [1.5, np.nan])
    new_table = read_table(model, [["y", 2, "p"], ["z", 3, None]], schema)
    assert [column.tolist() for column in new_table.columns] == [[1, -1], [2.0, 3.0], [0, -1]]
    strings = np.array([["x", "1"], ["y", "2"]])
    assert fit(strings, categorical_features=[0, 1])[1].columns[1].tolist() == [0, 1]
    assert fit(strings, categorical_features=[0, 1])[2].categories[0].dtype == object
    with pytest.raises(ValueError, match="column 1: expected numbers"):
        fit(strings, categorical_features=[0])


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_array_replaces_the_frame_of_fit():
    model, _, schema = fit(pl.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}))
    read = read_table(model, np.array([["y", 4.0]], dtype=object), schema)
    assert [column.tolist() for column in read.columns] == [[1], [4.0]]
    with pytest.raises(ValueError, match="column 0: expected categories like those in fit"):
        read_table(model, np.array([[1.0, 4.0]]), schema)
    with pytest.raises(ValueError, match="X has 3 features, but Model is expecting 2"):
        read_table(model, np.ones((1, 3)), schema)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        read_table(model, np.ones(2), schema)


# --------------------------------------------------------------------------- changed kinds


@any_frame
def test_changed_kind_raises(frame):
    model, _, schema = fit(frame({"n": [1.0, 2.0], "w": ["x", "y"]}))
    with pytest.raises(ValueError, match=r"column 'n': expected numbers, .* got categories"):
        read_table(model, frame({"n": ["1", "2"], "w": ["x", "y"]}), schema)
    for numeric in ([1.0, 2.0], [1, 2], [True, False]):
        with pytest.raises(ValueError, match=r"column 'w': expected categories .*'x'.*numbers"):
            read_table(model, frame({"n": [1.0, 2.0], "w": numeric}), schema)
    model, _, schema = fit(frame({"n": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=r"column 'n': expected numbers, .* got categories"):
        read_table(model, frame({"n": ["1", "2"]}), schema)


def test_other_changes_of_kind_raise_or_map_to_codes():
    model, _, schema = fit(pd.DataFrame({"n": [1, 2]}))
    for levels in ([1, 2], ["1", "2"]):
        with pytest.raises(ValueError, match=r"column 'n': expected numbers, .*Categorical"):
            read_table(model, pd.DataFrame({"n": pd.Categorical(levels)}), schema)
    with pytest.raises(ValueError, match=r"column 'n': expected numbers.*Datetime"):
        read_table(model, pd.DataFrame({"n": pd.to_datetime(["2020-01-01"])}), schema)
    model, _, schema = fit(pd.DataFrame({"i": pd.Categorical([1, 2])}))
    with pytest.raises(
        ValueError, match=r"column 'i': expected categories like those in fit, .*\[1, 2\]"
    ):
        read_table(model, pd.DataFrame({"i": ["1", "2"]}), schema)
    # Mixed categories accept numbers and strings; a column without values accepts anything.
    model, _, schema = fit(pd.DataFrame({"m": pd.Series([1, "x"], dtype=object)}))
    assert read_table(model, pd.DataFrame({"m": [1, 2]}), schema).columns[0].tolist() == [0, -1]
    model, _, schema = fit(pl.DataFrame({"m": pl.Series([None], dtype=pl.String)}))
    assert read_table(model, pl.DataFrame({"m": [1]}), schema).columns[0].tolist() == [-1]
    # Unused levels are ignored.
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
def test_columns_of_unsupported_types_raise(X, option):
    if option != "from_dtype" and isinstance(X, pd.DataFrame) and not is_numeric_dtype(X["ok"]):
        option = ["ok", *(option or [])]
    with pytest.raises(ValueError, match=r"column 'when': expected .*, got "):
        fit(X, categorical_features=option)


# ---------------------------------------------------------------------- categorical_features


@any_frame
def test_categorical_features_option(frame):
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
def test_invalid_categorical_features_raise(X, option, kind, message):
    with pytest.raises(kind, match=f"categorical_features.*({message})"):
        fit(X, categorical_features=option)


@pytest.mark.parametrize(("option", "kind", "message"), BAD_OPTIONS)
def test_invalid_categorical_features_of_arrays_raise(option, kind, message):
    for X in (np.ones((2, 2)), [[1, 2]]):
        with pytest.raises(kind, match=f"categorical_features.*({message})"):
            fit(X, categorical_features=option)


def test_names_in_categorical_features_need_a_frame():
    with pytest.raises(ValueError, match=r"categorical_features.*without feature names"):
        fit(np.ones((2, 2)), categorical_features=["a"])


@any_frame
def test_strings_that_are_not_declared_raise(frame):
    X = frame({"a": ["x", "y"], "b": ["p", "q"]})
    for option, name in ((None, "a"), (["a"], "b"), ([1], "a"), ([False, False], "a")):
        with pytest.raises(ValueError, match=f"column '{name}'.*categorical_features"):
            fit(X, categorical_features=option)


def test_empty_categorical_features_keep_the_matrix():
    X = np.ones((3, 2))
    for option in ([], [False, False]):
        table = fit(X, categorical_features=option)[1]
        assert np.shares_memory(table.matrix, X)
    with pytest.raises(ValueError, match="infinity"):
        fit(np.array([[np.inf]]), categorical_features=[])
