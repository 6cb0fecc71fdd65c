"""Kinds of columns: automatic decision, overrides and suspected target leakage."""

from __future__ import annotations

import datetime
import decimal
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.io import (
    ColumnKinds,
    decide_kinds,
    read_pieces,
    read_table,
    suspect_leakage,
)
from spinney.tree import DecisionTreeClassifier

RNG = np.random.default_rng(0)
N = 200
DAY = datetime.date(2024, 1, 1)
CASTS_VIEWS = pytest.mark.skipif(
    int(pa.__version__.split(".")[0]) < 18, reason="pyarrow before 18 does not cast string views"
)


def kind_of(values: Any, name: str = "v") -> str:
    """Return the kind of a column in a table that has another usable column."""
    rng = np.random.default_rng(2)
    column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    table = pa.table({name: column, "other": rng.normal(size=len(column))})
    return decide_kinds(table).columns[0].kind


PHRASES = ["a rather long remark on the thing", "that is in no other row", "written by hand"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (RNG.normal(size=N), "number"),
        (RNG.integers(0, 3, N), "number"),  # few values are numbers, too
        (RNG.choice([0.5, 1.5], N), "number"),
        (RNG.permutation(10**6)[:N], "number"),  # a price in cents: all differ
        (pa.array([decimal.Decimal(k) / 4 for k in range(N)]), "number"),
        (pa.array(RNG.integers(0, 9, N), pa.uint8()), "number"),
        (RNG.normal(size=N).astype(np.float16), "number"),
        (pa.array(range(N), pa.duration("s")), "number"),
        (RNG.choice(["red", "green"], N), "category"),
        (RNG.choice([True, False], N), "category"),
        (pa.array(RNG.choice(["a", "b"], N)).dictionary_encode(), "category"),
        (pa.array(RNG.integers(0, 9, N)).dictionary_encode(), "category"),
        (pa.array(RNG.choice(["a", "b"], N).tolist(), pa.large_string()), "category"),
        ([f"x{k // 2}" for k in range(N)], "category"),  # every value twice
        ([DAY + datetime.timedelta(days=k) for k in range(N)], "date"),
        ([datetime.datetime(2024, 1, 1, k % 24) for k in range(N)], "date"),
        ([datetime.time(k % 24) for k in range(N)], "date"),
        ([f"{PHRASES[k % 3]} {k} {PHRASES[(k + 1) % 3]}" for k in range(N)], "text"),
        ([f"Smith, Mr. John {k}" for k in range(N)], "text"),
        ([f"user-{k:05}" for k in range(N)], "identifier"),
        ([f"0{k}" for k in range(N)], "identifier"),
        ([2**60 + k for k in range(N)], "identifier"),
        ([2**60 + k % 3 for k in range(N)], "category"),
        ([f"{k}.5 kg" for k in range(N)], "text"),
        ([f"€ {k},50" for k in range(N)], "text"),
        ([f"1,{k + 100}" for k in range(N)], "text"),
        pytest.param(pa.array(["a", "b"] * N, pa.string_view()), "category", marks=CASTS_VIEWS),
        pytest.param(
            pa.array([f"{k}" for k in range(N)], pa.string_view()), "identifier", marks=CASTS_VIEWS
        ),
        ([f"{k % 12 + 1}/{k % 28 + 1}/20{k % 90 + 10}" for k in range(N)], "text"),
        ([*map(str, range(N)), "abc"], "text"),
        ([*(["1", "2"] * N), "abc"], "category"),
        ([7] * N, "constant"),
        (["x"] * N, "constant"),
        ([None] * N, "constant"),
        ([float("nan")] * N, "constant"),
        (pa.array([None] * N, pa.string()), "constant"),
        (pa.array(["x"] * N).dictionary_encode(), "constant"),
        ([DAY] * N, "constant"),
        (["yes", None] * N, "category"),  # missing or not: two values
        ([1.0, float("nan")] * N, "number"),
        ([[1, 2]] * N, "dropped"),
        ([{"a": 1}] * N, "dropped"),
        ([b"ab", b"c"] * N, "dropped"),
    ],
)
def test_kind_of_values(values: Any, kind: str) -> None:
    assert kind_of(values) == kind


