"""Searches with every metric and algorithm, ties, and the choice of an algorithm."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn import neighbors as theirs
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import cosine_distances, haversine_distances

from spinney.neighbors import (
    BallTree,
    BruteForce,
    KDTree,
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
    choose_algorithm,
)
from spinney.neighbors._algorithm import intrinsic_dimension
from spinney.neighbors._metrics import is_true_metric
from support.nearest_rows import ALGORITHMS, nearest, random_rows

VI = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
DISTANCES = {
    "euclidean": ({}, lambda a, b: cdist(a, b)),
    "sqeuclidean": ({}, lambda a, b: cdist(a, b) ** 2),
    "manhattan": ({}, lambda a, b: np.abs(a[:, None] - b).sum(axis=2)),
    "chebyshev": ({}, lambda a, b: np.abs(a[:, None] - b).max(axis=2)),
    "minkowski": ({"p": 3}, lambda a, b: (np.abs(a[:, None] - b) ** 3).sum(axis=2) ** (1 / 3)),
    "cosine": ({}, cosine_distances),
    "canberra": ({}, lambda a, b: cdist(a, b, "canberra")),
    "correlation": ({}, lambda a, b: cdist(a, b, "correlation")),
    "mahalanobis": ({"metric_params": {"VI": VI}}, lambda a, b: cdist(a, b, "mahalanobis", VI=VI)),
    "seuclidean": (
        {"metric_params": {"V": [1.0, 2.0, 3.0]}},
        lambda a, b: cdist(a, b, "seuclidean", V=[1, 2, 3]),
    ),
}


@pytest.mark.parametrize("metric", DISTANCES)
@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree", "ball_tree"])
def test_metrics_against_all_distances(metric, algorithm):
    parameters, function = DISTANCES[metric]
    if algorithm not in ("auto", "brute") and metric not in theirs.VALID_METRICS[algorithm]:
        with pytest.raises(ValueError, match="not valid"):
            NearestNeighbors(metric=metric, algorithm=algorithm).fit(np.eye(3))
        return
    X, queries = random_rows(0)
    search = NearestNeighbors(
        n_neighbors=7, radius=1.0, metric=metric, algorithm=algorithm, **parameters
    )
    distances, rows = search.fit(X).kneighbors(queries)
    expected = function(queries, X)
    far, near = nearest(expected, 7)
    np.testing.assert_array_equal(rows, near)
    np.testing.assert_allclose(distances, far, atol=1e-12)
    far, near = search.radius_neighbors(queries, sort_results=True)
    for i in range(len(queries)):
        assert len(near[i]) == (expected[i] <= 1.0).sum()
        np.testing.assert_allclose(far[i], np.sort(expected[i])[: len(near[i])], atol=1e-12)


def test_hamming_and_jaccard_of_numeric_columns():
    rng = np.random.default_rng(1)
    X, queries = rng.integers(2, size=(40, 12)), rng.integers(2, size=(9, 12))
    for metric in ("hamming", "jaccard"):
        for algorithm in ("brute", "ball_tree"):
            search = NearestNeighbors(n_neighbors=5, metric=metric, algorithm=algorithm)
            kind = bool if metric == "jaccard" else float
            distances, rows = search.fit(X.astype(kind)).kneighbors(queries.astype(kind))
            far, near = nearest(cdist(queries.astype(bool), X.astype(bool), metric), 5)
            np.testing.assert_allclose(distances, far, atol=1e-12)
            if metric == "hamming":  # multiples of 1 / 12, so rounding does not break ties
                np.testing.assert_array_equal(rows, near)


def test_haversine():
    rng = np.random.default_rng(2)
    X, queries = rng.uniform(-1, 1, (50, 2)), rng.uniform(-1, 1, (5, 2))
    for algorithm in ("brute", "ball_tree"):
        search = NearestNeighbors(n_neighbors=4, metric="haversine", algorithm=algorithm).fit(X)
        distances, rows = search.kneighbors(queries)
        far, near = nearest(haversine_distances(queries, X), 4)
        np.testing.assert_array_equal(rows, near)
        np.testing.assert_allclose(distances, far)


def test_parameters_estimated_from_the_rows():
    X, queries = random_rows(3)
    X[:, 1] = X[:, 0] + 0.1 * X[:, 1]
    inverse = np.linalg.inv(np.cov(X, rowvar=False))
    far, near = nearest(cdist(queries, X, "mahalanobis", VI=inverse), 5)
    for algorithm in ("brute", "ball_tree"):
        search = NearestNeighbors(n_neighbors=5, metric="mahalanobis", algorithm=algorithm).fit(X)
        distances, rows = search.kneighbors(queries)
        np.testing.assert_array_equal(rows, near)
        np.testing.assert_allclose(distances, far)
        given = search.set_params(metric_params={"V": np.cov(X, rowvar=False)}).fit(X)
        np.testing.assert_allclose(given.kneighbors(queries)[0], far)
        spread = NearestNeighbors(n_neighbors=5, metric="seuclidean", algorithm=algorithm).fit(X)
        far_too = nearest(cdist(queries, X, "seuclidean", V=X.var(axis=0, ddof=1)), 5)[0]
        np.testing.assert_allclose(spread.kneighbors(queries)[0], far_too)
    # The estimates do not depend on the queries, so single queries have the same distances.
    one = np.vstack([search.kneighbors(query[None])[0] for query in queries])
    np.testing.assert_allclose(one, far)


def test_metrics_as_callables_objects_and_matrices():
    X, queries = random_rows(4)
    expected = nearest(cdist(queries, X, "cityblock"), 5)

    def city(a, b):
        return np.abs(a - b).sum()

    for algorithm in ("auto", "brute", "ball_tree"):
        for metric in (city, DistanceMetric.get_metric("manhattan")):
            search = NearestNeighbors(n_neighbors=5, metric=metric, algorithm=algorithm).fit(X)
            distances, rows = search.kneighbors(queries)
            np.testing.assert_array_equal(rows, expected[1])
            np.testing.assert_allclose(distances, expected[0])
    known = NearestNeighbors(n_neighbors=5, metric="precomputed")
    known.fit(cdist(X, X, "cityblock"))
    distances, rows = known.kneighbors(cdist(queries, X, "cityblock"))
    np.testing.assert_array_equal(rows, expected[1])
    with pytest.raises(ValueError, match="expected distances to 60 rows"):
        known.kneighbors(np.abs(queries))
    with pytest.raises(ValueError, match="must be square"):
        known.fit(cdist(queries, X))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_sparse_rows(metric):
    X = sp.csr_array(sp.random(80, 20, density=0.2, random_state=5))
    dense = NearestNeighbors(n_neighbors=6, metric=metric, algorithm="brute").fit(X.toarray())
    expected = dense.kneighbors(X.toarray()[:10])
    search = NearestNeighbors(n_neighbors=6, metric=metric).fit(X)
    for queries in (X[:10], X[:10].toarray()):
        distances, rows = search.kneighbors(queries)
        np.testing.assert_allclose(distances, expected[0], atol=1e-12)
        if metric != "cosine":
            np.testing.assert_array_equal(rows, expected[1])
    with pytest.warns(UserWarning, match="brute force"):
        NearestNeighbors(algorithm="kd_tree").fit(X)
    with pytest.raises(ValueError, match="kd_tree does not work with sparse"):
        NearestNeighbors(algorithm="kd_tree").fit(X.toarray()).kneighbors(X)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
def test_ties_go_to_the_smaller_row(algorithm, metric):
    rng = np.random.default_rng(6)
    X = rng.integers(4, size=(300, 2)).astype(float)  # a grid: most distances are tied
    queries = rng.integers(4, size=(50, 2)) + rng.integers(2, size=(50, 1)) / 2
    distances = cdist(queries, X, {"manhattan": "cityblock"}.get(metric, metric))
    for k in (1, 5, 30, 299, 300):
        search = NearestNeighbors(n_neighbors=k, algorithm=algorithm, metric=metric, leaf_size=5)
        found = search.fit(X).kneighbors(queries)
        expected = nearest(distances, k)
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_array_equal(found[0], expected[0])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_queries_without_rows_exclude_the_row_itself(algorithm):
    X = np.array([[0.0], [0.0], [0.0], [5.0], [5.0]])
    search = NearestNeighbors(n_neighbors=2, algorithm=algorithm).fit(X)
    assert search.kneighbors(return_distance=False).tolist() == [
        *([1, 2], [0, 2], [0, 1]),
        *([4, 0], [3, 0]),
    ]
    ones = NearestNeighbors(n_neighbors=1, algorithm=algorithm).fit(np.ones((4, 1)))
    assert ones.kneighbors(return_distance=False).ravel().tolist() == [1, 0, 0, 0]
    distances, rows = search.radius_neighbors(radius=0.0)
    assert [sorted(found.tolist()) for found in rows] == [[1, 2], [0, 2], [0, 1], [4], [3]]
    assert all((found == 0).all() for found in distances)


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "auto"])
def test_number_of_neighbours_up_to_the_number_of_rows(algorithm):
    X = np.arange(6.0)[:, None]
    search = NearestNeighbors(n_neighbors=6, algorithm=algorithm).fit(X)
    assert search.kneighbors([[0.2]])[1].tolist() == [[0, 1, 2, 3, 4, 5]]
    with pytest.raises(ValueError, match="n_neighbors = 7, n_samples_fit = 6"):
        search.kneighbors([[0.2]], n_neighbors=7)
    with pytest.raises(ValueError, match="n_neighbors = 6, n_samples_fit = 6"):
        search.kneighbors()
    model = KNeighborsRegressor(7, algorithm=algorithm).fit(X, X.ravel())
    with pytest.raises(ValueError, match="n_neighbors = 7, n_samples_fit = 6"):
        model.predict(X)


def test_trees_and_other_estimators_as_rows():
    X, queries = random_rows(10)
    expected = NearestNeighbors(n_neighbors=3).fit(X).kneighbors(queries)
    fitted = NearestNeighbors(n_neighbors=3, algorithm="kd_tree").fit(X)
    for rows in (
        *(KDTree(X), BallTree(X), BruteForce(X), theirs.KDTree(X), theirs.BallTree(X)),
        *(fitted, theirs.NearestNeighbors().fit(X)),
    ):
        found = NearestNeighbors(n_neighbors=3).fit(rows).kneighbors(queries)
        np.testing.assert_array_equal(found[1], expected[1])
        np.testing.assert_allclose(found[0], expected[0])


def test_choice_of_algorithm():
    assert choose_algorithm(100_000, 2, "euclidean", {}, n_neighbors=5) == "kd_tree"
    assert choose_algorithm(100_000, 2, "haversine", {}, n_neighbors=5) == "ball_tree"
    assert choose_algorithm(100_000, 100, "euclidean", {}, n_neighbors=5) == "brute"
    assert choose_algorithm(100_000, 50, "manhattan", {}, n_neighbors=5) == "brute"
    assert choose_algorithm(100, 2, "euclidean", {}, n_neighbors=5) == "kd_tree"
    assert choose_algorithm(100_000, 2, "cosine", {}, n_neighbors=5) == "brute"
    assert choose_algorithm(100_000, 2, "minkowski", {"p": 0.5}, n_neighbors=5) == "brute"
    assert choose_algorithm(100_000, 2, "euclidean", {}, n_neighbors=5, n_queries=1) == "brute"
    assert choose_algorithm(100_000, 2, "euclidean", {}) == "kd_tree"
    assert choose_algorithm(100_000, 100, "euclidean", {}, dimension=2.0) == "kd_tree"
    # Trees may miss rows for functions that are not metrics or not declared as metrics.
    assert choose_algorithm(100_000, 10, "dice", {}) == "brute"
    assert choose_algorithm(10_000, 2, _city_block, {}) == "brute"
    assert is_true_metric(DistanceMetric.get_metric("euclidean"))
    assert not is_true_metric(DistanceMetric.get_metric("dice"))
    assert not is_true_metric(DistanceMetric.get_metric("pyfunc", func=_city_block))
    assert not is_true_metric(_city_block)


def _city_block(a, b):
    return float(np.abs(a - b).sum())


class _DeclaredMetric:
    is_metric = True

    def __call__(self, a, b):
        return _city_block(a, b)


def test_tree_for_a_function_that_is_declared_a_metric():
    assert choose_algorithm(10_000, 2, _DeclaredMetric(), {}, n_neighbors=5) == "ball_tree"
    X, queries = random_rows(14)
    search = NearestNeighbors(n_neighbors=3, metric=_DeclaredMetric(), algorithm="ball_tree").fit(X)
    far, near = nearest(cdist(queries, X, "cityblock"), 3)
    np.testing.assert_allclose(search.kneighbors(queries)[0], far)
    np.testing.assert_array_equal(search.kneighbors(queries)[1], near)


@pytest.mark.parametrize("true", [1, 2, 3, 5])
def test_intrinsic_dimension(true):
    rng = np.random.default_rng(true)
    X = rng.normal(size=(3000, true)) @ np.linalg.qr(rng.normal(size=(20, true)))[0].T
    assert abs(intrinsic_dimension(X) - true) < 0.15 * true + 0.1
    assert intrinsic_dimension(np.ones((100, 3))) == 1.0
    assert intrinsic_dimension(np.ones((3, 3))) == 3.0
    assert intrinsic_dimension(np.repeat(X[:40], 30, axis=0)) >= 1.0


def test_kernel_distance():
    X, queries = random_rows(15)

    def kernel(x, z):
        return np.exp(-0.3 * ((x - z) ** 2).sum())

    table = np.array([[2 - 2 * kernel(x, z) for z in X] for x in queries])
    far, near = nearest(np.sqrt(table), 4)
    for params in ({"kernel": "rbf", "gamma": 0.3}, {"kernel": kernel}):
        search = NearestNeighbors(n_neighbors=4, metric="kernel", metric_params=params).fit(X)
        np.testing.assert_allclose(search.kneighbors(queries)[0], far, atol=1e-7)
        np.testing.assert_array_equal(search.kneighbors(queries)[1], near)
    # The distance of the linear kernel is the Euclidean distance.
    search = NearestNeighbors(n_neighbors=4, metric="kernel", metric_params={"kernel": "linear"})
    far, _ = nearest(cdist(queries, X), 4)
    np.testing.assert_allclose(search.fit(X).kneighbors(queries)[0], far, atol=1e-7)
    with pytest.raises(ValueError, match="expected the key 'kernel'"):
        NearestNeighbors(metric="kernel").fit(X).kneighbors(queries)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_pickles(algorithm):
    X, queries = random_rows(12)
    search = NearestNeighbors(n_neighbors=3, algorithm=algorithm).fit(X)
    again = pickle.loads(pickle.dumps(search))
    for one, two in zip(search.kneighbors(queries), again.kneighbors(queries), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_mahalanobis_with_dependent_columns(algorithm):
    X, queries = random_rows(13)
    X[:, 2] = X[:, 0] + X[:, 1]
    inverse = np.linalg.pinv(np.cov(X, rowvar=False))
    search = NearestNeighbors(n_neighbors=5, metric="mahalanobis", algorithm=algorithm).fit(X)
    far, _ = nearest(cdist(queries, X, "mahalanobis", VI=inverse), 5)
    np.testing.assert_allclose(search.kneighbors(queries)[0], far)


def test_recall_of_hnsw():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = (X[:, 0] > 0).astype(int)
    Q = rng.normal(size=(200, 8))
    for metric in ("euclidean", "cosine"):
        exact = NearestNeighbors(n_neighbors=5, algorithm="brute", metric=metric).fit(X)
        graph = NearestNeighbors(n_neighbors=5, algorithm="hnsw", metric=metric).fit(X)
        far, rows = exact.kneighbors(Q)
        nearly, found = graph.kneighbors(Q)
        shared = np.mean([len(set(a) & set(b)) / 5 for a, b in zip(rows, found, strict=True)])
        assert shared > 0.95
        same = (rows == found).all(axis=1)
        np.testing.assert_allclose(nearly[same], far[same], rtol=1e-12)
    model = KNeighborsClassifier(algorithm="hnsw").fit(X, y)
    assert model.score(Q, Q[:, 0] > 0) > 0.85
    with pytest.raises(ValueError, match="use 'brute' or a tree for a radius"):
        NearestNeighbors(algorithm="hnsw").fit(X).radius_neighbors(Q)
