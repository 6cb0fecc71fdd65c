"""Loaded models equal the saved ones, for every supported class."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import is_regressor
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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import spinney
from spinney.comparison.families import FAMILIES
from spinney.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from spinney.linear_model import LinearRegression, LogisticRegression
from spinney.mixture import MixtureClassifier, PlugInClassifier
from spinney.model_file.allowed_classes import _THEIRS
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor
from spinney.tree import C45Rules, DecisionTreeClassifier, DecisionTreeRegressor
from support.saved_models import (
    CLASSES,
    NUMBERS,
    QUERIES,
    RNG,
    X,
    assert_same,
    fitted,
    public_estimators,
    round_trip,
)


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
    with pytest.raises(TypeError, match=r"SelectKBest\.score_func is the function .*custom_score"):
        spinney.save(SelectKBest(custom_score), tmp_path / "model")


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
    with pytest.raises(TypeError, match=r"\.func is the function numpy\.nan_to_num"):
        spinney.save(FunctionTransformer(np.nan_to_num), tmp_path / "model")
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


def custom_score(x: float) -> float:
    return x
