"""Estimators of neighbours: metrics, ties, weights, Gower's distance and strings."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import neighbors as theirs
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import DistanceMetric
from sklearn.metrics.pairwise import cosine_distances, haversine_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinney.neighbors import (
    HNSW,
    BallTree,
    BruteForce,
    KDTree,
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    NearestNeighbors,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    RadiusNeighborsTransformer,
    choose_algorithm,
)
from spinney.neighbors._algorithm import intrinsic_dimension
from spinney.neighbors._metrics import is_true_metric
from spinney.neighbors._weights import KERNELS

PREDICTORS = [KNeighborsClassifier, KNeighborsRegressor]
ALGORITHMS = ["brute", "kd_tree", "ball_tree"]


# ------------------------------------------------------------------------------------ metrics


def nearest(distances, k):
    """Return the k nearest rows; ties are sorted by number."""
    distances = np.asarray(distances)
    rows = np.lexsort((np.broadcast_to(np.arange(distances.shape[1]), distances.shape), distances))
    rows = rows[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows


def rows_of(seed, n=60, n_queries=15, d=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(n_queries, d))


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
    X, queries = rows_of(0)
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
    X, queries = rows_of(3)
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


def test_callables_objects_and_matrices():
    X, queries = rows_of(4)
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
    X = sp.random_array((80, 20), density=0.2, rng=np.random.default_rng(5), format="csr")
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


# --------------------------------------------------------------------------------------- ties


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
def test_duplicates_and_neighbours_without_the_row_itself(algorithm):
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
def test_as_many_neighbours_as_rows_and_more(algorithm):
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


# ------------------------------------------------------------------------------------ weights

FORMULAS = {
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 0.75 * (1 - u * u),
    "biweight": lambda u: 15 / 16 * (1 - u * u) ** 2,
    "triweight": lambda u: 35 / 32 * (1 - u * u) ** 3,
    "tricube": lambda u: 70 / 81 * (1 - u**3) ** 3,
    "cosine": lambda u: math.pi / 4 * math.cos(math.pi / 2 * u) if u < 1 else 0.0,
    "gaussian": lambda u: math.exp(-u * u / 2) / math.sqrt(2 * math.pi),
    "logistic": lambda u: 1 / (math.exp(u) + 2 + math.exp(-u)),
}


def test_every_kernel_has_a_formula():
    assert set(FORMULAS) == set(KERNELS)


@pytest.mark.parametrize("kernel", FORMULAS)
def test_kernels_of_k_neighbours(kernel):
    X, queries = rows_of(7)
    y = np.random.default_rng(7).normal(size=len(X))
    classes = (y > 0).astype(int)
    distances, rows = NearestNeighbors(n_neighbors=6).fit(X).kneighbors(queries)
    formula = FORMULAS[kernel]
    weights = np.array([[formula(d / far[-1]) for d in far] for far in distances])
    total = weights.sum(axis=1)
    regressor = KNeighborsRegressor(6, weights=kernel).fit(X, y)
    np.testing.assert_allclose(regressor.predict(queries), (weights * y[rows]).sum(axis=1) / total)
    classifier = KNeighborsClassifier(6, weights=kernel).fit(X, classes)
    share = (weights * classes[rows]).sum(axis=1) / total
    np.testing.assert_allclose(classifier.predict_proba(queries)[:, 1], share)
    np.testing.assert_array_equal(classifier.predict(queries), share > 0.5)


@pytest.mark.parametrize("kernel", FORMULAS)
def test_kernels_within_a_radius(kernel):
    X, queries = rows_of(8)
    y = np.random.default_rng(8).normal(size=(len(X), 2))
    model = RadiusNeighborsRegressor(1.5, weights=kernel).fit(X, y)
    distances = cdist(queries, X)
    for query, far in zip(queries, distances, strict=True):
        near = np.flatnonzero(far <= 1.5)
        if len(near) > 0:
            weights = np.array([FORMULAS[kernel](d / 1.5) for d in far[near]])
            expected = (weights[:, None] * y[near]).sum(axis=0) / weights.sum()
            np.testing.assert_allclose(model.predict(query[None])[0], expected)


@pytest.mark.parametrize("kernel", [*FORMULAS, "distance"])
def test_weights_never_vanish_together(kernel):
    X, y = [[-1.0], [1.0], [1.0], [9.0]], [0.0, 3.0, 6.0, 100.0]
    assert KNeighborsRegressor(3, weights=kernel).fit(X, y).predict([[0.0]]) == pytest.approx(3.0)
    assert KNeighborsRegressor(1, weights=kernel).fit(X, y).predict([[8.0]]) == 100.0
    same = KNeighborsRegressor(2, weights=kernel).fit(X, y)
    assert same.predict([[1.0]]) == pytest.approx(4.5)  # both at distance 0
    edge = RadiusNeighborsRegressor(1.0, weights=kernel).fit(X, y)
    assert edge.predict([[0.0]]) == pytest.approx(3.0)
    shares = KNeighborsClassifier(1, weights=kernel).fit(X, [0, 0, 0, 1]).predict_proba([[8.0]])
    assert shares.tolist() == [[0.0, 1.0]]


def test_weight_functions():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]

    def nothing(distances):
        return np.zeros_like(distances)

    def steep(distances):
        return np.exp(-5 * distances)

    with pytest.raises(ValueError, match="zero weights"):
        KNeighborsClassifier(2, weights=nothing).fit(X, y).predict(X)
    assert KNeighborsClassifier(3, weights=steep).fit(X, y).predict([[0.2]]) == [0]
    for kind in (KNeighborsClassifier, RadiusNeighborsRegressor):
        with pytest.raises(ValueError, match="weights"):
            kind(weights="bell").fit(X, y)


# --------------------------------------------------------------------------------- predictors


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("several", [False, True])
def test_predictions_are_those_of_scikit_learn(weights, several):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    labels = np.column_stack([names, names[::-1]]) if several else names
    numbers = np.column_stack([y, X[:, 0]]) if several else X[:, 0]
    for ours, other, target in (
        (KNeighborsClassifier(7), theirs.KNeighborsClassifier(7), labels),
        (RadiusNeighborsClassifier(0.9), theirs.RadiusNeighborsClassifier(0.9), labels),
        (KNeighborsRegressor(7), theirs.KNeighborsRegressor(7), numbers),
        (RadiusNeighborsRegressor(0.9), theirs.RadiusNeighborsRegressor(0.9), numbers),
    ):
        # Off the grid, so that there are no ties.
        noise = np.random.default_rng(9).normal(scale=1e-4, size=X.shape)
        ours.set_params(weights=weights).fit(X + noise, target)
        other.set_params(weights=weights).fit(X + noise, target)
        for queries in (X, None):
            got, expected = ours.predict(queries), other.predict(queries)
            if target.dtype.kind == "U":
                np.testing.assert_array_equal(got, expected)
                got, expected = ours.predict_proba(queries), other.predict_proba(queries)
            np.testing.assert_allclose(got, expected)


def test_queries_without_neighbours_in_the_radius():
    X, y = [[0.0], [1.0]], [1, 2]
    with pytest.raises(ValueError, match="No neighbors found"):
        RadiusNeighborsClassifier(0.5).fit(X, y).predict([[9.0]])
    model = RadiusNeighborsClassifier(0.5, outlier_label=2).fit(X, y)
    assert model.predict([[9.0], [0.1]]).tolist() == [2, 1]
    assert model.predict_proba([[9.0], [0.1]]).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    stranger = RadiusNeighborsClassifier(0.5, outlier_label=7).fit(X, y)
    with pytest.warns(UserWarning, match="Outlier label 7"):
        assert stranger.predict([[9.0], [0.1]]).tolist() == [7, 1]
    with pytest.warns(UserWarning, match="predicting NaN"):
        got = RadiusNeighborsRegressor(0.5).fit(X, y).predict([[9.0], [0.1]])
    assert np.isnan(got[0])
    assert got[1] == 1.0


def test_pipelines_searches_and_graphs():
    X, y = load_iris(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), KNeighborsClassifier())
    grid = {
        "kneighborsclassifier__n_neighbors": [1, 15],
        "kneighborsclassifier__weights": ["uniform", "epanechnikov"],
    }
    assert GridSearchCV(pipe, grid, cv=5).fit(X, y).best_score_ > 0.94
    for graph, model in (
        (KNeighborsTransformer(n_neighbors=8), KNeighborsClassifier(5, metric="precomputed")),
        (
            RadiusNeighborsTransformer(radius=2.0),
            RadiusNeighborsClassifier(1.5, metric="precomputed"),
        ),
    ):
        chain = make_pipeline(graph, model).fit(X[::2], y[::2])
        direct = clone(model).set_params(metric="minkowski").fit(X[::2], y[::2])
        np.testing.assert_array_equal(chain.predict(X[1::2]), direct.predict(X[1::2]))
    graph = KNeighborsTransformer(n_neighbors=3, mode="connectivity").fit_transform(X)
    assert (graph.sum(axis=1) == 3).all()


@pytest.mark.parametrize("metric", ["minkowski", "cosine", "gower"])
def test_threads_do_not_change_the_result(metric):
    X, y = load_diabetes(return_X_y=True)
    X = np.vstack([X] * 4)
    y = np.concatenate([y] * 4)
    results = []
    for n_jobs in (1, 2):
        model = KNeighborsRegressor(10, metric=metric, weights="distance", n_jobs=n_jobs)
        model.fit(X, y)
        results.append([*model.kneighbors(X + 0.01), model.predict(X + 0.01)])
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)


def test_trees_and_other_estimators_as_rows():
    X, queries = rows_of(10)
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


class _Declared:
    is_metric = True

    def __call__(self, a, b):
        return _city_block(a, b)


def test_tree_for_a_function_that_is_declared_a_metric():
    assert choose_algorithm(10_000, 2, _Declared(), {}, n_neighbors=5) == "ball_tree"
    X, queries = rows_of(14)
    search = NearestNeighbors(n_neighbors=3, metric=_Declared(), algorithm="ball_tree").fit(X)
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


def test_the_distance_of_a_kernel():
    X, queries = rows_of(15)

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
    X, queries = rows_of(12)
    search = NearestNeighbors(n_neighbors=3, algorithm=algorithm).fit(X)
    again = pickle.loads(pickle.dumps(search))
    for one, two in zip(search.kneighbors(queries), again.kneighbors(queries), strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("algorithm", ["brute", "ball_tree"])
def test_mahalanobis_with_dependent_columns(algorithm):
    X, queries = rows_of(13)
    X[:, 2] = X[:, 0] + X[:, 1]
    inverse = np.linalg.pinv(np.cov(X, rowvar=False))
    search = NearestNeighbors(n_neighbors=5, metric="mahalanobis", algorithm=algorithm).fit(X)
    far, _ = nearest(cdist(queries, X, "mahalanobis", VI=inverse), 5)
    np.testing.assert_allclose(search.kneighbors(queries)[0], far)


# --------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("kind", PREDICTORS)
def test_bad_input(kind):
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(NotFittedError):
        kind().predict(X)
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[1, 1] = bad
        with pytest.raises(ValueError, match="contains"):
            kind().fit(broken, y)
        with pytest.raises(ValueError, match="contains"):
            kind(2).fit(X, y).predict(broken)
    with pytest.raises(ValueError, match="algorithm='hnsw': expected dense rows and metric="):
        kind(algorithm="hnsw", metric="manhattan").fit(X, y)
    with pytest.raises(ValueError, match="'metric' parameter"):
        kind(metric="crow").fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        kind().fit(X, y[:3])
    with pytest.raises(ValueError, match="n_neighbors"):
        kind(0).fit(X, y)
    with pytest.raises(ValueError, match="features"):
        kind(2).fit(X, y).predict(X[:, :2])
    for metric in ("gower", "edit"):
        with pytest.raises(ValueError, match="algorithm: expected 'auto' or 'brute'"):
            kind(metric=metric, algorithm="kd_tree").fit(
                ["a", "b", "c", "d"] if metric == "edit" else X, y
            )


@pytest.mark.parametrize("kind", PREDICTORS)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("options", [{}, {"p": 3}, {"weights": "distance"}], ids=str)
def test_distances_that_overflow(kind, algorithm, options):
    X, queries = rows_of(17)
    y = np.arange(len(X)) % 3
    model = kind(4, algorithm=algorithm, **options)
    expected = model.fit(X, y).predict(queries)
    np.testing.assert_allclose(model.fit(X * 1e90, y).predict(queries * 1e90), expected)
    with pytest.raises(ValueError, match="X: expected finite distances of the nearest rows"):
        model.fit(X * 1e200, y).predict(queries * 1e200)
    # An outlier has no effect on the neighbours of other queries.
    outlier = np.vstack([X, np.full((1, X.shape[1]), 1e300)])
    np.testing.assert_allclose(model.fit(outlier, [*y, 0]).predict(queries), expected)


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_huge_values_without_powers(metric):
    X, queries = rows_of(17)
    y = np.arange(len(X)) % 3
    for kind in PREDICTORS:
        model = kind(4, metric=metric)
        expected = model.fit(X, y).predict(queries)
        np.testing.assert_allclose(model.fit(X * 1e300, y).predict(queries * 1e300), expected)


# -------------------------------------------------------------------------- Gower's distance


def gower(a, b, ranges, weights):
    """Return Gower's distance by its definition; `ranges` has None for categories."""
    total = weight_of_all = 0.0
    for x, y, spread, weight in zip(a, b, ranges, weights, strict=True):
        if x is None or y is None:
            continue
        is_scaled = spread is not None and spread > 0
        difference = abs(x - y) / spread if is_scaled else float(x != y)
        total += weight * difference
        weight_of_all += weight
    return total / weight_of_all if weight_of_all > 0 else 1.0


