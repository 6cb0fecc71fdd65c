"""Local regression: dense solves as a reference, definitions, weights and parameters."""

import pickle

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from reference.slow_local import (
    FORMULAS,
    design_columns,
    reference,
    smooth_decay,
    wavy_rows,
    weights_at,
)
from spinney.neighbors import LocalClassifier, LocalRegression
from spinney.neighbors import _neighborhoods as neighborhoods
from support.grid import partial_grid

KINDS = [LocalRegression, LocalClassifier]


@partial_grid(
    one_in=4,
    kernel=list(FORMULAS),
    degree=[0, 1, 2],
    width=[{"n_neighbors": 25}, {"n_neighbors": 0.4}, {"n_neighbors": 1000}, {"bandwidth": 1.9}],
)
def test_against_dense_solves(kernel, degree, width):
    for d in (1, 3):
        X, y, points = wavy_rows(120, d, seed=degree)
        model = LocalRegression(degree, kernel=kernel, **width).fit(X, y)
        values, slopes, _ = reference(X, y, points, model)
        np.testing.assert_allclose(model.predict(points), values, rtol=1e-7, atol=1e-9)
        if degree:
            np.testing.assert_allclose(model.gradient(points), slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e6])
def test_ridge(degree, alpha):
    X, y, points = wavy_rows(80, 2)
    model = LocalRegression(degree, alpha=alpha, n_neighbors=20).fit(X, y)
    values, slopes, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)
    if degree:
        np.testing.assert_allclose(model.gradient(points), slopes, rtol=1e-6, atol=1e-10)


def test_heavy_ridge_is_an_average():
    X, y, points = wavy_rows(80, 2)
    heavy = LocalRegression(2, alpha=1e12).fit(X, y).predict(points)
    np.testing.assert_allclose(heavy, LocalRegression(0).fit(X, y).predict(points), rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("width", [{"n_neighbors": 15}, {"bandwidth": 0.6}], ids=str)
@pytest.mark.parametrize("kernel", ["biweight", smooth_decay])
def test_metrics_and_functions(metric, width, kernel):
    X, y, points = wavy_rows(150, 2)
    model = LocalRegression(1, kernel=kernel, metric=metric, **width).fit(X, y)
    values, _, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)


def test_sparse_and_dense_searches_agree(monkeypatch):
    # Neighbourhoods of few rows use the tree, those of most rows use all distances.
    X, y, points = wavy_rows(2000, 2)
    model = LocalRegression(1, bandwidth=0.2).fit(X, y)
    points *= 0.8
    values, _, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)
    expected = model.predict(X)
    monkeypatch.setattr(neighborhoods, "_BLOCK_SIZE", 100)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_blocks_do_not_change_the_result(monkeypatch):
    X, y, points = wavy_rows(200, 2)
    models = [LocalRegression(n_neighbors=20), LocalRegression(bandwidth=5.0, kernel="gaussian")]
    expected = [model.fit(X, y).predict(points) for model in models]
    monkeypatch.setattr(neighborhoods, "_BLOCK_SIZE", 50)
    for model, before in zip(models, expected, strict=True):
        np.testing.assert_array_equal(model.predict(points), before)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_threads_do_not_change_the_result(degree):
    X, y, _ = wavy_rows(3000, 3)
    models = [LocalRegression(degree, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 5)]
    first = models[0].predict(X)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(X), first)
        assert model.sigma_ == models[0].sigma_
        assert model.loo_score_ == models[0].loo_score_


def test_nadaraya_and_watson():
    X, y, points = wavy_rows(60, 2)
    model = LocalRegression(0, kernel="gaussian", bandwidth=0.3).fit(X, y)
    weights = np.exp(-((cdist(points, X) / 0.3) ** 2) / 2)
    np.testing.assert_allclose(model.predict(points), weights @ y / weights.sum(axis=1), rtol=1e-9)


def test_nearest_neighbours():
    X, y, points = wavy_rows(60, 2)
    model = LocalRegression(0, kernel="uniform", n_neighbors=7).fit(X, y)
    nearest = np.argsort(cdist(points, X), axis=1)[:, :7]
    np.testing.assert_allclose(model.predict(points), y[nearest].mean(axis=1))


