"""PolynomialRegression against NumPy and leave-one-out refits; several columns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from spinney.linear_model import PolynomialRegression


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    degree=st.integers(0, 8),
    n=st.integers(12, 60),
    offset=st.sampled_from([0.0, 3.0, -40.0]),
)
def test_one_column_equals_numpy(seed, degree, n, offset):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, n) + offset
    y = np.sin(3 * (x - offset)) + 0.1 * rng.normal(size=n)
    w = rng.uniform(0.1, 2, n)
    model = PolynomialRegression(degree).fit(x[:, None], y, w)
    theirs = np.polyfit(x - offset, y, degree, w=np.sqrt(w))
    points = np.linspace(x.min(), x.max(), 50)
    expected = np.polyval(theirs, points - offset)
    np.testing.assert_allclose(model.predict(points[:, None]), expected, atol=1e-8)
    np.testing.assert_allclose(model.polynomial_(points), expected, atol=1e-8)


@pytest.mark.parametrize("n", [2, 6, 15])
def test_degree_n_goes_through_n_plus_one_points(n):
    rng = np.random.default_rng(n)
    x = np.cos(np.pi * (np.arange(n + 1) + 0.5) / (n + 1)) * 7 + 100
    y = rng.normal(size=n + 1)
    model = PolynomialRegression(n).fit(x[:, None], y)
    np.testing.assert_allclose(model.predict(x[:, None]), y, atol=1e-9)


def test_high_degrees_keep_their_digits():
    x = np.linspace(1000, 1001, 400)
    y = np.exp(x - 1000)
    model = PolynomialRegression(20).fit(x[:, None], y)
    np.testing.assert_allclose(model.predict(x[:, None]), y, rtol=1e-12)


def test_several_columns_span_all_products():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 2))
    model = PolynomialRegression(3).fit(X, y)
    terms = PolynomialFeatures(3).fit_transform(X)
    assert len(model.exponents_) == terms.shape[1] == 20
    expected = terms @ np.linalg.lstsq(terms, y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-9)
    assert not hasattr(model, "polynomial_")


@pytest.mark.parametrize("n_features", [1, 2])
def test_leave_one_out_errors_equal_refits(n_features):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(24, n_features))
    y = X[:, 0] ** 2 + 0.3 * rng.normal(size=24)
    model = PolynomialRegression(max_degree=4).fit(X, y)
    for degree in range(3):
        off = [
            y[i] - PolynomialRegression(degree).fit(*_without(X, y, i)).predict(X[i : i + 1])[0]
            for i in range(24)
        ]
        np.testing.assert_allclose(model.cv_errors_[degree], np.mean(np.square(off)))
    assert model.degree_ == int(np.argmin(model.cv_errors_)) == 2


def _without(X, y, i):
    return np.delete(X, i, axis=0), np.delete(y, i)


def test_folds_find_the_degree():
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (200, 1))
    y = x[:, 0] ** 3 - x[:, 0] + 0.1 * rng.normal(size=200)
    assert PolynomialRegression(cv=5).fit(x, y).degree_ in (3, 4)
    assert len(PolynomialRegression(max_degree=4, cv=5).fit(x, y).cv_errors_) == 5


def test_few_rows_limit_the_degree():
    rng = np.random.default_rng(6)
    assert PolynomialRegression().fit(rng.normal(size=(4, 1)), rng.normal(size=4)).degree_ <= 2
    assert PolynomialRegression().fit(np.ones((9, 2)), rng.normal(size=9)).degree_ == 0
    many = PolynomialRegression().fit(rng.normal(size=(50, 40)), rng.normal(size=50))
    assert many.degree_ <= 1


def test_errors_name_the_invalid_parameter():
    X, y = np.zeros((5, 60)), np.zeros(5)
    with pytest.raises(ValueError, match=r"degree: expected .* of degree 5 with 60 columns"):
        PolynomialRegression(5).fit(X, y)
    with pytest.raises(ValueError, match="The 'degree' parameter"):
        PolynomialRegression(-1).fit(X, y)
    with pytest.raises(ValueError, match="zero"):
        PolynomialRegression(1).fit(X, y, np.zeros(5))


def test_linearly_dependent_terms():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 3, 60)
    y = 1 - 2 * x + 0.5 * x**3 + 0.05 * rng.normal(size=60)
    yes = rng.integers(0, 2, 60)
    for other, target in ((np.ones(60), y), (yes, y + yes)):
        model = PolynomialRegression(max_degree=5).fit(np.column_stack([x, other]), target)
        assert model.degree_ >= 3
        assert model.score(np.column_stack([x, other]), target) > 0.99


def test_scale_of_weights_does_not_matter():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (50, 1))
    y = x[:, 0] ** 3 + 0.1 * rng.normal(size=50)
    w = rng.integers(1, 4, 50)
    chosen = [PolynomialRegression().fit(x, y, w * s).cv_errors_ for s in (1.0, 0.01, 1e6)]
    np.testing.assert_allclose(chosen[0], chosen[1])
    np.testing.assert_allclose(chosen[0], chosen[2])
    repeated = PolynomialRegression().fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(chosen[0], repeated.cv_errors_)
    both = PolynomialRegression().fit(x, np.column_stack([y, y]), w)
    np.testing.assert_allclose(chosen[0], both.cv_errors_)


def test_refits_remove_old_attributes():
    x = np.arange(8.0)[:, None]
    model = PolynomialRegression().fit(x, x[:, 0])
    model.set_params(degree=1).fit(np.column_stack([x, x**2]), x[:, 0])
    assert not hasattr(model, "polynomial_")
    assert not hasattr(model, "cv_errors_")
