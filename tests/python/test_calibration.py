"""Calibrated probabilities."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

import spinney
from estimator_checks import run_estimator_checks
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
    with pytest.raises(ValueError, match="predict_proba"):
        CalibratedClassifier(spinney.linear_model.Perceptron()).fit(X, y)


@pytest.mark.parametrize("method", METHODS)
def test_files(method: str, tmp_path: Path) -> None:
    X, y = table(3, 300)
    model = CalibratedClassifier(GaussianNB(), method=method, random_state=0).fit(X, y)
    spinney.save(model, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("inner", [GaussianNB(), RandomForestClassifier(10, random_state=0)])
def test_checks_of_estimators(inner: Any) -> None:
    divides = (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    )
    run_estimator_checks(CalibratedClassifier(inner, random_state=0), left_out=divides)