@pytest.mark.parametrize("kernel", [*FORMULAS, smooth_decay])
@pytest.mark.parametrize("width", [{"n_neighbors": 12}, {"bandwidth": 1.0}], ids=str)
def test_polynomials_are_reproduced(kernel, width):
    X, _, points = wavy_rows(150, 2)
    line = 3 + X @ [2, -5]
    model = LocalRegression(1, kernel=kernel, **width).fit(X, line)
    np.testing.assert_allclose(model.predict(points), 3 + points @ [2, -5], atol=1e-8)
    np.testing.assert_allclose(model.gradient(points), [[2, -5]] * len(points), atol=1e-7)

    def parabola(X):
        return 1 + X[:, 0] - X[:, 1] ** 2 + 4 * X[:, 0] * X[:, 1]

    model = LocalRegression(2, kernel=kernel, **width).fit(X, parabola(X))
    np.testing.assert_allclose(model.predict(points), parabola(points), atol=1e-7)
    slopes = np.column_stack([1 + 4 * points[:, 1], 4 * points[:, 0] - 2 * points[:, 1]])
    np.testing.assert_allclose(model.gradient(points), slopes, atol=1e-6)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_constant_targets(degree):
    X, _, points = wavy_rows(100, 2)
    model = LocalRegression(degree).fit(X, np.full(100, 0.1))
    np.testing.assert_array_equal(model.predict(points), 0.1)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_and_degrees_of_freedom_follow_the_smoother_matrix(degree, weighted):
    X, y, points = wavy_rows(70, 2)
    rng = np.random.default_rng(1)
    w = rng.uniform(0.5, 2, 70) if weighted else np.ones(70)
    model = LocalRegression(degree, n_neighbors=25, alpha=0.01).fit(X, y, w)
    fitted, _, smoother = reference(X, y, X, model, w)
    _, _, at_points = reference(X, y, points, model, w)
    dof = np.trace(smoother)
    sigma = np.sqrt(w @ (y - fitted) ** 2 / (w.sum() - dof))
    assert model.effective_dof_ == pytest.approx(dof)
    assert model.sigma_ == pytest.approx(sigma)
    values, errors = model.predict(points, return_std=True)
    np.testing.assert_array_equal(values, model.predict(points))
    np.testing.assert_allclose(errors, sigma * np.sqrt((at_points**2 / w).sum(axis=1)), rtol=1e-6)


def test_standard_errors_cover():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 200)[:, None]
    curve = 2 * X[:, 0]
    inside = []
    for _ in range(100):
        model = LocalRegression(n_neighbors=60).fit(X, curve + rng.normal(scale=0.3, size=200))
        values, errors = model.predict(X, return_std=True)
        inside.append(np.abs(values - curve) < 1.96 * errors)
    assert 0.92 < np.mean(inside) < 0.97


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("alpha", [0.0, 0.1])
@pytest.mark.parametrize(
    "width", [{"n_neighbors": 20}, {"bandwidth": 0.7}, {"bandwidth": 0.12}], ids=str
)
def test_leave_one_out_by_refits(degree, alpha, width):
    X, y, _ = wavy_rows(60, 2)
    model = LocalRegression(degree, alpha=alpha, **width).fit(X, y)
    expected = []
    for i in range(60):
        others = np.arange(60) != i
        # The held-out row is one of the n neighbours, so the refit has one less.
        less = {k: v - (k == "n_neighbors") for k, v in width.items()}
        refit = clone(model).set_params(**less).fit(X[others], y[others])
        expected.append(y[i] - refit.predict(X[i : i + 1])[0])
    np.testing.assert_allclose(model.loo_residuals_, expected, rtol=1e-6, atol=1e-8)
    score = 1 - np.sum(np.square(expected)) / np.sum((y - y.mean()) ** 2)
    assert model.loo_score_ == pytest.approx(score, rel=1e-6)


