"""Errors for unsupported models and for files with invalid contents."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file
from sklearn.neighbors import BallTree

import spinney
from spinney.data.table import Schema
from spinney.ensemble import AdaBoostClassifier, GradientBoostingRegressor, RandomForestClassifier
from spinney.io import read_about
from spinney.linear_model import PolynomialRegression
from spinney.model_file._description import describe_state
from spinney.model_file._rebuilding import rebuild
from spinney.neighbors import HNSW, KNeighborsClassifier
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    PartitionRegressor,
    QuadTreeRegressor,
)
from support.saved_models import CLASSES, NUMBERS, X, rewrite_header


def custom_callback(done: int, total: int) -> None:
    pass


class UnknownEstimator(DecisionTreeClassifier):
    pass


def test_functions_and_unknown_classes_raise_with_their_path(tmp_path: Path) -> None:
    path = tmp_path / "model"
    forest = RandomForestClassifier(2, callbacks=[custom_callback]).fit(X, CLASSES)
    with pytest.raises(TypeError, match=r"RandomForestClassifier\.callbacks\[0\] is the function"):
        spinney.save(forest, path)
    with pytest.raises(TypeError, match=r"UnknownEstimator: a model file holds"):
        spinney.save(UnknownEstimator().fit(X, CLASSES), path)
    model = KNeighborsClassifier()
    model.kept = BallTree(X, metric=lambda a, b: abs(a[0] - b[0]))
    with pytest.raises(TypeError, match="PyFuncDistance"):
        spinney.save(model, path)
    ring: list[Any] = []
    ring.append(ring)
    tree = DecisionTreeClassifier(class_weight=ring)
    with pytest.raises(TypeError, match="refers back"):
        spinney.save(tree, path)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("not_a_model", "description"),
    [
        (5, "a int"),
        (None, "a NoneType"),
        ([DecisionTreeClassifier()], "a list"),
        ({"m": DecisionTreeClassifier()}, "a dict"),
        (DecisionTreeClassifier().fit(X, CLASSES).tree_, "a Tree"),
        (DecisionTreeClassifier, "the class DecisionTreeClassifier"),
    ],
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_only_models_are_saved(not_a_model: Any, description: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=f"model: expected an estimator, got {description}"):
        spinney.save(not_a_model, tmp_path / "model")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [{"kind": "object", "class": "os.system", "state": []}],
            "class 'os.system' is not allowed",
        ),
        ([{"kind": "object", "class": "spinney.tree.export_text"}], "not a class"),
        ([{"kind": "object", "class": "spinney._core.Forest"}], "not allowed"),
        (
            [{"kind": "object", "class": "spinney.ensemble.ForestStore", "arguments": []}],
            "does not accept",
        ),
        ([{"kind": "numpy_type", "name": "load"}], "not a NumPy type"),
        (
            [
                {"kind": "numpy_type", "name": "float32"},
                {
                    "kind": "object",
                    "class": "sklearn.preprocessing.FunctionTransformer",
                    "state": [["func", {"ref": 0}]],
                },
            ],
            "FunctionTransformer with a func",
        ),
        (
            [
                {
                    "kind": "object",
                    "class": "sklearn.feature_selection.SelectKBest",
                    "score_function": "r_regression",
                }
            ],
            "not a score function for feature selection: 'r_regression'",
        ),
        (
            [{"kind": "object", "class": "sklearn.pipeline.Pipeline", "score_function": "chi2"}],
            "only SelectKBest has one",
        ),
        ([{"kind": "list", "items": [{"ref": 0}]}], "not an earlier node"),
        ([{"kind": "list", "items": [{"ref": -1}]}], "not an earlier node"),
        ([{"kind": "array", "dtype": "<f8", "shape": [9], "numbers": "none"}], "node 0 is invalid"),
        ([{"kind": "array", "dtype": "|O", "shape": [9], "numbers": "0"}], "node 0 is invalid"),
        ([{"kind": "code"}], "unknown kind"),
        ([7], "node 0 is invalid"),
        ([], "contains no model"),
    ],
)
def test_states_with_forbidden_content_raise(
    nodes: list[Any], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier().fit(X, CLASSES), path)
    rewrite_header(path, state=nodes)
    with pytest.raises(ValueError, match=message):
        spinney.load(path)


@pytest.mark.parametrize(
    ("array", "index", "value", "message"),
    [
        ("children_left", 0, 0, "child of one node"),
        ("children_left", 0, 10**6, "child of one node"),
        ("children_left", 0, -1, "one child"),
        ("feature", 0, 3, "a column out of range"),
        ("feature", 0, -1, "a column out of range"),
        ("category_start", 0, 0, "categories out of range"),
        ("n_categories", 0, -5, "number of categories of each column"),
        ("n_categories", 0, 7, "other columns than its model"),
    ],
)
def test_trees_with_invalid_arrays_raise(array: str, index: int, value: int, message: str) -> None:
    model = DecisionTreeClassifier(random_state=0).fit(X, CLASSES)
    getattr(model.tree_, array)[index] = value
    description = describe_state(model)
    with pytest.raises(ValueError, match=message):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize("n_features", [10**9, 10**15, 2**63, -1])
def test_trees_with_an_invalid_number_of_columns_raise(n_features: int) -> None:
    description = describe_state(DecisionTreeRegressor(max_depth=2).fit(X, NUMBERS))
    tree = next(node for node in description.nodes if node.get("class") == "spinney.tree.Tree")
    tree["arguments"][0] = n_features
    with pytest.raises(ValueError, match=r"column|is invalid|[Mm]aximum|negative"):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize("kind", [PartitionRegressor, QuadTreeRegressor])
def test_models_with_too_many_columns_raise(kind: type[Any]) -> None:
    model = kind().fit(X, NUMBERS)
    model.n_features_in_ = 10**9  # `export_text` would create a name for each
    description = describe_state(model)
    with pytest.raises(ValueError, match="1000000000 columns, expected at most"):
        rebuild(description.nodes, description.tensors)


def test_wrong_number_of_classes_raises() -> None:
    model = AdaBoostClassifier(n_estimators=2).fit(X, CLASSES)
    model.n_classes_ = 10**9
    description = describe_state(model)
    with pytest.raises(ValueError, match=r"n_classes_ does not match|expected at most"):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"baseline": np.zeros(0)}, "0 scores"),
        ({"baseline": np.zeros((1, 1))}, "baseline"),
        ({"baseline": np.zeros(1, dtype=object)}, "baseline"),
        ({"n_targets": 2}, "another number of scores"),
        ({"n_targets": 10**9}, "scores"),
        ({"n_rounds": 3}, "fewer trees"),
        ({"n_rounds": -1}, "number of rounds"),
        ({"n_rounds": 2.0}, "number of rounds"),
        ({"n_boosters": 2}, "fewer trees"),
        ({"link": "identity; drop"}, "unknown link"),
        ({"schema": Schema(None, (None, None))}, "other columns"),
    ],
)
def test_boosters_with_inconsistent_parts_raise(changes: dict[str, Any], message: str) -> None:
    model = GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
    model._model = replace(model._model, **changes)
    description = describe_state(model)
    with pytest.raises(ValueError, match=message):
        rebuild(description.nodes, description.tensors)


def test_polynomials_with_a_wrong_degree_raise() -> None:
    model = PolynomialRegression(degree=2).fit(X, X[:, 0])
    model.degree_ = 10**9
    description = describe_state(model)
    with pytest.raises(ValueError, match="another degree"):
        rebuild(description.nodes, description.tensors)


def test_gower_weights_of_nan_raise() -> None:
    table = pd.DataFrame({"size": X[:, 0], "city": np.where(X[:, 1] > 0, "Bath", "Ely")})
    model = KNeighborsClassifier(2, metric="gower").fit(table, CLASSES)
    *others, code_weights, misses = model._index._columns
    model._index._columns = (*others, np.full_like(code_weights, np.nan), misses)
    description = describe_state(model)
    with pytest.raises(
        ValueError, match="negative or NaN"
    ):  # without this check the search would not end
        rebuild(description.nodes, description.tensors).predict(table)


def test_damaged_and_truncated_files_raise(tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(random_state=0).fit(X, CLASSES), path)
    content = path.read_bytes()
    for position in np.random.default_rng(0).integers(0, len(content), 60):
        path.write_bytes(
            content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]
        )
        with pytest.raises(ValueError, match=str(path)):
            spinney.load(path)
    for end in (0, 5, 100, len(content) - 1):
        path.write_bytes(content[:end])
        with pytest.raises(ValueError, match="not a model file"):
            spinney.load(path)
    path.write_bytes(content)
    spinney.load(path)


@pytest.mark.parametrize("about", ["null", "[]", '"x"', "{}", '{"class": 5}'])
def test_file_with_an_invalid_description_raises(about: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(), path)
    rewrite_header(path, about=about)
    for read in (spinney.load, spinney.describe, read_about, DecisionTreeClassifier.load):
        with pytest.raises(ValueError, match=f"{path}: damaged .about"):
            read(path)
    rewrite_header(path, about='{"class": "os.system"}')
    with pytest.raises(ValueError, match=f"{path}: damaged .class"):
        DecisionTreeClassifier.load(path)


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "list", "items": []},
        {"kind": "numpy_type", "name": "float64"},
        {"kind": "object", "class": "sklearn.utils.Bunch", "entries": [["get_params", 1]]},
    ],
)
def test_file_without_a_model_raises(node: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(), path)
    rewrite_header(path, state=json.dumps([node]))
    with pytest.raises(ValueError, match="which is not a model"):
        spinney.load(path)


def test_missing_files_and_files_of_other_formats_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        spinney.load(tmp_path / "nothing")
    for read in (spinney.load, spinney.describe, DecisionTreeClassifier.load, HNSW.load):
        with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
            read(tmp_path)
    save_file({"a": np.zeros(2)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="not a Spinney model"):
        spinney.load(tmp_path / "weights")
    spinney.save(DecisionTreeClassifier(), tmp_path / "model")
    rewrite_header(tmp_path / "model", version="3")
    with pytest.raises(ValueError, match=r"format version 3; Spinney .* reads versions up to 2"):
        spinney.load(tmp_path / "model")
    rewrite_header(
        tmp_path / "model", version="0" * 5000 + "1"
    )  # more digits than Python converts to an integer
    with pytest.raises(ValueError, match=r"model: format version 0+; Spinney .* up to 2"):
        spinney.load(tmp_path / "model")
    header = b'{"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "weights").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(ValueError, match=r"weights: .*unsupported dtype BF16"):
        spinney.describe(tmp_path / "weights")
