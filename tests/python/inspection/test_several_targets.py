"""Importances of columns for models of several targets: against walks and scores by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.inspection import permutation_importance as theirs
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.multioutput import MultiOutputClassifier

from spinney import plot
from spinney.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import (
    drop_column_importance,
    impurity_importance,
    partial_dependence,
    permutation_importance,
)
from spinney.linear_model import LinearRegression, LogisticRegression, Ridge
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

REGRESSORS = [
    DecisionTreeRegressor(max_depth=4, random_state=0),
    RandomForestRegressor(6, random_state=0),
    ExtraTreesRegressor(6, random_state=0),
    GradientBoostingRegressor(n_estimators=6, early_stopping=False, random_state=0),
    BaggingRegressor(n_estimators=4, random_state=0),
    KNeighborsRegressor(),
    LinearRegression(),
    Ridge(),
]
CLASSIFIERS = [
    DecisionTreeClassifier(max_depth=3, random_state=0),
    RandomForestClassifier(6, random_state=0),
    KNeighborsClassifier(),
    MultiOutputClassifier(LogisticRegression()),
]


def by_class(model):
    return type(model).__name__


def signal(n=150, seed=0):
    """Rows, and three targets that lean on the first two of four columns."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    noise = 0.3 * random.normal(size=(n, 3))
    return X, np.column_stack([X[:, 0], 2 * X[:, 1], X[:, 0] - X[:, 1]]) + noise


def labels(Y):
    """Two targets: one of three classes, one of two."""
    return np.column_stack([np.digitize(Y[:, 0], [-0.5, 0.5]), (Y[:, 1] > 0).astype(int)])


def all_right(model, X, y):
    told = model.predict(X)
    return np.mean([tuple(told[row]) == tuple(y[row]) for row in range(len(y))])


# ---------------------------------------------------------------------------------- permutation


@pytest.mark.parametrize("model", REGRESSORS, ids=by_class)
@pytest.mark.parametrize(
    "scoring",
    [
        *(None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error"),
        *("neg_root_mean_squared_error", "explained_variance"),
    ],
)
def test_permutation_of_numbers_is_scikit_learns(model, scoring):
    X, Y = signal()
    model.fit(X[::2], Y[::2])
    told = permutation_importance(model, X, Y, scoring=scoring, n_repeats=3, random_state=3)
    expected = theirs(model, X, Y, scoring=scoring, n_repeats=3, random_state=3)
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-10)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=by_class)
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_accuracy_of_several_targets_is_of_all_of_them(model, scoring):
    """That of targets of more than two classes, too, which scikit-learn's accuracy refuses."""
    X, Y = signal()
    for y in (labels(Y), (Y > 0).astype(int)):
        model.fit(X[::2], y[::2])
        told = permutation_importance(model, X, y, scoring=scoring, n_repeats=3, random_state=3)
        expected = theirs(model, X, y, scoring=all_right, n_repeats=3, random_state=3)
        np.testing.assert_allclose(told.each, expected.importances, atol=1e-12)
        assert told.kind == "decrease of the accuracy when shuffled"


def test_other_scores_of_several_targets():
    X, Y = signal()
    forest = RandomForestClassifier(8, random_state=0).fit(X, Y > 0)
    told = permutation_importance(forest, X, Y > 0, scoring="f1_macro", n_repeats=2)
    expected = theirs(forest, X, Y > 0, scoring="f1_macro", n_repeats=2, random_state=0)
    np.testing.assert_allclose(told.each, expected.importances, atol=1e-12)
    weighted = permutation_importance(
        *(RandomForestRegressor(8, random_state=0).fit(X, Y), X, Y),
        scoring=lambda model, X, y: r2_score(y, model.predict(X), multioutput=[1, 0, 0]),
    )
    assert weighted.mean[0] > 5 * weighted.mean[1]  # the first target leans on the first column


@pytest.mark.parametrize("classes", [True, False])
def test_error_of_a_permutation_is_that_of_other_rows(classes):
    X, Y = signal(300)
    model = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(max_depth=4)
    model.fit(X, labels(Y) if classes else Y)
    found, errors = [], []
    for seed in range(60):
        X, Y = signal(150, seed + 1)
        y = labels(Y) if classes else Y
        told = permutation_importance(model, X, y, n_repeats=5, random_state=seed)
        found.append(told.mean[0])
        errors.append(told.error[0])
    assert np.std(found) == pytest.approx(np.mean(errors), rel=0.35)


