"""Properties of every tree on every table.

The tables are small and have many ties, constant columns, repeated rows, missing values
and categories. Numbers are small multiples of a power of two, so their sums are exact and
equal trees have equal bits.
"""

import itertools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from reference import slow_tree
from reference import tree_checker as checker
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

pd = pytest.importorskip("pandas")

CLASSIFIER_CRITERIA = ["gini", "entropy", "log_loss", "misclassification"]
REGRESSOR_CRITERIA = ["squared_error", "absolute_error", "poisson"]


def examples(count):
    """Return settings with reproducible examples."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# --------------------------------------------------------------------------------------
# Tables
# --------------------------------------------------------------------------------------


@dataclass
class Table:
    X: np.ndarray
    y: np.ndarray
    w: np.ndarray | None
    categorical: list

    @property
    def numeric(self):
        return [index for index in range(self.X.shape[1]) if index not in self.categorical]


# Hypothesis draws the shape of a table, because shapes shrink well. A seed fills the table,
# because entries drawn one by one are too often equal. Sizes come from lists, because
# Hypothesis would otherwise prefer tables of one row and one column.
N_ROWS = st.sampled_from([1, 2, 3, 6, 10, 13, 16, 18, 20, 22, 24, 26, 28, 30])
GENERATORS = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def numeric_column(rng, kind, n_rows):
    if kind == "constant":
        return np.full(n_rows, rng.integers(-2, 3) / 2)
    if kind == "grid":
        return rng.integers(-64, 65, n_rows) / 8
    values = rng.integers(-2, 3, n_rows).astype(float)
    if kind != "tied":
        values[rng.random(n_rows) < (0.2 if kind == "missing" else 0.7)] = np.nan
    return values


def category_column(rng, n_codes, n_rows, *, missing):
    """Return codes that are not consecutive; missing is one more category."""
    values = 3.0 * rng.integers(n_codes, size=n_rows) + 1
    if missing:
        values[rng.random(n_rows) < 0.2] = np.nan
    return values


@st.composite
def features(draw, n_rows, rng, *, missing=True, categories=True):
    kinds = ["tied", "tied", "grid", "grid", "constant"]
    if missing:
        kinds += ["missing", "missing", "mostly missing"]
    if categories:
        kinds += [("category", n_codes, False) for n_codes in (1, 2, 3, 5, 7)]
    if categories and missing:
        kinds += [("category", n_codes, True) for n_codes in (2, 4, 6, 7)]
    columns, categorical = [], []
    n_columns = draw(st.sampled_from([1, 2, 3, 3, 4, 4]))
    for index in range(n_columns):
        kind = draw(st.sampled_from(kinds))
        if isinstance(kind, tuple):
            categorical.append(index)
            columns.append(category_column(rng, kind[1], n_rows, missing=kind[2]))
        else:
            columns.append(numeric_column(rng, kind, n_rows))
    X = np.column_stack(columns)
    if draw(st.booleans()):  # repeated rows
        X = X[rng.integers(n_rows, size=n_rows)]
    return X, categorical


def make_weights(rng, kind, n_rows):
    if kind == "none":
        return None
    if kind == "fractions":
        return rng.integers(1, 25, n_rows) / 8
    w = rng.integers(0 if kind == "zeros" else 1, 4, n_rows).astype(float)
    w[0] = 1.0  # at least one row has weight
    return w


WEIGHTS = ("none", "integers", "fractions", "zeros")


@st.composite
def class_tables(draw, *, max_classes=4, n_outputs=1, kinds=WEIGHTS, **of_features):
    n_rows, rng = draw(N_ROWS), draw(GENERATORS)
    X, categorical = draw(features(n_rows, rng, **of_features))
    n_classes = draw(st.sampled_from([*range(2, max_classes + 1)] * 4 + [1]))
    y = rng.integers(n_classes, size=(n_rows, n_outputs))
    w = make_weights(rng, draw(st.sampled_from(kinds)), n_rows)
    return Table(X, y[:, 0] if n_outputs == 1 else y, w, categorical)


@st.composite
def regression_tables(draw, *, n_outputs=1, kinds=WEIGHTS, **of_features):
    """Draw tables whose targets are also valid for Poisson: y >= 0, y[0] > 0."""
    n_rows, rng = draw(N_ROWS), draw(GENERATORS)
    X, categorical = draw(features(n_rows, rng, **of_features))
    y = rng.integers(0, draw(st.sampled_from([2, 4, 13])), (n_rows, n_outputs)) / 4
    y[0] = 1.0
    w = make_weights(rng, draw(st.sampled_from(kinds)), n_rows)
    return Table(X, y[:, 0] if n_outputs == 1 else y, w, categorical)


LIMITS = st.sampled_from(
    [
        {},
        {},
        {"max_depth": 1},
        {"max_depth": 3},
        {"min_samples_leaf": 2},
        {"min_samples_leaf": 4},
        {"min_samples_leaf": 0.15},
        {"min_samples_split": 7},
        {"min_samples_split": 0.3, "max_depth": 4},
        {"min_weight_fraction_leaf": 1 / 8},
        {"min_weight_fraction_leaf": 1 / 16, "min_samples_leaf": 2},
        {"min_impurity_decrease": 1 / 64},
        {"min_impurity_decrease": 1 / 32, "min_samples_leaf": 2},
    ]
)


# --------------------------------------------------------------------------------------
# Trees
# --------------------------------------------------------------------------------------


def grow(estimator, table, **parameters):
    """Fit an estimator to a table."""
    estimator.set_params(
        categorical_features=table.categorical or "from_dtype",
        **{"n_jobs": 1, "random_state": 0, **parameters},
    )
    return estimator.fit(table.X, table.y, sample_weight=table.w)


def check(estimator, table, **options):
    return checker.check_tree(
        estimator, table.X, table.y, table.w, categorical=table.categorical, **options
    )


ARRAYS = [
    "children_left",
    "children_right",
    "feature",
    "threshold",
    "value",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
    "category_start",
]


def category_sets(tree):
    return {
        node: (
            set(map(int, tree.left_categories(node))),
            set(map(int, tree.right_categories(node))),
        )
        for node in range(tree.node_count)
        if tree.category_start[node] >= 0
    }


def bits(estimator):
    """Return all arrays of a fitted tree as bytes."""
    tree = estimator.tree_
    arrays = {name: np.asarray(getattr(tree, name)).tobytes() for name in [*ARRAYS, "impurity"]}
    return {**arrays, "categories": category_sets(tree)}


def assert_same_tree(a, b, *, leave_out=()):
    """Compare arrays; impurities may round, as they depend on the order of rows."""
    for name in ARRAYS:
        if name not in leave_out:
            np.testing.assert_array_equal(getattr(a.tree_, name), getattr(b.tree_, name), name)
    np.testing.assert_allclose(a.tree_.impurity, b.tree_.impurity, rtol=1e-9, atol=1e-12)
    assert category_sets(a.tree_) == category_sets(b.tree_)


def partition(estimator, X):
    """Return the sets of rows that share a leaf."""
    leaves = estimator.apply(X)
    return {frozenset(np.flatnonzero(leaves == leaf)) for leaf in np.unique(leaves)}


# --------------------------------------------------------------------------------------
# Brute force
# --------------------------------------------------------------------------------------


@examples(400)
@given(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA), LIMITS)
def test_classifier_against_brute_force(table, criterion, limits):
    check(grow(DecisionTreeClassifier(criterion=criterion), table, **limits), table)


@examples(400)
@given(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA), LIMITS)
def test_regressor_against_brute_force(table, criterion, limits):
    check(grow(DecisionTreeRegressor(criterion=criterion), table, **limits), table)


@examples(150)
@given(class_tables(max_classes=2), st.sampled_from(CLASSIFIER_CRITERIA))
def test_binary_classifier_finds_the_best_subset(table, criterion):
    """Every subset of categories is admissible, so the tree must find the best."""
    check(grow(DecisionTreeClassifier(criterion=criterion), table), table)


@examples(200)
@given(
    st.one_of(
        st.tuples(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA)),
    ),
    LIMITS,
    st.integers(2, 8),
)
def test_best_first_against_brute_force(problem, limits, max_leaf_nodes):
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    check(grow(kind(criterion=criterion), table, max_leaf_nodes=max_leaf_nodes, **limits), table)


@examples(150)
@given(
    st.integers(2, 3).flatmap(
        lambda n_outputs: st.one_of(
            st.tuples(class_tables(n_outputs=n_outputs), st.sampled_from(CLASSIFIER_CRITERIA)),
            st.tuples(regression_tables(n_outputs=n_outputs), st.sampled_from(REGRESSOR_CRITERIA)),
        )
    ),
    LIMITS,
)
def test_several_outputs_against_brute_force(problem, limits):
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    check(grow(kind(criterion=criterion), table, **limits), table)


@examples(25)
@given(GENERATORS, st.sampled_from(WEIGHTS), st.booleans(), st.integers(11, 40))
def test_many_categories_against_brute_force(rng, kind, is_classifier, n_codes):
    """With too many subsets to try, the best is a cut in the order of the means."""
    n_rows = 60
    codes = category_column(rng, n_codes, n_rows, missing=True)
    X = np.column_stack([codes, rng.integers(4, size=n_rows), codes % 7])
    w = make_weights(rng, kind, n_rows)
    if is_classifier:
        criteria, y = CLASSIFIER_CRITERIA, rng.integers(2, size=n_rows)
        estimator = DecisionTreeClassifier()
    else:
        # No zeros: for Poisson the theorem requires events in every category.
        criteria, y = ["squared_error", "poisson"], rng.integers(1, 13, n_rows) / 4
        estimator = DecisionTreeRegressor()
    table = Table(X, y, w, [0, 2])
    for criterion in criteria:
        assert check(grow(estimator, table, criterion=criterion, max_depth=3), table) > 0


@examples(150)
@given(
    st.one_of(
        st.tuples(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA)),
    ),
    st.sampled_from(["best", "random"]),
    st.integers(0, 5),
    LIMITS,
)
def test_drawn_columns_and_thresholds_against_brute_force(problem, splitter, seed, limits):
    """The tree takes the best split of a drawn column; drawn splits are admissible."""
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    estimator = kind(criterion=criterion, splitter=splitter, max_features=1)
    check(grow(estimator, table, random_state=seed, **limits), table)
    kind = ExtraTreeClassifier if criterion in CLASSIFIER_CRITERIA else ExtraTreeRegressor
    check(grow(kind(criterion=criterion), table, random_state=seed, **limits), table)


@examples(150)
@given(
    st.one_of(
        st.tuples(class_tables(max_classes=2), st.sampled_from(["gini", "entropy"])),
        st.tuples(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA)),
    ),
    GENERATORS,
    LIMITS,
)
def test_monotonic_constraints_hold(problem, rng, limits):
    table, criterion = problem
    signs = [
        0 if index in table.categorical else int(rng.integers(-1, 2))
        for index in range(table.X.shape[1])
    ]
    is_classifier = criterion in CLASSIFIER_CRITERIA
    if is_classifier and len(np.unique(table.y)) < 2:
        return
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    estimator = grow(kind(criterion=criterion), table, monotonic_cst=signs, **limits)
    check(estimator, table)
    for index in np.flatnonzero(signs):
        # Vary one column of each row and keep the others.
        for row in table.X[:4]:
            along = np.repeat(row[None], 40, axis=0)
            along[:, index] = np.linspace(-9, 9, 40)
            if is_classifier:
                predicted = estimator.predict_proba(along)[:, 1]
            else:
                predicted = estimator.predict(along)
            assert np.all(np.diff(predicted) * signs[index] >= -1e-12)


@examples(80)
@given(class_tables(kinds=("none", "fractions")), st.sampled_from(["balanced", {0: 0.3}]))
def test_class_weights_against_brute_force(table, class_weight):
    """Class weights multiply sample weights; 0.3 rounds, hence `exact=False`."""
    if isinstance(class_weight, dict) and 0 not in table.y:
        return
    estimator = grow(DecisionTreeClassifier(class_weight=class_weight), table)
    check(estimator, table, exact=False)


@examples(120)
@given(st.one_of(class_tables(), regression_tables()), GENERATORS)
def test_predictions_for_new_rows(table, rng):
    """New rows have missing values, categories and numbers absent from training."""
    is_classifier = table.y.dtype.kind == "i"
    estimator = grow(DecisionTreeClassifier() if is_classifier else DecisionTreeRegressor(), table)
    n_rows = 30
    X_new = rng.integers(-40, 41, (n_rows, table.X.shape[1])) / 4
    for index in table.categorical:
        X_new[:, index] = 3.0 * rng.integers(0, 10, n_rows) + 1
    X_new[rng.random(X_new.shape) < 0.2] = np.nan
    checker.check_predictions(estimator, X_new, categorical=table.categorical)


# --------------------------------------------------------------------------------------
# Invariance to changes of the table
# --------------------------------------------------------------------------------------


def assert_same_partition_down_to_ties(a, b, table):
    """Assert that two trees partition the rows equally down to ties.

    Sums are exact, but scores are quotients of sums and may round. So rounding may decide a
    mathematical tie, and differently for other row counts.
    """
    problem = checker.read_problem(a, table.X, table.y, table.w, categorical=table.categorical)
    nodes_a, nodes_b = checker.walk(a, problem), checker.walk(b, problem)
    stack = [(0, 0)]
    while stack:
        i, j = stack.pop()
        np.testing.assert_array_equal(a.tree_.value[i], b.tree_.value[j])
        assert a.tree_.weighted_n_node_samples[i] == b.tree_.weighted_n_node_samples[j]
        left, other = nodes_a[i].left, nodes_b[j].left
        assert (left is None) == (other is None)
        if left is None:
            continue
        children = [b.tree_.children_left[j], b.tree_.children_right[j]]
        if np.array_equal(left, ~other):
            children.reverse()
        elif not np.array_equal(left, other):
            rows = nodes_a[i].rows
            columns = [column.take(rows) for column in problem.columns]
            y, w = problem.y[rows], problem.w[rows]
            assert len(slow_tree.tied_best_splits(columns, y, w, problem.criterion)) > 1
            continue
        stack.append((a.tree_.children_left[i], children[0]))
        stack.append((a.tree_.children_right[i], children[1]))


@examples(150)
@given(
    st.one_of(
        st.tuples(class_tables(kinds=("integers", "zeros")), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(
            regression_tables(kinds=("integers", "zeros")), st.sampled_from(REGRESSOR_CRITERIA)
        ),
    )
)
def test_integer_weights_equal_repeated_rows(problem):
    table, criterion = problem
    times = table.w.astype(int)
    y = np.repeat(table.y, times)
    if criterion in CLASSIFIER_CRITERIA and len(np.unique(y)) < len(np.unique(table.y)):
        return  # classes_ also has classes that only rows of weight zero have
    rows = Table(np.repeat(table.X, times, axis=0), y, None, table.categorical)
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    weighted, repeated = (grow(kind(criterion=criterion), each) for each in (table, rows))
    assert_same_partition_down_to_ties(weighted, repeated, table)
    check(repeated, rows)


@examples(80)
@given(st.one_of(class_tables(kinds=("zeros",)), regression_tables(kinds=("zeros",))))
def test_rows_of_weight_zero_have_no_effect(table):
    is_classifier = table.y.dtype.kind == "i"
    kept = table.w > 0
    if is_classifier and len(np.unique(table.y[kept])) < len(np.unique(table.y)):
        return  # classes_ also has classes that only rows of weight zero have
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    fewer = Table(table.X[kept], table.y[kept], table.w[kept], table.categorical)
    a, b = grow(kind(), table), grow(kind(), fewer)
    if table.categorical:  # codes change if a category disappears
        assert partition(a, fewer.X) == partition(b, fewer.X)
    else:
        assert bits(a) == bits(b)


INCREASING = {
    "cubic": lambda x: x**3 + x,
    "exponential": np.exp,
    "line": lambda x: 1000 * x - 7,
    "arctangent": np.arctan,
    "tiny": lambda x: x * 2.0**-900,
}


@examples(150)
@given(
    st.one_of(
        st.tuples(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA)),
    ),
    st.sampled_from(sorted(INCREASING)),
    LIMITS,
)
def test_increasing_transforms_keep_the_partition(problem, name, limits):
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    moved = Table(table.X.copy(), table.y, table.w, table.categorical)
    moved.X[:, table.numeric] = INCREASING[name](table.X[:, table.numeric])
    before = grow(kind(criterion=criterion), table, **limits)
    after = grow(kind(criterion=criterion), moved, **limits)
    # Rows of weight zero may be on either side of a threshold.
    counted = slice(None) if table.w is None else table.w > 0
    np.testing.assert_array_equal(before.apply(table.X[counted]), after.apply(moved.X[counted]))
    assert_same_tree(before, after, leave_out=("threshold",))


@examples(150)
@given(
    st.one_of(
        st.tuples(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(regression_tables(), st.sampled_from(["squared_error", "absolute_error"])),
    ),
    GENERATORS,
    LIMITS,
)
def test_order_of_rows_does_not_matter(problem, rng, limits):
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    order = rng.permutation(len(table.y))
    w = None if table.w is None else table.w[order]
    shuffled = Table(table.X[order], table.y[order], w, table.categorical)
    assert_same_tree(
        grow(kind(criterion=criterion), table, **limits),
        grow(kind(criterion=criterion), shuffled, **limits),
    )


@examples(60)
@given(GENERATORS, st.integers(2, 7), st.booleans(), st.booleans())
def test_order_of_categories_does_not_matter(rng, n_codes, is_classifier, missing):
    """Without ties, other codes for the same categories give the same partition."""
    n_rows = 60
    codes = rng.integers(n_codes, size=n_rows).astype(float)
    if missing:
        codes[rng.random(n_rows) < 0.15] = np.nan
    other_codes = np.append(rng.permutation(n_codes), np.nan)
    recoded = other_codes[np.where(np.isnan(codes), n_codes, codes).astype(int)]
    number = rng.normal(size=n_rows)
    y = rng.integers(3, size=n_rows) if is_classifier else rng.normal(size=n_rows)
    w = rng.random(n_rows) + 0.1  # avoids ties of class counts
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    trees = []
    for column in codes, recoded:
        table = Table(np.column_stack([column, number]), y, w, [0])
        trees.append(partition(grow(kind(), table, max_depth=3, min_samples_leaf=4), table.X))
    assert trees[0] == trees[1]


@examples(60)
@given(regression_tables(categories=False), st.sampled_from(["squared_error", "absolute_error"]))
def test_large_offset_of_y_keeps_the_accuracy(table, criterion):
    """The partition for y + 10^7 is as good for y, up to 1e-6 of the impurity."""
    moved = Table(table.X, table.y + 1e7, table.w, [])
    estimator = grow(DecisionTreeRegressor(criterion=criterion), moved, max_depth=4)
    problem = checker.read_problem(estimator, table.X, table.y, table.w)
    for node in checker.walk(estimator, problem).values():
        y, w = problem.y[node.rows], problem.w[node.rows]
        node_impurity = slow_tree.impurity(y, w, criterion)
        columns = [column.take(node.rows) for column in problem.columns]
        if node.left is not None:
            reached = slow_tree.gain(y, w, node.left, criterion)
            assert reached >= slow_tree.best_gain(columns, y, w, criterion) - 1e-6 * node_impurity


# --------------------------------------------------------------------------------------
# Reproducibility: threads, memory layouts, dtypes, pickles
# --------------------------------------------------------------------------------------


def large_table(is_classifier, seed=0, n_rows=20_000):
    """Return a table large enough for threads, with ties, NaN and categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 10))
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random(n_rows) < 0.2, 2] = np.nan
    X[:, 3] = rng.integers(40, size=n_rows)
    X[rng.random(n_rows) < 0.05, 3] = np.nan
    signal = X[:, 0] + np.abs(X[:, 1]) + np.nan_to_num(X[:, 2]) + np.nan_to_num(X[:, 3]) % 5 / 2
    y = signal + rng.normal(size=n_rows)
    w = rng.random(n_rows)
    if is_classifier:
        y = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    return Table(X, y, w, [3])


