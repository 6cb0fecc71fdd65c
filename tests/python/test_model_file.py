"""Model files: the same model to the bit, data alone, whole or not at all."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.neighbors import BallTree
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spinney
from spinney.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from spinney.io import read_about
from spinney.io._description import describe
from spinney.io._rebuilding import rebuild
from spinney.linear_model import LinearRegression, LogisticRegression
from spinney.mixture import MixtureClassifier, PlugInClassifier
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor
from spinney.report.families import FAMILIES
from spinney.tree import C45Rules, DecisionTreeClassifier, DecisionTreeRegressor

PACKAGES = (
    "calibration",
    "ensemble",
    "linear_model",
    "mixture",
    "neighbors",
    "preprocessing",
    "tree",
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
NUMBERS = 2 * X[:, 0] - X[:, 1] + RNG.normal(size=90)
CLASSES = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
QUERIES = RNG.normal(size=(40, 3))
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def public_estimators() -> list[Any]:
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"spinney.{package}")
        found += [
            getattr(module, name)
            for name in module.__all__
            if inspect.isclass(getattr(module, name))
            and issubclass(getattr(module, name), BaseEstimator)
        ]
    return found


def fitted(kind: type[Any]) -> Any:
    if kind.__name__.startswith(("Stacking", "Voting", "Bayesian")):
        tree = DecisionTreeClassifier if "Classifier" in kind.__name__ else DecisionTreeRegressor
        model = kind([("deep", tree(random_state=0)), ("flat", tree(max_depth=2))])
    elif kind.__name__ == "ID3Classifier":
        days, play = spinney.datasets.load_play_tennis(return_X_y=True)
        return kind().fit(days, play)
    elif kind.__name__ == "RadiusNeighborsClassifier":
        model = kind(outlier_label="no")
    else:
        model = kind()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if kind.__name__ == "GradientBoostingRanker":
        return model.fit(X, (NUMBERS > 0).astype(int), group=[45, 45])
    if is_classifier(model):
        return model.fit(X, CLASSES)
    return model.fit(X, NUMBERS) if is_regressor(model) else model.fit(X)


def outcomes(model: Any, queries: Any) -> dict[str, Any]:
    """Everything that a model says about some rows."""
    said = {name: getattr(model, name)(queries) for name in METHODS if callable(_get(model, name))}
    if hasattr(model, "kneighbors"):
        said["kneighbors"], _ = model.kneighbors(queries)
    if type(model).__name__ == "HNSW":
        said["query"], _ = model.query(queries, 3)
    return {
        name: answer.toarray() if sp.issparse(answer) else answer for name, answer in said.items()
    }


def _get(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except NotImplementedError:
        return None


def assert_same(model: Any, again: Any, queries: Any) -> None:
    expected, got = outcomes(model, queries), outcomes(again, queries)
    assert expected
    assert expected.keys() == got.keys()
    for name, answer in expected.items():
        np.testing.assert_array_equal(got[name], answer, err_msg=name, strict=True)


def round_trip(model: Any, folder: Path) -> Any:
    spinney.save(model, folder / "model.spinney")
    return spinney.load(folder / "model.spinney")


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_every_public_estimator(kind: type[Any], tmp_path: Path) -> None:
    model = fitted(kind)
    again = round_trip(model, tmp_path)
    assert type(again) is kind
    assert repr(again) == repr(model)
    queries = QUERIES
    if kind.__name__ == "ID3Classifier":
        queries = spinney.datasets.load_play_tennis(return_X_y=True)[0]
    assert_same(model, again, queries)
    # Every attribute, too: what a pickle of the one has, a pickle of the other has.
    assert (
        vars(pickle.loads(pickle.dumps(again))).keys()
        == vars(pickle.loads(pickle.dumps(model))).keys()
    )


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_one_column_and_several_targets(kind: type[Any], tmp_path: Path) -> None:
    model = fitted(kind)
    if kind.__name__ != "ID3Classifier":
        y = NUMBERS if is_regressor(model) else CLASSES
        if kind.__name__ == "GradientBoostingRanker":
            return
        model.fit(X[:, :1], y)
        assert_same(model, round_trip(model, tmp_path), QUERIES[:, :1])
    both = np.column_stack([NUMBERS, -NUMBERS] if is_regressor(model) else [CLASSES, CLASSES])
    try:
        model.fit(X, both)
    except (NotImplementedError, TypeError, ValueError):
        return  # one target is all it takes
    again = round_trip(model, tmp_path)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(again.predict(QUERIES), model.predict(QUERIES))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_on_a_mixed_table(family: Any, task: Any, tmp_path: Path) -> None:
    if task not in family.tasks:
        pytest.skip("not for this task")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": RNG.choice(["Bath", "York"], 90)})
    frame.loc[::7, "a"] = np.nan
    y = CLASSES if task == "classification" else NUMBERS
    model = family.make(task, 0, 1).fit(frame, y)
    again = round_trip(model, tmp_path)
    unseen = frame.iloc[:20].assign(city=["Ely", "Bath"] * 10)
    np.testing.assert_array_equal(again.predict(unseen), model.predict(unseen), strict=True)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=np.random.RandomState(3)),
        BaggingRegressor(KNeighborsRegressor(), n_estimators=3, random_state=0),
        AdaBoostClassifier(LogisticRegression(), n_estimators=3, random_state=0),
        GradientBoostingClassifier(n_estimators=5, early_stopping=True, random_state=0),
        KNeighborsClassifier(metric="canberra", algorithm="ball_tree"),
        KNeighborsClassifier(metric="minkowski", p=3, algorithm="kd_tree"),
        KNeighborsClassifier(metric="mahalanobis", algorithm="brute"),
        KNeighborsClassifier(algorithm="hnsw"),
        KNeighborsClassifier(metric="gower"),
        PlugInClassifier(regressor=LinearRegression()),
        MixtureClassifier(covariance_type="bic"),
        C45Rules(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        VotingClassifier([("a", DecisionTreeClassifier()), ("b", LogisticRegression())]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_other_kinds_of_fits(model: Any, tmp_path: Path) -> None:
    model.fit(X, NUMBERS if is_regressor(model) else CLASSES)
    assert_same(model, round_trip(model, tmp_path), QUERIES)


def test_sparse_rows_and_strings_as_neighbours(tmp_path: Path) -> None:
    rows = sp.random(60, 8, density=0.3, random_state=0, format="csr")
    model = KNeighborsRegressor(3).fit(rows, np.arange(60.0))
    assert_same(model, round_trip(model, tmp_path), rows)
    words = ["kitten", "sitting", "mitten", "saturday"]
    near = KNeighborsClassifier(1, metric="edit").fit(words, [0, 1, 2, 3])
    assert_same(near, round_trip(near, tmp_path), words)


def test_not_fitted(tmp_path: Path) -> None:
    tree = round_trip(DecisionTreeClassifier(max_depth=3), tmp_path)
    assert tree.get_params() == DecisionTreeClassifier(max_depth=3).get_params()
    assert not hasattr(tree, "tree_")


def test_about_needs_no_arrays(tmp_path: Path) -> None:
    model = RandomForestClassifier(7, random_state=1).fit(X, CLASSES)
    spinney.save(model, tmp_path / "forest", training={"target": "bought"})
    about = read_about(tmp_path / "forest")
    assert about["class"] == "spinney.ensemble.RandomForestClassifier"
    assert about["changed"] == ["n_estimators", "random_state"]
    assert about["parameters"]["n_estimators"] == "7"
    assert about["classes"] == ["no", "yes"]
    assert about["n_features"] == 3
    assert about["training"] == {"target": "bought"}
    assert about["versions"]["spinney"] == spinney.__version__


# ----- values

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=8)
    | st.complex_numbers()
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.str_("é"), np.bool_(True), np.float64])
    | st.sampled_from([np.dtype("<U5"), slice(1, None, 2), range(3, 9, 2), -0.0])
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def _through(value: Any) -> Any:
    """Describe a value, turn the description into text and back, and rebuild."""
    description = describe([value])  # a list: what is inline is part of a node
    return rebuild(json.loads(json.dumps(description.nodes)), description.tensors)[0]


@settings(max_examples=200, deadline=None)
@given(_VALUES)
def test_values_come_back_as_they_were(value: Any) -> None:
    assert repr(_through(value)) == repr(value)  # tells True from 1 and -0.0 from 0.0


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.empty((0, 4)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12, dtype=np.int16).reshape(3, 4)[::2, ::-1],
        np.arange(3, dtype=">i4"),
        np.array(["", "Zürich", "x" * 30]),
        np.array([b"ab", b""]),
        np.array([["a", None], ["long text", "𝄞"]], dtype=object),
        np.array([1, "a", 2.5, (1, 2)], dtype=object),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([1 + 2j, np.nan]),
        np.array([True, False]),
        np.array([np.nan, -0.0, np.inf, 5e-324], dtype=np.float64),
        np.array([65504, 1e-7], dtype=np.float16),
    ],
    ids=lambda array: f"{array.dtype}",
)
def test_arrays(array: np.ndarray) -> None:
    again = _through(array)
    assert again.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(again, array)
    assert np.array_equal(np.signbit(again), np.signbit(array)) if array.dtype == float else True
    if array.ndim > 1:
        assert again.flags.f_contiguous == array.flags.f_contiguous
    assert again.flags.writeable


@pytest.mark.parametrize(
    "values",
    [
        [str(number) for number in range(100)],
        [number / 7 for number in range(100)] + [float("nan"), -0.0],
        list(range(-100, 100)),
        [2**63, *range(100)],
        [True, *range(100)],
        [None, *map(str, range(100))],
    ],
)
@pytest.mark.parametrize("kind", [list, tuple, frozenset])
def test_long_lists(values: list[Any], kind: type[Any]) -> None:
    expected = kind(values)
    again = _through(expected)
    assert type(again) is kind
    assert sorted(map(repr, again)) == sorted(map(repr, expected))
    assert kind is frozenset or repr(again) == repr(expected)


def test_too_many_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.io._model_file._MOST_JSON", 1000)
    with pytest.raises(ValueError, match="too many parts"):
        spinney.save(DecisionTreeClassifier().fit(X, CLASSES), tmp_path / "m")


def test_what_is_shared_stays_shared() -> None:
    array = np.arange(1000.0)
    first, second, third = _through([array, array, [array]])
    assert first is second is third[0]
    description = describe([array, [array]])
    assert len(description.tensors) == 1


# ----- what is refused


def some_function(x: float) -> float:
    return x


class Stranger(DecisionTreeClassifier):
    pass


def test_code_is_refused_by_its_place(tmp_path: Path) -> None:
    path = tmp_path / "model"
    forest = RandomForestClassifier(2, callbacks=[some_function]).fit(X, CLASSES)
    with pytest.raises(TypeError, match=r"RandomForestClassifier\.callbacks\[0\] is the function"):
        spinney.save(forest, path)
    with pytest.raises(TypeError, match=r"Stranger: a model file holds"):
        spinney.save(Stranger().fit(X, CLASSES), path)
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


def rewritten(path: Path, **changes: Any) -> None:
    """Change texts of a model file's header, with checksums to match."""
    import hashlib

    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = dict(file.metadata())
    header |= {
        name: text if isinstance(text, str) else json.dumps(text) for name, text in changes.items()
    }
    sums = json.loads(header["checksums"])
    for name in ("about", "state"):
        sums[name] = hashlib.sha256(header[name].encode()).hexdigest()
    save_file(load_file(path), path, header | {"checksums": json.dumps(sums)})


