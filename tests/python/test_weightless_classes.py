"""Rows of weight zero do not count, but their classes stay: the same rule for all classifiers."""

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
    found = {}
    for module in pkgutil.iter_modules(spinney.__path__, "spinney."):
        if module.name.split(".")[1].startswith("_") or module.name == "spinney.dask":
            continue
        for name in getattr(importlib.import_module(module.name), "__all__", []):
            kind = getattr(importlib.import_module(module.name), name)
            if not inspect.isclass(kind) or not inspect.isfunction(getattr(kind, "fit", None)):
                continue
            if "sample_weight" not in inspect.signature(kind.fit).parameters:
                continue
            model = kind()
            if is_classifier(model):
                found[name] = model
    return found


CLASSIFIERS = _all_classifiers() | {
    "ID3Classifier": ID3Classifier(discretizer=4),
    "boosting, 10 rounds": GradientBoostingClassifier(n_estimators=10),
    "boosting, balanced": GradientBoostingClassifier(n_estimators=10, class_weight="balanced"),
    "boosting, folds": GradientBoostingClassifier(n_folds=3),
    "boosting, watched rows": HistGradientBoostingClassifier(early_stopping=True),
    "forest, balanced": RandomForestClassifier(class_weight="balanced"),
    "tree, balanced": DecisionTreeClassifier(class_weight="balanced"),
    "log-odds by regression": PlugInClassifier(regressor=LinearRegression()),
    "AdaBoost, real": AdaBoostClassifier(algorithm="real"),
    "AdaBoost, logistic": AdaBoostClassifier(LogisticRegression(), n_estimators=5),
}

ONLY_TWO = ("AnyBoostClassifier", "HalfspaceClassifier")


def _fit(name, y, gone, X=X):
    model = clone(CLASSIFIERS[name])
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, y, sample_weight=np.where(y == gone, 0.0, 1.0))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_class_without_weight_stays_and_is_not_predicted(name, case):
    y, gone = CASES[case]
    n_classes = len(np.unique(y))
    if name in ONLY_TWO and n_classes > 2:
        with pytest.raises(ValueError, match="Only binary classification"):
            _fit(name, y, gone)
        return
    if name == "HalfspaceClassifier":  # no halfspace has all points on one side
        with pytest.raises(ValueError, match="two classes in rows of positive weight"):
            _fit(name, y, gone)
        return
    model = _fit(name, y, gone)
    assert model.classes_.tolist() == np.unique(y).tolist()
    rest = y != gone
    assert gone not in model.predict(X[rest])
    assert np.mean(model.predict(X[rest]) == y[rest]) > 0.8
    if not hasattr(model, "predict_proba"):
        return
    shares = model.predict_proba(X)
    assert shares.shape == (150, n_classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    column = model.classes_.tolist().index(gone)
    if not name.startswith("AdaBoost"):  # whose probabilities soften votes, as scikit-learn's do
        assert shares[:, column].max() < 1e-3
    assert (shares[:, column] < shares.max(axis=1)).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_rows_without_weight_do_not_count(name):
    y, gone = CASES["last of three"]
    if name in ONLY_TWO:
        return
    moved = X.copy()
    moved[y == gone] = 100 + 7 * np.random.default_rng(1).random((np.sum(y == gone), 3))
    rest = X[y != gone]
    one, other = _fit(name, y, gone), _fit(name, y, gone, moved)
    method = "predict_proba" if hasattr(one, "predict_proba") else "predict"
    expected = getattr(one, method)(rest)
    if method == "predict":
        assert np.mean(getattr(other, method)(rest) == expected) == 1
    else:
        np.testing.assert_allclose(getattr(other, method)(rest), expected, atol=1e-6)


@pytest.mark.parametrize(
    "name",
    [
        *("MixtureClassifier", "PlugInClassifier", "DecisionTreeClassifier", "C45Classifier"),
        *("CalibratedClassifier", "ConformalClassifier", "LocalClassifier"),
    ],
)
@pytest.mark.parametrize("case", ["first of three", "middle of three", "one of two"])
def test_probabilities_are_those_of_the_other_rows_alone(name, case):
    y, gone = CASES[case]
    rest = y != gone
    model = _fit(name, y, gone)
    alone = clone(CLASSIFIERS[name])
    if "random_state" in alone.get_params():
        alone.set_params(random_state=0)
    if name == "ConformalClassifier":  # its boosting has one score for two classes
        forest = RandomForestClassifier(n_estimators=10, random_state=0)
        model = ConformalClassifier(forest).fit(X, y, sample_weight=rest.astype(float))
        alone = ConformalClassifier(forest)
    alone.fit(X[rest], y[rest], sample_weight=np.ones(rest.sum()))
    known = model.classes_ != gone
    np.testing.assert_allclose(model.predict_proba(X)[:, known], alone.predict_proba(X), atol=1e-12)
    assert (model.predict_proba(X)[:, ~known] == 0).all()
    if name == "ConformalClassifier":
        sets = model.predict_set(X)
        np.testing.assert_array_equal(sets[:, known], alone.predict_set(X))
        assert not sets[:, ~known].any()


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
def test_models_with_such_a_class_are_saved(model, tmp_path):
    y, gone = CASES["middle of three"]
    model = clone(model).fit(X, y, sample_weight=(y != gone).astype(float))
    if isinstance(model, PlugInClassifier):
        return  # its densities are scikit-learn's
    save(model, tmp_path / "model.spinney")
    again = load(tmp_path / "model.spinney")
    again = getattr(again, "model", again)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_priors_of_classes_without_weight_must_be_zero():
    y, gone = CASES["middle of three"]
    weights = (y != gone).astype(float)
    for kind in (MixtureClassifier, PlugInClassifier):
        model = kind(priors=[0.3, 0, 0.7]).fit(X, y, sample_weight=weights)
        assert model.class_prior_.tolist() == [0.3, 0, 0.7]
        with pytest.raises(ValueError, match="priors: expected 0 for class many"):
            kind(priors=[0.3, 0.1, 0.6]).fit(X, y, sample_weight=weights)


def test_labels_of_rows_without_weight_are_checked():
    y = np.where(np.arange(150) < 10, np.nan, (NOISY > 0).astype(float))
    weights = (np.arange(150) >= 10).astype(float)
    with pytest.raises(ValueError, match="y contains NaN"):
        GradientBoostingClassifier(n_estimators=3).fit(X, y, sample_weight=weights)


def test_a_warm_start_goes_on_with_rows_of_weight_zero():
    y, gone = CASES["middle of three"]
    model = GradientBoostingClassifier(n_estimators=5, warm_start=True, random_state=0)
    model.fit(X, y).set_params(n_estimators=8)
    model.fit(X, y, sample_weight=(y != gone).astype(float))
    assert model.predict_proba(X).shape == (150, 3)


def test_watched_rows_may_be_of_a_class_without_weight():
    y, gone = CASES["middle of three"]
    model = GradientBoostingClassifier(n_estimators=5)
    model.fit(X, y, sample_weight=(y != gone).astype(float), eval_set=(X, y))
    assert np.isfinite(model.validation_score_).all()
