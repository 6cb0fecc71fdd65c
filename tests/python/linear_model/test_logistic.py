"""LogisticRegression: optimality conditions; summaries against statsmodels."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg
from scipy.special import logsumexp, softmax
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression as Theirs
from sklearn.preprocessing import scale

from reference.slow_logistic import measure_slowly
from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.linear_model import LogisticRegression, _newton
from spinney.linear_model._quasi_separation import is_separable
from spinney.linear_model.design import Design
from support.grid import partial_grid


def make_rows(n, d, n_classes=2, seed=0, correlation=0.0):
    rng = np.random.default_rng(seed)
    X = np.sqrt(1 - correlation) * rng.normal(size=(n, d))
    X += np.sqrt(correlation) * rng.normal(size=(n, 1)) + 0.5
    score = X[:, : min(3, d)].sum(axis=1) + 1.5 * rng.normal(size=n)
    cuts = np.quantile(score, np.arange(1, n_classes) / n_classes)
    return X, np.digitize(score, cuts)


# ---------------------------------------------------------------------------------- optima


def violation(model, X, y, weights=None):
    """Return the largest violation of the optimality conditions of the mean objective."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float)
    weights = np.ones(len(X)) if weights is None else weights
    w = np.column_stack([model.coef_, model.intercept_]).astype(float)
    labels = np.searchsorted(model.classes_, y)
    gradient = measure_slowly(X, labels, weights, w)[1].reshape(w.shape)
    coef = model.coef_
    slopes = gradient[:, :-1] + (1 - model.l1_ratio) / model.C * coef
    absolute = model.l1_ratio / model.C
    missed = np.where(
        coef == 0,
        np.maximum(np.abs(slopes) - absolute, 0),
        np.abs(slopes + absolute * np.sign(coef)),
    ).max()
    if model.fit_intercept:
        missed = max(missed, np.abs(gradient[:, -1]).max())
    return missed / weights.sum()


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky", "newton-cg", "saga"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_gradient_at_the_optimum(solver, n_classes, form, fit_intercept):
    X, y = make_rows(200, 5, n_classes)
    weights = np.random.default_rng(0).random(200)
    parameters = {"C": 0.7, "fit_intercept": fit_intercept, "tol": 1e-7, "max_iter": 1000}
    model = LogisticRegression(solver=solver, **parameters).fit(form(X), y, weights)
    assert violation(model, X, y, weights) < 3e-7  # the solver centres columns
    truth = Theirs(solver="newton-cholesky", **{**parameters, "tol": 1e-12}).fit(X, y, weights)
    np.testing.assert_allclose(model.coef_, truth.coef_, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(form(X)), truth.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("C", [0.01, 1.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_equals_newton_of_scikit_learn(n_classes, C, dtype):
    X, y = make_rows(300, 4, n_classes)
    ours = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12)
    ours.fit(X.astype(dtype), y)
    theirs = Theirs(C=C, solver="newton-cholesky", tol=1e-12).fit(X, y)
    tolerance = 1e-8 if dtype is np.float64 else 1e-5
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=tolerance)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=tolerance)
    assert ours.coef_.dtype == dtype


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("shape", [(150, 6, 0.0), (150, 6, 0.999), (40, 120, 0.0), (40, 120, 0.9)])
def test_optimality_conditions_of_l1_penalty(l1_ratio, n_classes, form, shape):
    X, y = make_rows(*shape[:2], n_classes, correlation=shape[2])
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5) if form is sp.csr_array else X
    model = LogisticRegression(C=0.5, l1_ratio=l1_ratio, tol=1e-8, max_iter=500).fit(form(X), y)
    assert model.solver_ == "coordinate_descent"
    assert violation(model, X, y) < 3e-8
    assert model.coef_.any()
    assert l1_ratio < 1 or (model.coef_ == 0).any()
    assert n_classes == 2 or abs(model.intercept_.sum()) < 1e-12


def mean_objective(w, X, y, alpha):
    """Return the objective by its formula, accurate for tiny losses of rows."""
    scores = X @ w[:, :-1].T + w[:, -1]
    if len(w) == 1:
        scores = np.column_stack([np.zeros(len(X)), scores])
    ahead = scores - scores[np.arange(len(y)), y][:, None]
    ahead[np.arange(len(y)), y] = -np.inf
    odds = logsumexp(ahead, axis=1)
    losses = np.where(odds < 0, np.log1p(np.exp(np.minimum(odds, 0))), np.logaddexp(0, odds))
    return losses.sum() + alpha / 2 * np.square(w[:, :-1]).sum()


