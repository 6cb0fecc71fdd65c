"""Reference implementation of CART: properties of a fitted tree, by brute force.

It shares no code with the fast trees. It tries every possible split of a node as a
boolean mask and computes every number from the rows themselves. So each line can be
checked against the definition.

Terms
-----
row, column   of the training table; a column is numeric or categorical.
split         a partition of a node's rows into two non-empty sets by one column.
gain          impurity(node) - w_L/w impurity(left) - w_R/w impurity(right).
admissible    a split that respects the limits: leaf sizes and weights, the
              monotonic constraints, positive sums for Poisson.
required      an admissible split that the fast tree must evaluate. For a numeric
              column all splits are required. For categories it depends on the
              criterion, see `_required_partitions`.

An internal node must reach the best required gain and cannot exceed the best
admissible gain. A leaf must have a rule that stopped it. Heuristics and rounding
decide between the two gains.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

EPS = np.finfo(np.float64).eps

# A gain may be below the best one by this fraction of the node's impurity. It covers the
# rounding of a sum of dozens of terms and is far below the difference of splits without a tie.
RELATIVE = 1e-9

CLASSIFICATION = ("gini", "entropy", "misclassification")
REGRESSION = ("squared_error", "absolute_error", "poisson")
SYNONYMS = {"log_loss": "entropy", "friedman_mse": "squared_error"}

# Up to this many categories in a node, every subset is tried (2^(m-1) - 1 splits).
MAX_ENUMERATED = 10
# Up to this many, the fast tree must find the best subset for any number of classes.
MAX_REQUIRED = 8

LEAF = -1


# --------------------------------------------------------------------------------------
# The table
# --------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column of float64 with NaN for missing; categories are codes into `labels`."""

    values: np.ndarray
    labels: tuple | None = None

    @property
    def is_categorical(self):
        return self.labels is not None

    def take(self, rows):
        return Column(self.values[rows], self.labels)


def read_table(X, categorical=()):
    """Return the columns of `X`, an array or a data frame.

    `categorical` selects the categorical columns by position or by a mask. In a data
    frame, columns of category dtype are categorical, too.
    """
    flags = np.asarray(list(categorical))
    if flags.dtype == bool:
        flags = np.flatnonzero(flags)
    flags = {int(flag) for flag in flags}

    if hasattr(X, "iloc"):
        columns = []
        for index in range(X.shape[1]):
            series = X.iloc[:, index]
            if hasattr(series, "cat") or index in flags:
                codes = series.astype("category").cat
                values = np.asarray(codes.codes, dtype=np.float64)
                values[values < 0] = np.nan
                columns.append(Column(values, tuple(codes.categories)))
            else:
                columns.append(Column(np.asarray(series, dtype=np.float64)))
        return columns

    X = np.asarray(X, dtype=np.float64)
    columns = []
    for index in range(X.shape[1]):
        values = X[:, index]
        if index not in flags:
            columns.append(Column(values))
            continue
        missing = np.isnan(values)
        labels, codes = np.unique(values[~missing], return_inverse=True)
        coded = np.full(len(values), np.nan)
        coded[~missing] = codes
        columns.append(Column(coded, tuple(labels)))
    return columns


def as_outputs(y):
    """Return `y` as a two-dimensional array with one column for each output."""
    y = np.asarray(y)
    return y.reshape(len(y), -1)


def encode_classes(y):
    """Return class codes, (rows, outputs), and the classes of each output."""
    outputs = as_outputs(y)
    codes = np.empty(outputs.shape, dtype=np.intp)
    classes = []
    for output in range(outputs.shape[1]):
        labels, codes[:, output] = np.unique(outputs[:, output], return_inverse=True)
        classes.append(labels)
    return codes, classes


# --------------------------------------------------------------------------------------
# Impurity, value and gain
# --------------------------------------------------------------------------------------


def weighted_median(y, w):
    """Return the weighted median; if an interval of medians exists, its midpoint."""
    order = np.argsort(y, kind="stable")
    y, cumulated = y[order], np.cumsum(w[order])
    half = cumulated[-1] / 2
    lower = np.searchsorted(cumulated, half, side="left")  # first with at least half below or at it
    upper = np.searchsorted(cumulated, half, side="right")  # first with more than half
    return (y[lower] + y[upper]) / 2


