"""Clones of imported models can be fitted, for every importer and kind of model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn import ensemble, linear_model, neighbors, tree
from sklearn.base import clone
from sklearn.mixture import GaussianMixture

import spinney

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
NUMBER = X[:, 0] + np.sin(X[:, 1])
POSITIVE = np.exp(NUMBER)
SHARE = 1 / (1 + np.exp(-NUMBER))
TWO = (NUMBER > 0).astype(int)
THREE = np.digitize(NUMBER, [-0.5, 0.5])
PAIR = np.c_[NUMBER, -NUMBER]
GROUP_SIZES = np.full(10, 20)


def check_refit(imported, y):
    """Fit a clone with the imported parameters; check the form of its predictions."""
    group = {"group": GROUP_SIZES} if hasattr(imported, "ndcg_at") else {}
    refitted = clone(imported).fit(X, y, **group) if y is not None else clone(imported).fit(X)
    assert type(refitted) is type(imported)
    before, after = imported.predict(X), refitted.predict(X)
    assert after.shape == before.shape
    if before.dtype.kind == "f":
        assert np.isfinite(after).all()
    else:
        assert set(np.unique(after)) <= set(np.unique(y if y is not None else before))


XGBOOST = [
    ({}, NUMBER),
    ({}, PAIR),
    ({"booster": "dart"}, NUMBER),
    ({"num_parallel_tree": 3}, NUMBER),
    ({"multi_strategy": "multi_output_tree"}, PAIR),
    ({"multi_strategy": "multi_output_tree", "objective": "multi:softprob", "num_class": 3}, THREE),
    ({"objective": "reg:squaredlogerror"}, POSITIVE),
    ({"objective": "reg:pseudohubererror"}, NUMBER),
    ({"objective": "reg:absoluteerror"}, NUMBER),
    ({"objective": "reg:quantileerror", "quantile_alpha": 0.3}, NUMBER),
    ({"objective": "reg:logistic"}, SHARE),
    ({"objective": "count:poisson"}, POSITIVE),
    ({"objective": "reg:gamma"}, POSITIVE),
    ({"objective": "reg:tweedie", "tweedie_variance_power": 1.2}, POSITIVE),
    ({"objective": "binary:logistic"}, TWO),
    ({"objective": "multi:softprob", "num_class": 3}, THREE),
    ({"objective": "multi:softmax", "num_class": 3}, THREE),
    ({"objective": "rank:ndcg"}, THREE),
    ({"objective": "rank:map"}, TWO),
    ({"objective": "rank:pairwise"}, THREE),
]
LIGHTGBM = [
    ({"objective": "regression"}, NUMBER),
    ({"objective": "regression", "boosting": "dart"}, NUMBER),
    ({"objective": "regression", "boosting": "rf"}, NUMBER),
    ({"objective": "regression_l1"}, NUMBER),
    ({"objective": "huber"}, NUMBER),
    ({"objective": "fair"}, NUMBER),
    ({"objective": "mape"}, NUMBER),
    ({"objective": "quantile", "alpha": 0.3}, NUMBER),
    ({"objective": "poisson"}, POSITIVE),
    ({"objective": "gamma"}, POSITIVE),
    ({"objective": "tweedie", "tweedie_variance_power": 1.2}, POSITIVE),
    ({"objective": "tweedie", "tweedie_variance_power": 1.0}, POSITIVE),
    ({"objective": "cross_entropy"}, SHARE),
    ({"objective": "binary"}, TWO),
    ({"objective": "binary", "boosting": "rf"}, TWO),
    ({"objective": "multiclass", "num_class": 3}, THREE),
    ({"objective": "lambdarank"}, THREE),
    ({"objective": "rank_xendcg"}, THREE),
]
CATBOOST = [
    ("RMSE", NUMBER),
    ("MultiRMSE", PAIR),
    ("MAE", NUMBER),
    ("Quantile:alpha=0.3", NUMBER),
    ("Huber:delta=0.5", NUMBER),
    ("Poisson", POSITIVE),
    ("Tweedie:variance_power=1.2", POSITIVE),
    ("MAPE", NUMBER),
    ("Expectile:alpha=0.3", NUMBER),
    ("LogCosh", NUMBER),
    ("Lq:q=2", NUMBER),
    ("Logloss", TWO),
    ("CrossEntropy", TWO),
    ("MultiClass", THREE),
    ("YetiRank", THREE),
    ("YetiRankPairwise", THREE),
    ("PairLogit", THREE),
    ("PairLogitPairwise", THREE),
    ("QueryRMSE", THREE),
    ("QuerySoftMax", THREE),
    ("StochasticRank:metric=NDCG", THREE),
    ("LambdaMart", THREE),
]


def name_of(value):
    return "-".join(map(str, value.values())) if isinstance(value, dict) else None


@pytest.mark.parametrize(("params", "y"), XGBOOST, ids=name_of)
def test_imported_xgboost_models_can_be_refitted(params, y):
    xgboost = pytest.importorskip("xgboost")
    is_ranker = params.get("objective", "").startswith("rank")
    data = xgboost.DMatrix(X, y, **({"group": GROUP_SIZES} if is_ranker else {}))
    theirs = xgboost.train({"nthread": 1, "max_depth": 3, **params}, data, 4)
    check_refit(spinney.from_xgboost(theirs), y)


@pytest.mark.parametrize(("params", "y"), LIGHTGBM, ids=name_of)
def test_imported_lightgbm_models_can_be_refitted(params, y):
    lightgbm = pytest.importorskip("lightgbm")
    is_ranker = params["objective"] in ("lambdarank", "rank_xendcg")
    data = lightgbm.Dataset(X, y, **({"group": GROUP_SIZES} if is_ranker else {}))
    common = {"num_leaves": 8, "min_data_in_leaf": 3, "verbose": -1, "num_threads": 1}
    bagging = {"bagging_freq": 1, "bagging_fraction": 0.6}
    theirs = lightgbm.train({**common, **bagging, **params}, data, 4)
    ours = spinney.from_lightgbm(theirs)
    expected = theirs.predict(X)
    if expected.ndim == 1 and not hasattr(ours, "classes_"):
        np.testing.assert_allclose(ours.predict(X), expected, rtol=1e-10, atol=1e-12)
    check_refit(ours, y)


def test_imported_lightgbm_model_with_a_custom_objective_can_be_refitted():
    lightgbm = pytest.importorskip("lightgbm")

    def squared(scores, data):
        return scores - data.get_label(), np.ones_like(scores)

    params = {"objective": squared, "verbose": -1, "num_threads": 1}
    theirs = lightgbm.train(params, lightgbm.Dataset(X, NUMBER), 4)
    check_refit(spinney.from_lightgbm(theirs), NUMBER)


@pytest.mark.parametrize(("loss", "y"), CATBOOST, ids=lambda v: v if isinstance(v, str) else None)
def test_imported_catboost_models_can_be_refitted(loss, y):
    catboost = pytest.importorskip("catboost")
    options = {"iterations": 4, "depth": 3, "verbose": 0, "thread_count": 1}
    model = catboost.CatBoost({**options, "loss_function": loss, "allow_writing_files": False})
    names = ("Rank", "Pair", "Query", "Lambda")
    group = (
        {"group_id": np.repeat(np.arange(10), GROUP_SIZES)} if any(map(loss.count, names)) else {}
    )
    labels = y / 2 if group else y  # some of CatBoost's ranking losses need labels up to 1
    ours = spinney.from_catboost(model.fit(catboost.Pool(X, labels, **group)))
    assert hasattr(ours, "ndcg_at") == bool(group)
    check_refit(ours, y)


CLASSIFIERS = [
    tree.DecisionTreeClassifier(criterion="log_loss", class_weight="balanced"),
    tree.ExtraTreeClassifier(),
    ensemble.RandomForestClassifier(5, max_features=0.4, min_samples_leaf=0.05),
    ensemble.ExtraTreesClassifier(5),
    ensemble.GradientBoostingClassifier(n_estimators=3),
    ensemble.HistGradientBoostingClassifier(max_iter=3),
    linear_model.LogisticRegression(),
    linear_model.Perceptron(),
    neighbors.KNeighborsClassifier(),
    neighbors.RadiusNeighborsClassifier(radius=4.0),
]
REGRESSORS = [
    tree.DecisionTreeRegressor(criterion="absolute_error"),
    tree.ExtraTreeRegressor(),
    ensemble.RandomForestRegressor(5),
    ensemble.ExtraTreesRegressor(5),
    *(
        ensemble.GradientBoostingRegressor(n_estimators=3, loss=loss)
        for loss in ("squared_error", "absolute_error", "huber", "quantile")
    ),
    *(
        ensemble.HistGradientBoostingRegressor(max_iter=3, loss=loss, quantile=0.3)
        for loss in ("squared_error", "absolute_error", "gamma", "poisson", "quantile")
    ),
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    linear_model.RidgeCV(),
    neighbors.KNeighborsRegressor(),
    neighbors.RadiusNeighborsRegressor(radius=4.0),
]


@pytest.mark.parametrize("theirs", CLASSIFIERS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_imported_sklearn_classifiers_can_be_refitted(theirs, y):
    check_refit(spinney.from_sklearn(clone(theirs).fit(X, y)), y)


@pytest.mark.parametrize("theirs", REGRESSORS, ids=lambda model: type(model).__name__)
def test_imported_sklearn_regressors_can_be_refitted(theirs):
    check_refit(spinney.from_sklearn(clone(theirs).fit(X, POSITIVE)), POSITIVE)


def test_imported_sklearn_mixture_can_be_refitted():
    check_refit(spinney.from_sklearn(GaussianMixture(2, random_state=0).fit(X)), None)


def test_logitraw_warns_about_its_threshold():
    xgboost = pytest.importorskip("xgboost")
    data = xgboost.DMatrix(X, TWO)
    theirs = xgboost.XGBClassifier(objective="binary:logitraw", n_estimators=2, n_jobs=1)
    theirs.fit(X, TWO)
    with pytest.warns(UserWarning, match=r"above 0\.5.*above 0 "):
        ours = spinney.from_xgboost(theirs)
    raw = theirs.get_booster().predict(data, output_margin=True)
    assert ((raw > 0) & (raw <= 0.5)).any()  # rows where the thresholds matter
    labels = ours.classes_[(ours.decision_function(X) > 0.5).astype(int)]
    np.testing.assert_array_equal(labels, theirs.predict(X))
    np.testing.assert_array_equal(ours.predict(X), raw > 0)
    check_refit(ours, TWO)
