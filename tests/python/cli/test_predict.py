"""``spinney predict``: blocks, columns, formats, new data that differ."""

from __future__ import annotations

import csv
import json
import math
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from spinney.cli._table_writer import open_writer
from spinney.io import read_about, read_table
from support.shell_runner import SHOP, N, Run, in_shell, rows_of

# ----- predict


def test_columns(run: Run, tree: Path, shop: Path) -> None:
    table = rows_of(run("predict", tree, shop, "--proba", "--keep", "id", "--keep", "city").out)
    assert table[0] == ["id", "city", "prediction", "proba_no", "proba_yes"]
    assert [row[:3] for row in table[1:]] == SHOP[["id", "city", "bought"]].astype(
        str
    ).values.tolist()
    assert {float(row[3]) + float(row[4]) for row in table[1:]} == {1.0}
    expected = rows_of(run("predict", tree, shop, "--keep-all").out)
    assert expected[0] == [*SHOP.columns, "prediction"]


def test_blocks_do_not_change_predictions(run: Run, tree: Path, shop: Path) -> None:
    expected = run("predict", tree, shop, "--proba").out
    assert run("predict", tree, shop, "--proba", "--rows", 7).out == expected
    # The order of columns and additional columns have no effect.
    SHOP[SHOP.columns[::-1]].assign(more=1).to_csv(shop, index=False)
    assert run("predict", tree, shop, "--proba", "--rows", 64).out == expected


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".jsonl"])
def test_output_formats(ending: str, run: Run, tree: Path, shop: Path) -> None:
    out = shop.parent / f"out{ending}"
    ended = run("predict", tree, shop, "--proba", "--keep", "id", "-o", out, "--rows", 50)
    assert ended.code == 0
    assert ended.out == ""
    assert f"wrote {out}: 200 rows in " in ended.err
    readers: dict[str, Callable[[Path], Any]] = {
        ".csv": pd.read_csv,
        ".csv.gz": pd.read_csv,
        ".tsv": lambda path: pd.read_csv(path, sep="\t"),
        ".parquet": pd.read_parquet,
        ".arrow": pd.read_feather,
        ".jsonl": lambda path: pd.read_json(path, lines=True),
    }
    frame = readers[ending](out)
    assert list(frame.columns) == ["id", "prediction", "proba_no", "proba_yes"]
    assert frame.id.tolist() == SHOP.id.tolist()
    assert frame.prediction.tolist() == SHOP.bought.tolist()


def test_lines_of_json(run: Run, tree: Path, shop: Path) -> None:
    lines = run("predict", tree, shop, "--json", "--keep", "age").out.splitlines()
    assert json.loads(lines[0]) == {"age": None, "prediction": SHOP.bought[0]}
    assert len(lines) == N


def test_intervals(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "spent", "--drop", "id", "-o", out, "--model")
    assert run(*common, "random_forest").code == 0
    table = rows_of(run("predict", out, shop, "--interval", "0.8").out)
    assert table[0] == ["prediction", "lower", "upper"]
    model = spinney.load(out)
    kinds = spinney.io.ColumnKinds.from_dict(read_about(out)["training"]["kinds"])
    X = kinds.prepare(read_table(shop).frame)
    expected = model.predict_interval(X, coverage=0.8)
    np.testing.assert_array_equal(np.array(table[1:], dtype=float)[:, 1:], expected)
    for name in ("linear_regression", "ridge", "k_neighbors", "local_regression", "bagging"):
        assert run(*common, name).code == 0
        table = rows_of(run("predict", out, shop, "--interval", "0.8").out)
        numbers = np.array(table[1:], dtype=float)
        assert (numbers[:, 1] <= numbers[:, 2]).all()
        assert "intervals: conformal" in run("show", out).out
        assert "intervals: conformal" in run("predict", out, shop, "--interval", "0.8").err
    assert run(*common, "extra_trees").code == 0
    notes = run("predict", out, shop, "--interval", "0.8").err
    assert notes == "intervals: quantiles of the leaves, without correction of their coverage\n"
    assert not run("predict", out, shop, "--interval", "0.8", "--quiet").err
    assert run(*common, "decision_tree").code == 0
    refused = run("predict", out, shop, "--interval", "0.8")
    assert refused.code == 2
    assert "decision_tree in" in refused.err
    assert "random_forest" in refused.err
    assert "extra_trees" not in refused.err  # their intervals are not corrected
    assert "between 0 and 1" in run("predict", out, shop, "--interval", "90").err
    assert "has no predict_proba" in run("predict", out, shop, "--proba").err