def _impurity_of_output(y, w, criterion):
    total = w.sum()
    if criterion in CLASSIFICATION:
        probabilities = np.bincount(y.astype(np.intp), weights=w) / total
        if criterion == "gini":
            return float(np.sum(probabilities * (1 - probabilities)))
        if criterion == "misclassification":
            return float(1 - probabilities.max())
        probabilities = probabilities[probabilities > 0]
        return float(-np.sum(probabilities * np.log2(probabilities))) + 0.0
    if criterion == "squared_error":
        mean = (w * y).sum() / total
        return float((w * (y - mean) ** 2).sum() / total)
    if criterion == "absolute_error":
        return float((w * np.abs(y - weighted_median(y, w))).sum() / total)
    if criterion == "poisson":
        # Half the Poisson deviance; not defined for a prediction of zero.
        if (w * y).sum() <= EPS:
            return math.inf
        mean = (w * y).sum() / total
        positive = y > 0
        ratio = y[positive] / mean
        return float((w[positive] * y[positive] * np.log(ratio)).sum() / total)
    raise ValueError(f"unknown criterion {criterion!r}")


def impurity(y, w=None, criterion="gini"):
    """Return the impurity of rows with targets `y` (codes or numbers) and weights `w`.

    With several outputs, `y` of shape (rows, outputs), it is the mean over the outputs.
    """
    criterion = SYNONYMS.get(criterion, criterion)
    outputs = as_outputs(y)
    w = np.ones(len(outputs)) if w is None else np.asarray(w, dtype=np.float64)
    return float(np.mean([_impurity_of_output(column, w, criterion) for column in outputs.T]))


def node_value(y, w, criterion, n_classes=None):
    """Return a node's probabilities, means or medians, (outputs, max classes)."""
    criterion = SYNONYMS.get(criterion, criterion)
    outputs = as_outputs(y)
    if criterion in CLASSIFICATION:
        value = np.zeros((outputs.shape[1], max(n_classes)))
        for output, column in enumerate(outputs.T):
            value[output] = np.bincount(column, weights=w, minlength=max(n_classes)) / w.sum()
        return value
    if criterion == "absolute_error":
        return np.array([[weighted_median(column, w)] for column in outputs.T])
    return np.array([[(w * column).sum() / w.sum()] for column in outputs.T])


def gain(y, w, left, criterion, node_impurity=None):
    """Return the decrease of the impurity by a split into `left` and the other rows."""
    if node_impurity is None:
        node_impurity = impurity(y, w, criterion)
    total, right = w.sum(), ~left
    return (
        node_impurity
        - w[left].sum() / total * impurity(y[left], w[left], criterion)
        - w[right].sum() / total * impurity(y[right], w[right], criterion)
    )


def midpoint(a, b):
    """Return the midpoint of neighbours a < b, or a if the midpoint rounds to b."""
    middle = a / 2 + b / 2
    return a if middle == b else middle


# --------------------------------------------------------------------------------------
# Limits
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits of every split of a tree.

    `monotonic_cst` has one sign for each column. It constrains the mean, the median or
    the probability of the *first* class. scikit-learn's signs constrain the second
    class, so they are flipped.
    `slack` is the relative distance to a limit within which rounding decides; zero if
    sums are exact.
    """

    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    monotonic_cst: tuple | None = None
    slack: float = 0.0

    def sign(self, feature):
        return 0 if self.monotonic_cst is None else self.monotonic_cst[feature]


def constrained_value(y, w, criterion):
    """Return the number that monotonic constraints apply to; they support one output."""
    if criterion in CLASSIFICATION:
        return w[y[:, 0] == 0].sum() / w.sum()
    return node_value(y, w, criterion)[0, 0]


def is_allowed(feature, left, y, w, criterion, *, limits, bounds, slack):
    """Return whether a split respects the limits; positive `slack` tightens them."""
    for side in (left, ~left):
        if np.count_nonzero(side) < max(1, limits.min_samples_leaf):
            return False
        if w[side].sum() < limits.min_weight_leaf * (1 + slack):
            return False
        if criterion == "poisson" and np.any((w[side, None] * y[side]).sum(axis=0) <= EPS):
            return False
    sign = limits.sign(feature)
    if sign != 0:
        value_left = constrained_value(y[left], w[left], criterion)
        value_right = constrained_value(y[~left], w[~left], criterion)
        lower, upper = bounds
        # Values are rounded even if sums are exact, so the slack has a minimum.
        margin = math.copysign(max(abs(slack), 1e-12), slack) * (abs(value_left) + abs(value_right))
        if min(value_left, value_right) < lower + margin:
            return False
        if max(value_left, value_right) > upper - margin:
            return False
        if (value_left - value_right) * sign > -margin:
            return False
    return True


# --------------------------------------------------------------------------------------
# Every split of a column
# --------------------------------------------------------------------------------------


class Split(NamedTuple):
    feature: int
    left: np.ndarray  # mask over the rows of the node
    gain: float
    required: bool


@dataclass
class ColumnSearch:
    """The admissible splits of one column in one node.

    must_split : the fast tree must find a split with any gain.
    complete   : `splits` holds all admissible splits, so their best gain is the maximum.
    """

    feature: int
    splits: list
    must_split: bool
    complete: bool

    @property
    def required_gain(self):
        """Return the gain to reach; -inf if any split passes, None if no split is required."""
        required = [split.gain for split in self.splits if split.required]
        if required:
            return max(required)
        return -math.inf if self.must_split else None

    @property
    def possible_gain(self):
        if not self.complete:
            return math.inf
        return max((split.gain for split in self.splits), default=-math.inf)


def numeric_partitions(values):
    """Yield every split x <= threshold, with the missing values on either side."""
    missing = np.isnan(values)
    distinct = np.unique(values[~missing])
    for a, b in itertools.pairwise(distinct):
        left = values <= midpoint(a, b)  # false for NaN: missing rows go right
        yield left
        if missing.any():
            yield left | missing
    if missing.any() and len(distinct):
        yield ~missing


def present_categories(codes):
    """Return row masks of a node's categories; missing is one more category."""
    missing = np.isnan(codes)
    masks = [codes == code for code in np.unique(codes[~missing])]
    return [*masks, missing] if missing.any() else masks


