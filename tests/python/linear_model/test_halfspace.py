"""HalfspaceClassifier against exact arithmetic and linear programs; certificates; edge cases."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from spinney.linear_model import HalfspaceClassifier
from spinney.linear_model import _halfspace as halfspace_file
from spinney.linear_model import _separation as separation_file
from spinney.linear_model._exact_separation import convex_combination, exact_sign


def points(X, y, fit_intercept):
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    return Z * np.where(y == y.max(), 1.0, -1.0)[:, None]


def check(model, X, y, weights=None):
    """Check that a fit is a halfspace without error, or has a certificate and its slacks."""
    Z = points(X, y, model.fit_intercept)
    weights = np.ones(len(y)) if weights is None else weights
    products = np.where(y == y.max(), 1, -1) * model.decision_function(X)
    if model.separable_:
        assert model.score(X, y) == 1.0
        assert products.min() >= 1 - 1e-9
        assert model.certificate_ is None
        assert model.slack_ == 0
        assert model.margin_ == pytest.approx(products.min() / np.linalg.norm(model.coef_))
    else:
        multipliers = model.certificate_
        assert (multipliers >= 0).all()
        assert multipliers.sum() == pytest.approx(1, rel=1e-12)
        assert (np.abs(multipliers @ Z) <= 1e-12 * (multipliers @ np.abs(Z)) + 1e-300).all()
        assert model.slack_ == pytest.approx(weights @ np.maximum(0, 1 - products))
        assert model.margin_ <= 0


def least_slack(Z, weights):
    n, d = Z.shape
    solved = linprog(
        np.r_[np.zeros(d), weights],
        A_ub=np.column_stack([-Z, -np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * d + [(0, None)] * n,
        method="highs",
    )
    return solved.fun


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(2, 30),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["normal", "whole", "scaled", "last bits", "line"]),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    fit_intercept=st.booleans(),
)
def test_decision_against_exact_arithmetic(n, d, seed, kind, noise, fit_intercept):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if kind == "whole":
        X = rng.integers(-2, 3, (n, d)).astype(float)
    if kind == "scaled":
        X = X * 10.0 ** rng.integers(-8, 9, d)
    if kind == "last bits":
        X = 1 + rng.integers(-3, 4, (n, d)) * 2.0**-50
    if kind == "line":  # up to rounding, all rows are on one line
        X = X[:, :1] * rng.normal(size=(1, d))
    y = (X[:, 0] / np.abs(X[:, 0]).max(initial=1e-9) + noise * rng.normal(size=n) > 0).astype(int)
    y[0], y[1] = 0, 1
    weights = rng.integers(1, 4, n) * 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = HalfspaceClassifier(fit_intercept=fit_intercept).fit(X, y, weights)
    Z = points(X, y, fit_intercept)
    assert model.separable_ == (not convex_combination(Z)[0])
    assert not caught or kind in ("last bits", "line", "scaled")
    if caught:
        return
    check(model, X, y, weights)
    if not model.separable_ and kind in ("normal", "whole"):
        best = least_slack(Z, weights)
        assert model.slack_ == pytest.approx(best, rel=1e-7, abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 9),
    d=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    digits=st.sampled_from([1, 53]),
)
def test_convex_combinations_are_exact(n, d, seed, digits):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, d)) if digits == 53 else rng.integers(-2, 3, (n, d)) / 8
    combined, numbers = convex_combination(Z)
    if combined:
        assert sum(numbers) == 1
        assert min(numbers) >= 0
        for j in range(d):
            assert sum(Fraction(z) * x for z, x in zip(Z[:, j], numbers, strict=True)) == 0
    else:
        for row in Z:
            assert sum(Fraction(z) * x for z, x in zip(row, numbers, strict=True)) > 0


def test_exclusive_or_is_not_separable():
    X = np.array([[0, 0], [1, 1], [0, 1], [1, 0]]) * 1.0
    model = HalfspaceClassifier().fit(X, [0, 0, 1, 1])
    assert not model.separable_
    # Both diagonals intersect in the middle.
    np.testing.assert_allclose(model.certificate_, 0.25, rtol=1e-12)
    with pytest.raises(ValueError, match="slack='error'"):
        HalfspaceClassifier(slack="error").fit(X, [0, 0, 1, 1])
    assert HalfspaceClassifier(slack="error").fit(X, [0, 1, 1, 1]).separable_


def test_iris():
    X, y = load_iris(return_X_y=True)
    for k, separable in ((0, True), (1, False), (2, False)):
        model = HalfspaceClassifier().fit(X, y == k)
        assert model.separable_ == separable
        check(model, X, y == k)
    # Versicolor against virginica is known not to be separable.
    assert not HalfspaceClassifier().fit(X[50:], y[50:]).separable_


def test_certificate_of_contradictory_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5))
    y = (X[:, 0] > 0).astype(int)
    X[7] = X[3]
    y[3], y[7] = 0, 1
    model = HalfspaceClassifier().fit(X, y)
    assert not model.separable_
    check(model, X, y)


@pytest.mark.parametrize("gap", [1e-3, 1e-9, 1e-13, 2.0**-50, 0.0, -(2.0**-50), -1e-9])
def test_gap_of_one_float(gap):
    # The gap is one step of float64, far below the tolerance of linear programming solvers.
    X = np.array([[0.0], [0.5], [1.0], [1.0 + gap], [1.5], [2.0]])
    y = np.array([0, 0, 0, 1, 1, 1])
    model = HalfspaceClassifier().fit(X, y)
    assert model.separable_ == (gap > 0)
    check(model, X, y)
    turned = np.column_stack([X[:, 0] * 1e8, X[::-1, 0] ** 2, X[:, 0] * 0 + 7])
    assert HalfspaceClassifier().fit(turned[:, [0, 2]], y).separable_ == (gap > 0)


def test_boundary_between_two_floats():
    # Only a boundary between two neighbouring floats separates the classes, or none in float64.
    step = np.nextafter(1.0, 2.0)
    model = HalfspaceClassifier().fit([[1.0], [step]], [0, 1])
    assert model.separable_
    assert model.score([[1.0], [step]], [0, 1]) == 1.0


def test_warning_if_predictions_may_be_wrong():
    # Three coefficients of 53 bits matter, and float64 cannot represent the sum of products.
    one = 1.0 + 2.0**-52
    X = np.array([[one, 1.0], [1.0, 1.0 - 2.0**-53]])
    y = np.array([1, 0])
    assert not convex_combination(points(X, y, False))[0]
    with pytest.warns(ConvergenceWarning, match="so small a margin"):
        model = HalfspaceClassifier(fit_intercept=False).fit(X, y)
    assert model.separable_


def test_exact_arithmetic_after_useless_programs(monkeypatch):
    # The linear program returns a useless result.
    rng = np.random.default_rng(0)
    monkeypatch.setattr(
        separation_file,
        "propose",
        lambda Z: (np.zeros(Z.shape[1]), np.full(len(Z), 1.0 / len(Z))),
    )
    for noise, separable in ((0, True), (2, False)):
        X = rng.normal(size=(25, 3))
        y = (X[:, 0] + noise * rng.normal(size=25) > 0).astype(int)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = HalfspaceClassifier().fit(X, y)
        assert model.separable_ == separable
        if separable:
            # Every vertex is valid here, and its products may be small.
            assert model.score(X, y) == 1 or caught
        else:
            check(model, X, y)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_programs_that_start_with_few_points(monkeypatch, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    y = (X @ np.arange(6) + noise * rng.normal(size=3000) > 0).astype(int)
    expected = HalfspaceClassifier().fit(X, y)
    check(expected, X, y)
    monkeypatch.setattr(separation_file, "FEWEST_POINTS", 10)
    monkeypatch.setattr(separation_file, "POINTS_PER_COLUMN", 2)
    model = HalfspaceClassifier().fit(X, y)
    check(model, X, y)
    assert model.separable_ == expected.separable_ == (noise == 0)


def test_scales_and_offsets():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = (X @ [1, 2, 3] > 0).astype(int)
    X[y == 1] += 0.01
    odd = np.column_stack([X * [1e8, 1, 1e-8] + [0, 1e6, 0], np.full(100, 0.1), X[:, 0] * 1e8])
    model = HalfspaceClassifier().fit(odd, y)
    assert model.separable_
    check(model, odd, y)


@pytest.mark.parametrize("scale", [1e-290, 1e-150, 1e150, 1e300])
def test_huge_and_tiny_scales(scale):
    X = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 2.0], [2.0, 3.5]]) * scale
    model = HalfspaceClassifier().fit(X, [0, 0, 1, 1])
    assert model.separable_
    assert model.score(X, [0, 0, 1, 1]) == 1
    assert model.margin_ == pytest.approx(2**0.5 * scale, rel=0.5)


def test_weights_change_the_slacks():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    y = np.array([0, 1, 0, 1])
    heavy = np.array([1.0, 100.0, 1.0, 100.0])
    assert HalfspaceClassifier().fit(X, y, heavy).predict([[1.0]]) == 1
    assert HalfspaceClassifier().fit(X, y, heavy[::-1]).predict([[1.0]]) == 0
    # Rows of weight zero are ignored.
    model = HalfspaceClassifier().fit(X, y, [1, 0, 1, 1])
    assert model.separable_
    model = HalfspaceClassifier().fit(
        np.vstack([X, X]), np.r_[y, y], np.r_[np.ones(4), np.zeros(4)]
    )
    assert (model.certificate_[4:] == 0).all()


@pytest.mark.parametrize("noise", [0.0, 2.0])
@pytest.mark.parametrize("dense", [True, False])
def test_sparse(monkeypatch, noise, dense):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) * (rng.random((80, 4)) < 0.5)
    y = (X.sum(axis=1) + noise * rng.normal(size=80) > 0.1).astype(int)
    expected = HalfspaceClassifier().fit(X, y)
    if not dense:
        monkeypatch.setattr(halfspace_file, "MOST_DENSE", 0)
        monkeypatch.setattr(separation_file, "FEWEST_POINTS", 20)
        monkeypatch.setattr(separation_file, "POINTS_PER_COLUMN", 2)
    model = HalfspaceClassifier().fit(sparse.csr_matrix(X), y)
    assert model.separable_ == expected.separable_ == (noise == 0)
    check(model, X, y)
    assert model.slack_ == pytest.approx(expected.slack_, rel=1e-7)
    np.testing.assert_array_equal(model.predict(sparse.csc_matrix(X)), model.predict(X))


def test_invalid_input_raises():
    X = [[1.0], [2.0], [3.0]]
    with pytest.raises(ValueError, match="two classes, got 3"):
        HalfspaceClassifier().fit(X, [0, 1, 2])
    with pytest.raises(ValueError, match="one class"):
        HalfspaceClassifier().fit(X, [1, 1, 1])
    with pytest.raises(ValueError, match="one class: 0"):
        HalfspaceClassifier().fit(X, [0, 1, 0], [1, 0, 1])
    with pytest.raises(ValueError, match="slack"):
        HalfspaceClassifier(slack="none").fit(X, [0, 1, 1])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="contains"):
            HalfspaceClassifier().fit([[1.0], [bad], [3.0]], [0, 1, 1])


def test_sign_of_a_sum_is_exact():
    assert exact_sign(np.array([1e300, 1.0, -1e300]), np.ones(3)) == 1
    assert exact_sign(np.array([0.1, -0.1]), np.ones(2)) == 0
    assert (
        exact_sign(np.array([0.1, 0.2, -0.3]), np.ones(3)) == 1
    )  # positive for the binary values of these decimals


def test_rounded_normal_is_not_the_proof():
    # An exact normal may separate only some rows, and its rounded value all rows.
    rng = np.random.default_rng(381)
    for _ in range(150):
        n, d = rng.integers(3, 25), rng.integers(1, 5)
        X = rng.normal(size=(n, 1)) @ rng.normal(size=(1, d))
        y = np.zeros(n, dtype=int)
        y[np.argsort(X[:, 0])[n // 2 :]] = 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = HalfspaceClassifier(fit_intercept=False).fit(X, y)
        assert model.separable_ == (not convex_combination(points(X, y, False))[0])
