"""Spinney's trees are scikit-learn's, node by node.

The two agree wherever the definition leaves no choice. A choice is left by a tie: two
splits with the same gain, as small nodes have them. So two trees are compared from the
root down, and where they part, the slow twin is asked whether that node had a tie; the
branch below is then skipped. Data are continuous and exact in float32 (to which
scikit-learn rounds), so that most nodes have none.
"""

import itertools

import numpy as np
import pytest
import sklearn.tree

import spinney.tree
from reference import slow_tree as twin
from reference import tree_checker as checker

CLASSIFIER_CRITERIA = ["gini", "entropy", "log_loss"]
REGRESSOR_CRITERIA = ["squared_error", "absolute_error", "poisson"]
CRITERIA = CLASSIFIER_CRITERIA + REGRESSOR_CRITERIA

N_ROWS, N_FEATURES = 150, 4
CLOSE = {"rtol": 1e-10, "atol": 1e-12}


# --------------------------------------------------------------------------------------
# Data
# --------------------------------------------------------------------------------------


def distinct_columns(rng, n_rows=N_ROWS, n_features=N_FEATURES):
    """Normal draws, exact in float32, further apart than scikit-learn's tolerance of 1e-7."""
    while True:
        X = rng.normal(size=(n_rows, n_features)).astype(np.float32).astype(np.float64)
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
        # Not integers: equal sums would be ties.
        y = np.maximum(np.exp(signal / 2) - 0.7, 0)
        y[0] = 1
    else:
        y = signal
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    w = None
    if weights is not None:
        # Dyadic, so that the sums are exact: rounding makes scikit-learn split pure nodes.
        w = rng.integers(8, 72, N_ROWS) / 64
    if weights == "zeros":
        w[rng.random(N_ROWS) < 0.2] = 0
    return X, y[:, 0] if n_outputs == 1 else y, w


def pair(criterion, **parameters):
    """The same tree of both libraries, not yet fitted."""
    if criterion in CLASSIFIER_CRITERIA:
        ours, theirs = spinney.tree.DecisionTreeClassifier, sklearn.tree.DecisionTreeClassifier
    else:
        ours, theirs = spinney.tree.DecisionTreeRegressor, sklearn.tree.DecisionTreeRegressor
    parameters = {"criterion": criterion, "random_state": 0, **parameters}
    return ours(**parameters), theirs(**parameters)


def fit_pair(criterion, X, y, w=None, **parameters):
    ours, theirs = pair(criterion, **parameters)
    return ours.fit(X, y, sample_weight=w), theirs.fit(X, y, sample_weight=w)


# --------------------------------------------------------------------------------------
# Comparison
# --------------------------------------------------------------------------------------


def best_partitions(node, problem):
    """The partitions of a node's rows with the largest gain, by the twin."""
    columns = [column.take(node.rows) for column in problem.columns]
    y, w = problem.y[node.rows], problem.w[node.rows]
    best = twin.tied_best_splits(
        columns, y, w, problem.criterion, limits=problem.limits, bounds=node.bounds
    )
    return [split.left for split in best]


def compare_nodes(ours, theirs, X, y, w):
    """Compare two trees from the root down to nodes where a tie lets them part.

    Returns
    -------
    n_compared, n_ties : pairs of nodes compared, and nodes that ask different questions
    """
    problem = checker.read_problem(theirs, X, y, w, exact=False)
    our_nodes, their_nodes = checker.walk(ours, problem), checker.walk(theirs, problem)
    a, b = ours.tree_, theirs.tree_
    waiting, n_compared, n_ties = [(0, 0)], 0, 0
    while waiting:
        i, j = waiting.pop()
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
                f"node {i} asks x[{a.feature[i]}] <= {a.threshold[i]!r}, "
                f"node {j} of scikit-learn x[{b.feature[j]}] <= {b.threshold[j]!r}"
            )
            # Two columns may part the rows alike, or with the sides exchanged.
            if np.array_equal(our_left, ~their_left):
                children.reverse()
            elif not np.array_equal(our_left, their_left):
                assert any(np.array_equal(our_left, left) for left in best), f"node {i}: no tie"
                continue
        waiting.append((children[0], b.children_left[j]))
        waiting.append((children[1], b.children_right[j]))
    return n_compared, n_ties


def assert_equal_arrays(ours, theirs):
    """Every array of the trees, with the numbers of the nodes."""
    a, b = ours.tree_, theirs.tree_
    assert a.node_count == b.node_count
    assert a.max_depth == b.max_depth
    assert a.n_leaves == b.n_leaves
    for name in ("children_left", "children_right", "feature", "threshold", "n_node_samples"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    for name in ("impurity", "value", "weighted_n_node_samples"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), **CLOSE, err_msg=name)
    internal = a.children_left >= 0  # scikit-learn leaves the direction of leaves to chance
    np.testing.assert_array_equal(a.missing_go_to_left[internal], b.missing_go_to_left[internal])


