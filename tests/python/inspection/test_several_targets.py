"""Importances of models with several targets, compared with references."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.inspection import permutation_importance as sklearn_importance
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


def class_name(model):
    return type(model).__name__


def signal(n=150, seed=0):
    """Return rows, and three targets that depend on the first two of four columns."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    noise = 0.3 * random.normal(size=(n, 3))
    return X, np.column_stack([X[:, 0], 2 * X[:, 1], X[:, 0] - X[:, 1]]) + noise


def labels(Y):
    """Two targets: one of three classes, one of two."""
    return np.column_stack([np.digitize(Y[:, 0], [-0.5, 0.5]), (Y[:, 1] > 0).astype(int)])


def exact_match_accuracy(model, X, y):
    predicted = model.predict(X)
    return np.mean([tuple(predicted[row]) == tuple(y[row]) for row in range(len(y))])


# ---------------------------------------------------------------------------------- permutation


@pytest.mark.parametrize("model", REGRESSORS, ids=class_name)
@pytest.mark.parametrize(
    "scoring",
    [
        *(None, "r2", "neg_mean_squared_error", "neg_mean_absolute_error"),
        *("neg_root_mean_squared_error", "explained_variance"),
    ],
)
def test_permutation_for_regression_matches_scikit_learn(model, scoring):
    X, Y = signal()
    model.fit(X[::2], Y[::2])
    result = permutation_importance(model, X, Y, scoring=scoring, n_repeats=3, random_state=3)
    expected = sklearn_importance(model, X, Y, scoring=scoring, n_repeats=3, random_state=3)
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-10)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=class_name)
@pytest.mark.parametrize("scoring", [None, "accuracy"])
def test_accuracy_counts_rows_with_all_targets_right(model, scoring):
    """The scorer replaces scikit-learn's accuracy, which rejects such targets."""
    X, Y = signal()
    for y in (labels(Y), (Y > 0).astype(int)):
        model.fit(X[::2], y[::2])
        result = permutation_importance(model, X, y, scoring=scoring, n_repeats=3, random_state=3)
        expected = sklearn_importance(
            model, X, y, scoring=exact_match_accuracy, n_repeats=3, random_state=3
        )
        np.testing.assert_allclose(result.each, expected.importances, atol=1e-12)
        assert result.kind == "decrease of the accuracy when shuffled"


def test_multioutput_scores_and_callables():
    X, Y = signal()
    forest = RandomForestClassifier(8, random_state=0).fit(X, Y > 0)
    result = permutation_importance(forest, X, Y > 0, scoring="f1_macro", n_repeats=2)
    expected = sklearn_importance(forest, X, Y > 0, scoring="f1_macro", n_repeats=2, random_state=0)
    np.testing.assert_allclose(result.each, expected.importances, atol=1e-12)
    weighted = permutation_importance(
        RandomForestRegressor(8, random_state=0).fit(X, Y),
        X,
        Y,
        scoring=lambda model, X, y: r2_score(y, model.predict(X), multioutput=[1, 0, 0]),
    )
    assert weighted.mean[0] > 5 * weighted.mean[1]  # the first target depends on the first column


@pytest.mark.parametrize("classes", [True, False])
def test_standard_error_matches_resampling(classes):
    X, Y = signal(300)
    model = (DecisionTreeClassifier if classes else DecisionTreeRegressor)(max_depth=4)
    model.fit(X, labels(Y) if classes else Y)
    means, errors = [], []
    for seed in range(60):
        X, Y = signal(150, seed + 1)
        y = labels(Y) if classes else Y
        result = permutation_importance(model, X, y, n_repeats=5, random_state=seed)
        means.append(result.mean[0])
        errors.append(result.error[0])
    assert np.std(means) == pytest.approx(np.mean(errors), rel=0.35)


def test_target_types_agree():
    X, Y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y)
    groups = {"both": [0, 1], "noise": [2, 3]}
    result = permutation_importance(forest, X, Y, columns=groups, max_rows=100)
    assert result.names == ["both", "noise"]
    assert result.mean[0] > 10 * abs(result.mean[1])
    for targets in (pd.DataFrame(Y), pl.DataFrame(Y, schema=list("abc")), Y.tolist()):
        other = permutation_importance(forest, X, targets, columns=groups, max_rows=100)
        np.testing.assert_array_equal(other.each, result.each)
    text_labels = np.array(["no", "so", "yes"])[labels(Y)]
    tree = DecisionTreeClassifier(max_depth=3).fit(X, text_labels)
    of_array = permutation_importance(tree, X, text_labels, n_repeats=2)
    of_frame = permutation_importance(
        tree, X, pd.DataFrame(text_labels).astype("category"), n_repeats=2
    )
    np.testing.assert_array_equal(of_array.each, of_frame.each)