def ranges_of(rows, is_number):
    out = []
    for j, number in enumerate(is_number):
        there = [row[j] for row in rows if row[j] is not None]
        out.append((max(there) - min(there) if there else 0) if number else None)
    return out


def frame_of(rows, is_number):
    columns = {}
    for j, number in enumerate(is_number):
        values = [row[j] for row in rows]
        if number:
            columns[f"c{j}"] = np.array([np.nan if v is None else v for v in values], dtype=float)
        else:
            columns[f"c{j}"] = pd.Series(values, dtype="category")
    return pd.DataFrame(columns)


NUMBER = st.one_of(st.none(), st.integers(-5, 5).map(lambda i: i / 2), st.floats(-1e9, 1e9))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_gower_against_its_definition(data):
    is_number = data.draw(st.lists(st.booleans(), min_size=1, max_size=5))

    def rows(letters, n):
        category = st.one_of(st.none(), st.sampled_from(letters))
        row = st.tuples(*(NUMBER if number else category for number in is_number))
        return data.draw(st.lists(row, min_size=n, max_size=12))

    fit, queries = rows("abc", 2), rows("abcxy", 1)  # x and y are unseen
    weights = data.draw(
        st.one_of(
            st.none(),
            st.lists(
                st.sampled_from([0.5, 1.0, 2.0]), min_size=len(is_number), max_size=len(is_number)
            ),
        )
    )
    params = None if weights is None else {"weights": weights}
    search = NearestNeighbors(n_neighbors=len(fit), metric="gower", metric_params=params)
    search.fit(frame_of(fit, is_number))
    distances, found = search.kneighbors(frame_of(queries, is_number))
    ranges = ranges_of(fit, is_number)
    given_weights = weights or [1.0] * len(is_number)
    for i, query in enumerate(queries):
        expected = np.array([gower(query, row, ranges, given_weights) for row in fit])
        np.testing.assert_allclose(distances[i], np.sort(expected), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(expected[found[i]], distances[i], rtol=1e-9, atol=1e-12)
        ties = distances[i][:-1] == distances[i][1:]
        assert (found[i][:-1][ties] < found[i][1:][ties]).all()
    limit = float(np.median(distances))
    far, near = search.radius_neighbors(frame_of(queries, is_number), radius=limit)
    for i in range(len(queries)):
        assert sorted(near[i]) == sorted(found[i][distances[i] <= limit])
        assert (far[i] <= limit).all()


def mixed_table(n=400, seed=11):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n).astype(float),
            "job": rng.choice(["cook", "clerk", "nurse"], n),
            "city": pd.Categorical(rng.choice(["Ulm", "Bonn"], n)),
            "income": rng.lognormal(size=n),
            "one": np.ones(n),
        }
    )
    y = (frame["job"] == "cook").to_numpy() | (frame["age"] > 60).to_numpy()
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    frame.loc[rng.random(n) < 0.1, "job"] = None
    return frame, y