LARGE_TREES = [
    DecisionTreeClassifier(),
    DecisionTreeClassifier(criterion="entropy", max_leaf_nodes=200),
    DecisionTreeClassifier(criterion="misclassification", max_depth=8),
    DecisionTreeClassifier(max_features="sqrt", min_samples_leaf=5),
    ExtraTreeClassifier(),
    DecisionTreeRegressor(),
    DecisionTreeRegressor(criterion="poisson", max_leaf_nodes=200),
    DecisionTreeRegressor(criterion="absolute_error", max_depth=6),
    ExtraTreeRegressor(min_samples_leaf=5),
]


@pytest.mark.parametrize("estimator", LARGE_TREES, ids=str)
def test_number_of_threads_changes_no_bit(estimator):
    is_classifier = hasattr(estimator, "predict_proba")
    table = large_table(is_classifier)
    if estimator.criterion == "poisson":
        table.y = np.exp(table.y / 4)
    trees = [grow(clone(estimator), table, n_jobs=n_jobs) for n_jobs in (1, 2, 7)]
    assert trees[0].tree_.node_count > 50
    for other in trees[1:]:
        assert bits(trees[0]) == bits(other)
        assert trees[0].predict(table.X).tobytes() == other.predict(table.X).tobytes()
        assert trees[0].apply(table.X).tobytes() == other.apply(table.X).tobytes()


