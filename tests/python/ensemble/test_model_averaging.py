"""Bayesian model averaging: weights by hand, variance, choice of the method."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB

from spinney.ensemble import (
    BayesianModelAveragingClassifier,
    BayesianModelAveragingRegressor,
    RandomForestRegressor,
)
from spinney.tree import DecisionTreeClassifier

REGRESSORS = [("line", LinearRegression()), ("constant", DummyRegressor())]
CLASSIFIERS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(max_depth=2))]


def test_weights_by_bic():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60, :2], y[:60]
    model = BayesianModelAveragingRegressor(REGRESSORS).fit(X, y)
    assert model.method_ == "bic"
    bic = []
    for base, k in ((LinearRegression(), 4), (DummyRegressor(), 2)):
        rss = np.sum((y - base.fit(X, y).predict(X)) ** 2)
        bic.append(60 * np.log(rss / 60) + k * np.log(60))
    expected = np.exp(-0.5 * (np.array(bic) - min(bic)))
    np.testing.assert_allclose(model.weights_, expected / expected.sum())
    prior = BayesianModelAveragingRegressor(REGRESSORS, prior=[1, 3]).fit(X, y)
    with_prior = expected * [0.25, 0.75]
    np.testing.assert_allclose(prior.weights_, with_prior / with_prior.sum())


def test_weights_by_cross_validation():
    X, y = load_iris(return_X_y=True)
    folds = KFold(4, shuffle=True, random_state=0)
    model = BayesianModelAveragingClassifier(CLASSIFIERS, cv=folds).fit(X, y)
    assert model.method_ == "cv"
    log_likelihoods = [
        np.log(
            np.maximum(
                cross_val_predict(base, X, y, cv=folds, method="predict_proba")[np.arange(150), y],
                1e-15,
            )
        ).sum()
        for _, base in CLASSIFIERS
    ]
    np.testing.assert_allclose(model.log_evidence_, log_likelihoods)
    expected = np.exp(np.array(log_likelihoods) - max(log_likelihoods))
    np.testing.assert_allclose(model.weights_, expected / expected.sum())
    expected_proba = sum(
        weight * clone(base).fit(X, y).predict_proba(X)
        for weight, (_, base) in zip(model.weights_, CLASSIFIERS, strict=True)
    )
    np.testing.assert_allclose(model.predict_proba(X), expected_proba)


def test_variance_is_within_plus_between():
    X, y = load_diabetes(return_X_y=True)
    models = [("line", LinearRegression()), ("forest", RandomForestRegressor(20, random_state=0))]
    model = BayesianModelAveragingRegressor(models).fit(X, y)
    model.weights_ = np.array([0.3, 0.7])
    variance = model.predict_variance(X)
    line_predicted, forest_predicted = (m.predict(X) for m in model.estimators_)
    np.testing.assert_allclose(
        variance.between, 0.21 * (line_predicted - forest_predicted) ** 2, atol=1e-8
    )
    np.testing.assert_allclose(variance.within, [0.3, 0.7] @ model.noise_variances_)
    np.testing.assert_allclose(variance.total, variance.within + variance.between)
    classifier = BayesianModelAveragingClassifier(CLASSIFIERS).fit(*load_iris(return_X_y=True))
    probabilities = classifier.predict_proba(load_iris().data)
    class_variance = classifier.predict_variance(load_iris().data)
    np.testing.assert_allclose(
        class_variance.total, probabilities * (1 - probabilities), atol=1e-12
    )


def test_true_model_gets_the_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=400)
    models = [("line", LinearRegression()), ("forest", RandomForestRegressor(30, random_state=0))]
    assert BayesianModelAveragingRegressor(models).fit(X, y).weights_[0] > 0.99


def test_invalid_input_raises():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="estimators: expected at least one"):
        BayesianModelAveragingRegressor([]).fit(X, y)
    with pytest.raises(ValueError, match="parameters of 'ridge' is not known"):
        BayesianModelAveragingRegressor([("ridge", Ridge())], method="bic").fit(X, y)
    with pytest.raises(ValueError, match="prior: expected 2 non-negative weights"):
        BayesianModelAveragingRegressor(REGRESSORS, prior=[1]).fit(X, y)
