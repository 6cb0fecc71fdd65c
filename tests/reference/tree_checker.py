"""Check that a fitted tree agrees with the reference implementation.

`check_tree` walks a fitted tree, applies the splits to find the rows of every node, and compares
the stored arrays with those that `slow_tree` computes from these rows.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from reference.slow_tree import (
    CLASSIFICATION,
    EPS,
    LEAF,
    RELATIVE,
    SYNONYMS,
    Limits,
    as_outputs,
    constrained_value,
    encode_classes,
    gain,
    impurity,
    is_allowed,
    midpoint,
    node_value,
    present_categories,
    read_table,
    search_node,
)

# --------------------------------------------------------------------------------------
# A fitted tree and the problem it was fitted to
# --------------------------------------------------------------------------------------


@dataclass
class Problem:
    """Training data and parameters, interpreted as scikit-learn's trees do."""

    columns: list
    y: np.ndarray  # class codes or numbers, (rows, outputs)
    w: np.ndarray
    criterion: str
    classes: list | None
    limits: Limits
    max_depth: float
    min_samples_split: int
    min_impurity_decrease: float
    max_leaf_nodes: int | None
    search: str  # best split of all columns ("best"), of its column ("column"), or "random"
    exact: bool

    @property
    def n_classes(self):
        return None if self.classes is None else [len(labels) for labels in self.classes]

    @property
    def scale(self):
        """Return the magnitude of the terms in an impurity; rounding is relative to it."""
        if self.criterion in CLASSIFICATION:
            return math.log2(max(2, *self.n_classes))
        largest = float(np.abs(self.y).max())
        if self.criterion == "squared_error":
            return largest**2
        if self.criterion == "absolute_error":
            return largest
        return largest * (1 + abs(math.log(largest)))

    def tolerance(self, node_impurity):
        """Return the tolerance between two computations of an impurity or gain of a node."""
        return RELATIVE * node_impurity + 100 * EPS * self.scale


def read_problem(estimator, X, y, sample_weight=None, *, categorical=(), exact=True):
    """Return the problem that `estimator` was fitted to."""
    parameters = estimator.get_params()
    criterion = SYNONYMS.get(parameters["criterion"], parameters["criterion"])
    columns = read_table(X, categorical)
    n_rows, n_features = len(columns[0].values), len(columns)
    if criterion in CLASSIFICATION:
        targets, classes = encode_classes(y)
    else:
        targets, classes = as_outputs(y).astype(np.float64), None

    w = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if parameters.get("class_weight") is not None:
        w = w * compute_sample_weight(parameters["class_weight"], y)

    def row_count(parameter, least):
        value = parameters[parameter]
        if isinstance(value, (int, np.integer)):
            return int(value)
        return max(least, math.ceil(value * n_rows))

    min_samples_leaf = row_count("min_samples_leaf", 1)
    min_samples_split = max(row_count("min_samples_split", 2), 2 * min_samples_leaf)
    signs = parameters.get("monotonic_cst")
    if signs is not None:
        flip = -1 if criterion in CLASSIFICATION else 1
        signs = tuple(int(sign) * flip for sign in signs)

    if parameters["splitter"] == "random":
        search = "random"
    elif estimator.max_features_ < n_features:
        search = "column"
    else:
        search = "best"
    return Problem(
        columns=columns,
        y=targets,
        w=w,
        criterion=criterion,
        classes=classes,
        limits=Limits(
            min_samples_leaf=min_samples_leaf,
            min_weight_leaf=parameters["min_weight_fraction_leaf"] * w.sum(),
            monotonic_cst=signs,
            slack=0.0 if exact else 1e-9,
        ),
        max_depth=math.inf if parameters["max_depth"] is None else parameters["max_depth"],
        min_samples_split=min_samples_split,
        min_impurity_decrease=parameters["min_impurity_decrease"],
        max_leaf_nodes=parameters["max_leaf_nodes"],
        search=search,
        exact=exact,
    )


def is_category_node(tree, node):
    """Return whether a node splits on categories (scikit-learn's trees never do)."""
    return hasattr(tree, "category_start") and tree.category_start[node] >= 0