@pytest.mark.parametrize(
    ("name", "values", "kind"),
    [
        ("id", RNG.permutation(10**6)[:N], "identifier"),
        ("PassengerId", np.arange(1, N + 1), "identifier"),
        ("customer_id", RNG.permutation(10**6)[:N].astype(float), "identifier"),
        ("customer_id", RNG.integers(0, 20, N), "number"),  # flagged, see below
        ("account number", RNG.permutation(10**6)[:N], "identifier"),
        ("Number_of_cells", RNG.permutation(10**6)[:N], "number"),
        ("humidity", RNG.permutation(10**6)[:N], "number"),  # contains "id", but is not an ID
        ("bid", RNG.permutation(10**6)[:N], "number"),
        ("price", RNG.permutation(10**6)[:N], "number"),
        ("Unnamed: 0", np.arange(N), "identifier"),
        ("c1", np.arange(N), "identifier"),
        ("year", np.arange(1800, 1800 + N), "number"),
        ("t", np.arange(2000), "number"),
        ("x", np.arange(2000), "number"),  # as in y = f(x)
        ("day", np.arange(1, N + 1), "number"),
        ("dose", np.arange(1, 31), "number"),
        ("instant", np.arange(1, 2001), "identifier"),
        ("id", np.arange(5), "number"),  # five rows are too few
    ],
)
def test_identifiers_by_name_and_pattern(name: str, values: Any, kind: str) -> None:
    assert kind_of(values, name) == kind


def test_long_columns_count_distinct_values_in_all_rows() -> None:
    """Every value occurs twice, but a sample of the rows has hardly any duplicates."""
    rng = np.random.default_rng(2)
    ids = rng.permutation(np.repeat(np.arange(200_000), 2))
    table = pa.table({"key": ids, "code": [f"k{value}" for value in ids]})
    kinds = decide_kinds(table)
    assert [column.kind for column in kinds.columns] == ["number", "category"]
    single = pa.table({"key": rng.permutation(400_000) + 7, "x": rng.normal(size=400_000)})
    assert [column.kind for column in decide_kinds(single).columns] == ["identifier", "number"]


def test_columns_report_reasons_and_flags() -> None:
    rng = np.random.default_rng(2)
    table = pa.table(
        {
            "user_id": rng.integers(0, 20, N),
            "step": np.arange(N),
            "empty": pa.nulls(N),
            "same": ["x"] * N,
            "some": ["yes", None] * (N // 2),
            "town": [f"t{k % 90}" for k in range(N)],
            "mixed": [*map(str, range(N - 1)), "abc"],
        }
    )
    columns = {column.name: column for column in decide_kinds(table).columns}
    assert columns["user_id"].flags == ("named like an identifier: perhaps a category",)
    assert columns["step"].flags == ("counts the rows",)
    assert columns["empty"].reason == "no value in any row"
    assert columns["same"].reason == "has one value only: 'x'"
    assert columns["some"].flags == ("one value only, and missing",)
    assert columns["town"].flags == ("many values: 90 in 200 rows",)
    assert columns["mixed"].reason == "numbers mixed with other values such as 'abc'"


def test_target_gets_no_kind() -> None:
    table = pa.table({"a": [1, 2], "y": ["p", "q"]})
    kinds = decide_kinds(table, "y")
    assert kinds.target == "y"
    assert kinds.used == ["a"]
    with pytest.raises(ValueError, match=r"no column 'Y2' in the table; did you mean 'y'\?"):
        decide_kinds(table, "Y2")


@pytest.mark.parametrize("create", [pd.DataFrame, pl.DataFrame, pa.table])
def test_kinds_of_pandas_polars_and_arrow_agree(create: Any) -> None:
    frame = create({"a": [1, 2, 3], "b": ["x", "y", "x"]})
    kinds = decide_kinds(frame)
    assert [column.kind for column in kinds.columns] == ["number", "category"]
    assert kinds.prepare(frame).to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "x"]}