@examples(60)
@given(st.one_of(class_tables(), regression_tables()), LIMITS)
def test_number_of_threads_changes_no_bit_of_small_trees(table, limits):
    kind = DecisionTreeClassifier if table.y.dtype.kind == "i" else DecisionTreeRegressor
    expected = bits(grow(kind(), table, n_jobs=1, **limits))
    for n_jobs in (2, 7, None):
        assert bits(grow(kind(), table, n_jobs=n_jobs, **limits)) == expected


def strided(array):
    """Return a copy as every other element of a larger array."""
    larger = np.full([2 * size for size in array.shape], 99, dtype=array.dtype)
    view = larger[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def backwards(array):
    """Return a copy with negative strides."""
    index = tuple(slice(None, None, -1) for _ in array.shape)
    return np.ascontiguousarray(array[index])[index]


def read_only(array):
    view = array.copy()
    view.flags.writeable = False
    return view


LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "strided": strided,
    "backwards": backwards,
    "read-only": read_only,
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("is_classifier", [True, False])
def test_memory_layout_changes_no_bit(layout, is_classifier):
    table = large_table(is_classifier, n_rows=500)
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    expected = grow(kind(), table)
    change = LAYOUTS[layout]
    changed = Table(change(table.X), change(table.y), change(table.w), table.categorical)
    assert bits(grow(kind(), changed)) == bits(expected)
    assert expected.predict(changed.X).tobytes() == expected.predict(table.X).tobytes()
    assert expected.apply(changed.X).tobytes() == expected.apply(table.X).tobytes()


@examples(60)
@given(
    st.one_of(class_tables(), regression_tables()), st.sampled_from([np.int8, np.int64, np.float32])
)
def test_dtype_changes_no_bit(table, dtype):
    kind = DecisionTreeClassifier if table.y.dtype.kind == "i" else DecisionTreeRegressor
    X = np.floor(np.nan_to_num(table.X))
    a = grow(kind(), Table(X, table.y, table.w, table.categorical))
    b = grow(kind(), Table(X.astype(dtype), table.y, table.w, table.categorical))
    assert bits(a) == bits(b)


def test_float32_equals_its_cast_to_float64():
    table = large_table(False, n_rows=2000)
    single = Table(table.X.astype(np.float32), table.y, table.w, table.categorical)
    double = Table(single.X.astype(np.float64), table.y, table.w, table.categorical)
    a, b = grow(DecisionTreeRegressor(), single), grow(DecisionTreeRegressor(), double)
    assert bits(a) == bits(b)
    assert a.predict(single.X).tobytes() == a.predict(double.X).tobytes()


@examples(80)
@given(
    st.one_of(class_tables(), regression_tables()),
    st.sampled_from([{}, {"max_features": 1}, {"splitter": "random"}, {"max_leaf_nodes": 4}]),
)
def test_clones_and_pickles_have_the_same_bits(table, parameters):
    kind = DecisionTreeClassifier if table.y.dtype.kind == "i" else DecisionTreeRegressor
    estimator = grow(kind(), table, **parameters)
    expected = bits(estimator)
    assert bits(clone(estimator).fit(table.X, table.y, sample_weight=table.w)) == expected
    unpickled = pickle.loads(pickle.dumps(estimator))
    assert bits(unpickled) == expected
    np.testing.assert_array_equal(unpickled.predict(table.X), estimator.predict(table.X))
    checker.check_predictions(unpickled, table.X, categorical=table.categorical)
    # A second fit replaces the first.
    assert bits(estimator.fit(table.X, table.y, sample_weight=table.w)) == expected


# --------------------------------------------------------------------------------------
# Extreme and adjacent numbers
# --------------------------------------------------------------------------------------

CLOSE_NUMBERS = {
    "next to one": 1 + np.arange(16) * 2.0**-52,
    "closer than float32": 1000 + np.arange(16) * 1e-6,
    "closer than 1e-7": np.arange(16) * 1e-9,
    "subnormal": np.arange(16) * 5e-324,
    "huge": 1e308 + np.arange(16) * 2.0**1000,
    "both ends": np.concatenate(
        [-np.geomspace(1e-320, 1.7e308, 8), np.geomspace(1e-320, 1e308, 8)]
    ),
}


@pytest.mark.parametrize("name", CLOSE_NUMBERS)
def test_all_different_numbers_are_separated(name):
    x = np.random.default_rng(0).permutation(CLOSE_NUMBERS[name])
    assert len(np.unique(x)) == 16
    X = x.reshape(-1, 1)
    y = np.argsort(np.argsort(x)) % 2
    for estimator, target in (DecisionTreeClassifier(), y), (DecisionTreeRegressor(), y * 1.0):
        table = Table(X, target, None, [])
        np.testing.assert_array_equal(grow(estimator, table).predict(X), target)
        check(estimator, table)


def test_negative_zero_equals_zero():
    X, y = np.array([[0.0], [-0.0], [0.0], [-0.0]]), np.array([0, 1, 0, 1])
    estimator = grow(DecisionTreeClassifier(), Table(X, y, None, []))
    assert estimator.tree_.node_count == 1


# --------------------------------------------------------------------------------------
# Missing values and categories at predict time
# --------------------------------------------------------------------------------------


@examples(120)
@given(st.one_of(class_tables(missing=False), regression_tables(missing=False)), LIMITS)
def test_missing_only_at_predict_time_goes_to_the_larger_child(table, limits):
    kind = DecisionTreeClassifier if table.y.dtype.kind == "i" else DecisionTreeRegressor
    estimator = grow(kind(), table, **limits)
    tree, node = estimator.tree_, 0
    while tree.children_left[node] >= 0:
        left, right = tree.children_left[node], tree.children_right[node]
        node = left if tree.n_node_samples[left] > tree.n_node_samples[right] else right
    assert estimator.apply(np.full((1, table.X.shape[1]), np.nan)) == [node]


@pytest.mark.parametrize("criterion", CLASSIFIER_CRITERIA)
def test_missing_goes_right_on_a_tie(criterion):
    """Both directions give the same children, exchanged."""
    X = np.array([[0.0], [1.0], [np.nan], [np.nan]])
    y = np.array([0, 1, 0, 1])
    table = Table(X, y, None, [])
    estimator = grow(DecisionTreeClassifier(criterion=criterion, max_depth=1), table)
    check(estimator, table)
    assert estimator.tree_.threshold[0] == 0.5
    assert not estimator.tree_.missing_go_to_left[0]


@pytest.mark.parametrize("missing_label", [0, 1])
def test_direction_of_missing_values_is_learned(missing_label):
    X = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan], [np.nan]])
    y = np.array([0, 0, 1, 1, missing_label, missing_label])
    estimator = grow(DecisionTreeClassifier(), Table(X, y, None, []))
    np.testing.assert_array_equal(estimator.predict(X), y)
    assert estimator.get_depth() == 1