def find_optimum(w, X, y, alpha):
    """Minimise the objective by damped Newton steps until there is no further gain."""
    A = np.column_stack([X, np.ones(len(X))])
    value = mean_objective(w, X, y, alpha)
    for _ in range(50):
        scores = A @ w.T
        if len(w) == 1:
            scores = np.column_stack([np.zeros(len(X)), scores])
        p, is_own = softmax(scores, axis=1), np.eye(scores.shape[1], dtype=bool)[y]
        others = np.where(is_own, 0.0, p).sum(axis=1, keepdims=True)
        slopes, rest = np.where(is_own, -others, p), np.where(is_own, others, 1 - p)
        first = scores.shape[1] - len(w)
        gradient = (A.T @ slopes)[:, first:].T
        hessian = np.block(
            [
                [A.T @ (A * (p[:, i] * (rest if i == j else -p)[:, j])[:, None]) for j in which]
                for which in [range(first, scores.shape[1])]
                for i in which
            ]
        )
        penalty = np.full(w.shape, alpha)
        penalty[:, -1] = 0.0
        gradient += penalty * w
        hessian += np.diag(penalty.ravel())
        if len(w) > 1:  # a common shift of intercepts changes nothing
            common = np.zeros(w.shape)
            common[:, -1] = 1.0
            hessian += np.outer(common, common) * hessian.max()
        scale = 1 / np.sqrt(hessian.diagonal())
        step = linalg.lstsq(hessian * np.outer(scale, scale), -gradient.ravel() * scale)[0] * scale
        length = 1.0
        while length > 1e-6:
            tried = w + length * step.reshape(w.shape)
            if mean_objective(tried, X, y, alpha) < value:
                break
            length /= 2
        else:
            return value
        w, value = tried, mean_objective(tried, X, y, alpha)
    return value


def relative_excess(model, X, y):
    """Return the relative excess of the objective of a fitted model over the optimum."""
    w = np.column_stack([model.coef_, model.intercept_])
    value = mean_objective(w, X, y, 1 / model.C)
    return value / find_optimum(w, X, y, 1 / model.C) - 1


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "many_columns", "text"])
@pytest.mark.parametrize("scaled", [False, True])
def test_dense_and_sparse_rows_reach_the_same_optimum(name, solver, scaled):
    rng = np.random.default_rng(0)
    if name == "many_columns":
        X, y = make_rows(80, 150, 4)
    elif name == "text":
        X = sp.random(300, 250, 0.05, random_state=0, format="csr").toarray()
        y = np.digitize(X[:, :50].sum(axis=1) + 0.3 * rng.normal(size=300), [0.5, 1.5])
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if scaled:
        X = scale(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dense = LogisticRegression(solver=solver).fit(X, y)
        sparse = LogisticRegression(solver=solver).fit(sp.csr_array(X), y)
    for model in (dense, sparse):
        assert relative_excess(model, X, y) < 1e-8
        assert violation(model, X, y) < 1e-4 or not scaled  # the solver centres columns
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-6)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_l1_penalty_reaches_the_optimum(l1_ratio, n_classes):
    X, y = make_rows(100, 150, n_classes)
    coefs = []
    for form in (np.asarray, sp.csr_array):
        model = LogisticRegression(l1_ratio=l1_ratio).fit(form(X), y)
        tight = LogisticRegression(l1_ratio=l1_ratio, tol=1e-10, max_iter=1000).fit(form(X), y)
        values = []
        for one in (model, tight):
            w = np.column_stack([one.coef_, one.intercept_])
            absolute = l1_ratio * np.abs(one.coef_).sum()
            values.append(mean_objective(w, X, y, 1 - l1_ratio) + absolute)
        assert values[0] <= values[1] * (1 + 1e-8)
        coefs.append(model.coef_)
    np.testing.assert_allclose(*coefs, atol=1e-6)


