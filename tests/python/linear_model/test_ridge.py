"""Ridge against its equations and augmented least squares; RidgeCV against refits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.linear_model import RidgeCV as TheirRidgeCV
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score

from spinney import _core
from spinney.linear_model import LinearRegression, Ridge, RidgeCV

NOTHING = np.empty(0)


def make_rows(n, d, seed=0, n_targets=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2
    Y = X @ rng.normal(size=(d, n_targets)) + rng.normal(size=(n, n_targets)) + 3
    return X, Y[:, 0] if n_targets == 1 else Y


def solve_augmented(X, y, alpha, fit_intercept=True, weights=None):
    """Solve ridge regression as least squares with one more row per penalised coefficient."""
    n, d = X.shape
    roots = np.sqrt(np.ones(n) if weights is None else weights)[:, None]
    design = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    penalty = np.sqrt(alpha) * np.eye(d, design.shape[1])
    right = np.vstack([y.reshape(n, -1) * roots, np.zeros((d, y.reshape(n, -1).shape[1]))])
    found = np.linalg.lstsq(np.vstack([design * roots, penalty]), right, rcond=None)[0]
    return found[:d].T, found[d] if fit_intercept else np.zeros(right.shape[1])


# ----------------------------------------------------------------------------------- Ridge


@pytest.mark.parametrize("penalty", [1e-3, 0.1, 10.0])
def test_coefficients_solve_the_normal_equation(penalty):
    X, y = make_rows(120, 5)
    n = len(X)
    model = Ridge(alpha=n * penalty).fit(X, y)
    A, b = X - X.mean(axis=0), y - y.mean()
    left = (A.T @ A + n * penalty * np.eye(5)) @ model.coef_
    np.testing.assert_allclose(left, A.T @ b, rtol=1e-11)
    assert model.intercept_ == pytest.approx(y.mean() - X.mean(axis=0) @ model.coef_, rel=1e-12)
    assert model.solver_ == "cholesky"


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 10**6),
    st.integers(2, 40),
    st.integers(1, 10),
    st.sampled_from([1e-6, 0.1, 1.0, 1e5]),
    st.booleans(),
    st.booleans(),
)
def test_equals_augmented_least_squares(seed, n, d, alpha, fit_intercept, weighted):
    X, y = make_rows(n, d, seed, n_targets=2)
    weights = np.random.default_rng(seed).random(n) if weighted else None
    model = Ridge(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, weights)
    coef, intercept = solve_augmented(X, y, alpha, fit_intercept, weights)
    np.testing.assert_allclose(model.predict(X), X @ coef.T + intercept, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("alpha", [1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("weighted", [False, True])
def test_tiny_penalty_of_columns_that_nearly_depend(alpha, weighted):
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    X = np.column_stack([a, a + 1e-6 * rng.normal(size=200), rng.normal(size=200)])
    y = X @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=200)
    weights = rng.random(200) if weighted else None
    model = Ridge(alpha=alpha).fit(X, y, weights)
    A, b = X - np.average(X, axis=0, weights=weights), y - np.average(y, weights=weights)
    truth = solve_augmented(A, b, alpha, False, weights)[0][0]
    np.testing.assert_allclose(model.coef_, truth, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1e-9, 1.0])
def test_tiny_penalty_of_equal_columns_is_split(alpha):
    X, y = make_rows(50, 2)
    twice = Ridge(alpha=alpha).fit(np.column_stack([X, X[:, 0]]), y)
    # Rounding errors of equal columns are divided by the penalty.
    rtol = 1e-9 if alpha == 1 else 1e-4
    assert twice.coef_[0] == pytest.approx(twice.coef_[2], rel=rtol)
    A, b = X - X.mean(axis=0), y - y.mean()
    truth = solve_augmented(np.column_stack([A, A[:, 0]]), b, alpha, False)[0][0]
    np.testing.assert_allclose(twice.coef_, truth, rtol=rtol)


@pytest.mark.parametrize("twice", [False, True])
def test_no_penalty_is_least_squares(twice):
    X, y = make_rows(60, 3)
    X = np.column_stack([X, X[:, 1]]) if twice else X
    ridge, plain = Ridge(alpha=0).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(ridge.coef_, plain.coef_, rtol=1e-12)
    assert ridge.intercept_ == pytest.approx(plain.intercept_)


def test_penalty_for_each_target():
    X, y = make_rows(60, 3, n_targets=4)
    alphas = np.array([0.0, 1.0, 100.0, 1.0])
    together = Ridge(alpha=alphas).fit(X, y)
    assert together.coef_.shape == (4, 3)
    for target, alpha in enumerate(alphas):
        alone = Ridge(alpha=alpha).fit(X, y[:, target])
        np.testing.assert_allclose(together.coef_[target], alone.coef_, rtol=1e-11)
        assert together.intercept_[target] == pytest.approx(alone.intercept_)
    with pytest.raises(ValueError, match="penalties do not correspond: 2 != 4"):
        Ridge(alpha=[1.0, 2.0]).fit(X, y)


def test_shifts_move_only_the_intercept():
    X, y = make_rows(80, 4)
    plain, moved = Ridge(alpha=50).fit(X, y), Ridge(alpha=50).fit(X - 7, y + 1e6)
    np.testing.assert_allclose(moved.coef_, plain.coef_, rtol=1e-8)
    assert moved.predict(X - 7) == pytest.approx(plain.predict(X) + 1e6)
    heavy = Ridge(alpha=1e12).fit(X, y)  # the penalty leaves only the mean
    assert heavy.intercept_ == pytest.approx(y.mean(), rel=1e-6)


def test_weights_equal_repeated_rows():
    X, y = make_rows(70, 4)
    times = np.arange(70) % 4
    rows = np.repeat(np.arange(70), times)
    weighted, repeated = Ridge().fit(X, y, times), Ridge().fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-11)
    assert weighted.intercept_ == pytest.approx(repeated.intercept_)
    np.testing.assert_allclose(Ridge().fit(X, y, 2.0).coef_, Ridge(0.5).fit(X, y).coef_)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("alpha", [1e-10, 1.0])
def test_sparse_equals_dense(fit_intercept, alpha):
    X, y = make_rows(300, 6, n_targets=2)
    X = X * (np.random.default_rng(0).random(X.shape) < 0.3)
    X = np.column_stack([X, X[:, 0]])
    dense = Ridge(alpha, fit_intercept=fit_intercept).fit(X, y)
    sparse = Ridge(alpha, fit_intercept=fit_intercept).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6)
    np.testing.assert_allclose(sparse.predict(sp.csr_array(X)), dense.predict(X), rtol=1e-9)


@pytest.mark.parametrize("solver", ["auto", "cholesky", "svd", "lsqr", "sparse_cg", "lbfgs"])
def test_solvers_agree(solver):
    X, y = make_rows(80, 4)
    positive = solver == "lbfgs"
    ours = Ridge(alpha=2, solver=solver, tol=1e-12, positive=positive).fit(X, y)
    theirs = TheirRidge(alpha=2, solver=solver, tol=1e-12, positive=positive).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("size", [1e-200, 1e200, 1e300])
@pytest.mark.filterwarnings("error")
def test_huge_and_tiny_values(size):
    X, y = make_rows(60, 3)
    model = Ridge(alpha=1.0).fit(X * size, y)
    # The penalty is negligible for huge columns, and dominates for tiny ones.
    truth = LinearRegression().fit(X, y).predict(X) if size > 1 else np.full(60, y.mean())
    np.testing.assert_allclose(model.predict(X * size), truth, rtol=1e-8)
    if size > 1:
        chosen = RidgeCV(alphas=[1.0, 10.0]).fit(X * size, y)
        np.testing.assert_allclose(chosen.predict(X * size), truth, rtol=1e-8)


@pytest.mark.parametrize("kind", [Ridge, RidgeCV])
def test_invalid_input_raises(kind):
    X, y = make_rows(60, 3)
    for bad, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        invalid = X.copy()
        invalid[59, 2] = bad
        with pytest.raises(ValueError, match=f"Input X contains {name}"):
            kind().fit(invalid, y)
        with pytest.raises(ValueError, match=f"Input y contains {name}"):
            kind().fit(X, np.append(y[1:], bad))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        kind().fit(X, y, -np.ones(60))
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        kind().fit(X, y, np.zeros(60))
    with pytest.raises(ValueError, match="alpha"):
        Ridge(alpha=-1).fit(X, y)
    with pytest.raises(ValueError, match=r"1 sample.* minimum of 2 is required by RidgeCV"):
        RidgeCV().fit(X[:1], y[:1])
    for wrong in ([0.0, 1.0], [-1.0], [1.0, -1.0]):
        with pytest.raises(ValueError, match="alphas"):
            RidgeCV(alphas=wrong).fit(X, y)


@pytest.mark.parametrize("model", [Ridge(alpha=1e-9), Ridge(), RidgeCV()], ids=str)
def test_threads_and_float32(model):
    X, y = make_rows(1500, 5)
    X[:, 4] = X[:, 3] + 1e-6 * X[:, 4]
    models = [clone(model).set_params(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2, 3, 7)]
    assert all(np.array_equal(models[0].coef_, other.coef_) for other in models[1:])
    single = clone(model).fit(X[:, :4].astype(np.float32), y.astype(np.float32))
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, clone(model).fit(X[:, :4], y).coef_, rtol=1e-4)


# --------------------------------------------------------------------------------- RidgeCV

ALPHAS = np.array([1e-3, 1.0, 30.0])


def predict_leave_one_out(X, y, alphas, fit_intercept=True, weights=None):
    """Return predictions by refits without each row, (n_rows, n_targets, n_alphas)."""
    y = y.reshape(len(y), -1)
    out = np.empty((*y.shape, len(alphas)))
    for row in range(len(X)):
        rest = np.arange(len(X)) != row
        w = None if weights is None else weights[rest]
        for a, alpha in enumerate(alphas):
            coef, intercept = solve_augmented(X[rest], y[rest], alpha, fit_intercept, w)
            out[row, :, a] = coef @ X[row] + intercept
    return out


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_leave_one_out_errors_equal_refits(dtype, fit_intercept, weighted, n_targets):
    X, y = make_rows(40, 4, n_targets=n_targets)
    X = X.astype(dtype)
    weights = np.random.default_rng(3).random(40) + 0.1 if weighted else None
    parameters = {"alphas": ALPHAS, "fit_intercept": fit_intercept, "store_cv_results": True}
    model = RidgeCV(**parameters).fit(X, y, weights)
    predictions = predict_leave_one_out(X.astype(float), y, ALPHAS, fit_intercept, weights)
    errors = np.square(y.reshape(40, -1, 1) - predictions)
    errors *= (np.ones(40) if weights is None else weights)[:, None, None]
    rtol = 1e-8 if dtype is np.float64 else 1e-3
    result = model.cv_results_.reshape(errors.shape)
    np.testing.assert_allclose(result, errors, rtol=rtol, atol=rtol)
    means = errors.mean(axis=(0, 1))
    assert model.alpha_ == ALPHAS[np.argmin(means)]
    assert model.best_score_ == pytest.approx(-means.min(), rel=rtol)
    coef, intercept = solve_augmented(X.astype(float), y, model.alpha_, fit_intercept, weights)
    np.testing.assert_allclose(np.atleast_2d(model.coef_), coef, rtol=10 * rtol)
    np.testing.assert_allclose(model.intercept_ * np.ones(n_targets), intercept, rtol=10 * rtol)
    # The choice does not depend on whether errors of rows are stored.
    again = RidgeCV(ALPHAS, fit_intercept=fit_intercept).fit(X, y, weights)
    assert np.array_equal(again.coef_, model.coef_)
    assert not hasattr(again, "cv_results_")


def test_chosen_penalty_for_each_target():
    rng = np.random.default_rng(0)
    X, y = make_rows(40, 6, n_targets=2)
    y[:, 1] = 10 * rng.normal(size=40)  # noise alone: the largest penalty is best
    model = RidgeCV(ALPHAS, alpha_per_target=True).fit(X, y)
    errors = np.square(y[:, :, None] - predict_leave_one_out(X, y, ALPHAS)).mean(axis=0)
    best = errors.argmin(axis=1)
    assert best[0] != best[1]
    assert np.array_equal(model.alpha_, ALPHAS[best])
    np.testing.assert_allclose(model.best_score_, -errors.min(axis=1), rtol=1e-9)
    np.testing.assert_allclose(model.coef_, Ridge(ALPHAS[best]).fit(X, y).coef_, rtol=1e-9)


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error", "callable"])
@pytest.mark.parametrize("weighted", [False, True])
def test_scoring(scoring, weighted):
    X, y = make_rows(35, 4)
    weights = np.random.default_rng(3).random(35) + 0.1 if weighted else None
    predictions = predict_leave_one_out(X, y, ALPHAS, weights=weights)[:, 0]
    negated = make_scorer(mean_absolute_error, greater_is_better=False)
    model = RidgeCV(
        ALPHAS, scoring=negated if scoring == "callable" else scoring, store_cv_results=True
    ).fit(X, y, weights)
    np.testing.assert_allclose(model.cv_results_, predictions, rtol=1e-9)
    measure = r2_score if scoring == "r2" else lambda *a, **k: -mean_absolute_error(*a, **k)
    scores = [measure(y, predicted, sample_weight=weights) for predicted in predictions.T]
    assert model.alpha_ == ALPHAS[np.argmax(scores)]
    assert model.best_score_ == pytest.approx(max(scores))


@pytest.mark.parametrize(
    "parameters",
    [{"cv": 3}, {"gcv_mode": "svd"}, {"gcv_mode": "eigen"}, {"scoring": "r2"}, {}],
    ids=str,
)
@pytest.mark.parametrize("shape", [(30, 5), (10, 20)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equals_scikit_learn(parameters, shape, form):
    if form is sp.csr_array and parameters.get("gcv_mode") == "svd":
        pytest.skip("scikit-learn has no such way for sparse rows")
    X, y = make_rows(*shape, n_targets=2)
    ours = RidgeCV(ALPHAS, **parameters).fit(form(X), y)
    theirs = TheirRidgeCV(ALPHAS, **parameters).fit(form(X), y)
    assert ours.alpha_ == theirs.alpha_
    assert ours.best_score_ == pytest.approx(theirs.best_score_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", [6, 257, 600])
def test_leave_one_out_pass_equals_explicit_leverages(n):
    """Test sums, predictions and threads of the pass, against explicit leverages."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=(n, 2))
    values, basis = np.linalg.eigh(X.T @ X)
    shrinkage = 1 / (values + ALPHAS[:, None])
    weights = shrinkage[:, None, :] * (basis.T @ X.T @ y).T
    results = []
    for n_threads in (1, 2, 3, 7):
        predictions = np.empty((n, 2, 3))
        sums = _core.leave_one_out(
            np.asfortranarray(X), y, NOTHING, np.zeros(3), basis, shrinkage, weights.ravel(),
            np.zeros(2), 0.0, n_threads, predictions,
        )  # fmt: skip
        results.append((np.asarray(sums).reshape(3, 2), predictions))
    for a, alpha in enumerate(ALPHAS):
        hat = X @ np.linalg.solve(X.T @ X + alpha * np.eye(3), X.T)
        errors = (y - hat @ y) / (1 - np.diagonal(hat))[:, None]
        np.testing.assert_allclose(results[0][0][a], np.square(errors).sum(axis=0), rtol=1e-10)
        np.testing.assert_allclose(results[0][1][:, :, a], y - errors, rtol=1e-8, atol=1e-10)
    for sums, predictions in results[1:]:
        assert np.array_equal(sums, results[0][0])
        assert np.array_equal(predictions, results[0][1])


# ------------------------------------------------------------------------------ estimators


def test_penalties_of_columns_of_very_different_size():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 4))
    y = A @ [1.0, 2.0, 3.0, 4.0] + rng.normal(size=300)
    X = A * [1e8, 1, 1, 1]
    model = RidgeCV([0.1, 1.0]).fit(X, y)
    np.testing.assert_allclose(model.coef_, Ridge(model.alpha_).fit(X, y).coef_, rtol=1e-6)


def test_negative_penalties_are_named():
    with pytest.raises(ValueError, match="alpha"):
        Ridge(np.array([-1.0])).fit(np.ones((5, 1)), np.ones(5))
