"""One mixture per class: against closed forms, the Bayes rule and other libraries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_iris, make_moons
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB

from spinney.mixture import MixtureClassifier


def test_few_prior_rows_give_one_gaussian_per_class():
    X, y = load_iris(return_X_y=True)
    ours = MixtureClassifier(1, covariance_type="full", prior_rows=1e-9).fit(X, y)
    joint = []
    for c in range(3):
        of_class = X[y == c]
        density = multivariate_normal(of_class.mean(axis=0), np.cov(of_class.T, bias=True))
        joint.append(density.logpdf(X) + np.log(1 / 3))
    expected = np.stack(joint, axis=1)
    total = logsumexp(expected, axis=1)
    np.testing.assert_allclose(ours.predict_log_proba(X), expected - total[:, None], rtol=1e-6)
    np.testing.assert_allclose(ours.score_samples(X), total, rtol=1e-6)


def test_diagonal_covariances_give_naive_bayes():
    X, y = load_iris(return_X_y=True)
    ours = MixtureClassifier(1, covariance_type="diag", prior_rows=1e-9).fit(X, y)
    theirs = GaussianNB(var_smoothing=0).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_prior_rows_shrink_the_covariances():
    X, y = load_iris(return_X_y=True)
    covariances = [np.cov(X[y == c].T, bias=True) for c in range(3)]
    within = np.mean(covariances, axis=0)
    n = 20.0
    prior = (150 * within + n * np.diag(np.diag(within))) / (150 + n)
    model = MixtureClassifier(1, covariance_type="full", prior_rows=n).fit(X, y)
    for c in range(3):
        expected = (50 * covariances[c] + n * prior) / (50 + n)
        np.testing.assert_allclose(model.mixtures_[c].covariances_[0], expected, rtol=1e-9)


def test_bic_selects_the_number_of_components():
    rng = np.random.default_rng(0)
    centres = [np.array([[0.0, 0.0]]), np.array([[-4.0, 4.0], [4.0, 4.0], [0.0, -6.0]])]
    X = np.concatenate([c[rng.integers(0, len(c), 900)] for c in centres])
    X += rng.normal(size=X.shape)
    y = np.repeat(["one", "three"], 900)
    model = MixtureClassifier().fit(X, y)
    assert model.n_components_.tolist() == [1, 3]
    assert model.classes_.tolist() == ["one", "three"]
    # The Bayes rule itself is only slightly better on new rows.
    X_new = np.concatenate([c[rng.integers(0, len(c), 5000)] for c in centres])
    X_new += rng.normal(size=X_new.shape)
    y_new = np.repeat(["one", "three"], 5000)
    joint = [
        logsumexp([multivariate_normal(m).logpdf(X_new) for m in c], axis=0) - np.log(len(c))
        for c in centres
    ]
    bayes = np.array(["one", "three"])[np.argmax(joint, axis=0)]
    assert model.score(X_new, y_new) > (bayes == y_new).mean() - 0.005


def test_bic_equals_that_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier(2, covariance_type="diag", prior_rows=1e-9, tol=1e-9, max_iter=500)
    model.fit(X, y)
    # Almost without a prior, it equals the BIC of scikit-learn.
    expected = sum(m.bic(X[y == c]) for c, m in enumerate(model.mixtures_))
    assert model.bic_["diag"] == pytest.approx(expected, rel=1e-6)


def test_several_components_beat_one_gaussian_on_moons():
    X, y = make_moons(600, noise=0.15, random_state=0)
    score = cross_val_score(MixtureClassifier(), X, y).mean()
    assert score > 0.97
    assert score > cross_val_score(GaussianNB(), X, y).mean() + 0.05


def test_accuracy_on_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    assert cross_val_score(MixtureClassifier(), X, y).mean() > 0.92


def test_collinear_constant_and_few_rows():
    X, y = load_iris(return_X_y=True)
    collinear = np.column_stack([X, X[:, 0] + X[:, 1], np.full(150, 1e6), X[:, 2] * 1e9])
    assert MixtureClassifier().fit(collinear, y).score(collinear, y) > 0.95
    few_rows = np.r_[0:50, 50:53, 100:101]  # three rows of one class, one of another
    model = MixtureClassifier().fit(X[few_rows], y[few_rows])
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.n_components_.tolist()[2] == 1
    constant = MixtureClassifier().fit(np.ones((6, 2)), [0, 0, 0, 1, 1, 2])
    np.testing.assert_allclose(constant.predict_proba(np.ones((1, 2))), [[1 / 2, 1 / 3, 1 / 6]])
    two_points = MixtureClassifier().fit(
        1e-6 * np.array([[1.0], [1.0], [2.0], [2.0]]), [0, 0, 1, 1]
    )
    assert two_points.predict([[1.1e-6], [1.9e-6]]).tolist() == [0, 1]
    single_row = MixtureClassifier().fit([[1.0, 2.0]], ["a"])
    assert single_row.predict([[5.0, 5.0]])[0] == "a"


def test_given_numbers_of_components():
    X, y = load_iris(return_X_y=True)
    model = MixtureClassifier([1, 2, 3]).fit(X, y)
    assert model.n_components_.tolist() == [1, 2, 3]
    assert [len(m.weights_) for m in model.mixtures_] == [1, 2, 3]
    few_rows = MixtureClassifier(5).fit([[0.0], [1.0], [7.0], [7.0]], [0, 0, 1, 1])
    assert few_rows.n_components_.tolist() == [2, 1]


def test_units_do_not_matter():
    X, y = load_iris(return_X_y=True)
    scales = np.array([1e6, 1e-6, 1.0, 1e3])
    plain = MixtureClassifier().fit(X, y)
    other = MixtureClassifier().fit(X * scales + 5 * scales, y)
    np.testing.assert_allclose(
        other.predict_proba(X * scales + 5 * scales), plain.predict_proba(X), atol=1e-6
    )


def test_values_with_infinite_variances_raise():
    X, y = load_iris(return_X_y=True)
    for scale in (1e200, 1e-200):
        with pytest.raises(ValueError, match="X: expected columns whose variances are finite"):
            MixtureClassifier().fit(X * scale, y)
    np.testing.assert_array_equal(
        MixtureClassifier().fit(X * 1e100, y).predict(X * 1e100),
        MixtureClassifier().fit(X, y).predict(X),
    )


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 25), st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**31))
def test_small_random_tables_give_finite_results(n_rows, n_features, n_classes, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n_rows, n_features)) / 2
    y = rng.integers(0, n_classes, n_rows)
    model = MixtureClassifier().fit(X, y)
    proba = model.predict_proba(X)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(model.score_samples(X)).all()
    order = rng.permutation(n_rows)
    permuted = MixtureClassifier().fit(X[order], y[order])
    if (permuted.n_components_ == 1).all() and (model.n_components_ == 1).all():
        np.testing.assert_allclose(permuted.predict_proba(X), proba, atol=1e-7)


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_components": 0},
        {"n_components": "aic"},
        {"n_components": 1.5},
        {"n_components": [1, 0]},
        {"n_components": [1, 2, 3]},
        {"n_components": None},
        {"covariance_type": "round"},
        {"covariance_type": None},
        {"priors": [0.5]},
        {"priors": [0.7, 0.7]},
        {"priors": [-1, 2]},
        {"priors": "equal"},
        {"max_components": 0},
        {"prior_rows": 0},
        {"prior_rows": np.nan},
        {"tol": -1},
        {"max_iter": 0},
    ],
    ids=str,
)
def test_invalid_parameters_raise(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"{name}: expected"):
        MixtureClassifier(**parameters).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