def test_gower_on_frames():
    frame, y = mixed_table()
    model = KNeighborsClassifier(9, metric="gower")
    assert cross_val_score(model, frame, y, cv=5).mean() > 0.8
    model.fit(frame[:300], y[:300])
    expected = model.kneighbors(frame[300:])
    polars = clone(model).fit(pl.from_pandas(frame[:300]), y[:300])
    for found, wanted in zip(polars.kneighbors(pl.from_pandas(frame[300:])), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(frame[300:]), model.predict(frame[300:]))
    assert again.feature_names_in_.tolist() == list(frame)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[300:].rename(columns={"age": "years"}))
    # Leave-one-out predictions.
    assert (model.kneighbors()[1] != np.arange(300)[:, None]).all()


def test_gower_parameters():
    frame, y = mixed_table()
    numbers = frame[["age", "income"]].to_numpy()
    only_age = {"weights": [1.0, 0.0]}
    model = KNeighborsClassifier(3, metric="gower", metric_params=only_age).fit(numbers, y)
    distances, _ = model.kneighbors(numbers[:5])
    there = numbers[:, 0][~np.isnan(numbers[:, 0])]
    expected = np.abs(numbers[:5, :1] - numbers[:, 0]) / (there.max() - there.min())
    expected[np.isnan(expected)] = 1.0
    np.testing.assert_allclose(distances, np.sort(expected, axis=1)[:, :3], atol=1e-12)
    codes = NearestNeighbors(
        n_neighbors=1, metric="gower", metric_params={"categorical_features": [0]}
    ).fit([[1, 0.0], [2, 1.0], [9, 1.0]])
    assert codes.kneighbors([[8, 0.0]])[0].item() == 0.5  # an unknown category, an equal number
    by_spread = NearestNeighbors(n_neighbors=1, metric="gower", metric_params={"scale": "std"})
    by_spread.fit([[1.0, 0.0], [2.0, 0.0], [6.0, 0.0]])
    expected = 1.0 / np.std([1.0, 2.0, 6.0]) / 2  # the constant column has distance 0
    np.testing.assert_allclose(by_spread.kneighbors([[7.0, 0.0]])[0], [[expected]])
    for params, text in (
        ({"scale": "inch"}, "scale 'range' or 'std'"),
        ({"weights": [1.0]}, "expected weights of shape"),
        ({"weights": [0.0, 0.0]}, "at least one positive weight"),
        ({"weights": [1.0, -1.0]}, "weights >= 0"),
        ({"weigths": [1.0, 1.0]}, "weigths"),
    ):
        with pytest.raises(ValueError, match=text):
            KNeighborsClassifier(metric="gower", metric_params=params).fit(numbers, y)
    with pytest.raises(ValueError, match="infinity"):
        KNeighborsClassifier(metric="gower").fit([[np.inf], [1.0]], [0, 1])


