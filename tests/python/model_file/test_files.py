"""Model files: the same model to the bit, data alone, whole or not at all."""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import os
import stat
import threading
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
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_selection import (
    SelectKBest,
    chi2,
    f_classif,
    f_regression,
    mutual_info_classif,
    mutual_info_regression,
)
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import BallTree
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import spinney
from spinney.comparison.families import FAMILIES
from spinney.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from spinney.io import read_about
from spinney.linear_model import LinearRegression, LogisticRegression, PolynomialRegression
from spinney.mixture import MixtureClassifier, PlugInClassifier
from spinney.model_file._description import describe
from spinney.model_file._rebuilding import rebuild
from spinney.model_file.allowed_classes import _THEIRS
from spinney.neighbors import HNSW, KNeighborsClassifier, KNeighborsRegressor
from spinney.tree import (
    C45Rules,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    PartitionRegressor,
    QuadTreeRegressor,
)

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
def test_models_that_were_looked_at(kind: type[Any], tmp_path: Path) -> None:
    """What a model keeps once it was asked for must not stand against writing it."""
    model = fitted(kind)
    said = looked_at(model)
    again = round_trip(model, tmp_path)
    assert looked_at(again) == said
    round_trip(again, tmp_path)  # which was looked at too


def looked_at(model: Any) -> list[str]:
    """Ask for every public attribute, and return the names of those that are there."""
    return [name for name in dir(model) if not name.startswith("_") and hasattr(model, name)]


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


# How to make those that are more than `kind().fit(X, y)`.
_PAIR = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))]
_PAIR_OF_NUMBERS = [("a", LinearRegression()), ("b", DecisionTreeRegressor(max_depth=2))]
_SCALED = [("scaled", StandardScaler(), [0, 1])]
_MADE: dict[str, Any] = {
    "CalibratedClassifierCV": lambda kind: kind(LogisticRegression(), cv=2),
    "ColumnTransformer": lambda kind: kind(_SCALED, remainder="passthrough"),
    "FeatureUnion": lambda kind: kind([("a", StandardScaler()), ("b", "passthrough")]),
    "FrozenEstimator": lambda kind: kind(LogisticRegression().fit(X, CLASSES)),
    "MultiOutputClassifier": lambda kind: kind(DecisionTreeClassifier(max_depth=2)),
    "MultiOutputRegressor": lambda kind: kind(LinearRegression()),
    "OneVsRestClassifier": lambda kind: kind(LogisticRegression()),
    "Pipeline": lambda kind: kind([("scaler", StandardScaler()), ("model", LogisticRegression())]),
    "SelectKBest": lambda kind: kind(k=2),
    "StackingClassifier": lambda kind: kind(_PAIR, cv=2),
    "StackingRegressor": lambda kind: kind(_PAIR_OF_NUMBERS, cv=2),
    "VotingClassifier": lambda kind: kind(_PAIR, voting="soft"),
    "VotingRegressor": lambda kind: kind(_PAIR_OF_NUMBERS),
}
# Parts of the others, and what takes no table.
_INSIDE = {
    *("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    *("_ConstantPredictor", "Hinge", "Bunch"),
}


@pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package, names in _THEIRS.items() for name in names],
    ids=lambda part: part,
)
def test_every_class_of_scikit_learns(package: str, name: str, tmp_path: Path) -> None:
    if name in _INSIDE:
        pytest.skip("a part of other models, with which it is tested")
    kind = getattr(importlib.import_module(package), name)
    model = _MADE.get(name, lambda kind: kind())(kind)
    rows, queries = X, QUERIES
    if name in ("LabelBinarizer", "LabelEncoder"):
        rows, queries = CLASSES, CLASSES[:20]
        model.fit(rows)
    elif name == "MultiOutputClassifier":
        model.fit(X, np.column_stack([CLASSES, CLASSES == "yes"]))
    elif name == "MultiOutputRegressor":
        model.fit(X, np.column_stack([NUMBERS, -NUMBERS]))
    elif name in ("MultinomialNB", "KNNImputer", "MissingIndicator", "OneHotEncoder"):
        rows, queries = np.floor(np.abs(X)), np.clip(np.floor(np.abs(QUERIES)), 0, 1)
        if name in ("KNNImputer", "MissingIndicator"):
            rows, queries = np.where(rows > 1, np.nan, rows), np.where(queries > 0, np.nan, queries)
        model.fit(rows, CLASSES)
    elif name == "OrdinalEncoder":
        queries = X[:20]
        model.fit(X)
    elif name == "IsotonicRegression":
        rows, queries = X[:, 0], QUERIES[:, 0]
        model.fit(rows, NUMBERS)
    else:
        model.fit(X, NUMBERS if is_regressor(model) else CLASSES)
    again = round_trip(model, tmp_path)
    assert type(again) is kind
    assert_same(model, again, queries)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("classes", [CLASSES, np.digitize(NUMBERS, [-1.0, 1.0])], ids=["2", "3"])