def goes_left(estimator, node, columns, rows):
    """Return a mask of the rows that an internal node sends to its left child."""
    tree = estimator.tree_
    feature = tree.feature[node]
    column = columns[feature].take(rows)
    missing_left = bool(tree.missing_go_to_left[node])
    if not is_category_node(tree, node):
        left = column.values <= tree.threshold[node]
        return np.where(np.isnan(column.values), missing_left, left)

    names = list(estimator.categories_[feature])
    to_left = {names[code] for code in tree.left_categories(node)}
    to_right = {names[code] for code in tree.right_categories(node)}
    assert not to_left & to_right, f"node {node}: categories on both sides: {to_left & to_right}"
    n_left, n_right = tree.n_node_samples[[tree.children_left[node], tree.children_right[node]]]
    # Categories unseen in this node follow the larger child; new ones count as missing.
    side = {label: bool(n_left > n_right) for label in names}
    side |= dict.fromkeys(to_left, True) | dict.fromkeys(to_right, False)
    return np.array(
        [
            missing_left if np.isnan(code) else side.get(column.labels[int(code)], missing_left)
            for code in column.values
        ],
        dtype=bool,
    )


@dataclass
class Node:
    rows: np.ndarray
    depth: int
    bounds: tuple
    left: np.ndarray | None  # mask over rows; None in a leaf


def walk(estimator, problem):
    """Return the rows, depth and bounds of each node, from the tree's splits alone."""
    tree, signs = estimator.tree_, problem.limits
    nodes = {}
    stack = [(0, np.flatnonzero(problem.w > 0), 0, (-math.inf, math.inf))]
    while stack:
        node, rows, depth, bounds = stack.pop()
        assert node not in nodes, f"node {node} has two parents"
        if tree.children_left[node] == LEAF:
            nodes[node] = Node(rows, depth, bounds, None)
            continue
        left = goes_left(estimator, node, problem.columns, rows)
        nodes[node] = Node(rows, depth, bounds, left)
        assert 0 < np.count_nonzero(left) < len(rows), f"node {node}: a child has no rows"
        bounds_left = bounds_right = bounds
        sign = signs.sign(tree.feature[node])
        if sign != 0:
            # Below a constrained split, values stay on their side of the children's midpoint.
            y, w = problem.y[rows], problem.w[rows]
            middle = constrained_value(y[left], w[left], problem.criterion) / 2
            middle += constrained_value(y[~left], w[~left], problem.criterion) / 2
            below, above = (bounds[0], middle), (middle, bounds[1])
            bounds_left, bounds_right = (below, above) if sign > 0 else (above, below)
        stack.append((int(tree.children_right[node]), rows[~left], depth + 1, bounds_right))
        stack.append((int(tree.children_left[node]), rows[left], depth + 1, bounds_left))
    assert len(nodes) == tree.node_count, "nodes that no path reaches"
    return nodes


# --------------------------------------------------------------------------------------
# The check
# --------------------------------------------------------------------------------------


def _close(actual, expected, tolerance, what):
    assert np.shape(actual) == np.shape(expected), f"{what}: shape {np.shape(actual)}"
    worst = np.max(np.abs(np.asarray(actual) - np.asarray(expected)), initial=0.0)
    assert np.array_equal(actual, expected) or worst <= tolerance, (
        f"{what}: {actual} is not {expected}"
    )


def _check_statistics(tree, index, node, problem):
    """Check counts, weight, impurity and value of a node, recomputed from its rows."""
    y, w = problem.y[node.rows], problem.w[node.rows]
    node_impurity = impurity(y, w, problem.criterion)
    assert tree.n_node_samples[index] == len(node.rows), f"node {index}: n_node_samples"
    weight = tree.weighted_n_node_samples[index]
    _close(weight, w.sum(), 100 * EPS * problem.w.sum(), f"weight of node {index}")
    _close(
        tree.impurity[index],
        node_impurity,
        problem.tolerance(node_impurity),
        f"impurity of node {index}",
    )

    value = node_value(y, w, problem.criterion, problem.n_classes)
    if problem.limits.monotonic_cst is not None:
        value[0, 0] = np.clip(value[0, 0], *node.bounds)
        if problem.criterion in CLASSIFICATION:
            value[0, 1] = 1 - value[0, 0]
    largest = 1.0 if problem.criterion in CLASSIFICATION else float(np.abs(problem.y).max())
    _close(tree.value[index], value, 1000 * EPS * largest, f"value of node {index}")


