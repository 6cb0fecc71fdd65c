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


def test_temperature_is_found() -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(20_000, 3)) * 2
    shares = softmax(logits, axis=1)
    codes = (shares.cumsum(axis=1) > random.uniform(size=(20_000, 1))).argmax(axis=1)
    too_sure = softmax(3 * logits, axis=1)
    calibrator = Calibrator("temperature").fit(too_sure, codes)
    assert calibrator.temperature == pytest.approx(3, rel=0.05)


def test_sigmoid_finds_slope_and_intercept() -> None:
    random = np.random.default_rng(0)
    odds = random.normal(size=50_000)
    true = 1 / (1 + np.exp(-(0.5 * odds + 1)))
    codes = (random.uniform(size=50_000) < true).astype(np.int32)
    told = 1 / (1 + np.exp(-odds))
    (way,) = Calibrator("sigmoid").fit(np.column_stack([1 - told, told]), codes).ways
    np.testing.assert_allclose(way[:2], [0.5, 1.0], atol=0.05)


def test_sigmoid_of_a_rare_class_stays_rare() -> None:
    """Three rows that the model gave a share of zero: the less it says, the likelier they seem."""
    random = np.random.default_rng(0)
    X = random.normal(size=(600, 4))
    y = np.where(X[:, 0] + random.normal(size=600) > 0, "a", "b")
    y = np.concatenate([["zz"] * 3, y[3:]])
    model = CalibratedClassifier(RandomForestClassifier(random_state=0), method="sigmoid")
    shares = model.fit(X, y).predict_proba(random.normal(size=(500, 4)))
    assert shares[:, 2].mean() < 0.01
    assert all(way[0] >= 0 for way in model._calibrator.ways)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_naive_bayes_gets_better(method: str, n_classes: int) -> None:
    X, y = table(n_classes)
    plain = GaussianNB().fit(X[:2000], y[:2000])
    model = CalibratedClassifier(GaussianNB(), method=method, random_state=0)
    shares = model.fit(X[:2000], y[:2000]).predict_proba(X[2000:])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert log_loss(y[2000:], shares) < log_loss(y[2000:], plain.predict_proba(X[2000:]))
    assert model.method_ == method
    assert model.source_ == "rows of folds"


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_about_as_good_as_scikit_learn(method: str) -> None:
    X, y = table(3)
    ours = CalibratedClassifier(GaussianNB(), method=method, random_state=0)
    theirs = CalibratedClassifierCV(GaussianNB(), method=method, ensemble=False)
    losses = [
        log_loss(y[2000:], m.fit(X[:2000], y[:2000]).predict_proba(X[2000:]))
        for m in (ours, theirs)
    ]
    assert losses[0] < losses[1] + 0.02


def test_rows_that_the_model_held_out() -> None:
    X, y = table(2)
    forest = RandomForestClassifier(60, random_state=0)
    model = CalibratedClassifier(forest).fit(X[:2000], y[:2000])
    assert model.source_ == "rows out of the bag"
    plain = forest.fit(X[:2000], y[:2000])
    # The one fit is the forest's own.
    np.testing.assert_array_equal(
        model.estimator_.predict_proba(X[2000:]), plain.predict_proba(X[2000:])
    )
    booster = CalibratedClassifier(GradientBoostingClassifier(random_state=0), cv="oob")
    assert "early stopping" in booster.fit(X[:500], y[:500]).source_
    with pytest.raises(ValueError, match="holds out no rows"):
        CalibratedClassifier(DecisionTreeClassifier(), cv="oob").fit(X, y)


def test_what_is_wrong_is_said() -> None:
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
@pytest.mark.parametrize("inner", [SVC(), spinney.linear_model.Perceptron(), RidgeClassifier()])
def test_margins_become_probabilities(
    inner: Any, n_classes: int, method: str, tmp_path: Path
) -> None:
    X, y = table(n_classes)
    names = np.array(["d", "a", "c", "b"])[y]
    model = CalibratedClassifier(inner, method=method, random_state=0).fit(X[:1000], names[:1000])
    shares = model.predict_proba(X[1000:])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    loss = log_loss(names[1000:], shares)
    kind = "isotonic" if method == "isotonic" else "sigmoid"
    theirs = CalibratedClassifierCV(inner, method=kind, ensemble=False).fit(X[:1000], names[:1000])
    # One temperature for several classes is less than a function for each of them.
    slack = 0.15 if method == "temperature" else 0.03
    assert loss < log_loss(names[1000:], theirs.predict_proba(X[1000:])) + slack
    if not isinstance(inner, spinney.linear_model.Perceptron):
        assert loss < 0.95 * np.log(n_classes)
    else:  # which the noise of this table keeps from learning anything
        spinney.save(model, tmp_path / "m")
        again = spinney.load(tmp_path / "m").predict_proba(X[1000:])
        np.testing.assert_array_equal(again, shares)


def test_units_of_margins_do_not_matter() -> None:
    X, y = table(2, 600)
    one = CalibratedClassifier(RidgeClassifier(), method="sigmoid", random_state=0)
    shares = one.fit(X[:400], y[:400]).predict_proba(X[400:])
    for factor in (1e-3, 1e4):
        model = CalibratedClassifier(_Scaled(factor), method="sigmoid", random_state=0)
        other = model.fit(X[:400], y[:400]).predict_proba(X[400:])
        np.testing.assert_allclose(other, shares, atol=1e-6)


class _Scaled(RidgeClassifier):
    """The same margins in other units."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.factor = factor

    def decision_function(self, X: Any) -> Any:
        return self.factor * super().decision_function(X)


@pytest.mark.parametrize("method", METHODS)
def test_files(method: str, tmp_path: Path) -> None:
    X, y = table(3, 300)
    model = CalibratedClassifier(GaussianNB(), method=method, random_state=0).fit(X, y)
    spinney.save(model, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
