"""Tests of `slow_tree` and `tree_checker`: closed forms, valid and altered trees."""

import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.tree
from sklearn.metrics import mean_poisson_deviance

from reference import slow_tree
from reference import tree_checker as checker
from spinney.data.sklearn_versions import SKLEARN_VERSION

CLASSIFIER_CRITERIA = ["gini", "entropy", "log_loss"]
REGRESSOR_CRITERIA = ["squared_error", "absolute_error", "poisson"]

CORRECT_TREES = pytest.mark.skipif(
    SKLEARN_VERSION < (1, 9),
    reason="trees of scikit-learn before 1.9 have errors in splits on missing values and medians",
)


# --------------------------------------------------------------------------------------
# Closed forms
# --------------------------------------------------------------------------------------


def test_impurity_of_the_lecture_example():
    """Class probabilities (4/7, 2/7, 1/7): Gini 4/7, entropy 1.38 bits, error 3/7."""
    y = np.repeat([0, 1, 2], [4, 2, 1])
    assert slow_tree.impurity(y, criterion="gini") == pytest.approx(4 / 7, rel=1e-15)
    assert slow_tree.impurity(y, criterion="entropy") == pytest.approx(
        1.3787834934861756, rel=1e-15
    )
    assert slow_tree.impurity(y, criterion="misclassification") == pytest.approx(3 / 7, rel=1e-15)


@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_impurity_of_balanced_classes(n_classes):
    y = np.repeat(np.arange(n_classes), 3)
    assert slow_tree.impurity(y, criterion="gini") == pytest.approx(1 - 1 / n_classes, abs=1e-15)
    assert slow_tree.impurity(y, criterion="log_loss") == pytest.approx(
        math.log2(n_classes), abs=1e-15
    )
    error = slow_tree.impurity(y, criterion="misclassification")
    assert error == pytest.approx(1 - 1 / n_classes, abs=1e-15)


def test_impurity_of_consecutive_numbers():
    """For even n, the variance is (n² - 1) / 12 and the mean distance to the median n/4."""
    y = np.arange(10.0)
    assert slow_tree.impurity(y, criterion="squared_error") == pytest.approx(99 / 12, rel=1e-15)
    assert slow_tree.impurity(y, criterion="absolute_error") == pytest.approx(10 / 4, rel=1e-15)


def test_poisson_impurity_is_half_the_mean_deviance():
    rng = np.random.default_rng(0)
    y, w = rng.poisson(1.5, 40).astype(float), rng.random(40)
    mean = np.full(40, np.average(y, weights=w))
    expected = mean_poisson_deviance(y, mean, sample_weight=w) / 2
    assert slow_tree.impurity(y, w, "poisson") == pytest.approx(expected, rel=1e-12)
    assert slow_tree.impurity(np.zeros(3), criterion="poisson") == math.inf


@pytest.mark.parametrize(
    ("y", "w", "median"),
    [
        ([3, 1, 2], [1, 1, 1], 2),
        ([4, 1, 3, 2], [1, 1, 1, 1], 2.5),
        ([1, 2, 3], [3, 1, 1], 1),
        ([1, 2, 3], [2, 1, 1], 1.5),
        ([1, 2, 3], [1, 0, 1], 2),  # rows of weight zero do not count
        ([1, 5, 3], [1, 0, 1], 2),
    ],
)
def test_weighted_median(y, w, median):
    assert slow_tree.weighted_median(np.array(y, float), np.array(w, float)) == median


@pytest.mark.parametrize("criterion", [*CLASSIFIER_CRITERIA, "misclassification"])
def test_weights_equal_repeated_rows_for_classes(criterion):
    y, w = np.array([0, 1, 2, 1]), np.array([3, 1, 2, 2])
    repeated = slow_tree.impurity(np.repeat(y, w), criterion=criterion)
    assert slow_tree.impurity(y, w, criterion) == pytest.approx(repeated, rel=1e-14)


@pytest.mark.parametrize("criterion", REGRESSOR_CRITERIA)
def test_weights_equal_repeated_rows_for_regression(criterion):
    y, w = np.array([0.5, 1, 4, 0]), np.array([3, 1, 2, 2])
    repeated = slow_tree.impurity(np.repeat(y, w), criterion=criterion)
    assert slow_tree.impurity(y, w, criterion) == pytest.approx(repeated, rel=1e-14)