def _check_split_condition(estimator, index, node, problem):
    """Check the form of a split: threshold, missing direction, categories."""
    tree = estimator.tree_
    feature = tree.feature[index]
    column = problem.columns[feature].take(node.rows)
    missing = np.isnan(column.values)
    assert is_category_node(tree, index) == column.is_categorical, f"node {index}: kind of split"
    missing_left = bool(tree.missing_go_to_left[index])
    if not missing.any():
        n_left = np.count_nonzero(node.left)
        larger_is_left = n_left > len(node.rows) - n_left
        assert missing_left == larger_is_left, f"node {index}: missing must go to the larger child"

    threshold = tree.threshold[index]
    if column.is_categorical:
        assert np.isnan(threshold), f"node {index}: a threshold for categories"
        return
    if threshold == math.inf:
        assert missing.any(), f"node {index}: a threshold that nothing exceeds"
        assert not missing_left, f"node {index}: all rows on the left"
        return
    if problem.search == "random":
        return  # any threshold that separates the rows is valid; `walk` has checked that
    present = column.values[~missing]
    below, above = present[present <= threshold], present[present > threshold]
    assert min(len(below), len(above)) > 0, f"node {index}: threshold {threshold} separates no rows"
    expected = midpoint(below.max(), above.min())
    assert threshold == expected, f"node {index}: threshold {threshold!r}, not {expected!r}"


def _stopping_rule(node, problem, node_impurity):
    """Return the rule that makes a node a leaf before the search for splits, or None."""
    n_rows, weight = len(node.rows), problem.w[node.rows].sum()
    if node.depth >= problem.max_depth:
        return "max_depth"
    if n_rows < problem.min_samples_split:
        return "min_samples_split"
    if n_rows < 2 * problem.limits.min_samples_leaf:
        return "min_samples_leaf"
    if weight < 2 * problem.limits.min_weight_leaf * (1 - problem.limits.slack):
        return "min_weight_leaf"
    if node_impurity <= EPS:
        return "pure"
    return None


def _search(node, problem):
    return search_node(
        [column.take(node.rows) for column in problem.columns],
        problem.y[node.rows],
        problem.w[node.rows],
        problem.criterion,
        limits=problem.limits,
        bounds=node.bounds,
        n_classes=problem.n_classes,
    )


def _check_tie_break(index, node, problem, searches, *, actual, tolerance):
    """Check that no split with as few errors has a larger Gini gain."""
    y, w = problem.y[node.rows], problem.w[node.rows]
    reached = gain(y, w, node.left, "gini")
    for split in itertools.chain.from_iterable(search.splits for search in searches):
        if split.required and split.gain >= actual - tolerance:
            other = gain(y, w, split.left, "gini")
            assert reached >= other - RELATIVE, f"node {index}: tie not broken by Gini"


def _check_split(tree, index, node, problem):
    """Check the split of an internal node and return its weighted improvement."""
    y, w = problem.y[node.rows], problem.w[node.rows]
    node_impurity = impurity(y, w, problem.criterion)
    rule = _stopping_rule(node, problem, node_impurity)
    if rule == "pure" and not problem.exact:
        rule = None  # rounding may hide purity
    assert rule is None, f"node {index} was split despite {rule}"
    feature = int(tree.feature[index])
    limits = problem.limits
    allowed = is_allowed(
        feature,
        node.left,
        y,
        w,
        problem.criterion,
        limits=limits,
        bounds=node.bounds,
        slack=-limits.slack,
    )
    assert allowed, f"node {index}: the split breaks a limit"

    actual = gain(y, w, node.left, problem.criterion, node_impurity)
    tolerance = problem.tolerance(node_impurity)
    improvement = actual * w.sum() / problem.w.sum()
    assert improvement + EPS >= problem.min_impurity_decrease - tolerance, (
        f"node {index}: gain too small"
    )
    if problem.search == "random":
        return improvement
    searches = _search(node, problem)
    if problem.search == "column":
        searches = [searches[feature]]
    required = [search.required_gain for search in searches]
    required = max((each for each in required if each is not None), default=-math.inf)
    best_admissible = max(search.possible_gain for search in searches)
    assert actual >= required - tolerance, (
        f"node {index}: gain {actual} of column {feature}, but {required} is possible"
    )
    assert actual <= best_admissible + tolerance, (
        f"node {index}: gain {actual} beats every split: {best_admissible}"
    )
    if problem.criterion == "misclassification" and problem.exact:
        _check_tie_break(index, node, problem, searches, actual=actual, tolerance=tolerance)
    return improvement