def test_calibrated_classifiers(method: str, classes: Any, tmp_path: Path) -> None:
    model = CalibratedClassifierCV(DecisionTreeClassifier(max_depth=3), method=method, cv=2)
    try:
        model.fit(X, classes)
    except ValueError:
        pytest.skip("not in this version of scikit-learn")
    assert_same(model, round_trip(model, tmp_path), QUERIES)


@pytest.mark.parametrize(
    "function", [chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression]
)
def test_functions_that_select_columns(function: Any, tmp_path: Path) -> None:
    model = SelectKBest(function, k=2)
    if function is chi2:
        model.fit(np.abs(X), CLASSES)
    else:
        model.fit(X, NUMBERS if "regression" in function.__name__ else CLASSES)
    again = round_trip(model, tmp_path)
    assert again.score_func is function
    assert_same(model, again, QUERIES)
    with pytest.raises(TypeError, match=r"SelectKBest\.score_func is the function .*some_function"):
        spinney.save(SelectKBest(some_function), tmp_path / "model")


@pytest.mark.filterwarnings("ignore:Label")
def test_labels_that_are_all_alike(tmp_path: Path) -> None:
    model = OneVsRestClassifier(LogisticRegression())
    model.fit(X, np.column_stack([CLASSES == "yes", np.ones(90, dtype=bool)]).astype(int))
    assert_same(model, round_trip(model, tmp_path), QUERIES)