def test_several_outputs_are_averaged():
    y = np.array([[0, 1], [0, 0], [1, 1], [1, 1]])
    one, two = (slow_tree.impurity(column, criterion="gini") for column in y.T)
    assert (one, two) == (0.5, 0.375)
    assert slow_tree.impurity(y, criterion="gini") == (one + two) / 2


@pytest.mark.parametrize(
    ("a", "b", "threshold"),
    [
        (1.0, 2.0, 1.5),
        (1.0, np.nextafter(1.0, 2.0), 1.0),
        (np.nextafter(1.0, 0.0), 1.0, np.nextafter(1.0, 0.0)),
        (-1.7e308, 1.7e308, 0.0),
        (1.7e308, 1.79e308, 1.745e308),
        (5e-324, 1e-323, 5e-324),
    ],
)
def test_midpoint(a, b, threshold):
    assert slow_tree.midpoint(a, b) == pytest.approx(threshold, rel=1e-15, abs=0)
    assert a <= slow_tree.midpoint(a, b) < b


# --------------------------------------------------------------------------------------
# Best gains computed by hand
# --------------------------------------------------------------------------------------

NAN = np.nan


def column(*values):
    return np.array(values, dtype=float).reshape(-1, 1)


def test_perfect_threshold_gains_the_whole_impurity():
    X, y = column(0, 1, 2, 3), np.array([0, 0, 1, 1])
    assert slow_tree.best_gain(X, y, criterion="gini") == 0.5
    assert slow_tree.best_gain(X, y, criterion="entropy") == 1.0
    assert slow_tree.best_gain(X, y, criterion="misclassification") == 0.5
    assert slow_tree.best_gain(X, 4.0 * y, criterion="squared_error") == 4.0
    assert slow_tree.best_gain(X, 4.0 * y, criterion="absolute_error") == 2.0


def test_exclusive_or_has_no_gain():
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
    assert slow_tree.best_gain(X, np.array([0, 1, 1, 0])) == 0.0


def test_weights_change_the_best_gain():
    # Best cut: weights 2 of class 0 | 2 of class 1 and 1 of class 0: 12/25 - 3/5 * 4/9.
    X, y, w = column(0, 1, 2), np.array([0, 1, 0]), np.array([2.0, 2.0, 1.0])
    assert slow_tree.best_gain(X, y, w) == pytest.approx(12 / 25 - 3 / 5 * 4 / 9, rel=1e-14)
    assert slow_tree.best_gain(X, y, np.array([2.0, 2.0, 0.0])) == 0.5


def test_limits_forbid_splits():
    X, y = column(0, 1, 2, 3), np.array([0, 1, 1, 1])
    assert slow_tree.best_gain(X, y) == pytest.approx(3 / 8, rel=1e-15)
    two_each = slow_tree.best_gain(X, y, min_samples_leaf=2)
    assert two_each == pytest.approx(3 / 8 - 1 / 4, rel=1e-15)
    assert slow_tree.best_gain(X, y, min_weight_leaf=2.0) == two_each
    assert slow_tree.best_gain(X, y, min_samples_leaf=3) == -math.inf
    assert slow_tree.best_gain(column(1, 1, 1, 1), y) == -math.inf


def test_monotonic_signs_forbid_splits():
    X, y = column(0, 1), np.array([0.0, 1.0])
    assert slow_tree.best_gain(X, y, criterion="squared_error", monotonic_cst=(1,)) == 0.25
    assert slow_tree.best_gain(X, y, criterion="squared_error", monotonic_cst=(-1,)) == -math.inf
    bounded = slow_tree.best_gain(
        X, y, criterion="squared_error", monotonic_cst=(1,), bounds=(-math.inf, 0.5)
    )
    assert bounded == -math.inf


def test_poisson_forbids_children_without_events():
    X = column(0, 1, 2, 3)
    assert slow_tree.best_gain(X, np.array([0.0, 0, 0, 1]), criterion="poisson") == -math.inf
    assert slow_tree.best_gain(X, np.array([0.0, 1, 1, 1]), criterion="poisson") > 0


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        ([0, 1, NAN, NAN], [0, 1, 0, 0]),  # with the small values
        ([0, 1, NAN, NAN], [0, 1, 1, 1]),  # with the large values
        ([5, 5, NAN, NAN], [0, 0, 1, 1]),  # against all others
        ([0, 1, NAN, NAN], [0, 0, 1, 1]),
    ],
)
def test_missing_values_may_be_on_either_side(values, classes):
    y = np.array(classes)
    assert slow_tree.best_gain(column(*values), y) == slow_tree.impurity(y)


