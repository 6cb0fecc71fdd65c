"""Model files: identical models, data without code, complete writing or none."""

from __future__ import annotations

import errno
import importlib
import inspect
import json
import os
import stat
import threading
from dataclasses import replace
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
from spinney.data.table import Schema
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
from spinney.model_file._description import describe_state
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
    estimators = []
    for package in PACKAGES:
        module = importlib.import_module(f"spinney.{package}")
        estimators += [
            getattr(module, name)
            for name in module.__all__
            if inspect.isclass(getattr(module, name))
            and issubclass(getattr(module, name), BaseEstimator)
        ]
    return estimators


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


def outputs_of(model: Any, queries: Any) -> dict[str, Any]:
    """Return all outputs of a model for some rows."""
    outputs = {
        name: getattr(model, name)(queries) for name in METHODS if callable(_get(model, name))
    }
    if hasattr(model, "kneighbors"):
        outputs["kneighbors"], _ = model.kneighbors(queries)
    if type(model).__name__ == "HNSW":
        outputs["query"], _ = model.query(queries, 3)
    return {
        name: output.toarray() if sp.issparse(output) else output
        for name, output in outputs.items()
    }


def _get(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except NotImplementedError:
        return None


def assert_same(model: Any, loaded: Any, queries: Any) -> None:
    expected, actual = outputs_of(model, queries), outputs_of(loaded, queries)
    assert expected
    assert expected.keys() == actual.keys()
    for name, output in expected.items():
        np.testing.assert_array_equal(actual[name], output, err_msg=name, strict=True)


def round_trip(model: Any, folder: Path) -> Any:
    spinney.save(model, folder / "model.spinney")
    return spinney.load(folder / "model.spinney")


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_models_are_saved_after_reading_all_attributes(kind: type[Any], tmp_path: Path) -> None:
    """Attributes that are computed on request do not prevent saving."""
    model = fitted(kind)
    attributes = accessible_attributes(model)
    loaded = round_trip(model, tmp_path)
    assert accessible_attributes(loaded) == attributes
    round_trip(loaded, tmp_path)  # after reading its attributes, too


def accessible_attributes(model: Any) -> list[str]:
    """Read every public attribute; return the names of those that exist."""
    return [name for name in dir(model) if not name.startswith("_") and hasattr(model, name)]


@pytest.mark.parametrize("kind", public_estimators(), ids=lambda kind: kind.__name__)
def test_models_of_one_column_and_of_several_targets(kind: type[Any], tmp_path: Path) -> None:
    model = fitted(kind)
    if kind.__name__ != "ID3Classifier":
        y = NUMBERS if is_regressor(model) else CLASSES
        if kind.__name__ == "GradientBoostingRanker":
            return
        model.fit(X[:, :1], y)
        assert_same(model, round_trip(model, tmp_path), QUERIES[:, :1])
    two_targets = np.column_stack(
        [NUMBERS, -NUMBERS] if is_regressor(model) else [CLASSES, CLASSES]
    )
    try:
        model.fit(X, two_targets)
    except (NotImplementedError, TypeError, ValueError):
        return  # does not support several targets
    loaded = round_trip(model, tmp_path)
    if hasattr(model, "predict"):
        np.testing.assert_array_equal(loaded.predict(QUERIES), model.predict(QUERIES))


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_family_with_a_mixed_table(family: Any, task: Any, tmp_path: Path) -> None:
    if task not in family.tasks:
        pytest.skip("not for this task")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "city": RNG.choice(["Bath", "York"], 90)})
    frame.loc[::7, "a"] = np.nan
    y = CLASSES if task == "classification" else NUMBERS
    model = family.make(task, 0, 1).fit(frame, y)
    loaded = round_trip(model, tmp_path)
    unseen = frame.iloc[:20].assign(city=["Ely", "Bath"] * 10)
    np.testing.assert_array_equal(loaded.predict(unseen), model.predict(unseen), strict=True)


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
def test_estimators_with_other_parameters_and_components(model: Any, tmp_path: Path) -> None:
    model.fit(X, NUMBERS if is_regressor(model) else CLASSES)
    assert_same(model, round_trip(model, tmp_path), QUERIES)


