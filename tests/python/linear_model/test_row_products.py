"""Predictions of linear models are bitwise independent of the other rows."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.linear_model import (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PolynomialRegression,
    Ridge,
    RidgeCV,
)
from spinney.models.linear import LinearModel
from spinney.models.outcomes import Numbers

MODELS = {
    "least squares": (LinearRegression(), "number", ["predict"]),
    "least squares, two targets": (LinearRegression(), "numbers", ["predict"]),
    "nonnegative least squares": (LinearRegression(positive=True), "number", ["predict"]),
    "ridge": (Ridge(), "number", ["predict"]),
    "ridge, two targets": (Ridge(), "numbers", ["predict"]),
    "ridge, chosen penalty": (RidgeCV(), "number", ["predict"]),
    "absolute deviations": (LADRegressor(), "number", ["predict"]),
    "polynomial": (PolynomialRegression(2), "number", ["predict"]),
    "logistic": (LogisticRegression(), "two", ["decision_function", "predict_proba"]),
    "multinomial": (LogisticRegression(), "nine", ["decision_function", "predict_proba"]),
    "perceptron": (Perceptron(max_iter=3), "two", ["decision_function"]),
    "perceptron, nine classes": (Perceptron(max_iter=3), "nine", ["decision_function"]),
    "halfspace": (HalfspaceClassifier(), "two", ["decision_function"]),
}
# Limits of the number of columns for models whose fits are slow with many.
MOST_COLUMNS = {"polynomial": 9, "absolute deviations": 17, "halfspace": 17}
CASES = [
    (name, n_features)
    for name in MODELS
    for n_features in (1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 100, 300)
    if n_features <= MOST_COLUMNS.get(name, 300)
]


def targets(kind, X, rng):
    y = X @ rng.normal(size=X.shape[1]) + rng.normal(size=len(X))
    if kind == "number":
        return y
    if kind == "numbers":
        return np.column_stack([y, 1 - y**2])
    n_classes = 2 if kind == "two" else 9
    return np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)


def layouts(X):
    """Yield the same rows in other layouts."""
    n, d = X.shape
    yield np.asfortranarray(X)
    spread = np.empty((2 * n, 3 * d), dtype=X.dtype)
    spread[::2, ::3] = X
    yield spread[::2, ::3]
    yield X[::-1].copy()[::-1]
    yield X[:, ::-1].copy()[:, ::-1]
    yield X.astype(X.dtype.newbyteorder())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("name", "n_features"), CASES)
def test_one_row_and_many(name, n_features, dtype):
    model, kind, methods = MODELS[name]
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(max(80, 2 * n_features), n_features)).astype(dtype)
    model.fit(X, targets(kind, X, rng))
    queries = rng.normal(size=(150, n_features)).astype(dtype)
    queries[rng.random(queries.shape) < 0.3] = 0.0
    for method in methods:
        predict = getattr(model, method)
        expected = np.concatenate([predict(row[None]) for row in queries])
        many = predict(queries)
        assert many.dtype == expected.dtype
        np.testing.assert_array_equal(many, expected)
        np.testing.assert_array_equal(predict(queries[11:30]), expected[11:30])
        for other in layouts(queries):
            np.testing.assert_array_equal(predict(other), expected)
        if name == "polynomial":
            continue
        rows = sp.csr_array(queries)
        sparse = predict(rows)
        if name == "absolute deviations":  # dense rows are centred first
            np.testing.assert_allclose(sparse, expected, rtol=1e-4, atol=1e-5)
            expected = sparse
        np.testing.assert_array_equal(sparse, expected)
        np.testing.assert_array_equal(predict(rows[3:4]), expected[3:4])
        np.testing.assert_array_equal(predict(rows.tocsc().tocsr()), expected)
        shuffled = rows.copy()
        for i in range(len(queries)):  # the order of stored values does not matter
            part = slice(rows.indptr[i], rows.indptr[i + 1])
            shuffled.indices[part] = rows.indices[part][::-1]
            shuffled.data[part] = rows.data[part][::-1]
        shuffled.has_sorted_indices = False
        np.testing.assert_array_equal(predict(shuffled), expected)


@pytest.mark.parametrize("name", ["least squares", "multinomial"])
def test_threads(name):
    model, kind, methods = MODELS[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 40))
    model.fit(X, targets(kind, X, rng))
    for rows in (X, np.asfortranarray(X), sp.csr_array(X)):
        expected = getattr(model.set_params(n_jobs=1), methods[0])(rows)
        for n_jobs in (2, 3, -1, None):
            found = getattr(model.set_params(n_jobs=n_jobs), methods[0])(rows)
            np.testing.assert_array_equal(found, expected)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 40),
    n_features=st.integers(1, 40),
    n_outputs=st.integers(1, 9),
    dtype=st.sampled_from([np.float64, np.float32]),
    centred=st.booleans(),
)
def test_products_against_exact_sums(seed, n_rows, n_features, n_outputs, dtype, centred):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(dtype)
    coef = rng.normal(size=(n_outputs, n_features))
    intercept = rng.normal(size=n_outputs)
    center = rng.normal(size=n_features) if centred else None
    model = LinearModel(coef, intercept, Numbers(flat=False), center)
    scores = model.raw_scores(X)
    differences = X.astype(np.float64) - (0.0 if center is None else center)
    terms = differences[:, None, :] * coef
    expected = [
        [math.fsum([*line, b]) for line, b in zip(row, intercept, strict=True)] for row in terms
    ]
    size = np.abs(terms).sum(axis=2) + np.abs(intercept)
    assert (np.abs(scores - expected) <= 1e-15 * (n_features + 2) * size).all()
    np.testing.assert_array_equal(model.raw_scores(X.T.copy().T, n_jobs=3), scores)
    sparse = model.raw_scores(sp.csr_array(X))
    if centred:
        np.testing.assert_allclose(sparse, scores, rtol=1e-10, atol=1e-12)
    else:
        np.testing.assert_array_equal(sparse, scores)


def test_types_of_predictions():
    X = np.arange(12.0).reshape(6, 2) ** 2
    y = X @ [0.5, -0.25]
    wide, narrow = LinearRegression().fit(X, y), LinearRegression().fit(X.astype(np.float32), y)
    assert wide.predict(X.astype(np.float32)).dtype == np.float64
    assert wide.predict(X.astype(np.int8)).dtype == np.float64
    assert narrow.predict(X.astype(np.float32)).dtype == np.float32
    assert narrow.predict(X).dtype == np.float64
    # The type of the rows does not change predictions.
    np.testing.assert_array_equal(wide.predict(X.astype(np.float32)), wide.predict(X))
    np.testing.assert_array_equal(wide.predict(X.astype(np.int64)), wide.predict(X))


def test_damaged_sparse_rows_raise():
    model = Ridge().fit(np.eye(3), [1.0, 2.0, 3.0])
    rows = sp.csr_array(np.eye(3))
    rows.indices[1] = 1000
    with pytest.raises(ValueError, match=r"ind(ices|ex)"):
        model.predict(rows)