def test_missing_values_cannot_form_an_interval():
    """Missing values on the left and the middle value on the right is not a split."""
    X, y = column(0, 1, 2, NAN), np.array([0, 1, 0, 0])
    assert slow_tree.best_gain(X, y) < slow_tree.impurity(y)
    assert slow_tree.best_gain(X, y, categorical=[0]) == slow_tree.impurity(y)


def test_categories_are_split_into_any_subsets():
    X, y = column(0, 1, 2, 3, 3), np.array([0, 1, 0, 1, 1])
    assert slow_tree.best_gain(X, y) < slow_tree.impurity(y)
    assert slow_tree.best_gain(X, y, categorical=[0]) == slow_tree.impurity(y)
    assert slow_tree.best_gain(X, y, categorical=[True]) == slow_tree.impurity(y)


# --------------------------------------------------------------------------------------
# Categories: which subsets can be the best
# --------------------------------------------------------------------------------------


def category_table(rng, n_rows, n_codes, criterion):
    codes = rng.integers(n_codes, size=n_rows).astype(float)
    codes[rng.random(n_rows) < 0.1] = np.nan
    w = rng.integers(1, 9, n_rows) / 4
    if criterion in ("squared_error", "poisson", "absolute_error"):
        return codes.reshape(-1, 1), rng.integers(1, 20, n_rows) / 4, w
    return codes.reshape(-1, 1), rng.integers(2, size=n_rows), w


@pytest.mark.parametrize(
    "criterion", ["squared_error", "poisson", "gini", "entropy", "misclassification"]
)
def test_best_subset_is_a_cut_in_the_order_of_means(criterion):
    rng = np.random.default_rng(1)
    for _ in range(30):
        X, y, w = category_table(rng, 25, 6, criterion)
        columns, y = slow_tree.read_table(X, [0]), slow_tree.as_outputs(y)
        masks = slow_tree.present_categories(columns[0].values)
        cuts = slow_tree.ordered_partitions(masks, slow_tree.category_keys(masks, y, w, criterion))
        best_cut = max((slow_tree.gain(y, w, left, criterion) for left in cuts), default=0.0)
        assert best_cut == pytest.approx(slow_tree.best_gain(columns, y, w, criterion), abs=1e-12)


def test_best_subset_with_limits_need_not_be_a_cut():
    """With three rows per child no cut is allowed, but the two ends together are."""
    X = column(0, 0, 1, 1, 1, 2, 2)
    y = np.array([0.0, 0, 5, 5, 5, 9, 9])
    masks = slow_tree.present_categories(X[:, 0])
    cuts = list(slow_tree.ordered_partitions(masks, [0, 5, 9]))
    assert all(min(left.sum(), (~left).sum()) < 3 for left in cuts)
    limited = slow_tree.best_gain(
        X, y, criterion="squared_error", categorical=[0], min_samples_leaf=3
    )
    assert 0 < limited < slow_tree.best_gain(X, y, criterion="squared_error", categorical=[0])


def test_poisson_without_events_the_best_subset_need_not_be_a_cut():
    """No child may have a zero sum, so the best subset need not be a cut."""
    X = column(*[0] * 10, *[1] * 10, 2)
    y = np.array([0.0] * 10 + [3.0] * 10 + [3.5])
    masks = slow_tree.present_categories(X[:, 0])
    left = np.logical_or(masks[0], masks[1])  # the only admissible cut
    cut = slow_tree.gain(y, np.ones(21), left, "poisson")
    assert slow_tree.best_gain(X, y, criterion="poisson", categorical=[0]) > 2 * cut


# --------------------------------------------------------------------------------------
# scikit-learn's trees pass the check
# --------------------------------------------------------------------------------------