def test_sets(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "city", "--drop", "id", "-o", out, "--model")
    assert run(*common, "random_forest").code == 0
    table = rows_of(run("predict", out, shop, "--set", "0.8").out)
    model = spinney.load(out)
    assert table[0] == ["prediction", *(f"set_{label}" for label in model.classes_)]
    kinds = spinney.io.ColumnKinds.from_dict(read_about(out)["training"]["kinds"])
    expected = model.predict_set(kinds.prepare(read_table(shop).frame), coverage=0.8)
    np.testing.assert_array_equal(np.array(table[1:])[:, 1:] == "true", expected)
    assert "sets: adaptive conformal" in run("show", out).out
    assert run(*common, "perceptron").code == 0
    refused = run("predict", out, shop, "--set", "0.8")
    assert refused.code == 2
    assert "has no sets" in refused.err
    assert "random_forest" in refused.err
    assert "between 0 and 1" in run("predict", out, shop, "--set", "1").err


@pytest.mark.parametrize("name", ["decision_tree", "linear_regression", "random_forest"])
def test_intervals_with_calibration_rows(run: Run, shop: Path, name: str) -> None:
    first, rest, out = shop.parent / "first.csv", shop.parent / "rest.csv", shop.parent / "m"
    SHOP[:120].to_csv(first, index=False)
    incomplete = SHOP[120:].copy()
    incomplete.loc[incomplete.index[0], "spent"] = np.nan  # dropped
    incomplete.to_csv(rest, index=False)
    assert (
        run("fit", first, "--target", "spent", "--drop", "id", "-o", out, "--model", name).code == 0
    )
    ended = run("predict", out, shop, "--interval", "0.8", "--calibration", rest)
    assert ended.err == f"intervals: conformal, {N - 121} calibration rows\n"
    numbers = np.array(rows_of(ended.out)[1:], dtype=float)
    truth = SHOP["spent"].to_numpy()[121:]
    inside = (numbers[121:, 1] <= truth) & (truth <= numbers[121:, 2])
    assert 0.8 <= inside.mean() < 0.9  # in-sample: these are the calibration rows
    model = spinney.load(out)
    if name == "decision_tree":
        errors = np.sort(truth - numbers[121:, 0])
        low, high = errors[[math.floor((N - 120) * 0.1) - 1, math.ceil((N - 120) * 0.9) - 1]]
        np.testing.assert_allclose(numbers[:, 1:] - numbers[:, :1], [[low, high]] * N)
    assert not hasattr(model, "classes_")
    refused = run("predict", out, shop, "--set", "0.8", "--calibration", rest)
    assert refused.code == 2
    assert "is a regressor; use --interval" in refused.err
    assert (
        "--calibration needs --interval or --set"
        in run("predict", out, shop, "--calibration", rest).err
    )


@pytest.mark.parametrize(
    "name", ["logistic_regression", "decision_tree", "random_forest", "ada_boost"]
)
def test_sets_with_calibration_rows(run: Run, shop: Path, name: str) -> None:
    rest, out = shop.parent / "rest.parquet", shop.parent / "m"
    SHOP[120:].assign(city=SHOP.city[120:].astype("category")).to_parquet(rest)
    assert (
        run("fit", shop, "--target", "city", "--drop", "id", "-o", out, "--model", name).code == 0
    )
    ended = run("predict", out, shop, "--set", "0.8", "--calibration", rest)
    assert ended.err == f"sets: conformal, {N - 120} calibration rows\n"
    table = rows_of(ended.out)
    classes = [name.removeprefix("set_") for name in table[0][1:]]
    sets = np.array(table[1:])[120:, 1:] == "true"
    right = sets[np.arange(len(sets)), [classes.index(one) for one in SHOP["city"][120:]]]
    assert right.mean() >= 0.8
    odd = shop.parent / "odd.csv"
    SHOP[:3].assign(city="Atlantis").to_csv(odd, index=False)
    assert "'Atlantis'" in run("predict", out, shop, "--set", "0.8", "--calibration", odd).err
    refused = run("predict", out, shop, "--interval", "0.8", "--calibration", rest)
    assert "is a classifier; use --set" in refused.err