@partial_grid(
    one_in=3,
    n_classes=[2, 4],
    C=[1e2, 1e6, 1e12],
    shape=[(60, 2), (400, 10), (60, 250)],
    units=[False, True],
    form=[np.asarray, sp.csr_array],
)
def test_separable_classes_reach_the_optimum(n_classes, C, shape, units, form):
    """Derivatives of the mean loss are below tol long before the optimum."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    if n_classes == 2:
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
    else:
        y = np.argmax(np.column_stack([X[:, :2], -X[:, :2]]), axis=1)
    if units:
        X = X * 10.0 ** rng.integers(-3, 4, shape[1]) + 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(C=C).fit(form(X), y)
    assert model.score(form(X), y) == 1 or C < 1e6
    assert relative_excess(model, X, y) < 1e-8
    assert 1 < model.n_iter_[0] <= 100


def test_iterations_are_counted(monkeypatch):
    """n_iter_ is the number of L-BFGS steps and of Newton's steps after them."""
    X, y = make_rows(60, 250, 4)
    steps = []
    descend, minimize = _newton._descend, _newton.optimize.minimize

    def count_newton(*arguments, **keywords):
        found = descend(*arguments, **keywords)
        steps.append(found.n_iter)
        return found

    def count_lbfgs(*arguments, **keywords):
        found = minimize(*arguments, **keywords)
        steps.append(found.nit)
        return found

    monkeypatch.setattr(_newton, "_descend", count_newton)
    monkeypatch.setattr(_newton.optimize, "minimize", count_lbfgs)
    model = LogisticRegression(C=1e4).fit(X, y)
    assert model.solver_ == "lbfgs"
    assert len(steps) == 2
    assert model.n_iter_[0] == sum(steps)


def test_too_few_steps_for_separable_classes():
    X, y = make_rows(200, 3)
    y = (X[:, 0] > 0.5).astype(int)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=6.*smaller C"):
        model = LogisticRegression(C=1e6, max_iter=6).fit(X, y)
    assert model.n_iter_[0] == 6


def test_penalty_that_makes_all_coefficients_zero():
    X, y = make_rows(100, 4)
    model = LogisticRegression(C=1e-4, l1_ratio=1, tol=1e-10).fit(X, y)
    assert not model.coef_.any()
    assert model.predict_proba(X)[0, 1] == pytest.approx(y.mean(), rel=1e-6)


def test_liblinear_equals_scikit_learn():
    X, y = make_rows(100, 4)
    for ratio in (0, 1):
        parameters = {"solver": "liblinear", "l1_ratio": ratio, "random_state": 0}
        ours = LogisticRegression(**parameters).fit(X, y)
        if SKLEARN_VERSION < (1, 8):
            parameters |= {"penalty": ["l2", "l1"][ratio], "l1_ratio": None}
        theirs = Theirs(**parameters).fit(X, y)
        assert np.array_equal(ours.coef_, theirs.coef_)
        assert ours.solver_ == "liblinear"


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_units_do_not_matter(n_classes, C, l1_ratio):
    X, y = make_rows(300, 6, n_classes)
    scale = 10.0 ** np.array([-8, 8, 0, 8, -8, 0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-9).fit(X * scale, y)
    if np.isinf(C):
        plain = LogisticRegression(C=C, tol=1e-9).fit(X, y)
        np.testing.assert_allclose(
            model.predict_proba(X * scale), plain.predict_proba(X), atol=1e-6
        )
        return
    # The penalty is negligible for huge columns, and removes tiny ones.
    milder = np.array([0.0, 1e4, 1, 1e4, 0, 1])
    near = LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-9).fit(X * milder, y)
    np.testing.assert_allclose(
        model.predict_proba(X * scale), near.predict_proba(X * milder), atol=1e-4
    )