def assert_equal_predictions(ours, theirs, seed):
    """On rows that neither has seen, some of them with missing values."""
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
def test_full_trees(criterion, weights, missing):
    """Grown to the end, where ties are common; they may hide some branches, not most."""
    X, y, w = make_problem(criterion, 1, weights=weights, missing=missing)
    ours, theirs = fit_pair(criterion, X, y, w)
    n_compared, _ = compare_nodes(ours, theirs, X, y, w)
    assert n_compared >= 0.5 * theirs.tree_.node_count


# Limits under which nodes stay large. Ties are then few; a tree without any must be equal
# to the last node number.
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
def test_depth_first(criterion, parameters, weights, missing):
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
def test_best_first(criterion, max_leaf_nodes, weights, missing):
    X, y, w = make_problem(criterion, 1, weights=weights, missing=missing)  # free of ties
    growth = {"max_leaf_nodes": max_leaf_nodes, "min_samples_leaf": 5}
    ours, theirs = fit_pair(criterion, X, y, w, **growth)
    assert theirs.get_n_leaves() == max_leaf_nodes
    assert_equal_arrays(ours, theirs)
    assert_equal_predictions(ours, theirs, seed=5)


@pytest.mark.parametrize("growth", [{}, {"max_leaf_nodes": 8}], ids=["depth", "best"])
@pytest.mark.parametrize("n_outputs", [2, 3])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_several_outputs(criterion, n_outputs, growth):
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
def test_monotonic_constraints(criterion, signs, growth, missing):
    X, y, w = make_problem(criterion, 7, weights="fractions", missing=missing, n_classes=2)
    ours, theirs = fit_pair(
        criterion, X, y, w, min_samples_leaf=5, monotonic_cst=list(signs), **growth
    )
    free, _ = fit_pair(criterion, X, y, w, min_samples_leaf=5, **growth)
    assert not np.array_equal(free.predict(X), ours.predict(X))  # the signs matter here
    assert_equal_arrays(ours, theirs)
    assert_equal_predictions(ours, theirs, seed=8)


@pytest.mark.parametrize("class_weight", ["balanced", {"few": 3.5, "many": 0.5}], ids=str)
def test_class_weights_and_class_names(class_weight):
    X, y, w = make_problem("squared_error", 9, weights="fractions")
    # Class sizes whose balanced weights, 2, 2 and 1/2, are dyadic; see make_problem.
    X, w = X[:144], w[:144]
    y = np.repeat(["few", "some", "many"], [24, 24, 96])[np.argsort(np.argsort(y[:144]))]
    ours, theirs = fit_pair("gini", X, y, w, min_samples_leaf=6, class_weight=class_weight)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    assert_equal_arrays(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


def test_max_features_that_is_no_limit():
    X, y, _ = make_problem("squared_error", 10)
    for max_features in (N_FEATURES, 1.0):
        assert_equal_arrays(
            *fit_pair("squared_error", X, y, min_samples_leaf=5, max_features=max_features)
        )


def test_one_row_and_one_class():
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
        *[(criterion, None) for criterion in REGRESSOR_CRITERIA],  # classes would have ties
    ],
)
def test_pruning_path(criterion, weights):
    X, y, w = make_problem(criterion, 12, weights=weights)
    ours, theirs = pair(criterion, min_samples_leaf=5)
    path = ours.cost_complexity_pruning_path(X, y, sample_weight=w)
    expected = theirs.cost_complexity_pruning_path(X, y, sample_weight=w)
    assert len(expected.ccp_alphas) > 4
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.impurities, expected.impurities, **CLOSE)


@pytest.mark.parametrize("growth", [{}, {"max_leaf_nodes": 12}], ids=["depth", "best"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_pruned_trees(criterion, growth):
    X, y, w = make_problem(criterion, 13, weights="fractions")
    growth = {"min_samples_leaf": 7, **growth}
    alphas = pair(criterion, **growth)[1].cost_complexity_pruning_path(X, y, w).ccp_alphas
    # Between two alphas, where rounding cannot decide; and far above the last one.
    between = [(a + b) / 2 for a, b in itertools.pairwise(alphas) if b > a + 1e-9]
    assert len(between) > 2
    for alpha in [*between, 10 * alphas[-1]]:
        ours, theirs = fit_pair(criterion, X, y, w, ccp_alpha=alpha, **growth)
        assert_equal_arrays(ours, theirs)
    assert ours.get_n_leaves() == 1