def test_gower_of_huge_and_tiny_values():
    for unit in (1e308, 1e-310):
        X = np.array([[-1.0], [0.0], [1.0]]) * unit
        search = NearestNeighbors(n_neighbors=3, metric="gower").fit(X)
        distances, rows = search.kneighbors(X[:1])
        np.testing.assert_allclose(distances, [[0.0, 0.5, 1.0]])
        assert rows.tolist() == [[0, 1, 2]]


# ------------------------------------------------------------------------------------ strings


def edits(a, b):
    """Return Levenshtein's distance by the recursion."""
    line = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, line[0] = line[0], i
        for j, y in enumerate(b, 1):
            before, line[j] = line[j], min(before + (x != y), line[j] + 1, line[j - 1] + 1)
    return line[-1]


def differences(a, b):
    return abs(len(a) - len(b)) + sum(x != y for x, y in zip(a, b, strict=False))


WORD = st.one_of(st.text("ab", max_size=6), st.text(max_size=8), st.text("abc", min_size=60))


@settings(max_examples=100, deadline=None)
@given(st.lists(WORD, min_size=1, max_size=8), st.lists(WORD, min_size=1, max_size=4))
def test_strings(words, queries):
    for metric, function in (("edit", edits), ("hamming", differences)):
        search = NearestNeighbors(n_neighbors=len(words), metric=metric).fit(words)
        distances, rows = search.kneighbors(queries)
        far, near = nearest([[function(q, w) for w in words] for q in queries], len(words))
        np.testing.assert_array_equal(distances, far)
        np.testing.assert_array_equal(rows, near)


