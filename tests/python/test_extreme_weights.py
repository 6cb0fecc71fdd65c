"""Weights of 1e-310 to 1e308 give the same model, or a clear error."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.neighbors import KNeighborsClassifier

from spinney import _core
from spinney.data.sample_weights import scale_extreme
from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    AnyBoostClassifier,
    AnyBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ComparisonForestClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.linear_model import LogisticRegression
from spinney.tree import (
    C45Classifier,
    ComparisonTreeRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeRegressor,
    ID3Classifier,
    PartitionClassifier,
    PartitionRegressor,
    QuadTreeRegressor,
)

RNG = np.random.default_rng(0)
N = 160
X = RNG.normal(size=(N, 3))
Y = X[:, 0] + 0.3 * RNG.normal(size=N)
TWO = (Y > 0).astype(int)
THREE = np.digitize(Y, [-0.5, 0.5])
W = RNG.uniform(0.5, 1.9, N)
POWERS = [1023, 1000, 300, -300, -1000]

# Models that depend only on the ratios of weights.
RELATIVE = {
    "tree": DecisionTreeClassifier(),
    "tree, entropy": DecisionTreeClassifier(criterion="entropy", ccp_alpha=0.01),
    "tree, balanced": DecisionTreeClassifier(class_weight="balanced", max_depth=4),
    "tree, fraction of the weight": DecisionTreeClassifier(min_weight_fraction_leaf=0.05),
    "regression tree": DecisionTreeRegressor(min_samples_leaf=3),
    "regression tree, pruned": DecisionTreeRegressor(ccp_alpha=0.01),
    "regression tree, medians": DecisionTreeRegressor(criterion="absolute_error", max_depth=4),
    "extra tree": ExtraTreeRegressor(max_depth=5),
    "forest": RandomForestClassifier(n_estimators=8),
    "forest, balanced": RandomForestClassifier(n_estimators=8, class_weight="balanced"),
    "forest of all rows": RandomForestClassifier(n_estimators=8, bootstrap=False),
    "regression forest": RandomForestRegressor(n_estimators=8, oob_score=True),
    "extra trees": ExtraTreesClassifier(n_estimators=8),
    "extra trees, regression": ExtraTreesRegressor(n_estimators=8),
    "isolation forest": IsolationForest(n_estimators=8, max_samples=40),
    "bagging": BaggingClassifier(n_estimators=8),
    "bagging of neighbours": BaggingClassifier(KNeighborsClassifier(), n_estimators=4),
    "bagging, regression": BaggingRegressor(n_estimators=8),
    "AdaBoost": AdaBoostClassifier(n_estimators=8),
    "AdaBoost of deep trees": AdaBoostClassifier(
        DecisionTreeClassifier(max_depth=6), n_estimators=8
    ),
    "AdaBoost, logistic": AdaBoostClassifier(LogisticRegression(), n_estimators=4),
    "AdaBoost, regression": AdaBoostRegressor(n_estimators=8),
    "AnyBoost": AnyBoostClassifier(n_estimators=4),
    "AnyBoost, regression": AnyBoostRegressor(n_estimators=4),
    "comparison tree": ComparisonTreeRegressor(),
    "comparison forest": ComparisonForestClassifier(n_estimators=4),
    "partition": PartitionClassifier(),
    "partition, regression": PartitionRegressor(),
    "quad tree": QuadTreeRegressor(),
    "histogram boosting without penalty": HistGradientBoostingRegressor(max_iter=20),
}
if SKLEARN_VERSION < (1, 8):  # bagging passes the weights to the learner, which has none
    del RELATIVE["bagging of neighbours"]


def _targets(model):
    if isinstance(model, AnyBoostClassifier):
        return TWO
    return THREE if is_classifier(model) else Y


def _fit(model, weights, y=None):
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    return model.fit(X, _targets(model) if y is None else y, sample_weight=weights)


def _predict(model):
    if isinstance(model, IsolationForest):
        return model.score_samples(X)
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("name", RELATIVE)
def test_scaling_by_a_power_of_two_changes_nothing(name, power):
    model = RELATIVE[name]
    if name == "histogram boosting without penalty" and power < 0:
        return  # min_hessian_leaf is an absolute limit
    expected = _fit(model, W)
    scaled = _fit(model, np.ldexp(W, power))
    np.testing.assert_allclose(_predict(scaled), _predict(expected), rtol=1e-12, atol=1e-12)
    if hasattr(scaled, "feature_importances_"):
        np.testing.assert_allclose(
            scaled.feature_importances_, expected.feature_importances_, rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("power", [1023, 1000, 300, -300, -600])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"growth": "oblivious", "l1_regularization": 0.5, "min_split_gain": 0.01},
        {"max_bins": None, "max_depth": 3},
        {"early_stopping": True, "validation_fraction": 0.25},
    ],
    ids=str,
)
def test_boosting_scales_its_penalties_with_the_weights(settings, power):
    penalties = {"l2_regularization": 3.0, "min_hessian_leaf": 0.5} | settings
    for booster_class, y in ((GradientBoostingClassifier, THREE), (GradientBoostingRegressor, Y)):
        # This is the same objective, divided by a power of two.
        scaled = {
            name: float(np.ldexp(penalties[name], -power))
            for name in ("l2_regularization", "l1_regularization", "min_split_gain")
            if name in penalties
        } | {"min_hessian_leaf": float(np.ldexp(penalties["min_hessian_leaf"], -power))}
        model = _fit(booster_class(n_estimators=15, **penalties), np.ldexp(W, power), y)
        expected = _fit(booster_class(n_estimators=15, **(penalties | scaled)), W, y)
        np.testing.assert_allclose(_predict(model), _predict(expected), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.train_score_, expected.train_score_, rtol=1e-9)


@pytest.mark.parametrize("weights", [W * 1e-300, W * 1e-310])
def test_penalty_dominates_tiny_weights(weights):
    classifier = _fit(GradientBoostingClassifier(n_estimators=10), weights)
    class_frequencies = np.bincount(THREE, W) / W.sum()
    np.testing.assert_allclose(_predict(classifier), np.tile(class_frequencies, (N, 1)), rtol=1e-5)
    regressor = _fit(GradientBoostingRegressor(n_estimators=10), weights)
    np.testing.assert_allclose(_predict(regressor), np.average(Y, weights=W), rtol=1e-5)


def _mixtures():
    one_heavy_row = W.copy()
    one_heavy_row[7] = 1e300
    mixtures = {
        "one of 1e300": one_heavy_row,
        "one of 1e20": np.where(np.arange(N) == 7, 1e20, W),
        "one of 1e-300": np.where(np.arange(N) == 7, 1e-300, W),
        "1e300 and 1e-300": np.where(np.arange(N) % 2, 1e300, 1e-300),
    }
    for seed in range(3):
        random = np.random.default_rng(seed)
        mixtures[f"any size {seed}"] = 10.0 ** random.uniform(-300, 300, N)
        mixtures[f"up to 1e20 {seed}"] = 10.0 ** random.uniform(-20, 20, N)
    return mixtures


BOOSTING = {
    "automatic": {},
    "fixed": {"n_estimators": 20},
    "no minimum hessian": {"n_estimators": 20, "min_hessian_leaf": 0.0},
    "no penalty": {"n_estimators": 20, "min_hessian_leaf": 0.0, "l2_regularization": 0.0},
    "oblivious": {"n_estimators": 20, "min_hessian_leaf": 0.0, "growth": "oblivious"},
    "exact": {"n_estimators": 20, "min_hessian_leaf": 0.0, "max_bins": None},
    "by gradient": {"n_estimators": 20, "sampling": "gradient", "subsample": 0.5},
    "absolute penalty": {"n_estimators": 20, "min_hessian_leaf": 0.0, "l1_regularization": 0.1},
    "validation rows": {"n_estimators": 20, "early_stopping": True},
}


@pytest.mark.parametrize("name", _mixtures())
@pytest.mark.parametrize("settings", BOOSTING)
def test_boosting_is_finite_with_weights_of_very_different_sizes(name, settings):
    weights = _mixtures()[name]
    frame = pd.DataFrame(X).assign(k=pd.Categorical(np.arange(N) * 7 % 90))
    frame.columns = frame.columns.astype(str)
    for kind, rows, y in (
        (GradientBoostingClassifier, X, TWO),
        (GradientBoostingClassifier, X, THREE),
        (GradientBoostingRegressor, X, Y),
        (GradientBoostingRegressor, frame, Y),
    ):
        if settings == "automatic" and rows is frame:
            continue
        model = kind(random_state=0, **BOOSTING[settings])
        model.fit(rows, y, sample_weight=weights)
        predict = model.predict_proba if is_classifier(model) else model.predict
        assert np.isfinite(predict(rows)).all()
        assert np.isfinite(model.train_score_).all()
        assert np.isfinite(model.validation_score_).all()
        assert np.isfinite(model.feature_importances_).all()


@pytest.mark.parametrize("loss", ["absolute_error", "huber", "quantile", "poisson", "gamma"])
@pytest.mark.parametrize("name", _mixtures())
def test_losses_are_finite_with_weights_of_very_different_sizes(loss, name):
    model = GradientBoostingRegressor(n_estimators=15, loss=loss, random_state=0)
    model.fit(X, np.exp(Y), sample_weight=_mixtures()[name])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.train_score_).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mixture", _mixtures())
@pytest.mark.parametrize("name", RELATIVE)
def test_weights_of_very_different_sizes_do_not_give_nan(name, mixture):
    if name == "isolation forest" and mixture == "1e300 and 1e-300":
        return
    model = _fit(RELATIVE[name], _mixtures()[mixture])
    assert np.isfinite(_predict(model)).all()
    if hasattr(model, "feature_importances_"):
        assert np.isfinite(model.feature_importances_).all()


def test_model_fits_a_dominating_row():
    weights = W.copy()
    weights[7] = 1e300
    for model in (RandomForestClassifier(n_estimators=5), GradientBoostingClassifier()):
        assert _fit(model, weights).predict(X[[7]])[0] == THREE[7]
    for model in (DecisionTreeRegressor(), HistGradientBoostingRegressor()):
        np.testing.assert_allclose(_fit(model, weights).predict(X[[7]]), Y[7], rtol=1e-6)


def test_validation_rows_and_scores_accept_any_weights():
    for weights in (W * 1e300, W * 8e307, W * 1e-310):
        expected = HistGradientBoostingClassifier(max_iter=10).fit(X, THREE, X_val=X, y_val=THREE)
        model = HistGradientBoostingClassifier(max_iter=10)
        model.fit(X, THREE, X_val=X, y_val=THREE, sample_weight_val=weights)
        np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X))
        scored = GradientBoostingClassifier(n_estimators=10, scoring="neg_log_loss")
        scored.fit(X, THREE, eval_set=(X, THREE, weights))
        assert np.isfinite(scored.validation_score_).all()
        folds = GradientBoostingRegressor(n_folds=3, random_state=0).fit(X, Y, weights)
        assert np.isfinite(folds.predict_interval(X)).all()


def test_weights_that_cannot_be_scaled_raise():
    forest = RandomForestClassifier(n_estimators=3, max_samples=0.5)
    for weights in (W * 1e300, W * 8e307, W * 1e70):
        with pytest.raises(ValueError, match=r"sample_weight: max_samples=0\.5 of their sum"):
            forest.fit(X, THREE, weights)
    for model in (C45Classifier(), ID3Classifier(discretizer=3)):
        with pytest.raises(ValueError, match="sample_weight must sum to at most"):
            model.fit(X, THREE, W * 8e307)
    for kind in (GradientBoostingClassifier, RandomForestClassifier, DecisionTreeClassifier):
        with pytest.raises(ValueError, match="sample_weight times class_weight must be finite"):
            kind(class_weight={0: 1e300, 1: 1, 2: 1}).fit(X, THREE, W * 1e70)
    with pytest.raises(ValueError, match="rows of positive sample_weight"):
        IsolationForest().fit(X, sample_weight=np.where(np.arange(N) % 2, 1e300, 1e-300))


def test_ordinary_weights_are_not_scaled():
    for weights in (W, W * 1e70, W * 1e-70, np.zeros(3), np.empty(0)):
        same, exponent = scale_extreme(weights)
        assert same is weights
        assert exponent == 0
    for weights in (W * 1e80, W * 1e-80, W * 8e307, np.array([5e-324])):
        scaled, exponent = scale_extreme(weights)
        np.testing.assert_array_equal(np.ldexp(scaled, exponent), weights)
        assert 2.0**-34 < scaled.max() < 2.0**33


def test_draws_without_replacement_with_dominating_weights():
    weights = np.array([1e15, 1.0, 2.0, 3.0, 4.0])
    second_counts = np.zeros(5)
    pair_counts = np.zeros((5, 5))
    n = 4000
    for seed in range(n):
        rows = _core.draw_bag(5, 4, False, weights, 1, seed)
        assert rows[0] == 0
        assert len(set(rows.tolist())) == 4
        second_counts[rows[1]] += 1
        pair_counts[rows[1], rows[2]] += 1
    expected = np.array([0, 0.1, 0.2, 0.3, 0.4])
    assert np.abs(second_counts / n - expected).max() < 4 * np.sqrt(0.25 / n)
    expected_pairs = (
        expected / (1 - expected[:, None]) * expected[:, None]
    )  # relative to the remaining weight
    expected_pairs[np.eye(5, dtype=bool)] = 0
    assert np.abs(pair_counts / n - expected_pairs).max() < 4 * np.sqrt(0.25 / n)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weights_with_heavy_row = np.where(np.arange(N) == 7, 1e300, W)
        forest = IsolationForest(n_estimators=5, random_state=0).fit(
            X, sample_weight=weights_with_heavy_row
        )
        unweighted = IsolationForest(n_estimators=5, random_state=0).fit(X)
    assert forest.max_samples_ == N
    assert np.corrcoef(forest.score_samples(X), unweighted.score_samples(X))[0, 1] > 0.8