def random_problem(rng, criterion, *, missing=False, n_outputs=1, weights="none"):
    """Return numbers with many ties and exact sums that are exact in float32."""
    n_rows, n_columns = int(rng.integers(2, 40)), int(rng.integers(1, 5))
    X = rng.integers(-4, 5, (n_rows, n_columns)) / 2
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    if criterion in CLASSIFIER_CRITERIA:
        y = rng.integers(rng.integers(1, 5), size=(n_rows, n_outputs))
    else:
        y = rng.integers(0, 12, (n_rows, n_outputs)) / 4
        y[0] = 1.0  # Poisson needs an event
    w = {
        "none": None,
        "integers": rng.integers(0, 3, n_rows).astype(float),
        "fractions": rng.integers(1, 17, n_rows) / 8,
    }[weights]
    if w is not None:
        w[0] = 1.0
    return X, y[:, 0] if n_outputs == 1 else y, w


def sklearn_tree(criterion, **parameters):
    if criterion in CLASSIFIER_CRITERIA:
        return sklearn.tree.DecisionTreeClassifier(criterion=criterion, **parameters)
    return sklearn.tree.DecisionTreeRegressor(criterion=criterion, **parameters)


GROWTH = [
    {},
    {"max_depth": 2},
    {"min_samples_leaf": 3},
    {"min_samples_split": 0.3, "min_samples_leaf": 0.1},
    {"min_weight_fraction_leaf": 0.125},
    {"min_impurity_decrease": 1 / 32},
    {"max_leaf_nodes": 4},
    {"max_leaf_nodes": 6, "min_samples_leaf": 2},
    {"max_features": 1},
    {"splitter": "random"},
    {"splitter": "random", "min_samples_leaf": 2, "max_features": 1},
]


@CORRECT_TREES
@pytest.mark.parametrize("parameters", GROWTH, ids=str)
@pytest.mark.parametrize("criterion", CLASSIFIER_CRITERIA + REGRESSOR_CRITERIA)
def test_scikit_learn_trees_pass(criterion, parameters):
    rng = np.random.default_rng(2)
    n_internal = 0
    for repeat in range(12):
        X, y, w = random_problem(
            rng,
            criterion,
            missing=repeat % 2 == 1,
            n_outputs=1 + repeat % 3 // 2,
            weights=("none", "integers", "fractions")[repeat % 3],
        )
        tree = sklearn_tree(criterion, random_state=repeat, **parameters)
        n_internal += checker.check_tree(tree.fit(X, y, sample_weight=w), X, y, w)
    assert n_internal > 5


@CORRECT_TREES
@pytest.mark.parametrize("criterion", ["gini", "entropy", *REGRESSOR_CRITERIA])
def test_monotonic_scikit_learn_trees_pass(criterion):
    rng = np.random.default_rng(3)
    n_internal = 0
    for repeat in range(20):
        X, y, w = random_problem(rng, criterion, missing=repeat % 2 == 1)
        if criterion in CLASSIFIER_CRITERIA:
            y = np.r_[0, 1, y[2:] % 2]
        signs = rng.integers(-1, 2, X.shape[1])
        growth = {"max_leaf_nodes": 5} if repeat % 4 == 0 else {}
        tree = sklearn_tree(criterion, monotonic_cst=signs, random_state=repeat, **growth)
        n_internal += checker.check_tree(tree.fit(X, y, sample_weight=w), X, y, w)
    assert n_internal > 20


def test_trees_with_class_weights_pass():
    rng = np.random.default_rng(4)
    X, y, w = random_problem(rng, "gini", weights="fractions")
    tree = sklearn.tree.DecisionTreeClassifier(class_weight="balanced", random_state=0)
    checker.check_tree(tree.fit(X, y, sample_weight=w), X, y, w, exact=False)


@CORRECT_TREES
def test_trees_on_inexact_numbers_pass():
    rng = np.random.default_rng(5)
    for criterion in CLASSIFIER_CRITERIA + REGRESSOR_CRITERIA:
        X = rng.normal(size=(60, 3)).astype(np.float32)
        y = rng.integers(3, size=60) if criterion in CLASSIFIER_CRITERIA else rng.random(60)
        w = rng.random(60)
        tree = sklearn_tree(criterion, min_weight_fraction_leaf=0.02, random_state=0)
        tree.fit(X, y, sample_weight=w)
        assert checker.check_tree(tree, X, y, w, exact=False) > 3


