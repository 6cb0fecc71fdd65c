"""The trees and the brute-force index against all distances in double precision."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.spatial.distance import cdist
from scipy.special import gamma
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import BallTree as SkBallTree
from sklearn.neighbors import KDTree as SkKDTree

from spinney.neighbors import BallTree, BruteForce, KDTree
from spinney.neighbors._kernels import DENSITY_KERNELS, kernel_values, log_normalisation

POWERS = {"cityblock": 1.0, "euclidean": 2.0, "chebyshev": np.inf, "minkowski": 3.0}


def brute(X, Q, k, p=2.0):
    """Return the distances and numbers of the k nearest rows; ties are sorted by number."""
    differences = np.abs(Q[:, None, :] - X[None, :, :])
    if p == np.inf:
        parts = differences.max(axis=2)
    else:
        parts = np.zeros(differences.shape[:2])
        for j in range(X.shape[1]):
            of_column = differences[:, :, j]
            parts += of_column**p if p != 2 else of_column * of_column
    rows = np.argsort(parts, axis=1, kind="stable")[:, :k]
    powers = np.take_along_axis(parts, rows, axis=1)
    return powers if p in (1.0, np.inf) else powers ** (1 / p), rows


KINDS = ["normal", "uniform", "integers", "two values", "line", "clusters", "equal", "far"]


def points(rng, kind, n, d):
    if kind == "uniform":
        return rng.random((n, d))
    if kind == "integers":
        return rng.integers(0, 4, (n, d)).astype(float)
    if kind == "two values":
        return np.where(rng.random((n, d)) < 0.9, 0.0, 1.0)
    if kind == "line":
        return rng.normal(size=(n, 1)) * np.arange(1, d + 1)
    if kind == "clusters":
        return rng.normal(size=(3, d))[rng.integers(0, 3, n)] + 1e-6 * rng.normal(size=(n, d))
    if kind == "equal":
        return np.ones((n, d))
    if kind == "far":
        return 1e8 + rng.normal(size=(n, d))
    return rng.normal(size=(n, d))


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 300),
    d=st.integers(1, 12),
    metric=st.sampled_from(list(POWERS)),
    leaf_size=st.integers(1, 40),
    n_jobs=st.integers(1, 2),
)
def test_k_d_tree_against_brute_force(*, seed, kind, n, d, metric, leaf_size, n_jobs):
    rng = np.random.default_rng(seed)
    X = points(rng, kind, n, d)
    Q = np.concatenate([X[:5], points(rng, kind, 5, d), rng.normal(size=(3, d)) * 10])
    k = int(rng.integers(1, n + 1))
    p = POWERS[metric]
    tree = KDTree(X, leaf_size=leaf_size, metric="minkowski", p=p, n_jobs=n_jobs)
    distances, rows = tree.query(Q, k)
    expected, expected_rows = brute(X, Q, k, p)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)
    if p != 3.0:  # powers may be rounded differently
        np.testing.assert_array_equal(rows, expected_rows)
    radius = float(np.median(expected))
    counts = tree.query_radius(Q, radius, count_only=True)
    found, found_distances = tree.query_radius(Q, radius, return_distance=True, sort_results=True)
    for i in range(len(Q)):
        assert counts[i] == len(found[i])
        assert (np.diff(found_distances[i]) >= 0).all()
    if p in (1.0, np.inf):
        everything, _ = brute(X, Q, n, p)
        np.testing.assert_array_equal(counts, (everything <= radius).sum(axis=1))


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 6000),
    d=st.integers(1, 40),
    scale=st.sampled_from([1.0, 1e-12, 1e12, 1e-200, 1e150]),
)
def test_products_do_not_lose_digits(seed, kind, n, d, scale):
    rng = np.random.default_rng(seed)
    X = points(rng, kind, n, d) * scale
    Q = np.concatenate([X[:3], points(rng, kind, 3, d) * scale])
    k = min(n, 7)
    distances, rows = BruteForce(X, n_jobs=2).query(Q, k)
    expected = np.sort(cdist(Q, X), axis=1)[:, :k]
    if scale == 1e-200:  # squares underflow to zero, also in SciPy
        return
    np.testing.assert_allclose(distances, expected, rtol=1e-10, atol=0)
    assert all(len(set(row)) == k for row in rows.tolist())
    one, again = BruteForce(X, n_jobs=1).query(Q, k)
    np.testing.assert_array_equal(one, distances)
    np.testing.assert_array_equal(again, rows)


def test_close_points_far_from_the_origin():
    rng = np.random.default_rng(0)
    X = 1e8 + rng.random((2000, 16))
    expected, expected_rows = brute(X, X[:50], 10)
    for index in (KDTree(X), BruteForce(X)):
        distances, rows = index.query(X[:50], 10)
        np.testing.assert_allclose(distances, expected, rtol=1e-15 * 4, atol=0)
        assert (rows == expected_rows).mean() > 0.99


@pytest.mark.parametrize("kind", [KDTree, BallTree, BruteForce])
def test_ties_go_to_the_smaller_number(kind):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 50, axis=0)
    _, rows = kind(X).query([[0.1, 0.1], [0.5, 0.5]], 60)
    assert rows[0].tolist() == list(range(60))
    assert rows[1].tolist() == list(range(60))


def test_few_values_many_times():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (200_000, 1)).astype(float).repeat(2, axis=1)
    tree = KDTree(X)
    _, rows = tree.query([[3.2, 3.2]], 4)
    np.testing.assert_array_equal(rows[0], np.flatnonzero(X[:, 0] == 3)[:4])
    assert tree.query_radius([[3.0, 3.0]], 0.5, count_only=True)[0] == (X[:, 0] == 3).sum()


@pytest.mark.parametrize("n", [30_000, 9_000])
def test_large_trees(n):
    rng = np.random.default_rng(n)
    X = np.concatenate([rng.normal(size=(n, 4)), np.zeros((n // 2, 4))])
    Q = rng.normal(size=(2000, 4))
    one, two = KDTree(X, n_jobs=1), KDTree(X, n_jobs=2)
    distances, rows = two.query(Q, 40)
    np.testing.assert_array_equal(one.query(Q, 40)[1], rows)
    expected, expected_rows = brute(X, Q[:50], 40)
    np.testing.assert_allclose(distances[:50], expected, rtol=1e-14)
    np.testing.assert_array_equal(rows[:50], expected_rows)


def test_approximate_searches():
    rng = np.random.default_rng(0)
    X, Q = rng.random((5000, 6)), rng.random((200, 6))
    tree = KDTree(X, leaf_size=20)
    exact, _ = tree.query(Q, 5)
    loose, _ = tree.query(Q, 5, eps=0.5)
    assert (loose <= 1.5 * exact + 1e-12).all()
    assert (loose > exact).any()
    hasty, rows = tree.query(Q, 5, max_leaves=1)
    assert (hasty >= exact).all()
    assert (rows < 5000).all()
    more, _ = tree.query(Q, 5, max_leaves=10)
    assert exact.mean() <= more.mean() <= hasty.mean()
    distances, rows = tree.query(Q, 30, max_leaves=1)
    assert np.isinf(distances).any()
    assert (rows[np.isinf(distances)] == 5000).all()


@pytest.mark.parametrize("kernel", DENSITY_KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 4, 7])
def test_kernels_integrate_to_one(kernel, d):
    end = np.inf if kernel in ("gaussian", "exponential") else 1.0
    surface = d * np.pi ** (d / 2) / gamma(d / 2 + 1)
    integral, _ = quad(lambda r: r ** (d - 1) * float(kernel_values(kernel, np.array(r))), 0, end)
    assert abs(surface * integral * np.exp(log_normalisation(kernel, 1.0, d)) - 1) < 1e-8


@pytest.mark.parametrize("kernel", DENSITY_KERNELS)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_densities_equal_scikit_learn(kernel, d):
    if kernel == "cosine" and d % 2 == 0:
        return  # scikit-learn's cosine kernel does not integrate to one here
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(200, d)), rng.normal(size=(20, d))
    theirs = SkKDTree(X).kernel_density(Q, 0.7, kernel, rtol=1e-12)
    ours = KDTree(X).kernel_density(Q, 0.7, kernel)
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)
    logs = KDTree(X).kernel_density(Q, 0.7, kernel, return_log=True)
    np.testing.assert_allclose(np.exp(logs), ours, rtol=1e-12)


def test_pairs_within_distances():
    rng = np.random.default_rng(0)
    X, Q = rng.random((150, 3)), rng.random((80, 3))
    radii = [0.1, 0.5, 2.0]
    theirs = SkKDTree(X).two_point_correlation(Q, radii)
    np.testing.assert_array_equal(KDTree(X).two_point_correlation(Q, radii), theirs)


@pytest.mark.parametrize("kind", [KDTree, BallTree, BruteForce])
def test_kinds_of_arrays(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, (100, 3))
    expected = kind(X.astype(float)).query(X[:4].astype(float), 3)
    shapes = (X, X.astype(np.float32), np.asfortranarray(X.astype(float)), X.tolist())
    wide = np.zeros((200, 6))
    wide[::2, ::2] = X
    frozen = X.astype(float)
    frozen.flags.writeable = False
    for form in (*shapes, wide[::2, ::2], frozen):
        distances, rows = kind(form).query(form[:4], 3)
        np.testing.assert_array_equal(rows, expected[1])
        np.testing.assert_array_equal(distances, expected[0])
    again = pickle.loads(pickle.dumps(kind(X)))
    np.testing.assert_array_equal(again.query(X[:4], 3)[1], expected[1])
    assert len(again) == 100


@pytest.mark.parametrize("kind", [KDTree, BallTree, BruteForce])
def test_invalid_input_raises(kind):
    X = np.random.default_rng(0).random((20, 3))
    with pytest.raises(ValueError, match="Input X contains NaN"):
        kind(np.where(X > 0.9, np.nan, X))
    with pytest.raises(ValueError, match="Input X contains infinity"):
        kind(X).query(np.full((1, 3), np.inf))
    with pytest.raises(ValueError, match="expected 1 to 20, got 21"):
        kind(X).query(X, 21)
    with pytest.raises(ValueError, match="expected 1 to 20, got 0"):
        kind(X).query(X, 0)
    with pytest.raises(ValueError, match="X: expected 3 columns, got 2"):
        kind(X).query(X[:, :2], 1)
    with pytest.raises(ValueError, match="Reshape your data"):
        kind(X).query(X[0], 1)


@pytest.mark.parametrize("kind", [KDTree, BallTree, BruteForce])
def test_no_queries(kind):
    index = kind(np.random.default_rng(0).random((20, 3)))
    distances, rows = index.query(np.empty((0, 3)), 2)
    assert distances.shape == rows.shape == (0, 2)
    assert len(index.query_radius(np.empty((0, 3)), 1.0)) == 0


def test_invalid_parameters_of_the_tree_raise():
    X = np.random.default_rng(0).random((20, 3))
    with pytest.raises(ValueError, match=r"metric: expected one of .* got 'cosine'"):
        KDTree(X, metric="cosine")
    with pytest.raises(ValueError, match="p must be greater or equal to one"):
        KDTree(X, p=0.5)
    with pytest.raises(ValueError, match="leaf_size"):
        KDTree(X, leaf_size=0)
    tree = KDTree(X)
    with pytest.raises(ValueError, match="eps: expected a number of at least 0"):
        tree.query(X, eps=-1)
    with pytest.raises(ValueError, match="max_leaves: expected at least 1"):
        tree.query(X, max_leaves=0)
    with pytest.raises(ValueError, match="r: expected a number or an array of shape"):
        tree.query_radius(X, [1.0, 2.0])
    with pytest.raises(ValueError, match="kernel: expected one of"):
        tree.kernel_density(X, 1.0, "square")
    assert tree.query_radius(X, -1.0, count_only=True).sum() == 0


# -------------------------------------------------------------------------------- ball trees


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    n=st.integers(1, 200),
    d=st.integers(1, 6),
    metric=st.sampled_from(["cityblock", "euclidean", "chebyshev", "hamming", "canberra"]),
    leaf_size=st.integers(1, 20),
)
def test_ball_tree_against_brute_force(*, seed, kind, n, d, metric, leaf_size):
    rng = np.random.default_rng(seed)
    X = points(rng, kind, n, d)
    Q = np.concatenate([X[:5], points(rng, kind, 5, d)])
    k = int(rng.integers(1, n + 1))
    name = {"cityblock": "manhattan"}.get(metric, metric)
    tree = BallTree(X, leaf_size=leaf_size, metric=name, n_jobs=2)
    distances, rows = tree.query(Q, k)
    everything = cdist(Q, X, metric)
    np.testing.assert_allclose(distances, np.sort(everything, axis=1)[:, :k], rtol=1e-10)
    true_distances = np.take_along_axis(everything, rows, axis=1)
    np.testing.assert_allclose(true_distances, distances, rtol=1e-10)
    assert all(len(set(row)) == k for row in rows.tolist())
    for line, numbers in zip(distances, rows, strict=True):
        assert all(
            b > a
            for a, b, same in zip(numbers[:-1], numbers[1:], line[:-1] == line[1:], strict=True)
            if same
        )
    radius = float(np.median(everything)) * (1 + 1e-9)
    counts = tree.query_radius(Q, radius, count_only=True)
    np.testing.assert_array_equal(counts, (everything <= radius).sum(axis=1))


def test_other_metrics():
    rng = np.random.default_rng(0)
    X, Q = rng.normal(size=(200, 3)), rng.normal(size=(20, 3))
    V = np.cov(X.T)
    w = np.array([1.0, 2.0, 0.5])
    cases = [
        (BallTree(X, metric="mahalanobis"), cdist(Q, X, "mahalanobis", VI=np.linalg.inv(V))),
        (BallTree(X, metric="mahalanobis", V=V), cdist(Q, X, "mahalanobis", VI=np.linalg.inv(V))),
        (BallTree(X, metric="seuclidean", V=w), cdist(Q, X, "seuclidean", V=w)),
        (BallTree(X, metric="minkowski", p=3, w=w), cdist(Q, X, "minkowski", p=3, w=w)),
        (BallTree(X, metric=_manhattan), cdist(Q, X, "cityblock")),
        (BallTree(X, metric=_stretched, by=2.0), 2 * cdist(Q, X, "cityblock")),
    ]
    for tree, everything in cases:
        distances, rows = tree.query(Q, 5)
        np.testing.assert_allclose(distances, np.sort(everything, axis=1)[:, :5], rtol=1e-9)
        again = pickle.loads(pickle.dumps(tree))
        np.testing.assert_array_equal(again.query(Q, 5)[1], rows)
    Y = rng.uniform(-1, 1, (100, 2))
    theirs = SkBallTree(Y, metric="haversine").query(Y[:5], 4)[0]
    np.testing.assert_allclose(BallTree(Y, metric="haversine").query(Y[:5], 4)[0], theirs)
    rows, queries = rng.integers(0, 2, (100, 7)), rng.integers(0, 2, (20, 7))
    for name in ("jaccard", "rogerstanimoto", "sokalmichener", "sokalsneath"):
        theirs = DistanceMetric.get_metric(name).pairwise(queries, rows)
        tree = BallTree(rows, metric=name, leaf_size=3, n_jobs=2)
        np.testing.assert_allclose(tree.query(queries, 6)[0], np.sort(theirs, axis=1)[:, :6])
        counts = tree.query_radius(queries, 0.5 + 1e-9, count_only=True)
        np.testing.assert_array_equal(counts, (theirs <= 0.5 + 1e-9).sum(axis=1))
    logs = BallTree(X).kernel_density(Q, 0.5)
    np.testing.assert_allclose(logs, KDTree(X).kernel_density(Q, 0.5))


def _manhattan(a, b):
    return np.abs(a - b).sum()


def _stretched(a, b, by):
    return by * np.abs(a - b).sum()


def test_invalid_parameters_of_ball_trees_raise():
    X = np.random.default_rng(0).random((20, 3))
    with pytest.raises(ValueError, match="metric: expected a function or one of"):
        BallTree(X, metric="cosine")
    with pytest.raises(ValueError, match="w: expected 3 weights"):
        BallTree(X, metric="minkowski", w=[1.0])
    with pytest.raises(ValueError, match="VI: expected the shape \\(3, 3\\)"):
        BallTree(X, metric="mahalanobis", VI=np.eye(2))
    with pytest.raises(ValueError, match="VI: expected a positive definite"):
        BallTree(X, metric="mahalanobis", VI=-np.eye(3))
    with pytest.raises(ValueError, match="X: expected 2 columns for haversine"):
        BallTree(X, metric="haversine")
    with pytest.raises(ValueError, match="does not have the parameters"):
        BallTree(X, metric="euclidean", V=1)
    with pytest.raises(ZeroDivisionError):
        BallTree(X, metric=lambda a, b: 1 / 0)