# --- overrides ----------------------------------------------------------------------------------


def test_user_overrides_kinds() -> None:
    table = pa.table(
        {
            "zip": [2134, 2139, 2134],
            "id": np.arange(3),
            "note": ["a", "b", "c"],
            "when": [DAY, DAY, DAY],
            "digits": ["1", "2.5", " 3"],
            "flag": [True, False, None],
        }
    )
    overrule = {"zip": "category", "id": "number", "note": "dropped", "when": "date"}
    kinds = decide_kinds(table, overrule={**overrule, "digits": "number", "flag": "number"})
    assert kinds.used == ["zip", "id", "when", "digits", "flag"]
    assert {column.reason for column in kinds.columns} == {"set by the user"}
    assert ColumnKinds.from_dict(kinds.to_dict()) == kinds
    assert kinds.to_dict()["columns"][0]["decided_by"] == "user"
    assert kinds.prepare(table).to_pydict() == {
        "zip": ["2134", "2139", "2134"],
        "id": [0, 1, 2],
        "when": [19723.0] * 3,
        "digits": [1.0, 2.5, 3.0],
        "flag": [1, 0, None],
    }


@pytest.mark.parametrize(
    ("overrule", "message"),
    [
        ({"Zipp": "category"}, r"no column 'Zipp' in the table; did you mean 'zip'\?"),
        ({"zip": "numeric"}, "kind of column 'zip': expected one of number, .*, got 'numeric'"),
        ({"name": "number"}, "column 'name': expected numbers, got 'abc' in row 2; .* a number"),
        ({"name": "date"}, "column 'name': expected dates, got '1' in row 1"),
        ({"list": "category"}, "column 'list': expected categories, got values of type list"),
        ({"zip": "date"}, "column 'zip': expected dates, got values of type int64"),
        ({"y": "number"}, "'y' is the target"),
    ],
)
def test_invalid_overrides_raise(overrule: dict[str, str], message: str) -> None:
    table = pa.table({"zip": [1, 2], "name": ["1", "abc"], "list": [[1], [2]], "y": [0, 1]})
    with pytest.raises(ValueError, match=message):
        decide_kinds(table, "y", overrule=overrule)


def test_tables_without_usable_columns_raise() -> None:
    with pytest.raises(ValueError, match=r"no column is left to learn from$"):
        decide_kinds(pa.table({"y": [1, 2]}), "y")
    with pytest.raises(ValueError, match=r"'a' is unused \(has one value only: 1\)"):
        decide_kinds(pa.table({"a": [1, 1]}))
    empty = pa.table({f"c{k}": pa.nulls(3) for k in range(1000)})
    with pytest.raises(ValueError, match=r"all 1,000 are unused \(no value in any row\)"):
        decide_kinds(empty)
    with pytest.raises(ValueError, match="distinct column names, got 'a' twice"):
        decide_kinds(pa.table([[1], [2]], names=["a", "a"]))


# --- preparing ----------------------------------------------------------------------------------


def test_dates_become_days() -> None:
    moment = datetime.datetime(1970, 1, 2, 12)
    table = pa.table(
        {
            "day": [datetime.date(1969, 12, 31), datetime.date(1970, 1, 2)],
            "second": pa.array([moment, None], pa.timestamp("s")),
            "nano": pa.array([moment, moment + datetime.timedelta(days=1)], pa.timestamp("ns")),
            "zoned": pa.array([moment, None], pa.timestamp("us", "Europe/Paris")),
            "clock": [datetime.time(6), datetime.time(18)],
            "wait": [datetime.timedelta(days=2), datetime.timedelta(hours=6)],
        }
    )
    assert decide_kinds(table).prepare(table).to_pydict() == {
        "day": [-1.0, 1.0],
        "second": [1.5, None],
        "nano": [1.5, 2.5],
        "zoned": [1.5, None],
        "clock": [0.25, 0.75],
        "wait": [2.0, 0.25],
    }


