"""``spinney fit``: models by name, settings, errors; ``show`` and ``datasets``."""

from __future__ import annotations

import importlib
import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import spinney
from spinney.cli._datasets import CATALOGUE
from spinney.cli._models import MODEL_NAMES, create_model
from spinney.cli._settings import parse_settings
from spinney.comparison.families import FAMILIES
from spinney.io import decide_kinds, read_about, read_table
from spinney.tree import DecisionTreeClassifier
from support.shell_runner import SHOP, Run, rows_of

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
    rare = {"id3": ["--drop", "age", "--drop", "income"]}  # it supports only categories
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
            assert repr(create_model(family.name, task, 3, 1)) == repr(family.make(task, 3, 1))


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
    ("arguments", "message"),
    [
        (["--model", "random_forrest"], "did you mean 'random_forest'?"),
        (["--model", "banana_split_42"], "expected one of: baseline, "),
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
        (["--model", "decision_tree", "--cv", "1"], "--cv must be between 2"),
        (["--model", "decision_tree", "--target", "bougth"], "did you mean 'bought'?"),
        (["--model", "decision_tree", "--drop", "agee"], "did you mean 'age'?"),
        (["--model", "decision_tree", "--kind", "city"], "expected COL=KIND"),
        (["--model", "decision_tree", "--kind", "city=colour"], "'colour'"),
        (["--model", "decision_tree", "--drop", "bought"], "is the target"),
        (["--model", "decision_tree", "--jobs", "0"], "--jobs must be"),
        (["--model", "decision_tree", "--cv", "150"], "--cv 150 folds need a class of 150 rows"),
        (["--model", "decision_tree", "--task", "regression"], "must hold numbers"),
        (["--model", "plug_in"], "--drop COL"),
    ],
)
def test_invalid_arguments_of_fit_are_errors(
    arguments: list[str], message: str, run: Run, shop: Path
) -> None:
    target = [] if "--target" in arguments else ["--target", "bought"]
    ended = run("fit", shop, *target, "-o", shop.parent / "m", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert ended.err.startswith("spinney: ")
    assert ended.err.count("\n") == 1
    assert ("columns of categories" in ended.err) == ("plug_in" in arguments)
    assert ended.out == ""
    assert not (shop.parent / "m").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,x\n2,x\n3,x\n", "target 'b' has one class only: x"),
        ("a,b\n1,\n2,\n", "target 'b' has no value in any row of t.csv"),
        ("a,b\n1,2024-01-02\n2,2024-01-03\n", "target 'b' holds dates"),
        ("a,b\n1,1.5\n2,1.5\n", "target 'b' has one value only: 1.5"),
        ("a,b\n1,2.5\n2,inf\n", "target 'b' holds infinite values"),
        ("a,b\n", "t.csv has no rows"),
        ("", "t.csv is empty"),
        ("a,b\n1,2\n1,3\n", "no column is left to learn from"),
    ],
)
def test_tables_that_cannot_be_fitted(text: str, message: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    ended = run("fit", path, "--target", "b", "--model", "decision_tree", "-o", tmp_path / "m")
    assert ended.code == 2
    assert message in ended.err
    assert os.listdir(tmp_path) == ["t.csv"]


def test_output_file(run: Run, shop: Path) -> None:
    common = ("fit", shop, "--target", "bought", "--model", "baseline", "-o")
    assert "is a folder" in run(*common, shop.parent).err
    assert "does not exist" in run(*common, shop.parent / "nowhere" / "m").err
    ended = run("datasets", "play_tennis", "-o", shop.parent / "nowhere" / "t.csv")
    assert ended.err.startswith("spinney: cannot write to ")
    assert run(*common, shop.parent / "m").code == 0
    assert (
        run(*common, shop.parent / "m").code == 0
    )  # existing files are overwritten, as by Unix tools
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


def test_rows_without_target_are_dropped(run: Run, tmp_path: Path) -> None:
    SHOP.assign(bought=SHOP.bought.where(SHOP.index % 10 != 0)).to_csv(tmp_path / "s.csv")
    common = ("--target", "bought", "--model", "baseline", "-o", tmp_path / "m")
    ended = run("fit", tmp_path / "s.csv", *common)
    assert "note: dropped 20 rows without a value of 'bought'" in ended.out
    assert "180 rows" in ended.out


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


def test_folder_instead_of_a_model_raises(run: Run, shop: Path) -> None:
    for command in (("show", shop.parent), ("predict", shop.parent, shop)):
        ended = run(*command)
        assert (ended.code, "is a folder; name a model file in it" in ended.err) == (2, True)
    with pytest.raises(IsADirectoryError, match="is a folder"):
        spinney.load(shop.parent)


def test_own_facts_with_a_model(run: Run, tmp_path: Path) -> None:
    """Any training facts can be stored, even under the keys that `spinney fit` uses."""
    model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    facts = {"rows": 2, "scores": {"auc": 0.9}, "kinds": "numbers", "notes": "by hand", "model": 7}
    path, table = tmp_path / "model", tmp_path / "rows.csv"
    spinney.save(model, path, training=facts)
    table.write_text("a\n0\n1\n")
    shown = run("show", path, "--brief")
    assert shown.code == 0
    for line in ("fitted on 1 columns", 'scores: {"auc": 0.9}', "notes: by hand"):
        assert line in shown.out
    ended = run("predict", path, table)
    assert ended.code == 0
    assert [row[-1] for row in rows_of(ended.out)[1:]] == ["no", "yes"]


def test_show_coefficients_and_importances(run: Run, shop: Path) -> None:
    out = shop.parent / "m"
    common = ("fit", shop, "--target", "spent", "--drop", "id", "-o", out, "--model")
    assert run(*common, "linear_regression").code == 0
    listed = json.loads(run("show", out, "--json", "--top", "3").out)["contents"]
    assert listed["coefficients"][0]["column"] == "income"
    # The coefficient of income is 1/100 per unit, times its standard deviation.
    expected = SHOP.income.std(ddof=0) / 100
    assert listed["coefficients"][0]["values"][0] == pytest.approx(expected, rel=0.01)
    assert listed["total"] == 2 + 3 + 2
    assert "of the scaled columns" in run("show", out).out
    assert run(*common, "random_forest").code == 0
    listed = json.loads(run("show", out, "--json").out)["contents"]["importances"]
    assert listed[0]["column"] == "income"
    assert sum(entry["values"][0] for entry in listed) == pytest.approx(1)
    assert "decrease of the impurity in training (favours" in run("show", out).out
    assert run(*common, "random_forest", "--set", "importance_type=corrected").code == 0
    assert "impurity in out-of-bag rows" in run("show", out).out
    assert run(*common, "boosted_stumps", "--set", "n_estimators=5").code == 0
    assert "share in the gain of the objective" in run("show", out).out
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