def test_columns_that_pass_through(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = ColumnTransformer([("some", StandardScaler(), ["a"]), ("same", "passthrough", ["c"])])
    others = ColumnTransformer([("some", StandardScaler(), ["a"])], remainder="passthrough")
    for columns in (named, others):
        model = make_pipeline(columns, LinearRegression()).fit(frame, NUMBERS)
        again = round_trip(model, tmp_path)
        assert_same(model, again, frame)
        assert list(again[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    target = TransformedTargetRegressor(LinearRegression()).fit(X, NUMBERS)
    assert_same(target, round_trip(target, tmp_path), QUERIES)
    with pytest.raises(TypeError, match=r"FunctionTransformer\.func is the function numpy\.log1p"):
        spinney.save(FunctionTransformer(np.log1p), tmp_path / "model")
    with pytest.raises(TypeError, match=r"\.inverse_func is the class numpy\.float32"):
        spinney.save(FunctionTransformer(inverse_func=np.float32), tmp_path / "model")


def test_a_search_points_to_what_it_found(tmp_path: Path) -> None:
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, CLASSES)
    with pytest.raises(TypeError, match=r"GridSearchCV.*cannot hold: save its best_estimator_"):
        spinney.save(search, tmp_path / "model")
    spinney.save(search.best_estimator_, tmp_path / "model")


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


def test_facts_about_the_fit(tmp_path: Path) -> None:
    path = tmp_path / "tree"
    facts = {"rows": np.int64(2), "error": np.float32(np.nan), "by": {np.str_("a"): np.arange(2)}}
    spinney.save(DecisionTreeClassifier(), path, training=facts)
    assert read_about(path)["training"] == {"rows": 2, "error": None, "by": {"a": [0, 1]}}
    for wrong, complaint in (
        ({"a": [1, {2}]}, r"training\['a'\]\[1\]: expected a JSON value, got a set"),
        ({(1, 2): 3}, "training: expected strings as keys, got a tuple"),
    ):
        with pytest.raises(TypeError, match=complaint):
            spinney.save(DecisionTreeClassifier(), path, training=wrong)


def test_paths_of_bytes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "model")
    for model in (DecisionTreeClassifier(), HNSW().fit(X)):
        model.save(path)  # type: ignore[arg-type]
        assert type(model).load(path).get_params() == model.get_params()  # type: ignore[arg-type]
    spinney.save(DecisionTreeClassifier(max_depth=3), path)  # type: ignore[arg-type]
    assert spinney.load(path, mmap=np.False_).max_depth == 3  # type: ignore[arg-type]
    assert spinney.load(path, mmap=np.True_).max_depth == 3  # type: ignore[arg-type]
    assert spinney.describe(path)["changed"] == ["max_depth"]  # type: ignore[arg-type]


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
    | st.sampled_from(
        [np.datetime64("2020-01-01"), np.datetime64("NaT", "s"), np.timedelta64(-3, "ms")]
    )
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
    monkeypatch.setattr("spinney.model_file.files._MOST_JSON", 1000)
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


@pytest.mark.parametrize(
    ("thing", "what"),
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
def test_models_alone_are_saved(thing: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=f"model: expected an estimator, got {what}"):
        spinney.save(thing, tmp_path / "model")
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
        ("feature", 0, 3, "a column out of range"),
        ("feature", 0, -1, "a column out of range"),
        ("category_start", 0, 0, "categories out of range"),
        ("n_categories", 0, -5, "number of categories of each column"),
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


@pytest.mark.parametrize("n_features", [10**9, 10**15, 2**63, -1])
def test_trees_of_columns_that_there_are_not(n_features: int) -> None:
    description = describe(DecisionTreeRegressor(max_depth=2).fit(X, NUMBERS))
    tree = next(node for node in description.nodes if node.get("class") == "spinney.tree.Tree")
    tree["arguments"][0] = n_features
    with pytest.raises(ValueError, match=r"column|is invalid|[Mm]aximum|negative"):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize("kind", [PartitionRegressor, QuadTreeRegressor])
def test_tables_of_more_columns_than_any_has(kind: type[Any]) -> None:
    model = kind().fit(X, NUMBERS)
    model.n_features_in_ = 10**9  # for each of which `export_text` would make a name
    description = describe(model)
    with pytest.raises(ValueError, match="1000000000 columns, expected at most"):
        rebuild(description.nodes, description.tensors)


def test_classes_that_are_counted_wrong() -> None:
    model = AdaBoostClassifier(n_estimators=2).fit(X, CLASSES)
    model.n_classes_ = 10**9
    description = describe(model)
    with pytest.raises(ValueError, match=r"n_classes_ does not match|expected at most"):
        rebuild(description.nodes, description.tensors)


@pytest.mark.parametrize("n_scores", [2, 10**9])
def test_boosters_of_scores_that_there_are_not(n_scores: int) -> None:
    model = GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
    model._n_scores = n_scores
    description = describe(model)
    with pytest.raises(ValueError, match=r"expected at most|another number of scores"):
        rebuild(description.nodes, description.tensors)


def test_polynomials_of_more_powers_than_terms() -> None:
    model = PolynomialRegression(degree=2).fit(X, X[:, 0])
    model.degree_ = 10**9
    description = describe(model)
    with pytest.raises(ValueError, match="another degree"):
        rebuild(description.nodes, description.tensors)


def test_weights_of_columns_that_equal_nothing() -> None:
    table = pd.DataFrame({"size": X[:, 0], "city": np.where(X[:, 1] > 0, "Bath", "Ely")})
    model = KNeighborsClassifier(2, metric="gower").fit(table, CLASSES)
    *others, code_weights, misses = model._index._columns
    model._index._columns = (*others, np.full_like(code_weights, np.nan), misses)
    description = describe(model)
    with pytest.raises(ValueError, match="negative or NaN"):  # it went on for ever
        rebuild(description.nodes, description.tensors).predict(table)


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
        with pytest.raises(ValueError, match="not a model file"):
            spinney.load(path)
    path.write_bytes(whole)
    spinney.load(path)


@pytest.mark.parametrize("about", ["null", "[]", '"x"', "{}", '{"class": 5}'])
def test_a_file_that_says_nothing_of_its_model(about: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(), path)
    rewritten(path, about=about)
    for read in (spinney.load, spinney.describe, read_about, DecisionTreeClassifier.load):
        with pytest.raises(ValueError, match=f"{path}: damaged .about"):
            read(path)
    rewritten(path, about='{"class": "os.system"}')
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
def test_a_file_without_a_model(node: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(), path)
    rewritten(path, state=json.dumps([node]))
    with pytest.raises(ValueError, match="which is not a model"):
        spinney.load(path)


def test_other_files(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        spinney.load(tmp_path / "nothing")
    for read in (spinney.load, spinney.describe, DecisionTreeClassifier.load, HNSW.load):
        with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
            read(tmp_path)
    save_file({"a": np.zeros(2)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="not a Spinney model"):
        spinney.load(tmp_path / "weights")
    spinney.save(DecisionTreeClassifier(), tmp_path / "model")
    rewritten(tmp_path / "model", version="2")
    with pytest.raises(ValueError, match=r"format version 2; Spinney .* reads versions up to 1"):
        spinney.load(tmp_path / "model")
    rewritten(tmp_path / "model", version="0" * 5000 + "1")  # more digits than Python reads
    with pytest.raises(ValueError, match=r"model: format version 0+; Spinney .* up to 1"):
        spinney.load(tmp_path / "model")
    header = b'{"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "weights").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(ValueError, match=r"weights: .*unsupported dtype BF16"):
        spinney.describe(tmp_path / "weights")


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


def test_names_as_long_as_the_system_takes(tmp_path: Path) -> None:
    for name in ("m" * 255, "ü" * 127, "木" * 85):
        spinney.save(DecisionTreeClassifier(), tmp_path / name)
        spinney.load(tmp_path / name)


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("model", [DecisionTreeClassifier(), HNSW()], ids=["tree", "graph"])
def test_pipes_are_written_to(model: Any, named: bool, tmp_path: Path) -> None:
    model = model.fit(X, CLASSES)
    model.save(tmp_path / "whole")
    received: list[bytes] = []
    if named:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        reader = threading.Thread(target=lambda: received.append(path.read_bytes()))
        reader.start()
        model.save(path)
        reader.join()
        assert stat.S_ISFIFO(path.stat().st_mode)
        assert sorted(os.listdir(tmp_path)) == ["pipe", "whole"]
    else:  # as of a shell's process substitution: its path leads to no name
        out, into = os.pipe()
        with open(out, "rb") as stream:
            reader = threading.Thread(target=lambda: received.append(stream.read()))
            reader.start()
            model.save(f"/dev/fd/{into}")
            os.close(into)
            reader.join()
    (tmp_path / "received").write_bytes(received[0])
    again = type(model).load(tmp_path / "received")
    assert_same(model, again, QUERIES)


def test_what_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "model"
    tree = DecisionTreeClassifier().fit(X, CLASSES)
    spinney.save(tree, path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # a disk that is full, for a process
    try:
        with pytest.raises(OSError, match=f"cannot write to {path}: ") as caught:
            spinney.save(tree, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    flush = os.fsync

    def fails(*, for_folders: bool) -> None:
        def fsync(handle: int) -> None:
            if stat.S_ISDIR(os.fstat(handle).st_mode) == for_folders:
                raise OSError(errno.EIO, "the disk says no")
            flush(handle)

        monkeypatch.setattr(os, "fsync", fsync)

    fails(for_folders=False)
    with pytest.raises(OSError, match="the disk says no"):
        spinney.save(tree, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]
    fails(for_folders=True)  # not every system can flush those
    spinney.save(tree, path)
