"""Whitening: variance of the result and inverse transformation."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from spinney.preprocessing import Whitener

WHITE = ("cholesky", "pca", "zca")
METHODS = (*WHITE, "standard", "center")


def correlated(n_rows=500, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features))


def variance(X, weights=None):
    return np.cov(X.T, bias=True, aweights=weights).reshape(X.shape[1], X.shape[1])


@pytest.mark.parametrize("method", WHITE)
@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_variance_of_the_result_is_the_identity(method, offset):
    X = correlated() + offset
    white = Whitener(method).fit_transform(X)
    np.testing.assert_allclose(variance(white), np.eye(4), atol=1e-7 if offset else 1e-12)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-7)


def test_cholesky_by_hand():
    X = correlated()
    model = Whitener().fit(X)
    centred = X - X.mean(axis=0)
    covariance = X.T @ X / 500 - np.outer(X.mean(axis=0), X.mean(axis=0))
    np.testing.assert_allclose(model.covariance_, covariance, atol=1e-10)
    factor = np.linalg.cholesky(covariance)
    np.testing.assert_allclose(model.unwhitening_, factor, atol=1e-10)
    np.testing.assert_allclose(model.transform(X), np.linalg.solve(factor, centred.T).T, atol=1e-9)


def test_pca_and_standard_equal_scikit_learn():
    X = correlated()
    ours, theirs = Whitener("pca").fit_transform(X), PCA(whiten=True).fit_transform(X)
    # scikit-learn divides by n − 1 and has other signs.
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs) * np.sqrt(500 / 499), rtol=1e-8)
    np.testing.assert_allclose(
        Whitener("standard").fit_transform(X), StandardScaler().fit_transform(X), atol=1e-12
    )
    np.testing.assert_allclose(Whitener("center").fit_transform(X), X - X.mean(axis=0), atol=1e-12)


def test_zca_is_symmetric():
    model = Whitener("zca").fit(correlated())
    np.testing.assert_allclose(model.whitening_, model.whitening_.T, atol=1e-12)
    np.testing.assert_allclose(model.unwhitening_ @ model.unwhitening_, model.covariance_)
    assert (np.linalg.eigvalsh(model.whitening_) > 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_inverse_transform_restores_the_rows(method):
    X = correlated() * [1e-2, 1.0, 1e2, 1.0] + [0.0, 5.0, 1e6, -1.0]
    model = Whitener(method).fit(X)
    restored = model.inverse_transform(model.transform(X))
    np.testing.assert_allclose(restored, X, rtol=1e-9, atol=1e-9)


def test_rows_in_a_subspace_have_a_lower_rank():
    rng = np.random.default_rng(0)
    inner = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 6)) + 10
    X = np.column_stack([inner[:, :2], inner[:, 0], np.full(300, 7.7), inner[:, 2:]])
    expected = {"cholesky": (3, ["x0", "x1", "x4"]), "pca": (3, ["pca0", "pca1", "pca2"])}
    for method, (n_outputs, names) in expected.items():
        model = Whitener(method).fit(X)
        white = model.transform(X)
        assert model.rank_ == n_outputs
        np.testing.assert_allclose(variance(white), np.eye(n_outputs), atol=1e-9)
        np.testing.assert_allclose(model.inverse_transform(white), X, atol=1e-8)
        assert model.get_feature_names_out().tolist() == names
    zca = Whitener("zca").fit(X)
    white = zca.transform(X)
    projection = variance(white)
    np.testing.assert_allclose(projection @ projection, projection, atol=1e-9)
    assert np.trace(projection) == pytest.approx(3)
    np.testing.assert_allclose(zca.inverse_transform(white), X, atol=1e-8)
    # A row outside the subspace is projected onto it.
    outside = X[:1] + np.eye(8)[3]
    np.testing.assert_allclose(zca.inverse_transform(zca.transform(outside)), X[:1], atol=1e-8)
    assert (Whitener("standard").fit(X).transform(X)[:, 3] == 0).all()


def test_constant_rows_have_rank_zero():
    for X in (np.ones((5, 3)), np.full((4, 2), 1e17), np.array([[1.0, 2.0]])):
        for method in METHODS:
            model = Whitener(method).fit(X)
            assert model.rank_ == 0
            np.testing.assert_array_equal(model.inverse_transform(model.transform(X)), X)


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 12), st.integers(1, 6), st.sampled_from(METHODS), st.integers(0, 2**31))
def test_small_random_tables_are_whitened(n_rows, n_features, method, seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (n_rows, n_features)) / 2
    model = Whitener(method).fit(X)
    white = model.transform(X)
    np.testing.assert_allclose(model.inverse_transform(white), X, atol=1e-8)
    centred = X - X.mean(axis=0)
    if method in WHITE:
        assert model.rank_ == np.linalg.matrix_rank(centred, tol=1e-9)
        result_covariance = white.T @ white / n_rows
        np.testing.assert_allclose(
            result_covariance @ result_covariance, result_covariance, atol=1e-8
        )
        assert np.trace(result_covariance) == pytest.approx(model.rank_, abs=1e-8)
    assert len(model.get_feature_names_out()) == white.shape[1]


@pytest.mark.parametrize("method", METHODS)
def test_integer_weights_equal_repeated_rows(method):
    X = correlated(60)
    weights = np.random.default_rng(0).integers(0, 4, 60)
    weighted = Whitener(method).fit(X, sample_weight=weights)
    repeated = Whitener(method).fit(X.repeat(weights, axis=0))
    np.testing.assert_allclose(weighted.transform(X), repeated.transform(X), atol=1e-9)
    if method in WHITE:
        white = weighted.transform(X)
        np.testing.assert_allclose(variance(white, weights), np.eye(4), atol=1e-9)


def test_names_of_outputs():
    X = correlated(50, 2)
    for frame in (pd.DataFrame, pl.DataFrame):
        model = Whitener().fit(frame({"a": X[:, 0], "b": X[:, 1]}))
        assert model.get_feature_names_out().tolist() == ["a", "b"]
    shown = Whitener("pca").set_output(transform="pandas").fit_transform(X)
    assert shown.columns.tolist() == ["pca0", "pca1"]


def test_invalid_input_raises():
    X = correlated(10)
    for parameters in ({"method": "white"}, {"method": 1}, {"tol": -1}, {"tol": 1}, {"tol": None}):
        (name,) = parameters
        with pytest.raises(ValueError, match=f"{name}: expected"):
            Whitener(**parameters).fit(X)
    with pytest.raises(ValueError, match="X: expected numbers whose squares are finite"):
        Whitener().fit(X * 1e200)
    with pytest.raises(ValueError, match="NaN"):
        Whitener().fit([[np.nan]])
    with pytest.raises(ValueError, match="Sample weights"):
        Whitener().fit(X, sample_weight=np.zeros(10))
    with pytest.raises(ValueError, match="X: expected rows of 4 whitened numbers"):
        Whitener().fit(X).inverse_transform(X[:, :2])
