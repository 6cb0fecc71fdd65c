"""Importances: by permutation, by impurity without its bias, by leaving columns out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.inspection import permutation_importance as theirs
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, cross_val_score

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
def test_permutation_of_numbers_is_scikit_learns(scoring):
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    told = permutation_importance(tree, X, y, scoring=scoring, n_repeats=4, random_state=3)
    expected = theirs(tree, X, y, scoring=scoring, n_repeats=4, random_state=3)
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-12)


@pytest.mark.parametrize("scoring", ["accuracy", "neg_log_loss", "roc_auc", get_scorer("f1")])
def test_permutation_of_classes_is_scikit_learns(scoring):
    X, y = signal()
    forest = RandomForestClassifier(10, random_state=0).fit(X[::2], y[::2] > 0)
    told = permutation_importance(forest, X, y > 0, scoring=scoring, n_repeats=3, random_state=3)
    expected = theirs(forest, X, y > 0, scoring=scoring, n_repeats=3, random_state=3)
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-9)


@pytest.mark.parametrize(
    ("classes", "scoring"),
    [
        (False, None),
        (False, "neg_mean_absolute_error"),
        (False, "neg_root_mean_squared_error"),
        (False, "neg_median_absolute_error"),
        (True, None),
        (True, "neg_log_loss"),
        (True, "roc_auc"),
    ],
)
def test_weighted_permutation_is_scikit_learns(classes, scoring):
    X, y = signal()
    weights = np.random.default_rng(1).uniform(size=len(y))
    weights[::7] = 0
    kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
    y = y > 0 if classes else y
    tree = kind(max_depth=4, random_state=0).fit(X, y)
    options = {"scoring": scoring, "n_repeats": 4, "random_state": 3}
    expected = theirs(tree, X, y, sample_weight=weights, **options)
    for given in (weights, 1000 * weights, pd.Series(weights)):
        told = permutation_importance(tree, X, y, sample_weight=given, **options)
        np.testing.assert_allclose(told.each, expected.importances, atol=1e-9)
    told = permutation_importance(tree, X, y, **options)
    even = permutation_importance(tree, X, y, sample_weight=np.full(len(y), 2.0), **options)
    np.testing.assert_allclose(even.mean, told.mean, atol=1e-12)
    np.testing.assert_allclose(even.error, told.error, atol=1e-12)


def test_error_of_a_weighted_permutation_is_that_of_other_rows():
    X, y = signal(600)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    falls, errors = [], []
    for seed in range(60):
        rows, truth = signal(200, seed + 1)
        weights = np.random.default_rng(seed).exponential(size=200)
        told = permutation_importance(tree, rows, truth, sample_weight=weights, random_state=seed)
        falls.append(told.mean)
        errors.append(told.error)
    ratio = np.mean(errors, axis=0)[:2] / np.std(falls, axis=0, ddof=1)[:2]
    assert ((ratio > 0.7) & (ratio < 1.4)).all(), ratio


def test_weighted_leaving_out_is_fitting_again():
    X, y = signal(150)
    weights = np.random.default_rng(1).uniform(size=len(y))
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    told = drop_column_importance(tree, X, y, columns=[0], cv=3, sample_weight=weights)
    falls = []
    for train, test in KFold(3).split(X):
        scores = []
        for part in (X, X[:, 1:]):
            fresh = clone(tree).fit(part[train], y[train], weights[train])
            scores.append(fresh.score(part[test], y[test], weights[test]))
        falls.append(scores[0] - scores[1])
    np.testing.assert_allclose(told.each[0], falls)
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
def test_bad_weights_are_named(weights, message):
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
def test_permutation_in_the_core_is_prediction(model, kind):
    """With missing values, categories, several classes and groups: as if rows were predicted."""
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
    told = permutation_importance(model, X, y, n_repeats=9, random_state=3)
    expected = theirs(model, X, y, n_repeats=9, random_state=3)
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-12)
    groups = permutation_importance(model, X, y, columns=[[0, 1], [1], [3, 0]], n_repeats=2)
    alone = permutation_importance(model, X, y, columns=[1], n_repeats=2)
    np.testing.assert_array_equal(groups.each[1], alone.each[0])


def test_threads_change_nothing():
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    one = permutation_importance(tree, X, y, n_jobs=1)
    two = permutation_importance(tree, X, y, n_jobs=3)
    np.testing.assert_array_equal(one.each, two.each)
    np.testing.assert_array_equal(one.error, two.error)


def test_columns_of_a_group_are_shuffled_together():
    random = np.random.default_rng(0)
    a = random.normal(size=400)
    X = np.column_stack([a, a, random.normal(size=400)])  # the same twice
    model = LinearRegression().fit(X, a)
    alone = permutation_importance(model, X, a)
    both = permutation_importance(model, X, a, columns={"twice": [0, 1], "noise": [2]})
    assert both.names == ["twice", "noise"]
    # Half of the slope is on each: a quarter of the variance, twice, against all of it, twice.
    assert alone.mean[:2] == pytest.approx([0.5, 0.5], abs=0.1)
    assert both.mean[0] == pytest.approx(2.0, abs=0.2)
    listed = permutation_importance(model, X, a, columns=[[0, 1], 2])
    np.testing.assert_array_equal(listed.mean, both.mean)


@pytest.mark.parametrize("scoring", ["r2", "neg_root_mean_squared_error"])
def test_error_of_a_permutation_is_that_of_other_rows(scoring):
    X, y = signal(300)
    tree = DecisionTreeRegressor(max_depth=4).fit(X, y)
    found, errors = [], []
    for seed in range(60):
        told = permutation_importance(
            tree, *signal(150, seed + 1), n_repeats=5, random_state=seed, scoring=scoring
        )
        found.append(told.mean[0])
        errors.append(told.error[0])
    assert np.std(found) == pytest.approx(np.mean(errors), rel=0.35)


def test_a_root_falls_as_scikit_learn_has_it():
    X, y = signal()
    tree = DecisionTreeRegressor(max_depth=3).fit(X[::2], y[::2])
    told = permutation_importance(tree, X, y, scoring="neg_root_mean_squared_error", n_repeats=3)
    from sklearn.inspection import permutation_importance as theirs

    expected = theirs(
        tree, X, y, scoring="neg_root_mean_squared_error", n_repeats=3, random_state=0
    )
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-12)
    # Without any error there is nothing to take a root's slope of.
    known = DecisionTreeRegressor().fit(X, y)
    none = permutation_importance(known, X, y, scoring="neg_root_mean_squared_error", n_repeats=2)
    assert np.isfinite(none.error).all()


def test_frames_agree():
    X, y = signal()
    names = list("abcd")
    tree = DecisionTreeRegressor(max_depth=3).fit(pd.DataFrame(X, columns=names), y)
    one = permutation_importance(tree, pd.DataFrame(X, columns=names), y, columns=["b", "a"])
    two = permutation_importance(tree, pl.DataFrame(X, schema=names), pl.Series(y), columns=[1, 0])
    assert one.names == ["b", "a"]
    np.testing.assert_array_equal(one.mean, two.mean)


def test_intervals():
    X, y = signal()
    told = permutation_importance(LinearRegression().fit(X, y), X, y)
    low, high = told.interval(0.95)
    np.testing.assert_allclose(high - told.mean, 1.959964 * told.error, rtol=1e-6)
    np.testing.assert_allclose(told.mean - low, high - told.mean)
    with pytest.raises(ValueError, match="coverage: expected"):
        told.interval(1.0)


# ------------------------------------------------------------------------------------- impurity


def noise_table(random, n):
    """Columns of noise with 2, 10, 100 and n values, and categories, beside one that tells."""
    return pd.DataFrame(
        {
            "tells": random.integers(0, 2, n),
            "two": random.integers(0, 2, n),
            "ten": random.integers(0, 10, n),
            "hundred": random.integers(0, 100, n),
            "all": random.normal(size=n),
            "categories": pd.Categorical(random.integers(0, 12, n).astype(str)),
        }
    )


@pytest.mark.parametrize("classes", [True, False])
def test_noise_has_no_importance_whatever_its_values(classes):
    random = np.random.default_rng(5)
    means, biased, covered = [], [], []
    for seed in range(40):
        frame = noise_table(random, 150)
        y = frame["tells"] + 0.8 * random.normal(size=150)
        kind = RandomForestClassifier if classes else RandomForestRegressor
        y = (y > 0.5).to_numpy().astype(int) if classes else y.to_numpy()
        forest = kind(30, max_features=2, random_state=seed).fit(frame, y)
        told = impurity_importance(forest, frame, y)
        means.append(told.mean)
        low, high = told.interval(0.95)
        covered.append((low < 0) & (high > 0))
        biased.append(forest.feature_importances_)
    means = np.array(means)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    z = means.mean(axis=0) / error
    assert np.abs(z[1:]).max() < 3.3  # five columns: one time in two hundred
    # What the forest itself reports grows with the number of values.
    own = np.mean(biased, axis=0)
    assert own[1] < own[2] < own[3]
    assert own[4] > 4 * own[1]
    # And the intervals hold zero about as often as they say.
    covered = np.array(covered)
    assert np.mean(covered[:, 1:]) > 0.85
    # The column that tells is told from noise nearly always.
    assert np.mean(covered[:, 0]) <= 0.05


def test_noise_has_no_importance_where_bags_depend_on_the_class():
    """Rows of the heavy class are out of few bags, and must not count the more for it."""
    random = np.random.default_rng(11)
    means = []
    for seed in range(100):
        X, y = random.normal(size=(150, 4)), random.integers(0, 2, 150)
        forest = RandomForestClassifier(20, class_weight={0: 1, 1: 10}, random_state=seed)
        means.append(impurity_importance(forest.fit(X, y), X, y).mean)
    z = np.mean(means, axis=0) / np.std(means, axis=0, ddof=1) * 10
    assert np.abs(z).max() < 3.3


def test_over_its_own_rows_it_is_the_decrease_of_the_impurity():
    X, y = signal()
    for tree, target in (
        (DecisionTreeRegressor(max_depth=4), y),
        (DecisionTreeClassifier(max_depth=4), (y > 0).astype(int)),
    ):
        tree.fit(X, target)
        told = impurity_importance(tree, X, target, held_out=True)
        np.testing.assert_allclose(
            told.mean, tree.tree_.compute_feature_importances(normalize=False), atol=1e-12
        )


@pytest.mark.parametrize("classes", [True, False])
def test_corrected_importances_of_fit_are_the_same(classes):
    X, y = signal()
    forest = RandomForestClassifier if classes else RandomForestRegressor
    y = np.digitize(y, [-1, 1]) if classes else y
    model = forest(8, importance_type="corrected", random_state=0).fit(X, y)
    told = impurity_importance(model, X, y)
    np.testing.assert_allclose(told.mean, model.feature_importances_, atol=1e-12)


def test_rows_of_the_bag_are_found_again():
    X, y = signal(80)
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    told = impurity_importance(forest, X, y)
    of_trees = []
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        inner = tree.tree_
        out = np.setdiff1d(np.arange(80), drawn)
        rows = np.zeros((80, 4))
        passed = tree.decision_path(X[out]).toarray() > 0
        for node in np.flatnonzero(inner.children_left >= 0):
            j, here = inner.feature[node], out[passed[:, node]]
            for row in here:
                left = X[row, j] <= inner.threshold[node]
                child = (inner.children_left if left else inner.children_right)[node]
                step = inner.value[child, 0, 0] - inner.value[node, 0, 0]
                rows[row, j] += step * (y[row] - y[here].mean())
        of_trees.append(rows[out].mean(axis=0))
    np.testing.assert_allclose(told.mean, np.mean(of_trees, axis=0))


@pytest.mark.parametrize("kind", ["number", "two", "three"])
def test_noise_has_no_importance_in_boosters(kind):
    random = np.random.default_rng(6)
    means, own = [], []
    for seed in range(25):
        frame = noise_table(random, 300)
        y = (frame["tells"] + 0.8 * random.normal(size=300)).to_numpy()
        edges = {"two": [0.5], "three": [0.0, 1.0]}.get(kind)
        y = y if edges is None else np.digitize(y, edges)
        make = GradientBoostingRegressor if edges is None else GradientBoostingClassifier
        model = make(n_estimators=15, max_leaf_nodes=8, early_stopping=False, random_state=seed)
        model.fit(frame[:150], y[:150])
        told = impurity_importance(model, frame[150:], y[150:], held_out=True)
        means.append(told.mean)
        own.append(model.feature_importances_)
    means = np.array(means)
    z = means.mean(axis=0) / (means.std(axis=0, ddof=1) / np.sqrt(len(means)))
    assert np.abs(np.nan_to_num(z[1:])).max() < 3.3
    assert z[0] > 10
    assert np.mean(own, axis=0)[4] > 0.02  # what the booster reports of noise with many values


def test_boosters_by_hand():
    X, y = signal(150)
    labels = np.digitize(y, [-1, 1])
    model = GradientBoostingClassifier(n_estimators=4, early_stopping=False, random_state=0)
    model.fit(X[:100], labels[:100])
    told = impurity_importance(model, X[100:], labels[100:], held_out=True)
    rows, sums = X[100:], np.zeros(4)
    for t in range(len(model.fitted_model().store)):
        tree = model.fitted_model().store.tree(t)
        target = (labels[100:] == model.classes_[t % 3]).astype(float)
        stack = [(0, np.arange(50))]
        while stack:
            node, here = stack.pop()
            if tree.children_left[node] < 0 or not len(here):
                continue
            j = tree.feature[node]
            left = rows[here, j] <= tree.threshold[node]
            for child, part in (
                (tree.children_left[node], here[left]),
                (tree.children_right[node], here[~left]),
            ):
                step = tree.value.ravel()[child] - tree.value.ravel()[node]
                sums[j] += step * (target[part] - target[here].mean()).sum()
                stack.append((child, part))
    np.testing.assert_allclose(told.mean, sums / 50, atol=1e-12)
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
def test_refused_by_name(model, options, message):
    X, y = signal()
    model.fit(X, (y > 0).astype(int))
    with pytest.raises(ValueError, match=message):
        impurity_importance(model, X, (y > 0).astype(int), **options)


def test_other_rows_than_those_of_fit_are_refused():
    X, y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="X: expected the 200 training rows, got 100"):
        impurity_importance(forest, X[:100], y[:100])
    with pytest.raises(ValueError, match="y: expected 200 values"):
        impurity_importance(forest, X, y[:100])


# ---------------------------------------------------------------------------------- leaving out


def test_leaving_out_is_fitting_again():
    X, y = signal(90)
    tree, folds = DecisionTreeRegressor(max_depth=3, random_state=0), KFold(3)
    told = drop_column_importance(tree, X, y, columns=[0, [1, 2]], cv=folds, n_jobs=2)
    whole = cross_val_score(tree, X, y, cv=folds)
    for place, columns in enumerate(([0], [1, 2])):
        less = cross_val_score(tree, np.delete(X, columns, axis=1), y, cv=folds)
        np.testing.assert_allclose(told.each[place], whole - less)
    expected = np.sqrt(told.each.var(axis=1, ddof=1) * (1 / 3 + 1 / 2))
    np.testing.assert_allclose(told.error, expected)
    frame = pl.DataFrame(X, schema=list("abcd"))
    same = drop_column_importance(tree, frame, y, columns=["a", ["b", "c"]], cv=folds)
    np.testing.assert_allclose(same.each, told.each)
    assert same.names == ["a", "b, c"]


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
def test_bad_columns_are_named(columns, error, message):
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