def test_kinds_survive_json_and_prepare_new_rows(tmp_path: Path) -> None:
    fit_text = "age,zip,code,ok,when,at,size,y\n31,2134,007,true,2024-01-01,10:00,1,a\n"
    fit_text += "45,2139,8,false,2024-01-02,11:30,2,b\n27,2134,9,true,2024-01-03,12:00,2,a\n"
    (tmp_path / "fit.csv").write_text(fit_text, encoding="utf-8")
    frame = read_table(tmp_path / "fit.csv").frame
    kinds = decide_kinds(frame, "y", overrule={"zip": "category"})
    restored = ColumnKinds.from_dict(json.loads(json.dumps(kinds.to_dict())))
    assert restored == kinds
    # New rows: other order, without the target, with other types in some columns.
    new_text = "when,size,at,ok,code,zip,age\n2024-01-01 12:00,1.5,10:00,TRUE,7,999,NA\n"
    (tmp_path / "new.csv").write_text(new_text, encoding="utf-8")
    (chunk,) = read_pieces(tmp_path / "new.csv", columns=restored.used, schema=restored.schema)
    assert restored.prepare(chunk).to_pydict() == {
        "age": [None],
        "zip": ["999"],
        "code": ["7"],
        "ok": ["true"],
        "when": [19723.5],
        "at": [10 / 24],
        "size": [1.5],
    }
    prepared = kinds.prepare(frame)
    (chunk,) = read_pieces(tmp_path / "fit.csv", columns=restored.used, schema=restored.schema)
    assert restored.prepare(chunk).to_pydict() == prepared.to_pydict()
    assert prepared.schema.field("code").type == pa.dictionary(pa.int32(), pa.string())


def test_preparing_rows_of_other_types_raises(tmp_path: Path) -> None:
    table = pa.table({"size": [1, 2], "city": ["a", "b"]})
    kinds = decide_kinds(table)
    with pytest.raises(ValueError, match="no column 'city' in the table; it has: size"):
        kinds.prepare(table.select(["size"]))
    with pytest.raises(ValueError, match="column 'size': expected numbers, got 'big' in row 2"):
        kinds.prepare(pa.table({"size": ["1", "big"], "city": ["a", "b"]}))
    (tmp_path / "new.csv").write_text("size,city\n1,a\nbig,b\n", encoding="utf-8")
    with pytest.raises(ValueError, match="line 3, column 'size': expected a number, got 'big'"):
        list(read_pieces(tmp_path / "new.csv", schema=kinds.schema))


def test_integer_categories_survive_missing_values() -> None:
    """pandas turns integers with missing values into floats: 7.0 is still category 7."""
    table = pa.table({"zip": [7, 8, 7]})
    kinds = decide_kinds(table, overrule={"zip": "category"})
    with_missing = pd.DataFrame({"zip": [7.0, np.nan]})
    assert kinds.prepare(with_missing)["zip"].to_pylist() == ["7", None]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-5, 5) | st.none(), st.sampled_from("abc") | st.none()), min_size=4
    )
)
def test_estimators_accept_prepared_tables(rows: list[tuple[int | None, str | None]]) -> None:
    numbers, texts = zip(*rows, strict=True)
    table = pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "text": pa.array(texts, pa.string()),
            "row": np.arange(len(rows)) % 3 + 0.5,
        }
    )
    X = decide_kinds(table).prepare(table)
    y = np.arange(len(rows)) % 2
    assert DecisionTreeClassifier().fit(X, y).predict(X).shape == y.shape