def test_target_with_one_column_is_one_target():
    X, Y = signal()
    for model in (LinearRegression(), RandomForestRegressor(4, random_state=0)):
        model.fit(X, Y[:, 0])
        one = permutation_importance(model, X, Y[:, 0])
        np.testing.assert_array_equal(permutation_importance(model, X, Y[:, :1]).each, one.each)
    one = impurity_importance(model, X, Y[:, 0])
    np.testing.assert_array_equal(impurity_importance(model, X, Y[:, :1]).each, one.each)


# ---------------------------------------------------------------------------------- drop column


def test_drop_column_matches_refitting():
    X, Y = signal(90)
    folds = KFold(3)
    cases = [
        (DecisionTreeRegressor(max_depth=3, random_state=0), Y, None, None),
        (LinearRegression(), Y, "neg_root_mean_squared_error", "neg_root_mean_squared_error"),
        (
            DecisionTreeClassifier(max_depth=3, random_state=0),
            labels(Y),
            None,
            exact_match_accuracy,
        ),
        (KNeighborsClassifier(), labels(Y), "accuracy", exact_match_accuracy),
    ]
    for model, y, scoring, reference_scoring in cases:
        result = drop_column_importance(model, X, y, columns=[0, [1, 2]], cv=folds, scoring=scoring)
        with_all = cross_val_score(model, X, y, cv=folds, scoring=reference_scoring)
        for index, columns in enumerate(([0], [1, 2])):
            without_columns = cross_val_score(
                model, np.delete(X, columns, axis=1), y, cv=folds, scoring=reference_scoring
            )
            np.testing.assert_allclose(result.each[index], with_all - without_columns, atol=1e-12)
    assert drop_column_importance(DecisionTreeClassifier(), X, pd.DataFrame(labels(Y))).mean[0] > 0


# ------------------------------------------------------------------------------------- impurity


def indicators(model, y):
    """Return targets in the layout of leaf values: (n_rows, n_outputs, n_values)."""
    if not hasattr(model, "classes_"):
        return y[:, :, None].astype(float)
    width = max(len(classes) for classes in model.classes_)
    values = np.zeros((*y.shape, width))
    for o, classes in enumerate(model.classes_):
        for row, label in enumerate(y[:, o]):
            values[row, o, list(classes).index(label)] = 1
    return values


def walk(tree, X, targets):
    """Return the contributions of the splits by column, averaged over outputs."""
    sums = np.zeros(X.shape[1])
    stack = [(0, np.arange(len(X)))]
    while stack:
        node, node_rows = stack.pop()
        if tree.children_left[node] < 0 or not len(node_rows):
            continue
        j = tree.feature[node]
        left = X[node_rows, j] <= tree.threshold[node]
        for child, child_rows in (
            (tree.children_left[node], node_rows[left]),
            (tree.children_right[node], node_rows[~left]),
        ):
            for o in range(targets.shape[1]):
                step = tree.value[child, o] - tree.value[node, o]
                deviation = (targets[child_rows, o] - targets[node_rows, o].mean(axis=0)).sum(
                    axis=0
                )
                sums[j] += step @ deviation / targets.shape[1]
            stack.append((child, child_rows))
    return sums / len(X)


@pytest.mark.parametrize("classes", [True, False])
def test_out_of_bag_contributions_match_a_walk(classes):
    X, Y = signal(80)
    y = labels(Y) if classes else Y
    forest = (RandomForestClassifier if classes else RandomForestRegressor)(5, random_state=0)
    forest.fit(X, y)
    result = impurity_importance(forest, X, y)
    by_tree = []
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        out_of_bag = np.setdiff1d(np.arange(80), drawn)
        by_tree.append(walk(tree.tree_, X[out_of_bag], indicators(forest, y)[out_of_bag]))
    np.testing.assert_allclose(result.each.T, by_tree, atol=1e-12)
    np.testing.assert_allclose(result.mean, np.mean(by_tree, axis=0), atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(2, 40),
    n_targets=st.integers(2, 4),
    n_classes=st.integers(0, 4),
)
@settings(max_examples=60, deadline=None)
def test_random_targets_match_a_walk(seed, n_rows, n_targets, n_classes):
    """The result matches the reference walk and does not depend on the order of rows."""
    random = np.random.default_rng(seed)
    X, X_test = random.normal(size=(30, 3)), random.normal(size=(n_rows, 3))
    if n_classes:
        y = random.integers(0, n_classes, (30, n_targets))
        tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
        y_test = np.column_stack([random.choice(classes, n_rows) for classes in tree.classes_])
    else:
        y, y_test = random.normal(size=(30, n_targets)), random.normal(size=(n_rows, n_targets))
        tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    result = impurity_importance(tree, X_test, y_test, held_out=True)
    np.testing.assert_allclose(
        result.mean, walk(tree.tree_, X_test, indicators(tree, y_test)), atol=1e-12
    )
    order = random.permutation(n_rows)
    reordered = impurity_importance(tree, X_test[order], y_test[order], held_out=True)
    np.testing.assert_allclose(reordered.mean, result.mean, atol=1e-12)
    np.testing.assert_allclose(reordered.error, result.error, atol=1e-12)


