"""AnyBoost: decreasing loss, AdaBoost, orthogonal matching pursuit, early end."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from spinney.adaboost._anyboost_losses import CLASSIFICATION_LOSSES, REGRESSION_LOSSES
from spinney.ensemble import AdaBoostClassifier, AnyBoostClassifier, AnyBoostRegressor
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor


@pytest.mark.parametrize("name", [*CLASSIFICATION_LOSSES, *REGRESSION_LOSSES])
def test_derivatives_match_finite_differences(name):
    loss = CLASSIFICATION_LOSSES.get(name) or REGRESSION_LOSSES[name]
    rng = np.random.default_rng(0)
    targets = rng.choice([-1.0, 1.0], 8) if name in CLASSIFICATION_LOSSES else rng.normal(size=8)
    scores = rng.normal(size=8)
    slope = approx_fprime(scores, lambda f: loss(targets, f)[0].sum(), 1e-7)
    np.testing.assert_allclose(loss(targets, scores)[1], slope, atol=1e-5)


# -------------------------------------------------------------------------------- AdaBoost


@pytest.mark.parametrize("weighted", [False, True])
def test_exponential_loss_with_classifiers_is_adaboost(weighted):
    X, y = make_moons(200, noise=0.3, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2, 200) if weighted else None
    stump = DecisionTreeClassifier(max_depth=1)
    any_boost = AnyBoostClassifier(stump, loss="exponential", n_estimators=15, random_state=0)
    any_boost.fit(X, y, weights)
    ada = AdaBoostClassifier(stump, n_estimators=15, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(any_boost.estimator_weights_, ada.estimator_weights_ / 2, rtol=1e-6)
    for ours, theirs in zip(any_boost.estimators_, ada.estimators_, strict=True):
        np.testing.assert_array_equal(ours.predict(X) > 0, theirs.predict(X) > 0)
    for ours, theirs in zip(any_boost.staged_predict(X), ada.staged_predict(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # The mean loss is the product of all Z, the bound of the training error.
    np.testing.assert_allclose(any_boost.train_score_[1:], ada.training_error_bound_, rtol=1e-6)


# --------------------------------------------------------------------------------- descent


@pytest.mark.parametrize("loss", CLASSIFICATION_LOSSES)
@pytest.mark.parametrize("base", [None, DecisionTreeClassifier(max_depth=2), Ridge()])
def test_every_round_decreases_the_loss(loss, base):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = AnyBoostClassifier(base, loss=loss, n_estimators=12).fit(X, y)
    assert (np.diff(model.train_score_) < 1e-9).all()
    sign = 2.0 * y - 1
    np.testing.assert_allclose(
        model.train_score_[-1],
        CLASSIFICATION_LOSSES[loss](sign, model.decision_function(X))[0].mean(),
    )
    assert model.score(X, y) > 0.9
    *_, last = model.staged_decision_function(X)
    np.testing.assert_allclose(last, model.decision_function(X))


def test_line_search_ends_where_the_slope_is_zero():
    X, y = load_diabetes(return_X_y=True)
    for name, loss in REGRESSION_LOSSES.items():
        if name == "absolute_error":
            continue  # its derivative is discontinuous
        model = AnyBoostRegressor(loss=name, n_estimators=5).fit(X, y)
        direction = model.estimators_[-1].predict(X)
        slope = loss(y, model.predict(X))[1] @ direction
        assert abs(slope) < 1e-6 * np.abs(direction).sum()


def test_least_squares_steps_of_trees_are_one():
    """Leaves already contain the means, so that the best step is 1."""
    X, y = load_diabetes(return_X_y=True)
    model = AnyBoostRegressor(n_estimators=5).fit(X, y)
    np.testing.assert_allclose(model.estimator_weights_, 1, rtol=1e-8)
    residual = y - y.mean()
    for estimator in model.estimators_:
        tree = DecisionTreeRegressor(max_depth=3).fit(X, residual)
        np.testing.assert_allclose(estimator.predict(X), tree.predict(X), atol=1e-8)
        residual = residual - tree.predict(X)


def test_refitted_coefficients_are_least_squares():
    X, y = load_diabetes(return_X_y=True)
    model = AnyBoostRegressor(step="refit", n_estimators=6).fit(X, y)
    predicted = np.array([e.predict(X) for e in model.estimators_]).T
    coefficients = LinearRegression(fit_intercept=False).fit(predicted, y - model.init_).coef_
    np.testing.assert_allclose(model.predict(X), model.init_ + predicted @ coefficients, atol=0.05)
    searched = AnyBoostRegressor(n_estimators=6).fit(X, y)
    assert model.train_score_[-1] <= searched.train_score_[-1] + 1e-6


def test_fixed_steps_times_the_learning_rate():
    X, y = load_diabetes(return_X_y=True)
    model = AnyBoostRegressor(step=0.5, learning_rate=0.2, n_estimators=10).fit(X, y)
    np.testing.assert_array_equal(model.estimator_weights_, 0.1)


def test_custom_loss():
    X, y = load_diabetes(return_X_y=True)

    def pinball(y, f, level=0.8):
        return np.maximum(level * (y - f), (level - 1) * (y - f)), np.where(
            f < y, -level, 1 - level
        )

    model = AnyBoostRegressor(loss=pinball, n_estimators=60, step=20.0).fit(X, y)
    assert 0.7 < (y <= model.predict(X)).mean() < 0.9
    with pytest.raises(ValueError, match=r"returns \(value, derivative\)"):
        AnyBoostRegressor(loss=lambda y, f: f).fit(X, y)
    with pytest.raises(ValueError, match="expected a derivative of shape"):
        AnyBoostRegressor(loss=lambda y, f: (f, f[:2])).fit(X, y)


# ------------------------------------------------------------------------------------ ends


class WrongDirection(LinearRegression):
    """Predict an ascent direction."""

    def predict(self, X):
        return -super().predict(X)


def test_fit_stops_without_a_descent_direction():
    X, y = load_diabetes(return_X_y=True)
    model = AnyBoostRegressor(WrongDirection(), verbose=1)
    with pytest.warns(ConvergenceWarning, match="is not a descent direction"):
        model.fit(X, y)
    assert "Σ g f" in model.stopped_
    np.testing.assert_allclose(model.predict(X), y.mean())
    assert len(model.estimators_) == 0


def test_fit_stops_when_the_residual_is_zero():
    X = np.arange(8.0)[:, np.newaxis]
    model = AnyBoostRegressor(DecisionTreeRegressor()).fit(X, X[:, 0])
    assert len(model.estimators_) < 5
    np.testing.assert_allclose(model.predict(X), X[:, 0])


def test_base_estimators_without_weights_use_resampling():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = AnyBoostClassifier(KNeighborsClassifier(5), n_estimators=10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    refitted = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(X), refitted.decision_function(X))


def test_three_classes_raise():
    with pytest.raises(ValueError, match="Only binary classification"):
        AnyBoostClassifier().fit(np.zeros((6, 1)), [0, 1, 2, 0, 1, 2])


def test_descent_directions_from_rounding_are_not_used():
    # The first round is the least squares fit; the second direction is rounding noise.
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(60, 2))
        y = X @ [1.0, -2.0] + np.random.default_rng(seed + 1).normal(size=60)
        model = AnyBoostRegressor(LinearRegression(), n_estimators=4).fit(X, y)
        expected = LinearRegression().fit(X, y).predict(X)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-8)
