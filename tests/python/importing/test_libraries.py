"""Models that installed libraries fit, compared with the imported models."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import spinney
from support.imported_models import make_rows, predict_like_source


def rows_near_thresholds(X, thresholds, seed):
    """Return rows at and next to thresholds, huge and tiny rows, and unchanged rows."""
    rng = np.random.default_rng(seed)
    changed = X.copy()
    changed[:100, :3] = rng.choice(thresholds, (100, 3))
    changed[:50, :3] *= 1 + rng.integers(-3, 4, (50, 3)) * 2e-8
    changed[100:150, :3] *= 10.0 ** rng.integers(-40, 30, (50, 3))
    return changed


TARGETS = {
    "two": lambda s: (s > 0).astype(int),
    "three": lambda s: np.digitize(s, [-0.5, 0.5]),
    "number": lambda s: s,
    "positive": np.exp,
}


@pytest.mark.parametrize(
    ("objective", "target"),
    [
        ("binary", "two"),
        ("multiclass", "three"),
        ("regression_l1", "number"),
        ("fair", "number"),
        ("poisson", "positive"),
        ("tweedie", "positive"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}, {"use_missing": False}])
def test_lightgbm_models_predict_the_same(objective, target, options):
    lightgbm = pytest.importorskip("lightgbm")
    for seed in range(3):
        X, score = make_rows(seed)
        params = {"objective": objective, "num_leaves": 12, "min_data_in_leaf": 3, "verbose": -1}
        params |= {"num_threads": 1, "min_data_per_group": 3, "cat_smooth": 1, **options}
        if objective == "multiclass":
            params["num_class"] = 3
        data = lightgbm.Dataset(X, TARGETS[target](score), categorical_feature=[3])
        theirs = lightgbm.train(params, data, 5)
        ours = spinney.from_lightgbm(theirs)
        thresholds = pd.to_numeric(theirs.trees_to_dataframe().threshold, errors="coerce").dropna()
        near_thresholds = rows_near_thresholds(X, thresholds.to_numpy(), seed)
        for queries in (X, near_thresholds, X.astype(np.float32)):
            expected = theirs.predict(queries)
            np.testing.assert_allclose(
                predict_like_source(ours, queries, expected), expected, rtol=1e-10
            )
            raw = theirs.predict(queries, raw_score=True)
            np.testing.assert_allclose(np.squeeze(ours._raw(queries)), raw, rtol=1e-10, atol=1e-12)
        gains = theirs.feature_importance("gain")
        np.testing.assert_allclose(ours.feature_importances_, gains / gains.sum(), atol=1e-5)


@pytest.mark.parametrize(
    ("objective", "target"),
    [
        ("binary:logistic", "two"),
        ("multi:softprob", "three"),
        ("reg:absoluteerror", "number"),
        ("reg:pseudohubererror", "number"),
        ("count:poisson", "positive"),
        ("reg:tweedie", "positive"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"base_score": 0.3}, {"num_parallel_tree": 2}])
def test_xgboost_models_predict_the_same(objective, target, options):
    xgboost = pytest.importorskip("xgboost")
    kinds = ["q", "q", "q", "c"]
    for seed in range(3):
        X, score = make_rows(seed)
        params = {"objective": objective, "max_depth": 4, "nthread": 1, "subsample": 0.8, **options}
        if objective == "multi:softprob":
            params["num_class"] = 3
        data = xgboost.DMatrix(
            X, TARGETS[target](score), feature_types=kinds, enable_categorical=True
        )
        theirs = xgboost.train(params, data, 5)
        ours = spinney.from_xgboost(theirs)
        thresholds = pd.to_numeric(theirs.trees_to_dataframe().Split, errors="coerce").dropna()
        near_thresholds = rows_near_thresholds(X, thresholds.to_numpy(), seed)
        for values in (X, near_thresholds, X.astype(np.float32)):
            table = xgboost.DMatrix(values, feature_types=kinds, enable_categorical=True)
            expected = theirs.predict(table)
            actual = predict_like_source(ours, values, expected)
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)


def test_xgboost_estimator_uses_its_best_rounds():
    xgboost = pytest.importorskip("xgboost")
    X, score = make_rows(0)
    theirs = xgboost.XGBClassifier(n_estimators=9, early_stopping_rounds=2, n_jobs=1)
    noise = np.random.default_rng(0).integers(0, 2, len(X))
    theirs.fit(X, score > 0, eval_set=[(X, noise)], verbose=False)
    ours = spinney.from_xgboost(theirs)
    assert ours.n_estimators_ == theirs.best_iteration + 1 < 9
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert spinney.from_xgboost(theirs.get_booster()).n_estimators_ > ours.n_estimators_
    theirs.set_params(missing=-1.0)
    with pytest.raises(ValueError, match="missing=-1"):
        spinney.from_xgboost(theirs)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_categories_of_a_frame_are_matched_by_value(library):
    module = pytest.importorskip(library)
    X, score = make_rows(0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    letters = np.array(list("zyxwvutsrqponmlkjihg"))[X[:, 3].astype(int)]
    frame["d"] = pd.Categorical(letters)
    frame["e"] = pd.Categorical(X[:, 3].astype(int) % 3 * 10)
    labels = np.array(["low", "high"])[(score > 0).astype(int)]
    if library == "lightgbm":
        theirs = module.LGBMClassifier(n_estimators=5, min_child_samples=3, verbose=-1, n_jobs=1)
        theirs.fit(frame, labels)
        ours = spinney.from_lightgbm(theirs)
        assert ours.classes_.tolist() == ["high", "low"]
    else:
        theirs = module.XGBClassifier(n_estimators=5, enable_categorical=True, n_jobs=1)
        theirs.fit(frame, score > 0)
        ours = spinney.from_xgboost(theirs)
    assert ours.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_allclose(ours.predict_proba(frame), theirs.predict_proba(frame), atol=1e-6)
    # The category codes differ, the values are the same.
    first_rows = frame.iloc[:7].assign(d=pd.Categorical(letters[:7]))
    actual, expected = ours.predict_proba(first_rows), theirs.predict_proba(frame.iloc[:7])
    np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["SymmetricTree", "Lossguide"])
@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_catboost_models_predict_the_same(policy, mode):
    catboost = pytest.importorskip("catboost")
    X, score = make_rows(0)
    common = {"iterations": 5, "depth": 4, "grow_policy": policy, "nan_mode": mode}
    common |= {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    for kind, y in (("Classifier", score > 0), ("Regressor", score)):
        theirs = getattr(catboost, f"CatBoost{kind}")(**common).fit(X, y)
        ours = spinney.from_catboost(theirs)
        near_thresholds = rows_near_thresholds(
            X, np.concatenate(list(theirs.get_borders().values())), 0
        )
        for queries in (X, near_thresholds, X.astype(np.float32)):
            raw = theirs.predict(queries, prediction_type="RawFormulaVal")
            np.testing.assert_allclose(ours._raw(queries)[:, 0], raw, rtol=1e-10, atol=1e-12)
        changes = theirs.get_feature_importance(type="PredictionValuesChange")
        np.testing.assert_allclose(ours.feature_importances_, changes / 100, atol=1e-8)
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(score > 0, "x", "y")})
    theirs = catboost.CatBoostRegressor(**common, cat_features=["b"]).fit(frame, score)
    with pytest.raises(ValueError, match="only numeric columns"):
        spinney.from_catboost(theirs)
