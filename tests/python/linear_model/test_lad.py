"""LADRegressor against linear programs, optimality conditions and medians; edge cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from spinney.linear_model import LADRegressor
from spinney.linear_model import _pinball as pinball


def loss(residuals, weights, quantile=0.5):
    return np.sum(weights * np.maximum(2 * quantile * residuals, 2 * (quantile - 1) * residuals))


def by_linear_program(X, y, weights, quantile=0.5, fit_intercept=True):
    """Solve the primal linear program, with columns scaled for the solver's tolerances."""
    design = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    if fit_intercept:
        design = np.column_stack([design, np.ones(len(X))])
    n, d = design.shape
    solved = linprog(
        np.r_[np.zeros(d), 2 * quantile * weights, 2 * (1 - quantile) * weights],
        A_eq=np.hstack([design, np.eye(n), -np.eye(n)]),
        b_eq=y,
        bounds=[(None, None)] * d + [(0, None)] * (2 * n),
        method="highs",
    )
    return solved.fun


def check_optimal(model, X, y, weights):
    """Check the optimality conditions of the dual, and the duality gap."""
    q = model.quantile
    residuals = y - model.predict(X)
    total = loss(residuals, weights, q)
    size = np.abs(y).max() + np.abs(X * model.coef_).sum(axis=1).max() + abs(model.intercept_)
    tiny = 1e-12 * (size + 1e-300) * weights.sum()
    assert model.loss_ == pytest.approx(total, rel=1e-9, abs=tiny)
    dual = model.dual_
    assert (dual <= 2 * q * weights * (1 + 1e-12)).all()
    assert (dual >= 2 * (q - 1) * weights * (1 + 1e-12)).all()
    reach = np.abs(dual) @ np.abs(X)
    assert (np.abs(dual @ X) <= 1e-9 * reach + 1e-300).all()
    if model.fit_intercept:
        assert abs(dual.sum()) <= 1e-9 * np.abs(dual).sum() + 1e-300
    assert 0 <= model.duality_gap_ <= 1e-9 * total + tiny
    # The dual's lower bound holds for every other line.
    assert dual @ y == pytest.approx(total, rel=1e-8, abs=100 * tiny)


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 40),
    d=st.integers(1, 6),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["normal", "whole", "heavy"]),
    quantile=st.sampled_from([0.5, 0.1, 0.75]),
    fit_intercept=st.booleans(),
    weighted=st.booleans(),
)
def test_against_a_linear_program(n, d, seed, kind, quantile, fit_intercept, weighted):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    if kind == "whole":
        X, y = rng.integers(-2, 3, (n, d)).astype(float), rng.integers(-3, 4, n).astype(float)
    if kind == "heavy":
        y = rng.standard_cauchy(n)
    weights = rng.integers(1, 4, n) * 1.0 if weighted else np.ones(n)
    model = LADRegressor(quantile=quantile, fit_intercept=fit_intercept).fit(X, y, weights)
    check_optimal(model, X, y, weights)
    best = by_linear_program(X, y, weights, quantile, fit_intercept)
    assert model.loss_ <= best + 1e-7 * (1 + best)
    assert model.loss_ >= best - 1e-7 * (1 + best)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_fit_without_features_is_a_quantile(quantile):
    rng = np.random.default_rng(0)
    y = rng.normal(size=101)
    model = LADRegressor(quantile=quantile).fit(np.zeros((101, 1)), y)
    expected = np.sort(y)[int(np.ceil(quantile * 101)) - 1]
    assert model.intercept_ == pytest.approx(expected, abs=1e-15)
    assert model.coef_ == 0


def test_share_of_rows_below():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    y = X @ [1, 2, 3] + (1 + np.abs(X[:, 0])) * rng.normal(size=1000)
    for quantile in (0.1, 0.5, 0.9):
        model = LADRegressor(quantile=quantile).fit(X, y)
        residuals = y - model.predict(X)
        residuals[model.support_] = 0
        assert np.mean(residuals < 0) <= quantile <= np.mean(residuals <= 0)
        assert len(model.support_) == 4


def test_order_and_repetition_of_rows_have_no_effect():
    # Integers have many optimal fits: the choice must not depend on the order of rows.
    rng = np.random.default_rng(3)
    X, y = rng.integers(-2, 3, (40, 3)) * 1.0, rng.integers(-2, 3, 40) * 1.0
    weights = rng.integers(0, 4, 40)
    weighted = LADRegressor().fit(X, y, weights)
    repeated = np.repeat(np.arange(40), weights)
    rng.shuffle(repeated)
    model = LADRegressor().fit(X[repeated], y[repeated])
    np.testing.assert_array_equal(model.coef_, weighted.coef_)
    assert model.intercept_ == weighted.intercept_


def test_blas_threads_do_not_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 12))
    y = np.round(X.sum(axis=1) + rng.standard_t(2, 5000))
    fits = []
    for n_threads in (1, 2):
        with threadpool_limits(limits=n_threads, user_api="blas"):
            fits.append(LADRegressor().fit(X, y))
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    np.testing.assert_array_equal(fits[0].dual_, fits[1].dual_)


