"""Passes of linear models over rows, against NumPy and for any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from reference.slow_logistic import measure_slowly
from spinney import _core
from spinney.linear_model._least_squares import collect_moments
from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model.design import Design
from support.layouts import LAYOUTS, lay_out

NOTHING = np.empty(0)
THREADS = (1, 2, 3, 7)


def make_targets(n, d, n_targets):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=(d, n_targets)) + rng.normal(size=(n, n_targets))


# --------------------------------------------------------------------------------- moments


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize(("n", "d", "m"), [(1, 3, 1), (255, 1, 2), (256, 4, 1), (777, 9, 3)])
def test_moments(dtype, how, n, d, m):
    rng = np.random.default_rng(n)
    X, Y, weights = rng.normal(size=(n, d)).astype(dtype), rng.normal(size=(n, m)), rng.random(n)
    centre = rng.normal(size=d + m)
    U = np.column_stack([X - centre[:d], Y - centre[d:], np.ones(n)])
    laid = lay_out(X, how)
    for w in (None, weights):
        truth = (U.T * (np.ones(n) if w is None else w)) @ U
        results = [Design(laid, w, n_threads).moments(Y, centre) for n_threads in THREADS]
        np.testing.assert_allclose(results[0], truth, rtol=1e-12, atol=1e-12 * n)
        assert all(np.array_equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n", [1, 700])
def test_moments_of_sparse_rows(index, n):
    rng = np.random.default_rng(0)
    dense = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.4)
    Y, weights = rng.normal(size=(n, 2)), rng.random(n)
    X = sp.csr_array(dense)
    where = X.indices.astype(index), X.indptr.astype(index)
    U = np.column_stack([dense, Y, np.ones(n)])
    for w in (NOTHING, weights):
        results = [
            np.asarray(_core.sum_sparse_moments(X.data, *where, 6, Y, w, n_threads)).reshape(9, 9)
            for n_threads in THREADS
        ]
        np.testing.assert_allclose(results[0], (U.T * (w if len(w) else 1.0)) @ U, atol=1e-11)
        assert all(np.array_equal(results[0], other) for other in results[1:])


def test_moments_keep_their_digits_far_from_zero():
    X, y = make_targets(1000, 4, 2)
    X = np.round(X * 2**20) / 2**20  # adding 2^27 is exact
    near = collect_moments(Design(X), y, True)
    far = collect_moments(Design(X + 2.0**27), y, True)
    A, B = X - X.mean(axis=0), y - y.mean(axis=0)
    for moments in (near, far):
        np.testing.assert_allclose(moments.xx, A.T @ A, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(moments.xy, A.T @ B, rtol=1e-11, atol=1e-9)
        np.testing.assert_allclose(moments.yy, np.square(B).sum(axis=0), rtol=1e-11)


def test_moments_about_a_centre_far_from_the_mean():
    X, y = make_targets(3000, 3, 1)
    order = np.argsort(X[:, 0])
    X, y = X[order], y[order]
    X[:: max(1, 3000 // 1024)] += 1e7  # all rows of the sample whose mean is the centre
    A = X - X.mean(axis=0)
    moments = collect_moments(Design(X), y, True)
    np.testing.assert_allclose(moments.xx, A.T @ A, rtol=1e-9)


# ---------------------------------------------------------------------------- logistic loss


@pytest.mark.parametrize("n_scores", [1, 3, 4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize(("n", "d"), [(1, 2), (255, 1), (256, 4), (700, 7)])
def test_derivatives_of_dense_rows(n_scores, dtype, how, n, d):
    rng = np.random.default_rng(n)
    X, weights = rng.normal(size=(n, d)).astype(dtype), rng.random(n)
    labels = rng.integers(0, max(2, n_scores), size=n).astype(np.int32)
    w, centre = rng.normal(size=(n_scores, d + 1)), rng.normal(size=d)
    laid = lay_out(X, how)

    def measure(own, n_threads, second=True):
        design = Design(laid, own, n_threads)
        if n_scores == 1:
            return design.binary(labels.astype(float), w[0], centre, second)
        return design.multinomial(labels, w, centre, second)

    for own in (None, weights):
        truth = measure_slowly(X - centre, labels, np.ones(n) if own is None else own, w)
        results = [measure(own, n_threads) for n_threads in THREADS]
        for a, b in zip(results[0], truth, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * n)
        for other in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))
        first = measure(own, 2, second=False)
        np.testing.assert_allclose(first[1], truth[1], rtol=1e-11, atol=1e-11 * n)


@pytest.mark.parametrize("n_scores", [1, 3])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("n", [1, 700])
def test_derivatives_of_sparse_rows(n_scores, index, n):
    rng = np.random.default_rng(n)
    dense = rng.normal(size=(n, 5)) * (rng.random((n, 5)) < 0.4)
    labels = rng.integers(0, max(2, n_scores), size=n).astype(np.int32)
    w, weights = rng.normal(size=(n_scores, 6)), rng.random(n)
    X = sp.csr_array(dense)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for own in (None, weights):
        truth = measure_slowly(dense, labels, np.ones(n) if own is None else own, w)
        results = []
        for n_threads in THREADS:
            design = Design(X, own, n_threads)
            assert design.X.indices.dtype == index
            if n_scores == 1:
                results.append(design.binary(labels.astype(float), w[0], np.zeros(5), True))
            else:
                results.append(design.multinomial(labels, w, np.zeros(5), True))
        for a, b in zip(results[0], truth, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * n)
        for other in results[1:]:
            assert all(np.array_equal(a, b) for a, b in zip(results[0], other, strict=True))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_gradient_is_that_of_the_objective(n_classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % n_classes
    objective = LogisticObjective(Design(X), y.astype(np.int32), n_classes, 2.0, True)
    w = rng.normal(size=objective.shape)
    _, gradient, hessian = objective.measure(w, second=True)

    def value(flat):
        return objective.measure(flat.reshape(w.shape), second=False)[0]

    def slopes(flat):
        return objective.measure(flat.reshape(w.shape), second=False)[1].ravel()

    np.testing.assert_allclose(gradient.ravel(), approx_fprime(w.ravel(), value), atol=1e-6)
    np.testing.assert_allclose(hessian, approx_fprime(w.ravel(), slopes), atol=1e-6)


def test_scores_of_any_size():
    X, labels = np.array([[1000.0], [-1000.0], [1e5]]), np.array([0, 1, 1], dtype=np.int32)
    w = np.array([[1.0, 0.0]])
    loss, gradient, _ = Design(X).binary(labels.astype(float), w[0], np.zeros(1), True)
    assert loss == pytest.approx(2000)
    np.testing.assert_allclose(gradient, [2000, 0], atol=1e-9)
    several = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    loss, *_ = Design(X).multinomial(labels, several, np.zeros(1), True)
    assert loss == pytest.approx(measure_slowly(X, labels, np.ones(3), several)[0])


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 8), st.floats(0, 3), st.floats(0, 1))
def test_coordinate_descent(seed, size, absolute, square):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2 * size + 3, size))
    curvatures, slopes = rng.random(len(rows)) + 0.1, rng.normal(size=len(rows))
    hessian = (rows.T * curvatures) @ rows
    start = rng.normal(size=size)
    penalties = np.full(size, absolute), np.full(size, square)
    w = start.copy()
    _core.descend_by_matrix(hessian, rows.T @ slopes, *penalties, 1e-11, 100_000, w)
    derivative = rows.T @ slopes + hessian @ (w - start) + square * w
    missed = np.where(
        w == 0, np.abs(derivative) - absolute, np.abs(derivative + absolute * np.sign(w))
    )
    assert missed.max() < 1e-8


def test_invalid_labels():
    labels = np.array([0, 1, 2, 10**7], dtype=np.int32)
    with pytest.raises(ValueError, match="label is out of range"):
        Design(np.ones((4, 2))).multinomial(labels, np.zeros((3, 3)), np.zeros(2), False)


def test_invalid_sparse_indices():
    broken = sp.csr_array(np.eye(3)[:, :2])
    broken.indices = np.array([0, 10**8], dtype=np.int32)
    with pytest.raises(ValueError, match=r"ind(ices|ex)"):
        Design(broken)


def test_moments_of_sparse_rows_far_from_zero():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.normal(size=(500, 1))
    for offset in (0.0, 1e4, 1e8):
        moments = collect_moments(Design(sp.csr_array(X + offset)), y, True)
        expected = np.cov(X.T, ddof=0) * 500
        np.testing.assert_allclose(moments.xx, expected, atol=1e-3 if offset > 1e5 else 1e-6)


def test_rows_of_weight_zero_do_not_affect_the_centre():
    rng = np.random.default_rng(1)
    X, y, w = rng.normal(size=(2000, 2)), rng.normal(size=(2000, 1)), np.ones(2000)
    X[0, 0], w[0] = 1e30, 0.0
    moments = collect_moments(Design(X, w), y, True)
    np.testing.assert_allclose(moments.means, X[1:].mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(moments.xx, np.cov(X[1:].T, ddof=0) * 1999)


def test_many_targets_and_wide_rows_need_little_memory():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(300, 3)), rng.normal(size=(300, 1000))
    moments = collect_moments(Design(X), Y, True)
    np.testing.assert_allclose(moments.xy, (X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)), atol=1e-9)
    wide = collect_moments(Design(rng.normal(size=(5, 4000))), Y[:5], True)
    assert wide.xx.size == 0
    assert wide.diagonal.shape == (4000,)