def _drawn_required_gain(node, problem, searches):
    """Return the required gain of a leaf whose split would use randomly drawn columns.

    The draw skips columns that are constant in the node. It may draw a column without an
    admissible split, and then the node stays a leaf.
    """
    columns = [problem.columns[search.feature].take(node.rows) for search in searches]
    columns_and_counts = [(column, len(present_categories(column.values))) for column in columns]
    if problem.search == "random":
        limits = problem.limits
        if limits.min_samples_leaf > 1 or limits.min_weight_leaf > 0:
            return None  # the drawn threshold may break a limit
        if limits.monotonic_cst is not None or problem.criterion == "poisson":
            return None
        for column, n_parts in columns_and_counts:
            # Missing rows may be sent to the side of the only value: no split.
            if not column.is_categorical and n_parts == 2 and np.isnan(column.values).any():
                return None
        return -math.inf if any(n_parts > 1 for _, n_parts in columns_and_counts) else None
    required = [search.required_gain for search in searches]
    of_varying_columns = [
        each for each, (_, n_parts) in zip(required, columns_and_counts, strict=True) if n_parts > 1
    ]
    return None if None in of_varying_columns else min(of_varying_columns, default=None)


def _required_improvement(node, problem):
    """Return the least improvement by a split of a leaf; None if it had to be a leaf."""
    y, w = problem.y[node.rows], problem.w[node.rows]
    node_impurity = impurity(y, w, problem.criterion)
    if _stopping_rule(node, problem, node_impurity) is not None:
        return None
    if not problem.exact and node_impurity <= problem.tolerance(0.0):
        return None  # rounding may hide that it is not pure
    searches = _search(node, problem)
    if problem.search == "best":
        required = [search.required_gain for search in searches]
        best = max((each for each in required if each is not None), default=None)
    else:
        best = _drawn_required_gain(node, problem, searches)
    if best is None:
        return None
    improvement = best * w.sum() / problem.w.sum()
    least = problem.min_impurity_decrease
    if least > 0 and improvement + EPS < least + problem.tolerance(node_impurity):
        return None
    return improvement


def _check_best_first(tree, nodes, problem, improvement):
    """Check that no leaf would have improved more than an expanded node."""
    n_leaves = sum(node.left is None for node in nodes.values())
    assert n_leaves <= problem.max_leaf_nodes, "more leaves than max_leaf_nodes"
    required = {
        index: _required_improvement(node, problem)
        for index, node in nodes.items()
        if node.left is None
    }
    tolerance = problem.tolerance(impurity(problem.y, problem.w, problem.criterion))
    frontier = {0}
    while expandable := [index for index in frontier if nodes[index].left is not None]:
        chosen = max(expandable, key=improvement.__getitem__)
        for index in frontier:
            if nodes[index].left is None and required[index] is not None:
                assert improvement[chosen] >= required[index] - tolerance, (
                    f"node {chosen} was expanded before node {index}"
                )
        frontier.remove(chosen)
        frontier |= {int(tree.children_left[chosen]), int(tree.children_right[chosen])}
    if n_leaves < problem.max_leaf_nodes:
        for index, possible in required.items():
            assert possible is None, f"leaf {index} could be split"