def subset_partitions(masks):
    """Yield every partition of the categories into two sets, each once."""
    first, others = masks[0], masks[1:]
    for size in range(len(others)):
        for subset in itertools.combinations(others, size):
            yield np.logical_or.reduce([first, *subset])


def ordered_partitions(masks, keys):
    """Yield the cuts of the categories sorted by key; equal keys stay together."""
    order = np.argsort(keys, kind="stable")
    left = np.zeros_like(masks[0])
    for category, next_category in itertools.pairwise(order):
        left = left | masks[category]
        if keys[next_category] - keys[category] > 1e-12 * max(1.0, abs(keys[next_category])):
            yield left


def category_keys(masks, y, w, criterion):
    """Return sort keys of categories: mean, median or second class probability."""
    if criterion in CLASSIFICATION:
        return [w[mask & (y[:, 0] == 1)].sum() / w[mask].sum() for mask in masks]
    return [node_value(y[mask], w[mask], criterion)[0, 0] for mask in masks]


def _required_partitions(masks, y, w, criterion, *, n_classes, is_free):
    """Return the required partitions of the categories, and if a split is required.

    The impurity of one mean (squared error, Poisson, two classes) is concave in the sums
    of weight and target. So the best subset is a cut in the order of the means, provided
    that every subset is admissible (`is_free`). Otherwise only the cuts are required.
    """
    few = len(masks) <= MAX_ENUMERATED
    one_mean = y.shape[1] == 1 and (
        criterion in ("squared_error", "poisson")
        or (criterion in CLASSIFICATION and n_classes[0] <= 2)
    )
    if one_mean:
        if is_free and few:
            return list(subset_partitions(masks)), True
        return list(ordered_partitions(masks, category_keys(masks, y, w, criterion))), is_free
    if criterion in CLASSIFICATION and y.shape[1] == 1 and len(masks) <= MAX_REQUIRED:
        return list(subset_partitions(masks)), is_free
    if criterion == "absolute_error" and y.shape[1] == 1:
        return list(ordered_partitions(masks, category_keys(masks, y, w, criterion))), is_free
    return [], is_free


def search_column(feature, column, y, w, criterion, *, limits, bounds, n_classes):
    """Return all admissible splits of the node's rows by one column, with their gains."""
    y = as_outputs(y)
    node_impurity = impurity(y, w, criterion)

    def allowed(left, slack):
        return is_allowed(feature, left, y, w, criterion, limits=limits, bounds=bounds, slack=slack)

    def evaluate(left, required):
        # Near a limit, rounding decides: such a split is admissible, but not required.
        required = required and allowed(left, limits.slack)
        return Split(feature, left, gain(y, w, left, criterion, node_impurity), required)

    if not column.is_categorical:
        partitions = numeric_partitions(column.values)
        splits = [evaluate(left, True) for left in partitions if allowed(left, -limits.slack)]
        return ColumnSearch(feature, splits, must_split=False, complete=True)

    masks = present_categories(column.values)
    if len(masks) < 2:
        return ColumnSearch(feature, [], must_split=False, complete=True)
    # If each category is admissible as a child, every union of categories is.
    is_free = all(allowed(mask, limits.slack) for mask in masks)
    required, must_split = _required_partitions(
        masks, y, w, criterion, n_classes=n_classes, is_free=is_free
    )
    splits = [evaluate(left, True) for left in required if allowed(left, -limits.slack)]
    if len(masks) <= MAX_ENUMERATED:
        complete = True
        if len(required) < 2 ** (len(masks) - 1) - 1:
            others = subset_partitions(masks)
            splits += [evaluate(left, False) for left in others if allowed(left, -limits.slack)]
    else:
        # There are too many subsets to try. By the theorem one of the cuts is the best.
        complete = is_free and len(required) > 0 and criterion != "absolute_error"
    return ColumnSearch(feature, splits, must_split, complete)


