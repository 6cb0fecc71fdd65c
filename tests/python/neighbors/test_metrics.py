"""Distances of every metric and algorithm against scikit-learn and SciPy."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import DistanceMetric, pairwise_distances
from sklearn.neighbors import VALID_METRICS, VALID_METRICS_SPARSE

from spinney.neighbors import BallTree, BruteForce, KNeighborsRegressor, NearestNeighbors
from spinney.tree import ComparisonTreeClassifier
from spinney.tree.triplet.queries import METRICS as COMPARISON_METRICS
from spinney.tree.triplet.queries import VectorRows

METRICS = sorted(set().union(*VALID_METRICS.values()) - {"precomputed", "pyfunc"})
ALGORITHMS = ["auto", "brute", "kd_tree", "ball_tree", "hnsw"]
BOOLEAN = [
    "dice",
    "jaccard",
    "rogerstanimoto",
    "russellrao",
    "sokalmichener",
    "sokalsneath",
    "yule",
]
SCIPY_NAMES = {
    "l1": "cityblock",
    "l2": "euclidean",
    "manhattan": "cityblock",
    "infinity": "chebyshev",
    "p": "minkowski",
    "sokalmichener": "rogerstanimoto",
}
# Metrics whose formulas in scikit-learn and SciPy may divide zero by zero.
UNDEFINED = {"dice": 0.0, "sokalsneath": 0.0, "correlation": 1.0}
N, D = 70, 6


def make_rows(kind):
    rng = np.random.default_rng(7)
    if kind == "positive":
        return rng.gamma(2.0, size=(N, D)) + 0.1
    if kind == "negative":
        return rng.normal(size=(N, D))
    if kind == "zeros":  # many zeros, and rows of only zeros
        X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
        X[::9] = 0.0
        return X
    if kind == "constant":  # constant rows, and a constant column
        X = rng.normal(size=(N, D))
        X[:, 0] = 2.0
        X[::5] = 2.0
        return X
    return (rng.random((N, D)) < 0.5).astype(np.float64)


KINDS = ["positive", "negative", "zeros", "constant", "boolean"]


def parameters(metric, X):
    """Return complete `metric_params`, so that no parameter is estimated."""
    if metric == "p":
        return {"p": 3.0}
    if metric == "seuclidean":
        return {"V": np.where(X.var(axis=0) > 0, X.var(axis=0), 1.0)}
    if metric == "mahalanobis":
        return {"VI": np.linalg.pinv(np.cov(X, rowvar=False))}
    return {}


def by_scikit_learn(metric, queries, X, **params):
    """Return distances of `DistanceMetric`, or else of `pairwise_distances`.

    Two arrays, as `pairwise_distances` of one array with itself has zeros on the diagonal.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            distance = DistanceMetric.get_metric(metric, **params)
        except ValueError:
            distances = pairwise_distances(queries.copy(), X, metric=metric, **params)
        else:
            distances = distance.pairwise(queries, X)
    return np.where(np.isnan(distances), UNDEFINED.get(metric, np.nan), distances)


def by_scipy(metric, queries, X, **params):
    if metric in BOOLEAN:
        queries, X = queries != 0, X != 0
    with np.errstate(invalid="ignore"):
        return cdist(queries, X, SCIPY_NAMES.get(metric, metric), **params)


def found_matrix(search, queries, n_rows):
    distances, rows = search.kneighbors(queries, n_neighbors=n_rows)
    assert (np.sort(rows, axis=1) == np.arange(n_rows)).all()
    assert (np.diff(distances, axis=1) >= 0).all()
    out = np.empty_like(distances)
    np.put_along_axis(out, rows, distances, axis=1)
    return out