def test_missing_against_all_others_is_a_split():
    X = np.array([[0.0], [1.0], [2.0], [np.nan]])
    table = Table(X, np.array([0, 0, 0, 1]), None, [])
    estimator = grow(DecisionTreeClassifier(), table)
    assert estimator.tree_.threshold[0] == np.inf
    assert check(estimator, table) == 1
    assert estimator.predict([[np.nan], [1e300], [-1e300]]).tolist() == [1, 0, 0]


@examples(80)
@given(GENERATORS, st.integers(1, 12), st.booleans(), st.booleans())
def test_unseen_category_follows_the_missing_values(rng, n_codes, missing, is_classifier):
    n_rows = 30
    column = category_column(rng, n_codes, n_rows, missing=missing)
    X = np.column_stack([column, rng.integers(6, size=n_rows)])
    y = rng.integers(3, size=n_rows)
    kind = DecisionTreeClassifier if is_classifier else DecisionTreeRegressor
    estimator = grow(kind(), Table(X, y if is_classifier else y / 2, None, [0]))
    unseen, missing_rows = X.copy(), X.copy()
    unseen[:, 0], missing_rows[:, 0] = 1000.0, np.nan
    np.testing.assert_array_equal(estimator.apply(unseen), estimator.apply(missing_rows))


