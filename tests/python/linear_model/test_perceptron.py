"""Perceptron against scikit-learn and a reference loop; Novikoff's bound; variants."""

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as theirs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning

from spinney.linear_model import HalfspaceClassifier, Perceptron
from spinney.theory import perceptron_bound

VARIANTS = ["last", "average", "pocket"]


@pytest.mark.parametrize("load", [load_iris, load_digits, load_breast_cancer])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"shuffle": False},
        {"random_state": 3},
        {"fit_intercept": False},
        {"class_weight": "balanced"},
        {"max_iter": 7, "tol": None},
        {"eta0": 0.5},
        {"penalty": "l2"},
        {"early_stopping": True},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_equals_scikit_learn(load, parameters):
    X, y = load(return_X_y=True)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    for w in (None, weights):
        model = Perceptron(**parameters).fit(X, y, sample_weight=w)
        expected = theirs.Perceptron(**parameters).fit(X, y, sample_weight=w)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, rtol=1e-9)
        assert model.n_iter_ <= expected.n_iter_
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def by_hand(X, y, n_passes, fit_intercept=True):
    """Loop over the rows in order; return the plane, the sum of all planes, and mistakes."""
    rows = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    signs = np.where(y, 1.0, -1.0)
    w = np.zeros(rows.shape[1])
    total, n_mistakes = np.zeros_like(w), 0
    for _ in range(n_passes):
        for row, sign in zip(rows, signs, strict=True):
            if sign * (row @ w) <= 0:
                w += sign * row
                n_mistakes += 1
            total += w
    return w, total / (n_passes * len(X)), n_mistakes


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(2, 40),
    d=st.integers(1, 20),
    seed=st.integers(0, 10**6),
    n_passes=st.integers(1, 5),
    fit_intercept=st.booleans(),
    kind=st.sampled_from(["dense", "float32", "sparse"]),
)
def test_perceptrons_equal_a_plain_loop(n, d, seed, n_passes, fit_intercept, kind):
    # Integers are not rounded, so that all results are equal.
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (n, d)).astype(float)
    y = rng.random(n) < 0.5
    y[:2] = [False, True]
    given = {"dense": X, "float32": X.astype(np.float32), "sparse": sparse.csr_matrix(X)}[kind]
    options = {"shuffle": False, "tol": None, "fit_intercept": fit_intercept}
    last, average, n_mistakes = by_hand(X, y, n_passes, fit_intercept)
    model = Perceptron(max_iter=n_passes, **options).fit(given, y)
    np.testing.assert_array_equal(np.r_[model.coef_[0], model.intercept_][: len(last)], last)
    assert model.n_mistakes_[0] == n_mistakes
    if model.n_iter_ == n_passes:
        model = Perceptron(max_iter=n_passes, variant="average", **options).fit(given, y)
        found = np.r_[model.coef_[0], model.intercept_][: len(last)]
        tolerance = 1e-5 if kind == "float32" else 1e-10
        np.testing.assert_allclose(found, average, rtol=tolerance, atol=tolerance)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(4, 60),
    d=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_bound_of_mistakes(n, d, seed, fit_intercept, weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    normal = rng.normal(size=d)
    y = X @ normal > 0
    X += 0.3 * np.where(y, 1, -1)[:, None] * normal / np.linalg.norm(normal)
    y[:2] = [False, True]
    X[:2] = np.where(y[:2], 1, -1)[:, None] * normal
    weights = rng.uniform(0.5, 3, n) if weighted else None
    model = Perceptron(fit_intercept=fit_intercept, max_iter=100_000, tol=None)
    model.fit(X, y, sample_weight=weights)
    assert model.score(X, y) == 1
    assert model.margin_[0] > 0
    assert 1 <= model.n_mistakes_[0] <= model.mistake_bound_[0]
    lengths = np.linalg.norm(np.column_stack([X, np.full(n, float(fit_intercept))]), axis=1)
    assert model.radius_ == pytest.approx(lengths.max())
    same = perceptron_bound(X, y, model.coef_[0], model.intercept_[0], fit_intercept=fit_intercept)
    spread = weights.max() / weights.min() if weighted else 1.0
    assert model.mistake_bound_[0] == pytest.approx(same * spread)
    if not weighted:
        # Every separating hyperplane bounds the number of mistakes.
        assert model.n_mistakes_[0] <= perceptron_bound(X, y, fit_intercept=fit_intercept)


def test_mistake_bound_of_inseparable_classes_is_infinite():
    X = np.array([[0, 0], [1, 1], [0, 1], [1, 0]]) * 1.0
    model = Perceptron(max_iter=50, tol=None).fit(X, [0, 0, 1, 1])
    assert model.n_iter_ == 50
    assert model.margin_[0] <= 0
    assert model.mistake_bound_[0] == np.inf
    assert model.n_mistakes_[0] > 50


def test_ends_with_a_pass_without_mistakes():
    X, y = load_iris(return_X_y=True)
    model = Perceptron(tol=None).fit(X, y == 0)
    assert model.n_iter_ < 50
    assert model.t_ == 1 + 150 * model.n_iter_
    expected = theirs.Perceptron(tol=None).fit(X, y == 0)
    assert expected.n_iter_ == 1000
    np.testing.assert_allclose(model.coef_, expected.coef_)
    assert HalfspaceClassifier().fit(X, y == 0).separable_


def test_pocket_and_average_of_inseparable_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    y = X.sum(axis=1) + rng.normal(size=2000) > 0
    new = rng.normal(size=(20_000, 5))
    truth = new.sum(axis=1) > 0
    right = {}
    for variant in VARIANTS:
        runs = [Perceptron(variant=variant, random_state=seed).fit(X, y) for seed in range(8)]
        right[variant] = np.mean([(run.predict(new) == truth).mean() for run in runs])
    assert right["last"] < 0.93 < right["average"]
    assert right["last"] < 0.93 < right["pocket"]
    for seed in range(5):
        # The pocket evaluates the last plane of every pass: it is no worse than any of these.
        pocket = Perceptron(variant="pocket", tol=None, max_iter=6, random_state=seed).fit(X, y)
        for n_passes in range(1, 7):
            last = Perceptron(tol=None, max_iter=n_passes, random_state=seed).fit(X, y)
            assert pocket.score(X, y) >= last.score(X, y)


def test_pocket_counts_weights():
    X, y = np.array([[1.0], [1.0], [1.0]]), np.array([0, 0, 1])
    options = {"variant": "pocket", "fit_intercept": False, "max_iter": 20, "tol": None}
    assert Perceptron(**options).fit(X, y).predict([[1.0]]) == 0
    assert Perceptron(**options).fit(X, y, sample_weight=[1, 1, 5]).predict([[1.0]]) == 1
    assert Perceptron(class_weight={1: 5}, **options).fit(X, y).predict([[1.0]]) == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_threads_do_not_matter(variant):
    X, y = load_digits(return_X_y=True)
    models = [Perceptron(variant=variant, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 5)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        np.testing.assert_array_equal(model.n_mistakes_, models[0].n_mistakes_)


@pytest.mark.parametrize("variant", VARIANTS)
def test_sparse_rows_equal_dense_rows(variant):
    X, y = load_digits(return_X_y=True)  # integers: sums do not depend on their order
    dense = Perceptron(variant=variant).fit(X, y)
    for container in (sparse.csr_matrix, sparse.csc_array):
        model = Perceptron(variant=variant).fit(container(X), y)
        np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(model.n_mistakes_, dense.n_mistakes_)


def test_rows_of_weight_zero_are_ignored():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.random(60) < 0.5
    y[:2] = [False, True]
    weights = np.r_[np.ones(30), np.zeros(30)]
    options = {"shuffle": False, "max_iter": 5, "tol": None}
    model = Perceptron(**options).fit(X, y, sample_weight=weights)
    half = Perceptron(**options).fit(X[:30], y[:30])
    np.testing.assert_array_equal(model.coef_, half.coef_)
    assert model.radius_ == half.radius_
    assert model.mistake_bound_ == half.mistake_bound_


def test_partial_fit_and_warm_start_continue():
    X, y = load_iris(return_X_y=True)
    model = Perceptron(shuffle=False)
    for _ in range(4):
        model.partial_fit(X, y, classes=[0, 1, 2])
    one_fit = Perceptron(shuffle=False, max_iter=4, tol=None).fit(X, y)
    np.testing.assert_allclose(model.coef_, one_fit.coef_, rtol=1e-12)
    np.testing.assert_array_equal(model.n_mistakes_, one_fit.n_mistakes_)
    assert model.t_ == one_fit.t_
    for variant in VARIANTS:
        warm = Perceptron(variant=variant, shuffle=False, max_iter=2, tol=None, warm_start=True)
        warm.fit(X, y).fit(X, y)
        np.testing.assert_allclose(warm._planes[:, :-1], one_fit.coef_, rtol=1e-12)
        assert (warm.mistake_bound_ == np.inf).all()


def test_fit_from_given_coefficients():
    X, y = load_iris(return_X_y=True)
    y = y == 0
    first = Perceptron().fit(X, y)
    again = Perceptron().fit(X, y, coef_init=first.coef_, intercept_init=first.intercept_)
    assert again.n_mistakes_ == 0
    assert again.n_iter_ == 1
    assert again.mistake_bound_ == np.inf


def test_float32_rows_give_float32_coefficients():
    X, y = load_iris(return_X_y=True)
    model = Perceptron().fit(X.astype(np.float32), y)
    assert model.coef_.dtype == np.float32


def test_warning_and_labels():
    X, y = load_iris(return_X_y=True, as_frame=True)
    with pytest.warns(ConvergenceWarning):
        Perceptron(max_iter=2).fit(X, y)
    labels = pd.Series(["a", "b", "c"]).iloc[y].to_numpy()
    assert set(Perceptron().fit(X, labels).predict(X)) <= {"a", "b", "c"}


def test_invalid_input_raises():
    X, y = [[1.0], [2.0], [-1.0]], [1, 1, 0]
    with pytest.raises(ValueError, match="variant"):
        Perceptron(variant="best").fit(X, y)
    with pytest.raises(ValueError, match="variant: expected 'last'"):
        Perceptron(variant="pocket", penalty="l2").fit(X, y)
    with pytest.raises(ValueError, match="sample_weight: expected weights >= 0"):
        Perceptron().fit(X, y, sample_weight=[1, -1, 1])
    with pytest.raises(ValueError, match="n_jobs"):
        Perceptron(n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="overflow"):
        Perceptron(eta0=100.0).fit([[1e308], [1.7e308], [1.5e308]], [1, 0, 1])
    with pytest.raises(ValueError, match="greater than one"):
        Perceptron().fit(X, [1, 1, 1])