@pytest.mark.filterwarnings("ignore:.*violates the triangle inequality", "ignore:Parameter p")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_by_every_algorithm(metric, algorithm, kind):
    X = make_rows(kind)[:, : 2 if metric == "haversine" else D]
    queries = np.vstack([X[:10], make_rows("negative")[:5, : X.shape[1]]])
    params = parameters(metric, X)
    search = NearestNeighbors(metric=metric, algorithm=algorithm, metric_params=params, leaf_size=3)
    known = {
        "auto": set(METRICS),
        "hnsw": {"euclidean", "l2", "minkowski", "cosine"},
    }.get(algorithm) or VALID_METRICS[algorithm]
    if metric not in known:
        with pytest.raises(ValueError, match=r"not valid|'hnsw': expected dense rows"):
            search.fit(X)
        return
    found = found_matrix(search.fit(X), queries, N)
    expected = by_scikit_learn(metric, queries, X, **params)
    tolerance = {"rtol": 1e-9, "atol": 1e-7}  # scikit-learn's Euclidean distances lose digits
    np.testing.assert_allclose(found, expected, **tolerance)
    if metric in ("haversine", "nan_euclidean"):  # SciPy does not have them
        return
    scipys = by_scipy(metric, queries, X, **params)
    if metric == "braycurtis":  # SciPy's denominator is Σ|x + y|, not Σ(|x| + |y|)
        same_sign = (queries[:, None] * X >= 0).all(axis=2)
        scipys[~same_sign] = np.nan
    defined = ~np.isnan(scipys)
    np.testing.assert_allclose(found[defined], scipys[defined], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*violates the triangle inequality", "ignore:Parameter p")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", sorted(set(VALID_METRICS["ball_tree"]) - {"pyfunc"}))
def test_algorithms_agree(metric, kind):
    X = make_rows(kind)[:, : 2 if metric == "haversine" else D]
    queries, params = X[::3], parameters(metric, X)
    expected = by_scikit_learn(metric, queries, X, **params)
    radius = float(np.median(expected)) * (1 + 1e-6) + 1e-6
    y = np.arange(N, dtype=np.float64)
    names = [name for name in ("brute", "kd_tree", "ball_tree") if metric in VALID_METRICS[name]]
    for algorithm in names:
        options = {"metric": metric, "algorithm": algorithm, "metric_params": params}
        search = NearestNeighbors(radius=radius, leaf_size=2, **options).fit(X)
        near = search.radius_neighbors(queries, sort_results=True)
        for i, line in enumerate(expected):
            np.testing.assert_array_equal(np.sort(near[1][i]), np.flatnonzero(line <= radius))
            np.testing.assert_allclose(near[0][i], line[near[1][i]], rtol=1e-9, atol=1e-7)
        # All rows are neighbours, so ties have no effect.
        model = KNeighborsRegressor(N, weights="gaussian", **options).fit(X, y)
        u = expected / np.where(expected.max(axis=1) > 0, expected.max(axis=1), 1.0)[:, None]
        weights = np.exp(-(u**2) / 2)
        averages = weights @ y / weights.sum(axis=1)
        np.testing.assert_allclose(model.predict(queries), averages, rtol=1e-6)


@pytest.mark.parametrize("metric", ["braycurtis", "dice", "russellrao"])
def test_brute_force_replaces_a_ball_tree_without_the_triangle_inequality(metric):
    rng = np.random.default_rng(3)
    X = rng.gamma(0.5, size=(800, 3)) * (rng.random((800, 3)) < 0.7)
    for form in (metric, DistanceMetric.get_metric(metric)):
        search = NearestNeighbors(n_neighbors=7, metric=form, algorithm="ball_tree", leaf_size=2)
        with pytest.warns(UserWarning, match="violates the triangle inequality"):
            search.fit(X)
        expected = np.sort(DistanceMetric.get_metric(metric).pairwise(X, X), axis=1)[:, :7]
        if form == metric:
            expected = np.sort(by_scikit_learn(metric, X, X), axis=1)[:, :7]
        known = ~np.isnan(expected)
        np.testing.assert_allclose(search.kneighbors(X)[0][known], expected[known], atol=1e-12)