@CORRECT_TREES
@pytest.mark.parametrize("criterion", CLASSIFIER_CRITERIA + REGRESSOR_CRITERIA)
def test_best_gain_is_the_gain_of_a_stump(criterion):
    rng = np.random.default_rng(6)
    for repeat in range(20):
        X, y, w = random_problem(rng, criterion, missing=repeat % 2 == 0, weights="integers")
        stump = sklearn_tree(criterion, max_depth=1, random_state=0).fit(X, y, sample_weight=w)
        if stump.tree_.node_count == 1:
            continue
        cost = stump.tree_.impurity * stump.tree_.weighted_n_node_samples
        stump_gain = (cost[0] - cost[1] - cost[2]) / stump.tree_.weighted_n_node_samples[0]
        codes = slow_tree.encode_classes(y)[0] if criterion in CLASSIFIER_CRITERIA else y
        assert slow_tree.best_gain(X, codes, w, criterion) == pytest.approx(stump_gain, abs=1e-12)


# --------------------------------------------------------------------------------------
# Altered trees fail the check
# --------------------------------------------------------------------------------------

TREE_ARRAYS = [
    "children_left",
    "children_right",
    "feature",
    "threshold",
    "impurity",
    "value",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
]


class AlteredTree:
    """An estimator whose tree and reported parameters can be altered.

    Its predictions follow its tree, so that the check fails for the alteration itself.
    """

    def __init__(self, estimator, tree=None, categories=None, **altered):
        self._parameters = {**estimator.get_params(), **altered}
        self.max_features_ = estimator.max_features_
        self.n_features_in_ = estimator.n_features_in_
        self.categories_ = categories
        if hasattr(estimator, "classes_"):
            self.classes_ = estimator.classes_
        if tree is None:
            tree = SimpleNamespace(
                node_count=estimator.tree_.node_count,
                n_leaves=estimator.tree_.n_leaves,
                max_depth=estimator.tree_.max_depth,
                **{name: getattr(estimator.tree_, name).copy() for name in TREE_ARRAYS},
            )
        self.tree_ = tree

    def get_params(self):
        return self._parameters

    def get_n_leaves(self):
        return self.tree_.n_leaves

    def get_depth(self):
        return self.tree_.max_depth

    def apply(self, X):
        categorical = [] if self.categories_ is None else range(len(self.categories_))
        return checker.walk_to_leaves(self, slow_tree.read_table(X, categorical))

    def predict_proba(self, X):
        return self.tree_.value[self.apply(X)][:, 0]

    def predict(self, X):
        if hasattr(self, "classes_"):
            return self.classes_[self.predict_proba(X).argmax(axis=1)]
        return self.predict_proba(X)[:, 0]

    @property
    def feature_importances_(self):
        tree, total = self.tree_, np.zeros(self.n_features_in_)
        cost = tree.impurity * tree.weighted_n_node_samples
        for node in np.flatnonzero(tree.children_left >= 0):
            children = [tree.children_left[node], tree.children_right[node]]
            total[tree.feature[node]] += cost[node] - cost[children].sum()
        return total / total.sum() if total.sum() > 0 else total


@pytest.fixture
def fitted():
    rng = np.random.default_rng(7)
    X = rng.integers(-4, 5, (40, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] > rng.integers(-2, 3, 40)).astype(int) + (X[:, 2] > 2)
    tree = sklearn.tree.DecisionTreeClassifier(random_state=0).fit(X, y)
    assert tree.tree_.node_count > 9
    return tree, X, y


def test_unaltered_copy_passes(fitted):
    tree, X, y = fitted
    assert checker.check_tree(AlteredTree(tree), X, y) == tree.tree_.node_count // 2


def change(name, node, factor):
    def alter(tree):
        array = getattr(tree, name)
        array[node] = array[node] * factor if factor is not None else ~array[node].astype(bool)

    return alter


def threshold_at_a_value(tree):
    """Put the threshold at a value, not between two; the partition stays the same."""
    tree.threshold[0] = np.floor(tree.threshold[0])


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (change("n_node_samples", 1, 2), "n_node_samples"),
        (change("weighted_n_node_samples", 1, 1 + 1e-6), "weight of node 1"),
        (change("impurity", 0, 1 + 1e-6), "impurity of node 0"),
        (change("value", 2, 1 + 1e-6), "value of node 2"),
        (change("missing_go_to_left", 0, None), "larger child"),
        (threshold_at_a_value, "threshold"),
    ],
    ids=["count", "weight", "impurity", "value", "missing", "threshold"],
)
def test_altered_arrays_are_detected(fitted, alter, message):
    tree, X, y = fitted
    altered_tree = AlteredTree(tree)
    alter(altered_tree.tree_)
    with pytest.raises(AssertionError, match=message):
        checker.check_tree(altered_tree, X, y)