@pytest.mark.parametrize("name", ["n_neighbors", "bandwidth"])
@pytest.mark.parametrize("kind", KINDS)
def test_width_by_leave_one_out(name, kind):
    X, y, _ = wavy_rows(150, 1, noise=0.3)
    y = y > 0.5 if kind is LocalClassifier else y
    model = kind(1, **{name: "cv"}).fit(X, y)
    best = model.cv_errors_.argmin()
    chosen = getattr(model, name + "_")
    assert chosen == model.cv_widths_[best]
    assert (np.diff(model.cv_widths_) > 0).all()
    assert 0 < best < len(model.cv_widths_) - 1
    given = kind(1, **{name: chosen}).fit(X, y)
    if kind is LocalRegression:
        assert np.mean(given.loo_residuals_**2) == pytest.approx(model.cv_errors_[best])
    np.testing.assert_array_equal(given.predict(X), model.predict(X))
    # Another fit without "cv" removes the attributes of the search.
    model.set_params(**{name: chosen}).fit(X, y)
    assert not hasattr(model, "cv_errors_")


def test_robust_iterations_ignore_outliers():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 1, 100)[:, None]
    y = 2 * X[:, 0] + rng.normal(scale=0.05, size=100)
    y[::10] += 20
    plain = LocalRegression(n_neighbors=40).fit(X, y).predict(X)
    model = LocalRegression(n_neighbors=40, robust=4).fit(X, y)
    assert np.abs(plain - 2 * X[:, 0]).max() > 1
    assert np.abs(model.predict(X) - 2 * X[:, 0]).max() < 0.1
    assert (model.robust_weights_[::10] == 0).all()
    assert model.sigma_ < 0.1


def test_robust_by_hand():
    X, y, _ = wavy_rows(60, 1, noise=0.5)
    weights = np.ones(60)
    model = LocalRegression(n_neighbors=30).fit(X, y)
    for _ in range(3):
        fitted = []
        for point in X:
            w = weights_at(point, X, model, np.ones(60)) * weights
            design = np.sqrt(w)[:, None] * design_columns(X - point, 1)
            fitted.append(np.linalg.lstsq(design, np.sqrt(w) * y, rcond=None)[0][0])
        residuals = y - np.array(fitted)
        limit = 6 * np.median(np.abs(residuals))
        weights = np.maximum(1 - (residuals / limit) ** 2, 0) ** 2
    robust = LocalRegression(n_neighbors=30, robust=3).fit(X, y)
    np.testing.assert_allclose(robust.robust_weights_, weights, atol=1e-9)


def test_robust_on_an_exact_line():
    X = np.arange(50.0)[:, None]
    y = X[:, 0].copy()
    y[20] = 1e3
    model = LocalRegression(n_neighbors=15, robust=10).fit(X, y)
    np.testing.assert_allclose(model.predict(X), X[:, 0], atol=1e-6)