@pytest.mark.parametrize("metric", sorted(VALID_METRICS_SPARSE["brute"]))
def test_sparse_rows_have_the_distances_of_dense_ones(metric):
    if metric == "precomputed":
        return
    X = make_rows("zeros")[:, : 2 if metric == "haversine" else D]
    search = NearestNeighbors(metric=metric, algorithm="brute")
    dense = found_matrix(search.fit(X), X[:9], N)
    sparse = found_matrix(search.fit(sp.csr_array(X)), sp.csr_array(X[:9]), N)
    np.testing.assert_allclose(sparse, dense, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", [name for name in METRICS if name != "nan_euclidean"])
def test_distances_of_indexes_that_the_caller_builds(metric, kind):
    X = make_rows(kind)[:, : 2 if metric == "haversine" else D]
    params = parameters(metric, X)
    expected = by_scikit_learn(metric, X[:10], X, **params)
    kinds = [BruteForce]
    regular = metric != "mahalanobis" or np.linalg.eigvalsh(params["VI"])[0] > 1e-9
    if metric in BallTree.valid_metrics and regular:
        kinds.append(BallTree)
    for make in kinds:
        distances, rows = make(X, metric=metric, **params).query(X[:10], k=N)
        taken = np.take_along_axis(expected, rows, axis=1)
        np.testing.assert_allclose(distances, taken, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("metric", sorted(COMPARISON_METRICS & set(METRICS)))
def test_comparison_trees_compare_the_same_distances(metric, kind):
    X = make_rows(kind)
    rows = VectorRows(X, {"cityblock": "manhattan", "sqeuclidean": "euclidean"}.get(metric, metric))
    expected = by_scikit_learn(metric, X, X, **rows.options)
    x, a, b = np.random.default_rng(1).integers(N, size=(3, 2000))
    clear = np.abs(expected[x, a] - expected[x, b]) > 1e-6
    is_closer = rows.closer(rows, 1)(x, a, b)
    np.testing.assert_array_equal(is_closer[clear], (expected[x, a] < expected[x, b])[clear])


def test_bray_curtis_of_two_rows():
    # Σ|x − y| / Σ(|x| + |y|) = (2 + 1) / (1 + 1 + 2 + 3), and with weights (4 + 1) / (4 + 5).
    X, queries = np.array([[1.0, -2.0]]), np.array([[-1.0, -3.0]])
    for params, expected in (({}, 3 / 7), ({"w": [2.0, 1.0]}, 5 / 9)):
        search = NearestNeighbors(n_neighbors=1, metric="braycurtis", metric_params=params)
        assert search.fit(X).kneighbors(queries)[0][0, 0] == pytest.approx(expected, rel=1e-15)
    with pytest.raises(ValueError, match="w: expected weights of at least 0"):
        search.set_params(metric_params={"w": [-1.0, 1.0]}).fit(X).kneighbors(queries)
    assert BruteForce(X, metric="braycurtis").query(np.empty((0, 2)))[0].shape == (0, 1)


def test_undefined_distances_do_not_spoil_predictions():
    X = make_rows("constant")
    y = np.random.default_rng(2).normal(size=N)
    for metric in ("correlation", "dice", "sokalsneath", "braycurtis"):
        for rows in (X, np.zeros_like(X), make_rows("zeros")):
            model = KNeighborsRegressor(4, metric=metric, weights="distance").fit(rows, y)
            assert np.isfinite(model.predict(np.vstack([rows, np.zeros((1, D))]))).all()


def test_comparison_tree_by_bray_curtis():
    X = make_rows("negative")
    y = (X[:, 0] > 0).astype(int)
    tree = ComparisonTreeClassifier(metric="braycurtis", random_state=0).fit(X, y)
    matrix = DistanceMetric.get_metric("braycurtis").pairwise(X)
    of_matrix = ComparisonTreeClassifier(metric="precomputed", random_state=0).fit(matrix, y)
    np.testing.assert_array_equal(tree.predict(X), of_matrix.predict(matrix))