def test_no_sets_without_probabilities(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    fit = ("fit", shop, "--target", "city", "--drop", "id", "-o", out, "--model", "perceptron")
    assert run(*fit).code == 0
    refused = run("predict", out, shop, "--set", "0.8", "--calibration", shop)
    assert refused.code == 2
    assert "expected a classifier with predict_proba" in refused.err


@pytest.mark.parametrize(
    "name", ["gradient_boosting", "random_forest", "decision_tree_pruned", "logistic_regression"]
)
@pytest.mark.parametrize("target", ["bought", "city"])
def test_explanations_add_up(name: str, target: str, run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    fit = ["fit", shop, "--target", target, "--drop", "id", "-o", out, "--model", name]
    if name == "gradient_boosting":
        fit += ["--set", "n_estimators=20"]
    assert run(*fit).code == 0
    ended = run("predict", out, shop, "--proba", "--explain", "all")
    assert ended.code == 0
    assert "base and amounts add up to the" in ended.err
    table = pd.DataFrame(rows_of(ended.out)[1:], columns=rows_of(ended.out)[0])
    model = spinney.load(out)
    amounts = [f"amount_{column}" for column in model.feature_names_in_]
    names = [f"proba_{label}" for label in model.classes_]
    assert list(table.columns) == ["prediction", *names, "base", *amounts]
    total = table[["base", *amounts]].astype(float).sum(axis=1).to_numpy()
    proba = table[names].astype(float).to_numpy()
    if "probability" in ended.err:  # for the second of two classes, or for the predicted class
        chosen = proba[:, 1] if len(names) == 2 else proba.max(axis=1)
        np.testing.assert_allclose(total, chosen, atol=1e-9)
    elif len(names) == 2:
        np.testing.assert_allclose(1 / (1 + np.exp(-total)), proba[:, 1], atol=1e-6)
    else:
        assert "score before softmax of the predicted class" in ended.err
    some = rows_of(run("predict", out, shop, "--explain", 2, "--rows", 70, "-q").out)
    assert some[0] == ["prediction", "base", "column_1", "amount_1", "column_2", "amount_2"]
    parts = table[amounts].astype(float).to_numpy()
    order = np.argsort(-np.abs(parts), axis=1, kind="stable")
    for row, cells in enumerate(some[1:]):
        assert cells[2] == model.feature_names_in_[order[row, 0]]
        assert float(cells[3]) == pytest.approx(parts[row, order[row, 0]], rel=1e-9)
        assert float(cells[5]) == pytest.approx(parts[row, order[row, 1]], rel=1e-9)


def test_explanations_of_regression(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "spent", "--drop", "id", "-o", out, "--model")
    few = shop.parent / "few.csv"
    SHOP[:6].to_csv(few, index=False)
    one = shop.parent / "one.csv"
    SHOP[:1].to_csv(one, index=False)
    for name in ("extra_trees", "ridge", "k_neighbors", "ada_boost"):
        assert run(*common, name).code == 0
        ended = run("predict", out, few, "--explain", "all", "--json")
        assert ended.code == 0
        for line in ended.out.splitlines():
            cells = json.loads(line)
            assert sum(value for key, value in cells.items() if key != "prediction") == (
                pytest.approx(cells["prediction"], rel=1e-7)
            )
        sampled = name in ("k_neighbors", "ada_boost")
        assert ("sampling" in ended.err) is sampled
        alone = run("predict", out, one, "--explain", 99)  # at most the number of columns
        assert alone.code == (2 if sampled else 0)
        if sampled:
            assert "comparing rows; expected at least 2 rows" in alone.err
        else:
            assert rows_of(alone.out)[0][-1] == f"amount_{len(SHOP.columns) - 2}"
    empty = shop.parent / "empty.csv"
    SHOP[:0].to_csv(empty, index=False)
    assert rows_of(run("predict", out, empty, "--explain", 1).out) == [
        ["prediction", "base", "column_1", "amount_1"]
    ]
    for wrong in ("0", "-1", "many", "1.5"):
        refused = run("predict", out, few, "--explain", wrong)
        assert refused.code == 2
        assert "--explain must be" in refused.err


@pytest.mark.parametrize("ending", [".csv.gz", ".parquet", ".arrow", ".jsonl"])
def test_explanations_in_files(ending: str, run: Run, tree: Path, shop: Path) -> None:
    out = shop.parent / f"out{ending}"
    assert run("predict", tree, shop, "--explain", 1, "-o", out, "--rows", 50).code == 0
    table = rows_of(run("predict", tree, shop, "--explain", 1).out)
    readers: dict[str, Callable[[Path], Any]] = {
        ".csv.gz": pd.read_csv,
        ".parquet": pd.read_parquet,
        ".arrow": pd.read_feather,
        ".jsonl": lambda path: pd.read_json(path, lines=True, precise_float=True),
    }
    frame = readers[ending](out)
    assert list(frame.columns) == table[0]
    assert frame.column_1.tolist() == [row[2] for row in table[1:]]
    np.testing.assert_allclose(frame.amount_1, [float(row[3]) for row in table[1:]], rtol=1e-12)


def test_new_data_that_differ(run: Run, tree: Path, shop: Path) -> None:
    other = shop.parent / "other.csv"
    SHOP.drop(columns="city").to_csv(other, index=False)
    ended = run("predict", tree, other)
    assert ended.code == 2
    assert "'city'" in ended.err
    SHOP.assign(age="old").to_csv(other, index=False)
    ended = run("predict", tree, other)
    assert ended.code == 2
    assert "'age'" in ended.err
    SHOP.assign(city="Rome", age=np.nan).to_csv(other, index=False)  # unseen, and missing
    ended = run("predict", tree, other)
    assert ended.code == 0
    assert len(rows_of(ended.out)) == N + 1
    ended = run("predict", tree, shop, "--keep", "cyti")
    assert ended.code == 2
    assert "cyti" in ended.err
    SHOP.rename(columns={"id": "prediction"}).to_csv(other, index=False)
    assert (
        "has the name of a column of predictions"
        in run("predict", tree, other, "--keep", "prediction").err
    )


def test_files_that_are_not_models(run: Run, shop: Path) -> None:
    for command in (("predict", shop, shop), ("show", shop)):
        ended = run(*command)
        assert ended.code == 2
        assert f"{shop}: not a model file" in ended.err
    ended = run("predict", shop.parent / "none", shop)
    assert (ended.code, ended.out) == (2, "")
    assert "there is no file" in ended.err
    assert "unknown ending; expected one of" in run("predict", shop, shop, "-o", "out.xls").err


def test_models_from_python(run: Run, shop: Path) -> None:
    from spinney.tree import DecisionTreeRegressor

    named = DecisionTreeRegressor().fit(SHOP[["income", "age"]], SHOP.spent)
    spinney.save(named, shop.parent / "named")
    got = rows_of(run("predict", shop.parent / "named", shop).out)[1:]
    assert [float(row[0]) for row in got] == named.predict(SHOP[["income", "age"]]).tolist()
    assert "fitted on 2 columns" in run("show", shop.parent / "named").out
    bare = DecisionTreeRegressor().fit(SHOP[["income", "id"]].to_numpy(), SHOP.spent)
    spinney.save(bare, shop.parent / "bare")
    SHOP[["income", "id"]].to_csv(shop, index=False)
    got = rows_of(run("predict", shop.parent / "bare", shop).out)[1:]
    assert [float(row[0]) for row in got] == SHOP.spent.tolist()
    SHOP[["income"]].to_csv(shop, index=False)
    assert "fitted on 2 columns" in run("predict", shop.parent / "bare", shop).err
    spinney.save(DecisionTreeRegressor(), shop.parent / "new")
    assert "not fitted" in run("show", shop.parent / "new").out


# ----- text as other programs read it

_CELLS = st.none() | st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6
).filter(lambda text: text != "")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_CELLS, st.floats(allow_nan=False) | st.none()), min_size=1))
def test_delimited_text_is_read_unchanged(rows: list[tuple[str | None, float | None]]) -> None:
    texts, numbers = zip(*rows, strict=True)
    table = pa.table({"a, b": pa.array(texts, pa.string()), "c": pa.array(numbers, pa.float64())})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.csv"
        with open_writer(path) as write:
            write(table.slice(0, 1))
            write(table.slice(1))
        with path.open(newline="", encoding="utf-8") as file:
            header, *lines = csv.reader(file)
    assert header == ["a, b", "c"]
    assert [line[0] for line in lines] == [text or "" for text in texts]
    assert [float(line[1]) if line[1] else None for line in lines] == list(numbers)


