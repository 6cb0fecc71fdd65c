"""Classifiers and regressors of neighbours: predictions, pipelines and invalid input."""

import numpy as np
import pytest
from sklearn import neighbors as theirs
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinney.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    KNeighborsTransformer,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
    RadiusNeighborsTransformer,
)
from support.nearest_rows import ALGORITHMS, PREDICTORS, random_rows


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("several", [False, True])
def test_predictions_equal_scikit_learn(weights, several):
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


@pytest.mark.parametrize("kind", PREDICTORS)
def test_invalid_input_raises(kind):
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
def test_overflowing_distances_raise(kind, algorithm, options):
    X, queries = random_rows(17)
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
def test_huge_values_of_metrics_without_powers(metric):
    X, queries = random_rows(17)
    y = np.arange(len(X)) % 3
    for kind in PREDICTORS:
        model = kind(4, metric=metric)
        expected = model.fit(X, y).predict(queries)
        np.testing.assert_allclose(model.fit(X * 1e300, y).predict(queries * 1e300), expected)
