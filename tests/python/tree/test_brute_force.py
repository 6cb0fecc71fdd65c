"""Trees of small random tables against a brute-force reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given
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
from support.tree_tables import (
    CLASSIFIER_CRITERIA,
    GENERATORS,
    LIMITS,
    REGRESSOR_CRITERIA,
    WEIGHTS,
    Table,
    category_column,
    check,
    class_tables,
    examples,
    grow,
    make_weights,
    partition,
    regression_tables,
)


@examples(100)
@given(class_tables(), st.sampled_from(CLASSIFIER_CRITERIA), LIMITS)
def test_classifier_against_brute_force(table, criterion, limits):
    check(grow(DecisionTreeClassifier(criterion=criterion), table, **limits), table)


@examples(100)
@given(regression_tables(), st.sampled_from(REGRESSOR_CRITERIA), LIMITS)
def test_regressor_against_brute_force(table, criterion, limits):
    check(grow(DecisionTreeRegressor(criterion=criterion), table, **limits), table)


@examples(40)
@given(class_tables(max_classes=2), st.sampled_from(CLASSIFIER_CRITERIA))
def test_binary_classifier_finds_the_best_subset(table, criterion):
    """Every subset of categories is admissible, so the tree must find the best."""
    check(grow(DecisionTreeClassifier(criterion=criterion), table), table)


@examples(50)
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


@examples(40)
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


@examples(8)
@given(GENERATORS, st.sampled_from(WEIGHTS), st.booleans(), st.integers(11, 40))
def test_many_categories_against_brute_force(rng, kind, is_classifier, n_codes):
    """With too many categories to try all subsets, the best split cuts the order of the means."""
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


@examples(40)
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


@examples(40)
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


@examples(20)
@given(class_tables(kinds=("none", "fractions")), st.sampled_from(["balanced", {0: 0.3}]))
def test_class_weights_against_brute_force(table, class_weight):
    """Class weights multiply sample weights; 0.3 rounds, hence `exact=False`."""
    if isinstance(class_weight, dict) and 0 not in table.y:
        return
    estimator = grow(DecisionTreeClassifier(class_weight=class_weight), table)
    check(estimator, table, exact=False)


@examples(30)
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


@examples(20)
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