# ----- memory


def test_no_block_is_kept(
    run: Run, tree: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = read_table(shop).frame
    alive: list[weakref.ref[Any]] = []
    most = 0

    def blocks(*_: object, **__: object) -> Any:
        nonlocal most
        for _ in range(200):
            block = frame.take(pa.array(np.arange(N)))
            alive.append(weakref.ref(block))
            most = max(most, sum(one() is not None for one in alive[-10:]))
            yield block
            del block

    monkeypatch.setattr("spinney.io.read_pieces", blocks, raising=False)
    out = shop.parent / "out.csv"
    assert run("predict", tree, shop, "--keep-all", "-o", out).code == 0
    assert sum(1 for _ in out.open()) == 200 * N + 1
    assert most <= 2


def test_copied_columns_are_unchanged(run: Run, tmp_path: Path) -> None:
    rows = [
        f"{key},{number},{number % 2}"
        for number, key in enumerate(["NA", "null", " a b", "1.50"] * 10)
    ]
    table = tmp_path / "keys.csv"
    table.write_text("\n".join(["key,x,y", *rows]) + "\n", encoding="utf-8")
    model = tmp_path / "m.spinney"
    fit = ("fit", table, "--target", "y", "--model", "decision_tree", "--drop", "key", "-o", model)
    assert run(*fit).code == 0
    out = run("predict", model, table, "--keep", "key").out.splitlines()
    assert [line.split(",")[0].strip('"') for line in out[1:5]] == ["NA", "null", " a b", "1.50"]


def test_integers_as_categories_with_missing_values(run: Run, tmp_path: Path) -> None:
    """With missing values, pandas writes 2134 as 2134.0, which is the same category."""
    codes = np.tile([2134, 2139, 2140], 20)
    first, second = tmp_path / "zip.csv", tmp_path / "zip2.csv"
    first.write_text("zip,y\n" + "".join(f"{code},{code % 2}\n" for code in codes))
    second.write_text("zip,y\n" + "".join(f"{code}.0,{code % 2}\n" for code in codes) + ",0\n")
    model = tmp_path / "m.spinney"
    fit = ("fit", first, "--target", "y", "--model", "decision_tree", "--kind", "zip=category")
    assert run(*fit, "-o", model).code == 0
    lines = run("predict", model, second, "--keep", "y").out.splitlines()[1:-1]
    assert all(line.split(",")[0] == line.split(",")[1] for line in lines)


def test_dates_with_the_day_first(run: Run, tmp_path: Path) -> None:
    """The model file stores the order of day and month for ambiguous new dates."""
    rows = [f"{row % 28 + 1}/{row % 12 + 1}/2024,{int(row % 12 < 6)}" for row in range(120)]
    table, new, model = tmp_path / "t.csv", tmp_path / "new.csv", tmp_path / "model"
    table.write_text("\n".join(["when,y", *rows]), encoding="utf-8")
    ended = run("fit", table, "--target", "y", "--model", "decision_tree", "-o", model)
    assert "note: dates with the day before the month in 'when'" in ended.out
    new.write_text("when\n1/9/2024\n9/1/2024\n2024-09-01\n", encoding="utf-8")
    out = run("predict", model, new, "--keep", "when").out
    assert rows_of(out)[1:] == [["2024-09-01", "0"], ["2024-01-09", "1"], ["2024-09-01", "0"]]
    new.write_text("when\n1/13/2024\n", encoding="utf-8")
    ended = run("predict", model, new)
    assert ended.code == 2
    assert "line 2, column 'when': expected a date (31/12/2024, day first)" in ended.err


INFINITE = {"age": ["inf", "-inf", "40", "1e400", "55", "", "61"], "income": ["1e5"] * 6 + ["inf"]}
INFINITE_NOTES = [
    "note: column 'age': 3 infinite values are treated as missing",
    "note: column 'income': 1 infinite value is treated as missing",
]


def _notes(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("note: ")]


@pytest.fixture
def numbers(run: Run, shop: Path) -> Path:
    """Fit a model to two numeric columns."""
    out = shop.parent / "numbers.spinney"
    few = ("--drop", "id", "--drop", "city", "--drop", "bought", "--model", "decision_tree")
    assert run("fit", shop, "--target", "spent", *few, "-o", out).code == 0
    return out


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".arrow", ".texts.parquet"])
def test_infinite_values_are_noted_once_with_their_count(
    ending: str, run: Run, numbers: Path
) -> None:
    path = numbers.parent / f"infinite{ending}"
    texts = pd.DataFrame(INFINITE)
    if ending == ".csv":
        texts.to_csv(path, index=False)
    else:
        frame = texts if "texts" in ending else texts.replace("", "nan").astype(float)
        (frame.to_feather if ending == ".arrow" else frame.to_parquet)(path)
    missing = texts.replace(["inf", "-inf", "1e400"], "").to_csv(index=False)
    (numbers.parent / "missing.csv").write_text(missing)
    plain = run("predict", numbers, numbers.parent / "missing.csv")
    assert _notes(plain.err) == []
    for rows in (2, 65_536):
        ended = run("predict", numbers, path, "--rows", rows)
        assert ended.code == 0
        assert ended.out == plain.out
        assert _notes(ended.err) == INFINITE_NOTES
    lines = run("predict", numbers, path, "--json", "--rows", 3)
    assert len([json.loads(line) for line in lines.out.splitlines()]) == 7
    assert _notes(lines.err) == INFINITE_NOTES
    assert run("predict", numbers, path, "--quiet").err == ""
    out = numbers.parent / "out.csv"
    ended = run("predict", numbers, path, "-o", out)
    assert _notes(ended.err) == INFINITE_NOTES
    assert ended.err.splitlines()[-1].startswith("wrote ")