def search_node(
    columns, y, w, criterion, *, limits=None, bounds=(-math.inf, math.inf), n_classes=None
):
    """Return the results of `search_column` for each column of a node."""
    criterion = SYNONYMS.get(criterion, criterion)
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    if limits is None:
        limits = Limits()
    if n_classes is None and criterion in CLASSIFICATION:
        n_classes = [int(column.max()) + 1 for column in y.T]
    return [
        search_column(
            feature, column, y, w, criterion, limits=limits, bounds=bounds, n_classes=n_classes
        )
        for feature, column in enumerate(columns)
    ]


def best_gain(
    X,
    y,
    w=None,
    criterion="gini",
    *,
    categorical=(),
    min_samples_leaf=1,
    min_weight_leaf=0.0,
    monotonic_cst=None,
    bounds=(-math.inf, math.inf),
):
    """Return the largest gain of all admissible splits; -inf if there is none.

    `y` holds class codes or numbers. Rows of weight zero do not count.
    """
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    columns = X if isinstance(X, list) else read_table(X, categorical)
    kept = w > 0
    columns, y, w = [column.take(kept) for column in columns], y[kept], w[kept]
    limits = Limits(min_samples_leaf, min_weight_leaf, monotonic_cst)
    searches = search_node(columns, y, w, criterion, limits=limits, bounds=bounds)
    return max(search.possible_gain for search in searches)


def tied_best_splits(X, y, w=None, criterion="gini", *, categorical=(), limits=None, bounds=None):
    """Return the splits with the largest gain up to rounding; Gini breaks error ties."""
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    columns = X if isinstance(X, list) else read_table(X, categorical)
    bounds = (-math.inf, math.inf) if bounds is None else bounds
    searches = search_node(columns, y, w, criterion, limits=limits, bounds=bounds)
    splits = [split for search in searches for split in search.splits]
    for score in [criterion] + ["gini"] * (criterion == "misclassification"):
        scores = [gain(y, w, split.left, score) for split in splits]
        lowest = max(scores, default=0.0) - RELATIVE * impurity(y, w, score)
        splits = [
            split for split, own_score in zip(splits, scores, strict=True) if own_score >= lowest
        ]
    return splits


# --------------------------------------------------------------------------------------
# Weakest-link pruning
# --------------------------------------------------------------------------------------


def weakest_links(tree):
    """Return the sequence of minimal cost-complexity pruning, one branch at a time.

    The cost of a node is its fraction of the weight times its impurity. A branch is kept
    while alpha is below the cost that it saves per additional leaf. The branch that saves
    least is pruned first.

    Returns
    -------
    alphas, impurities, leaves : the alpha at which each subtree begins, the sum of
        the costs of its leaves, and the set of its leaves
    """
    cost = tree.weighted_n_node_samples * tree.impurity / tree.weighted_n_node_samples[0]
    is_leaf = {int(node) for node in np.flatnonzero(tree.children_left == LEAF)}

    def leaves_below(node):
        if node in is_leaf:
            return [node]
        children = int(tree.children_left[node]), int(tree.children_right[node])
        return leaves_below(children[0]) + leaves_below(children[1])

    def branches(node):
        if node in is_leaf:
            return []
        children = int(tree.children_left[node]), int(tree.children_right[node])
        return [node, *branches(children[0]), *branches(children[1])]

    alphas, impurities = [0.0], [sum(cost[leaf] for leaf in leaves_below(0))]
    leaves = [set(leaves_below(0))]
    while 0 not in is_leaf:
        saved = {}
        for node in sorted(branches(0)):
            below = leaves_below(node)
            saved[node] = (cost[node] - sum(cost[leaf] for leaf in below)) / (len(below) - 1)
        weakest = min(saved, key=saved.get)
        is_leaf.add(weakest)
        alphas.append(saved[weakest])
        impurities.append(sum(cost[leaf] for leaf in leaves_below(0)))
        leaves.append(set(leaves_below(0)))
    return np.array(alphas), np.array(impurities), leaves
