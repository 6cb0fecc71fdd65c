"""Calibrated probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import spinney
from spinney.calibration import CalibratedClassifier
from spinney.calibration._calibrators import Calibrator
from spinney.ensemble import GradientBoostingClassifier, RandomForestClassifier
from spinney.tree import DecisionTreeClassifier

METHODS = ["temperature", "sigmoid", "isotonic"]


def table(n_classes: int, n: int = 3000) -> tuple[Any, Any]:
    return make_classification(
        n, 12, n_informative=6, n_redundant=4, n_classes=n_classes, flip_y=0.2, random_state=0
    )


def test_temperature_is_estimated() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(20_000, 3)) * 2
    probabilities = softmax(logits, axis=1)
    codes = (probabilities.cumsum(axis=1) > random.uniform(size=(20_000, 1))).argmax(axis=1)
    overconfident = softmax(3 * logits, axis=1)
    calibrator = Calibrator("temperature").fit(overconfident, codes)
    assert calibrator.temperature == pytest.approx(3, rel=0.05)


def test_sigmoid_estimates_slope_and_intercept() -> None:
    random = np.random.default_rng(0)
    odds = random.normal(size=50_000)
    true = 1 / (1 + np.exp(-(0.5 * odds + 1)))
    codes = (random.uniform(size=50_000) < true).astype(np.int32)
    uncalibrated = 1 / (1 + np.exp(-odds))
    (way,) = (
        Calibrator("sigmoid").fit(np.column_stack([1 - uncalibrated, uncalibrated]), codes).ways
    )
    np.testing.assert_allclose(way[:2], [0.5, 1.0], atol=0.05)


def test_sigmoid_of_a_rare_class_stays_rare() -> None:
    """Three rows with predicted probability 0 must not cause a negative slope."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 4))
    y = np.where(X[:, 0] + random.normal(size=600) > 0, "a", "b")
    y = np.concatenate([["zz"] * 3, y[3:]])
    model = CalibratedClassifier(RandomForestClassifier(random_state=0), method="sigmoid")
    probabilities = model.fit(X, y).predict_proba(random.normal(size=(500, 4)))
    assert probabilities[:, 2].mean() < 0.01
    assert all(way[0] >= 0 for way in model._calibrator.ways)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_calibration_improves_naive_bayes(method: str, n_classes: int) -> None:
    X, y = table(n_classes)
    plain = GaussianNB().fit(X[:2000], y[:2000])
    model = CalibratedClassifier(GaussianNB(), method=method, random_state=0)
    probabilities = model.fit(X[:2000], y[:2000]).predict_proba(X[2000:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert ((probabilities >= 0) & (probabilities <= 1)).all()
    assert log_loss(y[2000:], probabilities) < log_loss(y[2000:], plain.predict_proba(X[2000:]))
    assert model.method_ == method
    assert model.source_ == "rows of folds"


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_loss_is_near_that_of_scikit_learn(method: str) -> None:
    X, y = table(3)
    ours = CalibratedClassifier(GaussianNB(), method=method, random_state=0)
    theirs = CalibratedClassifierCV(GaussianNB(), method=method, ensemble=False)
    losses = [
        log_loss(y[2000:], m.fit(X[:2000], y[:2000]).predict_proba(X[2000:]))
        for m in (ours, theirs)
    ]
    assert losses[0] < losses[1] + 0.02


def test_out_of_bag_rows_of_the_model_are_used() -> None:
    X, y = table(2)
    forest = RandomForestClassifier(60, random_state=0)
    model = CalibratedClassifier(forest).fit(X[:2000], y[:2000])
    assert model.source_ == "rows out of the bag"
    plain = forest.fit(X[:2000], y[:2000])
    # The inner model is fitted once, and equals the plain forest.
    np.testing.assert_array_equal(
        model.estimator_.predict_proba(X[2000:]), plain.predict_proba(X[2000:])
    )
    booster = CalibratedClassifier(GradientBoostingClassifier(random_state=0), cv="oob")
    assert "early stopping" in booster.fit(X[:500], y[:500]).source_
    with pytest.raises(ValueError, match="holds out no rows"):
        CalibratedClassifier(DecisionTreeClassifier(), cv="oob").fit(X, y)


def test_invalid_arguments_raise() -> None:
    X, y = table(2, 100)
    with pytest.raises(ValueError, match="method: expected one of"):
        CalibratedClassifier(method="beta").fit(X, y)
    with pytest.raises(ValueError, match="cv: expected"):
        CalibratedClassifier(cv="prefit").fit(X, y)
    hard = VotingClassifier([("bayes", GaussianNB())], voting="hard")
    with pytest.raises(ValueError, match="predict_proba or decision_function"):
        CalibratedClassifier(hard).fit(X, y)
    X, y = table(4, 200)
    with pytest.raises(ValueError, match="a margin for each of 4 classes, got 6"):
        CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("base", [SVC(), spinney.linear_model.Perceptron(), RidgeClassifier()])
def test_decision_functions_become_probabilities(
    base: Any, n_classes: int, method: str, tmp_path: Path
) -> None:
    X, y = table(n_classes)
    names = np.array(["d", "a", "c", "b"])[y]
    model = CalibratedClassifier(base, method=method, random_state=0).fit(X[:1000], names[:1000])
    probabilities = model.predict_proba(X[1000:])
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    loss = log_loss(names[1000:], probabilities)
    kind = "isotonic" if method == "isotonic" else "sigmoid"
    theirs = CalibratedClassifierCV(base, method=kind, ensemble=False).fit(X[:1000], names[:1000])
    # One temperature for several classes is weaker than one function per class.
    tolerance = 0.15 if method == "temperature" else 0.03
    assert loss < log_loss(names[1000:], theirs.predict_proba(X[1000:])) + tolerance
    if not isinstance(base, spinney.linear_model.Perceptron):
        assert loss < 0.95 * np.log(n_classes)
    else:  # the table is too noisy for a perceptron
        spinney.save(model, tmp_path / "m")
        loaded = spinney.load(tmp_path / "m").predict_proba(X[1000:])
        np.testing.assert_array_equal(loaded, probabilities)


def test_scale_of_the_decision_function_does_not_matter() -> None:
    X, y = table(2, 600)
    unscaled = CalibratedClassifier(RidgeClassifier(), method="sigmoid", random_state=0)
    expected = unscaled.fit(X[:400], y[:400]).predict_proba(X[400:])
    for factor in (1e-3, 1e4):
        model = CalibratedClassifier(_Scaled(factor), method="sigmoid", random_state=0)
        probabilities = model.fit(X[:400], y[:400]).predict_proba(X[400:])
        np.testing.assert_allclose(probabilities, expected, atol=1e-6)


class _Scaled(RidgeClassifier):
    """RidgeClassifier with a scaled decision function."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def decision_function(self, X: Any) -> Any:
        return self.factor * super().decision_function(X)


@pytest.mark.parametrize("method", METHODS)
def test_saved_models_predict_the_same(method: str, tmp_path: Path) -> None:
    X, y = table(3, 300)
    model = CalibratedClassifier(GaussianNB(), method=method, random_state=0).fit(X, y)
    spinney.save(model, tmp_path / "model")
    loaded = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