def test_infinite_values_from_standard_input_and_in_calibration_rows(
    numbers: Path, shop: Path
) -> None:
    folder = numbers.parent
    pd.DataFrame(INFINITE).to_csv(folder / "infinite.csv", index=False)
    ended = in_shell(f"cat infinite.csv | spinney predict {numbers} - --rows 2", folder)
    assert ended.returncode == 0
    assert _notes(ended.stderr) == INFINITE_NOTES
    assert len(ended.stdout.splitlines()) == 8
    rows = SHOP[["age", "income", "spent"]].astype(object)
    rows.loc[3, "age"] = rows.loc[4, "income"] = rows.loc[9, "income"] = "-inf"
    rows.to_csv(folder / "rows.csv", index=False)
    command = f"spinney predict {numbers} {shop} --interval 0.8 --calibration rows.csv"
    assert _notes(in_shell(command, folder).stderr) == [
        "note: column 'age' of the calibration rows: 1 infinite value is treated as missing",
        "note: column 'income' of the calibration rows: 2 infinite values are treated as missing",
    ]


def test_infinite_values_in_many_columns_share_a_note(run: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({f"x{k}": np.arange(40.0) ** (k + 1) for k in range(14)})
    frame.assign(y=np.arange(40) % 2).to_csv(tmp_path / "rows.csv", index=False)
    fit = ("fit", tmp_path / "rows.csv", "--target", "y", "--model", "decision_tree")
    assert run(*fit, "-o", tmp_path / "m").code == 0
    frame.replace(1.0, np.inf).to_csv(tmp_path / "rows.csv", index=False)
    notes = _notes(run("predict", tmp_path / "m", tmp_path / "rows.csv").err)
    assert notes[:10] == [
        f"note: column 'x{k}': 1 infinite value is treated as missing" for k in range(10)
    ]
    assert notes[10:] == ["note: 4 more notes on columns are not shown"]


@pytest.mark.parametrize("command", ["fit", "compare"])
def test_infinite_values_of_a_column_with_a_given_kind(
    command: str, run: Run, tmp_path: Path
) -> None:
    rows = [f"{'1e400' if i in (3, 5) else i % 17},{i % 2}" for i in range(40)]
    (tmp_path / "rows.csv").write_text("\n".join(["a,y", *rows]))
    options = {
        "fit": ("--model", "decision_tree", "-o", tmp_path / "m"),
        "compare": ("--models", "baseline", "--cv", 2, "--no-report"),
    }[command]
    ended = run(command, tmp_path / "rows.csv", "--target", "y", "--kind", "a=number", *options)
    assert ended.code == 0
    assert "column 'a': 2 infinite values are treated as missing" in ended.out
