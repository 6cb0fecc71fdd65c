"""Bagging: trees of Spinney in the core, other estimators through scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import sklearn.ensemble
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinney.ensemble import BaggingClassifier, BaggingRegressor
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)


def classes(n=300, seed=0):
    return make_classification(n, 10, n_informative=5, n_classes=3, random_state=seed)


@pytest.mark.parametrize("base", [None, DecisionTreeClassifier(max_depth=3), ExtraTreeClassifier()])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_features": 0.5, "max_samples": 0.6},
        {"bootstrap": False, "max_samples": 50, "bootstrap_features": True},
    ],
)
def test_prediction_is_the_mean_of_the_trees(base, options):
    X, y = classes()
    model = BaggingClassifier(base, n_estimators=8, random_state=0, **options).fit(X, y)
    assert model._is_native()
    mean = np.mean(
        [
            tree.predict_proba(X[:, columns])
            for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True)
        ],
        axis=0,
    )
    np.testing.assert_allclose(model.predict_proba(X), mean, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), mean.argmax(axis=1))
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))


def test_samples_equal_those_of_scikit_learn():
    X, y = classes()
    options = {"n_estimators": 5, "max_samples": 0.7, "max_features": 0.5, "random_state": 3}
    ours = BaggingClassifier(**options).fit(X, y)
    theirs = sklearn.ensemble.BaggingClassifier(**options).fit(X, y)
    for a, b in zip(ours.estimators_samples_, theirs.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(ours.estimators_features_, theirs.estimators_features_, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [t.random_state for t in ours.estimators_] == [
        t.random_state for t in theirs.estimators_
    ]


@pytest.mark.parametrize("base", [None, ExtraTreeRegressor(), DecisionTreeRegressor(max_depth=4)])
def test_out_of_bag_scores_of_regression(base):
    X, y = load_diabetes(return_X_y=True)
    model = BaggingRegressor(base, n_estimators=25, oob_score=True, random_state=0).fit(X, y)
    total = np.zeros(len(X))
    counts = np.zeros(len(X))
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out_of_bag = np.setdiff1d(np.arange(len(X)), rows)
        total[out_of_bag] += tree.predict(X[out_of_bag])
        counts[out_of_bag] += 1
    np.testing.assert_allclose(model.oob_prediction_, total / counts)
    assert model.oob_score_ == pytest.approx(r2_score(y, total / counts))
    assert model.oob_curve_[-1] == pytest.approx(model.oob_score_)
    np.testing.assert_allclose(
        model.predict(X), np.mean([tree.predict(X) for tree in model.estimators_], axis=0)
    )


def test_out_of_bag_scores_of_classification():
    X, y = classes()
    model = BaggingClassifier(n_estimators=30, oob_score=True, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.oob_decision_function_.sum(axis=1), 1.0)
    assert model.oob_score_ == accuracy_score(y, model.oob_decision_function_.argmax(axis=1))
    assert abs(model.oob_score_ - model.score(*classes(300, 0))) < 0.3
    with pytest.warns(UserWarning, match="OOB scores"):
        few = BaggingClassifier(n_estimators=1, oob_score=True, random_state=0).fit(X, y)
    assert np.isnan(few.oob_decision_function_).any()
    with_metric = BaggingClassifier(n_estimators=9, oob_score=lambda a, b: 7.0, random_state=0)
    assert with_metric.fit(X, y).oob_score_ == 7.0


def test_threads_and_warm_start_give_the_same_bits():
    X, y = classes()
    one_thread = BaggingClassifier(n_estimators=6, random_state=0, n_jobs=1).fit(X, y)
    two_threads = BaggingClassifier(n_estimators=6, random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(one_thread.predict_proba(X), two_threads.predict_proba(X))
    continued = BaggingClassifier(n_estimators=2, random_state=0, warm_start=True).fit(X, y)
    continued.set_params(n_estimators=6).fit(X, y)
    np.testing.assert_array_equal(one_thread.predict_proba(X), continued.predict_proba(X))
    np.testing.assert_array_equal(
        one_thread.estimators_samples_[5], continued.estimators_samples_[-1]
    )


@pytest.mark.parametrize(
    "base",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        KNeighborsClassifier(3),
        sklearn.tree.DecisionTreeClassifier(max_depth=2),
    ],
)
def test_other_base_estimators_equal_scikit_learn(base):
    X, y = classes()
    options = {"n_estimators": 4, "random_state": 0}
    ours = BaggingClassifier(base, **options).fit(X, y)
    theirs = sklearn.ensemble.BaggingClassifier(base, **options).fit(X, y)
    assert not ours._is_native()
    np.testing.assert_array_equal(ours.predict_proba(X), theirs.predict_proba(X))
    hard = BaggingClassifier(base, voting="hard", **options).fit(X, y)
    votes = np.zeros((len(X), 3))
    for learner in hard.estimators_:
        votes[np.arange(len(X)), learner.predict(X)] += 1
    np.testing.assert_allclose(hard.predict_proba(X), votes / 4)
    X, y = load_diabetes(return_X_y=True)
    np.testing.assert_array_equal(
        BaggingRegressor(Ridge(), **options).fit(X, y).predict(X),
        sklearn.ensemble.BaggingRegressor(Ridge(), **options).fit(X, y).predict(X),
    )


def test_refit_with_another_base_estimator():
    X, y = classes()
    model = BaggingClassifier(n_estimators=3, random_state=0).fit(X, y)
    model.set_params(estimator=KNeighborsClassifier()).fit(X, y)
    assert isinstance(model.estimators_[0], KNeighborsClassifier)
    model.set_params(estimator=DecisionTreeClassifier()).fit(X, y)
    assert isinstance(model.estimators_[0], DecisionTreeClassifier)


def test_hard_voting_counts_the_trees():
    X, y = classes()
    base = DecisionTreeClassifier(max_depth=2)
    model = BaggingClassifier(base, n_estimators=7, voting="hard", random_state=0).fit(X, y)
    votes = np.zeros((len(X), 3))
    for tree in model.estimators_:
        votes[np.arange(len(X)), tree.predict(X).astype(int)] += 1
    np.testing.assert_allclose(model.predict_proba(X), votes / 7)


def test_bagging_with_categories_and_missing_values():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": rng.choice(list("abcdef"), 400), "x": rng.normal(size=400)})
    y = frame["c"].isin(["a", "d"]).to_numpy() ^ (frame["x"].to_numpy() > 1)
    frame.loc[rng.random(400) < 0.1, "x"] = np.nan
    model = BaggingClassifier(n_estimators=20, random_state=0).fit(frame[:300], y[:300])
    assert model.score(frame[300:], y[300:]) > 0.9
    one_column = BaggingClassifier(n_estimators=20, max_features=1, random_state=0).fit(frame, y)
    assert one_column.predict(frame).shape == (400,)
    tree, columns = one_column.estimators_[0], one_column.estimators_features_[0]
    assert tree.n_features_in_ == len(columns) == 1


def test_parameters_of_the_tree_are_used():
    X, y = classes()
    base = DecisionTreeClassifier(max_depth=2, min_samples_leaf=9, class_weight="balanced")
    model = BaggingClassifier(base, n_estimators=3, random_state=0).fit(X, y)
    for tree in model.estimators_:
        assert tree.get_depth() <= 2
        assert tree.tree_.n_node_samples.min() >= 9
    with pytest.raises(ValueError, match="max_depth"):
        BaggingClassifier(clone(base).set_params(max_depth=-1)).fit(X, y)
    with pytest.raises(ValueError, match="max_features"):
        BaggingClassifier(max_features=11).fit(X, y)
    with pytest.raises(ValueError, match="a callable is supported only for Spinney"):
        BaggingClassifier(KNeighborsClassifier(), oob_score=accuracy_score).fit(X, y)


def test_several_outputs_are_predicted():
    X, y = load_diabetes(return_X_y=True)
    Y = np.column_stack([y, -y])
    model = BaggingRegressor(n_estimators=5, random_state=0).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    np.testing.assert_allclose(model.predict(X)[:, 0], -model.predict(X)[:, 1])
