"""LocalClassifier: probabilities, log odds, and the choice of the width."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from reference.slow_local import design_columns, weights_at
from spinney.neighbors import LocalClassifier, LocalRegression


def test_leave_one_out_of_classes_by_refits():
    X, y = make_moons(80, noise=0.3, random_state=0)
    model = LocalClassifier(1, n_neighbors=15).fit(X, y)
    right = []
    for i in range(80):
        others = np.arange(80) != i
        refit = LocalClassifier(1, n_neighbors=14).fit(X[others], y[others])
        right.append(refit.predict(X[i : i + 1])[0] == y[i])
    assert model.loo_score_ == pytest.approx(np.mean(right))


def test_probabilities_are_kernel_weighted_shares():
    X, y = make_moons(100, noise=0.3, random_state=0)
    points = X + 0.1
    model = LocalClassifier(0, kernel="gaussian", bandwidth=0.4).fit(X, y)
    weights = np.exp(-((cdist(points, X) / 0.4) ** 2) / 2)
    expected = np.stack([weights[:, y == c].sum(axis=1) for c in (0, 1)], axis=1)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(points), expected, atol=1e-9)
    np.testing.assert_array_equal(model.predict(points), expected.argmax(axis=1))


@pytest.mark.parametrize("degree", [1, 2])
def test_probabilities_equal_regressions_of_class_indicators(degree):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (150, 2))
    y = np.array(["red", "green", "blue"])[(X.sum(axis=1) > 0) + (X[:, 0] > 0.3) * 1]
    points = rng.uniform(-1.2, 1.2, (50, 2))
    model = LocalClassifier(degree, n_neighbors=25).fit(X, y)
    fits = [
        LocalRegression(degree, n_neighbors=25).fit(X, (y == c) * 1.0).predict(points)
        for c in model.classes_
    ]
    expected = np.clip(np.stack(fits, axis=1), 0, None)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(points), expected, atol=1e-9)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_log_odds_against_logistic_regression(degree, alpha):
    X, y = make_moons(200, noise=0.4, random_state=0)
    points = X[:20] + 0.05
    model = LocalClassifier(degree, link="logit", n_neighbors=100, alpha=alpha).fit(X, y)
    expected = []
    for point in points:
        weights = weights_at(point, X, model, np.ones(200))
        has_weight = weights > 0
        design = design_columns(X - point, degree)[:, 1:]
        slow = LogisticRegression(
            C=1 / alpha if alpha else np.inf, solver="newton-cholesky", tol=1e-10
        )
        slow.fit(design[has_weight], y[has_weight], weights[has_weight])
        expected.append(1 / (1 + np.exp(-slow.intercept_[0])))
    np.testing.assert_allclose(model.predict_proba(points)[:, 1], expected, atol=1e-6)


def test_log_odds_of_several_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.array(["x", "y", "z"])[
        np.argmax(X @ rng.normal(size=(2, 3)) + rng.gumbel(size=(300, 3)), 1)
    ]
    model = LocalClassifier(link="logit", n_neighbors=80).fit(X, y)
    odds = np.stack(
        [
            LocalClassifier(link="logit", n_neighbors=80).fit(X, y == c).predict_proba(X)[:, 1]
            for c in model.classes_
        ],
        axis=1,
    )
    np.testing.assert_allclose(
        model.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), atol=1e-9
    )
    # This fit is not linear in the targets.
    with pytest.raises(AttributeError, match="identity"):
        _ = model.effective_dof_
    flat = [
        LocalClassifier(0, link=link).fit(X, y).predict_proba(X) for link in ("identity", "logit")
    ]
    np.testing.assert_allclose(flat[0], flat[1], atol=1e-12)


def test_log_odds_of_separable_classes():
    X = np.linspace(-1, 1, 40)[:, None]
    y = X[:, 0] > 0
    for alpha in (0.0, 1e-3):
        model = LocalClassifier(link="logit", n_neighbors=20, alpha=alpha).fit(X, y)
        proba = model.predict_proba(np.linspace(-3, 3, 101)[:, None])
        assert np.isfinite(proba).all()
        assert ((proba[:, 1] > 0.5) == (np.arange(101) > 50))[np.arange(101) != 50].all()
        np.testing.assert_array_equal(model.predict(X), y)
        assert model.loo_score_ > 0.9


def test_leave_one_out_of_log_odds():
    X, y = make_moons(60, noise=0.4, random_state=0)
    model = LocalClassifier(link="logit", n_neighbors=30, alpha=0.1).fit(X, y)
    for i in range(0, 60, 7):
        others = np.arange(60) != i
        refit = clone(model).set_params(n_neighbors=29).fit(X[others], y[others])
        np.testing.assert_allclose(
            model._leave_one_out()[i], refit.predict_proba(X[i : i + 1])[0], atol=1e-9
        )