def test_groups_and_frames_agree():
    X, Y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y)
    groups = {"both": [0, 1], "noise": [2, 3]}
    told = permutation_importance(forest, X, Y, columns=groups, max_rows=100)
    assert told.names == ["both", "noise"]
    assert told.mean[0] > 10 * abs(told.mean[1])
    for same in (pd.DataFrame(Y), pl.DataFrame(Y, schema=list("abc")), Y.tolist()):
        other = permutation_importance(forest, X, same, columns=groups, max_rows=100)
        np.testing.assert_array_equal(other.each, told.each)
    words = np.array(["no", "so", "yes"])[labels(Y)]
    tree = DecisionTreeClassifier(max_depth=3).fit(X, words)
    one = permutation_importance(tree, X, words, n_repeats=2)
    two = permutation_importance(tree, X, pd.DataFrame(words).astype("category"), n_repeats=2)
    np.testing.assert_array_equal(one.each, two.each)


def test_a_column_of_one_target_is_one_target():
    X, Y = signal()
    for model in (LinearRegression(), RandomForestRegressor(4, random_state=0)):
        model.fit(X, Y[:, 0])
        one = permutation_importance(model, X, Y[:, 0])
        np.testing.assert_array_equal(permutation_importance(model, X, Y[:, :1]).each, one.each)
    one = impurity_importance(model, X, Y[:, 0])
    np.testing.assert_array_equal(impurity_importance(model, X, Y[:, :1]).each, one.each)


# ---------------------------------------------------------------------------------- leaving out


def test_leaving_out_is_fitting_again():
    X, Y = signal(90)
    folds = KFold(3)
    cases = [
        (DecisionTreeRegressor(max_depth=3, random_state=0), Y, None, None),
        (LinearRegression(), Y, "neg_root_mean_squared_error", "neg_root_mean_squared_error"),
        (DecisionTreeClassifier(max_depth=3, random_state=0), labels(Y), None, all_right),
        (KNeighborsClassifier(), labels(Y), "accuracy", all_right),
    ]
    for model, y, scoring, same in cases:
        told = drop_column_importance(model, X, y, columns=[0, [1, 2]], cv=folds, scoring=scoring)
        whole = cross_val_score(model, X, y, cv=folds, scoring=same)
        for place, columns in enumerate(([0], [1, 2])):
            less = cross_val_score(model, np.delete(X, columns, axis=1), y, cv=folds, scoring=same)
            np.testing.assert_allclose(told.each[place], whole - less, atol=1e-12)
    assert drop_column_importance(DecisionTreeClassifier(), X, pd.DataFrame(labels(Y))).mean[0] > 0


# ------------------------------------------------------------------------------------- impurity


def indicators(model, y):
    """Targets as the leaves have values: (n_rows, n_outputs, n_values), padded with zeros."""
    if not hasattr(model, "classes_"):
        return y[:, :, None].astype(float)
    width = max(len(classes) for classes in model.classes_)
    out = np.zeros((*y.shape, width))
    for o, classes in enumerate(model.classes_):
        for row, label in enumerate(y[:, o]):
            out[row, o, list(classes).index(label)] = 1
    return out


def walk(tree, X, targets):
    """What rows add to each column, from node to node: the mean over the outputs."""
    sums = np.zeros(X.shape[1])
    stack = [(0, np.arange(len(X)))]
    while stack:
        node, here = stack.pop()
        if tree.children_left[node] < 0 or not len(here):
            continue
        j = tree.feature[node]
        left = X[here, j] <= tree.threshold[node]
        for child, part in (
            (tree.children_left[node], here[left]),
            (tree.children_right[node], here[~left]),
        ):
            for o in range(targets.shape[1]):
                step = tree.value[child, o] - tree.value[node, o]
                far = (targets[part, o] - targets[here, o].mean(axis=0)).sum(axis=0)
                sums[j] += step @ far / targets.shape[1]
            stack.append((child, part))
    return sums / len(X)