@pytest.fixture
def animals():
    """Return a data frame of unsorted category names and numbers, and a target."""
    rng = np.random.default_rng(0)
    names = np.array(["owl", "bat", "elk", "cod", "ant", "yak", "fox"])
    which = rng.integers(7, size=120)
    weight = rng.normal(size=120)
    y = np.array([1.5, -2.0, 0.0, 4.0, -1.0, 2.5, 3.0])[which] + (weight > 0) + rng.normal(size=120)
    frame = pd.DataFrame({"animal": pd.Categorical(names[which]), "weight": weight})
    frame.loc[rng.random(120) < 0.1, "animal"] = None
    return frame, y


def test_data_frames_keep_category_names(animals):
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    assert list(estimator.categories_[0]) == sorted(frame["animal"].cat.categories)
    assert np.count_nonzero(estimator.tree_.category_start >= 0) > 1
    assert checker.check_tree(estimator, frame, y, exact=False) > 3


def test_categories_are_matched_by_name(animals):
    """Reordered, additional or removed categories do not change predictions."""
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    expected = estimator.predict(frame)
    names = list(frame["animal"].cat.categories)
    for categories in names[::-1], ["aye-aye", *names, "zebu"]:
        other = frame.assign(animal=frame["animal"].cat.set_categories(categories))
        np.testing.assert_array_equal(estimator.predict(other), expected)
    subset = frame[frame["animal"].isin(names[:2])]
    subset = subset.assign(animal=subset["animal"].cat.remove_unused_categories())
    rows = np.flatnonzero(frame["animal"].isin(names[:2]))
    np.testing.assert_array_equal(estimator.predict(subset), expected[rows])