def test_suboptimal_split_is_detected(fitted):
    tree, X, y = fitted
    without_best_column = X.copy()
    without_best_column[:, tree.tree_.feature[0]] = 0
    worse = sklearn.tree.DecisionTreeClassifier(random_state=0, max_depth=1).fit(
        without_best_column, y
    )
    with pytest.raises(AssertionError, match="is possible"):
        checker.check_tree(worse, X, y)


@pytest.mark.parametrize(
    ("grown_with", "altered", "message"),
    [
        ({}, {"max_depth": 2}, "despite max_depth"),
        ({}, {"min_samples_split": 12}, "despite min_samples_split"),
        ({}, {"min_samples_leaf": 4}, "despite min_samples_split|breaks a limit|is possible"),
        ({}, {"min_weight_fraction_leaf": 0.25}, "despite min_weight_leaf|breaks a limit"),
        ({}, {"min_impurity_decrease": 0.05}, "gain too small"),
        ({}, {"monotonic_cst": [-1, -1, -1]}, "breaks a limit"),
        ({"max_depth": 2}, {"max_depth": None}, "could be split"),
        ({"min_samples_leaf": 4}, {"min_samples_leaf": 1}, "is possible|could be split"),
        ({"min_impurity_decrease": 0.05}, {"min_impurity_decrease": 0.0}, "could be split"),
        ({"max_leaf_nodes": 4}, {"max_leaf_nodes": 3}, "more leaves"),
        ({"max_leaf_nodes": 4}, {"max_leaf_nodes": 5}, "could be split"),
        ({"max_depth": 2}, {"max_depth": None, "max_leaf_nodes": 4}, "was expanded before"),
    ],
    ids=str,
)
def test_wrong_growth_parameters_are_detected(fitted, grown_with, altered, message):
    _, X, y = fitted
    y = (y > 0).astype(int)
    tree = sklearn.tree.DecisionTreeClassifier(random_state=0, **grown_with).fit(X, y)
    if "max_leaf_nodes" in altered and "max_depth" in grown_with:
        # Both children of the root are split, although another split gains more.
        X = np.repeat(np.arange(8.0), 8).reshape(-1, 1)
        y = np.repeat([0, 1, 0, 1, 2, 2, 2, 2], 8)
        y[-1] = 3
        tree = sklearn.tree.DecisionTreeClassifier(random_state=0, **grown_with).fit(X, y)
    with pytest.raises(AssertionError, match=message):
        checker.check_tree(AlteredTree(tree, **altered), X, y)


def category_stump(left_codes, right_codes, X, y, *, missing_left):
    """Return a stump that splits on categories."""
    estimator = sklearn.tree.DecisionTreeRegressor(max_depth=1).fit(np.zeros((len(y), 1)), y)
    left = np.where(np.isnan(X[:, 0]), missing_left, np.isin(X[:, 0], left_codes))
    parts = [np.full(len(y), True), left, ~left]
    tree = SimpleNamespace(
        node_count=3,
        n_leaves=2,
        max_depth=1,
        children_left=np.array([1, -1, -1]),
        children_right=np.array([2, -1, -1]),
        feature=np.array([0, -2, -2]),
        threshold=np.array([np.nan, -2, -2]),
        impurity=np.array([y[part].var() for part in parts]),
        value=np.array([[[y[part].mean()]] for part in parts]),
        n_node_samples=np.array([part.sum() for part in parts]),
        weighted_n_node_samples=np.array([float(part.sum()) for part in parts]),
        missing_go_to_left=np.array([missing_left, 0, 0], dtype=np.uint8),
        category_start=np.array([0, -1, -1]),
        left_categories=lambda node: left_codes,
        right_categories=lambda node: right_codes,
    )
    return AlteredTree(estimator, tree, categories=[np.unique(X[~np.isnan(X)])], max_depth=1)


