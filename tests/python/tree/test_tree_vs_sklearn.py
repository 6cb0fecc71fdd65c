"""Node by node comparison with the trees of scikit-learn.

The trees agree except for ties: splits with the same gain, which are common in small nodes.
The comparison starts at the roots. Where the trees differ, the reference implementation
checks that the node has a tie, and the branch below is skipped. The data are continuous and
exact in float32 (to which scikit-learn rounds), so that most nodes have no tie.
"""

import itertools

import numpy as np
import pytest
import sklearn.tree

import spinney.tree
from reference import slow_tree
from reference import tree_checker as checker
from spinney.data.sklearn_versions import SKLEARN_VERSION

pytestmark = pytest.mark.skipif(
    SKLEARN_VERSION < (1, 9),
    reason="trees of scikit-learn before 1.9 have errors in splits on missing values and medians",
)

CLASSIFIER_CRITERIA = ["gini", "entropy", "log_loss"]
REGRESSOR_CRITERIA = ["squared_error", "absolute_error", "poisson"]
CRITERIA = CLASSIFIER_CRITERIA + REGRESSOR_CRITERIA

N_ROWS, N_FEATURES = 150, 4
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


# --------------------------------------------------------------------------------------
# Data
# --------------------------------------------------------------------------------------


def distinct_columns(rng, n_rows=N_ROWS, n_features=N_FEATURES):
    """Draw normal numbers, exact in float32, that differ by more than 1e-6."""
    while True:
        X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(np.float64)
        # scikit-learn treats differences up to 1e-7 as ties.
        if np.diff(np.sort(X, axis=0), axis=0).min() > 1e-6:
            return X


def make_problem(criterion, seed, *, weights=None, missing=False, n_outputs=1, n_classes=3):
    rng = np.random.default_rng(seed)
    X = distinct_columns(rng)
    signal = np.column_stack([X[:, 0] + X[:, k % 2 + 1] ** 2 for k in range(n_outputs)])
    signal += rng.normal(size=signal.shape) / 2
    if criterion in CLASSIFIER_CRITERIA:
        cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
        y = np.digitize(signal, cuts)
    elif criterion == "poisson":
        # Integers would have equal sums, which are ties.
        y = np.maximum(np.exp(signal / 2) - 0.7, 0)
        y[0] = 1
    else:
        y = signal
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    w = None
    if weights is not None:
        # Dyadic weights have exact sums; with rounding scikit-learn would split pure nodes.
        w = rng.integers(8, 72, N_ROWS) / 64
    if weights == "zeros":
        w[rng.random(N_ROWS) < 0.2] = 0
    return X, y[:, 0] if n_outputs == 1 else y, w


def estimator_pair(criterion, **parameters):
    """Return the unfitted estimators of both libraries."""
    if criterion in CLASSIFIER_CRITERIA:
        ours, theirs = spinney.tree.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier
    else:
        ours, theirs = spinney.tree.DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor
    parameters = {"criterion": criterion, "random_state": 0, **parameters}
    return ours(**parameters), theirs(**parameters)


def fit_pair(criterion, X, y, w=None, **parameters):
    ours, theirs = estimator_pair(criterion, **parameters)
    return ours.fit(X, y, sample_weight=w), theirs.fit(X, y, sample_weight=w)


# --------------------------------------------------------------------------------------
# Comparison
# --------------------------------------------------------------------------------------


def best_partitions(node, problem):
    """Return the partitions of a node's rows with the largest gain."""
    columns = [column.take(node.rows) for column in problem.columns]
    y, w = problem.y[node.rows], problem.w[node.rows]
    best = slow_tree.tied_best_splits(
        columns, y, w, problem.criterion, limits=problem.limits, bounds=node.bounds
    )
    return [split.left for split in best]


