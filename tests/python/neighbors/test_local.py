"""Local regression: dense solves as a reference, definitions and edge cases."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from spinney.neighbors import LocalClassifier, LocalRegression
from spinney.neighbors import _neighborhoods as neighborhoods

KINDS = [LocalRegression, LocalClassifier]

FORMULAS = {
    "uniform": lambda u: (u <= 1) * 1.0,
    "triangular": lambda u: np.maximum(1 - u, 0),
    "epanechnikov": lambda u: np.maximum(1 - u**2, 0),
    "biweight": lambda u: np.maximum(1 - u**2, 0) ** 2,
    "triweight": lambda u: np.maximum(1 - u**2, 0) ** 3,
    "tricube": lambda u: np.maximum(1 - u**3, 0) ** 3,
    "gaussian": lambda u: np.exp(-(u**2) / 2),
    "cosine": lambda u: np.where(u < 1, np.cos(np.pi / 2 * u), 0.0),
    "logistic": lambda u: 4 / (np.exp(u) + 2 + np.exp(-u)),
}


def smooth_decay(u):
    return np.exp(-u)


# ------------------------------------------------------------------------- slow reference


def terms(differences, degree):
    """Return the columns of the design: one, features and products."""
    n, d = differences.shape
    columns = [np.ones(n)]
    if degree >= 1:
        columns += [differences[:, a] for a in range(d)]
    if degree == 2:
        columns += [differences[:, a] * differences[:, b] for a in range(d) for b in range(a + 1)]
    return np.column_stack(columns)


def weights_at(point, X, model, sample_weight):
    """Return the kernel weights of all rows, from a sort of all distances."""
    name = {"manhattan": "cityblock"}.get(model.metric, model.metric)
    distances = cdist([point], X, name)[0]
    kernel = FORMULAS.get(model.kernel, model.kernel)
    if model.bandwidth_ is not None:
        return kernel(distances / model.bandwidth_) * sample_weight
    order = np.argsort(distances, kind="stable")
    reached = np.cumsum(sample_weight[order]) >= model.n_neighbors_
    last = order[reached.argmax() if reached.any() else -1]
    weights = kernel(distances / (distances[last] * 1.001))
    return weights * (distances <= distances[last]) * sample_weight


def reference(X, y, points, model, sample_weight=None):
    """Return intercepts, slopes and smoother rows from a dense solve at each point."""
    sample_weight = np.ones(len(X)) if sample_weight is None else sample_weight
    values, slopes, smoother = [], [], []
    for point in points:
        weights = weights_at(point, X, model, sample_weight)
        design = terms(X - point, model.degree)
        roots = np.sqrt(weights)[:, None]
        penalty = np.sqrt(model.alpha) * np.eye(design.shape[1])
        penalty[0, 0] = 0
        left = np.vstack([roots * design, penalty])
        right = np.vstack([roots * np.eye(len(X)), np.zeros((len(penalty), len(X)))])
        solved = np.linalg.lstsq(left, right, rcond=None)[0]
        values.append(solved[0] @ y)
        slopes.append(solved[1 : 1 + X.shape[1]] @ y)
        smoother.append(solved[0])
    return np.array(values), np.array(slopes), np.array(smoother)


def wavy(n, d, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.sin(3 * X[:, 0]) + X.sum(axis=1) ** 2 + rng.normal(scale=noise, size=n)
    return X, y, rng.uniform(-1.2, 1.2, (25, d))


@pytest.mark.parametrize("kernel", FORMULAS)
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize(
    "width",
    [{"n_neighbors": 25}, {"n_neighbors": 0.4}, {"n_neighbors": 1000}, {"bandwidth": 1.9}],
    ids=str,
)
def test_against_dense_solves(kernel, degree, width):
    for d in (1, 3):
        X, y, points = wavy(120, d, seed=degree)
        model = LocalRegression(degree, kernel=kernel, **width).fit(X, y)
        values, slopes, _ = reference(X, y, points, model)
        np.testing.assert_allclose(model.predict(points), values, rtol=1e-7, atol=1e-9)
        if degree:
            np.testing.assert_allclose(model.gradient(points), slopes, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("alpha", [1e-3, 1.0, 1e6])
def test_ridge(degree, alpha):
    X, y, points = wavy(80, 2)
    model = LocalRegression(degree, alpha=alpha, n_neighbors=20).fit(X, y)
    values, slopes, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)
    if degree:
        np.testing.assert_allclose(model.gradient(points), slopes, rtol=1e-6, atol=1e-10)


def test_heavy_ridge_is_an_average():
    X, y, points = wavy(80, 2)
    heavy = LocalRegression(2, alpha=1e12).fit(X, y).predict(points)
    np.testing.assert_allclose(heavy, LocalRegression(0).fit(X, y).predict(points), rtol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("width", [{"n_neighbors": 15}, {"bandwidth": 0.6}], ids=str)
@pytest.mark.parametrize("kernel", ["biweight", smooth_decay])
def test_metrics_and_functions(metric, width, kernel):
    X, y, points = wavy(150, 2)
    model = LocalRegression(1, kernel=kernel, metric=metric, **width).fit(X, y)
    values, _, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)


def test_sparse_and_dense_searches_agree(monkeypatch):
    # Neighbourhoods of few rows use the tree, those of most rows use all distances.
    X, y, points = wavy(2000, 2)
    model = LocalRegression(1, bandwidth=0.2).fit(X, y)
    points *= 0.8
    values, _, _ = reference(X, y, points, model)
    np.testing.assert_allclose(model.predict(points), values, rtol=1e-8)
    expected = model.predict(X)
    monkeypatch.setattr(neighborhoods, "_BLOCK_SIZE", 100)
    np.testing.assert_array_equal(model.predict(X), expected)


def test_blocks_do_not_change_the_result(monkeypatch):
    X, y, points = wavy(200, 2)
    models = [LocalRegression(n_neighbors=20), LocalRegression(bandwidth=5.0, kernel="gaussian")]
    expected = [model.fit(X, y).predict(points) for model in models]
    monkeypatch.setattr(neighborhoods, "_BLOCK_SIZE", 50)
    for model, before in zip(models, expected, strict=True):
        np.testing.assert_array_equal(model.predict(points), before)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_threads_do_not_change_the_result(degree):
    X, y, _ = wavy(3000, 3)
    models = [LocalRegression(degree, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 5)]
    first = models[0].predict(X)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict(X), first)
        assert model.sigma_ == models[0].sigma_
        assert model.loo_score_ == models[0].loo_score_


# ------------------------------------------------------------------------------ definitions


def test_nadaraya_and_watson():
    X, y, points = wavy(60, 2)
    model = LocalRegression(0, kernel="gaussian", bandwidth=0.3).fit(X, y)
    weights = np.exp(-((cdist(points, X) / 0.3) ** 2) / 2)
    np.testing.assert_allclose(model.predict(points), weights @ y / weights.sum(axis=1), rtol=1e-9)


def test_nearest_neighbours():
    X, y, points = wavy(60, 2)
    model = LocalRegression(0, kernel="uniform", n_neighbors=7).fit(X, y)
    nearest = np.argsort(cdist(points, X), axis=1)[:, :7]
    np.testing.assert_allclose(model.predict(points), y[nearest].mean(axis=1))


@pytest.mark.parametrize("kernel", [*FORMULAS, smooth_decay])
@pytest.mark.parametrize("width", [{"n_neighbors": 12}, {"bandwidth": 1.0}], ids=str)
def test_polynomials_are_reproduced(kernel, width):
    X, _, points = wavy(150, 2)
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
    X, _, points = wavy(100, 2)
    model = LocalRegression(degree).fit(X, np.full(100, 0.1))
    np.testing.assert_array_equal(model.predict(points), 0.1)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_and_degrees_of_freedom_follow_the_smoother_matrix(degree, weighted):
    X, y, points = wavy(70, 2)
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
    X, y, _ = wavy(60, 2)
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


def test_leave_one_out_of_classes_by_refits():
    X, y = make_moons(80, noise=0.3, random_state=0)
    model = LocalClassifier(1, n_neighbors=15).fit(X, y)
    right = []
    for i in range(80):
        others = np.arange(80) != i
        refit = LocalClassifier(1, n_neighbors=14).fit(X[others], y[others])
        right.append(refit.predict(X[i : i + 1])[0] == y[i])
    assert model.loo_score_ == pytest.approx(np.mean(right))


@pytest.mark.parametrize("name", ["n_neighbors", "bandwidth"])
@pytest.mark.parametrize("kind", KINDS)
def test_width_by_leave_one_out(name, kind):
    X, y, _ = wavy(150, 1, noise=0.3)
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


# ----------------------------------------------------------------------------------- robust


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
    X, y, _ = wavy(60, 1, noise=0.5)
    weights = np.ones(60)
    model = LocalRegression(n_neighbors=30).fit(X, y)
    for _ in range(3):
        fitted = []
        for point in X:
            w = weights_at(point, X, model, np.ones(60)) * weights
            design = np.sqrt(w)[:, None] * terms(X - point, 1)
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


# ---------------------------------------------------------------------------------- weights


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
    X, y, points = wavy(60, 2)
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
    X, y, points = wavy(60, 2)
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


# -------------------------------------------------------------------------------- edge cases


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_far_from_the_origin(degree):
    X, y, points = wavy(200, 2)
    # Both tables have the same rounded digits at 1e8.
    X, points = (X + 1e8) - 1e8, (points + 1e8) - 1e8
    near = LocalRegression(degree).fit(X, y)
    far = LocalRegression(degree).fit(X + 1e8, y)
    np.testing.assert_allclose(far.predict(points + 1e8), near.predict(points), atol=1e-9)
    np.testing.assert_allclose(
        LocalRegression(degree).fit(X, y + 1e8).predict(points) - 1e8,
        near.predict(points),
        atol=1e-5,
    )


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1e9, 1e120])
def test_units_do_not_change_the_result(degree, scale):
    X, y, points = wavy(200, 2)
    model = LocalRegression(degree).fit(X, y)
    scaled = LocalRegression(degree).fit(X * scale, y)
    np.testing.assert_allclose(scaled.predict(points * scale), model.predict(points), rtol=1e-7)
    np.testing.assert_allclose(
        scaled.gradient(points * scale) * scale, model.gradient(points), rtol=1e-6, atol=1e-8
    )


def test_features_of_different_units():
    # Products of the design would lose the small unit, but the fit is the same.
    X, y, points = wavy(100, 2)
    units = np.array([1.0, 1e-7])
    model = LocalRegression(2, kernel="uniform", n_neighbors=1000).fit(X, y)
    scaled = LocalRegression(2, kernel="uniform", n_neighbors=1000).fit(X * units, y)
    np.testing.assert_allclose(scaled.predict(points * units), model.predict(points), rtol=1e-7)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("width", [{"n_neighbors": 5}, {"bandwidth": 1.0}], ids=str)
def test_identical_rows_predict_their_mean(degree, width):
    model = LocalRegression(degree, **width).fit([[1.0, 2.0]] * 4, [1.0, 2.0, 3.0, 6.0])
    np.testing.assert_allclose(model.predict([[1.0, 2.0], [1.5, 2.0], [9.0, 2.0]])[:2], 3.0)
    if degree:
        np.testing.assert_array_equal(model.gradient([[1.0, 2.0], [1.1, 2.0]]), 0.0)


@pytest.mark.parametrize("degree", [1, 2])
def test_rows_on_a_line(degree):
    # The slope across the line is zero, because the rows do not determine it.
    t = np.linspace(-1, 1, 60)
    X = np.column_stack([t, t])
    model = LocalRegression(degree, n_neighbors=20).fit(X, 4 * t)
    np.testing.assert_allclose(model.predict(X), 4 * t, atol=1e-8)
    np.testing.assert_allclose(model.gradient(X), [[2.0, 2.0]] * 60, atol=1e-6)
    assert model.effective_dof_ > 2
    assert np.isfinite(model.predict([[0.3, -0.3], [5.0, 1.0]])).all()


def test_constant_and_repeated_columns():
    X, y, points = wavy(100, 2)
    plain = LocalRegression(2).fit(X, y).predict(points)

    def widen(X):
        return np.column_stack([X, np.full(len(X), 7.0), X[:, 0]])

    for columns in ([0, 1, 2], [2, 0, 1]):
        model = LocalRegression(2).fit(widen(X)[:, columns], y)
        np.testing.assert_allclose(model.predict(widen(points)[:, columns]), plain, atol=1e-8)
    model = LocalRegression(1, kernel="uniform", n_neighbors=100).fit(widen(X), y)
    plain = LocalRegression(1, kernel="uniform", n_neighbors=100).fit(X, y)
    np.testing.assert_allclose(model.predict(widen(points)), plain.predict(points), atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_fewer_rows_than_coefficients(degree, k):
    X, y, points = wavy(50, 3)
    model = LocalRegression(degree, n_neighbors=k).fit(X, y)
    # Every row is fitted exactly.
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6 if k > 1 else 0)
    assert np.isfinite(model.predict(points)).all()
    assert np.isfinite(model.gradient(points)).all()
    assert np.isfinite(model.loo_residuals_).all()


def test_as_many_rows_as_coefficients():
    # The n-th row has enough weight to determine the fit.
    X, _, _ = wavy(50, 2)
    for kernel in FORMULAS:
        model = LocalRegression(1, kernel=kernel, n_neighbors=3).fit(X, X @ [1, 2])
        np.testing.assert_allclose(model.predict(X), X @ [1, 2], atol=1e-7)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 40))
    y = X[:, 0]
    for degree in (1, 2):
        model = LocalRegression(degree).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
        assert np.isnan(model.sigma_)
    assert np.isfinite(LocalRegression(alpha=1.0).fit(X, y).sigma_)


def test_predictions_outside_of_all_windows():
    X = np.array([[0.0], [1.0], [2.0]])
    y = np.array([1.0, 5.0, 9.0])
    model = LocalRegression(bandwidth=0.5).fit(X, y)
    assert model.predict([[-7.0], [1.2], [1.6], [70.0]]).tolist() == [1.0, 5.0, 9.0, 9.0]
    np.testing.assert_array_equal(model.gradient([[70.0]]), 0.0)
    model = LocalRegression(bandwidth=0.5, outside="nan").fit(X, y)
    np.testing.assert_array_equal(np.isnan(model.predict([[-7.0], [1.2], [70.0]])), [1, 0, 1])
    assert np.isnan(model.gradient([[70.0]])).all()
    proba = LocalClassifier(bandwidth=0.5).fit(X, list("aba")).predict_proba([[9.0], [1.3]])
    np.testing.assert_array_equal(proba, [[1, 0], [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost = LocalClassifier(bandwidth=0.5, outside="nan").fit(X, list("aba"))
        assert np.isnan(lost.predict_proba([[9.0]])).all()
        assert lost.predict([[9.0]])[0] == "a"


def test_all_tied_rows_are_neighbours():
    X = np.array([[-1.0], [1.0], [1.0], [-1.0], [3.0]])
    y = np.array([0.0, 1.0, 2.0, 5.0, 100.0])
    for k in (1, 2, 3, 4):
        model = LocalRegression(0, kernel="uniform", n_neighbors=k).fit(X, y)
        assert model.predict([[0.0]])[0] == pytest.approx(2.0)
    assert LocalRegression(0, kernel="uniform", n_neighbors=5).fit(X, y).predict([[0.0]])[0] > 20


def test_one_row():
    for kind in KINDS:
        model = kind().fit([[1.0]], [2])
        assert model.predict([[1.0], [50.0]]).tolist() == [2, 2]
        assert np.isfinite(model.loo_score_)


@pytest.mark.parametrize("width", [{"n_neighbors": 2}, {"bandwidth": 1.0}], ids=str)
def test_overflowing_distances_raise(width):
    X = np.array([[-1.0], [0.0], [1.5]])
    for scale in (1e150, 1e200, 1e308):
        model = LocalRegression(0, **width).fit(X * scale, [0.0, 1.0, 2.0])
        if scale == 1e150:
            assert np.isfinite(model.predict(X * scale * 1.1)).all()
            continue
        with pytest.raises(ValueError, match="X: expected finite distances"):
            model.predict(X * scale * 1.1)


def test_far_outliers_do_not_change_other_neighbourhoods():
    X, y, points = wavy(60, 2)
    expected = LocalRegression(n_neighbors=20).fit(X, y).predict(points)
    with_outlier = LocalRegression(n_neighbors=20).fit(np.vstack([X, [[1e300, 0.0]]]), [*y, 1e3])
    np.testing.assert_allclose(with_outlier.predict(points), expected, rtol=1e-9)


# ---------------------------------------------------------------------------------- classes


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
        design = terms(X - point, degree)[:, 1:]
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


# ------------------------------------------------------------------------------- properties


@st.composite
def tables(draw):
    # Multiples of one half, so that ties, duplicates and collinear rows are frequent.
    n_rows, n_features = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    number = st.integers(-3, 3).map(lambda i: i / 2)
    row = st.lists(number, min_size=n_features, max_size=n_features)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    y = draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows))
    points = draw(st.lists(row, min_size=1, max_size=8))
    return np.array(X), np.array(y, dtype=float), np.array(points)


widths = st.one_of(
    st.integers(1, 25).map(lambda k: {"n_neighbors": k}),
    st.sampled_from([0.4, 1.0, 1.3, 20.0]).map(lambda h: {"bandwidth": h}),
)


@settings(deadline=None, max_examples=300)
@given(tables(), widths, st.sampled_from(sorted(FORMULAS)), st.integers(0, 2), st.booleans())
def test_predictions_are_finite_and_equivariant(table, width, kernel, degree, ridge):
    X, y, points = table
    model = LocalRegression(degree, kernel=kernel, alpha=ridge * 0.5, **width).fit(X, y)
    values = model.predict(points)
    assert np.isfinite(values).all()
    assert np.isfinite(model.loo_residuals_).all()
    assert -1e-9 <= model.effective_dof_ <= len(X) + 1e-9
    # Permuted rows, shifted rows, and targets in other units.
    order = np.random.default_rng(0).permutation(len(X))
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    again = clone(model).fit(X[order], y[order]).predict(points)
    # At isolated points, the prediction depends on the order of tied rows.
    is_isolated = model._fit_locally(points).is_isolated
    np.testing.assert_allclose(again[~is_isolated], values[~is_isolated], **tolerance)
    shifted = clone(model).fit(X + 8, y).predict(points + 8)
    np.testing.assert_allclose(shifted[~is_isolated], values[~is_isolated], **tolerance)
    other = clone(model).fit(X, 3 * y - 2).predict(points)
    np.testing.assert_allclose(other, 3 * values - 2, **tolerance)


@settings(deadline=None, max_examples=150)
@given(tables(), widths, st.integers(0, 2), st.data())
def test_weights_equal_repeated_rows_in_any_table(table, width, degree, data):
    X, y, points = table
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X)))
    weights[0] = 1
    weighted = LocalRegression(degree, **width).fit(X, y, weights)
    repeated = LocalRegression(degree, **width).fit(
        np.repeat(X, weights, axis=0), y.repeat(weights)
    )
    is_isolated = weighted._fit_locally(points).is_isolated
    np.testing.assert_allclose(
        weighted.predict(points)[~is_isolated],
        repeated.predict(points)[~is_isolated],
        rtol=1e-6,
        atol=1e-6,
    )


@settings(deadline=None, max_examples=100)
@given(tables(), widths, st.integers(0, 2), st.sampled_from(["identity", "logit"]))
def test_probabilities_are_positive_and_sum_to_one(table, width, degree, link):
    X, y, points = table
    proba = LocalClassifier(degree, link=link, **width).fit(X, y.astype(int)).predict_proba(points)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)


# ----------------------------------------------------------- parameters, input and pickling


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
    X, y, points = wavy(30, 1)
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
    X, y, points = wavy(50, 2)
    for width in ({}, {"bandwidth": "cv"}):
        model = LocalRegression(robust=1, **width).fit(X, y)
        copy = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(copy.predict(points), model.predict(points))
        assert copy.sigma_ == model.sigma_
        again = clone(model).fit(X, y)
        np.testing.assert_array_equal(again.predict(points), model.predict(points))
