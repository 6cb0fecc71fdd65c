"""Changes of the table that must not change the tree."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reference import slow_tree
from reference import tree_checker as checker
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor
from support.tree_tables import (
    CLASSIFIER_CRITERIA,
    GENERATORS,
    LIMITS,
    REGRESSOR_CRITERIA,
    Table,
    assert_same_tree,
    bits,
    check,
    class_tables,
    examples,
    grow,
    partition,
    regression_tables,
)


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


@examples(40)
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


@examples(20)
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


@examples(40)
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
    transformed = Table(table.X.copy(), table.y, table.w, table.categorical)
    transformed.X[:, table.numeric] = INCREASING[name](table.X[:, table.numeric])
    before = grow(kind(criterion=criterion), table, **limits)
    after = grow(kind(criterion=criterion), transformed, **limits)
    # Rows of weight zero may be on either side of a threshold.
    counted = slice(None) if table.w is None else table.w > 0
    np.testing.assert_array_equal(
        before.apply(table.X[counted]), after.apply(transformed.X[counted])
    )
    assert_same_tree(before, after, except_for=("threshold",))


@examples(40)
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


@examples(20)
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


@examples(20)
@given(regression_tables(categories=False), st.sampled_from(["squared_error", "absolute_error"]))
def test_large_offset_of_y_keeps_the_accuracy(table, criterion):
    """The partition for y + 10^7 is as good for y, up to 1e-6 of the impurity."""
    shifted = Table(table.X, table.y + 1e7, table.w, [])
    estimator = grow(DecisionTreeRegressor(criterion=criterion), shifted, max_depth=4)
    problem = checker.read_problem(estimator, table.X, table.y, table.w)
    for node in checker.walk(estimator, problem).values():
        y, w = problem.y[node.rows], problem.w[node.rows]
        node_impurity = slow_tree.impurity(y, w, criterion)
        columns = [column.take(node.rows) for column in problem.columns]
        if node.left is not None:
            reached = slow_tree.gain(y, w, node.left, criterion)
            assert reached >= slow_tree.best_gain(columns, y, w, criterion) - 1e-6 * node_impurity
