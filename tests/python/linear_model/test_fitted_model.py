"""Fitted linear models predict the same numbers as their estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax
from sklearn.exceptions import NotFittedError

import spinney
from spinney.linear_model import (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PolynomialRegression,
    Ridge,
    RidgeCV,
)
from spinney.models.linear import LinearModel, PolynomialModel
from spinney.models.outcomes import LargestScore, Numbers, Sides, Softmax, TwoClasses

REGRESSORS = {
    "least squares": (LinearRegression(), 1),
    "least squares, two targets": (LinearRegression(fit_intercept=False), 2),
    "nonnegative least squares": (LinearRegression(positive=True), 1),
    "ridge": (Ridge(), 1),
    "ridge, two targets": (Ridge(solver="svd"), 2),
    "ridge, chosen penalty": (RidgeCV(), 1),
    "ridge, chosen penalties": (RidgeCV(alpha_per_target=True), 2),
    "absolute deviations": (LADRegressor(), 1),
    "absolute deviations, no intercept": (LADRegressor(fit_intercept=False), 1),
    "polynomial": (PolynomialRegression(3), 1),
    "constant": (PolynomialRegression(0), 1),
    "polynomial, two targets": (PolynomialRegression(2), 2),
}
CLASSIFIERS = {
    "logistic": (LogisticRegression(), 2, TwoClasses),
    "logistic, no intercept": (LogisticRegression(fit_intercept=False), 2, TwoClasses),
    "logistic, liblinear": (LogisticRegression(solver="liblinear"), 2, TwoClasses),
    "multinomial": (LogisticRegression(), 4, Softmax),
    "perceptron": (Perceptron(max_iter=3), 2, Sides),
    "perceptron, four classes": (Perceptron(max_iter=3), 4, LargestScore),
    "halfspace": (HalfspaceClassifier(), 2, Sides),
}
WITH_SPARSE_COEF = [name for name in CLASSIFIERS if name != "halfspace"]


def make_rows(seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(60, 4)) + 3.0, rng.normal(size=(25, 4)) + 3.0


def fit_regressor(name):
    model, n_targets = REGRESSORS[name]
    X, _ = make_rows()
    y = np.column_stack([X @ [1.0, 2.0, -1.0, 0.5] + np.sin(9 * X[:, 0]), X[:, 1] ** 2])
    return model.fit(X, y if n_targets == 2 else y[:, 0])


def fit_classifier(name):
    model, n_classes, _ = CLASSIFIERS[name]
    X, _ = make_rows()
    y = X @ [1.0, 2.0, -1.0, 0.5] + np.sin(9 * X[:, 0])
    codes = np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)
    return model.fit(X, np.array(["a", "b", "c", "d"])[codes])


@pytest.mark.parametrize("name", REGRESSORS)
def test_scores_of_regressors_are_predictions(name):
    model = fit_regressor(name)
    fitted = model.fitted_model()
    n_targets = REGRESSORS[name][1]
    assert fitted.outcome == Numbers(flat=n_targets == 1)
    for rows in (*make_rows(), make_rows()[1].astype(np.float32)):
        scores = fitted.raw_scores(rows)
        assert scores.shape == (len(rows), n_targets)
        np.testing.assert_allclose(scores.reshape(model.predict(rows).shape), model.predict(rows))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_scores_of_classifiers_are_decisions(name):
    model = fit_classifier(name)
    fitted = model.fitted_model()
    _, n_classes, outcome = CLASSIFIERS[name]
    assert type(fitted.outcome) is outcome
    np.testing.assert_array_equal(fitted.outcome.classes, model.classes_)
    _, rows = make_rows()
    scores = fitted.raw_scores(rows)
    assert scores.shape == (len(rows), 1 if n_classes == 2 else n_classes)
    decisions = model.decision_function(rows)
    np.testing.assert_allclose(scores.reshape(decisions.shape), decisions)
    best = scores[:, 0] > 0 if n_classes == 2 else scores.argmax(axis=1)
    np.testing.assert_array_equal(model.classes_[best.astype(int)], model.predict(rows))
    if outcome is TwoClasses:
        np.testing.assert_allclose(expit(scores[:, 0]), model.predict_proba(rows)[:, 1])
    elif outcome is Softmax:
        np.testing.assert_allclose(softmax(scores, axis=1), model.predict_proba(rows))


@pytest.mark.parametrize("name", ["least squares", "ridge, two targets", "absolute deviations"])
def test_sparse_rows(name):
    model = fit_regressor(name)
    _, rows = make_rows()
    scores = model.fitted_model().raw_scores(sp.csc_array(rows))
    predictions = model.predict(sp.csr_array(rows))
    np.testing.assert_allclose(scores.reshape(predictions.shape), predictions)


@pytest.mark.parametrize("name", ["least squares", "polynomial", "absolute deviations"])
def test_coefficients_set_by_hand(name):
    model = fit_regressor(name)
    _, rows = make_rows()
    before = model.predict(rows)
    model.coef_ = model.coef_ * 2.0
    assert not np.allclose(model.predict(rows), before)
    np.testing.assert_array_equal(model.fitted_model().raw_scores(rows)[:, 0], model.predict(rows))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", WITH_SPARSE_COEF)
def test_sparse_coefficients(name):
    model = fit_classifier(name)
    _, rows = make_rows()
    expected = model.decision_function(rows)
    model.sparsify()
    np.testing.assert_array_equal(model.decision_function(rows), expected)
    scores = model.fitted_model().raw_scores(rows)
    np.testing.assert_array_equal(scores.reshape(expected.shape), expected)
    model.densify()


def test_models_from_files(tmp_path):
    _, rows = make_rows()
    for name in ("ridge", "absolute deviations", "polynomial, two targets"):
        model = fit_regressor(name)
        model.save(tmp_path / "model")
        fitted, loaded = model.fitted_model(), spinney.load(tmp_path / "model").fitted_model()
        assert type(loaded) is (PolynomialModel if "polynomial" in name else LinearModel)
        np.testing.assert_array_equal(loaded.raw_scores(rows), fitted.raw_scores(rows))


@pytest.mark.parametrize(
    "model", [model for model, *_ in (*REGRESSORS.values(), *CLASSIFIERS.values())]
)
def test_unfitted_models_have_no_value(model):
    with pytest.raises(NotFittedError):
        type(model)().fitted_model()
