"""The bootstrap against closed forms and Efron's examples; bias and variance add up."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier

from spinney.ensemble import BaggingRegressor
from spinney.model_selection import bias_variance, bootstrap
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

# ------------------------------------------------------------------------------- bootstrap


def test_the_mean_varies_as_it_should():
    """Of a mean the bootstrap knows the answer: its variance is that of y over n."""
    y = np.random.default_rng(0).normal(size=80)
    X = np.zeros((80, 1))
    told = bootstrap(DummyRegressor(), X, y, n_resamples=4000, X_new=X[:1], random_state=0)
    assert told.predictions.shape == (4000, 1)
    np.testing.assert_allclose(told.predictions.std(), y.std() / np.sqrt(80), rtol=0.05)
    low, high = told.interval(0.9)[0]
    np.testing.assert_allclose(
        [low, high], y.mean() + np.array([-1, 1]) * 1.645 * y.std() / 80**0.5, atol=0.02
    )


def test_the_errors_by_hand():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60], y[:60]
    told = bootstrap(LinearRegression(), X, y, n_resamples=50, random_state=1)
    seeds = np.random.RandomState(1).randint(np.iinfo(np.int32).max, size=50)
    losses = [[] for _ in y]
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(60, size=60)
        model = LinearRegression().fit(X[rows], y[rows])
        for i in set(range(60)) - set(rows.tolist()):
            losses[i].append((model.predict(X[i : i + 1])[0] - y[i]) ** 2)
    expected = np.mean([np.mean(of_row) for of_row in losses if of_row])
    np.testing.assert_allclose(told.out_of_bag_error, expected)
    predicted = LinearRegression().fit(X, y).predict(X)
    pairs = np.mean((y[:, np.newaxis] - predicted) ** 2)
    np.testing.assert_allclose(told.no_information_error, pairs)
    apparent = np.mean((predicted - y) ** 2)
    R = (min(expected, pairs) - apparent) / (pairs - apparent)
    w = 0.632 / (1 - 0.368 * R)
    np.testing.assert_allclose(told.error_632_plus, (1 - w) * apparent + w * min(expected, pairs))
    np.testing.assert_allclose(told.error_632, 0.368 * apparent + 0.632 * expected)


def test_a_model_that_learns_by_heart_has_no_information():
    """Efron's example: labels by chance and the nearest neighbour; .632 is far too good."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), np.arange(400) % 2
    told = bootstrap(KNeighborsClassifier(1), X, y, n_resamples=60, random_state=0)
    assert told.apparent_error == 0
    assert told.no_information_error == 0.5
    assert told.error_632 < 0.4
    assert told.error_632_plus > 0.42
    assert told.overfitting > 0.8


def test_parameters_and_frames():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    told = bootstrap(
        LinearRegression(), X, y, n_resamples=30, parameters="coef_", random_state=0, n_jobs=2
    )
    assert told.parameters.shape == (30, 10)
    alone = bootstrap(
        LinearRegression(),
        X,
        y,
        n_resamples=30,
        parameters=lambda m: m.coef_,
        random_state=0,
        n_jobs=1,
    )
    np.testing.assert_array_equal(told.parameters, alone.parameters)
    with pytest.raises(ValueError, match="level: expected"):
        told.interval(2)
    with pytest.raises(ValueError, match="of: expected"):
        told.interval(of="all")


def test_bad_input_is_named():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="n_resamples"):
        bootstrap(DecisionTreeClassifier(), X, y, n_resamples=1)
    with pytest.raises(ValueError, match="at least 2 rows"):
        bootstrap(DecisionTreeClassifier(), X[:1], y[:1])
    with pytest.raises(ValueError, match="n_repeats"):
        bias_variance(DecisionTreeClassifier(), (X, y), X, y, n_repeats=1)
    with pytest.raises(ValueError, match="data: expected"):
        bias_variance(DecisionTreeClassifier(), X, X, y)
    with pytest.raises(ValueError, match="train_size"):
        bias_variance(DecisionTreeClassifier(), (X, y), X, y, train_size=0)
    with pytest.raises(ValueError, match="y_test: expected shape"):
        bias_variance(DecisionTreeClassifier(), (X, y), X, y[:5], n_repeats=2)


# ------------------------------------------------------------------------ bias and variance


def waves(rng, n=60):
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + rng.normal(scale=0.3, size=n)


GRID = np.linspace(-3, 3, 40)[:, np.newaxis]
TRUTH = np.sin(GRID[:, 0])
NOISY = TRUTH + np.random.default_rng(5).normal(scale=0.3, size=40)


def test_the_parts_of_squared_error_add_up():
    told = bias_variance(
        DecisionTreeRegressor(), waves, GRID, NOISY, truth=TRUTH, n_repeats=300, random_state=0
    )
    np.testing.assert_allclose(told.noise, np.mean((NOISY - TRUTH) ** 2))
    # Noise of these rows and the mean prediction happen to be correlated a little.
    cross = 2 * np.mean((told.main - TRUTH) * (TRUTH - NOISY))
    np.testing.assert_allclose(told.error, told.noise + told.bias + told.variance + cross)
    unknown = bias_variance(DecisionTreeRegressor(), waves, GRID, NOISY, random_state=0)
    assert unknown.noise is None
    np.testing.assert_allclose(unknown.error, unknown.bias + unknown.variance)


def test_what_the_lecture_shows():
    given = {"truth": TRUTH, "n_repeats": 60, "random_state": 0}
    tree = bias_variance(DecisionTreeRegressor(), waves, GRID, NOISY, **given)
    stump = bias_variance(DecisionTreeRegressor(max_depth=1), waves, GRID, NOISY, **given)
    bagged = bias_variance(BaggingRegressor(n_estimators=30), waves, GRID, NOISY, **given)
    assert stump.bias > 3 * tree.bias
    assert stump.variance < tree.variance
    assert bagged.variance < 0.7 * tree.variance
    assert bagged.bias < 2 * tree.bias + 0.01


def test_a_constant_has_no_variance():
    told = bias_variance(
        DummyRegressor(strategy="constant", constant=1.0), waves, GRID, NOISY, truth=TRUTH
    )
    assert told.variance == 0
    np.testing.assert_allclose(told.bias, np.mean((1 - TRUTH) ** 2))


def test_the_parts_of_mistakes_add_up():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X)
    told = bias_variance(
        DecisionTreeClassifier(max_depth=2),
        (frame, y),
        frame,
        y,
        n_repeats=40,
        train_size=30,
        random_state=0,
    )
    np.testing.assert_allclose(told.error, told.bias + told.net_variance)
    assert told.variance >= abs(told.net_variance) - 1e-12
    assert told.predictions.shape == (40, 150)
    same = bias_variance(
        DecisionTreeClassifier(max_depth=2),
        (frame, y),
        frame,
        y,
        n_repeats=40,
        train_size=30,
        random_state=0,
        n_jobs=1,
        callbacks=lambda done, total: None,
    )
    np.testing.assert_array_equal(same.predictions, told.predictions)
