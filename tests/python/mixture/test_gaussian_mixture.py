"""Gaussian mixtures against scikit-learn and closed forms; sample weights."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.mixture import GaussianMixture as SkGaussianMixture

from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.mixture import GaussianMixture

KINDS = ("full", "tied", "diag", "spherical")
FITTED = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")


def blobs(n_rows=600, n_features=3, n_blobs=3, spread=4.0, seed=0):
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(n_blobs, n_features))
    shapes = rng.normal(size=(n_blobs, n_features, n_features))
    labels = rng.integers(0, n_blobs, n_rows)
    noise = rng.normal(size=(n_rows, n_features))
    return centres[labels] + np.einsum("ni,nij->nj", noise, shapes[labels]), labels


def fit_without_warnings(model, X, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, **parameters)


def log_densities(model, X):
    """Compute the log densities with SciPy, one component at a time."""
    n_features = X.shape[1]
    total = np.zeros(len(X))
    for k in range(model.n_components):
        covariance = {
            "full": lambda k=k: model.covariances_[k],
            "tied": lambda: model.covariances_,
            "diag": lambda k=k: np.diag(model.covariances_[k]),
            "spherical": lambda k=k: model.covariances_[k] * np.eye(n_features),
        }[model.covariance_type]()
        total += model.weights_[k] * multivariate_normal(model.means_[k], covariance).pdf(X)
    return np.log(total)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("init", ["kmeans", "k-means++", "random", "random_from_data"])
@pytest.mark.parametrize("shape", [(600, 3), (300, 1), (257, 9)], ids=str)
def test_same_start_gives_the_result_of_scikit_learn(kind, init, shape):
    if kind == "tied" and init in ("k-means++", "random_from_data"):
        pytest.skip("scikit-learn starts from the variance of all rows about zero there")
    X, _ = blobs(*shape)
    parameters = {
        "covariance_type": kind,
        "init_params": init,
        "random_state": 1,
        "tol": 1e-5,
        "reg_covar": 1e-3,
        "max_iter": 40,
    }
    ours = fit_without_warnings(GaussianMixture(3, **parameters), X)
    theirs = fit_without_warnings(SkGaussianMixture(3, **parameters), X)
    assert ours.n_iter_ == theirs.n_iter_
    assert ours.converged_ == theirs.converged_
    # scikit-learn's initial weights from rows do not sum to one: the first bound differs.
    if SKLEARN_VERSION >= (1, 7):  # older versions keep the last bound only
        np.testing.assert_allclose(ours.lower_bounds_[1:], theirs.lower_bounds_[1:], rtol=1e-7)
    for name in FITTED:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.bic(X) == pytest.approx(theirs.bic(X), rel=1e-8)
    assert ours.aic(X) == pytest.approx(theirs.aic(X), rel=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_densities_equal_those_of_scipy(kind):
    X, _ = blobs()
    model = fit_without_warnings(GaussianMixture(3, covariance_type=kind, random_state=0), X)
    np.testing.assert_allclose(model.score_samples(X), log_densities(model, X), rtol=1e-9)
    assert model.score(X) == pytest.approx(log_densities(model, X).mean())
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_one_component_is_mean_and_covariance(kind):
    X, _ = blobs(500, 4)
    model = GaussianMixture(covariance_type=kind, reg_covar=0).fit(X)
    np.testing.assert_allclose(model.means_[0], X.mean(axis=0), rtol=1e-12)
    covariance = np.cov(X.T, bias=True)
    expected = {
        "full": covariance[None],
        "tied": covariance,
        "diag": np.diag(covariance)[None],
        "spherical": [np.diag(covariance).mean()],
    }[kind]
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_never_decreases(kind):
    X, _ = blobs(spread=1.0)
    model = fit_without_warnings(
        GaussianMixture(4, covariance_type=kind, tol=0, max_iter=60, random_state=0), X
    )
    assert (np.diff(model.lower_bounds_) > -1e-6).all()
    assert model.n_iter_ == 60


def test_true_parameters_are_estimated():
    rng = np.random.default_rng(0)
    covariance = np.array([[1.0, 0.8], [0.8, 1.0]])
    X = np.r_[
        rng.multivariate_normal([0, 0], covariance, 30_000),
        rng.multivariate_normal([4, -4], np.eye(2) / 4, 10_000),
    ]
    model = GaussianMixture(2, random_state=0, tol=1e-6).fit(X)
    order = np.argsort(-model.weights_)
    np.testing.assert_allclose(model.weights_[order], [0.75, 0.25], atol=0.01)
    np.testing.assert_allclose(model.means_[order], [[0, 0], [4, -4]], atol=0.03)
    np.testing.assert_allclose(model.covariances_[order][0], covariance, atol=0.03)
    drawn, labels = model.sample(500)
    assert drawn.shape == (500, 2)
    assert labels.shape == (500,)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("offset", [1e8, -1e8])
def test_offsets_do_not_change_the_fit(kind, offset):
    X, _ = blobs(400, 3)
    X = np.round(X * 1024) / 1024  # so that adding the offset is exact up to a few bits
    far = X + offset
    near = far - offset
    parameters = {"covariance_type": kind, "means_init": near[:3], "random_state": 0}
    parameters |= {"init_params": "random"}
    near_model = fit_without_warnings(GaussianMixture(3, **parameters), near)
    parameters["means_init"] = far[:3]
    far_model = fit_without_warnings(GaussianMixture(3, **parameters), far)
    assert near_model.n_iter_ == far_model.n_iter_
    np.testing.assert_allclose(
        far_model.covariances_, near_model.covariances_, rtol=1e-5, atol=1e-6
    )
    # A mean near 1e8 has a precision of 1e-8; log densities change by the slope times that.
    np.testing.assert_allclose(
        far_model.score_samples(far), near_model.score_samples(near), atol=1e-4
    )


def test_distant_clusters_share_an_accurate_covariance():
    # Subtracting squares of means from squares of rows would lose all digits.
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(1000, 2)) @ [[1.0, 0.5], [0.0, 1.0]]
    X = noise + 1e8 * (np.arange(1000) % 2)[:, None]
    model = GaussianMixture(2, covariance_type="tied", random_state=0, reg_covar=0).fit(X)
    halves = [X[i::2] - X[i::2].mean(axis=0) for i in (0, 1)]
    expected = np.cov(np.concatenate(halves).T, bias=True)
    np.testing.assert_allclose(model.covariances_, expected, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_threads_does_not_change_the_fit(kind):
    X, _ = blobs(9000, 7, 4)
    weights = np.random.default_rng(1).random(9000)
    fits = [
        fit_without_warnings(
            GaussianMixture(4, covariance_type=kind, random_state=0, n_jobs=n, max_iter=8),
            X,
            sample_weight=weights,
        )
        for n in (1, 2, 3, 7)
    ]
    for model in fits[1:]:
        for name in FITTED:
            np.testing.assert_array_equal(getattr(model, name), getattr(fits[0], name))
        assert model.lower_bounds_ == fits[0].lower_bounds_
        np.testing.assert_array_equal(model.score_samples(X), fits[0].score_samples(X))


@pytest.mark.parametrize("kind", KINDS)
def test_integer_weights_equal_repeated_rows(kind):
    X, labels = blobs(300)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    means = np.stack([X[labels == c].mean(axis=0) for c in range(3)])
    shape = {"full": (3, 3, 3), "tied": (3, 3), "diag": (3, 3), "spherical": (3,)}[kind]
    precisions = np.ones(shape) if kind in ("diag", "spherical") else np.zeros(shape) + np.eye(3)
    model = GaussianMixture(
        3,
        covariance_type=kind,
        means_init=means,
        weights_init=np.full(3, 1 / 3),
        precisions_init=precisions,
    )
    weighted = fit_without_warnings(clone(model), X, sample_weight=weights)
    repeated = fit_without_warnings(clone(model), X.repeat(weights, axis=0))
    assert weighted.n_iter_ == repeated.n_iter_
    for name in FITTED:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-8)
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 30),
    st.integers(1, 5),
    st.integers(1, 4),
    st.sampled_from(KINDS),
    st.integers(0, 2**31),
)
def test_small_random_tables_give_finite_results(n_rows, n_features, n_components, kind, seed):
    # Multiples of one half, so that duplicates, constant and collinear columns are frequent.
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (max(n_rows, n_components), n_features)) / 2
    model = GaussianMixture(n_components, covariance_type=kind, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (model.weights_ >= 0).all()
    for name in FITTED:
        assert np.isfinite(getattr(model, name)).all()
    assert np.isfinite(model.score_samples(X)).all()
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    # The mean of the component means is the mean of the rows.
    np.testing.assert_allclose(model.weights_ @ model.means_, X.mean(axis=0), atol=1e-6)


def test_fewer_distinct_rows_than_components_warn():
    X = np.repeat([[0.0, 0.0], [5.0, 5.0]], 10, axis=0)
    with pytest.warns(ConvergenceWarning, match="1 of 3 components have no rows"):
        model = GaussianMixture(3, random_state=0).fit(X)
    assert (model.weights_ == 0).sum() == 1
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.score_samples(X)).all()
    assert set(model.predict(X)) == set(np.flatnonzero(model.weights_))


def test_collapsed_component_warns():
    X = np.r_[np.random.default_rng(0).normal(size=(50, 2)), [[100.0, 100.0]]]
    parameters = {
        "means_init": [[0.0, 0.0], [100.0, 100.0]],
        "weights_init": [0.5, 0.5],
        "precisions_init": np.ones((2, 2)),
        "covariance_type": "diag",
        "reg_covar": 0,
    }
    with pytest.warns(ConvergenceWarning, match=r"components 1 have a singular covariance"):
        model = GaussianMixture(2, **parameters).fit(X)
    np.testing.assert_array_equal(model.covariances_[1], 1.0)
    np.testing.assert_allclose(model.weights_, [50 / 51, 1 / 51])


def test_collinear_rows_need_regularization():
    t = np.random.default_rng(0).normal(size=200)
    X = np.column_stack([t, 2 * t, np.full(200, 3.0)])
    model = GaussianMixture(random_state=0).fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    with pytest.raises(ValueError, match="reg_covar"):
        GaussianMixture(reg_covar=0).fit(X)


def test_distant_rows_have_finite_densities():
    X, _ = blobs()
    for kind in KINDS:
        model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        densities = model.score_samples([[1e200, -1e200, 1e200], [1e3, 0, 0]])
        assert densities[0] < densities[1] < -1000
        assert not np.isnan(densities).any()
        assert np.isfinite(model.predict_proba([[1e300, 0, 0]])).all()


def test_warm_start_continues():
    X, _ = blobs(spread=1.0)
    one_fit = fit_without_warnings(GaussianMixture(3, random_state=0, tol=0, max_iter=10), X)
    continued = GaussianMixture(3, random_state=0, tol=0, max_iter=5, warm_start=True)
    fit_without_warnings(fit_without_warnings(continued, X), X)
    np.testing.assert_allclose(continued.means_, one_fit.means_, rtol=1e-9)


def test_best_of_several_starts_is_kept():
    X, _ = blobs(300, 2, 6)
    bounds = []
    for n_init in (1, 8):
        model = GaussianMixture(6, init_params="random_from_data", random_state=3, n_init=n_init)
        bounds.append(fit_without_warnings(model, X).lower_bound_)
    assert bounds[1] > bounds[0]


def test_memory_layouts_and_precisions_agree():
    X, _ = blobs(700, 5)
    plain = GaussianMixture(3, random_state=0).fit(X)
    wide = np.zeros((1400, 10))
    wide[::2, ::2] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    for table in (np.asfortranarray(X), wide[::2, ::2], read_only):
        model = GaussianMixture(3, random_state=0).fit(table)
        np.testing.assert_allclose(model.means_, plain.means_, rtol=1e-9)
        np.testing.assert_allclose(model.score_samples(table), plain.score_samples(X), rtol=1e-8)
    single_precision = GaussianMixture(3, random_state=0).fit(X.astype(np.float32))
    assert single_precision.means_.dtype == np.float32
    assert single_precision.score_samples(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single_precision.means_, plain.means_, rtol=1e-4, atol=1e-4)


def test_fit_predict():
    X, _ = blobs()
    model = GaussianMixture(3, random_state=0)
    labels = clone(model).fit_predict(X)
    model.fit(X)
    np.testing.assert_array_equal(labels, model.predict(X))


def test_invalid_input_raises():
    X, _ = blobs(20)
    with pytest.raises(NotFittedError):
        GaussianMixture().predict(X)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            GaussianMixture().fit(np.where(X.max() == X, bad, X))
    with pytest.raises(ValueError, match="n_components = 30"):
        GaussianMixture(30).fit(X)
    with pytest.raises(ValueError, match="n_jobs"):
        GaussianMixture(n_jobs=0).fit(X)
    with pytest.raises(ValueError, match="Sample weights"):
        GaussianMixture().fit(X, sample_weight=np.zeros(20))
    with pytest.raises(ValueError, match="sample_weight"):
        GaussianMixture().fit(X, sample_weight=-np.ones(20))
    with pytest.raises(ValueError, match="sample_weight"):
        GaussianMixture().fit(X, sample_weight=np.full(20, np.nan))
    with pytest.raises(ValueError, match="covariance_type"):
        GaussianMixture(covariance_type="round").fit(X)
    with pytest.raises(ValueError, match="features"):
        GaussianMixture().fit(X).predict(X[:, :2])


@pytest.mark.parametrize("kind", KINDS)
def test_values_with_infinite_squares_raise(kind):
    X, _ = blobs(50)
    with pytest.raises(ValueError, match="X: expected numbers whose squares are finite"):
        GaussianMixture(2, covariance_type=kind, init_params="random").fit(X * 1e200)
    tiny = GaussianMixture(covariance_type=kind).fit(X * 1e-200)
    assert np.isfinite(tiny.score_samples(X * 1e-200)).all()
