"""Boosting for several outputs: trees whose leaves have one value per output."""

import numpy as np
import pandas as pd
import pytest
from sklearn.multioutput import MultiOutputRegressor

from spinney.ensemble import GradientBoostingRegressor


def outputs(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    common = np.sin(2 * X[:, 0]) + X[:, 1]
    Y = np.c_[common, -common + X[:, 2], 2 * common] + 0.3 * rng.normal(size=(n, 3))
    return X, Y


def test_tree_is_optimal_for_all_outputs():
    # One split by hand: its gain is the sum over the outputs.
    rng = np.random.default_rng(1)
    X, Y = np.round(rng.normal(size=(50, 3)), 1), rng.normal(size=(50, 2))
    Y[:, 1] += 2 * (X[:, 1] > 0)
    model = GradientBoostingRegressor(
        n_estimators=1, max_leaf_nodes=2, min_samples_leaf=3, learning_rate=1, l2_regularization=0.7
    ).fit(X, Y)
    G = Y.mean(axis=0) - Y
    best, split = 0.0, None
    for f in range(3):
        for value in np.unique(X[:, f])[:-1]:
            left = X[:, f] <= value
            if min(left.sum(), (~left).sum()) < 3:
                continue
            gain = sum((G[s].sum(axis=0) ** 2 / (s.sum() + 0.7)).sum() for s in (left, ~left))
            if gain > best:
                best, split = gain, left
    expected = np.empty_like(Y)
    for side in (split, ~split):
        expected[side] = Y.mean(axis=0) - G[side].sum(axis=0) / (side.sum() + 0.7)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-6)


def test_equal_outputs_equal_one_output():
    X, Y = outputs()
    Y = np.repeat(Y[:, :1], 3, axis=1)
    settings = {"n_estimators": 20, "max_leaf_nodes": 8}
    predicted = GradientBoostingRegressor(**settings).fit(X, Y).predict(X)
    single_predicted = GradientBoostingRegressor(**settings).fit(X, Y[:, 0]).predict(X)
    np.testing.assert_allclose(
        predicted, np.repeat(single_predicted[:, None], 3, axis=1), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("n_estimators", [150, "auto"])
def test_several_outputs_share_trees(n_estimators):
    X, Y = outputs(1500)
    model = GradientBoostingRegressor(n_estimators=n_estimators, random_state=0)
    together = model.fit(X[:1000], Y[:1000])
    assert together.predict(X).shape == Y.shape
    if n_estimators == 150:
        apart = MultiOutputRegressor(GradientBoostingRegressor(n_estimators=150))
        apart.fit(X[:1000], Y[:1000])
        assert len(together.fitted_model().store) == 150
        assert together.score(X[1000:], Y[1000:]) > apart.score(X[1000:], Y[1000:]) - 0.02
    assert together.score(X[1000:], Y[1000:]) > 0.8
    stages = list(together.staged_predict(X[:9]))
    np.testing.assert_allclose(stages[-1], together.predict(X[:9]), rtol=1e-12)
    scorer = together.scorer()
    np.testing.assert_allclose(scorer(X[0]), together.predict(X[:1])[0], rtol=1e-12)


def test_training_and_validation_losses_match_the_predictions():
    X, Y = outputs()
    model = GradientBoostingRegressor(n_estimators=30, n_iter_no_change=100)
    model.fit(X[:400], Y[:400], eval_set=(X[400:], Y[400:]))
    n = model.n_estimators_
    half_losses = [
        np.mean((model.predict(rows[0]) - rows[1]) ** 2) / 2
        for rows in ((X[:400], Y[:400]), (X[400:], Y[400:]))
    ]
    np.testing.assert_allclose(model.train_score_[n - 1], half_losses[0], rtol=1e-6)
    np.testing.assert_allclose(model.validation_score_[n - 1], half_losses[1], rtol=1e-6)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "cross_entropy"])
def test_other_losses_with_several_outputs(loss):
    X, Y = outputs()
    Y = np.exp(Y / 3)
    if loss == "cross_entropy":
        Y = Y / (1 + Y)
    model = GradientBoostingRegressor(loss=loss, n_estimators=60).fit(X, Y)
    assert model.score(X, Y) > 0.85
    assert (model.predict(X) > 0).all()


def test_several_outputs_with_categories_missing_values_weights_and_threads():
    X, Y = outputs()
    frame = pd.DataFrame(np.round(X, 1), columns=list("abcd"))  # one bin per value
    frame.loc[::7, "a"] = np.nan
    shop = np.random.default_rng(0).integers(0, 8, len(frame))
    frame["shop"] = pd.Categorical(list("pqrstuvw"))[shop]
    Y = Y + np.outer(np.isin(shop, [1, 4]) * 3.0, [1, -1, 0])  # cancels in the sum of the outputs
    weights = np.random.default_rng(1).integers(1, 4, len(Y)).astype(float)
    predicted = [
        GradientBoostingRegressor(n_estimators=60, n_jobs=n).fit(frame, Y, weights).predict(frame)
        for n in (1, 2)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    repeats = np.repeat(np.arange(len(Y)), weights.astype(int))
    repeated = GradientBoostingRegressor(n_estimators=60).fit(frame.iloc[repeats], Y[repeats])
    np.testing.assert_allclose(repeated.predict(frame), predicted[0], rtol=1e-4, atol=1e-4)
    assert np.corrcoef(predicted[0][:, 0], Y[:, 0])[0, 1] > 0.95


def test_warm_start_equals_one_fit():
    X, Y = outputs()
    one_fit = GradientBoostingRegressor(n_estimators=20).fit(X, Y)
    continued = GradientBoostingRegressor(n_estimators=8, warm_start=True).fit(X, Y)
    continued.set_params(n_estimators=20).fit(X, Y)
    assert np.array_equal(one_fit.predict(X), continued.predict(X))


def test_options_for_one_output_raise_with_several():
    X, Y = outputs(100)
    for options, message in (
        ({"loss": "absolute_error"}, "expected one output, got 3"),
        ({"monotonic_cst": [1, 0, 0, 0]}, "monotonic_cst: expected one output"),
        ({"growth": "oblivious"}, "expected one output, got several"),
        ({"max_bins": None}, "expected one output, got several"),
        ({"loss": lambda y, f: (f - y, np.ones_like(y))}, "a function supports one output"),
    ):
        with pytest.raises(ValueError, match=message):
            GradientBoostingRegressor(n_estimators=3, **options).fit(X, Y)
