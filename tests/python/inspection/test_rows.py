"""Training rows behind predictions: leaf neighbours, influence on linear models."""

import numpy as np
import pytest
import statsmodels.api as sm
from sklearn.datasets import load_diabetes, load_iris

from spinney.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import influence, leaf_neighbors
from spinney.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from spinney.neighbors import KNeighborsRegressor
from spinney.tree import DecisionTreeRegressor


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(min_samples_leaf=5),
        RandomForestRegressor(10, random_state=0),
        RandomForestRegressor(10, random_state=0, max_samples=0.5),
        ExtraTreesRegressor(10, min_samples_leaf=4, random_state=0),
        KNeighborsRegressor(4),
        KNeighborsRegressor(4, weights="distance"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_weights_reproduce_the_prediction(model):
    X, y = load_diabetes(return_X_y=True)
    model.fit(X[:300], y[:300])
    result = leaf_neighbors(model, X[:300], X[300:])
    np.testing.assert_allclose(result.weights @ y[:300], model.predict(X[300:]))
    np.testing.assert_allclose(result.weights.sum(axis=1), 1)


def test_weights_reproduce_class_probabilities():
    X, y = load_iris(return_X_y=True)
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    result = leaf_neighbors(forest, X, X)
    np.testing.assert_allclose(result.weights @ np.eye(3)[y], forest.predict_proba(X), atol=1e-7)


def test_proximity_counts_shared_leaves():
    X, y = load_diabetes(return_X_y=True)
    for model in (
        RandomForestRegressor(7, random_state=0),
        GradientBoostingRegressor(n_estimators=7, early_stopping=False, random_state=0),
    ):
        model.fit(X[:100], y[:100])
        result = leaf_neighbors(model, X[:100], X[100:110], kind="proximity")
        train, queries = model.apply(X[:100]), model.apply(X[100:110])
        train, queries = train.reshape(100, -1), queries.reshape(10, -1)
        shared = (queries[:, np.newaxis] == train[np.newaxis]).mean(axis=2)
        np.testing.assert_allclose(
            result.weights.toarray(), shared / shared.sum(axis=1, keepdims=True)
        )
        rows, weights = result.nearest(3)
        dense = result.weights.toarray()
        for q in range(10):
            expected = np.lexsort([np.arange(100), -dense[q]])[:3]
            np.testing.assert_array_equal(rows[q], expected)
            np.testing.assert_array_equal(weights[q], dense[q, expected])


def test_models_without_leaf_neighbors_raise():
    X, y = load_diabetes(return_X_y=True)
    boost = GradientBoostingRegressor(n_estimators=3, early_stopping=False).fit(X, y)
    with pytest.raises(ValueError, match="'proximity' for a booster"):
        leaf_neighbors(boost, X, X)
    forest = RandomForestRegressor(3).fit(X, y)
    with pytest.raises(ValueError, match="X_train: expected the 442 training rows"):
        leaf_neighbors(forest, X[:9], X)
    with pytest.raises(ValueError, match="LinearRegression"):
        leaf_neighbors(LinearRegression().fit(X, y), X, X)
    weighted = RandomForestRegressor(3).fit(X, y, np.linspace(1, 2, 442))
    with pytest.raises(ValueError, match="weighted rows"):
        leaf_neighbors(weighted, X, X)


# ------------------------------------------------------------------------------------- influence


def linear_data(seed=0, n=40):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 3))
    return X, X @ [1.0, 2.0, 0.0] + random.normal(size=n) + 5


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_least_squares_influence_matches_statsmodels(intercept, weighted):
    X, y = linear_data()
    weights = np.random.default_rng(1).uniform(0.5, 2, 40) if weighted else np.ones(40)
    model = LinearRegression(fit_intercept=intercept).fit(X, y, weights)
    result = influence(model, X, y, weights if weighted else None)
    # statsmodels has influence only without weights: scale the rows by their square roots.
    design = sm.add_constant(X) if intercept else X
    root_weights = np.sqrt(weights)
    expected = sm.OLS(y * root_weights, design * root_weights[:, None]).fit().get_influence()
    np.testing.assert_allclose(result.leverage, expected.hat_matrix_diag)
    np.testing.assert_allclose(result.standardised, expected.resid_studentized_internal)
    np.testing.assert_allclose(result.studentised, expected.resid_studentized_external)
    np.testing.assert_allclose(result.cooks_distance, expected.cooks_distance[0])
    np.testing.assert_allclose(result.dffits, expected.dffits[0])
    assert result.largest(1)[0] == np.argmax(expected.cooks_distance[0])


