"""Least squares: solutions against lstsq, summaries against statsmodels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import hilbert
from scipy.optimize import nnls
from sklearn.exceptions import NotFittedError

from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.linear_model import LinearRegression


def make_rows(n, d, seed=0, n_targets=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    Y = X @ rng.normal(size=(d, n_targets)) + rng.normal(size=(n, n_targets)) + 3
    return X, Y[:, 0] if n_targets == 1 else Y


def about_means(X, y, weights=None):
    """Return centred columns and targets times the roots of the weights, and the means."""
    weights = np.ones(len(X)) if weights is None else weights
    means, level = np.average(X, axis=0, weights=weights), np.average(y, axis=0, weights=weights)
    roots = np.sqrt(weights)
    centred = y - level
    return (X - means) * roots[:, None], (centred.T * roots).T, means, level


# ------------------------------------------------------------------------------- solutions


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_targets", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_equal_lstsq(fit_intercept, n_targets, weighted):
    X, y = make_rows(500, 7, n_targets=n_targets)
    weights = np.random.default_rng(1).random(500) if weighted else None
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weights)
    roots = np.sqrt(np.ones(500) if weights is None else weights)[:, None]
    design = np.column_stack([X, np.ones(500)]) if fit_intercept else X
    truth = np.linalg.lstsq(design * roots, y.reshape(500, -1) * roots, rcond=None)[0]
    np.testing.assert_allclose(np.atleast_2d(model.coef_), truth[:7].T, rtol=1e-8)
    if fit_intercept:
        np.testing.assert_allclose(np.atleast_1d(model.intercept_), truth[7], rtol=1e-8)
    else:
        assert model.intercept_ == 0
    assert model.solver_ == "cholesky"
    A = about_means(X, y, weights)[0] if fit_intercept else X * roots
    assert model.rank_ == 7
    np.testing.assert_allclose(model.singular_, np.linalg.svd(A, compute_uv=False), rtol=1e-10)
    lengths = np.linalg.norm(A, axis=0)
    assert model.condition_ == pytest.approx(np.linalg.cond(A / lengths), rel=1e-9)
    rest = (y - model.predict(X)).reshape(500, -1) * roots
    assert np.abs((X * roots).T @ rest).max() < 1e-9  # the normal equations


def test_each_solver_is_reached():
    X, y = make_rows(200, 4)
    close = np.column_stack([X, X[:, 0] + 1e-5 * X[:, 1] * X[:, 2]])
    twice = np.column_stack([X, X[:, 0]])
    for design, solver, rank in ((X, "cholesky", 4), (close, "qr", 5), (twice, "svd", 4)):
        model = LinearRegression().fit(design, y)
        assert (model.solver_, model.rank_) == (solver, rank)
        A, b, *_ = about_means(design, y)
        truth = np.linalg.lstsq(A, b, rcond=None)[0]
        np.testing.assert_allclose(model.coef_, truth, rtol=1e-8, atol=1e-10)
        assert np.isinf(model.condition_) == (solver == "svd")
    assert LinearRegression(positive=True).fit(X, y).solver_ == "nnls"
    exact = LinearRegression().fit(X, X @ [1.0, 2, 3, 4] + 5)
    assert exact.solver_ == "qr"  # the residual is zero, which normal equations cannot compute
    np.testing.assert_allclose(exact.coef_, [1, 2, 3, 4], rtol=1e-13)


def dependent(seed, n=60):
    """Return rows with two pairs of equal columns, a constant column and an independent one."""
    rng = np.random.default_rng(seed)
    a, b, c = rng.normal(size=(3, n))
    X = np.column_stack([a, a, b, b, c, np.full(n, 0.1)])
    return X, a + 2 * b - c + rng.normal(size=n)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1000), st.lists(st.sampled_from([-8, 0, 8]), min_size=6, max_size=6))
def test_units_of_dependent_columns_do_not_matter(seed, powers):
    X, y = dependent(seed)
    scale = 10.0 ** np.array(powers)
    model = LinearRegression().fit(X * scale, y)
    plain = LinearRegression().fit(X, y)
    assert (model.solver_, model.rank_) == ("svd", 3)
    np.testing.assert_allclose(model.predict(X * scale), plain.predict(X), atol=1e-9)
    # For columns a·s and a·t, the shortest solution splits their effect in the ratio s² : t².
    A, b, *_ = about_means(X[:, [0, 2, 4]], y)
    solution = np.linalg.lstsq(A, b, rcond=None)[0]
    s = scale[:4].reshape(2, 2)
    pairs = solution[:2, None] * s / np.square(s).sum(axis=1, keepdims=True)
    truth = np.concatenate([pairs.ravel(), [solution[2] / scale[4], 0.0]])
    assert np.linalg.norm(model.coef_ - truth) <= 1e-8 * np.linalg.norm(truth)


@pytest.mark.parametrize(("n", "d", "rank"), [(20, 60, 60), (50, 30, 7), (10, 200, 4), (2, 3, 3)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coefficients_are_the_shortest_solution(n, d, rank, fit_intercept):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))
    y = rng.normal(size=(n, 2))
    model = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    A, b = about_means(X, y)[:2] if fit_intercept else (X, y)
    np.testing.assert_allclose(model.coef_, (np.linalg.pinv(A) @ b).T, atol=1e-10)
    assert model.rank_ == np.linalg.matrix_rank(A)


@pytest.mark.parametrize(("n", "d"), [(8, 8), (12, 8), (30, 12), (30, 20)])
def test_ill_conditioned_fit_is_as_good_as_lstsq(n, d):
    X = hilbert(max(n, d))[:n, :d]
    y = np.random.default_rng(0).normal(size=n)
    model = LinearRegression(fit_intercept=False).fit(X, y)
    theirs = np.linalg.lstsq(X, y, rcond=None)[0]
    ours, best = np.linalg.norm(y - X @ model.coef_), np.linalg.norm(y - X @ theirs)
    assert ours <= best * (1 + 1e-3) + 1e-6
    assert model.solver_ != "cholesky"


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 8), st.booleans())
def test_weights_equal_repeated_rows(seed, n, d, fit_intercept):
    rng = np.random.default_rng(seed)
    X, y, times = rng.normal(size=(n, d)), rng.normal(size=n), rng.integers(0, 4, size=n)
    times[0] = 1
    repeated = np.repeat(np.arange(n), times)
    a = LinearRegression(fit_intercept=fit_intercept).fit(X, y, times)
    b = LinearRegression(fit_intercept=fit_intercept).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.predict(X[repeated]), b.predict(X[repeated]), atol=1e-6)
    assert a.rank_ == b.rank_


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_matrix, sp.coo_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("twice", [False, True])
def test_sparse_equals_dense(form, fit_intercept, twice):
    X, y = make_rows(300, 6)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)
    X = np.column_stack([X, X[:, 0]]) if twice else X
    weights = np.arange(300) % 3
    dense = LinearRegression(fit_intercept=fit_intercept).fit(X, y, weights)
    sparse = LinearRegression(fit_intercept=fit_intercept).fit(form(X), y, weights)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-11)
    assert sparse.solver_ == dense.solver_ == ("svd" if twice else "cholesky")


def test_very_wide_sparse_rows_go_to_lsqr():
    X = sp.csr_array(sp.random(50, 2500, density=0.02, random_state=0))
    y = np.arange(50.0)
    model = LinearRegression(tol=1e-12).fit(X, y)
    assert model.solver_ == "lsqr"
    atol = 1e-4 if SKLEARN_VERSION >= (1, 7) else 1e-3  # scikit-learn 1.6 ignores tol
    np.testing.assert_allclose(model.predict(X), y, atol=atol)
    with pytest.raises(ValueError, match="solver_='lsqr'"):
        model.summary()


def test_float32_rows_give_float32_coefficients():
    X, y = make_rows(400, 5)
    model = LinearRegression().fit(X.astype(np.float32), y.astype(np.float32))
    double = LinearRegression().fit(X, y)
    assert model.coef_.dtype == model.predict(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(model.coef_, double.coef_, rtol=1e-5)


@pytest.mark.parametrize("size", [1e-200, 1e-150, 1e150, 1e200, 1e300])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.filterwarnings("error")
def test_huge_and_tiny_values(size, form):
    X, y = make_rows(100, 3)
    truth = LinearRegression().fit(X, y)
    model = LinearRegression().fit(form(X * size), y)
    np.testing.assert_allclose(model.coef_ * size, truth.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, truth.intercept_, rtol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_invalid_values(bad, form):
    X, y = make_rows(600, 3)
    X[599, 1] = bad
    kind = "NaN" if np.isnan(bad) else "infinity"
    with pytest.raises(ValueError, match=f"Input X contains {kind}"):
        LinearRegression().fit(form(X), y)
    y[3] = bad
    with pytest.raises(ValueError, match="Input y contains"):
        LinearRegression().fit(np.ones((600, 2)), y)


def test_one_row_and_constant_columns():
    one = LinearRegression().fit([[2.0, 3.0]], [7.0])
    assert one.predict([[9.0, -9.0]]) == 7
    assert (one.rank_, one.solver_) == (0, "svd")
    flat = LinearRegression().fit(np.full((10, 3), 0.1), np.arange(10.0))
    assert np.array_equal(flat.coef_, np.zeros(3))
    assert flat.intercept_ == pytest.approx(4.5)


def test_positive_coefficients_equal_nnls():
    X, y = make_rows(100, 5)
    model = LinearRegression(positive=True, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, nnls(X, y)[0], atol=1e-10)
    assert (model.coef_ == 0).any()
    with pytest.raises(ValueError, match="solver_='nnls'"):
        model.summary()


# --------------------------------------------------------------------------------- summary


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["cholesky", "qr"])
def test_summary_equals_statsmodels(fit_intercept, weighted, solver):
    X, y = make_rows(80, 4)
    X += 5
    if solver == "qr":
        X[:, 3] = X[:, 0] + 1e-4 * X[:, 3]
    weights = np.random.default_rng(2).random(80) + 0.1 if weighted else np.ones(80)
    model = LinearRegression(fit_intercept=fit_intercept)
    model.fit(X, y, weights if weighted else None)
    assert model.solver_ == solver
    design = sm.add_constant(X) if fit_intercept else X
    truth = sm.WLS(y, design, weights).fit() if weighted else sm.OLS(y, design).fit()
    summary = model.summary(0.9)
    rtol = 1e-8 if solver == "cholesky" else 1e-6
    np.testing.assert_allclose(summary.coef, truth.params, rtol=rtol)
    np.testing.assert_allclose(summary.std_err, truth.bse, rtol=rtol)
    np.testing.assert_allclose(summary.statistic, truth.tvalues, rtol=rtol)
    np.testing.assert_allclose(summary.p_value, truth.pvalues, rtol=1e-5, atol=1e-300)
    np.testing.assert_allclose(
        np.column_stack([summary.lower, summary.upper]), truth.conf_int(0.1), rtol=rtol, atol=1e-8
    )
    assert summary.facts["r2"] == pytest.approx(truth.rsquared, rel=rtol)
    assert summary.facts["adjusted_r2"] == pytest.approx(truth.rsquared_adj, rel=rtol)
    assert summary.facts["f"] == pytest.approx(truth.fvalue, rel=rtol)
    assert summary.facts["f_p_value"] == pytest.approx(truth.f_pvalue, rel=1e-5)
    assert summary.facts["residual_std"] == pytest.approx(np.sqrt(truth.scale), rel=rtol)
    assert summary.facts["degrees_of_freedom"] == truth.df_resid
    assert summary.facts["n_rows"] == truth.nobs


def test_summary_of_a_target():
    X, y = make_rows(50, 3, n_targets=2)
    model = LinearRegression().fit(X, y)
    for target in (0, 1):
        truth = sm.OLS(y[:, target], sm.add_constant(X)).fit()
        summary = model.summary(target=target)
        np.testing.assert_allclose(summary.coef, truth.params, rtol=1e-9)
        np.testing.assert_allclose(summary.std_err, truth.bse, rtol=1e-9)


def test_printed_summary():
    X, y = make_rows(30, 2)
    names = ["a<b", "long name of a column"]
    summary = LinearRegression().fit(pd.DataFrame(X, columns=names), y).summary()
    lines = str(summary).splitlines()
    assert lines[0].split()[:5] == ["coef", "std", "err", "t", "p"]
    assert "95 % from" in lines[0]
    assert [line.split("  ")[0] for line in lines[1:4]] == ["(intercept)", *names]
    assert f"{summary.coef[1]:.4g}" in lines[2]
    assert f"r2 {summary.facts['r2']:.6g}" in lines[4]
    html = summary._repr_html_()
    assert "a&lt;b" in html
    assert "a<b" not in html
    assert html.count("<tr>") == 4
    assert [*summary.names] == ["(intercept)", *names]
    assert LinearRegression().fit(X, y).summary().names[1:] == ["x0", "x1"]


def test_errors_of_summary():
    X, y = make_rows(30, 2)
    with pytest.raises(NotFittedError):
        LinearRegression().summary()
    with pytest.raises(ValueError, match=r"independent columns.*solver_='svd'"):
        LinearRegression().fit(np.column_stack([X, X]), y).summary()
    with pytest.raises(ValueError, match="expected more rows than the 3 coefficients, got 3 rows"):
        LinearRegression().fit(X[:3], y[:3]).summary()
    model = LinearRegression().fit(X, y)
    for level in (0, 1, 95, -1):
        with pytest.raises(ValueError, match="confidence: expected a number between 0 and 1"):
            model.summary(level)
    for target in (1, -1):
        with pytest.raises(ValueError, match=f"target: expected .* got {target}"):
            model.summary(target=target)


@pytest.mark.filterwarnings("error")
def test_summary_of_a_constant_target():
    X, _ = make_rows(30, 2)
    summary = LinearRegression().fit(X, np.full(30, 2.0)).summary()
    assert np.isnan(summary.facts["r2"])
    assert summary.coef[0] == pytest.approx(2)


# ------------------------------------------------------------------------------ estimators