def test_category_stump_passes_only_if_it_is_the_best():
    X = column(0, 1, 2, 3, 0, 1, 2, 3, NAN)
    y = np.array([1.0, 5, 2, 6, 1, 5, 2, 6, 5])
    good = category_stump([1, 3], [0, 2], X, y, missing_left=True)
    assert checker.check_tree(good, X, y, categorical=[0]) == 1
    mirrored = category_stump([0, 2], [1, 3], X, y, missing_left=False)
    assert checker.check_tree(mirrored, X, y, categorical=[0]) == 1
    with pytest.raises(AssertionError, match="is possible"):
        checker.check_tree(
            category_stump([1], [0, 2, 3], X, y, missing_left=True), X, y, categorical=[0]
        )
    with pytest.raises(AssertionError, match="is possible"):
        checker.check_tree(
            category_stump([1, 3], [0, 2], X, y, missing_left=False), X, y, categorical=[0]
        )
    with pytest.raises(AssertionError, match="both sides"):
        checker.check_tree(
            category_stump([1, 3], [0, 1, 2], X, y, missing_left=True), X, y, categorical=[0]
        )


@pytest.mark.parametrize("missing_left", [True, False])
def test_unseen_categories(missing_left):
    """New categories count as missing; those unseen in a node follow the larger child."""
    X = column(0, 1, 2, 3, 0, 1, 2, 3, NAN)
    y = np.array([1.0, 5, 2, 6, 1, 5, 2, 6, 5])
    left, right = ([1, 3], [0, 2]) if missing_left else ([0, 2], [1, 3])
    stump = category_stump(left, right, X, y, missing_left=missing_left)
    leaves = checker.walk_to_leaves(stump, slow_tree.read_table(column(7, NAN, 0, 3), [0]))
    assert leaves[0] == leaves[1] == leaves[3] != leaves[2]

    # The missing values are alone in the smaller child.
    stump = category_stump([], [1, 3], X, y, missing_left=True)
    assert stump.tree_.n_node_samples.tolist() == [9, 1, 8]
    leaves = checker.walk_to_leaves(stump, slow_tree.read_table(column(7, NAN, 0, 3), [0]))
    assert leaves.tolist() == [1, 1, 2, 2]


def test_tie_not_broken_by_gini_is_detected():
    """Both columns have equal errors; only the second one has a pure child."""
    y = np.repeat([0, 1], [5, 5])
    impure = np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1.0])
    pure = np.array([0, 0, 0, 0, 0, 0, 0, 1, 1, 1.0])
    X = np.column_stack([impure, pure])
    for column_values in impure, pure:
        assert slow_tree.best_gain(
            column_values.reshape(-1, 1), y, criterion="misclassification"
        ) == (pytest.approx(0.3, abs=1e-15))
    for chosen, passes in (0, False), (1, True):
        without_other_column = X.copy()
        without_other_column[:, 1 - chosen] = 0
        tree = sklearn.tree.DecisionTreeClassifier(max_depth=1).fit(without_other_column, y)
        altered_tree = AlteredTree(tree, criterion="misclassification")
        altered_tree.tree_.impurity = 1 - altered_tree.tree_.value[:, 0].max(axis=1)
        if passes:
            assert checker.check_tree(altered_tree, X, y) == 1
        else:
            with pytest.raises(AssertionError, match="Gini"):
                checker.check_tree(altered_tree, X, y)


# --------------------------------------------------------------------------------------
# Pruning
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["gini", "entropy", *REGRESSOR_CRITERIA])
def test_weakest_links_match_scikit_learn(criterion):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(80, 3)).astype(np.float32)
    if criterion in CLASSIFIER_CRITERIA:
        y = (X[:, 0] + rng.normal(size=80) > 0).astype(int)
    else:
        y = np.exp(X[:, 0] + rng.normal(size=80) / 2)
    tree = sklearn_tree(criterion, min_samples_leaf=3, random_state=0)
    path = tree.cost_complexity_pruning_path(X, y)
    alphas, impurities, leaves = slow_tree.weakest_links(copy.deepcopy(tree).fit(X, y).tree_)
    np.testing.assert_allclose(alphas, path.ccp_alphas, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(impurities, path.impurities, rtol=1e-10)
    assert [len(each) for each in leaves] == sorted((len(each) for each in leaves), reverse=True)
    for alpha, kept in zip(alphas, leaves, strict=True):
        pruned = copy.deepcopy(tree).set_params(ccp_alpha=alpha * (1 + 1e-9)).fit(X, y)
        assert pruned.get_n_leaves() == len(kept)