# --- leakage ------------------------------------------------------------------------------------


def test_leakage_in_classification() -> None:
    rng = np.random.default_rng(2)
    n = 2000
    y = rng.choice(["yes", "no"], n, p=[0.3, 0.7])
    almost_copy = np.where(y == "yes", rng.uniform(5, 9, n), rng.uniform(0, 4.9, n))
    good_column = np.where(rng.random(n) < 0.08, "no", y)  # wrong in at least 1 % of the rows
    table = pa.table(
        {
            "noise": rng.normal(size=n),
            "late": almost_copy,
            "copy": np.where(y == "yes", "A", "B"),
            "good": good_column,
        }
    )
    kinds = decide_kinds(table)
    suspects = dict(suspect_leakage(table, y, "classification", kinds))
    assert set(suspects) == {"late", "copy"}
    assert suspects["copy"] == 1.0
    assert suspects["late"] > 0.95
    flags = {column.name: column.flags for column in decide_kinds(table, y=y).columns}
    assert flags["copy"] == ("leak suspected: alone it removes 100.0% of the errors",)
    assert flags["good"] == flags["noise"] == ()


def test_leakage_is_not_checked_with_very_many_classes() -> None:
    y = np.arange(4000) % 2000
    table = pa.table({"copy": y})
    assert suspect_leakage(table, y, "classification", decide_kinds(table)) == []


def test_leakage_in_regression() -> None:
    rng = np.random.default_rng(2)
    n = 2000
    y = rng.gamma(2, 3, n)
    table = pa.table({"cents": np.rint(y * 100), "x": y + rng.normal(scale=0.5, size=n)})
    kinds = decide_kinds(table)
    ((name, score),) = suspect_leakage(table, y, "regression", kinds)
    assert name == "cents"
    assert 0.999 < score <= 1


def test_rare_classes_are_not_leakage() -> None:
    """If one row in 500 has the other class, every column is wrong in less than 1 %."""
    rng = np.random.default_rng(2)
    n = 5000
    y = (np.arange(n) % 500 == 0).astype(int)
    table = pa.table({"noise": rng.normal(size=n)})
    assert suspect_leakage(table, y, "classification", decide_kinds(table)) == []
    copy = pa.table({"copy": y + 0.5})
    y_rare = (np.arange(n) % 50 == 0).astype(int)
    copy = pa.table({"copy": y_rare * 2.0})
    assert suspect_leakage(copy, y_rare, "classification", decide_kinds(copy)) == [("copy", 1.0)]


def test_leakage_among_many_columns() -> None:
    rng = np.random.default_rng(2)
    n = 300
    y = rng.integers(0, 2, n)
    columns: dict[str, Any] = {f"x{k}": rng.normal(size=n) for k in range(1500)}
    columns["copy"] = y * 3.0 + rng.uniform(0, 1, n)
    columns["two ends"] = np.where(y == 1, rng.choice([-9.0, 9.0], n), 0.0)  # no correlation
    table = pa.table(columns)
    suspects = suspect_leakage(table, y, "classification", decide_kinds(table))
    assert {name for name, _ in suspects} == {"copy", "two ends"}


def test_leakage_with_missing_targets_and_few_rows() -> None:
    y = pa.array(["a", None, "b", "a"] * 50)
    table = pa.table({"copy": y, "x": np.arange(200) % 7})
    flags = [column.flags for column in decide_kinds(table, y=pa.table({"y": y})).columns]
    assert flags[0][-1].startswith("leak suspected")
    assert flags[1] == ()
    few = table.slice(0, 20)
    assert (
        suspect_leakage(few, y.slice(0, 20).fill_null("c"), "classification", decide_kinds(few))
        == []
    )
    with pytest.raises(ValueError, match="y: expected 20 values, one for each row, got 3"):
        suspect_leakage(few, [1, 2, 3], "classification", decide_kinds(few))
