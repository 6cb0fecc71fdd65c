"""Boosting with exact splits."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor


def few_values(n=400, seed=0):
    """Create a table with one value per bin, categories and missing values."""
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
def test_exact_splits_equal_bins_of_single_values(growth, options):
    X, y = few_values()
    model = GradientBoostingRegressor(n_estimators=15, growth=growth, min_samples_leaf=5, **options)
    binned = model.fit(X, y).predict(X)
    n_nodes = [len(model.fitted_model().store.tree(t).feature) for t in range(15)]
    exact = model.set_params(max_bins=None).fit(X, y).predict(X)
    assert n_nodes == [len(model.fitted_model().store.tree(t).feature) for t in range(15)]
    np.testing.assert_allclose(exact, binned, rtol=1e-5, atol=1e-5)


def test_exact_splits_equal_bins_with_classes_weights_and_eval_sets():
    X, y = few_values()
    classes = np.digitize(y, [0, 4])
    weights = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    model = GradientBoostingClassifier(n_estimators=12, n_iter_no_change=50)
    validation = (X[300:], classes[300:])
    binned = model.fit(X[:300], classes[:300], weights[:300], eval_set=validation)
    scores = binned.validation_score_.copy()
    probabilities = binned.predict_proba(X)
    exact = model.set_params(max_bins=None).fit(
        X[:300], classes[:300], weights[:300], eval_set=validation
    )
    # Thresholds inside a node differ, so that only predictions for training rows are equal.
    np.testing.assert_allclose(
        exact.predict_proba(X[:300]), probabilities[:300], rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(exact.validation_score_, scores, rtol=0.02)
    of_true_class = exact.predict_proba(X[300:])[np.arange(100), classes[300:]]
    np.testing.assert_allclose(
        -np.log(of_true_class).mean(), exact.validation_score_.min(), rtol=1e-9
    )


@given(st.integers(0, 10**6), st.integers(4, 40), st.sampled_from([0.0, 0.3, 3.0]))
@settings(max_examples=40, deadline=None)
def test_first_split_is_the_best_of_all(seed, n, l2):
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
    gradient = y.mean() - y

    def score(mask):
        return gradient[mask].sum() ** 2 / (mask.sum() + l2) / 2

    best, split = 0.0, None
    for f in range(3):
        for value in np.sort(X[:, f])[:-1]:
            left = X[:, f] <= value
            gain = score(left) + score(~left) - score(np.ones(n, bool))
            if gain > best:
                best, split = gain, left
    if best > 1e-9:
        predicted = model.predict(X)
        expected = np.where(
            split,
            y.mean() - gradient[split].sum() / (split.sum() + l2),
            y.mean() - gradient[~split].sum() / ((~split).sum() + l2),
        )
        np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-5)


def test_exact_splits_separate_more_values_than_bins():
    # A square wave too fine for 255 bins.
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
def test_subsampling_with_exact_splits(sampling):
    X, y = few_values()
    model = GradientBoostingRegressor(
        n_estimators=40, max_bins=None, subsample=0.5, sampling=sampling, loss="absolute_error"
    ).fit(X, y)
    assert model.train_score_[-1] < 0.7 * model.train_score_[0]
    np.testing.assert_allclose(np.abs(model.predict(X) - y).mean(), model.train_score_[-1])


def test_number_of_threads_does_not_change_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = X[:, 0] * X[:, 1] + rng.normal(size=3000)
    predicted = [
        GradientBoostingRegressor(n_estimators=10, max_bins=None, n_jobs=n).fit(X, y).predict(X)
        for n in (1, 2, 4)
    ]
    assert np.array_equal(predicted[0], predicted[1])
    assert np.array_equal(predicted[0], predicted[2])


def test_warm_start_and_automatic_settings_with_exact_splits():
    X, y = few_values()
    one_fit = GradientBoostingRegressor(n_estimators=20, max_bins=None).fit(X, y)
    continued = GradientBoostingRegressor(n_estimators=8, max_bins=None, warm_start=True).fit(X, y)
    continued.set_params(n_estimators=20).fit(X, y)
    assert np.array_equal(one_fit.predict(X), continued.predict(X))
    automatic = GradientBoostingRegressor(max_bins=None, random_state=0).fit(X, y)
    assert automatic.growth_ == "best_first"


def test_oblivious_trees_need_bins():
    X, y = few_values(60)
    with pytest.raises(ValueError, match="needs bins: expected max_bins up to 255, got None"):
        GradientBoostingRegressor(n_estimators=2, max_bins=None, growth="oblivious").fit(X, y)


@pytest.mark.parametrize("objective", ["squared_error", "log_loss"])
def test_exact_trees_equal_those_of_xgboost(objective):
    xgboost = pytest.importorskip("xgboost")  # optional
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 6)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    z = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    z += 0.3 * rng.normal(size=700)
    common = {"n_estimators": 30, "learning_rate": 0.3, "max_depth": 4}
    options = {
        "max_bins": None,
        "growth": "level_wise",
        "max_leaf_nodes": None,
        "min_samples_leaf": 1,
    }
    options |= {"l2_regularization": 1.5, "min_hessian_leaf": 1.0}
    xgboost_options = {
        "tree_method": "exact",
        "reg_lambda": 1.5,
        "min_child_weight": 1.0,
        "n_jobs": 1,
    }
    if objective == "squared_error":
        model = GradientBoostingRegressor(**common, **options).fit(X, z)
        reference = xgboost.XGBRegressor(**common, **xgboost_options, base_score=z.mean()).fit(X, z)
        predicted, expected = model.predict(X), reference.predict(X)
    else:
        y = (z > 0).astype(int)
        model = GradientBoostingClassifier(**common, **options).fit(X, y)
        reference = xgboost.XGBClassifier(**common, **xgboost_options, base_score=y.mean()).fit(
            X, y
        )
        predicted, expected = model.predict_proba(X)[:, 1], reference.predict_proba(X)[:, 1]
    assert np.mean(np.abs(predicted - expected) > 1e-3) < 0.01
    counts = [int((model.fitted_model().store.tree(t).children_left < 0).sum()) for t in range(30)]
    reference_trees = reference.get_booster().trees_to_dataframe()
    leaves = reference_trees[reference_trees.Feature == "Leaf"].groupby("Tree").size().to_numpy()
    assert np.mean(np.array(counts) == leaves) > 0.9