# Estimators that need more than `kind().fit(X, y)`.
_PAIR = [("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))]
_REGRESSOR_PAIR = [("a", LinearRegression()), ("b", DecisionTreeRegressor(max_depth=2))]
_SCALED = [("scaled", StandardScaler(), [0, 1])]
_CREATE: dict[str, Any] = {
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
    "StackingRegressor": lambda kind: kind(_REGRESSOR_PAIR, cv=2),
    "VotingClassifier": lambda kind: kind(_PAIR, voting="soft"),
    "VotingRegressor": lambda kind: kind(_REGRESSOR_PAIR),
}
# Classes that only occur inside other models or have no table as input.
_COMPONENTS = {
    *("_CalibratedClassifier", "_SigmoidCalibration", "_TemperatureScaling"),
    *("_ConstantPredictor", "Hinge", "Bunch"),
}


@pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package, names in _THEIRS.items() for name in names],
    ids=lambda part: part,
)
def test_every_supported_scikit_learn_class(package: str, name: str, tmp_path: Path) -> None:
    if name in _COMPONENTS:
        pytest.skip("only used in other models, with which it is tested")
    kind = getattr(importlib.import_module(package), name)
    model = _CREATE.get(name, lambda kind: kind())(kind)
    X_train, X_test = X, QUERIES
    if name in ("LabelBinarizer", "LabelEncoder"):
        X_train, X_test = CLASSES, CLASSES[:20]
        model.fit(X_train)
    elif name == "MultiOutputClassifier":
        model.fit(X, np.column_stack([CLASSES, CLASSES == "yes"]))
    elif name == "MultiOutputRegressor":
        model.fit(X, np.column_stack([NUMBERS, -NUMBERS]))
    elif name in ("MultinomialNB", "KNNImputer", "MissingIndicator", "OneHotEncoder"):
        X_train, X_test = np.floor(np.abs(X)), np.clip(np.floor(np.abs(QUERIES)), 0, 1)
        if name in ("KNNImputer", "MissingIndicator"):
            X_train, X_test = (
                np.where(X_train > 1, np.nan, X_train),
                np.where(X_test > 0, np.nan, X_test),
            )
        model.fit(X_train, CLASSES)
    elif name == "OrdinalEncoder":
        X_test = X[:20]
        model.fit(X)
    elif name == "IsotonicRegression":
        X_train, X_test = X[:, 0], QUERIES[:, 0]
        model.fit(X_train, NUMBERS)
    else:
        model.fit(X, NUMBERS if is_regressor(model) else CLASSES)
    loaded = round_trip(model, tmp_path)
    assert type(loaded) is kind
    assert_same(model, loaded, X_test)


