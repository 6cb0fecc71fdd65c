"""Kinds of models of other libraries: same predictions, or an error with the kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import spinney
from support.imported_models import make_rows, predict_like_source

X, SCORE = make_rows(3)
THREE = np.digitize(SCORE, [-0.5, 0.5])
GROUPS = np.full(10, 25)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(
    d=pd.Categorical(np.array(list("zyxwvutsrqponmlkjihg"))[X[:, 3].astype(int)])
)


def check_xgboost(theirs, tmp_path, **options):
    """Compare the model and both kinds of its files with the predictions of XGBoost."""
    xgboost = pytest.importorskip("xgboost")
    expected = theirs.predict(xgboost.DMatrix(X, **options))
    models = [spinney.from_xgboost(theirs)]
    for ending in ("json", "ubj"):
        path = tmp_path / f"model.{ending}"
        theirs.save_model(path)
        models.append(spinney.from_xgboost(path))
    for imported in models:
        actual = predict_like_source(imported, X, expected)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6)
    return models[0]


@pytest.mark.parametrize(
    ("params", "y"),
    [
        ({"booster": "dart", "rate_drop": 0.4}, SCORE),
        ({"booster": "dart", "rate_drop": 0.4, "objective": "binary:logistic"}, SCORE > 0),
        ({"multi_strategy": "multi_output_tree"}, np.c_[SCORE, -SCORE, SCORE**2]),
        ({"multi_strategy": "multi_output_tree", "num_parallel_tree": 2}, np.c_[SCORE, SCORE + 5]),
        (
            {"multi_strategy": "multi_output_tree", "objective": "multi:softprob", "num_class": 3},
            THREE,
        ),
        ({}, np.c_[SCORE + 30, SCORE - 7]),  # each column has its own base score
        ({"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]}, SCORE),
        ({"objective": "reg:logistic"}, 1 / (1 + np.exp(-SCORE))),
        ({"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0}, SCORE),
        ({"tree_method": "exact"}, SCORE),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "y",
)
def test_xgboost_models_predict_the_same(params, y, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    common = {"max_depth": 4, "nthread": 1, "seed": 1}
    check_xgboost(xgboost.train({**common, **params}, xgboost.DMatrix(X, y), 6), tmp_path)


@pytest.mark.parametrize("max_one_hot", [1, 100])
def test_xgboost_categories_one_hot_and_in_sets(max_one_hot, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    kinds = {"feature_types": ["q", "q", "q", "c"], "enable_categorical": True}
    params = {"max_depth": 5, "nthread": 1, "max_cat_to_onehot": max_one_hot}
    theirs = xgboost.train(params, xgboost.DMatrix(X, SCORE, **kinds), 6)
    sizes = [len(s) for s in theirs.trees_to_dataframe().Category.dropna()]
    assert sizes
    assert (max(sizes) > 1) == (max_one_hot == 1)
    check_xgboost(theirs, tmp_path, **kinds)


@pytest.mark.parametrize("objective", ["rank:ndcg", "rank:pairwise", "rank:map"])
def test_xgboost_rankers_predict_the_same(objective, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(X, THREE if objective != "rank:map" else THREE > 1, group=GROUPS)
    ours = check_xgboost(xgboost.train({"objective": objective, "nthread": 1}, data, 5), tmp_path)
    assert type(ours).__name__ == "GradientBoostingRanker"


@pytest.mark.parametrize(
    ("params", "y", "message"),
    [
        ({"booster": "gblinear"}, SCORE, "gblinear"),
        ({"objective": "survival:cox"}, np.exp(SCORE), "survival:cox"),
        ({"objective": "binary:hinge"}, SCORE > 0, "binary:hinge"),
        (
            {"objective": "binary:logistic"},
            np.column_stack([SCORE > 0, SCORE > 1]).astype(int),
            "several outputs of XGBoost's objective 'binary:logistic' .* expected one, got 2",
        ),
    ],
)
def test_unsupported_xgboost_models_raise(params, y, message):
    xgboost = pytest.importorskip("xgboost")
    filled = xgboost.DMatrix(np.nan_to_num(X), y)
    theirs = xgboost.train({"nthread": 1, **params}, filled, 3)
    with pytest.raises(ValueError, match=message):
        spinney.from_xgboost(theirs)


LIGHT = {"num_leaves": 8, "min_data_in_leaf": 3, "verbose": -1, "num_threads": 1, "seed": 1}


@pytest.mark.parametrize(
    ("params", "y"),
    [
        ({"boosting": "dart", "drop_rate": 0.5}, SCORE),
        ({"boosting": "dart", "drop_rate": 0.5, "objective": "binary"}, SCORE > 0),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}, SCORE),
        ({"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6, "objective": "binary"}, 0),
        ({"objective": "quantile", "alpha": 0.8}, SCORE),
        ({"objective": "huber"}, SCORE),
        ({"objective": "gamma"}, np.exp(SCORE)),
        ({"objective": "cross_entropy"}, 1 / (1 + np.exp(-SCORE))),
        ({"objective": "multiclass", "num_class": 3, "boosting": "dart"}, THREE),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "y",
)
def test_lightgbm_models_predict_the_same(params, y, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    y = SCORE > 0 if np.ndim(y) == 0 else y
    data = lightgbm.Dataset(FRAME, y, categorical_feature=["d"])
    theirs = lightgbm.train({**LIGHT, **params}, data, 6)
    theirs.save_model(tmp_path / "model.txt")
    expected = theirs.predict(FRAME)
    for model in (theirs, tmp_path / "model.txt"):
        actual = predict_like_source(spinney.from_lightgbm(model), FRAME, expected)
        np.testing.assert_allclose(actual, expected, rtol=1e-10)


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_lightgbm_rankers_predict_the_same(objective):
    lightgbm = pytest.importorskip("lightgbm")
    data = lightgbm.Dataset(X, THREE, group=GROUPS)
    theirs = lightgbm.train({**LIGHT, "objective": objective}, data, 5)
    ours = spinney.from_lightgbm(theirs)
    assert type(ours).__name__ == "GradientBoostingRanker"
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10, atol=1e-12)


def test_lightgbm_uses_the_best_round():
    lightgbm = pytest.importorskip("lightgbm")
    noise = np.random.default_rng(0).normal(size=len(X))
    theirs = lightgbm.LGBMRegressor(n_estimators=30, n_jobs=1, verbose=-1)
    stop = lightgbm.early_stopping(2, verbose=False)
    theirs.fit(X, SCORE, eval_set=[(X, noise)], callbacks=[stop])
    assert 0 < theirs.best_iteration_ < 30
    ours = spinney.from_lightgbm(theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10, atol=1e-12)


def test_lightgbm_with_a_custom_objective():
    lightgbm = pytest.importorskip("lightgbm")

    def squared(scores, data):
        return scores - data.get_label(), np.ones_like(scores)

    theirs = lightgbm.train({**LIGHT, "objective": squared}, lightgbm.Dataset(X, SCORE), 5)
    ours = spinney.from_lightgbm(theirs)  # scores are the predictions, as in LightGBM
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"linear_tree": True}, "linear"),
        ({"objective": "multiclassova", "num_class": 3}, "multiclassova"),
    ],
)
def test_unsupported_lightgbm_models_raise(params, message):
    lightgbm = pytest.importorskip("lightgbm")
    y = THREE if "num_class" in params else SCORE
    data = lightgbm.Dataset(np.nan_to_num(X), y, params={**LIGHT, **params})
    theirs = lightgbm.train({**LIGHT, **params}, data, 3)
    with pytest.raises(ValueError, match=message):
        spinney.from_lightgbm(theirs)


CAT = {"iterations": 5, "depth": 4, "verbose": 0, "thread_count": 1, "allow_writing_files": False}


@pytest.mark.parametrize(
    ("loss", "y"),
    [
        ("MultiClass", THREE),
        ("CrossEntropy", 1 / (1 + np.exp(-SCORE))),
        ("MAE", SCORE),
        ("Quantile:alpha=0.8", SCORE),
        ("Huber:delta=0.5", SCORE),
        ("Poisson", np.exp(SCORE)),
        ("MultiRMSE", np.c_[SCORE, -2 * SCORE]),
        ("YetiRank", THREE),
    ],
    ids=lambda value: value if isinstance(value, str) else "y",
)
def test_catboost_models_predict_the_same(loss, y, tmp_path):
    catboost = pytest.importorskip("catboost")
    group = {"group_id": np.repeat(np.arange(10), 25)} if loss == "YetiRank" else {}
    theirs = catboost.CatBoost({**CAT, "loss_function": loss})
    theirs.fit(catboost.Pool(X, y, **group))
    theirs.save_model(str(tmp_path / "model.json"), format="json")
    expected = theirs.predict(X, prediction_type="RawFormulaVal")
    for model in (theirs, tmp_path / "model.json"):
        raw = np.squeeze(spinney.from_catboost(model)._raw(X))
        if loss == "MultiClass":  # scores are defined up to a constant per row
            raw, expected = raw - raw[:, :1], expected - expected[:, :1]
        np.testing.assert_allclose(raw, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["cat", "text", "embedding"])
def test_catboost_models_with_other_columns_raise(kind):
    catboost = pytest.importorskip("catboost")
    words = np.array(["red apple tree", "green pear tree", "blue plum bush"])[THREE]
    column = {"cat": words, "text": words, "embedding": list(np.nan_to_num(X[:, :3]))}[kind]
    frame = pd.DataFrame({"a": X[:, 0], "b": column})
    pool = catboost.Pool(frame, SCORE > 0, **{f"{kind}_features": ["b"]})
    theirs = catboost.CatBoostClassifier(**CAT).fit(pool)
    with pytest.raises(ValueError, match="only numeric columns"):
        spinney.from_catboost(theirs)


def test_catboost_with_its_own_probability_threshold_raises():
    catboost = pytest.importorskip("catboost")
    theirs = catboost.CatBoostClassifier(**CAT).fit(X, (SCORE > 0).astype(int))
    theirs.set_probability_threshold(0.8)
    with pytest.raises(ValueError, match=r"probability threshold of 0\.5, got 0\.8"):
        spinney.from_catboost(theirs)
    theirs.set_probability_threshold(0.5)
    np.testing.assert_array_equal(spinney.from_catboost(theirs).predict(X), theirs.predict(X))