@pytest.mark.parametrize("classes", [True, False])
def test_rows_out_of_the_bag_walk(classes):
    X, Y = signal(80)
    y = labels(Y) if classes else Y
    forest = (RandomForestClassifier if classes else RandomForestRegressor)(5, random_state=0)
    forest.fit(X, y)
    told = impurity_importance(forest, X, y)
    of_trees = []
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        out = np.setdiff1d(np.arange(80), drawn)
        of_trees.append(walk(tree.tree_, X[out], indicators(forest, y)[out]))
    np.testing.assert_allclose(told.each.T, of_trees, atol=1e-12)
    np.testing.assert_allclose(told.mean, np.mean(of_trees, axis=0), atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(2, 40),
    n_targets=st.integers(2, 4),
    n_classes=st.integers(0, 4),
)
@settings(max_examples=60, deadline=None)
def test_any_targets(seed, n_rows, n_targets, n_classes):
    """Rows held out walk as by hand, in any order."""
    random = np.random.default_rng(seed)
    X, held = random.normal(size=(30, 3)), random.normal(size=(n_rows, 3))
    if n_classes:
        y = random.integers(0, n_classes, (30, n_targets))
        tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
        own = np.column_stack([random.choice(classes, n_rows) for classes in tree.classes_])
    else:
        y, own = random.normal(size=(30, n_targets)), random.normal(size=(n_rows, n_targets))
        tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    told = impurity_importance(tree, held, own, held_out=True)
    np.testing.assert_allclose(told.mean, walk(tree.tree_, held, indicators(tree, own)), atol=1e-12)
    order = random.permutation(n_rows)
    again = impurity_importance(tree, held[order], own[order], held_out=True)
    np.testing.assert_allclose(again.mean, told.mean, atol=1e-12)
    np.testing.assert_allclose(again.error, told.error, atol=1e-12)


def test_over_its_own_rows_it_is_the_decrease_of_the_impurity():
    X, Y = signal()
    for tree, y in (
        (DecisionTreeRegressor(max_depth=4), Y),
        (DecisionTreeClassifier(max_depth=4), labels(Y)),
    ):
        told = impurity_importance(tree.fit(X, y), X, y, held_out=True)
        np.testing.assert_allclose(
            told.mean, tree.tree_.compute_feature_importances(normalize=False), atol=1e-12
        )


@pytest.mark.parametrize("kind", ["numbers", "classes", "weights of classes", "weights of rows"])
def test_corrected_importances_of_fit_are_the_same(kind):
    """With categories and missing values; bags that weights decide are found again."""
    X, Y = signal()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.random.default_rng(1).choice(list("pqrs"), 150))
    frame.loc[::9, "b"] = np.nan
    weights, options = None, {"importance_type": "corrected", "random_state": 0}
    if kind == "weights of rows":
        weights = np.random.default_rng(2).uniform(0.5, 3, 150)
    if kind == "weights of classes":
        options["class_weight"] = [{0: 1, 1: 4, 2: 1}, {0: 1, 1: 3}]
    make = RandomForestRegressor if kind == "numbers" else RandomForestClassifier
    y = Y if kind == "numbers" else labels(Y)
    forest = make(8, **options).fit(frame, y, sample_weight=weights)
    told = impurity_importance(forest, frame, y)
    np.testing.assert_allclose(told.mean, forest.feature_importances_, atol=1e-12)


@pytest.mark.parametrize("classes", [True, False])
def test_noise_has_no_importance_whatever_its_values(classes):
    random = np.random.default_rng(7)
    means, own, covered, n = [], [], [], 150
    for seed in range(40):
        frame = pd.DataFrame(
            {
                "tells": random.integers(0, 2, n),
                "two": random.integers(0, 2, n),
                "hundred": random.integers(0, 100, n),
                "all": random.normal(size=n),
                "categories": pd.Categorical(random.integers(0, 12, n).astype(str)),
            }
        )
        y = frame[["tells"]].to_numpy() * [1.0, -2.0] + random.normal(size=(n, 2))
        y = np.column_stack([np.digitize(y[:, 0], [0, 1]), y[:, 1] > -1]) if classes else y
        make = RandomForestClassifier if classes else RandomForestRegressor
        forest = make(30, max_features=2, random_state=seed).fit(frame, y)
        told = impurity_importance(forest, frame, y)
        low, high = told.interval(0.95)
        means.append(told.mean)
        covered.append((low < 0) & (high > 0))
        own.append(forest.feature_importances_)
    z = np.mean(means, axis=0) / (np.std(means, axis=0, ddof=1) / np.sqrt(len(means)))
    assert np.abs(z[1:]).max() < 3.3
    assert z[0] > 10
    assert np.mean(covered, axis=0)[1:].mean() > 0.85
    assert np.mean(own, axis=0)[3] > 3 * np.mean(own, axis=0)[1]  # what the forest reports