# -------------------------------------------------------------------------------- separation


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_several_separable_classes(form):
    X, y = datasets.load_iris(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match=r"classes are separable.*choose a finite C"):
        model = LogisticRegression(C=np.inf).fit(form(X), y)
    assert model.is_separated_  # one class is separable; the other two overlap
    w = np.column_stack([model.coef_, model.intercept_])
    rest = Theirs(C=np.inf, solver="newton-cholesky", tol=1e-12).fit(X[50:], y[50:])
    least = mean_objective(np.column_stack([rest.coef_, rest.intercept_]), X[50:], y[50:] - 1, 0)
    assert mean_objective(w, X, y, 0) == pytest.approx(least, rel=1e-7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = LogisticRegression(C=np.inf).fit(form(np.asarray(X[50:])), np.arange(100) % 3)
    assert not fine.is_separated_


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(3, 12), d=st.integers(1, 2))
def test_separability_of_three_classes(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float)
    y = rng.integers(0, 3, n)
    y[:3] = 0, 1, 2
    rows = np.column_stack([X, np.ones(n)])
    # Differences of the vectors of classes 1 and 2 from that of class 0, in small integers.
    some = np.array(list(itertools.product(range(-2, 3), repeat=2 * (d + 1))))
    scores = np.zeros((len(some), n, 3))
    scores[:, :, 1:] = np.einsum("rj,skj->srk", rows, some.reshape(-1, 2, d + 1))
    margins = scores[:, np.arange(n), y][:, :, None] - scores
    if ((margins >= 0).all(axis=(1, 2)) & (margins > 0).any(axis=(1, 2))).any():
        assert is_separable(Design(X), y, True)
    twice = np.vstack([X, X, X])  # each row is in every class: not separable
    assert not is_separable(Design(twice), np.repeat([0, 1, 2], n), True)


@pytest.mark.parametrize("solver", ["lbfgs", "newton-cholesky"])
@pytest.mark.parametrize("d", [1, 3, 80])
def test_separated_classes(solver, d):
    X, _ = make_rows(60, d)
    y = (X[:, 0] > 0.5).astype(int)
    with pytest.warns(ConvergenceWarning, match="The classes are separable"):
        model = LogisticRegression(C=np.inf, solver=solver).fit(X, y)
    assert model.is_separated_
    assert model.score(X, y) == 1
    assert np.isfinite(model.coef_).all()
    with pytest.raises(ValueError, match=r"no penalty \(C=np.inf\), an optimum"):
        model.summary()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fine = LogisticRegression(C=1, solver=solver, tol=1e-8, max_iter=500).fit(X, y)
    assert not fine.is_separated_
    assert violation(fine, X, y) < 1e-7


def test_a_class_without_weight():
    """Its probability falls until derivatives are below tol; two classes count as separated."""
    X, y = make_rows(90, 3, 3)
    weights = (y != 2) * 1.0
    model = LogisticRegression(tol=1e-6).fit(X, y, weights)
    assert list(model.classes_) == [0, 1, 2]
    assert model.predict_proba(X)[:, 2].max() < 1e-3
    without = LogisticRegression(tol=1e-8).fit(X[y != 2], y[y != 2])
    # Softmax with two classes halves the penalty on the difference of their coefficients.
    assert np.corrcoef(model.coef_[1] - model.coef_[0], without.coef_[0])[0, 1] > 0.99
    with pytest.warns(ConvergenceWarning, match="classes are separable"):
        alone = LogisticRegression(C=np.inf).fit(X, y == 0, (y == 0) * 1.0)
    assert alone.is_separated_
    assert (alone.predict(X)).all()


# ----------------------------------------------------------------------------------- summary


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_summary_equals_statsmodels(fit_intercept, weighted):
    X, y = make_rows(150, 3)
    times = np.random.default_rng(0).integers(1, 4, size=150)
    rows = np.repeat(np.arange(150), times) if weighted else np.arange(150)
    model = LogisticRegression(C=np.inf, tol=1e-11, fit_intercept=fit_intercept)
    summary = model.fit(X, y, times if weighted else None).summary(0.9)
    design = sm.add_constant(X[rows]) if fit_intercept else X[rows]
    truth = sm.Logit(y[rows], design).fit(disp=0, tol=1e-14)
    np.testing.assert_allclose(summary.coef, truth.params, rtol=1e-6)
    np.testing.assert_allclose(summary.std_err, truth.bse, rtol=1e-6)
    np.testing.assert_allclose(summary.statistic, truth.tvalues, rtol=1e-6)
    np.testing.assert_allclose(summary.p_value, truth.pvalues, rtol=1e-5)
    np.testing.assert_allclose(
        np.column_stack([summary.lower, summary.upper]), truth.conf_int(0.1), rtol=1e-6
    )
    assert summary.distribution == "z"
    assert summary.facts["log_likelihood"] == pytest.approx(truth.llf)
    assert summary.facts["log_likelihood_of_shares"] == pytest.approx(truth.llnull)
    assert summary.facts["pseudo_r2"] == pytest.approx(truth.prsquared)


