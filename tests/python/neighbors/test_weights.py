"""Weights of neighbours: kernels, distances and functions."""

import math

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from spinney.neighbors import (
    KNeighborsClassifier,
    KNeighborsRegressor,
    NearestNeighbors,
    RadiusNeighborsRegressor,
)
from spinney.neighbors._weights import KERNELS
from support.nearest_rows import random_rows

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
    X, queries = random_rows(7)
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
    X, queries = random_rows(8)
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
