"""Boosting with every cut looked at."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor


def few_values(n=400, seed=0):
    """So few values that a bin is a value, with categories and missing ones."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": np.round(rng.normal(size=n), 1),
            "b": np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 9, n)),
            "c": pd.Categorical(rng.choice(list("pqrstu"), n)),
        }
    )
    y = frame["a"] * frame["b"].fillna(4) + 3 * frame["c"].isin(["p", "t"]) + rng.normal(size=n)
    return frame, y.to_numpy()


@pytest.mark.parametrize("growth", ["best_first", "level_wise"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"l1_regularization": 2.0, "min_split_gain": 0.5},
        {"monotonic_cst": {"a": 1}, "max_depth": 3},
        {"interaction_cst": [[0, 1], [2]]},
        {"max_features": 0.7, "random_state": 3},
        {"loss": "huber", "alpha": 0.8},
    ],
)
def test_exact_is_binned_where_a_bin_is_a_value(growth, options):
    X, y = few_values()
    model = GradientBoostingRegressor(n_estimators=15, growth=growth, min_samples_leaf=5, **options)
    binned = model.fit(X, y).predict(X)
    n_nodes = [len(model.fitted_model().store.tree(t).feature) for t in range(15)]
    exact = model.set_params(max_bins=None).fit(X, y).predict(X)
    assert n_nodes == [len(model.fitted_model().store.tree(t).feature) for t in range(15)]
    np.testing.assert_allclose(exact, binned, rtol=1e-5, atol=1e-5)


def test_exact_is_binned_for_classes_weights_and_eval_sets():
    X, y = few_values()
    classes = np.digitize(y, [0, 4])
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = GradientBoostingClassifier(n_estimators=12, n_iter_no_change=50)
    parts = (X[300:], classes[300:])
    binned = model.fit(X[:300], classes[:300], weights[:300], eval_set=parts)
    scores = binned.validation_score_.copy()
    p = binned.predict_proba(X)
    exact = model.set_params(max_bins=None).fit(
        X[:300], classes[:300], weights[:300], eval_set=parts
    )
    # Between two values of a node a cut lies elsewhere, so only rows of fit are the same.
    np.testing.assert_allclose(exact.predict_proba(X[:300]), p[:300], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(exact.validation_score_, scores, rtol=0.02)
    told = exact.predict_proba(X[300:])[np.arange(100), classes[300:]]
    np.testing.assert_allclose(-np.log(told).mean(), exact.validation_score_.min(), rtol=1e-9)


@given(st.integers(0, 10**6), st.integers(4, 40), st.sampled_from([0.0, 0.3, 3.0]))
@settings(max_examples=40, deadline=None)
def test_the_first_question_is_the_best_of_all(seed, n, l2):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.normal(size=n)
    model = GradientBoostingRegressor(
        n_estimators=1,
        max_bins=None,
        max_leaf_nodes=2,
        min_samples_leaf=1,
        l2_regularization=l2,
        learning_rate=1.0,
    ).fit(X, y)
    g = y.mean() - y

    def half(mask):
        return g[mask].sum() ** 2 / (mask.sum() + l2) / 2

    best, split = 0.0, None
    for f in range(3):
        for value in np.sort(X[:, f])[:-1]:
            left = X[:, f] <= value
            gain = half(left) + half(~left) - half(np.ones(n, bool))
            if gain > best:
                best, split = gain, left
    if best > 1e-9:
        predicted = model.predict(X)
        expected = np.where(
            split,
            y.mean() - g[split].sum() / (split.sum() + l2),
            y.mean() - g[~split].sum() / ((~split).sum() + l2),
        )
        np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-5)


def test_more_values_than_bins_are_told_apart():
    # A wave that 255 bins cannot follow.
    x = np.arange(4000.0)
    y = np.where(x % 8 < 4, 0.0, 1.0)
    common = {
        "n_estimators": 1,
        "learning_rate": 1.0,
        "max_leaf_nodes": None,
        "min_samples_leaf": 1,
    }
    binned = GradientBoostingRegressor(**common).fit(x[:, None], y)
    exact = GradientBoostingRegressor(max_bins=None, l2_regularization=0, **common).fit(
        x[:, None], y
    )
    assert np.mean((exact.predict(x[:, None]) - y) ** 2) < 1e-6
    assert np.mean((binned.predict(x[:, None]) - y) ** 2) > 0.01


@pytest.mark.parametrize("sampling", ["uniform", "gradient"])
def test_drawing_rows(sampling):
    X, y = few_values()
    model = GradientBoostingRegressor(
        n_estimators=40, max_bins=None, subsample=0.5, sampling=sampling, loss="absolute_error"
    ).fit(X, y)
    assert model.train_score_[-1] < 0.7 * model.train_score_[0]
    np.testing.assert_allclose(np.abs(model.predict(X) - y).mean(), model.train_score_[-1])


def test_same_bits_on_any_threads():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = X[:, 0] * X[:, 1] + rng.normal(size=3000)
    predicted = [
        GradientBoostingRegressor(n_estimators=10, max_bins=None, n_jobs=n).fit(X, y).predict(X)
        for n in (1, 2, 4)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])


def test_warm_start_and_defaults():
    X, y = few_values()
    whole = GradientBoostingRegressor(n_estimators=20, max_bins=None).fit(X, y)
    parts = GradientBoostingRegressor(n_estimators=8, max_bins=None, warm_start=True).fit(X, y)
    parts.set_params(n_estimators=20).fit(X, y)
    assert np.array_equal(whole.predict(X), parts.predict(X))
    told_nothing = GradientBoostingRegressor(max_bins=None, random_state=0).fit(X, y)
    assert told_nothing.growth_ == "best_first"


def test_oblivious_trees_need_bins():
    X, y = few_values(60)
    with pytest.raises(ValueError, match="needs bins: expected max_bins up to 255, got None"):
        GradientBoostingRegressor(n_estimators=2, max_bins=None, growth="oblivious").fit(X, y)


@pytest.mark.parametrize("objective", ["squared_error", "log_loss"])
def test_trees_are_those_of_xgboost(objective):
    xgboost = pytest.importorskip("xgboost")  # a peer: not among what the tests install
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    z = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    z += 0.3 * rng.normal(size=700)
    common = {"n_estimators": 30, "learning_rate": 0.3, "max_depth": 4}
    ours = {"max_bins": None, "growth": "level_wise", "max_leaf_nodes": None, "min_samples_leaf": 1}
    ours |= {"l2_regularization": 1.5, "min_hessian_leaf": 1.0}
    theirs = {"tree_method": "exact", "reg_lambda": 1.5, "min_child_weight": 1.0, "n_jobs": 1}
    if objective == "squared_error":
        model = GradientBoostingRegressor(**common, **ours).fit(X, z)
        peer = xgboost.XGBRegressor(**common, **theirs, base_score=z.mean()).fit(X, z)
        a, b = model.predict(X), peer.predict(X)
    else:
        y = (z > 0).astype(int)
        model = GradientBoostingClassifier(**common, **ours).fit(X, y)
        peer = xgboost.XGBClassifier(**common, **theirs, base_score=y.mean()).fit(X, y)
        a, b = model.predict_proba(X)[:, 1], peer.predict_proba(X)[:, 1]
    assert np.mean(np.abs(a - b) > 1e-3) < 0.01
    counts = [int((model.fitted_model().store.tree(t).children_left < 0).sum()) for t in range(30)]
    frame = peer.get_booster().trees_to_dataframe()
    leaves = frame[frame.Feature == "Leaf"].groupby("Tree").size().to_numpy()
    assert np.mean(np.array(counts) == leaves) > 0.9
