"""Scores of fitted neighbour models equal the predictions of the estimators."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from spinney.models.form import NotExpressible
from spinney.models.neighbor_rows import NeighborModel
from spinney.models.outcomes import Numbers, SeveralShares, Shares
from spinney.neighbors import KDTree, KNeighborsClassifier, KNeighborsRegressor

ALGORITHMS = ["brute", "kd_tree", "ball_tree"]


def make_rows(n_rows, *, has_ties):
    """Return rows; those with ties are on a grid of few points and occur several times."""
    rng = np.random.default_rng(n_rows)
    if has_ties:
        return rng.integers(0, 4, size=(n_rows, 3)).astype(np.float64)
    return rng.normal(size=(n_rows, 3))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("weights", [None, "uniform", "distance"])
@pytest.mark.parametrize("has_ties", [False, True])
def test_scores_of_regressors(algorithm, weights, has_ties):
    X, Q = make_rows(150, has_ties=has_ties), make_rows(60, has_ties=has_ties)
    y = np.random.default_rng(0).normal(size=(150, 2))
    for targets in (y, y[:, 0], y[:, :1]):
        model = KNeighborsRegressor(6, weights=weights, algorithm=algorithm).fit(X, targets)
        fitted = model.fitted_model()
        expected = model.predict(Q)
        assert fitted.outcome == Numbers(flat=targets.ndim == 1)
        np.testing.assert_allclose(
            fitted.raw_scores(Q), expected.reshape(len(Q), -1), rtol=1e-12, atol=1e-14
        )


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("weights", [None, "uniform", "distance"])
@pytest.mark.parametrize("has_ties", [False, True])
def test_scores_of_classifiers(algorithm, weights, has_ties):
    X, Q = make_rows(150, has_ties=has_ties), make_rows(60, has_ties=has_ties)
    names = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(0, 3, 150)]
    model = KNeighborsClassifier(6, weights=weights, algorithm=algorithm).fit(X, names)
    fitted = model.fitted_model()
    assert isinstance(fitted.outcome, Shares)
    assert fitted.outcome.classes is model.classes_
    np.testing.assert_allclose(fitted.raw_scores(Q), model.predict_proba(Q), rtol=1e-12, atol=1e-14)

    columns = np.column_stack([names, np.where(X[:, 0] > 0.5, "yes", "no")])
    several = KNeighborsClassifier(6, weights=weights, algorithm=algorithm).fit(X, columns)
    fitted = several.fitted_model()
    assert isinstance(fitted.outcome, SeveralShares)
    assert fitted.values.shape == (150, 5)
    shares = np.concatenate(several.predict_proba(Q), axis=1)
    np.testing.assert_allclose(fitted.raw_scores(Q), shares, rtol=1e-12, atol=1e-14)


def test_ties_go_to_the_first_rows():
    model = NeighborModel(
        rows=np.array([[1.0], [-1.0], [1.0], [0.0]]),
        values=np.array([[1.0], [2.0], [4.0], [8.0]]),
        k=2,
        by_distance=False,
        outcome=Numbers(flat=True),
    )
    assert model.raw_scores([[0.0], [1.0]]).ravel().tolist() == [4.5, 2.5]


def test_blocks_do_not_change_the_scores(monkeypatch):
    X = make_rows(100, has_ties=True)
    fitted = KNeighborsRegressor(5, weights="distance").fit(X, X[:, 1]).fitted_model()
    expected = fitted.raw_scores(X)
    monkeypatch.setattr("spinney.models.neighbor_rows._BLOCK_SIZE", 700)
    np.testing.assert_array_equal(fitted.raw_scores(X), expected)
    assert fitted.raw_scores(np.empty((0, 3))).shape == (0, 1)


def test_sparse_rows_and_trees():
    X = make_rows(80, has_ties=True)
    y = np.arange(80.0)
    for rows in (sp.csr_array(X), KDTree(X)):
        model = KNeighborsRegressor(4, metric="euclidean").fit(rows, y)
        fitted = model.fitted_model()
        np.testing.assert_array_equal(fitted.rows, X)
        np.testing.assert_allclose(fitted.raw_scores(X), model.predict(X)[:, None])


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"metric": "manhattan"}, "its metric is 'manhattan', expected 'euclidean'"),
        ({"weights": "tricube"}, "weights='tricube', expected 'uniform' or 'distance'"),
        ({"weights": np.ones_like}, "expected 'uniform' or 'distance'"),
        ({"algorithm": "hnsw"}, "algorithm='hnsw' is approximate"),
        ({"n_neighbors": 61}, "n_neighbors=61 is more than the 60 training rows"),
    ],
    ids=["metric", "kernel", "function", "approximate", "too many neighbours"],
)
@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_reasons_for_missing_values_are_shown(kind, parameters, reason):
    X = make_rows(60, has_ties=False)
    model = kind(**parameters).fit(X, np.arange(60) % 2)
    with pytest.raises(NotExpressible, match=reason):
        model.fitted_model()


@pytest.mark.parametrize("kind", [KNeighborsClassifier, KNeighborsRegressor])
def test_value_of_an_unfitted_model(kind):
    with pytest.raises(NotFittedError):
        kind().fitted_model()