def test_importance_on_training_rows_is_the_impurity_decrease():
    X, Y = signal()
    for tree, y in (
        (DecisionTreeRegressor(max_depth=4), Y),
        (DecisionTreeClassifier(max_depth=4), labels(Y)),
    ):
        result = impurity_importance(tree.fit(X, y), X, y, held_out=True)
        np.testing.assert_allclose(
            result.mean, tree.tree_.compute_feature_importances(normalize=False), atol=1e-12
        )


@pytest.mark.parametrize("kind", ["regression", "classes", "class weights", "sample weights"])
def test_fitted_corrected_importances_are_the_same(kind):
    """Out-of-bag rows are reconstructed, also if weights affect the bootstrap."""
    X, Y = signal()
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["e"] = pd.Categorical(np.random.default_rng(1).choice(list("pqrs"), 150))
    frame.loc[::9, "b"] = np.nan
    weights, options = None, {"importance_type": "corrected", "random_state": 0}
    if kind == "sample weights":
        weights = np.random.default_rng(2).uniform(0.5, 3, 150)
    if kind == "class weights":
        options["class_weight"] = [{0: 1, 1: 4, 2: 1}, {0: 1, 1: 3}]
    forest_class = RandomForestRegressor if kind == "regression" else RandomForestClassifier
    y = Y if kind == "regression" else labels(Y)
    forest = forest_class(8, **options).fit(frame, y, sample_weight=weights)
    result = impurity_importance(forest, frame, y)
    np.testing.assert_allclose(result.mean, forest.feature_importances_, atol=1e-12)


@pytest.mark.parametrize("classes", [True, False])
def test_noise_has_no_importance_for_any_number_of_values(classes):
    random = np.random.default_rng(7)
    means, own_importances, covered, n = [], [], [], 150
    for seed in range(40):
        frame = pd.DataFrame(
            {
                "informative": random.integers(0, 2, n),
                "two": random.integers(0, 2, n),
                "hundred": random.integers(0, 100, n),
                "all": random.normal(size=n),
                "categories": pd.Categorical(random.integers(0, 12, n).astype(str)),
            }
        )
        y = frame[["informative"]].to_numpy() * [1.0, -2.0] + random.normal(size=(n, 2))
        y = np.column_stack([np.digitize(y[:, 0], [0, 1]), y[:, 1] > -1]) if classes else y
        forest_class = RandomForestClassifier if classes else RandomForestRegressor
        forest = forest_class(30, max_features=2, random_state=seed).fit(frame, y)
        result = impurity_importance(forest, frame, y)
        low, high = result.interval(0.95)
        means.append(result.mean)
        covered.append((low < 0) & (high > 0))
        own_importances.append(forest.feature_importances_)
    z = np.mean(means, axis=0) / (np.std(means, axis=0, ddof=1) / np.sqrt(len(means)))
    assert np.abs(z[1:]).max() < 3.3
    assert z[0] > 10
    assert np.mean(covered, axis=0)[1:].mean() > 0.85
    assert (
        np.mean(own_importances, axis=0)[3] > 3 * np.mean(own_importances, axis=0)[1]
    )  # the forest's own importances


def test_boosters_match_a_walk():
    X, Y = signal()
    options = {"n_estimators": 5, "early_stopping": False, "random_state": 0}
    model = GradientBoostingRegressor(**options).fit(X[:100], Y[:100])
    result = impurity_importance(model, X[100:], Y[100:], held_out=True)
    by_tree = [
        walk(model.fitted_model().store.tree(t), X[100:], indicators(model, Y[100:]))
        for t in range(len(model.fitted_model().store))
    ]
    np.testing.assert_allclose(result.mean, np.sum(by_tree, axis=0), atol=1e-12)
    # The sum over all columns is close to the covariance of scores and targets. It differs because
    # held-out rows have other means in the nodes.
    score = model.predict(X[100:])
    covariances = [np.mean((Y[100:, o] - Y[100:, o].mean()) * score[:, o]) for o in range(3)]
    assert result.mean.sum() == pytest.approx(np.mean(covariances), rel=0.05)


def test_plots_accept_several_targets():
    X, Y = signal()
    forest = RandomForestRegressor(5, random_state=0).fit(X, Y)
    for kind in ("permutation", "corrected", "impurity"):
        ax = plot.importances(forest, X, Y, kind=kind, n_repeats=2, ax=Figure().subplots())
        assert len(ax.patches) == 4


# ------------------------------------------------------------------------------- invalid input

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
def test_invalid_targets_raise(measure, model, y, options, message):
    with pytest.raises(ValueError, match=message):
        measure(model, X, y, **options)


def test_errors_of_the_model_are_passed_on():
    with pytest.raises(ValueError, match="X has 3 features"):
        permutation_importance(CLASSES, X[:, :3], labels(Y), scoring="f1_macro")


def test_dependence_of_several_outputs_needs_a_target():
    for model in (TREE, RandomForestRegressor(2).fit(X, Y), LinearRegression().fit(X, Y)):
        with pytest.raises(ValueError, match="model: expected one output, got 3"):
            partial_dependence(model, X, 0)