def test_strings_in_estimators():
    words = ["cat", "cats", "catty", "dog", "dogs", "doggy"]
    kinds = ["cat", "cat", "cat", "dog", "dog", "dog"]
    for X in (words, np.array(words), pd.Series(words), pd.DataFrame({"word": words})):
        model = KNeighborsClassifier(3, metric="edit", weights="distance").fit(X, kinds)
        assert model.predict(["cots", "dugs"]).tolist() == ["cat", "dog"]
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(["cots"]).tolist() == ["cat"]
    assert model.score(None, kinds) == 1.0
    found = NearestNeighbors(radius=1, metric="edit").fit(words).radius_neighbors(["cat"])
    assert found[1][0].tolist() == [0, 1]
    with pytest.raises(ValueError, match="expected strings"):
        model.predict([[1.0], [2.0]])
    with pytest.raises(ValueError, match="expected strings"):
        model.fit([[1.0], [2.0]], [0, 1])
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(words, kinds[:4])
    with pytest.raises(ValueError, match="algorithm: expected 'auto' or 'brute'"):
        KNeighborsClassifier(metric="hamming", algorithm="ball_tree").fit(words, kinds)
    lengths = NearestNeighbors(n_neighbors=2, metric=lambda a, b: abs(len(a) - len(b))).fit(words)
    assert lengths.kneighbors(["four"])[1].tolist() == [[1, 4]]