def compare_nodes(ours, theirs, X, y, w):
    """Compare two trees from the root down to nodes that differ because of a tie.

    Returns
    -------
    n_compared, n_ties : numbers of compared pairs of nodes and of pairs with different splits
    """
    problem = checker.read_problem(theirs, X, y, w, exact=False)
    our_nodes, their_nodes = checker.walk(ours, problem), checker.walk(theirs, problem)
    a, b = ours.tree_, theirs.tree_
    stack, n_compared, n_ties = [(0, 0)], 0, 0
    while stack:
        i, j = stack.pop()
        n_compared += 1
        assert a.n_node_samples[i] == b.n_node_samples[j]
        for name in ("weighted_n_node_samples", "impurity", "value"):
            np.testing.assert_allclose(getattr(a, name)[i], getattr(b, name)[j], **CLOSE)
        our_left, their_left = our_nodes[i].left, their_nodes[j].left
        assert (our_left is None) == (their_left is None), f"nodes {i}, {j}: one is a leaf"
        if our_left is None:
            assert a.feature[i] == b.feature[j] == -2
            continue
        children = [a.children_left[i], a.children_right[i]]
        same = a.feature[i] == b.feature[j] and a.threshold[i] == b.threshold[j]
        if not same or a.missing_go_to_left[i] != b.missing_go_to_left[j]:
            n_ties += 1
            best = best_partitions(their_nodes[j], problem)
            assert len(best) > 1, (
                f"node {i} splits on x[{a.feature[i]}] <= {a.threshold[i]!r}, "
                f"node {j} of scikit-learn x[{b.feature[j]}] <= {b.threshold[j]!r}"
            )
            # Two columns may give the same partition, or the same with the sides exchanged.
            if np.array_equal(our_left, ~their_left):
                children.reverse()
            elif not np.array_equal(our_left, their_left):
                assert any(np.array_equal(our_left, left) for left in best), f"node {i}: no tie"
                continue
        stack.append((children[0], b.children_left[j]))
        stack.append((children[1], b.children_right[j]))
    return n_compared, n_ties


def assert_equal_arrays(ours, theirs):
    """Compare all arrays of two trees, including the numbering of nodes."""
    a, b = ours.tree_, theirs.tree_
    assert a.node_count == b.node_count
    assert a.max_depth == b.max_depth
    assert a.n_leaves == b.n_leaves
    for name in ("children_left", "children_right", "feature", "threshold", "n_node_samples"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("impurity", "value", "weighted_n_node_samples"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), **CLOSE, err_msg=name)
    internal = a.children_left >= 0  # undefined in scikit-learn's leaves
    np.testing.assert_array_equal(a.missing_go_to_left[internal], b.missing_go_to_left[internal])


def assert_equal_predictions(ours, theirs, seed):
    """Compare predictions for new rows, some of them with missing values."""
    rng = np.random.default_rng(seed)
    X = distinct_columns(rng)
    X[rng.random(X.shape) < 0.2] = np.nan
    np.testing.assert_array_equal(ours.apply(X), theirs.apply(X))
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)
    np.testing.assert_allclose(ours.feature_importances_, theirs.feature_importances_, **CLOSE)
    path, expected = ours.decision_path(X), theirs.decision_path(X)
    assert path.shape == expected.shape
    assert (path != expected).nnz == 0
    if hasattr(ours, "predict_proba"):
        np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), **CLOSE)
        with np.errstate(divide="ignore"):
            np.testing.assert_allclose(
                ours.predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-9, atol=1e-12
            )


