"""``spinney fit``, ``predict``, ``show`` and ``datasets``: what they read, write and refuse."""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import spinney
from spinney.cli import main
from spinney.cli._datasets import CATALOGUE
from spinney.cli._models import MODEL_NAMES, make_model
from spinney.cli._settings import parse_settings
from spinney.cli._table_writer import open_writer
from spinney.io import decide_kinds, read_about, read_table
from spinney.report.families import FAMILIES

RNG = np.random.default_rng(0)
N = 200
SHOP = pd.DataFrame(
    {
        "id": np.arange(N) + 1000,
        "age": np.where(np.arange(N) % 7, RNG.integers(18, 80, N), np.nan),
        "income": RNG.normal(30_000, 9_000, N).round(2),
        "city": RNG.choice(["Bath", "York", "Ely"], N),
    }
)
SHOP["bought"] = np.where((SHOP.age > 50) ^ (SHOP.city == "Ely"), "yes", "no")
SHOP["spent"] = (SHOP.income / 100 + RNG.normal(size=N)).round(3)


class Output(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command in this process, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["spinney", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capfdbinary.readouterr()
        return Output(int(end.value.code or 0), captured.out.decode(), captured.err.decode())

    return call


def in_shell(command: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``spinney`` is this Spinney."""
    alias = f'spinney() {{ "{sys.executable}" -m spinney "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", alias + command], cwd=folder, capture_output=True, text=True, **options
    )


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.csv"
    SHOP.to_csv(path, index=False)
    return path


@pytest.fixture
def tree(run: Run, shop: Path) -> Path:
    """Write a tree that tells who buys."""
    out = shop.parent / "tree.spinney"
    drop = ("--drop", "id", "--drop", "spent")
    ended = run("fit", shop, "--target", "bought", "--model", "decision_tree", *drop, "-o", out)
    assert ended.code == 0, ended.err
    return out


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


# ----- models by name


def snake_case(name: str) -> str:
    for task in ("Classifier", "Regressor"):
        name = name.removesuffix(task)
    special = {"C45": "c45", "C45Rules": "c45_rules", "ID3": "id3", "LAD": "lad"}
    special |= {"RidgeCV": "ridge_cv", "Local": "local_regression"}
    if name in special:
        return special[name]
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def test_every_public_learner_has_a_name() -> None:
    expected = set()
    for package in ("ensemble", "linear_model", "mixture", "neighbors", "tree"):
        module = importlib.import_module(f"spinney.{package}")
        for name in module.__all__:
            kind = getattr(module, name)
            if not (inspect.isclass(kind) and issubclass(kind, BaseEstimator)):
                continue
            needs_models = "estimators" in inspect.signature(kind).parameters
            if not needs_models and (is_classifier(kind()) or is_regressor(kind())):
                expected.add(snake_case(name))
    assert expected <= set(MODEL_NAMES)
    assert set(MODEL_NAMES) - expected == {
        "baseline",
        "boosted_small_trees",
        "boosted_stumps",
        "decision_tree_pruned",
    }


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_every_model_fits_predicts_and_shows(name: str, run: Run, shop: Path) -> None:
    model, out = shop.parent / "m", shop.parent / "out.csv"
    rare = {"id3": ["--drop", "age", "--drop", "income"]}  # it asks about categories alone
    numbers = {"halfspace", "lad", "plug_in", "polynomial_regression", "radius_neighbors"}
    numbers |= {"ridge_cv", "partition", "quad_tree", "comparison_tree", "comparison_forest"}
    drop = rare.get(name, ["--drop", "city", "--drop", "age"] if name in numbers else [])
    done = 0
    for target, other in (("bought", "spent"), ("spent", "bought")):
        columns = ["--drop", "id", "--drop", other, *drop]
        ended = run("fit", shop, "--target", target, "--model", name, *columns, "-o", model)
        if ended.code:
            assert "is for" in ended.err
            continue
        done += 1
        ended = run("predict", model, shop, "-o", out)
        assert (ended.code, ended.out) == (0, ""), ended.err
        loaded = spinney.load(model)
        X = read_about(model)["training"]["kinds"]
        prepared = spinney.io.ColumnKinds.from_dict(X).prepare(read_table(shop).frame)
        expected = [str(p) if target == "bought" else float(p) for p in loaded.predict(prepared)]
        got = [
            row[0] if target == "bought" else float(row[0]) for row in rows_of(out.read_text())[1:]
        ]
        assert got == expected
        ended = run("show", model)
        assert ended.code == 0, ended.err
        assert ended.out.startswith(f"{name}: ")
    assert done


def test_families_are_the_estimators_of_compare() -> None:
    for family in FAMILIES:
        for task in family.tasks:
            assert repr(make_model(family.name, task, 3, 1)) == repr(family.make(task, 3, 1))


# ----- settings


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("0.1", 0.1),
        ("1e-3", 0.001),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("[1, 2.5]", [1, 2.5]),
        ("entropy", "entropy"),
        ('"3"', "3"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_values_of_settings(text: str, value: Any) -> None:
    parsed = parse_settings([f"p={text}"])["p"]
    assert (type(parsed), parsed) == (type(value), value)


@given(
    st.dictionaries(st.from_regex(r"[a-z]\w{0,5}", fullmatch=True), st.integers() | st.booleans())
)
def test_settings_are_json(values: dict[str, Any]) -> None:
    texts = [f"{name}={json.dumps(value)}" for name, value in values.items()]
    assert parse_settings(texts) == values


def test_settings_reach_the_model(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "bought", "-o", out, "--model")
    assert run(*common, "random_forest", "--set", "n_estimators=7").code == 0
    assert len(spinney.load(out)) == 7
    assert run(*common, "logistic_regression", "--set", "C=0.01").code == 0
    assert spinney.load(out).estimator_.C == 0.01
    assert (
        run(*common, "decision_tree", "--set", "criterion=entropy", "--set", "max_depth=2").code
        == 0
    )
    assert spinney.load(out).get_depth() == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "random_forrest"], "did you mean 'random_forest'?"),
        (["--model", "banana_split_42"], "there are: baseline, "),
        (["--model", "lad"], "'lad' is for regression"),
        (
            ["--model", "decision_tree", "--set", "max_dept=3"],
            "did you mean 'max_depth'? (it has: ",
        ),
        (["--model", "decision_tree", "--set", "max_depth"], "expected param=value"),
        (["--model", "decision_tree", "--set", "max_depth=-2"], "'max_depth' parameter"),
        (["--model", "decision_tree", "--set", "criterion=ginny"], "'criterion' parameter"),
        (["--model", "k_neighbors", "--set", "n_neighbors=few"], "'n_neighbors' parameter"),
        (["--model", "logistic_regression", "--set", "C=-1"], "'C' parameter"),
        (["--model", "decision_tree", "--cv", "1"], "--cv must be from 2"),
        (["--model", "decision_tree", "--target", "bougth"], "did you mean 'bought'?"),
        (["--model", "decision_tree", "--drop", "agee"], "did you mean 'age'?"),
        (["--model", "decision_tree", "--kind", "city"], "expected COL=KIND"),
        (["--model", "decision_tree", "--kind", "city=colour"], "'colour'"),
        (["--model", "decision_tree", "--drop", "bought"], "is the target"),
        (["--model", "decision_tree", "--jobs", "0"], "n_jobs"),
        (["--model", "decision_tree", "--task", "regression"], "must hold numbers"),
        (["--model", "plug_in"], "--drop COL"),
    ],
)
def test_fit_refuses(arguments: list[str], said: str, run: Run, shop: Path) -> None:
    target = [] if "--target" in arguments else ["--target", "bought"]
    ended = run("fit", shop, *target, "-o", shop.parent / "m", *arguments)
    assert ended.code == 2
    assert said in ended.err
    assert ended.err.startswith("spinney: ")
    assert ended.err.count("\n") == 1
    assert ended.out == ""
    assert not (shop.parent / "m").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,x\n2,x\n3,x\n", "target 'b' has one class only: x"),
        ("a,b\n1,\n2,\n", "target 'b' has no value in any row of t.csv"),
        ("a,b\n1,2024-01-02\n2,2024-01-03\n", "target 'b' holds dates"),
        ("a,b\n1,2.5\n2,inf\n", "target 'b' holds infinite values"),
        ("a,b\n", "t.csv has no rows"),
        ("", "t.csv is empty"),
        ("a,b\n1,2\n1,3\n", "no column is left to learn from"),
    ],
)
def test_tables_that_teach_nothing(text: str, said: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    ended = run("fit", path, "--target", "b", "--model", "decision_tree", "-o", tmp_path / "m")
    assert ended.code == 2
    assert said in ended.err
    assert os.listdir(tmp_path) == ["t.csv"]


def test_where_the_model_goes(run: Run, shop: Path) -> None:
    common = ("fit", shop, "--target", "bought", "--model", "baseline", "-o")
    assert "is a folder" in run(*common, shop.parent).err
    assert "no folder" in run(*common, shop.parent / "nowhere" / "m").err
    ended = run("datasets", "play_tennis", "-o", shop.parent / "nowhere" / "t.csv")
    assert ended.err.startswith("spinney: cannot write to ")
    assert run(*common, shop.parent / "m").code == 0
    assert run(*common, shop.parent / "m").code == 0  # overwritten, as Unix tools do
    assert sorted(os.listdir(shop.parent)) == ["m", "shop.csv"]
    assert run(*common, shop.parent / "m", "-q") == (0, "", "")


def test_summary(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "bought", "--model", "decision_tree", "-o", out)
    text = run(*common, "--cv", 5, "--drop", "id")
    assert text.out.startswith("decision_tree (DecisionTreeClassifier) on shop.csv: bought\n")
    assert "200 rows × 4 columns · classification\n" in text.out
    assert "training error: 0.00 %\n" in text.out
    assert "cross-validated error: " in text.out
    facts = json.loads(run(*common, "--cv", 5, "--drop", "id", "--json").out)
    X, y = SHOP[["age", "income", "city", "spent"]], SHOP.bought
    compared = spinney.compare(X, y, models=["decision_tree"], cv=5).best.estimate
    assert facts["scores"]["cross_validation"]["mean"] == pytest.approx(compared.mean, abs=1e-12)
    assert facts["bytes"] == out.stat().st_size
    assert (
        facts["kinds"]
        == decide_kinds(read_table(shop).frame, "bought", overrule={"id": "dropped"}).to_dict()
    )


def test_rows_without_target_are_left_out(run: Run, tmp_path: Path) -> None:
    SHOP.assign(bought=SHOP.bought.where(SHOP.index % 10 != 0)).to_csv(tmp_path / "s.csv")
    common = ("--target", "bought", "--model", "baseline", "-o", tmp_path / "m")
    ended = run("fit", tmp_path / "s.csv", *common)
    assert "note: left out 20 rows without a value of 'bought'" in ended.out
    assert "180 rows" in ended.out


# ----- predict


def test_columns(run: Run, tree: Path, shop: Path) -> None:
    table = rows_of(run("predict", tree, shop, "--proba", "--keep", "id", "--keep", "city").out)
    assert table[0] == ["id", "city", "prediction", "proba_no", "proba_yes"]
    assert [row[:3] for row in table[1:]] == SHOP[["id", "city", "bought"]].astype(
        str
    ).values.tolist()
    assert {float(row[3]) + float(row[4]) for row in table[1:]} == {1.0}
    whole = rows_of(run("predict", tree, shop, "--keep-all").out)
    assert whole[0] == [*SHOP.columns, "prediction"]


def test_pieces_change_nothing(run: Run, tree: Path, shop: Path) -> None:
    whole = run("predict", tree, shop, "--proba").out
    assert run("predict", tree, shop, "--proba", "--rows", 7).out == whole
    # The order of the columns does not matter, nor do more of them.
    SHOP[SHOP.columns[::-1]].assign(more=1).to_csv(shop, index=False)
    assert run("predict", tree, shop, "--proba", "--rows", 64).out == whole


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".arrow", ".jsonl"])
def test_formats(ending: str, run: Run, tree: Path, shop: Path) -> None:
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
    assert run(*common, "linear_regression").code == 0
    refused = run("predict", out, shop, "--interval", "0.8")
    assert refused.code == 2
    assert "linear_regression in" in refused.err
    assert "random_forest" in refused.err
    assert "between 0 and 1" in run("predict", out, shop, "--interval", "90").err
    assert "knows no probabilities" in run("predict", out, shop, "--proba").err


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
    assert "predictions need that name" in run("predict", tree, other, "--keep", "prediction").err


def test_files_that_are_no_models(run: Run, shop: Path) -> None:
    for command in (("predict", shop, shop), ("show", shop)):
        ended = run(*command)
        assert ended.code == 2
        assert f"{shop}: no model file" in ended.err
    ended = run("predict", shop.parent / "none", shop)
    assert (ended.code, ended.out) == (2, "")
    assert "there is no file" in ended.err
    assert "endings are" in run("predict", shop, shop, "-o", "out.xls").err


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


# ----- show


def test_show(run: Run, tree: Path, shop: Path) -> None:
    text = run("show", tree, "--depth", 1).out
    assert text.startswith("decision_tree: spinney.tree.DecisionTreeClassifier\n")
    for part in ("random_state=0", "shop.csv, 200 rows × 3 columns", "target: bought", "no, yes"):
        assert part in text
    assert "|--- " in text
    assert "truncated branch" in text
    facts = json.loads(run("show", tree, "--json").out)
    assert facts["training"]["target"] == "bought"
    assert facts["bytes"] == tree.stat().st_size
    assert facts["contents"]["tree"][0].startswith("|--- ")
    assert "|---" not in run("show", tree, "--brief").out


def test_show_coefficients_and_importances(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "spent", "--drop", "id", "-o", out, "--model")
    assert run(*common, "linear_regression").code == 0
    listed = json.loads(run("show", out, "--json", "--top", "3").out)["contents"]
    assert listed["coefficients"][0]["column"] == "income"
    # One standard deviation of income is worth a hundredth of it.
    expected = SHOP.income.std(ddof=0) / 100
    assert listed["coefficients"][0]["values"][0] == pytest.approx(expected, rel=0.01)
    assert listed["total"] == 2 + 3 + 2
    assert "of the scaled columns" in run("show", out).out
    assert run(*common, "random_forest").code == 0
    listed = json.loads(run("show", out, "--json").out)["contents"]["importances"]
    assert listed[0]["column"] == "income"
    assert sum(entry["values"][0] for entry in listed) == pytest.approx(1)
    assert (
        run("fit", shop, "--target", "city", "-o", out, "--model", "logistic_regression").code == 0
    )
    listed = json.loads(run("show", out, "--json").out)["contents"]
    assert listed["outputs"] == ["Bath", "Ely", "York"]
    assert len(listed["coefficients"][0]["values"]) == 3


# ----- data sets


def test_catalogue(run: Run, tmp_path: Path) -> None:
    assert "spam" in run("datasets").out
    listed = json.loads(run("datasets", "--json").out)
    assert [entry["name"] for entry in listed] == [dataset.name for dataset in CATALOGUE]
    for entry in listed:
        path = tmp_path / f"{entry['name']}.csv"
        assert run("datasets", entry["name"], "-o", path).code == 0
        table = pa.csv.read_csv(path)
        assert (table.num_rows, table.num_columns - 1) == (entry["rows"], entry["columns"])
        assert entry["target"] == table.column_names[-1]
    X, y = spinney.datasets.load_spam(return_X_y=True)
    table = pd.read_csv(tmp_path / "spam.csv")
    np.testing.assert_array_equal(table.iloc[:, :-1].to_numpy(), X)
    np.testing.assert_array_equal(table["class"] == "spam", y == 1)
    assert "did you mean 'spam'?" in run("datasets", "spma").err
    assert run("datasets", "-o", tmp_path / "x.csv").code == 2


# ----- text as others read it

_CELLS = st.none() | st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6
).filter(lambda text: text != "")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(_CELLS, st.floats(allow_nan=False) | st.none()), min_size=1))
def test_delimited_text_is_read_as_it_was(rows: list[tuple[str | None, float | None]]) -> None:
    texts, numbers = zip(*rows, strict=True)
    table = pa.table({"a, b": pa.array(texts, pa.string()), "c": pa.array(numbers, pa.float64())})
    import tempfile

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


# ----- a tool among others


def test_pipes(shop: Path) -> None:
    ended = in_shell(
        "cat shop.csv | spinney fit - --target bought --model decision_tree --drop id -o - 2>said "
        "> m && cat shop.csv | spinney predict m - --keep id | tail -n 1 && cat said",
        shop.parent,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{SHOP.id.iloc[-1]},{SHOP.bought.iloc[-1]}\n")
    assert "on" in ended.stdout.splitlines()[1]


def test_a_closed_pipe_is_silent(shop: Path, tree: Path) -> None:
    pd.concat([SHOP] * 200).to_csv(shop, index=False)
    ended = in_shell(
        "spinney predict tree.spinney shop.csv --keep-all --rows 100 | head -n 2; "
        'echo "${PIPESTATUS[0]}"',
        shop.parent,
    )
    assert ended.stderr == ""
    assert ended.stdout.splitlines()[-1] == "141"
    assert len(ended.stdout.splitlines()) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_interruption(shop: Path) -> None:
    pd.concat([SHOP] * 300).to_csv(shop, index=False)
    arguments = ["fit", "shop.csv", "--target", "bought", "--model", "gradient_boosting"]
    arguments += ["--set", "n_estimators=1000000", "--set", "early_stopping=false", "-o", "m"]
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", *arguments],
        cwd=shop.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    # Python may end by the signal itself, which a shell sees as 130 too.
    assert process.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "spinney: interrupted\n")
    assert os.listdir(shop.parent) == ["shop.csv"]


def test_tracebacks_are_for_those_who_ask(
    run: Run, tree: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("spinney.tree.DecisionTreeClassifier.predict", fail)
    ended = run("predict", tree, shop)
    assert ended.code == 1
    assert ended.err == "spinney: RuntimeError: two lines (SPINNEY_DEBUG=1 shows where)\n"
    monkeypatch.setenv("SPINNEY_DEBUG", "1")
    assert "Traceback" in run("predict", tree, shop).err


def test_usage(run: Run) -> None:
    for arguments in (["fit"], ["predict"], ["show"], ["nonsense"], ["show", "m", "--top", "0"]):
        ended = run(*arguments)
        assert ended.code == 2
        assert "Traceback" not in ended.err


def test_completion(tree: Path, shop: Path) -> None:
    def complete(words: str) -> list[str]:
        env = {
            **os.environ,
            "_SPINNEY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split(" ")) - 1),
        }
        script = "import sys; sys.argv = ['spinney']; from spinney.cli import main; main()"
        ended = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, cwd=shop.parent, env=env
        )
        return ended.stdout.split()

    assert {"fit", "predict", "show", "datasets", "compare"} <= set(complete("spinney "))
    assert complete("spinney fit shop.csv --model random") == ["random_forest"]
    assert complete("spinney fit shop.csv --target b") == ["bought"]
    assert complete("spinney fit nothing.csv --target b") == []
    assert set(complete("spinney datasets play")) == {"play_tennis", "play_tennis_numeric"}


# ----- the guide

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "shell.md"


def _without_numbers(text: str) -> str:
    """Mask what differs from run to run: times, sizes, versions (and other numbers with them)."""
    masked = re.sub(r"\d[\w.,:+-]*", "#", text)
    return "\n".join(line.rstrip() for line in masked.strip().splitlines())


def test_the_guide_shows_what_happens(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [part for block in blocks for part in block.split("$ spinney ")[1:]]
    assert len(shown) >= 7
    for part in shown:
        command, _, expected = part.partition("\n")
        if "|" in command:
            ended = in_shell(f"spinney {command}", tmp_path)
            said = ended.stdout + ended.stderr
        else:
            said = "".join(run(*command.split())[1:])
        assert _without_numbers(said) == _without_numbers(expected), command


def test_no_piece_is_kept(
    run: Run, tree: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = read_table(shop).frame
    alive: list[weakref.ref[Any]] = []
    most = 0

    def pieces(*_: object, **__: object) -> Any:
        nonlocal most
        for _ in range(200):
            piece = frame.take(pa.array(np.arange(N)))
            alive.append(weakref.ref(piece))
            most = max(most, sum(one() is not None for one in alive[-10:]))
            yield piece
            del piece

    monkeypatch.setattr("spinney.io.read_pieces", pieces, raising=False)
    out = shop.parent / "out.csv"
    assert run("predict", tree, shop, "--keep-all", "-o", out).code == 0
    assert sum(1 for _ in out.open()) == 200 * N + 1
    assert most <= 2