def test_errors_of_summary():
    X, y = make_rows(100, 3, 3)
    with pytest.raises(NotFittedError):
        LogisticRegression().summary()
    twice = np.column_stack([X, X[:, 0]])
    for model in (
        LogisticRegression().fit(X, y > 0),
        LogisticRegression(C=np.inf).fit(X, y),
        LogisticRegression(C=np.inf).fit(twice, y > 0),
        LogisticRegression(solver="liblinear").fit(X, y > 0),
    ):
        with pytest.raises(ValueError, match="standard errors require two classes, no penalty"):
            model.summary()
    with pytest.raises(ValueError, match="confidence: expected a number between 0 and 1, got 2"):
        LogisticRegression(C=np.inf).fit(X, y > 0).summary(2)
    names = LogisticRegression(C=np.inf).fit(pd.DataFrame(X, columns=list("abc")), y > 0)
    assert names.summary().names == ["(intercept)", "a", "b", "c"]


# ----------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("l1_ratio", [0, 1])
def test_class_weights_equal_weights_of_rows(l1_ratio):
    X, y = make_rows(120, 4, 3)
    y[y == 2] = np.where(np.arange((y == 2).sum()) % 2, 2, 0)
    row_weights = np.random.default_rng(0).random(120)
    balanced = 120 / 3 / np.bincount(y)
    for class_weight, of_class in (({0: 3.0, 2: 0.5}, [3.0, 1.0, 0.5]), ("balanced", balanced)):
        a = LogisticRegression(class_weight=class_weight, l1_ratio=l1_ratio, tol=1e-10).fit(X, y)
        weights = np.asarray(of_class)[y]
        b = LogisticRegression(l1_ratio=l1_ratio, tol=1e-10).fit(X, y, weights)
        np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)
    both = LogisticRegression(class_weight={0: 3.0}, tol=1e-10).fit(X, y, row_weights)
    product = LogisticRegression(tol=1e-10).fit(X, y, row_weights * np.array([3.0, 1, 1])[y])
    np.testing.assert_allclose(both.coef_, product.coef_, atol=1e-8)


@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1}, {"solver": "newton-cholesky"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_equal_repeated_rows(parameters, n_classes):
    X, y = make_rows(100, 4, n_classes)
    times = np.arange(100) % 4
    rows = np.repeat(np.arange(100), times)
    a = LogisticRegression(tol=1e-10, **parameters).fit(X, y, times)
    b = LogisticRegression(tol=1e-10, **parameters).fit(X[rows], y[rows])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)


# --------------------------------------------------------------------------------- the search


@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1}, {"solver": "newton-cholesky"}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start(parameters, n_classes):
    X, y = make_rows(200, 5, n_classes)
    model = LogisticRegression(warm_start=True, tol=1e-8, **parameters).fit(X, y)
    cold, coef = model.n_iter_[0], model.coef_
    assert cold > 1
    assert model.fit(X, y).n_iter_[0] <= 1
    np.testing.assert_allclose(model.coef_, coef, atol=1e-6)
    more = X[:, :3]  # another shape: starts from zero
    fresh = LogisticRegression(tol=1e-8, **parameters).fit(more, y)
    np.testing.assert_allclose(model.fit(more, y).coef_, fresh.coef_, atol=1e-12)