@pytest.mark.parametrize("method", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("classes", [CLASSES, np.digitize(NUMBERS, [-1.0, 1.0])], ids=["2", "3"])
def test_calibrated_classifiers_are_saved(method: str, classes: Any, tmp_path: Path) -> None:
    model = CalibratedClassifierCV(DecisionTreeClassifier(max_depth=3), method=method, cv=2)
    try:
        model.fit(X, classes)
    except ValueError:
        pytest.skip("not in this version of scikit-learn")
    assert_same(model, round_trip(model, tmp_path), QUERIES)


@pytest.mark.parametrize(
    "function", [chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression]
)
def test_score_functions_of_feature_selection_are_saved(function: Any, tmp_path: Path) -> None:
    model = SelectKBest(function, k=2)
    if function is chi2:
        model.fit(np.abs(X), CLASSES)
    else:
        model.fit(X, NUMBERS if "regression" in function.__name__ else CLASSES)
    loaded = round_trip(model, tmp_path)
    assert loaded.score_func is function
    assert_same(model, loaded, QUERIES)
    with pytest.raises(TypeError, match=r"SelectKBest\.score_func is the function .*some_function"):
        spinney.save(SelectKBest(some_function), tmp_path / "model")


@pytest.mark.filterwarnings("ignore:Label")
def test_constant_labels_are_saved(tmp_path: Path) -> None:
    model = OneVsRestClassifier(LogisticRegression())
    model.fit(X, np.column_stack([CLASSES == "yes", np.ones(90, dtype=bool)]).astype(int))
    assert_same(model, round_trip(model, tmp_path), QUERIES)


def test_column_transformers_are_saved_and_functions_raise(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = ColumnTransformer([("some", StandardScaler(), ["a"]), ("same", "passthrough", ["c"])])
    with_remainder = ColumnTransformer([("some", StandardScaler(), ["a"])], remainder="passthrough")
    for columns in (named, with_remainder):
        model = make_pipeline(columns, LinearRegression()).fit(frame, NUMBERS)
        loaded = round_trip(model, tmp_path)
        assert_same(model, loaded, frame)
        assert list(loaded[0].get_feature_names_out()) == list(model[0].get_feature_names_out())
    target = TransformedTargetRegressor(LinearRegression()).fit(X, NUMBERS)
    assert_same(target, round_trip(target, tmp_path), QUERIES)
    with pytest.raises(TypeError, match=r"FunctionTransformer\.func is the function numpy\.log1p"):
        spinney.save(FunctionTransformer(np.log1p), tmp_path / "model")
    with pytest.raises(TypeError, match=r"\.inverse_func is the class numpy\.float32"):
        spinney.save(FunctionTransformer(inverse_func=np.float32), tmp_path / "model")


def test_search_raises_and_names_its_best_estimator(tmp_path: Path) -> None:
    search = GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, CLASSES)
    with pytest.raises(TypeError, match=r"GridSearchCV.*cannot hold: save its best_estimator_"):
        spinney.save(search, tmp_path / "model")
    spinney.save(search.best_estimator_, tmp_path / "model")


def test_neighbours_of_sparse_rows_and_of_strings_are_saved(tmp_path: Path) -> None:
    rows = sp.random(60, 8, density=0.3, random_state=0, format="csr")
    model = KNeighborsRegressor(3).fit(rows, np.arange(60.0))
    assert_same(model, round_trip(model, tmp_path), rows)
    strings = ["kitten", "sitting", "mitten", "saturday"]
    by_edit_distance = KNeighborsClassifier(1, metric="edit").fit(strings, [0, 1, 2, 3])
    assert_same(by_edit_distance, round_trip(by_edit_distance, tmp_path), strings)


def test_unfitted_model_is_saved(tmp_path: Path) -> None:
    tree = round_trip(DecisionTreeClassifier(max_depth=3), tmp_path)
    assert tree.get_params() == DecisionTreeClassifier(max_depth=3).get_params()
    assert not hasattr(tree, "tree_")


def test_about_is_read_without_arrays(tmp_path: Path) -> None:
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


def test_training_facts_become_json(tmp_path: Path) -> None:
    path = tmp_path / "tree"
    facts = {"rows": np.int64(2), "error": np.float32(np.nan), "by": {np.str_("a"): np.arange(2)}}
    spinney.save(DecisionTreeClassifier(), path, training=facts)
    assert read_about(path)["training"] == {"rows": 2, "error": None, "by": {"a": [0, 1]}}
    for invalid, message in (
        ({"a": [1, {2}]}, r"training\['a'\]\[1\]: expected a JSON value, got a set"),
        ({(1, 2): 3}, "training: expected strings as keys, got a tuple"),
    ):
        with pytest.raises(TypeError, match=message):
            spinney.save(DecisionTreeClassifier(), path, training=invalid)


def test_paths_as_bytes(tmp_path: Path) -> None:
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


def _round_trip_of_value(value: Any) -> Any:
    """Describe a value, convert the description to JSON and back, and rebuild it."""
    description = describe_state([value])  # a list, as inline values need a node
    return rebuild(json.loads(json.dumps(description.nodes)), description.tensors)[0]


@settings(max_examples=200, deadline=None)
@given(_VALUES)
def test_values_are_rebuilt_unchanged(value: Any) -> None:
    # `repr` distinguishes True from 1 and -0.0 from 0.0.
    assert repr(_round_trip_of_value(value)) == repr(value)


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
def test_arrays_are_rebuilt_unchanged(array: np.ndarray) -> None:
    rebuilt = _round_trip_of_value(array)
    assert rebuilt.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(rebuilt, array)
    assert np.array_equal(np.signbit(rebuilt), np.signbit(array)) if array.dtype == float else True
    if array.ndim > 1:
        assert rebuilt.flags.f_contiguous == array.flags.f_contiguous
    assert rebuilt.flags.writeable


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
def test_long_lists_are_rebuilt_unchanged(values: list[Any], kind: type[Any]) -> None:
    expected = kind(values)
    rebuilt = _round_trip_of_value(expected)
    assert type(rebuilt) is kind
    assert sorted(map(repr, rebuilt)) == sorted(map(repr, expected))
    assert kind is frozenset or repr(rebuilt) == repr(expected)


def test_too_many_nodes_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.model_file.files._MOST_JSON", 1000)
    with pytest.raises(ValueError, match="too many parts"):
        spinney.save(DecisionTreeClassifier().fit(X, CLASSES), tmp_path / "m")


def test_shared_arrays_stay_shared() -> None:
    array = np.arange(1000.0)
    first, second, third = _round_trip_of_value([array, array, [array]])
    assert first is second is third[0]
    description = describe_state([array, [array]])
    assert len(description.tensors) == 1


# ----- errors


def some_function(x: float) -> float:
    return x


class UnknownEstimator(DecisionTreeClassifier):
    pass


def test_functions_and_unknown_classes_raise_with_their_path(tmp_path: Path) -> None:
    path = tmp_path / "model"
    forest = RandomForestClassifier(2, callbacks=[some_function]).fit(X, CLASSES)
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
def test_only_models_are_saved(thing: Any, what: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=f"model: expected an estimator, got {what}"):
        spinney.save(thing, tmp_path / "model")
    assert os.listdir(tmp_path) == []


def rewrite_header(path: Path, **changes: Any) -> None:
    """Replace texts in the header of a model file; update the checksums."""
    import hashlib

    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = dict(file.metadata())
    header |= {
        name: text if isinstance(text, str) else json.dumps(text) for name, text in changes.items()
    }
    checksums = json.loads(header["checksums"])
    for name in ("about", "state"):
        checksums[name] = hashlib.sha256(header[name].encode()).hexdigest()
    save_file(load_file(path), path, header | {"checksums": json.dumps(checksums)})


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
    with pytest.raises(ValueError, match="negative or NaN"):  # the search did not end
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


def test_missing_and_foreign_files_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file"):
        spinney.load(tmp_path / "nothing")
    for read in (spinney.load, spinney.describe, DecisionTreeClassifier.load, HNSW.load):
        with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
            read(tmp_path)
    save_file({"a": np.zeros(2)}, tmp_path / "weights")
    with pytest.raises(ValueError, match="not a Spinney model"):
        spinney.load(tmp_path / "weights")
    spinney.save(DecisionTreeClassifier(), tmp_path / "model")
    rewrite_header(tmp_path / "model", version="2")
    with pytest.raises(ValueError, match=r"format version 2; Spinney .* reads versions up to 1"):
        spinney.load(tmp_path / "model")
    rewrite_header(tmp_path / "model", version="0" * 5000 + "1")  # more digits than Python reads
    with pytest.raises(ValueError, match=r"model: format version 0+; Spinney .* up to 1"):
        spinney.load(tmp_path / "model")
    header = b'{"w":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}'
    (tmp_path / "weights").write_bytes(len(header).to_bytes(8, "little") + header + b"\0\0")
    with pytest.raises(ValueError, match=r"weights: .*unsupported dtype BF16"):
        spinney.describe(tmp_path / "weights")


# ----- writing


def test_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    spinney.save(DecisionTreeClassifier(max_depth=1), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        spinney.save(DecisionTreeClassifier(max_depth=2), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]


def test_longest_file_names_of_the_system(tmp_path: Path) -> None:
    for name in ("m" * 255, "ü" * 127, "木" * 85):
        spinney.save(DecisionTreeClassifier(), tmp_path / name)
        spinney.load(tmp_path / name)


def test_save_keeps_permissions_and_links(tmp_path: Path) -> None:
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
def test_save_writes_to_pipes(model: Any, named: bool, tmp_path: Path) -> None:
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
    else:  # like process substitution of a shell: the path is not a file name
        read_end, write_end = os.pipe()
        with open(read_end, "rb") as stream:
            reader = threading.Thread(target=lambda: received.append(stream.read()))
            reader.start()
            model.save(f"/dev/fd/{write_end}")
            os.close(write_end)
            reader.join()
    (tmp_path / "received").write_bytes(received[0])
    loaded = type(model).load(tmp_path / "received")
    assert_same(model, loaded, QUERIES)


def test_failed_writes_raise_and_keep_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "model"
    tree = DecisionTreeClassifier().fit(X, CLASSES)
    spinney.save(tree, path)
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))  # like a full disk
    try:
        with pytest.raises(OSError, match=f"cannot write to {path}: ") as caught:
            spinney.save(tree, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.errno == errno.EFBIG
    flush = os.fsync

    def fail_fsync(*, for_folders: bool) -> None:
        def fsync(handle: int) -> None:
            if stat.S_ISDIR(os.fstat(handle).st_mode) == for_folders:
                raise OSError(errno.EIO, "the disk failed")
            flush(handle)

        monkeypatch.setattr(os, "fsync", fsync)

    fail_fsync(for_folders=False)
    with pytest.raises(OSError, match="the disk failed"):
        spinney.save(tree, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]
    fail_fsync(for_folders=True)  # not every system can flush folders
    spinney.save(tree, path)