def test_boosters_of_several_targets():
    X, Y = signal()
    options = {"n_estimators": 5, "early_stopping": False, "random_state": 0}
    model = GradientBoostingRegressor(**options).fit(X[:100], Y[:100])
    told = impurity_importance(model, X[100:], Y[100:], held_out=True)
    by_tree = [
        walk(model._store.tree(t), X[100:], indicators(model, Y[100:]))
        for t in range(len(model._store))
    ]
    np.testing.assert_allclose(told.mean, np.sum(by_tree, axis=0), atol=1e-12)
    # All questions together are about the covariance of scores and targets (of rows held out, nodes
    # have other means than the whole).
    score = model.predict(X[100:])
    covariances = [np.mean((Y[100:, o] - Y[100:, o].mean()) * score[:, o]) for o in range(3)]
    assert told.mean.sum() == pytest.approx(np.mean(covariances), rel=0.05)


def test_plots_take_several_targets():
    X, Y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y)
    for kind in ("permutation", "corrected", "impurity"):
        ax = plot.importances(forest, X, Y, kind=kind, n_repeats=2, ax=Figure().subplots())
        assert len(ax.patches) == 4


# ------------------------------------------------------------------------------------- refusals

X, Y = signal(60)
TREE = DecisionTreeRegressor(max_depth=2).fit(X, Y)
CLASSES = DecisionTreeClassifier(max_depth=2).fit(X, labels(Y))
QUANTILES = GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.9], n_estimators=2)
QUANTILES.fit(X, Y[:, 0])
HELD_OUT = {"held_out": True}


@pytest.mark.parametrize(
    ("measure", "model", "y", "options", "message"),
    [
        (permutation_importance, TREE, Y[:, 0], {}, "model: .* each target in y, 1, got 3"),
        (permutation_importance, TREE, Y[:, :2], {}, "model: .* each target in y, 2, got 3"),
        (permutation_importance, CLASSES, Y[:, 0] > 0, {}, "model: .* each target in y, 1, got 2"),
        (permutation_importance, TREE, Y[:9], {}, "y: expected 60 values, one for each row"),
        (permutation_importance, TREE, Y[:, :0], {}, "y: expected at least one column, got none"),
        (permutation_importance, TREE, Y[:, :, None], {}, "y: expected one dimension, got shape"),
        (permutation_importance, TREE, np.where(Y > 2, np.nan, Y), {}, "y: expected no missing"),
        (
            *(permutation_importance, CLASSES, labels(Y), {"scoring": "f1"}),
            "scoring: expected a score of 2 targets, got 'f1': multiclass-multioutput",
        ),
        (
            *(drop_column_importance, CLASSES, labels(Y), {"scoring": "roc_auc"}),
            "scoring: expected a score of 2 targets, got 'roc_auc'",
        ),
        (
            *(permutation_importance, TREE, Y, {"scoring": "roc_auc"}),
            "scoring: expected a score of 3 targets, got 'roc_auc'",
        ),
        (permutation_importance, TREE, Y, {"scoring": ["r2"]}, "scoring: expected one score, got"),
        (drop_column_importance, TREE, Y[:9], {}, "y: expected 60 values, one for each row"),
        (impurity_importance, TREE, Y[:, 0], HELD_OUT, "y: expected 3 targets, .*, got 1"),
        (impurity_importance, CLASSES, Y > 0, HELD_OUT, "y: expected 2 targets, .*, got 3"),
        (impurity_importance, CLASSES, labels(Y) + 1, HELD_OUT, "y: expected classes of the model"),
        (impurity_importance, TREE, np.where(Y > 0, "a", "b"), HELD_OUT, "y: expected numbers"),
        (
            impurity_importance,
            QUANTILES,
            Y[:, 0],
            HELD_OUT,
            "model: .*, got one that predicts 2 quantiles",
        ),
    ],
)
def test_refused_by_name(measure, model, y, options, message):
    with pytest.raises(ValueError, match=message):
        measure(model, X, y, **options)


def test_what_a_model_refuses_is_told_by_the_model():
    with pytest.raises(ValueError, match="X has 3 features"):
        permutation_importance(CLASSES, X[:, :3], labels(Y), scoring="f1_macro")


def test_dependence_does_not_take_the_first_target_for_the_one():
    for model in (TREE, RandomForestRegressor(2).fit(X, Y), LinearRegression().fit(X, Y)):
        with pytest.raises(ValueError, match="model: expected one output, got 3"):
            partial_dependence(model, X, 0)
