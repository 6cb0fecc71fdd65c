"""Columns, targets and weights whose squares overflow or underflow float64."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from spinney.linear_model import (
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PolynomialRegression,
    Ridge,
    RidgeCV,
)
from spinney.mixture import GaussianMixture
from spinney.preprocessing import Whitener


def make_rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 0] = np.where(X[:, 0] > 0, 1.0, -1.0)
    return X, X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=n)


REGRESSORS = [
    LinearRegression(),
    LinearRegression(fit_intercept=False),
    Ridge(),
    Ridge(fit_intercept=False),
    RidgeCV(),
    LADRegressor(),
    PolynomialRegression(degree=2),
    PolynomialRegression(),
]


def is_penalised(model):
    return isinstance(model, Ridge | RidgeCV)


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize("size", [1e308, 1e200, 1e-200, 1e-300])
@pytest.mark.parametrize("to_format", [np.asarray, sp.csr_array])
def test_unit_of_a_column_does_not_matter(model, size, to_format):
    if to_format is sp.csr_array and isinstance(model, RidgeCV | PolynomialRegression):
        return  # they use scikit-learn's solver or only accept dense rows
    X, y = make_rows()
    units = np.array([size, 1.0, 1.0])
    moderate_units = np.array([1.0, 1.0, 1.0])
    if is_penalised(model):
        moderate_units[0] = 1e9 if size > 1 else 1e-9  # the penalty has no effect beyond this size
    truth = model.fit(X * moderate_units, y).predict(X * moderate_units)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # scikit-learn checks y and sparse rows for NaN with a sum.
        warnings.filterwarnings("ignore", message="invalid value encountered in reduce")
        predicted = model.fit(to_format(X * units), y).predict(to_format(X * units))
    np.testing.assert_allclose(predicted, truth, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
def test_columns_of_very_different_sizes(model):
    X, y = make_rows()
    units = np.array([1e308, 1.0, 1e-200])
    moderate_units = np.array([1e9, 1.0, 1e-9]) if is_penalised(model) else np.ones(3)
    truth = model.fit(X * moderate_units, y).predict(X * moderate_units)
    predicted = model.fit(X * units, y).predict(X * units)
    np.testing.assert_allclose(predicted, truth, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize("constant", [1e308, -1e300, 1e-300])
def test_constant_column_of_extreme_size(model, constant):
    X, y = make_rows()
    if not getattr(model, "fit_intercept", True):
        return
    X[:, 0] = 1.0
    truth = model.fit(X, y).predict(X)
    X[:, 0] = constant
    np.testing.assert_allclose(model.fit(X, y).predict(X), truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize("size", [5e306, 1e300, 1e-300])
def test_scale_of_the_target_does_not_matter(model, size):
    X, y = make_rows()
    truth = model.fit(X, y).predict(X)
    if isinstance(model, RidgeCV) and size > 1:
        with pytest.raises(ValueError, match=r"y: values up to .* divide y"):
            model.fit(X, y * size)
        return
    np.testing.assert_allclose(model.fit(X, y * size).predict(X) / size, truth, rtol=1e-7)


@pytest.mark.parametrize("model", REGRESSORS, ids=str)
@pytest.mark.parametrize("size", [1e308, 1e300, 1e-300])
def test_scale_of_weights_does_not_matter(model, size):
    X, y = make_rows()
    weights = np.random.default_rng(1).uniform(0.5, 1, len(X))
    if isinstance(model, RidgeCV) and size == 1e308:
        with pytest.raises(ValueError, match=r"sample_weight: weights up to"):
            model.fit(X, y, weights * size)
        return
    moderate_scale = 1.0
    if is_penalised(model):
        moderate_scale = 1e12 if size > 1 else 1e-12
    truth = model.fit(X, y, weights * moderate_scale).predict(X)
    predicted = model.fit(X, y, weights * size).predict(X)
    np.testing.assert_allclose(predicted, truth, rtol=1e-7, atol=1e-7)


def test_scaling_by_a_power_of_two_keeps_the_bits():
    X, y = make_rows()
    model, scaled_model = LinearRegression().fit(X, y), LinearRegression().fit(X * 2.0**1000, y)
    assert np.array_equal(model.predict(X), scaled_model.predict(X * 2.0**1000))


def test_more_columns_than_rows_of_extreme_size():
    X = np.random.default_rng(0).normal(size=(5, 20))
    y = np.arange(5.0)
    for size in (1e308 / 4, 1e-300):
        model = LinearRegression().fit(X * size, y)
        np.testing.assert_allclose(model.predict(X * size), y, atol=1e-7)


def test_coefficients_beyond_float64_raise():
    X, y = make_rows()
    table = pd.DataFrame(X * [1, 1e-320, 1], columns=list("abc"))
    for model in (LinearRegression(), LinearRegression(fit_intercept=False)):
        with pytest.raises(ValueError, match=r"X: the coefficient of column 'b' is beyond"):
            model.fit(table, y)


def test_intervals_of_extreme_values_raise():
    X, y = make_rows()
    for model in (LinearRegression().fit(X * 1e300, y), Ridge().fit(X * 1e300, y)):
        with pytest.raises(ValueError, match="has no errors for intervals"):
            model.predict_interval(X * 1e300)
    with pytest.raises(ValueError, match="squares do not overflow"):
        LinearRegression().fit(X * [1e308, 1, 1], y).summary()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_logistic_regression_error_names_the_cause(n_classes, l1_ratio, form):
    X, y = make_rows()
    y = np.digitize(y, [0.0, 2.0][: n_classes - 1])
    model = LogisticRegression(l1_ratio=l1_ratio)
    with pytest.raises(ValueError, match=r"X: values are so large .*column 1 .*divide the column"):
        model.fit(form(X * [1, 1e300, 1]), y)
    with pytest.raises(ValueError, match=r"sample_weight: weights up to 1e\+308"):
        model.fit(form(X), y, np.full(60, 1e308))
    with pytest.raises(ValueError, match=r"sample_weight: expected a sum"):
        model.fit(form(X), y, np.full(60, 1e-320))
    small = model.fit(form(X * [1, 1e-300, 1]), y)
    assert np.isfinite(small.predict_proba(form(X))).all()
    assert small.coef_[0, 1] == pytest.approx(0, abs=1e-250)


def test_errors_of_other_models_name_the_cause():
    X, y = make_rows()
    for model in (Whitener(), GaussianMixture(2)):
        with pytest.raises(ValueError, match="X: expected numbers whose squares are finite"):
            model.fit(X * 1e200)
    with pytest.raises(ValueError, match="X and sample_weight: expected values whose sums"):
        Perceptron().fit(X, y > 0, sample_weight=np.full(60, 1e308))