@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1}, {"solver": "newton-cholesky"}])
@pytest.mark.parametrize("shape", [(200, 5), (40, 300)])
def test_too_few_steps(parameters, shape):
    X, y = make_rows(*shape)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        model = LogisticRegression(max_iter=1, tol=1e-12, **parameters).fit(X, y)
    assert list(model.n_iter_) == [1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        done = LogisticRegression(**parameters).fit(X, y)
    assert 1 < done.n_iter_[0] <= 100


@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1}, {"C": np.inf}])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_threads_change_no_bit(parameters, n_classes, form):
    X, y = make_rows(1500, 6, n_classes)
    models = [LogisticRegression(n_jobs=n, **parameters).fit(form(X), y) for n in (1, 2, 3, 7)]
    for other in models[1:]:
        assert np.array_equal(models[0].coef_, other.coef_)
        assert np.array_equal(models[0].intercept_, other.intercept_)


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.01, 100), st.sampled_from([0.3, 1.0]))
def test_search_ends_for_all_units(seed, C, l1_ratio):
    """Test more columns than a working set has, of sizes from 1e-8 to 1e8."""
    X, y = make_rows(60, 100, seed=seed)
    X *= 10.0 ** np.random.default_rng(seed).choice([-8, 0, 8], size=100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-9).fit(X, y)
    assert model.n_iter_[0] <= 100
    # The penalty of huge columns is tiny, and a few of them fit better than constant probabilities.
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("l1_ratio", [0, 1])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_invalid_input_raises(l1_ratio, form, n_classes):
    X, y = make_rows(80, 3, n_classes)
    model = LogisticRegression(l1_ratio=l1_ratio)
    for bad, name in ((np.nan, "NaN"), (np.inf, "infinity")):
        invalid = X.copy()
        invalid[79, 1] = bad
        with pytest.raises(ValueError, match=f"Input X contains {name}"):
            model.fit(form(invalid), y)
    with pytest.raises(ValueError, match="X: values are so large"):
        model.fit(form(X * 1e200), y)
    with pytest.raises(ValueError, match=r"at least 2 classes.* only one class"):
        model.fit(form(X), np.ones(80))
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        model.fit(form(X), y, -np.ones(80))
    with pytest.raises(ValueError, match="Sample weights must contain at least one non-zero"):
        model.fit(form(X), y, np.zeros(80))
    with pytest.raises(ValueError, match="Unknown label type"):
        model.fit(form(X), X[:, 0])


# ------------------------------------------------------------------------------ estimators


@pytest.mark.parametrize("intercept", [True, False])
def test_classes_that_touch_have_no_optimum(intercept):
    # Both classes have rows at 1, all other rows are separated: the loss has no minimum.
    X = np.array([[0.0], [1.0], [1.0], [2.0]]) - (0.0 if intercept else 1.0)
    with pytest.warns(ConvergenceWarning, match="The classes are separable"):
        model = LogisticRegression(C=np.inf, fit_intercept=intercept).fit(X, [0, 0, 1, 1])
    assert model.is_separated_
    with pytest.raises(ValueError, match="summary"):
        model.summary()


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(4, 30), d=st.integers(1, 3))
def test_separability_of_two_classes(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n, d)).astype(float)
    second = rng.random(n) < 0.5
    design = Design(X)
    found = is_separable(design, second, True)
    # Try all directions of small integers: if one of them separates the rows, it must be found.
    rows = np.where(second, 1.0, -1.0)[:, None] * np.column_stack([X, np.ones(n)])
    some = np.array(list(itertools.product(range(-3, 4), repeat=d + 1)))
    sides = rows @ some.T
    if ((sides >= 0).all(axis=0) & (sides > 0).any(axis=0)).any():
        assert found
    weighed = Design(X, np.where(second, 1.0, 0.0))
    assert is_separable(weighed, second, True) == second.any()  # one class alone


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("parameters", [{}, {"l1_ratio": 1, "C": 0.3}])
def test_invalid_values_in_wide_rows(value, parameters):
    X = np.random.default_rng(0).normal(size=(100, 3000))
    y = (X[:, 0] > 0).astype(int)
    X[5, 300] = value
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        LogisticRegression(**parameters).fit(X, y)


@pytest.mark.parametrize("tol", [0.0, 1e-14])
def test_searches_end_for_all_tolerances(tol):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 100))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert LogisticRegression(l1_ratio=1, C=0.1, tol=tol).fit(X, y).score(X, y) > 0.6


def test_warm_start_after_fit_with_intercept():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] + 2 + rng.normal(size=200) > 0).astype(int)
    model = LogisticRegression(warm_start=True, tol=1e-8).fit(X, y)
    model.set_params(fit_intercept=False).fit(X, y)
    cold = LogisticRegression(fit_intercept=False, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, cold.coef_, atol=1e-6)


def test_class_weights_that_are_all_zero():
    X, y = np.arange(6.0)[:, None], np.array([0, 1, 0, 1, 0, 1])
    with pytest.raises(ValueError, match="class_weight"):
        LogisticRegression(class_weight={0: 0, 1: 0}).fit(X, y)
    weights = np.where(y == 1, 1.0, 0.0)
    model = LogisticRegression(class_weight="balanced").fit(X, y, weights)
    assert (model.predict(X) == 1).all()