def test_recall_of_a_graph():
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


# -------------------------------------------------------------------------- concurrent searches


class _FixedThreads:
    """Mixin that raises an error if `n_jobs` is set after the construction."""

    def __setattr__(self, name, value):
        if name == "n_jobs" and "n_jobs" in vars(self):
            raise AttributeError("a search must not set n_jobs of an index")
        super().__setattr__(name, value)


class _FixedKDTree(_FixedThreads, KDTree):
    pass


class _FixedBallTree(_FixedThreads, BallTree):
    pass


class _FixedBruteForce(_FixedThreads, BruteForce):
    pass


class _FixedHNSW(_FixedThreads, HNSW):
    pass


def _fixed_search(kind, X, n_jobs):
    """Return a search whose index cannot be changed, and that index."""
    search = NearestNeighbors(n_neighbors=6, radius=1.5, n_jobs=n_jobs)
    if kind is not _FixedHNSW:
        index = kind(X, n_jobs=3)
        return search.fit(index), index
    search.set_params(algorithm="hnsw").fit(X)
    search._index.graph = _FixedHNSW(n_jobs=3, target_recall=0.98).fit(X)
    return search, search._index.graph


@pytest.mark.parametrize("kind", [_FixedKDTree, _FixedBallTree, _FixedBruteForce, _FixedHNSW])
def test_searches_do_not_change_the_index(kind):
    # Enough queries for the core to use several threads.
    X = np.random.default_rng(8).normal(size=(3000, 4))
    search, index = _fixed_search(kind, X, None)
    expected = search.kneighbors(X)
    within = None if kind is _FixedHNSW else search.radius_neighbors(X[:300], sort_results=True)

    def search_with(n_jobs):
        other = clone(search).set_params(n_jobs=n_jobs)
        vars(other).update({k: v for k, v in vars(search).items() if k != "n_jobs"})
        return [
            other.kneighbors(X),
            None if within is None else other.radius_neighbors(X[:300], sort_results=True),
        ]

    with ThreadPoolExecutor(8) as pool:
        for near, radial in pool.map(search_with, [1, 2, 3, 4, None, -1, 1, 2] * 2):
            np.testing.assert_array_equal(near[0], expected[0])
            np.testing.assert_array_equal(near[1], expected[1])
            for i in range(0 if within is None else 300):
                np.testing.assert_array_equal(radial[0][i], within[0][i])
                np.testing.assert_array_equal(radial[1][i], within[1][i])
    assert index.n_jobs == 3


@pytest.mark.parametrize("make", [KDTree, BallTree, BruteForce, lambda X: HNSW().fit(X)])
def test_threads_of_one_search(make):
    X = np.random.default_rng(9).normal(size=(500, 3))
    index = make(X)
    expected = index.query(X, k=4)
    for n_jobs in (1, 3, -1):
        for found, same in zip(index.query(X, k=4, n_jobs=n_jobs), expected, strict=True):
            np.testing.assert_array_equal(found, same)
    assert index.n_jobs is None
    with pytest.raises(ValueError, match="n_jobs must be None"):
        index.query(X, k=4, n_jobs=0)


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree", "brute"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_core_gets_the_threads_of_the_estimator(algorithm, n_jobs):
    X = np.random.default_rng(10).normal(size=(50, 3))
    search = NearestNeighbors(algorithm=algorithm, n_jobs=n_jobs).fit(X)
    used = []
    index = search._index.tree
    if algorithm == "brute":
        original = index._by_products
        index._by_products = lambda Q, k, n: (used.append(n), original(Q, k, n))[1]
    else:
        core = index._tree
        index._tree = _Recorder(core, used)
    search.kneighbors(X)
    if algorithm != "brute":
        search.radius_neighbors(X)
    assert set(used) == {n_jobs}


class _Recorder:
    """Forwards calls to the core's tree and records their last argument, the threads."""

    def __init__(self, core, used):
        self.core, self.used = core, used

    def __getattr__(self, name):
        def call(*args):
            self.used.append(args[-1])
            return getattr(self.core, name)(*args)

        return call