def test_logistic_influence_matches_statsmodels():
    X, y = linear_data(n=80)
    y = np.where(y + np.random.default_rng(2).normal(size=80) > 5, "yes", "no")
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, y)
    result = influence(model, X, y)
    fitted = sm.GLM(y == "yes", sm.add_constant(X), family=sm.families.Binomial()).fit(tol=1e-12)
    expected = fitted.get_influence()
    np.testing.assert_allclose(result.leverage, expected.hat_matrix_diag, rtol=1e-6)
    np.testing.assert_allclose(result.standardised, expected.resid_studentized, rtol=1e-6)
    np.testing.assert_allclose(result.cooks_distance, expected.cooks_distance[0], rtol=1e-6)
    np.testing.assert_allclose(result.n_parameters, 4, rtol=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_residuals_match_refitting_without_a_row(intercept):
    X, y = linear_data()
    model = Ridge(3.0, fit_intercept=intercept).fit(X, y)
    result = influence(model, X, y)
    for row in range(0, 40, 7):
        others = np.arange(40) != row
        without_row = Ridge(3.0, fit_intercept=intercept).fit(X[others], y[others])
        error = y[row] - without_row.predict(X[row : row + 1])[0]
        assert result.residual[row] / (1 - result.leverage[row]) == pytest.approx(error)
        # Leverage: the change of a row's prediction when its target grows by one.
        with_higher_target = Ridge(3.0, fit_intercept=intercept).fit(X, y + (np.arange(40) == row))
        shift = (with_higher_target.predict(X) - model.predict(X))[row]
        assert result.leverage[row] == pytest.approx(shift)
    selected = RidgeCV([0.1, 3.0, 100.0], fit_intercept=intercept).fit(X, y)
    expected = influence(Ridge(selected.alpha_, fit_intercept=intercept).fit(X, y), X, y)
    np.testing.assert_allclose(influence(selected, X, y).leverage, expected.leverage)


def test_penalised_logistic_leverage_is_one_newton_step():
    X, y = linear_data(n=60)
    y = (y > 5).astype(int)
    model = LogisticRegression(C=0.5, tol=1e-10).fit(X, y)
    result = influence(model, X, y)
    probabilities = model.predict_proba(X)[:, 1]
    design = np.column_stack([np.ones(60), X])
    variance = probabilities * (1 - probabilities)
    hessian = design.T @ (design * variance[:, None]) + np.diag([0, 2.0, 2.0, 2.0])
    hat = variance * np.einsum("ij,jk,ik->i", design, np.linalg.inv(hessian), design)
    np.testing.assert_allclose(result.leverage, hat)


def test_duplicate_columns_and_rows_with_leverage_one():
    X, y = linear_data()
    duplicated = np.column_stack([X, X[:, 0]])
    expected = influence(LinearRegression().fit(X, y), X, y)
    with_duplicate = influence(LinearRegression().fit(duplicated, y), duplicated, y)
    np.testing.assert_allclose(with_duplicate.leverage, expected.leverage)
    indicator = np.zeros((10, 1))
    indicator[3] = 1.0
    result = influence(
        LinearRegression().fit(indicator, np.arange(10.0)), indicator, np.arange(10.0)
    )
    assert result.leverage[3] == pytest.approx(1)
    assert np.isnan(result.cooks_distance[3])
    assert np.isfinite(np.delete(result.cooks_distance, 3)).all()


def test_invalid_arguments_raise():
    X, y = linear_data()
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="X: expected 3 columns"):
        influence(model, X[:, :2], y)
    with pytest.raises(ValueError, match="y: expected 40 values"):
        influence(model, X, y[:5])
    with pytest.raises(ValueError, match="NaN"):
        influence(model, np.full_like(X, np.nan), y)
    with pytest.raises(ValueError, match="DecisionTreeRegressor"):
        influence(DecisionTreeRegressor().fit(X, y), X, y)
    three_classes = LogisticRegression().fit(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="two classes, got 3"):
        influence(three_classes, X, np.arange(40) % 3)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        LinearRegression(fit_intercept=False),
        Ridge(0.3),
        Ridge(solver="lsqr"),
        RidgeCV(),
        LogisticRegression(),
        LogisticRegression(C=np.inf),
    ],
    ids=repr,
)
def test_influence_requires_the_training_rows(model):
    X, y = load_diabetes(return_X_y=True)
    if isinstance(model, LogisticRegression):
        y = (y > 140).astype(int)
    weights = np.random.default_rng(0).uniform(0.2, 3, 300)
    model.fit(X[:300], y[:300], sample_weight=weights)
    influence(model, X[:300], y[:300], weights)
    for rows in ((X[:300], y[:300]), (X[100:400], y[100:400], weights), (X[:142], y[:142])):
        with pytest.raises(ValueError, match="expected the training rows and their weights"):
            influence(model, *rows)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_training_rows_are_recognised_despite_rounding(offset, dtype):
    random = np.random.default_rng(0)
    X = (random.normal(size=(400, 5)) * 10.0 ** np.arange(-2, 3) + offset).astype(dtype)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    for y in (random.normal(size=400) + offset, X @ np.ones(6)):
        for model in (LinearRegression(), Ridge(1e-6), RidgeCV()):
            influence(model.fit(X, y.astype(dtype)), X, y.astype(dtype))
        labels = y > np.median(y)
        influence(LogisticRegression().fit(X, labels), X, labels)
