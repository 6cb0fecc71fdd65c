"""Several quantiles at once, and gradient-based sampling of rows."""

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss

from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor


def heteroscedastic_table(n, seed=0):
    """Create a table with noise that grows with the first column."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 3))
    return X, X[:, 1] + (0.2 + X[:, 0]) * rng.normal(size=n)


LEVELS = [0.9, 0.1, 0.5, 0.45]


@pytest.mark.parametrize("n_estimators", [30, "auto"])
def test_quantiles_never_cross_and_are_calibrated(n_estimators):
    X, y = heteroscedastic_table(4000)
    model = GradientBoostingRegressor(
        loss="quantile", alpha=LEVELS, n_estimators=n_estimators, max_leaf_nodes=8, random_state=0
    ).fit(X[:2500], y[:2500])
    predicted = model.predict(X[2500:])
    assert predicted.shape == (1500, 4)
    ascending = predicted[:, np.argsort(LEVELS)]
    assert (np.diff(ascending, axis=1) >= 0).all()
    for k, level in enumerate(LEVELS):
        covered = np.mean(y[2500:] <= predicted[:, k])
        assert abs(covered - level) < 0.05
    assert 0.1 < model.score(X[2500:], y[2500:]) < 1


def test_several_quantiles_equal_single_quantiles():
    X, y = heteroscedastic_table(2000)
    common = {"loss": "quantile", "n_estimators": 50, "max_leaf_nodes": 8}
    together = GradientBoostingRegressor(alpha=[0.1, 0.8], **common).fit(X[:1500], y[:1500])
    predicted = together.predict(X[1500:])
    for k, level in enumerate([0.1, 0.8]):
        alone = GradientBoostingRegressor(alpha=level, **common).fit(X[:1500], y[:1500])
        np.testing.assert_allclose(together._raw(X)[:, k], alone.predict(X), rtol=1e-12)
        loss_together = mean_pinball_loss(y[1500:], predicted[:, k], alpha=level)
        loss_alone = mean_pinball_loss(y[1500:], alone.predict(X[1500:]), alpha=level)
        assert loss_together <= loss_alone * 1.01
    stages = list(together.staged_predict(X[:20]))
    assert np.array_equal(stages[-1], together.predict(X[:20]))


def test_invalid_levels_raise():
    X, y = heteroscedastic_table(60)
    with pytest.raises(ValueError, match="alpha: expected levels between 0 and 1"):
        GradientBoostingRegressor(loss="quantile", alpha=[0.1, 1.5], n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="alpha: expected one number"):
        GradientBoostingRegressor(loss="huber", alpha=[0.1, 0.5], n_estimators=2).fit(X, y)
    model = GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.5], n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="scorer: expected one number"):
        model.scorer()


def test_scorer_of_probabilities_equals_predict():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    p = 1 / (1 + np.exp(-X[:, 0]))
    model = GradientBoostingRegressor(loss="cross_entropy", n_estimators=30).fit(X, p)
    scorer = model.scorer()
    np.testing.assert_allclose(
        [scorer(row)[0] for row in X[:50]], model.predict(X[:50]), rtol=1e-12
    )


# ------------------------------------------------------------------------------------ gradients


def imbalanced_table(n, seed=0):
    """Create a table in which most rows are far from the boundary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    odds = 6 * X[:, 0] + 3 * X[:, 1] * X[:, 2] - 5
    return X, (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int)


def log_loss(model, X, y):
    p = model.predict_proba(X)[np.arange(len(y)), y]
    return -np.log(np.clip(p, 1e-12, 1)).mean()


def test_gradient_sampling_beats_uniform_sampling():
    X, y = imbalanced_table(12_000)
    losses = {}
    for sampling in ("uniform", "gradient"):
        losses[sampling] = np.mean(
            [
                log_loss(
                    GradientBoostingClassifier(
                        n_estimators=60, subsample=0.1, sampling=sampling, random_state=seed
                    ).fit(X[:6000], y[:6000]),
                    X[6000:],
                    y[6000:],
                )
                for seed in range(3)
            ]
        )
    on_all_rows = GradientBoostingClassifier(n_estimators=60).fit(X[:6000], y[:6000])
    assert losses["gradient"] < losses["uniform"] * 0.97
    assert losses["gradient"] < log_loss(on_all_rows, X[6000:], y[6000:]) * 1.15


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "poisson"])
def test_gradient_sampling_is_unbiased(loss):
    # A stump of one round: its mean over many samples is the stump of all rows.
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1.0]], 200, axis=0)
    y = np.abs(X[:, 0] * 2 + rng.normal(size=400))
    common = {
        "loss": loss, "n_estimators": 1, "learning_rate": 1.0, "l2_regularization": 0,
        "min_samples_leaf": 1, "max_leaf_nodes": 2,
    }  # fmt: skip
    of_all_rows = GradientBoostingRegressor(**common).fit(X, y).predict([[0.0], [1.0]])
    of_samples = [
        GradientBoostingRegressor(subsample=0.3, sampling="gradient", random_state=seed, **common)
        .fit(X, y)
        .predict([[0.0], [1.0]])
        for seed in range(200)
    ]
    error = np.std(of_samples, axis=0) / np.sqrt(200)
    tolerance = 0.05 if loss == "absolute_error" else 0.03  # ratios and medians are a little biased
    assert (np.abs(np.mean(of_samples, axis=0) - of_all_rows) < 4 * error + tolerance).all()


def test_gradient_sampling_with_weights_classes_and_threads():
    X, y = imbalanced_table(1500)
    classes = y + (X[:, 3] > 1)
    weights = np.random.default_rng(0).uniform(0.5, 2, 1500)
    probabilities = [
        GradientBoostingClassifier(
            n_estimators=20, subsample=0.4, sampling="gradient", random_state=1, n_jobs=n
        )
        .fit(X, classes, weights)
        .predict_proba(X)
        for n in (1, 2, 3)
    ]
    assert np.array_equal(probabilities[0], probabilities[1])
    assert np.array_equal(probabilities[0], probabilities[2])
    assert np.mean(probabilities[0].argmax(axis=1) == classes) > 0.9


def test_gradient_sampling_without_gradients():
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = GradientBoostingRegressor(n_estimators=3, subsample=0.2, sampling="gradient")
    assert np.array_equal(model.fit(X, np.full(100, 2.0)).predict(X), np.full(100, 2.0))
