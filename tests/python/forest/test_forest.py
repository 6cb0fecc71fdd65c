"""Random forests and extra trees against their trees and slow references."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_diabetes, make_classification, make_friedman1
from sklearn.metrics import accuracy_score, balanced_accuracy_score, r2_score

from spinney.datasets import load_spam
from spinney.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor]
FORESTS = CLASSIFIERS + REGRESSORS


def data_for(cls, n=400, seed=0):
    if issubclass(cls, tuple(CLASSIFIERS)):
        return make_classification(
            n, 12, n_informative=6, n_classes=3, flip_y=0.1, random_state=seed
        )
    return make_friedman1(n, 12, noise=1.0, random_state=seed)


@contextmanager
def without_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def output(model, X):
    return model.predict_proba(X) if is_classifier(model) else model.predict(X)


# ------------------------------------------------------------------------------ published errors


def test_errors_on_spam_equal_published_ones():
    X, y = load_spam(return_X_y=True, split="train")
    X_test, y_test = load_spam(return_X_y=True, split="test")
    forest = RandomForestClassifier(300, oob_score=True, random_state=0).fit(X, y)
    error = 1 - forest.score(X_test, y_test)
    assert error < 0.055  # ESL: 4.9 %
    assert abs(forest.oob_score_ - (1 - error)) < 0.015
    bagging = BaggingClassifier(n_estimators=100, random_state=0).fit(X, y)
    assert abs(1 - bagging.score(X_test, y_test) - 0.054) < 0.012  # ESL: 5.4 %


# ------------------------------------------------------------------------------- reproducibility


@pytest.mark.parametrize("cls", FORESTS)
def test_number_of_threads_does_not_change_bits(cls):
    X, y = data_for(cls, 1500)
    models = [
        cls(8, random_state=3, n_jobs=n_jobs, bootstrap=True, oob_score=True).fit(X, y)
        for n_jobs in (1, 2, 7)
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(output(model, X), output(models[0], X))
        np.testing.assert_array_equal(model.oob_curve_, models[0].oob_curve_)
        np.testing.assert_array_equal(model._out_of_bag.sums, models[0]._out_of_bag.sums)
        assert pickle.dumps(model.fitted_model().store) == pickle.dumps(
            models[0].fitted_model().store
        )


@pytest.mark.parametrize("cls", FORESTS)
def test_trees_do_not_depend_on_the_number_of_trees(cls):
    X, y = data_for(cls)
    few, many = (cls(n, random_state=1).fit(X, y) for n in (3, 9))
    for tree_of_few, tree_of_many in zip(few.estimators_, many.estimators_[:3], strict=True):
        np.testing.assert_array_equal(tree_of_few.tree_.threshold, tree_of_many.tree_.threshold)
        np.testing.assert_array_equal(tree_of_few.tree_.value, tree_of_many.tree_.value)


@pytest.mark.parametrize("cls", FORESTS)
@pytest.mark.parametrize("oob_score", [False, True])
def test_warm_start_equals_one_fit(cls, oob_score):
    X, y = data_for(cls)
    one_fit = cls(10, random_state=1, bootstrap=True, oob_score=oob_score).fit(X, y)
    continued = cls(4, random_state=1, bootstrap=True, oob_score=oob_score, warm_start=True).fit(
        X, y
    )
    first = continued.estimators_[0]
    continued.set_params(n_estimators=10).fit(X, y)
    assert continued.estimators_[0] is first
    np.testing.assert_array_equal(output(one_fit, X), output(continued, X))
    if oob_score:
        assert one_fit.oob_score_ == continued.oob_score_
        np.testing.assert_array_equal(one_fit.oob_curve_, continued.oob_curve_)


def test_warm_start_that_adds_oob_score():
    X, y = data_for(RandomForestClassifier)
    one_fit = RandomForestClassifier(10, random_state=1, oob_score=True).fit(X, y)
    continued = RandomForestClassifier(4, random_state=1, warm_start=True).fit(X, y)
    continued.set_params(n_estimators=10, oob_score=True).fit(X, y)
    np.testing.assert_allclose(one_fit.oob_decision_function_, continued.oob_decision_function_)


def test_warm_start_with_other_columns_or_fewer_trees():
    X, y = data_for(RandomForestClassifier)
    model = RandomForestClassifier(4, warm_start=True, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="larger or equal"):
        model.set_params(n_estimators=2).fit(X, y)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.set_params(n_estimators=4).fit(X, y)
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X).astype({0: str})
    with pytest.raises(ValueError, match="warm_start: expected the columns"):
        model.set_params(n_estimators=6).fit(frame.rename(columns=str), y)


@pytest.mark.parametrize("cls", FORESTS)
def test_refitted_tree_equals_the_tree_of_the_forest(cls):
    X, y = data_for(cls, 150)
    y = np.round(y)  # sums of integers are exact in any order
    forest = cls(3, max_features=0.5, bootstrap=True, random_state=0).fit(X, y)
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(forest) else y
    for tree, rows in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        refitted = clone(tree).fit(X[rows], codes[rows])
        np.testing.assert_array_equal(tree.tree_.feature, refitted.tree_.feature)
        np.testing.assert_allclose(tree.tree_.value, refitted.tree_.value, rtol=1e-12)
        np.testing.assert_allclose(tree.tree_.threshold, refitted.tree_.threshold, rtol=1e-6)
        np.testing.assert_allclose(
            tree.tree_.impurity, refitted.tree_.impurity, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_array_equal(
            tree.tree_.weighted_n_node_samples, refitted.tree_.weighted_n_node_samples
        )


# ------------------------------------------------------------------------------------ predictions


@pytest.mark.parametrize("cls", FORESTS)
@pytest.mark.parametrize("min_samples_leaf", [1, 5])
def test_prediction_is_the_mean_of_the_trees(cls, min_samples_leaf):
    X, y = data_for(cls)
    model = cls(20, random_state=0, min_samples_leaf=min_samples_leaf).fit(X, y)
    mean = np.mean([output(tree, X) for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(output(model, X), mean, rtol=1e-12)
    if is_classifier(model):
        np.testing.assert_array_equal(model.predict(X), mean.argmax(axis=1))
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(
                model.predict_log_proba(X), np.log(model.predict_proba(X))
            )


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_hard_voting_counts_the_trees(cls):
    X, y = data_for(cls)
    model = cls(15, max_depth=3, voting="hard", random_state=0).fit(X, y)
    votes = np.zeros((len(X), 3))
    for tree in model.estimators_:
        votes[np.arange(len(X)), tree.predict(X).astype(int)] += 1
    np.testing.assert_allclose(model.predict_proba(X), votes / 15)
    soft = clone(model).set_params(voting="soft").fit(X, y)
    assert not np.array_equal(soft.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("cls", FORESTS)
def test_apply_and_decision_path_equal_those_of_the_trees(cls):
    X, y = data_for(cls)
    model = cls(5, max_depth=4, random_state=0).fit(X, y)
    leaves = model.apply(X)
    paths, starts = model.decision_path(X)
    assert paths.shape == (len(X), starts[-1])
    for t, tree in enumerate(model.estimators_):
        np.testing.assert_array_equal(leaves[:, t], tree.apply(X))
        tree_paths = paths[:, starts[t] : starts[t + 1]]
        assert (tree_paths != tree.decision_path(X)).nnz == 0
        assert tree_paths.shape[1] == tree.tree_.node_count


def test_several_outputs_average_the_trees():
    X, y = make_classification(300, 10, n_informative=6, n_classes=3, random_state=0)
    Y = np.column_stack([y, (X[:, 0] > 0).astype(int), np.array(["a", "b"])[y % 2] == "a"])
    for cls in CLASSIFIERS:
        model = cls(10, random_state=0, bootstrap=True).fit(X, Y)
        probabilities = model.predict_proba(X)
        assert [p.shape[1] for p in probabilities] == [3, 2, 2]
        trees = [tree.predict_proba(X) for tree in model.estimators_]
        for k, p in enumerate(probabilities):
            np.testing.assert_allclose(p, np.mean([tree[k] for tree in trees], axis=0))
        assert (model.predict(X) == Y).mean() > 0.95
    Z = np.column_stack([X[:, 0] + X[:, 1], X[:, 2] ** 2])
    for cls in REGRESSORS:
        model = cls(20, random_state=0, bootstrap=True, oob_score=True).fit(X, Z)
        mean = np.mean([tree.predict(X) for tree in model.estimators_], axis=0)
        np.testing.assert_allclose(model.predict(X), mean)
        assert model.oob_prediction_.shape == Z.shape
        np.testing.assert_allclose(model.oob_curve_[-1], model.oob_score_)
        assert model.predict_quantiles(X, [0.2, 0.8]).shape == (300, 2, 2)
        assert model.predict_interval(X).shape == (300, 2, 2)


# ------------------------------------------------------------------------------------- out-of-bag


@pytest.mark.parametrize("cls", FORESTS)
def test_out_of_bag_scores_equal_those_of_the_trees(cls):
    X, y = data_for(cls, 200)
    model = cls(15, bootstrap=True, oob_score=True, random_state=0)
    with without_warnings():
        model.fit(X, y)
    total = 0.0
    counts = np.zeros(len(X))
    for k, (tree, rows) in enumerate(
        zip(model.estimators_, model.estimators_samples_, strict=True), start=1
    ):
        out_of_bag = np.setdiff1d(np.arange(len(X)), rows)
        values = np.zeros_like(output(model, X))
        values[out_of_bag] = output(tree, X[out_of_bag])
        total = total + values
        counts[out_of_bag] += 1
        has_score = counts > 0
        if is_classifier(model):
            expected = accuracy_score(y[has_score], total[has_score].argmax(axis=1))
        else:
            expected = r2_score(y[has_score], total[has_score] / counts[has_score])
        assert model.oob_curve_[k - 1] == pytest.approx(expected, rel=1e-9)
    if is_classifier(model):
        mean = total / np.maximum(counts, 1)[:, None]
        np.testing.assert_allclose(model.oob_decision_function_, mean)
        assert model.oob_score_ == accuracy_score(y, mean.argmax(axis=1))
    else:
        np.testing.assert_allclose(model.oob_prediction_, total / np.maximum(counts, 1))
        assert model.oob_score_ == pytest.approx(r2_score(y, total / np.maximum(counts, 1)))


def test_out_of_bag_score_with_any_metric():
    X, y = data_for(RandomForestClassifier)
    model = RandomForestClassifier(60, oob_score=balanced_accuracy_score, random_state=0).fit(X, y)
    expected = balanced_accuracy_score(y, model.oob_decision_function_.argmax(axis=1))
    assert model.oob_score_ == expected


def test_out_of_bag_score_is_near_the_test_score():
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    model = RandomForestRegressor(100, oob_score=True, random_state=0).fit(X[:1000], y[:1000])
    assert abs(model.oob_score_ - model.score(X[1000:], y[1000:])) < 0.03


def test_out_of_bag_score_with_many_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 3000
    frame = pd.DataFrame({"id": rng.integers(0, 400, n).astype(str), "x": rng.normal(size=n)})
    y = (frame["x"] + rng.normal(size=n) > 0).astype(int)
    options = {"random_state": 0, "min_samples_leaf": 2}
    model = RandomForestClassifier(150, oob_score=True, **options).fit(frame[:1000], y[:1000])
    # Rows that determine a tree's order of categories must not be used for its out-of-bag score.
    assert abs(model.oob_score_ - model.score(frame[1000:], y[1000:])) < 0.03
    continued = RandomForestClassifier(60, warm_start=True, **options).fit(frame[:1000], y[:1000])
    continued.set_params(n_estimators=150, oob_score=True).fit(frame[:1000], y[:1000])
    np.testing.assert_allclose(continued.oob_decision_function_, model.oob_decision_function_)


def test_too_few_trees_for_out_of_bag_scores_warn():
    X, y = data_for(RandomForestClassifier)
    with pytest.warns(UserWarning, match="do not have OOB scores"):
        RandomForestClassifier(2, oob_score=True, random_state=0).fit(X, y)


# ------------------------------------------------------------------------------------ importances


@pytest.mark.parametrize("cls", FORESTS)
def test_impurity_importance_is_the_mean_of_the_trees(cls):
    X, y = data_for(cls)
    model = cls(10, random_state=0).fit(X, y)
    mean = np.mean([tree.feature_importances_ for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.feature_importances_, mean / mean.sum(), rtol=1e-9)
    assert model.feature_importances_.sum() == pytest.approx(1.0)


def with_noise(seed=0):
    """Create a weak binary column and a random column with many values."""
    rng = np.random.default_rng(seed)
    binary = rng.integers(0, 2, 600)
    y = np.where(rng.random(600) < 0.7, binary, 1 - binary)
    return np.column_stack([binary, rng.normal(size=600)]), y


@pytest.mark.parametrize("kind", ["corrected", "permutation"])
@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_importances_without_bias_toward_many_values(kind, target):
    X, y = with_noise()
    cls = RandomForestClassifier if target == "classes" else RandomForestRegressor
    biased = cls(200, max_features=1, random_state=0).fit(X, y).feature_importances_
    unbiased = cls(200, max_features=1, random_state=0, importance_type=kind).fit(X, y)
    assert biased[1] > biased[0]  # biased towards the useless column
    useful, useless = unbiased.feature_importances_
    assert useful > 0.02
    assert abs(useless) < 0.25 * useful


@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
def test_corrected_importance_by_hand(cls):
    X, y = data_for(cls, 120)
    model = cls(6, importance_type="corrected", random_state=0).fit(X, y)
    expected = np.zeros((6, X.shape[1]))
    for t, (tree, rows) in enumerate(
        zip(model.estimators_, model.estimators_samples_, strict=True)
    ):
        out_of_bag = np.setdiff1d(np.arange(len(X)), rows)
        nodes = tree.tree_
        stack = [(0, out_of_bag)]
        while stack:
            node, node_rows = stack.pop()
            if nodes.children_left[node] < 0 or len(node_rows) == 0:
                continue
            column = nodes.feature[node]
            left = X[node_rows, column] <= nodes.threshold[node]
            targets = np.eye(len(model.classes_))[y] if is_classifier(model) else y[:, np.newaxis]
            # Use the mean of the out-of-bag rows, not the mean of the tree.
            centred = targets - targets[node_rows].mean(axis=0)
            for child, child_rows in (
                (nodes.children_left[node], node_rows[left]),
                (nodes.children_right[node], node_rows[~left]),
            ):
                change = nodes.value[child, 0] - nodes.value[node, 0]
                expected[t, column] += (change * centred[child_rows]).sum()
                stack.append((child, child_rows))
        expected[t] /= len(out_of_bag)
    np.testing.assert_allclose(
        model.feature_importances_, expected.mean(axis=0), rtol=1e-7, atol=1e-10
    )


def test_out_of_bag_importances_need_bootstrap():
    X, y = data_for(ExtraTreesClassifier)
    with pytest.raises(ValueError, match=r"importance_type='corrected'.*bootstrap=True"):
        ExtraTreesClassifier(importance_type="corrected").fit(X, y)


# -------------------------------------------------------------------------- quantiles, intervals


def quantile_by_hand(values, weights, q):
    order = np.lexsort((weights, values))
    values, weights = np.asarray(values)[order], np.asarray(weights)[order]
    middle = np.cumsum(weights) - weights / 2
    return np.interp(np.asarray(q) * weights.sum(), middle, values)


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("min_samples_leaf", [1, 7])
@pytest.mark.parametrize("bootstrap", [True, False])
def test_quantiles_by_hand(cls, min_samples_leaf, bootstrap):
    X, y = make_friedman1(150, random_state=0)
    y = np.round(y)  # some targets are equal
    model = cls(7, min_samples_leaf=min_samples_leaf, bootstrap=bootstrap, random_state=0).fit(X, y)
    X_new = make_friedman1(20, random_state=1)[0]
    q = [0.0, 0.1, 0.5, 0.77, 1.0]
    predicted = model.predict_quantiles(X_new, q)
    for i, row in enumerate(X_new):
        values, weights = [], []
        for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
            leaf = tree.apply(row[None])[0]
            leaf_targets = y[rows][tree.apply(X[rows]) == leaf]
            if len(np.unique(leaf_targets)) == 1:
                leaf_targets = leaf_targets[:1]
            values += list(leaf_targets)
            weights += [1 / len(leaf_targets)] * len(leaf_targets)
        np.testing.assert_allclose(predicted[i], quantile_by_hand(values, weights, q), atol=1e-9)
    assert np.all(np.diff(predicted, axis=1) >= 0)


def test_quantiles_of_integer_weights_equal_repeated_rows():
    X, y = make_friedman1(100, random_state=0)
    weights = np.random.default_rng(0).integers(1, 4, 100)
    rows = np.repeat(np.arange(100), weights)
    options = {"min_samples_leaf": 10, "max_depth": 2, "random_state": 0}
    weighted = ExtraTreesRegressor(1, **options).fit(X, y, sample_weight=weights)
    if weighted.estimators_[0].tree_.node_count == 1:
        pytest.skip("nothing to compare")
    leaf = weighted.estimators_[0].apply(X)
    repeated_leaf = leaf[rows]
    predicted = weighted.predict_quantiles(X[:5], 0.3)[:, 0]
    for i in range(5):
        leaf_targets = y[rows][repeated_leaf == leaf[i]]
        values, counts = np.unique(leaf_targets, return_counts=True)
        assert predicted[i] == pytest.approx(quantile_by_hand(values, counts / counts.sum(), 0.3))


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_conformal_intervals_have_the_coverage(coverage):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (6000, 4))
    y = X[:, 0] ** 2 + (0.2 + np.abs(X[:, 1])) * rng.standard_t(4, 6000)  # uneven, heavy tails
    model = RandomForestRegressor(100, min_samples_leaf=3, random_state=0).fit(X[:2000], y[:2000])
    interval = model.predict_interval(X[2000:], coverage)
    inside = (interval[:, 0] <= y[2000:]) & (y[2000:] <= interval[:, 1])
    assert abs(inside.mean() - coverage) < 0.02 + 2 * np.sqrt(coverage * (1 - coverage) / 2000)
    width = interval[:, 1] - interval[:, 0]
    assert width[np.abs(X[2000:, 1]) > 1.5].mean() > 1.5 * width[np.abs(X[2000:, 1]) < 0.5].mean()


def test_intervals_of_a_forest_without_bootstrap_need_calibration():
    X, y = make_friedman1(6000, noise=1.0, random_state=0)
    model = ExtraTreesRegressor(50, random_state=0).fit(X[:2000], y[:2000])
    interval = model.predict_interval(X[4000:], 0.8, calibration=(X[2000:4000], y[2000:4000]))
    inside = (interval[:, 0] <= y[4000:]) & (y[4000:] <= interval[:, 1])
    assert abs(inside.mean() - 0.8) < 0.02 + 2 * np.sqrt(0.8 * 0.2 / 2000)
    two_outputs = ExtraTreesRegressor(20, random_state=0).fit(X[:500], np.c_[y, -y][:500])
    intervals = two_outputs.predict_interval(X[:9], calibration=(X[500:900], np.c_[y, -y][500:900]))
    assert intervals.shape == (9, 2, 2)
    with pytest.raises(ValueError, match="calibration: expected one target for each of its 9 rows"):
        model.predict_interval(X, calibration=(X[:9], y[:8]))
    with pytest.raises(ValueError, match="calibration: expected y of shape"):
        two_outputs.predict_interval(X, calibration=(X[:9], y[:9]))
    with pytest.raises(ValueError, match="calibration: y must be numeric"):
        model.predict_interval(X, calibration=(X[:2], ["a", "b"]))
    with pytest.raises(ValueError, match="calibration: y contains NaN"):
        model.predict_interval(X, calibration=(X[:2], [1.0, np.nan]))
    with pytest.raises(ValueError, match=r"calibration: expected \(X, y\)"):
        model.predict_interval(X, calibration=X)
    with pytest.raises(ValueError, match="method='quantile' takes none"):
        model.predict_interval(X, method="quantile", calibration=(X, y))


def test_intervals_of_targets_far_from_zero():
    X, y = make_friedman1(400, random_state=0)
    near = RandomForestRegressor(30, random_state=0).fit(X, np.round(y)).predict_interval(X)
    far = RandomForestRegressor(30, random_state=0).fit(X, np.round(y) + 2.0**40)
    np.testing.assert_allclose(far.predict_interval(X) - 2.0**40, near, atol=0.01)


@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
def test_intervals_of_few_rows_are_infinite(kind):
    X, y = make_friedman1(60, random_state=0)
    forest = kind(200, bootstrap=True, random_state=0).fit(X[:10], y[:10])
    assert np.isinf(forest.predict_interval(X, 0.99)).all()
    assert np.isfinite(forest.predict_interval(X, 0.8)).all()
    assert np.isinf(forest.predict_interval(X, 0.8, calibration=(X[10:15], y[10:15]))).all()


def test_impossible_intervals_raise():
    X, y = make_friedman1(60, random_state=0)
    with pytest.raises(ValueError, match="got 1 with 3 rows and 5 trees; fit more rows"):
        RandomForestRegressor(5, random_state=3).fit(X[:3], y[:3]).predict_interval(X)
    large = RandomForestRegressor(5, random_state=0).fit(X, y * 1e160)
    with pytest.raises(ValueError, match="divide y by a power of ten"):
        large.predict_interval(X)


def test_methods_of_intervals():
    X, y = load_diabetes(return_X_y=True)
    forest = RandomForestRegressor(30, random_state=0).fit(X, y)
    by_quantiles = forest.predict_interval(X[:9], 0.8, method="quantile")
    np.testing.assert_array_equal(by_quantiles, forest.predict_quantiles(X[:9], [0.1, 0.9]))
    np.testing.assert_array_equal(
        forest.predict_interval(X[:9], 0.8), forest.predict_interval(X[:9], 0.8, "conformal")
    )
    without_bootstrap = ExtraTreesRegressor(30, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="coverage is lower than requested"):
        assert without_bootstrap.predict_interval(X[:9]).shape == (9, 2)
    with pytest.raises(ValueError, match="bootstrap=True"):
        without_bootstrap.predict_interval(X[:9], method="conformal")
    for coverage in (90, "0.9", None, [0.5, 0.9]):
        with pytest.raises(ValueError, match="coverage: expected a number between 0 and 1, got"):
            forest.predict_interval(X, coverage)
    with pytest.raises(ValueError, match="q: expected levels"):
        forest.predict_quantiles(X, [0.5, 1.5])
    with pytest.raises(ValueError, match="method: expected"):
        forest.predict_interval(X, method="guess")


# -------------------------------------------------------------- categories, missing values, input


@pytest.mark.parametrize("cls", FORESTS)
def test_forests_with_categories_and_missing_values(cls):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 600
    town = rng.choice([f"t{i}" for i in range(40)], n)
    effect = {f"t{i}": i % 2 for i in range(40)}
    x = rng.normal(size=n)
    signal_ = np.array([effect[t] for t in town]) + (x > 0)
    frame = pd.DataFrame({"town": pd.Categorical(town), "x": x, "noise": rng.normal(size=n)})
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    frame.loc[rng.random(n) < 0.05, "town"] = None
    y = signal_ if issubclass(cls, tuple(CLASSIFIERS)) else signal_ + rng.normal(size=n) * 0.1
    model = cls(60, random_state=0).fit(frame[:400], y[:400])
    assert model.score(frame[400:], y[400:]) > 0.6
    as_text = frame[400:].astype({"town": object})
    np.testing.assert_array_equal(output(model, frame[400:]), output(model, as_text))
    unseen = frame[400:420].copy()
    unseen["town"] = "elsewhere"  # unseen in fit: treated as missing
    missing = unseen.copy()
    missing["town"] = None
    np.testing.assert_array_equal(
        output(model, unseen), output(model, missing.astype({"town": object}))
    )
    codes = frame[400:].assign(town=frame["town"].cat.codes[400:])
    with pytest.raises(ValueError, match="town"):
        model.predict(codes)


def test_many_rare_categories_do_not_overfit():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 1000
    frame = pd.DataFrame({"id": rng.integers(0, 500, n).astype(str), "x": rng.normal(size=n)})
    y = (frame["x"] + 0.5 * rng.normal(size=n) > 0).astype(int)
    model = RandomForestClassifier(100, random_state=0).fit(frame[:500], y[:500])
    without = RandomForestClassifier(100, random_state=0).fit(frame[["x"]][:500], y[:500])
    with_id = model.score(frame[500:], y[500:])
    assert with_id > without.score(frame[["x"]][500:], y[500:]) - 0.03


def test_float64_neighbours_are_separated():
    x = np.array([1.0, np.nextafter(1.0, 2.0)])
    X = np.repeat(x, 20)[:, None]
    y = np.repeat([0, 1], 20)
    for cls in CLASSIFIERS:
        model = cls(5, bootstrap=False, random_state=0).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), y)
        assert pickle.loads(pickle.dumps(model)).score(X, y) == 1.0


@pytest.mark.parametrize("cls", FORESTS)
def test_invalid_input_raises(cls):
    X, y = data_for(cls, 50)
    infinite = X.copy()
    infinite[3, 2] = np.inf
    model = cls(3, random_state=0).fit(X, y)
    for call in (lambda: cls(3).fit(infinite, y), lambda: model.predict(infinite)):
        with pytest.raises(ValueError, match="infinity"):
            call()
    with pytest.raises(ValueError, match="12"):
        model.predict(X[:, :5])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cls(3).fit(X, y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        cls(3).fit(X, np.where(np.arange(50) == 1, np.nan, y))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        cls(3).fit(X, y, sample_weight=-np.ones(50))
    with pytest.raises(ValueError, match="non-zero"):
        cls(3).fit(X, y, sample_weight=np.zeros(50))
    with pytest.raises(ValueError, match="bootstrap"):
        cls(3, bootstrap=False, oob_score=True).fit(X, y)
    with pytest.raises(ValueError, match="max_sample"):
        cls(3, bootstrap=False, max_samples=10).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators"):
        cls(0).fit(X, y)
    with pytest.raises(AttributeError, match="not fitted"):
        cls().estimators_  # noqa: B018


@pytest.mark.parametrize("cls", FORESTS)
def test_small_and_unusual_tables(cls):
    one_row = cls(5, random_state=0).fit([[1.0, 2.0]], [3])
    assert one_row.predict([[9.0, 9.0]])[0] == 3
    constant = cls(5, random_state=0).fit(np.ones((10, 3)), np.arange(10) % 2)
    assert np.isfinite(output(constant, np.ones((2, 3)))).all()
    doubled = np.column_stack([np.arange(20.0)] * 5)
    model = cls(20, bootstrap=False, random_state=0).fit(doubled, np.arange(20) // 10)
    assert model.score(doubled, np.arange(20) // 10) == 1.0
    huge = np.array([[1e300], [-1e300], [1e-300], [0.0]])
    model = cls(20, bootstrap=False, random_state=0).fit(huge, [0, 1, 2, 2])
    assert (model.predict(huge) == [0, 1, 2, 2]).all()
    all_missing = cls(5, random_state=0).fit(np.full((20, 2), np.nan), np.arange(20) % 2)
    assert np.isfinite(output(all_missing, np.full((2, 2), np.nan))).all()


@pytest.mark.parametrize("cls", [*FORESTS, BaggingClassifier, IsolationForest])
def test_uninformative_categories(cls):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "same": pd.Categorical(["a"] * 60),
            "none": pd.Categorical([None] * 60, categories=["q"]),
            "x": np.arange(60.0),
        }
    )
    model = cls(n_estimators=10, random_state=0).fit(frame, np.arange(60) // 30)
    assert model.predict(frame).shape == (60,)


def test_single_class_is_always_predicted():
    X, _ = data_for(RandomForestClassifier)
    model = RandomForestClassifier(3, oob_score=True, random_state=0)
    with without_warnings():
        model.fit(X, ["yes"] * len(X))
    assert (model.predict(X) == "yes").all()
    assert model.oob_score_ == 1.0


# ---------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("cls", FORESTS)
def test_rows_of_weight_zero_are_ignored(cls):
    X, y = data_for(cls, 200)
    weights = np.random.default_rng(0).integers(0, 2, 200).astype(float)
    kept = weights > 0
    model = cls(8, bootstrap=False, random_state=0).fit(X, y, sample_weight=weights)
    without_rows = cls(8, bootstrap=False, random_state=0).fit(X[kept], y[kept])
    np.testing.assert_allclose(output(model, X), output(without_rows, X), rtol=1e-12)
    resampled = cls(8, bootstrap=True, random_state=0).fit(X, y, sample_weight=weights)
    for rows in resampled.estimators_samples_:
        assert kept[rows].all()


def test_weights_are_resampling_probabilities():
    X, y = data_for(RandomForestClassifier, 100)
    weights = np.linspace(0.0, 3.0, 100)
    model = RandomForestClassifier(400, max_depth=1, random_state=0)
    model.fit(X, y, sample_weight=weights)
    counts = np.bincount(np.concatenate(model.estimators_samples_), minlength=100)
    expected = 400 * 100 * weights / weights.sum()
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected) + 1e-9)


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample", {0: 1, 1: 20}])
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_class_weights_help_the_rare_class(cls, class_weight):
    X, y = make_classification(1500, 8, weights=[0.95], flip_y=0.05, random_state=0)
    plain = cls(50, max_depth=4, bootstrap=True, random_state=0).fit(X[:800], y[:800])
    weighted = clone(plain).set_params(class_weight=class_weight).fit(X[:800], y[:800])
    rare = y[800:] == 1
    assert weighted.predict(X[800:])[rare].mean() > plain.predict(X[800:])[rare].mean() + 0.1


def test_max_samples_is_a_fraction_or_a_number():
    X, y = data_for(RandomForestClassifier, 200)
    for max_samples, n in ((0.25, 50), (30, 30), (None, 200), (2.0, 400)):
        model = RandomForestClassifier(3, max_samples=max_samples, random_state=0).fit(X, y)
        assert [len(rows) for rows in model.estimators_samples_] == [n] * 3


# ---------------------------------------------------------------------------------- tree growth


def test_coarse_splits_of_large_nodes_are_nearly_optimal():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + rng.normal(size=20_000) > 0.3).astype(int)
    for labels, forest, tree in (
        (y, RandomForestClassifier, DecisionTreeClassifier),
        (X[:, 0] * 3 + y, RandomForestRegressor, DecisionTreeRegressor),
    ):
        coarse = forest(1, max_depth=1, max_features=None, bootstrap=False).fit(X, labels)
        exact = tree(max_depth=1).fit(X, labels)
        coarse_tree, exact_tree = coarse.estimators_[0].tree_, exact.tree_
        assert coarse_tree.feature[0] == exact_tree.feature[0]

        def gain(grown):
            weights = grown.weighted_n_node_samples
            return grown.impurity[0] - (weights[1:] * grown.impurity[1:]).sum() / weights[0]

        assert gain(coarse_tree) > 0.999 * gain(exact_tree)


@pytest.mark.parametrize("cls", FORESTS)
def test_unlimited_trees_are_pure(cls):
    X, y = data_for(cls, 3000)
    model = cls(3, bootstrap=False, random_state=0).fit(X, y)
    assert model.score(X, y) == 1.0
    for tree in model.estimators_:
        assert tree.tree_.impurity[tree.tree_.children_left < 0].max() < 1e-12


@pytest.mark.parametrize("cls", FORESTS)
def test_trees_respect_their_limits(cls):
    X, y = data_for(cls, 1200)
    model = cls(4, max_depth=6, min_samples_leaf=20, random_state=0).fit(X, y)
    for tree in model.estimators_:
        assert tree.get_depth() <= 6
        assert tree.tree_.n_node_samples[tree.tree_.children_left < 0].min() >= 20
    model = cls(4, max_leaf_nodes=7, random_state=0).fit(X, y)
    assert all(tree.get_n_leaves() <= 7 for tree in model.estimators_)


@pytest.mark.parametrize("cls", FORESTS)
def test_pruning_applies_to_each_tree(cls):
    X, y = data_for(cls, 200)
    full = cls(3, bootstrap=False, random_state=0).fit(X, y)
    pruned = cls(3, bootstrap=False, random_state=0, ccp_alpha=0.02).fit(X, y)
    codes = np.unique(y, return_inverse=True)[1] if is_classifier(full) else y
    for tree, full_tree in zip(pruned.estimators_, full.estimators_, strict=True):
        assert tree.tree_.node_count < full_tree.tree_.node_count
        refitted = clone(tree).fit(X, codes)
        assert refitted.ccp_alpha == 0.02
        assert refitted.tree_.node_count == tree.tree_.node_count


@pytest.mark.parametrize("criterion", ["entropy", "misclassification", "absolute_error", "poisson"])
def test_criteria_of_trees_and_forests_agree(criterion):
    classes = criterion in ("entropy", "misclassification")
    for cls in CLASSIFIERS if classes else REGRESSORS:
        X, y = data_for(cls, 500)
        y = y if classes else y - y.min() + 1
        model = cls(20, criterion=criterion, random_state=0).fit(X[:350], y[:350])
        assert model.score(X[350:], y[350:]) > 0.5
        tree = model.estimators_[0]
        assert tree.criterion == criterion
        refitted = clone(tree).fit(
            X[:350][model.estimators_samples_[0]], y[:350][model.estimators_samples_[0]]
        )
        np.testing.assert_allclose(tree.tree_.impurity[0], refitted.tree_.impurity[0], rtol=1e-9)


def test_monotonic_constraint_holds():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(400, 2))
    y = X[:, 0] + 0.3 * np.sin(20 * X[:, 0]) + 0.2 * rng.normal(size=400)
    for cls in REGRESSORS:
        model = cls(20, monotonic_cst=[1, 0], random_state=0).fit(X, y)
        line = np.column_stack([np.linspace(0, 1, 200), np.full(200, 0.5)])
        assert np.all(np.diff(model.predict(line)) >= -1e-12)


@pytest.mark.parametrize("cls", FORESTS)
def test_pickle_is_small_and_exact(cls):
    import sklearn.ensemble

    X, y = data_for(cls, 1000)
    model = cls(20, random_state=0).fit(X, y)
    theirs = getattr(sklearn.ensemble, cls.__name__)(20, random_state=0).fit(X, y)
    data = pickle.dumps(model)
    assert len(data) < 0.25 * len(pickle.dumps(theirs)) + 4000
    restored = pickle.loads(data)
    np.testing.assert_array_equal(output(restored, X), output(model, X))
    np.testing.assert_array_equal(restored.feature_importances_, model.feature_importances_)


def test_damaged_pickle_raises():
    X, y = data_for(RandomForestClassifier)
    store = RandomForestClassifier(3, random_state=0).fit(X, y).fitted_model().store

    def read(name, array):
        state = store.__getstate__()
        state["arrays"][name] = array(state["arrays"][name])
        type(store).__new__(type(store)).__setstate__(state)

    read("nodes", lambda array: array)
    for name in ("nodes", "leaf_rows", "leaf_class", "sizes"):
        for damage in (lambda a: a[:-1], lambda a: np.append(a, a[-1:])):
            with pytest.raises(ValueError, match="do not fit together"):
                read(name, damage)
    with pytest.raises(ValueError, match="do not fit together"):
        read("nodes", lambda array: np.full_like(array, 2**31 - 1))


def test_predict_from_many_threads():
    X, y = data_for(RandomForestClassifier)
    model = RandomForestClassifier(30, random_state=0).fit(X, y)
    expected = model.predict_proba(X)
    failures = []

    def work():
        for _ in range(20):
            if not np.array_equal(model.predict_proba(X), expected):
                failures.append(1)
            model.estimators_[3].predict(X[:5])

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_callbacks_count_trees_and_can_stop_the_fit():
    X, y = data_for(RandomForestClassifier, 2000)
    calls = []
    RandomForestClassifier(
        1500, callbacks=lambda *arguments: calls.append(arguments), n_jobs=1
    ).fit(X, y)
    assert calls
    assert all(0 <= done <= total == 1500 for done, total in calls)

    def stop(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        RandomForestClassifier(2000, callbacks=stop).fit(X, y)


@pytest.mark.parametrize(
    "cls", [RandomForestClassifier, ExtraTreesRegressor, BaggingClassifier, IsolationForest]
)
def test_failed_fit_keeps_the_previous_model(cls):
    X, y = data_for(RandomForestClassifier, 2000)
    model = cls(n_estimators=5, warm_start=True, random_state=0).fit(X, y)
    expected = model.predict(X)

    def stop(done, total):
        raise RuntimeError("enough")

    model.set_params(n_estimators=3000, callbacks=stop)
    with pytest.raises(RuntimeError, match="enough"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected)
    assert len(model.estimators_) == 5
    model.set_params(n_estimators=6, callbacks=None).fit(X, y)
    refitted = clone(model).set_params(warm_start=False).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), refitted.predict(X))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_interrupts_a_long_fit(n_jobs):
    X, y = data_for(RandomForestClassifier, 2000)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            RandomForestClassifier(10_000, n_jobs=n_jobs, random_state=0).fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    model = RandomForestClassifier(5, n_jobs=n_jobs).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs a limit of memory")
def test_out_of_memory_raises_and_later_fits_work():
    code = """
        import resource
        import numpy as np
        from spinney.ensemble import RandomForestClassifier
        rng = np.random.default_rng(0)
        X = rng.normal(size=(3000, 20))
        y = rng.integers(0, 2, 3000)
        RandomForestClassifier(2, n_jobs=2).fit(X, y)
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 60_000_000, -1))
        try:
            RandomForestClassifier(100_000, n_jobs=2).fit(X, y)
        except MemoryError:
            print("MemoryError")
        print(RandomForestClassifier(2, n_jobs=2, random_state=0).fit(X, y).score(X, y) > 0.8)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.stdout.split() == ["MemoryError", "True"], run.stderr


def test_ties_keep_splits_on_categories_categorical() -> None:
    # Misclassification has many equal scores; among these, a second criterion decides.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    X[:, 3] = rng.integers(0, 9, len(X))
    y = (X[:, 0] + (X[:, 3] % 4) + rng.normal(size=len(X)) > 2).astype(int) + (X[:, 1] > 1)
    weights = rng.uniform(0.25, 1.25, len(X))
    forest = RandomForestClassifier(
        30, criterion="misclassification", categorical_features=[3], random_state=0
    ).fit(X, y, sample_weight=weights)
    for tree in forest.estimators_:
        split = tree.tree_.children_left >= 0
        on_categories = split & (tree.tree_.feature == 3)
        assert on_categories.any()
        assert (tree.tree_.category_start[on_categories] >= 0).all()
        assert not np.isnan(tree.tree_.threshold[split & ~on_categories]).any()