def _check_arrays(estimator, nodes):
    """Check the arrays' values at leaves and the shape of the tree."""
    tree = estimator.tree_
    leaves = np.array([nodes[index].left is None for index in range(tree.node_count)])
    assert tree.n_leaves == leaves.sum() == estimator.get_n_leaves()
    assert tree.max_depth == max(node.depth for node in nodes.values()) == estimator.get_depth()
    assert np.all(tree.children_right[leaves] == LEAF)
    assert np.all(tree.feature[leaves] == -2)
    assert np.all(tree.threshold[leaves] == -2)
    for name in ("children_left", "children_right", "feature", "threshold", "impurity", "value"):
        assert len(getattr(tree, name)) == tree.node_count, name


def _check_importances(estimator, problem, improvement):
    """Check that importances are each column's fraction of the sum of improvements."""
    expected = np.zeros(len(problem.columns))
    for index, each in improvement.items():
        expected[estimator.tree_.feature[index]] += each
    total = expected.sum()
    tolerance = len(improvement) * problem.tolerance(0.0)
    if total > 1e6 * tolerance:  # otherwise only rounding is left
        tolerance = RELATIVE + 2 * tolerance / total
        _close(estimator.feature_importances_, expected / total, tolerance, "feature_importances_")


def walk_to_leaves(estimator, columns):
    """Return the leaf of each row of a table, of training or new rows."""
    tree = estimator.tree_
    n_rows = len(columns[0].values)
    leaves = np.zeros(n_rows, dtype=np.intp)
    stack = [(0, np.arange(n_rows))]
    while stack:
        node, rows = stack.pop()
        if tree.children_left[node] == LEAF:
            leaves[rows] = node
            continue
        left = goes_left(estimator, node, columns, rows)
        stack.append((int(tree.children_left[node]), rows[left]))
        stack.append((int(tree.children_right[node]), rows[~left]))
    return leaves


def check_predictions(estimator, X, *, categorical=()):
    """Check that apply, predict and predict_proba equal a walk down the tree."""
    tree = estimator.tree_
    leaves = walk_to_leaves(estimator, read_table(X, categorical))
    assert np.array_equal(estimator.apply(X), leaves), "apply"
    value = tree.value[leaves]  # (rows, outputs, classes)
    n_outputs = value.shape[1]
    if not hasattr(estimator, "classes_"):
        expected = value[:, :, 0]
        predicted = np.asarray(estimator.predict(X)).reshape(len(leaves), n_outputs)
        assert np.array_equal(predicted, expected), "predict"
        return
    classes = [estimator.classes_] if n_outputs == 1 else estimator.classes_
    probabilities = estimator.predict_proba(X)
    probabilities = [probabilities] if n_outputs == 1 else probabilities
    predicted = np.asarray(estimator.predict(X)).reshape(len(leaves), n_outputs)
    for output, labels in enumerate(classes):
        expected = value[:, output, : len(labels)]
        assert np.array_equal(probabilities[output], expected), "predict_proba"
        assert np.array_equal(predicted[:, output], labels[expected.argmax(axis=1)]), "predict"


def check_tree(estimator, X, y, sample_weight=None, *, categorical=(), exact=True):
    """Assert that a fitted tree is correct for its parameters and its data.

    Parameters
    ----------
    estimator : fitted decision tree, Spinney's or scikit-learn's, without pruning
    X, y, sample_weight : training data
    categorical : category columns of `X`, by position or mask; data frames also use dtypes
    exact : whether sums of weights and targets are exact (small dyadic numbers), so that
        purity does not depend on rounding

    Returns
    -------
    int : the number of internal nodes, so that a test can assert that there were some
    """
    problem = read_problem(estimator, X, y, sample_weight, categorical=categorical, exact=exact)
    tree = estimator.tree_
    nodes = walk(estimator, problem)
    _check_arrays(estimator, nodes)
    improvement = {}
    for index, node in nodes.items():
        _check_statistics(tree, index, node, problem)
        if node.left is not None:
            _check_split_condition(estimator, index, node, problem)
            improvement[index] = _check_split(tree, index, node, problem)
        elif problem.max_leaf_nodes is None:
            possible = _required_improvement(node, problem)
            assert possible is None, f"leaf {index} could be split, improvement {possible}"
    if problem.max_leaf_nodes is not None:
        _check_best_first(tree, nodes, problem, improvement)
    _check_importances(estimator, problem, improvement)
    check_predictions(estimator, X, categorical=categorical)
    return len(improvement)