def test_unseen_category_name_follows_the_missing_values(animals):
    frame, y = animals
    estimator = DecisionTreeRegressor(max_depth=4).fit(frame, y)
    unseen = frame.assign(animal=pd.Categorical(["zebu"] * len(frame)))
    missing = frame.assign(animal=pd.Categorical([None] * len(frame), ["owl"]))
    np.testing.assert_array_equal(estimator.apply(unseen), estimator.apply(missing))


def test_all_forms_of_categorical_features_agree(animals):
    frame, y = animals
    codes = frame["animal"].cat.codes.to_numpy().astype(float)
    codes[codes < 0] = np.nan
    X = np.column_stack([codes, frame["weight"]])
    from_dtype = bits(DecisionTreeRegressor().fit(frame, y))
    for columns in [0], np.array([0]), [True, False], np.array([True, False]):
        assert bits(DecisionTreeRegressor(categorical_features=columns).fit(X, y)) == from_dtype
    for columns in ["animal"], [0], [True, False], "from_dtype":
        assert bits(DecisionTreeRegressor(categorical_features=columns).fit(frame, y)) == from_dtype


# --------------------------------------------------------------------------------------
# Pruning
# --------------------------------------------------------------------------------------


@examples(80)
@given(
    st.one_of(
        st.tuples(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA)),
        st.tuples(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA)),
    )
)
def test_pruning_follows_the_weakest_links(problem):
    """Ties of alphas may be pruned in any order."""
    table, criterion = problem
    kind = DecisionTreeClassifier if criterion in CLASSIFIER_CRITERIA else DecisionTreeRegressor
    full = grow(kind(criterion=criterion), table)
    alphas, impurities, leaves = slow_tree.weakest_links(full.tree_)
    path = clone(full).cost_complexity_pruning_path(table.X, table.y, sample_weight=table.w)
    np.testing.assert_allclose(path.ccp_alphas[0], 0, atol=1e-12)
    np.testing.assert_allclose(path.ccp_alphas[-1], alphas[-1], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.impurities[[0, -1]], impurities[[0, -1]], atol=1e-12)
    for step, (below, above) in enumerate(itertools.pairwise(alphas)):
        if above - below < 1e-6:
            continue
        alpha = (below + above) / 2
        pruned = grow(clone(full).set_params(ccp_alpha=alpha), table)
        assert pruned.get_n_leaves() == len(leaves[step])
        # The leaf of a row is the first node of its path that is a leaf of the subtree.
        on_path = full.decision_path(table.X)[:, sorted(leaves[step])].toarray()
        expected = {frozenset(np.flatnonzero(rows)) for rows in on_path.T if rows.any()}
        assert partition(pruned, table.X) == expected