@pytest.mark.parametrize(
    ("nodes", "complaint"),
    [
        ([{"kind": "object", "class": "os.system", "state": []}], "may name: 'os.system'"),
        ([{"kind": "object", "class": "spinney.tree.export_text"}], "no class"),
        ([{"kind": "object", "class": "spinney._core.Forest"}], "may name"),
        ([{"kind": "object", "class": "spinney.ensemble.ForestStore", "arguments": []}], "none"),
        ([{"kind": "numpy_type", "name": "load"}], "no type"),
        ([{"kind": "list", "items": [{"ref": 0}]}], "not before it"),
        ([{"kind": "list", "items": [{"ref": -1}]}], "not before it"),
        ([{"kind": "array", "dtype": "<f8", "shape": [9], "numbers": "none"}], "cannot be made"),
        ([{"kind": "array", "dtype": "|O", "shape": [9], "numbers": "0"}], "cannot be made"),
        ([{"kind": "code"}], "unknown kind"),
        ([7], "cannot be made"),
        ([], "no model"),
    ],
)
def test_files_that_ask_for_more_than_data(
    nodes: list[Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier().fit(X, CLASSES), path)
    rewritten(path, state=nodes)
    with pytest.raises(ValueError, match=complaint):
        spinney.load(path)


@pytest.mark.parametrize(
    ("array", "place", "value", "complaint"),
    [
        ("children_left", 0, 0, "child of one node"),
        ("children_left", 0, 10**6, "child of one node"),
        ("children_left", 0, -1, "one child"),
        ("feature", 0, 3, "a column that there is not"),
        ("feature", 0, -1, "a column that there is not"),
        ("category_start", 0, 0, "categories that there are not"),
        ("n_categories", 0, -5, "categories of each column"),
        ("n_categories", 0, 7, "other columns than its model"),
    ],
)
def test_trees_that_point_beyond_their_ends(
    array: str, place: int, value: int, complaint: str
) -> None:
    model = DecisionTreeClassifier(random_state=0).fit(X, CLASSES)
    getattr(model.tree_, array)[place] = value
    description = describe(model)
    with pytest.raises(ValueError, match=complaint):
        rebuild(description.nodes, description.tensors)


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(random_state=0).fit(X, CLASSES), path)
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(whole), 60):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=str(path)):
            spinney.load(path)
    for end in (0, 5, 100, len(whole) - 1):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="no model file"):
            spinney.load(path)
    path.write_bytes(whole)
    spinney.load(path)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        spinney.load(tmp_path / "nothing")
    with pytest.raises(OSError, match="not a file"):
        spinney.load(tmp_path)
    save_file({"a": np.zeros(2)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="not a model of Spinney's"):
        spinney.load(tmp_path / "weights")
    spinney.save(DecisionTreeClassifier(), tmp_path / "model")
    rewritten(tmp_path / "model", version="2")
    with pytest.raises(ValueError, match=r"format version 2; Spinney .* reads versions up to 1"):
        spinney.load(tmp_path / "model")


# ----- writing


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(max_depth=1), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        spinney.save(DecisionTreeClassifier(max_depth=2), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_permissions_and_links(tmp_path: Path) -> None:
    path, link = tmp_path / "model", tmp_path / "link"
    spinney.save(DecisionTreeClassifier(), path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600
    path.chmod(0o640)
    link.symlink_to(path)
    spinney.save(DecisionTreeClassifier(max_depth=2), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert spinney.load(path).max_depth == 2
    with pytest.raises(IsADirectoryError, match="folder"):
        spinney.save(DecisionTreeClassifier(), tmp_path)
    with pytest.raises(FileNotFoundError, match="cannot write"):
        spinney.save(DecisionTreeClassifier(), tmp_path / "nowhere" / "model")
