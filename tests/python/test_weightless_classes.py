"""All classifiers ignore rows of weight zero, but keep their classes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LinearRegression

import spinney
from spinney.calibration import CalibratedClassifier, ConformalClassifier
from spinney.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from spinney.io import load, save
from spinney.linear_model import LogisticRegression
from spinney.mixture import MixtureClassifier, PlugInClassifier
from spinney.tree import DecisionTreeClassifier, ID3Classifier

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
NOISY = X[:, 0] + 0.3 * RNG.normal(size=150)
TWO = np.array(["no", "yes"])[(NOISY > 0).astype(int)]
THREE = np.array(["few", "many", "none"])[np.digitize(NOISY, [-0.5, 0.5])]
CASES = {
    "first of three": (THREE, "few"),
    "middle of three": (THREE, "many"),
    "last of three": (THREE, "none"),
    "one of two": (TWO, "no"),
}


def _all_classifiers():
    classifiers = {}
    for module in pkgutil.iter_modules(spinney.__path__, "spinney."):
        if module.name.split(".")[1].startswith("_") or module.name == "spinney.dask":
            continue
        for name in getattr(importlib.import_module(module.name), "__all__", []):
            cls = getattr(importlib.import_module(module.name), name)
            if not inspect.isclass(cls) or not inspect.isfunction(getattr(cls, "fit", None)):
                continue
            if not cls.__module__.startswith("spinney."):
                continue
            if "sample_weight" not in inspect.signature(cls.fit).parameters:
                continue
            model = cls()
            if is_classifier(model):
                classifiers[name] = model
    return classifiers


CLASSIFIERS = _all_classifiers() | {
    "ID3Classifier": ID3Classifier(discretizer=4),
    "boosting, 10 rounds": GradientBoostingClassifier(n_estimators=10),
    "boosting, balanced": GradientBoostingClassifier(n_estimators=10, class_weight="balanced"),
    "boosting, folds": GradientBoostingClassifier(n_folds=3),
    "boosting, validation rows": HistGradientBoostingClassifier(early_stopping=True),
    "forest, balanced": RandomForestClassifier(class_weight="balanced"),
    "tree, balanced": DecisionTreeClassifier(class_weight="balanced"),
    "log-odds by regression": PlugInClassifier(regressor=LinearRegression()),
    "AdaBoost, real": AdaBoostClassifier(algorithm="real"),
    "AdaBoost, logistic": AdaBoostClassifier(LogisticRegression(), n_estimators=5),
}

BINARY_ONLY = ("AnyBoostClassifier", "HalfspaceClassifier")


def _fit(name, y, weightless, X=X):
    model = clone(CLASSIFIERS[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, y, sample_weight=np.where(y == weightless, 0.0, 1.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_class_without_weight_is_kept_but_not_predicted(name, case):
    y, weightless = CASES[case]
    n_classes = len(np.unique(y))
    if name in BINARY_ONLY and n_classes > 2:
        with pytest.raises(ValueError, match="Only binary classification"):
            _fit(name, y, weightless)
        return
    if name == "HalfspaceClassifier":  # a halfspace needs points on both sides
        with pytest.raises(ValueError, match="two classes in rows of positive weight"):
            _fit(name, y, weightless)
        return
    model = _fit(name, y, weightless)
    assert model.classes_.tolist() == np.unique(y).tolist()
    has_weight = y != weightless
    assert weightless not in model.predict(X[has_weight])
    assert np.mean(model.predict(X[has_weight]) == y[has_weight]) > 0.8
    if not hasattr(model, "predict_proba"):
        return
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (150, n_classes)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    column = model.classes_.tolist().index(weightless)
    if not name.startswith("AdaBoost"):  # its probabilities are smoothed votes, as in scikit-learn
        assert probabilities[:, column].max() < 1e-3
    assert (probabilities[:, column] < probabilities.max(axis=1)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_without_weight_have_no_effect(name):
    y, weightless = CASES["last of three"]
    if name in BINARY_ONLY:
        return
    moved = X.copy()
    moved[y == weightless] = 100 + 7 * np.random.default_rng(1).random((np.sum(y == weightless), 3))
    other_rows = X[y != weightless]
    model, model_of_moved = _fit(name, y, weightless), _fit(name, y, weightless, moved)
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    expected = getattr(model, method)(other_rows)
    if method == "predict":
        assert np.mean(getattr(model_of_moved, method)(other_rows) == expected) == 1
    else:
        np.testing.assert_allclose(getattr(model_of_moved, method)(other_rows), expected, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        *("MixtureClassifier", "PlugInClassifier", "DecisionTreeClassifier", "C45Classifier"),
        *("CalibratedClassifier", "ConformalClassifier", "LocalClassifier"),
    ],
)
@pytest.mark.parametrize("case", ["first of three", "middle of three", "one of two"])
def test_probabilities_equal_those_without_the_rows(name, case):
    y, weightless = CASES[case]
    has_weight = y != weightless
    model = _fit(name, y, weightless)
    expected = clone(CLASSIFIERS[name])
    if "random_state" in expected.get_params():
        expected.set_params(random_state=0)
    if name == "ConformalClassifier":  # boosting has only one score for two classes
        forest = RandomForestClassifier(n_estimators=10, random_state=0)
        model = ConformalClassifier(forest).fit(X, y, sample_weight=has_weight.astype(float))
        expected = ConformalClassifier(forest)
    expected.fit(X[has_weight], y[has_weight], sample_weight=np.ones(has_weight.sum()))
    other_classes = model.classes_ != weightless
    np.testing.assert_allclose(
        model.predict_proba(X)[:, other_classes], expected.predict_proba(X), atol=1e-12
    )
    assert (model.predict_proba(X)[:, ~other_classes] == 0).all()
    if name == "ConformalClassifier":
        sets = model.predict_set(X)
        np.testing.assert_array_equal(sets[:, other_classes], expected.predict_set(X))
        assert not sets[:, ~other_classes].any()


@pytest.mark.parametrize(
    "model",
    [
        GradientBoostingClassifier(n_estimators=5),
        MixtureClassifier(),
        PlugInClassifier(),
        CalibratedClassifier(DecisionTreeClassifier()),
        ConformalClassifier(DecisionTreeClassifier()),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_with_a_weightless_class_can_be_saved(model, tmp_path):
    y, weightless = CASES["middle of three"]
    model = clone(model).fit(X, y, sample_weight=(y != weightless).astype(float))
    if isinstance(model, PlugInClassifier):
        return  # its densities are scikit-learn's and cannot be saved
    save(model, tmp_path / "model.spinney")
    loaded = load(tmp_path / "model.spinney")
    loaded = getattr(loaded, "model", loaded)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_priors_of_classes_without_weight_must_be_zero():
    y, weightless = CASES["middle of three"]
    weights = (y != weightless).astype(float)
    for kind in (MixtureClassifier, PlugInClassifier):
        model = kind(priors=[0.3, 0, 0.7]).fit(X, y, sample_weight=weights)
        assert model.class_prior_.tolist() == [0.3, 0, 0.7]
        with pytest.raises(ValueError, match="priors: expected 0 for class many"):
            kind(priors=[0.3, 0.1, 0.6]).fit(X, y, sample_weight=weights)


def test_labels_of_rows_without_weight_are_validated():
    y = np.where(np.arange(150) < 10, np.nan, (NOISY > 0).astype(float))
    weights = (np.arange(150) >= 10).astype(float)
    with pytest.raises(ValueError, match="y contains NaN"):
        GradientBoostingClassifier(n_estimators=3).fit(X, y, sample_weight=weights)


def test_warm_start_accepts_rows_of_weight_zero():
    y, weightless = CASES["middle of three"]
    model = GradientBoostingClassifier(n_estimators=5, warm_start=True, random_state=0)
    model.fit(X, y).set_params(n_estimators=8)
    model.fit(X, y, sample_weight=(y != weightless).astype(float))
    assert model.predict_proba(X).shape == (150, 3)


def test_validation_rows_may_have_a_weightless_class():
    y, weightless = CASES["middle of three"]
    model = GradientBoostingClassifier(n_estimators=5)
    model.fit(X, y, sample_weight=(y != weightless).astype(float), eval_set=(X, y))
    assert np.isfinite(model.validation_score_).all()