# --------------------------------------------------------------------------------------
# Whole trees
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("weights", [None, "fractions", "zeros"], ids=["none", "some", "zeros"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_fully_grown_trees_match(criterion, weights, missing):
    """In fully grown trees ties are common; at most half of the nodes are skipped."""
    X, y, w = make_problem(criterion, 1, weights=weights, missing=missing)
    ours, theirs = fit_pair(criterion, X, y, w)
    n_compared, _ = compare_nodes(ours, theirs, X, y, w)
    assert n_compared >= 0.5 * theirs.tree_.node_count


# Limits that keep nodes large, so that ties are rare. A tree without ties must be equal
# including the numbering of its nodes.
LARGE_NODES = [
    {"max_depth": 4, "min_samples_leaf": 7},
    {"min_samples_leaf": 8},
    {"min_samples_split": 30, "min_samples_leaf": 5},
    {"min_samples_leaf": 0.06, "min_samples_split": 0.2},
    {"min_weight_fraction_leaf": 0.07},
    {"min_impurity_decrease": 0.01, "min_samples_leaf": 5},
]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("weights", [None, "fractions"], ids=["none", "some"])
@pytest.mark.parametrize("parameters", LARGE_NODES, ids=str)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_depth_first_trees_match(criterion, parameters, weights, missing):
    X, y, w = make_problem(criterion, 2, weights=weights, missing=missing)
    ours, theirs = fit_pair(criterion, X, y, w, **parameters)
    n_compared, n_ties = compare_nodes(ours, theirs, X, y, w)
    assert n_compared >= max(3, 0.7 * theirs.tree_.node_count)
    if n_ties == 0:
        assert_equal_arrays(ours, theirs)
        assert_equal_predictions(ours, theirs, seed=3)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("weights", [None, "fractions"], ids=["none", "some"])
@pytest.mark.parametrize("max_leaf_nodes", [2, 5, 9])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_best_first_trees_match(criterion, max_leaf_nodes, weights, missing):
    X, y, w = make_problem(criterion, 1, weights=weights, missing=missing)  # without ties
    growth = {"max_leaf_nodes": max_leaf_nodes, "min_samples_leaf": 5}
    ours, theirs = fit_pair(criterion, X, y, w, **growth)
    assert theirs.get_n_leaves() == max_leaf_nodes
    assert_equal_arrays(ours, theirs)
    assert_equal_predictions(ours, theirs, seed=5)


@pytest.mark.parametrize("growth", [{}, {"max_leaf_nodes": 8}], ids=["depth", "best"])
@pytest.mark.parametrize("n_outputs", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_trees_with_several_outputs_match(criterion, n_outputs, growth):
    X, y, w = make_problem(criterion, 6, weights="fractions", n_outputs=n_outputs)
    ours, theirs = fit_pair(criterion, X, y, w, min_samples_leaf=5, **growth)
    assert_equal_arrays(ours, theirs)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), **CLOSE)
    if criterion in CLASSIFIER_CRITERIA:
        for a, b in zip(ours.predict_proba(X), theirs.predict_proba(X), strict=True):
            np.testing.assert_allclose(a, b, **CLOSE)


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
@pytest.mark.parametrize("growth", [{}, {"max_leaf_nodes": 8}], ids=["depth", "best"])
@pytest.mark.parametrize("signs", [(1, 0, 0, 0), (-1, 1, 0, -1), (0, -1, 1, 0)], ids=str)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_monotonic_trees_match(criterion, signs, growth, missing):
    X, y, w = make_problem(criterion, 7, weights="fractions", missing=missing, n_classes=2)
    ours, theirs = fit_pair(
        criterion, X, y, w, min_samples_leaf=5, monotonic_cst=list(signs), **growth
    )
    unconstrained, _ = fit_pair(criterion, X, y, w, min_samples_leaf=5, **growth)
    assert not np.array_equal(
        unconstrained.predict(X), ours.predict(X)
    )  # the constraints have an effect
    assert_equal_arrays(ours, theirs)
    assert_equal_predictions(ours, theirs, seed=8)


@pytest.mark.parametrize("class_weight", ["balanced", {"few": 3.5, "many": 0.5}], ids=str)
def test_trees_with_class_weights_match(class_weight):
    X, y, w = make_problem("squared_error", 9, weights="fractions")
    # Class sizes whose balanced weights, 2, 2 and 1/2, are dyadic; see make_problem.
    X, w = X[:144], w[:144]
    y = np.repeat(["few", "some", "many"], [24, 24, 96])[np.argsort(np.argsort(y[:144]))]
    ours, theirs = fit_pair("gini", X, y, w, min_samples_leaf=6, class_weight=class_weight)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert_equal_arrays(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_max_features_of_all_features_matches():
    X, y, _ = make_problem("squared_error", 10)
    for max_features in (N_FEATURES, 1.0):
        assert_equal_arrays(
            *fit_pair("squared_error", X, y, min_samples_leaf=5, max_features=max_features)
        )


def test_single_row_and_single_class_match():
    X, y, _ = make_problem("gini", 11)
    assert_equal_arrays(*fit_pair("gini", X[:1], y[:1]))
    assert_equal_arrays(*fit_pair("gini", X, np.full(len(y), 7)))
    assert_equal_arrays(*fit_pair("squared_error", X, np.full(len(y), 0.1)))


# --------------------------------------------------------------------------------------
# Pruning
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "weights"),
    [
        *[(criterion, "fractions") for criterion in CRITERIA],
        *[(criterion, None) for criterion in REGRESSOR_CRITERIA],  # class counts would have ties
    ],
)
def test_pruning_paths_match(criterion, weights):
    X, y, w = make_problem(criterion, 12, weights=weights)
    ours, theirs = estimator_pair(criterion, min_samples_leaf=5)
    path = ours.cost_complexity_pruning_path(X, y, sample_weight=w)
    expected = theirs.cost_complexity_pruning_path(X, y, sample_weight=w)
    assert len(expected.ccp_alphas) > 4
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.impurities, expected.impurities, **CLOSE)


@pytest.mark.parametrize("growth", [{}, {"max_leaf_nodes": 12}], ids=["depth", "best"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_pruned_trees_match(criterion, growth):
    X, y, w = make_problem(criterion, 13, weights="fractions")
    growth = {"min_samples_leaf": 7, **growth}
    alphas = estimator_pair(criterion, **growth)[1].cost_complexity_pruning_path(X, y, w).ccp_alphas
    # Alphas between two values, where rounding cannot decide, and one above the last.
    between = [(a + b) / 2 for a, b in itertools.pairwise(alphas) if b > a + 1e-9]
    assert len(between) > 2
    for alpha in [*between, 10 * alphas[-1]]:
        ours, theirs = fit_pair(criterion, X, y, w, ccp_alpha=alpha, **growth)
        assert_equal_arrays(ours, theirs)
    assert ours.get_n_leaves() == 1
