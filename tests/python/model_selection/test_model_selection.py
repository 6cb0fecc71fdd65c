"""Bootstrap errors against closed forms; the bias-variance decomposition."""

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


def test_bootstrap_variance_of_the_mean():
    """The bootstrap variance of a mean is the variance of y over n."""
    y = np.random.default_rng(0).normal(size=80)
    X = np.zeros((80, 1))
    result = bootstrap(DummyRegressor(), X, y, n_resamples=4000, X_new=X[:1], random_state=0)
    assert result.predictions.shape == (4000, 1)
    np.testing.assert_allclose(result.predictions.std(), y.std() / np.sqrt(80), rtol=0.05)
    low, high = result.interval(0.9)[0]
    np.testing.assert_allclose(
        [low, high], y.mean() + np.array([-1, 1]) * 1.645 * y.std() / 80**0.5, atol=0.02
    )


def test_bootstrap_errors_by_hand():
    X, y = load_diabetes(return_X_y=True)
    X, y = X[:60], y[:60]
    result = bootstrap(LinearRegression(), X, y, n_resamples=50, random_state=1)
    seeds = np.random.RandomState(1).randint(np.iinfo(np.int32).max, size=50)
    losses = [[] for _ in y]
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(60, size=60)
        model = LinearRegression().fit(X[rows], y[rows])
        for i in set(range(60)) - set(rows.tolist()):
            losses[i].append((model.predict(X[i : i + 1])[0] - y[i]) ** 2)
    out_of_bag = np.mean([np.mean(of_row) for of_row in losses if of_row])
    np.testing.assert_allclose(result.out_of_bag_error, out_of_bag)
    predicted = LinearRegression().fit(X, y).predict(X)
    no_information = np.mean((y[:, np.newaxis] - predicted) ** 2)
    np.testing.assert_allclose(result.no_information_error, no_information)
    apparent = np.mean((predicted - y) ** 2)
    overfitting_rate = (min(out_of_bag, no_information) - apparent) / (no_information - apparent)
    weight = 0.632 / (1 - 0.368 * overfitting_rate)
    np.testing.assert_allclose(
        result.error_632_plus, (1 - weight) * apparent + weight * min(out_of_bag, no_information)
    )
    np.testing.assert_allclose(result.error_632, 0.368 * apparent + 0.632 * out_of_bag)


def test_overfitting_model_has_no_information():
    """Efron's example (random labels, 1-nearest-neighbour): .632 is too optimistic."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), np.arange(400) % 2
    result = bootstrap(KNeighborsClassifier(1), X, y, n_resamples=60, random_state=0)
    assert result.apparent_error == 0
    assert result.no_information_error == 0.5
    assert result.error_632 < 0.4
    assert result.error_632_plus > 0.42
    assert result.overfitting > 0.8


def test_bootstrap_of_parameters_and_frames():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    result = bootstrap(
        LinearRegression(), X, y, n_resamples=30, parameters="coef_", random_state=0, n_jobs=2
    )
    assert result.parameters.shape == (30, 10)
    with_one_thread = bootstrap(
        LinearRegression(),
        X,
        y,
        n_resamples=30,
        parameters=lambda m: m.coef_,
        random_state=0,
        n_jobs=1,
    )
    np.testing.assert_array_equal(result.parameters, with_one_thread.parameters)
    with pytest.raises(ValueError, match="level: expected"):
        result.interval(2)
    with pytest.raises(ValueError, match="of: expected"):
        result.interval(of="all")


def test_invalid_input_raises():
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


def test_squared_error_is_noise_plus_bias_plus_variance():
    result = bias_variance(
        DecisionTreeRegressor(), waves, GRID, NOISY, truth=TRUTH, n_repeats=300, random_state=0
    )
    np.testing.assert_allclose(result.noise, np.mean((NOISY - TRUTH) ** 2))
    # The noise of these rows and the mean prediction are slightly correlated by chance.
    cross = 2 * np.mean((result.main - TRUTH) * (TRUTH - NOISY))
    np.testing.assert_allclose(result.error, result.noise + result.bias + result.variance + cross)
    without_truth = bias_variance(DecisionTreeRegressor(), waves, GRID, NOISY, random_state=0)
    assert without_truth.noise is None
    np.testing.assert_allclose(without_truth.error, without_truth.bias + without_truth.variance)


def test_bias_and_variance_of_trees_stumps_and_bagging():
    options = {"truth": TRUTH, "n_repeats": 60, "random_state": 0}
    tree = bias_variance(DecisionTreeRegressor(), waves, GRID, NOISY, **options)
    stump = bias_variance(DecisionTreeRegressor(max_depth=1), waves, GRID, NOISY, **options)
    bagged = bias_variance(BaggingRegressor(n_estimators=30), waves, GRID, NOISY, **options)
    assert stump.bias > 3 * tree.bias
    assert stump.variance < tree.variance
    assert bagged.variance < 0.7 * tree.variance
    assert bagged.bias < 2 * tree.bias + 0.01


def test_constant_model_has_no_variance():
    result = bias_variance(
        DummyRegressor(strategy="constant", constant=1.0), waves, GRID, NOISY, truth=TRUTH
    )
    assert result.variance == 0
    np.testing.assert_allclose(result.bias, np.mean((1 - TRUTH) ** 2))


def test_classification_error_is_bias_plus_net_variance():
    X, y = load_iris(return_X_y=True)
    frame = pd.DataFrame(X)
    result = bias_variance(
        DecisionTreeClassifier(max_depth=2),
        (frame, y),
        frame,
        y,
        n_repeats=40,
        train_size=30,
        random_state=0,
    )
    np.testing.assert_allclose(result.error, result.bias + result.net_variance)
    assert result.variance >= abs(result.net_variance) - 1e-12
    assert result.predictions.shape == (40, 150)
    with_one_thread = bias_variance(
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
    np.testing.assert_array_equal(with_one_thread.predictions, result.predictions)
