"""Plug-in rules against the Bayes rule and other libraries."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import load_iris, make_moons
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KernelDensity, KNeighborsRegressor

from spinney.mixture import GaussianMixture, MixtureClassifier, PlugInClassifier
from spinney.neighbors import LocalRegression

RULES = (
    MixtureClassifier(),
    PlugInClassifier(),
    PlugInClassifier(regressor=Ridge()),
)


class Unweighted(RegressorMixin, BaseEstimator):
    """Least squares without sample_weight in fit."""

    def fit(self, X, y):
        self.inner_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X):
        return self.inner_.predict(X)


# --------------------------------------------------------------------------- densities


def test_kernel_densities_by_hand():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(0, 1, 30), rng.normal(2, 1, 60)][:, None]
    y = np.repeat([0, 1], [30, 60])
    model = PlugInClassifier(KernelDensity(bandwidth=0.5)).fit(X, y)
    points = np.linspace(-3, 5, 20)
    kernels = norm.pdf((points[:, None] - X[:, 0]) / 0.5) / 0.5
    joint = np.stack([kernels[:, y == c].sum(axis=1) / 90 for c in (0, 1)], axis=1)
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(points[:, None]), expected, rtol=1e-6)
    np.testing.assert_allclose(
        model.score_samples(points[:, None]), np.log(joint.sum(axis=1)), rtol=1e-6
    )
    np.testing.assert_allclose(
        model.decision_function(points[:, None]), np.log(joint[:, 1] / joint[:, 0]), atol=1e-6
    )


def test_default_bandwidth_follows_the_units():
    X, y = load_iris(return_X_y=True)
    plain = PlugInClassifier().fit(X, y)
    assert plain.score(X, y) > 0.95
    np.testing.assert_allclose(
        PlugInClassifier().fit(1e3 * X, y).predict_proba(1e3 * X), plain.predict_proba(X), atol=1e-6
    )


def test_priors_shift_the_log_odds():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    for rule in (
        MixtureClassifier(1),
        PlugInClassifier(GaussianMixture()),
        PlugInClassifier(regressor=LinearRegression()),
    ):
        equal_priors = clone(rule).fit(X, y)
        unequal_priors = clone(rule).set_params(priors=[0.9, 0.1]).fit(X, y)
        np.testing.assert_allclose(unequal_priors.class_prior_, [0.9, 0.1])
        np.testing.assert_allclose(
            unequal_priors.decision_function(X),
            equal_priors.decision_function(X) - np.log(9),
            atol=1e-8,
        )
        zero_prior = clone(rule).set_params(priors=[1.0, 0.0]).fit(X, y)
        assert (zero_prior.predict(X) == 1).all()
        np.testing.assert_array_equal(zero_prior.predict_proba(X), [[1.0, 0.0]] * 100)


def test_rows_without_any_density_get_the_priors():
    density = KernelDensity(bandwidth=0.1, kernel="tophat")
    model = PlugInClassifier(density).fit([[0.0], [1.0], [1.0]], [0, 1, 1])
    np.testing.assert_allclose(model.predict_proba([[50.0]]), [[1 / 3, 2 / 3]])
    np.testing.assert_array_equal(model.predict_proba([[0.0]]), [[1.0, 0.0]])
    assert model.score_samples([[50.0]])[0] == -np.inf


# -------------------------------------------------------------------------- regressions


def test_linear_log_odds_equal_logistic_regression():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    logistic = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
    cases = (
        (LinearRegression(), "newton", 20),
        (LinearRegression(), "bounded", 2000),
        (Unweighted(), "newton", 2000),
    )
    for regressor, step, max_iter in cases:
        model = PlugInClassifier(regressor=regressor, step=step, max_iter=max_iter, tol=1e-9)
        model.fit(X, y)
        np.testing.assert_allclose(
            model.decision_function(X), logistic.decision_function(X), atol=1e-4
        )
        assert model.n_iter_[0] < max_iter


def test_weights_of_log_odds_equal_repeated_rows():
    X, y = load_iris(return_X_y=True)
    X, y = X[50:, :2], y[50:]
    weights = np.random.default_rng(0).integers(0, 4, 100)
    for step in ("newton", "bounded"):
        rule = PlugInClassifier(regressor=LinearRegression(), step=step)
        weighted = clone(rule).fit(X, y, weights)
        repeated = clone(rule).fit(X.repeat(weights, axis=0), y.repeat(weights))
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    with pytest.raises(ValueError, match="sample_weight: expected None"):
        PlugInClassifier(regressor=Unweighted()).fit(X, y, weights)


def test_several_classes_use_one_vs_rest():
    X, y = load_iris(return_X_y=True)
    model = PlugInClassifier(regressor=Ridge(0.1), max_iter=8).fit(X, y)
    one_vs_rest = np.stack(
        [
            expit(
                PlugInClassifier(regressor=Ridge(0.1), max_iter=8)
                .fit(X, y == c)
                .decision_function(X)
            )
            for c in range(3)
        ],
        axis=1,
    )
    np.testing.assert_allclose(
        model.predict_proba(X), one_vs_rest / one_vs_rest.sum(axis=1, keepdims=True), atol=1e-9
    )
    assert not hasattr(model, "score_samples")


def test_local_regression_gives_smooth_log_odds():
    X, y = make_moons(400, noise=0.15, random_state=0)
    rule = PlugInClassifier(regressor=LocalRegression(n_neighbors=50), step="bounded")
    assert cross_val_score(rule, X, y).mean() > 0.95  # linear log odds score 0.88


def test_separable_classes_give_finite_probabilities():
    X = np.linspace(-1, 1, 40)[:, None]
    y = X[:, 0] > 0
    for regressor in (LinearRegression(), KNeighborsRegressor(1)):
        model = PlugInClassifier(regressor=regressor).fit(X, y)
        assert np.isfinite(model.predict_proba(X)).all()
        np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"density": KernelDensity(), "regressor": Ridge()}, "one of both"),
        ({"density": Ridge()}, "density: expected"),
        ({"density": "kernel"}, "density: expected"),
        ({"regressor": 3}, "regressor: expected"),
        ({"step": "large"}, "step: expected"),
        ({"step": None}, "step: expected"),
        ({"max_iter": 0}, "max_iter: expected"),
        ({"tol": -1}, "tol: expected"),
        ({"priors": [1, 2, 3]}, "priors: expected"),
    ],
    ids=str,
)
def test_invalid_parameters_raise(parameters, message):
    with pytest.raises(ValueError, match=message):
        PlugInClassifier(**parameters).fit([[0.0], [1.0], [2.0]], [0, 1, 1])


# -------------------------------------------------------------------------------- all rules


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_prediction_methods_agree(rule):
    X, y = load_iris(return_X_y=True)
    for classes in (y, y > 0):
        model = clone(rule).fit(X, classes)
        proba = model.predict_proba(X)
        np.testing.assert_array_equal(model.predict(X), model.classes_[proba.argmax(axis=1)])
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba), atol=1e-6)
        decision = model.decision_function(X)
        if decision.ndim == 1:
            np.testing.assert_array_equal(decision > 0, model.predict(X))
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict_proba(X), proba)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_invalid_input_raises(rule):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 3.0]])
    y = [0, 1, 0, 1]
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            clone(rule).fit(np.where(X == 2, bad, X), y)
    with pytest.raises(ValueError, match="NaN"):
        clone(rule).fit(X, [0, 1, np.nan, 1])
    with pytest.raises(ValueError, match="Unknown label type"):
        clone(rule).fit(X, [0.5, 0.1, 0.3, 0.9])
    with pytest.raises(ValueError, match="Sample weights"):
        clone(rule).fit(X, y, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="sample_weight"):
        clone(rule).fit(X, y, sample_weight=[-1, 1, 1, 1])


def plot_of(rule, X, y, points=True):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure()
    ax = figure.gca()
    model = clone(rule).fit(X, y)
    assert model.plot(ax=ax, X=X if points else None, y=y if points else None) is ax
    figure.canvas.draw()
    plt.close(figure)
    return ax, model


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_plot_shows_the_decision_boundary(rule):
    X, y = make_moons(100, noise=0.2, random_state=0)
    ax, model = plot_of(rule, pd.DataFrame(X, columns=["u", "v"]), y)
    assert ax.get_xlabel() == "u"
    # On the boundary, both classes are equally probable.
    line = ax.collections[1].get_paths()[0].vertices
    np.testing.assert_allclose(
        model.predict_proba(pd.DataFrame(line, columns=["u", "v"]))[:, 0], 0.5, atol=0.15
    )
    # Regions, one boundary per class, densities per class if there are any, points.
    assert len(ax.collections) == (6 if hasattr(model, "score_samples") else 4)
    plot_of(rule, X, y, points=False)
    plot_of(rule, X, np.zeros(100))


def test_plots_need_two_features():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="2 features, got 4"):
        MixtureClassifier().fit(X, y).plot()
    with pytest.raises(ValueError, match="y: expected X together with y"):
        MixtureClassifier().fit(X[:, :2], y).plot(y=y)
