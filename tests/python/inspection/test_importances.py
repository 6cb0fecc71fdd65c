"""Permutation, corrected impurity and drop-column importances."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.inspection import permutation_importance as sklearn_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, cross_val_score

from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.ensemble import (
    AdaBoostClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import (
    drop_column_importance,
    impurity_importance,
    permutation_importance,
)
from spinney.linear_model import LinearRegression
from spinney.neighbors import KNeighborsRegressor
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor


def signal(n=200, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    return X, X[:, 0] + 0.5 * X[:, 1] + 0.3 * random.normal(size=n)


# ---------------------------------------------------------------------------------- permutation


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error", "neg_median_absolute_error"])
def test_permutation_for_regression_matches_scikit_learn(scoring):
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    result = permutation_importance(tree, X, y, scoring=scoring, n_repeats=4, random_state=3)
    expected = sklearn_importance(tree, X, y, scoring=scoring, n_repeats=4, random_state=3)
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-12)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc", get_scorer("f1")])
def test_permutation_for_classification_matches_scikit_learn(scoring):
    X, y = signal()
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2] > 0)
    result = permutation_importance(forest, X, y > 0, scoring=scoring, n_repeats=3, random_state=3)
    expected = sklearn_importance(forest, X, y > 0, scoring=scoring, n_repeats=3, random_state=3)
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-9)


@pytest.mark.parametrize(
    ("classes", "scoring"),
    [
        (False, None),
        (False, "neg_mean_absolute_error"),
        (False, "neg_root_mean_squared_error"),
        pytest.param(
            False,
            "neg_median_absolute_error",
            marks=pytest.mark.skipif(
                SKLEARN_VERSION < (1, 8),
                reason="before scikit-learn 1.8 equal weights change the median",
            ),
        ),
        (True, None),
        (True, "neg_log_loss"),
        (True, "roc_auc"),
    ],
)
def test_weighted_permutation_matches_scikit_learn(classes, scoring):
    X, y = signal()
    weights = np.random.default_rng(1).uniform(size=len(y))
    weights[::7] = 0
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    y = y > 0 if classes else y
    tree = kind(max_depth=4, random_state=0).fit(X, y)
    options = {"scoring": scoring, "n_repeats": 4, "random_state": 3}
    expected = sklearn_importance(tree, X, y, sample_weight=weights, **options)
    for given in (weights, 1000 * weights, pd.Series(weights)):
        result = permutation_importance(tree, X, y, sample_weight=given, **options)
        np.testing.assert_allclose(result.each, expected.importances, atol=1e-9)
    result = permutation_importance(tree, X, y, **options)
    even = permutation_importance(tree, X, y, sample_weight=np.full(len(y), 2.0), **options)
    np.testing.assert_allclose(even.mean, result.mean, atol=1e-12)
    np.testing.assert_allclose(even.error, result.error, atol=1e-12)


def test_standard_error_with_weights_matches_resampling():
    X, y = signal(600)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    means, errors = [], []
    for seed in range(60):
        rows, truth = signal(200, seed + 1)
        weights = np.random.default_rng(seed).exponential(size=200)
        result = permutation_importance(tree, rows, truth, sample_weight=weights, random_state=seed)
        means.append(result.mean)
        errors.append(result.error)
    ratio = np.mean(errors, axis=0)[:2] / np.std(means, axis=0, ddof=1)[:2]
    assert ((ratio > 0.7) & (ratio < 1.4)).all(), ratio


def test_weighted_drop_column_matches_refitting():
    X, y = signal(150)
    weights = np.random.default_rng(1).uniform(size=len(y))
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    result = drop_column_importance(tree, X, y, columns=[0], cv=3, sample_weight=weights)
    decreases = []
    for train, test in KFold(3).split(X):
        scores = []
        for table in (X, X[:, 1:]):
            model = clone(tree).fit(table[train], y[train], weights[train])
            scores.append(model.score(table[test], y[test], weights[test]))
        decreases.append(scores[0] - scores[1])
    np.testing.assert_allclose(result.each[0], decreases)
    with pytest.raises(TypeError, match="sample_weight: expected a model whose fit takes it"):
        drop_column_importance(KNeighborsRegressor(), X, y, sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 2.0], "sample_weight: expected 50 values"),
        (np.r_[-1.0, np.ones(49)], "sample_weight: expected no negative weights, got -1"),
        (np.r_[1.0, np.zeros(49)], "sample_weight: expected at least 2 rows"),
        (np.r_[np.inf, np.zeros(49)], "sample_weight: expected finite numbers"),
        (["a"] * 50, "sample_weight: expected numbers"),
    ],
)
def test_invalid_weights_raise(weights, message):
    X, y = signal(50)
    tree = DecisionTreeRegressor(max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match=message):
        permutation_importance(tree, X, y, sample_weight=weights)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(6, random_state=0),
        RandomForestClassifier(6, max_depth=3, voting="hard", random_state=0),
        GradientBoostingClassifier(n_estimators=8, random_state=0),
        AdaBoostClassifier(n_estimators=5, random_state=0),
        DecisionTreeClassifier(max_depth=5),
        RandomForestRegressor(6, random_state=0),
        GradientBoostingRegressor(n_estimators=8, loss="poisson", random_state=0),
        DecisionTreeRegressor(max_depth=5),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
def test_permutation_in_the_core_matches_scikit_learn(model, kind):
    """The core's fast path has the scores of scikit-learn's predictions."""
    random = np.random.default_rng(1)
    X = random.normal(size=(150, 4))
    X[random.random(X.shape) < 0.1] = np.nan
    y = np.exp(np.nan_to_num(X[:, 0] - X[:, 1]) / 2)
    if kind != "array":
        X = pd.DataFrame(X, columns=list("abcd"))
        X["e"] = random.choice(["x", "y", "z"], 150)
        y = y * (1 + (X["e"] == "x").to_numpy())
        X = pl.from_pandas(X) if kind == "polars" else X.astype({"e": "category"})
    y = np.digitize(y, [0.7, 1.5]) if is_classifier(model) else y
    model = clone(model).fit(X[:100], y[:100])
    result = permutation_importance(model, X, y, n_repeats=9, random_state=3)
    expected = sklearn_importance(model, X, y, n_repeats=9, random_state=3)
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-12)
    grouped = permutation_importance(model, X, y, columns=[[0, 1], [1], [3, 0]], n_repeats=2)
    alone = permutation_importance(model, X, y, columns=[1], n_repeats=2)
    np.testing.assert_array_equal(grouped.each[1], alone.each[0])


def test_result_does_not_depend_on_the_number_of_threads():
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    single_thread = permutation_importance(tree, X, y, n_jobs=1)
    three_threads = permutation_importance(tree, X, y, n_jobs=3)
    np.testing.assert_array_equal(single_thread.each, three_threads.each)
    np.testing.assert_array_equal(single_thread.error, three_threads.error)


def test_columns_of_a_group_are_shuffled_together():
    random = np.random.default_rng(0)
    signal_column = random.normal(size=400)
    X = np.column_stack(
        [signal_column, signal_column, random.normal(size=400)]
    )  # a duplicated column
    model = LinearRegression().fit(X, signal_column)
    separate = permutation_importance(model, X, signal_column)
    grouped = permutation_importance(
        model, X, signal_column, columns={"twice": [0, 1], "noise": [2]}
    )
    assert grouped.names == ["twice", "noise"]
    # Each copy has half of the slope: 2 · (1/2)² = 0.5 alone, 2 · 1² = 2 together.
    assert separate.mean[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    assert grouped.mean[0] == pytest.approx(2.0, abs=0.2)
    listed = permutation_importance(model, X, signal_column, columns=[[0, 1], 2])
    np.testing.assert_array_equal(listed.mean, grouped.mean)


@pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error"])
def test_standard_error_matches_resampling(scoring):
    X, y = signal(300)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    means, errors = [], []
    for seed in range(60):
        result = permutation_importance(
            tree, *signal(150, seed + 1), n_repeats=5, random_state=seed, scoring=scoring
        )
        means.append(result.mean[0])
        errors.append(result.error[0])
    assert np.std(means) == pytest.approx(np.mean(errors), rel=0.35)


def test_root_mean_squared_error_matches_scikit_learn():
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=3).fit(X[::2], y[::2])
    result = permutation_importance(tree, X, y, scoring="neg_root_mean_squared_error", n_repeats=3)
    expected = sklearn_importance(
        tree, X, y, scoring="neg_root_mean_squared_error", n_repeats=3, random_state=0
    )
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-12)
    # The root has no slope at an error of zero.
    overfitted = DecisionTreeRegressor().fit(X, y)
    of_overfitted = permutation_importance(
        overfitted, X, y, scoring="neg_root_mean_squared_error", n_repeats=2
    )
    assert np.isfinite(of_overfitted.error).all()


def test_frame_types_agree():
    X, y = signal()
    names = list("abcd")
    tree = DecisionTreeRegressor(max_depth=3).fit(pd.DataFrame(X, columns=names), y)
    pandas_result = permutation_importance(
        tree, pd.DataFrame(X, columns=names), y, columns=["b", "a"]
    )
    polars_result = permutation_importance(
        tree, pl.DataFrame(X, schema=names), pl.Series(y), columns=[1, 0]
    )
    assert pandas_result.names == ["b", "a"]
    np.testing.assert_array_equal(pandas_result.mean, polars_result.mean)


def test_intervals_use_normal_quantiles():
    X, y = signal()
    result = permutation_importance(LinearRegression().fit(X, y), X, y)
    low, high = result.interval(0.95)
    np.testing.assert_allclose(high - result.mean, 1.959964 * result.error, rtol=1e-6)
    np.testing.assert_allclose(result.mean - low, high - result.mean)
    with pytest.raises(ValueError, match="coverage: expected"):
        result.interval(1.0)


# ------------------------------------------------------------------------------------- impurity


def noise_table(random, n):
    """Return an informative column, and noise columns with different numbers of values."""
    return pd.DataFrame(
        {
            "informative": random.integers(0, 2, n),
            "two": random.integers(0, 2, n),
            "ten": random.integers(0, 10, n),
            "hundred": random.integers(0, 100, n),
            "all": random.normal(size=n),
            "categories": pd.Categorical(random.integers(0, 12, n).astype(str)),
        }
    )


@pytest.mark.parametrize("classes", [True, False])
def test_noise_has_no_importance_for_any_number_of_values(classes):
    random = np.random.default_rng(5)
    means, own_importances, covered = [], [], []
    for seed in range(40):
        frame = noise_table(random, 150)
        y = frame["informative"] + 0.8 * random.normal(size=150)
        forest_class = RandomForestClassifier if classes else RandomForestRegressor
        y = (y > 0.5).to_numpy().astype(int) if classes else y.to_numpy()
        forest = forest_class(30, max_features=2, random_state=seed).fit(frame, y)
        result = impurity_importance(forest, frame, y)
        means.append(result.mean)
        low, high = result.interval(0.95)
        covered.append((low < 0) & (high > 0))
        own_importances.append(forest.feature_importances_)
    means = np.array(means)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    z = means.mean(axis=0) / error
    assert np.abs(z[1:]).max() < 3.3  # five columns: the check fails for one seed in 200
    # The forest's own importances of noise grow with the number of values.
    mean_own = np.mean(own_importances, axis=0)
    assert mean_own[1] < mean_own[2] < mean_own[3]
    assert mean_own[4] > 4 * mean_own[1]
    # The intervals of noise contain zero nearly as often as their coverage states.
    covered = np.array(covered)
    assert np.mean(covered[:, 1:]) > 0.85
    # The informative column is nearly always significant.
    assert np.mean(covered[:, 0]) <= 0.05


def test_noise_has_no_importance_with_class_weights():
    """Rows of the heavy class are rarely out of bag and must not count more for that."""
    random = np.random.default_rng(11)
    means = []
    for seed in range(100):
        X, y = random.normal(size=(150, 4)), random.integers(0, 2, 150)
        forest = RandomForestClassifier(20, class_weight={0: 1, 1: 10}, random_state=seed)
        means.append(impurity_importance(forest.fit(X, y), X, y).mean)
    z = np.mean(means, axis=0) / np.std(means, axis=0, ddof=1) * 10
    assert np.abs(z).max() < 3.3


def test_importance_on_training_rows_is_the_impurity_decrease():
    X, y = signal()
    for tree, target in (
        (DecisionTreeRegressor(max_depth=4), y),
        (DecisionTreeClassifier(max_depth=4), (y > 0).astype(int)),
    ):
        tree.fit(X, target)
        result = impurity_importance(tree, X, target, held_out=True)
        np.testing.assert_allclose(
            result.mean, tree.tree_.compute_feature_importances(normalize=False), atol=1e-12
        )


@pytest.mark.parametrize("classes", [True, False])
def test_fitted_corrected_importances_are_the_same(classes):
    X, y = signal()
    forest = RandomForestClassifier if classes else RandomForestRegressor
    y = np.digitize(y, [-1, 1]) if classes else y
    model = forest(8, importance_type="corrected", random_state=0).fit(X, y)
    result = impurity_importance(model, X, y)
    np.testing.assert_allclose(result.mean, model.feature_importances_, atol=1e-12)


def test_out_of_bag_rows_are_reconstructed():
    X, y = signal(80)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    result = impurity_importance(forest, X, y)
    by_tree = []
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        arrays = tree.tree_
        out_of_bag = np.setdiff1d(np.arange(80), drawn)
        contributions = np.zeros((80, 4))
        passes = tree.decision_path(X[out_of_bag]).toarray() > 0
        for node in np.flatnonzero(arrays.children_left >= 0):
            j, node_rows = arrays.feature[node], out_of_bag[passes[:, node]]
            for row in node_rows:
                left = X[row, j] <= arrays.threshold[node]
                child = (arrays.children_left if left else arrays.children_right)[node]
                step = arrays.value[child, 0, 0] - arrays.value[node, 0, 0]
                contributions[row, j] += step * (y[row] - y[node_rows].mean())
        by_tree.append(contributions[out_of_bag].mean(axis=0))
    np.testing.assert_allclose(result.mean, np.mean(by_tree, axis=0))


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_noise_has_no_importance_in_boosters(kind):
    random = np.random.default_rng(6)
    means, own_importances = [], []
    for seed in range(25):
        frame = noise_table(random, 300)
        y = (frame["informative"] + 0.8 * random.normal(size=300)).to_numpy()
        edges = {"two": [0.5], "three": [0.0, 1.0]}.get(kind)
        y = y if edges is None else np.digitize(y, edges)
        booster_class = GradientBoostingRegressor if edges is None else GradientBoostingClassifier
        model = booster_class(
            n_estimators=15, max_leaf_nodes=8, early_stopping=False, random_state=seed
        )
        model.fit(frame[:150], y[:150])
        result = impurity_importance(model, frame[150:], y[150:], held_out=True)
        means.append(result.mean)
        own_importances.append(model.feature_importances_)
    means = np.array(means)
    z = means.mean(axis=0) / (means.std(axis=0, ddof=1) / np.sqrt(len(means)))
    assert np.abs(np.nan_to_num(z[1:])).max() < 3.3
    assert z[0] > 10
    assert np.mean(own_importances, axis=0)[4] > 0.02  # the booster's own importance of noise


def test_boosters_match_a_walk_by_hand():
    X, y = signal(150)
    labels = np.digitize(y, [-1, 1])
    model = GradientBoostingClassifier(n_estimators=4, early_stopping=False, random_state=0)
    model.fit(X[:100], labels[:100])
    result = impurity_importance(model, X[100:], labels[100:], held_out=True)
    rows, sums = X[100:], np.zeros(4)
    for t in range(len(model.fitted_model().store)):
        tree = model.fitted_model().store.tree(t)
        target = (labels[100:] == model.classes_[t % 3]).astype(float)
        stack = [(0, np.arange(50))]
        while stack:
            node, node_rows = stack.pop()
            if tree.children_left[node] < 0 or not len(node_rows):
                continue
            j = tree.feature[node]
            left = rows[node_rows, j] <= tree.threshold[node]
            for child, child_rows in (
                (tree.children_left[node], node_rows[left]),
                (tree.children_right[node], node_rows[~left]),
            ):
                step = tree.value.ravel()[child] - tree.value.ravel()[node]
                sums[j] += step * (target[child_rows] - target[node_rows].mean()).sum()
                stack.append((child, child_rows))
    np.testing.assert_allclose(result.mean, sums / 50, atol=1e-12)
    several = GradientBoostingRegressor(n_estimators=3).fit(X, np.column_stack([y, y]))
    with pytest.raises(
        ValueError, match="y: expected 2 targets, as in the fit of the model, got 1"
    ):
        impurity_importance(several, X, y, held_out=True)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (DecisionTreeClassifier(), {}, "no out-of-bag rows"),
        (ExtraTreesClassifier(5), {}, "bootstrap=False"),
        (GradientBoostingClassifier(n_estimators=3), {}, "got a booster"),
        (LinearRegression(), {"held_out": True}, "LinearRegression"),
    ],
)
def test_models_without_out_of_bag_rows_raise(model, options, message):
    X, y = signal()
    model.fit(X, (y > 0).astype(int))
    with pytest.raises(ValueError, match=message):
        impurity_importance(model, X, (y > 0).astype(int), **options)


def test_rows_other_than_the_training_rows_raise():
    X, y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X: expected the 200 training rows, got 100"):
        impurity_importance(forest, X[:100], y[:100])
    with pytest.raises(ValueError, match="y: expected 200 values"):
        impurity_importance(forest, X, y[:100])


# ---------------------------------------------------------------------------------- drop column


def test_drop_column_matches_refitting():
    X, y = signal(90)
    tree, folds = DecisionTreeRegressor(max_depth=3, random_state=0), KFold(3)
    result = drop_column_importance(tree, X, y, columns=[0, [1, 2]], cv=folds, n_jobs=2)
    with_all = cross_val_score(tree, X, y, cv=folds)
    for index, columns in enumerate(([0], [1, 2])):
        without = cross_val_score(tree, np.delete(X, columns, axis=1), y, cv=folds)
        np.testing.assert_allclose(result.each[index], with_all - without)
    expected = np.sqrt(result.each.var(axis=1, ddof=1) * (1 / 3 + 1 / 2))
    np.testing.assert_allclose(result.error, expected)
    frame = pl.DataFrame(X, schema=list("abcd"))
    of_frame = drop_column_importance(tree, frame, y, columns=["a", ["b", "c"]], cv=folds)
    np.testing.assert_allclose(of_frame.each, result.each)
    assert of_frame.names == ["a", "b, c"]


@pytest.mark.parametrize(
    ("columns", "error", "message"),
    [
        ([0, 9], ValueError, "columns: expected a number below 4"),
        ([[0, 0]], ValueError, "columns: expected one or more different columns"),
        ([], ValueError, "columns: expected at least one"),
        ("a", TypeError, "columns: expected a list"),
        ([[0, 1, 2, 3]], ValueError, "keep a column"),
    ],
)
def test_invalid_columns_raise(columns, error, message):
    X, y = signal()
    with pytest.raises(error, match=message):
        drop_column_importance(LinearRegression(), X, y, columns=columns)


def test_one_row_cannot_be_shuffled():
    X, y = signal()
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="max_rows: expected at least 2 rows to shuffle"):
        permutation_importance(model, X, y, max_rows=1)
    with pytest.raises(ValueError, match="X: expected at least 2 rows to shuffle, got 1"):
        permutation_importance(model, X[:1], y[:1])