def test_points_whose_neighbours_are_all_outliers():
    # The prediction is the target of the nearest row with a positive weight.
    X = np.r_[np.zeros(2), np.linspace(5, 6, 60)][:, None]
    y = np.r_[1e3, -1e3, np.random.default_rng(0).normal(size=60)]
    model = LocalRegression(0, kernel="uniform", bandwidth=2.0, robust=2).fit(X, y)
    assert (model.robust_weights_[:2] == 0).all()
    assert model.predict([[0.0]])[0] == y[2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "parameters",
    [
        {"n_neighbors": 12},
        {"n_neighbors": 12, "kernel": "uniform", "degree": 0},
        {"n_neighbors": 0.3, "degree": 2},
        {"bandwidth": 0.8},
        {"bandwidth": 0.8, "kernel": "gaussian", "degree": 0},
        {"robust": 2},
    ],
    ids=str,
)
def test_weights_equal_repeated_rows(kind, parameters):
    if kind is LocalClassifier and "robust" in parameters:
        pytest.skip("no such parameter")
    X, y, points = wavy_rows(60, 2)
    y = np.round(y).astype(int) if kind is LocalClassifier else y
    weights = np.random.default_rng(3).integers(0, 4, 60)
    weighted = kind(**parameters).fit(X, y, weights)
    repeated = kind(**parameters).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    if kind is LocalClassifier:
        np.testing.assert_allclose(
            weighted.predict_proba(points), repeated.predict_proba(points), atol=1e-7
        )
        return
    np.testing.assert_allclose(weighted.predict(points), repeated.predict(points), atol=1e-7)
    assert weighted.sigma_ == pytest.approx(repeated.sigma_)
    assert weighted.effective_dof_ == pytest.approx(repeated.effective_dof_)
    for a, b in zip(
        weighted.predict(points, return_std=True),
        repeated.predict(points, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_fractions_of_weights():
    X, y, points = wavy_rows(60, 2)
    weights = np.random.default_rng(3).uniform(0, 1, 60)
    weights /= weights.sum()
    model = LocalRegression(n_neighbors=0.4).fit(X, y, weights)
    assert model.n_neighbors_ == pytest.approx(0.4)
    np.testing.assert_allclose(
        model.predict(points), reference(X, y, points, model, weights)[0], rtol=1e-7
    )
    scaled = LocalRegression(n_neighbors=0.4).fit(X, y, weights * 1e200)
    np.testing.assert_allclose(scaled.predict(points), model.predict(points), rtol=1e-7)


def test_fit_without_positive_weights_raises():
    with pytest.raises(ValueError, match="weight"):
        LocalRegression().fit([[0.0], [1.0]], [0.0, 1.0], [0.0, 0.0])


@pytest.mark.parametrize(
    "parameters",
    [
        {"degree": 3},
        {"degree": 1.5},
        {"degree": True},
        {"degree": "1"},
        {"kernel": "box"},
        {"kernel": None},
        {"bandwidth": 0.0},
        {"bandwidth": -1},
        {"bandwidth": np.inf},
        {"bandwidth": "auto"},
        {"bandwidth": np.nan},
        {"n_neighbors": 0},
        {"n_neighbors": 1.5},
        {"n_neighbors": 0.0},
        {"n_neighbors": "many"},
        {"n_neighbors": None},
        {"alpha": -1},
        {"alpha": np.nan},
        {"metric": "cosine"},
        {"outside": "zero"},
        {"robust": -1},
        {"robust": 1.5},
    ],
    ids=str,
)
def test_invalid_parameters_raise(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name}: expected"):
        LocalRegression(**parameters).fit([[0.0], [1.0]], [0.0, 1.0])
    if name != "robust":
        with pytest.raises(ValueError, match=f"{name}: expected"):
            LocalClassifier(**parameters).fit([[0.0], [1.0]], [0, 1])


def test_invalid_link_raises():
    with pytest.raises(ValueError, match="link: expected"):
        LocalClassifier(link="probit").fit([[0.0], [1.0]], [0, 1])


def test_invalid_functions_raise():
    X, y, points = wavy_rows(30, 1)
    for kernel in (lambda u: u - 1, lambda u: u[:-1], lambda u: u * np.nan):
        with pytest.raises(ValueError, match="kernel: expected a function"):
            LocalRegression(kernel=kernel).fit(X, y).predict(points)


def test_invalid_input_raises():
    with pytest.raises(ValueError, match="NaN"):
        LocalRegression().fit([[np.nan], [1.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match="NaN"):
        LocalRegression().fit([[0.0], [1.0]], [0.0, 1.0]).predict([[np.nan]])
    with pytest.raises(ValueError, match="at most 2000 coefficients"):
        LocalRegression(2).fit(np.zeros((2, 100)), [0, 1])
    with pytest.raises(ValueError, match="gradients"):
        LocalRegression(0).fit([[0.0], [1.0]], [0.0, 1.0]).gradient([[0.0]])
    for name in ("effective_dof_", "sigma_"):
        with pytest.raises(NotFittedError):
            getattr(LocalRegression(), name)
    for method in ("predict", "gradient"):
        with pytest.raises(NotFittedError):
            getattr(LocalRegression(), method)([[0.0]])


def test_pickle_and_clone():
    X, y, points = wavy_rows(50, 2)
    for width in ({}, {"bandwidth": "cv"}):
        model = LocalRegression(robust=1, **width).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(points), model.predict(points))
        assert copy.sigma_ == model.sigma_
        again = clone(model).fit(X, y)
        np.testing.assert_array_equal(again.predict(points), model.predict(points))