def test_outliers_do_not_change_the_fit():
    X = np.arange(20.0)[:, None]
    y = 3 * X[:, 0] - 7
    y[[2, 11, 17]] += [1e6, -1e9, 1e12]
    model = LADRegressor().fit(X, y)
    np.testing.assert_allclose(model.coef_, [3], rtol=1e-12)
    assert model.intercept_ == pytest.approx(-7, abs=1e-11)


def test_columns_of_all_sizes_and_repeated_ones():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 3))
    y = base @ [1, -2, 3] + rng.standard_cauchy(200)
    plain = LADRegressor().fit(base, y)
    shifted = base * [1e8, 1, 1e-8] + [1e12, 0, 1e-6]
    odd = LADRegressor().fit(shifted, y)
    assert odd.loss_ == pytest.approx(plain.loss_, rel=1e-9)
    more = np.column_stack([base, base[:, 0], np.full(200, 0.1), base @ [1, 1, 1], np.zeros(200)])
    wide = LADRegressor().fit(more, y)
    assert wide.loss_ == pytest.approx(plain.loss_, rel=1e-12)
    assert np.count_nonzero(wide.coef_) == 3
    np.testing.assert_allclose(wide.predict(more), plain.predict(base), rtol=1e-9)


@pytest.mark.parametrize("scale_x", [1e-160, 1.0, 1e150, 1e307])
@pytest.mark.parametrize("scale_y", [1e-100, 1.0, 1e150])
def test_huge_and_tiny_scales(scale_x, scale_y):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (60, 2)), rng.uniform(-1, 1, 60)
    expected = LADRegressor().fit(X, y).loss_
    if scale_y / scale_x > 1e300:
        with pytest.raises(ValueError, match="beyond the range of float64"):
            LADRegressor().fit(X * scale_x, y * scale_y)
        return
    if scale_y / scale_x < 1e-320:
        # Coefficients underflow to zero, and a warning is emitted.
        with pytest.warns(ConvergenceWarning, match="duality_gap_"):
            model = LADRegressor().fit(X * scale_x, y * scale_y)
        assert model.loss_ == pytest.approx(np.abs(y * scale_y - model.intercept_).sum())
        assert 0 < model.duality_gap_ < model.loss_
        return
    model = LADRegressor().fit(X * scale_x, y * scale_y)
    assert model.loss_ / scale_y == pytest.approx(expected, rel=1e-9)


def test_more_features_than_rows_interpolate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(5, 9)), rng.normal(size=5)
    for fit_intercept in (True, False):
        model = LADRegressor(fit_intercept=fit_intercept).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-12)
        assert model.duality_gap_ <= 1e-12


def test_exact_line_and_constants():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    model = LADRegressor().fit(X, X @ [4.0, -2.0] + 1)
    np.testing.assert_allclose(model.coef_, [4, -2], rtol=1e-12)
    assert model.loss_ < 1e-12
    for value in (0.0, 0.1, -3e200):
        flat = LADRegressor().fit(X, np.full(50, value))
        np.testing.assert_allclose(flat.predict(X), value, rtol=1e-14)
    one = LADRegressor().fit([[5.0]], [3.0])
    assert one.predict([[7.0]]) == 3.0
    # Without an intercept and with columns of zeros there is nothing to fit.
    none = LADRegressor(fit_intercept=False).fit(np.zeros((3, 2)), [1.0, -2.0, 3.0])
    assert none.loss_ == 6.0
    assert none.duality_gap_ == 0.0


def test_failed_interior_point_method(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X.sum(axis=1) + rng.standard_cauchy(300)
    expected = LADRegressor().fit(X, y)
    monkeypatch.setattr(pinball, "approach", lambda X, y, low, high: (y[::-1].copy(), 0))
    model = LADRegressor().fit(X, y)
    assert model.n_iter_ > 5
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_failed_descent_falls_back_to_highs(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = X.sum(axis=1) + rng.standard_cauchy(100)
    expected = LADRegressor().fit(X, y)
    calls = []
    descend = pinball.descend

    def stop_early(X, y, low, high, rows):
        calls.append(1)
        if len(calls) <= 4:  # simulate a descent that stops too early
            return rows, np.full(len(y), low), 0
        return descend(X, y, low, high, rows)

    monkeypatch.setattr(pinball, "descend", stop_early)
    model = LADRegressor().fit(X, y)
    assert len(calls) > 4
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_large_problems_need_no_linear_program():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = X.sum(axis=1) + rng.standard_t(2, 20_000)
    model = LADRegressor().fit(X, y)
    check_optimal(model, X, y, np.ones(len(y)))


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array, pd.DataFrame])
def test_containers_give_the_same_model(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * (rng.random((40, 3)) < 0.4)
    y = rng.normal(size=40)
    model = LADRegressor().fit(X, y)
    other = LADRegressor().fit(container(X), y)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    np.testing.assert_allclose(other.predict(container(X)), model.predict(X), rtol=1e-14)


def test_invalid_input_raises():
    X, y = [[1.0], [2.0]], [1.0, 2.0]
    with pytest.raises(ValueError, match="quantile"):
        LADRegressor(quantile=1.0).fit(X, y)
    with pytest.raises(ValueError, match="at least one non-zero"):
        LADRegressor().fit(X, y, [0, 0])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        LADRegressor().fit(X, y, [1, -1])
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="contains"):
            LADRegressor().fit([[1.0], [bad]], y)
        with pytest.raises(ValueError, match="contains"):
            LADRegressor().fit(X, [1.0, bad])
