"""Early stopping by a score, custom losses and histogram boosters."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor as PeerRegressor
from sklearn.metrics import get_scorer, make_scorer, mean_absolute_error, roc_auc_score
from sklearn.model_selection import train_test_split

from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from support.workers import split_rows

PLAIN = {"n_estimators": 60, "early_stopping": True, "n_folds": 1, "random_state": 3}


# ------------------------------------------------------------------------------- any score


def test_score_decides_when_to_stop():
    X, y = load_breast_cancer(return_X_y=True)
    X, X_validation, y, y_validation = train_test_split(X, y, random_state=1)
    model = GradientBoostingClassifier(
        **PLAIN, scoring="roc_auc", n_iter_no_change=5, max_leaf_nodes=4
    ).fit(X, y, eval_set=(X_validation, y_validation))
    unstopped = GradientBoostingClassifier(n_estimators=60, max_leaf_nodes=4).fit(X, y)
    scores = [
        roc_auc_score(y_validation, p[:, 1]) for p in unstopped.staged_predict_proba(X_validation)
    ]
    np.testing.assert_allclose(model.validation_score_, scores[: len(model.validation_score_)])
    assert model.n_estimators_ == np.argmax(model.validation_score_) + 1 < 60
    np.testing.assert_array_equal(
        model.predict_proba(X), list(unstopped.staged_predict_proba(X))[model.n_estimators_ - 1]
    )


def test_custom_scorer_receives_weights():
    X, y = load_diabetes(return_X_y=True)
    weights = np.random.default_rng(0).uniform(size=len(y))
    calls = []

    def score(estimator, X, y, sample_weight=None):
        calls.append((len(X), sample_weight is not None))
        return -mean_absolute_error(y, estimator.predict(X), sample_weight=sample_weight)

    by_function = GradientBoostingRegressor(**PLAIN, scoring=score).fit(X, y, weights)
    assert set(calls) == {(45, True)}
    by_name = GradientBoostingRegressor(**PLAIN, scoring="neg_mean_absolute_error")
    by_name.fit(X, y, weights)
    np.testing.assert_array_equal(by_function.validation_score_, by_name.validation_score_)
    np.testing.assert_array_equal(by_function.predict(X), by_name.predict(X))


def test_score_on_training_rows():
    X, y = load_diabetes(return_X_y=True)
    model = GradientBoostingRegressor(
        **{**PLAIN, "n_estimators": 12}, scoring="r2", validation_fraction=None
    ).fit(X, y)
    scores = [get_scorer("r2")._score_func(y, p) for p in model.staged_predict(X)]
    np.testing.assert_allclose(model.train_score_, scores)


def test_score_is_the_average_over_folds():
    X, y = load_diabetes(return_X_y=True)
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    model = GradientBoostingRegressor(scoring=scorer, n_folds=3, random_state=0).fit(X, y)
    with_one_thread = GradientBoostingRegressor(
        scoring=scorer, n_folds=3, random_state=0, n_jobs=1
    ).fit(X, y)
    np.testing.assert_array_equal(model.validation_score_, with_one_thread.validation_score_)
    assert -60 < model.validation_score_.max() < -35


def test_warm_start_with_a_score_equals_one_fit():
    X, y = load_diabetes(return_X_y=True)
    one_fit = GradientBoostingRegressor(**PLAIN, scoring="r2", n_iter_no_change=60).fit(X, y)
    continued = GradientBoostingRegressor(
        **{**PLAIN, "n_estimators": 5}, scoring="r2", n_iter_no_change=60, warm_start=True
    ).fit(X, y)
    assert continued.n_estimators_ == 5
    continued.set_params(n_estimators=60).fit(X, y)
    np.testing.assert_allclose(continued.validation_score_, one_fit.validation_score_)


def test_validation_rows_do_not_change_the_bins():
    X, y = load_diabetes(return_X_y=True)
    inside = GradientBoostingRegressor(**PLAIN).fit(X, y)
    ((train, validation),) = split_rows(len(y), 1, 0.1, seed=inside._continuation.seed)
    assert len(validation) == np.ceil(0.1 * len(y))
    outside = GradientBoostingRegressor(**PLAIN).fit(
        X[train], y[train], eval_set=(X[validation], y[validation])
    )
    np.testing.assert_allclose(inside.predict(X), outside.predict(X))


# ---------------------------------------------------------------------------------- classes


def logistic(y, raw):
    p = 1 / (1 + np.exp(-raw))
    return p - y, p * (1 - p)


def test_custom_loss_for_two_classes():
    X, y = load_breast_cancer(return_X_y=True)
    custom = GradientBoostingClassifier(loss=logistic, n_estimators=20).fit(X, y)
    built_in = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    np.testing.assert_allclose(custom.predict_proba(X), built_in.predict_proba(X), rtol=1e-5)
    with pytest.raises(ValueError, match="a function needs 2 classes; y has 3"):
        GradientBoostingClassifier(loss=logistic).fit(X, np.arange(len(y)) % 3)


@pytest.mark.parametrize("kind", [GradientBoostingClassifier, HistGradientBoostingClassifier])
def test_single_class_is_always_predicted(kind):
    X, y = load_breast_cancer(return_X_y=True)
    model = kind().fit(X, np.full(len(y), "only"))
    assert set(model.predict(X)) == {"only"}
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(X), 1)))
    with pytest.raises(ValueError, match="several classes"):
        model.scorer()


def test_rows_of_equal_targets_are_not_split():
    X = np.arange(200.0)[:, np.newaxis]
    y = (X[:, 0] > 120).astype(int)
    for bins in (255, None):
        model = GradientBoostingClassifier(
            n_estimators=1, min_samples_leaf=1, max_leaf_nodes=31, max_bins=bins
        ).fit(X, y)
        assert len(np.unique(model.apply(X))) == 2


# ------------------------------------------------------------- histogram boosters of scikit-learn


def test_infinities_are_beyond_finite_values():
    X = np.array([-np.inf, 0, 1, np.inf, np.nan])[:, np.newaxis]
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    model = HistGradientBoostingRegressor(min_samples_leaf=1, l2_regularization=0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)
    np.testing.assert_allclose(model.predict([[1e99]]), [2.0], atol=1e-3)
    of_frame = HistGradientBoostingRegressor(min_samples_leaf=1).fit(pd.DataFrame(X), y)
    np.testing.assert_allclose(of_frame.predict(pd.DataFrame(X)), y, atol=1e-3)
    with pytest.raises(ValueError, match="infinity"):
        GradientBoostingRegressor().fit(X, y)


def test_negative_categories_are_missing():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 5, size=(500, 1)).astype(float)
    y = X[:, 0] ** 2
    model = HistGradientBoostingRegressor(categorical_features=[0], max_iter=50).fit(X, y)
    assert model.categories_[0].tolist() == [0, 1, 2, 3, 4]
    predicted = model.predict([[-1], [-2], [np.nan], [-77]])
    np.testing.assert_array_equal(predicted, predicted[0])
    with pytest.raises(ValueError, match="at index 0 is expected to have a cardinality <= 3"):
        model.set_params(max_bins=3).fit(X, y)


def test_predictors_equal_the_model():
    X, y = load_diabetes(return_X_y=True)
    X[::7, 2] = np.nan
    model = HistGradientBoostingRegressor(max_iter=30).fit(X, y)
    no_categories = np.zeros((0, 8), dtype=np.uint32)
    raw = np.full(len(X), model._baseline_prediction[0, 0])
    for (predictor,) in model._predictors:
        raw += predictor.predict(X, no_categories, np.zeros(X.shape[1], dtype=np.uint32), 1)
    np.testing.assert_allclose(raw, model.predict(X))
    peer = PeerRegressor(max_iter=30).fit(X, y)
    assert model._predictors[0][0].nodes.dtype == peer._predictors[0][0].nodes.dtype
    assert abs(model.score(X, y) - peer.score(X, y)) < 0.03


def test_predictors_encode_categories_by_value():
    X = np.array([[0.0], [2.0], [4.0], [1.0], [3.0]] * 40)
    y = (X[:, 0] % 2 == 0).astype(int)
    model = HistGradientBoostingClassifier(max_iter=1, categorical_features=[0]).fit(X, y)
    predictor = model._predictors[0][0]
    assert predictor.raw_left_cat_bitsets[0].tolist() in ([21] + [0] * 7, [10] + [0] * 7)
    assert predictor.nodes["gain"][0] > 0
