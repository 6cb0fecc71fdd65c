"""Local regression and classification: edge cases, and properties of random tables."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from reference.slow_local import FORMULAS, wavy_rows
from spinney.neighbors import LocalClassifier, LocalRegression


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_far_from_the_origin(degree):
    X, y, points = wavy_rows(200, 2)
    # Both tables have the same rounded digits at 1e8.
    X, points = (X + 1e8) - 1e8, (points + 1e8) - 1e8
    near = LocalRegression(degree).fit(X, y)
    far = LocalRegression(degree).fit(X + 1e8, y)
    np.testing.assert_allclose(far.predict(points + 1e8), near.predict(points), atol=1e-9)
    np.testing.assert_allclose(
        LocalRegression(degree).fit(X, y + 1e8).predict(points) - 1e8,
        near.predict(points),
        atol=1e-5,
    )


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1e9, 1e120])
def test_units_do_not_change_the_result(degree, scale):
    X, y, points = wavy_rows(200, 2)
    model = LocalRegression(degree).fit(X, y)
    scaled = LocalRegression(degree).fit(X * scale, y)
    np.testing.assert_allclose(scaled.predict(points * scale), model.predict(points), rtol=1e-7)
    np.testing.assert_allclose(
        scaled.gradient(points * scale) * scale, model.gradient(points), rtol=1e-6, atol=1e-8
    )


def test_features_of_different_units():
    # Products of the design would lose the small unit, but the fit is the same.
    X, y, points = wavy_rows(100, 2)
    units = np.array([1.0, 1e-7])
    model = LocalRegression(2, kernel="uniform", n_neighbors=1000).fit(X, y)
    scaled = LocalRegression(2, kernel="uniform", n_neighbors=1000).fit(X * units, y)
    np.testing.assert_allclose(scaled.predict(points * units), model.predict(points), rtol=1e-7)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("width", [{"n_neighbors": 5}, {"bandwidth": 1.0}], ids=str)
def test_identical_rows_predict_their_mean(degree, width):
    model = LocalRegression(degree, **width).fit([[1.0, 2.0]] * 4, [1.0, 2.0, 3.0, 6.0])
    np.testing.assert_allclose(model.predict([[1.0, 2.0], [1.5, 2.0], [9.0, 2.0]])[:2], 3.0)
    if degree:
        np.testing.assert_array_equal(model.gradient([[1.0, 2.0], [1.1, 2.0]]), 0.0)


@pytest.mark.parametrize("degree", [1, 2])
def test_rows_on_a_line(degree):
    # The slope across the line is zero, because the rows do not determine it.
    t = np.linspace(-1, 1, 60)
    X = np.column_stack([t, t])
    model = LocalRegression(degree, n_neighbors=20).fit(X, 4 * t)
    np.testing.assert_allclose(model.predict(X), 4 * t, atol=1e-8)
    np.testing.assert_allclose(model.gradient(X), [[2.0, 2.0]] * 60, atol=1e-6)
    assert model.effective_dof_ > 2
    assert np.isfinite(model.predict([[0.3, -0.3], [5.0, 1.0]])).all()


def test_constant_and_repeated_columns():
    X, y, points = wavy_rows(100, 2)
    plain = LocalRegression(2).fit(X, y).predict(points)

    def widen(X):
        return np.column_stack([X, np.full(len(X), 7.0), X[:, 0]])

    for columns in ([0, 1, 2], [2, 0, 1]):
        model = LocalRegression(2).fit(widen(X)[:, columns], y)
        np.testing.assert_allclose(model.predict(widen(points)[:, columns]), plain, atol=1e-8)
    model = LocalRegression(1, kernel="uniform", n_neighbors=100).fit(widen(X), y)
    plain = LocalRegression(1, kernel="uniform", n_neighbors=100).fit(X, y)
    np.testing.assert_allclose(model.predict(widen(points)), plain.predict(points), atol=1e-8)


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_fewer_rows_than_coefficients(degree, k):
    X, y, points = wavy_rows(50, 3)
    model = LocalRegression(degree, n_neighbors=k).fit(X, y)
    # Every row is fitted exactly.
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6 if k > 1 else 0)
    assert np.isfinite(model.predict(points)).all()
    assert np.isfinite(model.gradient(points)).all()
    assert np.isfinite(model.loo_residuals_).all()


def test_as_many_rows_as_coefficients():
    # The n-th row has enough weight to determine the fit.
    X, _, _ = wavy_rows(50, 2)
    for kernel in FORMULAS:
        model = LocalRegression(1, kernel=kernel, n_neighbors=3).fit(X, X @ [1, 2])
        np.testing.assert_allclose(model.predict(X), X @ [1, 2], atol=1e-7)


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 40))
    y = X[:, 0]
    for degree in (1, 2):
        model = LocalRegression(degree).fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-6)
        assert np.isnan(model.sigma_)
    assert np.isfinite(LocalRegression(alpha=1.0).fit(X, y).sigma_)


def test_predictions_outside_of_all_windows():
    X = np.array([[0.0], [1.0], [2.0]])
    y = np.array([1.0, 5.0, 9.0])
    model = LocalRegression(bandwidth=0.5).fit(X, y)
    assert model.predict([[-7.0], [1.2], [1.6], [70.0]]).tolist() == [1.0, 5.0, 9.0, 9.0]
    np.testing.assert_array_equal(model.gradient([[70.0]]), 0.0)
    model = LocalRegression(bandwidth=0.5, outside="nan").fit(X, y)
    np.testing.assert_array_equal(np.isnan(model.predict([[-7.0], [1.2], [70.0]])), [1, 0, 1])
    assert np.isnan(model.gradient([[70.0]])).all()
    proba = LocalClassifier(bandwidth=0.5).fit(X, list("aba")).predict_proba([[9.0], [1.3]])
    np.testing.assert_array_equal(proba, [[1, 0], [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost = LocalClassifier(bandwidth=0.5, outside="nan").fit(X, list("aba"))
        assert np.isnan(lost.predict_proba([[9.0]])).all()
        assert lost.predict([[9.0]])[0] == "a"


def test_all_tied_rows_are_neighbours():
    X = np.array([[-1.0], [1.0], [1.0], [-1.0], [3.0]])
    y = np.array([0.0, 1.0, 2.0, 5.0, 100.0])
    for k in (1, 2, 3, 4):
        model = LocalRegression(0, kernel="uniform", n_neighbors=k).fit(X, y)
        assert model.predict([[0.0]])[0] == pytest.approx(2.0)
    assert LocalRegression(0, kernel="uniform", n_neighbors=5).fit(X, y).predict([[0.0]])[0] > 20


def test_one_row():
    for kind in (LocalRegression, LocalClassifier):
        model = kind().fit([[1.0]], [2])
        assert model.predict([[1.0], [50.0]]).tolist() == [2, 2]
        assert np.isfinite(model.loo_score_)


@pytest.mark.parametrize("width", [{"n_neighbors": 2}, {"bandwidth": 1.0}], ids=str)
def test_overflowing_distances_raise(width):
    X = np.array([[-1.0], [0.0], [1.5]])
    for scale in (1e150, 1e200, 1e308):
        model = LocalRegression(0, **width).fit(X * scale, [0.0, 1.0, 2.0])
        if scale == 1e150:
            assert np.isfinite(model.predict(X * scale * 1.1)).all()
            continue
        with pytest.raises(ValueError, match="X: expected finite distances"):
            model.predict(X * scale * 1.1)


def test_far_outliers_do_not_change_other_neighbourhoods():
    X, y, points = wavy_rows(60, 2)
    expected = LocalRegression(n_neighbors=20).fit(X, y).predict(points)
    with_outlier = LocalRegression(n_neighbors=20).fit(np.vstack([X, [[1e300, 0.0]]]), [*y, 1e3])
    np.testing.assert_allclose(with_outlier.predict(points), expected, rtol=1e-9)


WIDTHS = st.one_of(
    st.integers(1, 25).map(lambda k: {"n_neighbors": k}),
    st.sampled_from([0.4, 1.0, 1.3, 20.0]).map(lambda h: {"bandwidth": h}),
)


@st.composite
def tables(draw):
    # Multiples of one half, so that ties, duplicates and collinear rows are frequent.
    n_rows, n_features = draw(st.integers(1, 20)), draw(st.integers(1, 3))
    number = st.integers(-3, 3).map(lambda i: i / 2)
    row = st.lists(number, min_size=n_features, max_size=n_features)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    y = draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows))
    points = draw(st.lists(row, min_size=1, max_size=8))
    return np.array(X), np.array(y, dtype=float), np.array(points)


@settings(deadline=None, max_examples=300)
@given(tables(), WIDTHS, st.sampled_from(sorted(FORMULAS)), st.integers(0, 2), st.booleans())
def test_predictions_are_finite_and_equivariant(table, width, kernel, degree, ridge):
    X, y, points = table
    model = LocalRegression(degree, kernel=kernel, alpha=ridge * 0.5, **width).fit(X, y)
    values = model.predict(points)
    assert np.isfinite(values).all()
    assert np.isfinite(model.loo_residuals_).all()
    assert -1e-9 <= model.effective_dof_ <= len(X) + 1e-9
    # Permuted rows, shifted rows, and targets in other units.
    order = np.random.default_rng(0).permutation(len(X))
    tolerance = {"rtol": 1e-6, "atol": 1e-6}
    again = clone(model).fit(X[order], y[order]).predict(points)
    # At isolated points, the prediction depends on the order of tied rows.
    is_isolated = model._fit_locally(points).is_isolated
    np.testing.assert_allclose(again[~is_isolated], values[~is_isolated], **tolerance)
    shifted = clone(model).fit(X + 8, y).predict(points + 8)
    np.testing.assert_allclose(shifted[~is_isolated], values[~is_isolated], **tolerance)
    other = clone(model).fit(X, 3 * y - 2).predict(points)
    np.testing.assert_allclose(other, 3 * values - 2, **tolerance)


@settings(deadline=None, max_examples=150)
@given(tables(), WIDTHS, st.integers(0, 2), st.data())
def test_weights_equal_repeated_rows_in_any_table(table, width, degree, data):
    X, y, points = table
    weights = data.draw(st.lists(st.integers(0, 3), min_size=len(X), max_size=len(X)))
    weights[0] = 1
    weighted = LocalRegression(degree, **width).fit(X, y, weights)
    repeated = LocalRegression(degree, **width).fit(
        np.repeat(X, weights, axis=0), y.repeat(weights)
    )
    is_isolated = weighted._fit_locally(points).is_isolated
    np.testing.assert_allclose(
        weighted.predict(points)[~is_isolated],
        repeated.predict(points)[~is_isolated],
        rtol=1e-6,
        atol=1e-6,
    )


@settings(deadline=None, max_examples=100)
@given(tables(), WIDTHS, st.integers(0, 2), st.sampled_from(["identity", "logit"]))
def test_probabilities_are_positive_and_sum_to_one(table, width, degree, link):
    X, y, points = table
    proba = LocalClassifier(degree, link=link, **width).fit(X, y.astype(int)).predict_proba(points)
    assert (proba >= 0).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
