"""The slow twin of CART: what a fitted tree must be, by brute force.

Nothing here is shared with the fast trees. Every question a node could ask is
tried, one boolean mask at a time, and every number is computed from the rows
themselves, so that a reader can check each line against the definition.

Words
-----
row, column   of the training table; a column is numeric or holds categories.
split         two non-empty sets of a node's rows, told apart by one column.
gain          impurity(node) - w_L/w impurity(left) - w_R/w impurity(right).
admissible    a split that respects the limits: leaf sizes and weights, the
              monotonic constraints, positive sums for Poisson.
promised      an admissible split that the fast tree has to look at. For a
              numeric column that is every one. For categories it depends on
              the criterion, see `_promises`.

A node that is split must reach the best promised gain and cannot beat the best
admissible one; a node that is not split must have a rule that stopped it.
Between the two lies what is left to heuristics (and to rounding).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

EPS = np.finfo(np.float64).eps

# A gain may miss the best one by this share of the node's impurity: what
# rounding does to a sum of some dozens of terms, and far below the difference
# between two splits that are not tied.
RELATIVE = 1e-9

CLASSIFICATION = ("gini", "entropy", "misclassification")
REGRESSION = ("squared_error", "absolute_error", "poisson")
SYNONYMS = {"log_loss": "entropy", "friedman_mse": "squared_error"}

# Up to this many categories in a node, every subset is tried (2^(m-1) - 1 splits).
MAX_ENUMERATED = 10
# Up to this many, the fast tree promises the best subset for any number of classes.
MAX_PROMISED = 8

LEAF = -1


# --------------------------------------------------------------------------------------
# The table
# --------------------------------------------------------------------------------------


class Column(NamedTuple):
    """A column: float64 with NaN for missing; categories are held as codes into `labels`."""

    values: np.ndarray
    labels: tuple | None = None

    @property
    def is_categorical(self):
        return self.labels is not None

    def take(self, rows):
        return Column(self.values[rows], self.labels)


def read_table(X, categorical=()):
    """The columns of `X`, an array or a data frame.

    `categorical` names the category columns by position or by a mask; in a data
    frame the columns of category dtype are added to them.
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
    """`y` as a two-dimensional array, one column for each output."""
    y = np.asarray(y)
    return y.reshape(len(y), -1)


def encode_classes(y):
    """Class codes (rows, outputs) and the classes of each output."""
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
    """The point with half the weight on either side; the middle, if an interval has it."""
    order = np.argsort(y, kind="stable")
    y, below = y[order], np.cumsum(w[order])
    half = below[-1] / 2
    lower = np.searchsorted(below, half, side="left")  # first with at least half below or at it
    upper = np.searchsorted(below, half, side="right")  # first with more than half
    return (y[lower] + y[upper]) / 2


def _impurity_of_output(y, w, criterion):
    total = w.sum()
    if criterion in CLASSIFICATION:
        share = np.bincount(y.astype(np.intp), weights=w) / total
        if criterion == "gini":
            return float(np.sum(share * (1 - share)))
        if criterion == "misclassification":
            return float(1 - share.max())
        share = share[share > 0]
        return float(-np.sum(share * np.log2(share))) + 0.0
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
    """Impurity of rows with targets `y` (class codes or numbers) and weights `w`.

    With several outputs, `y` of shape (rows, outputs), it is their mean.
    """
    criterion = SYNONYMS.get(criterion, criterion)
    outputs = as_outputs(y)
    w = np.ones(len(outputs)) if w is None else np.asarray(w, dtype=np.float64)
    return float(np.mean([_impurity_of_output(column, w, criterion) for column in outputs.T]))


def node_value(y, w, criterion, n_classes=None):
    """What a node predicts: class shares, means or medians, of shape (outputs, max classes)."""
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
    """Decrease of the impurity when the rows marked in `left` are parted from the rest."""
    if node_impurity is None:
        node_impurity = impurity(y, w, criterion)
    total, right = w.sum(), ~left
    return (
        node_impurity
        - w[left].sum() / total * impurity(y[left], w[left], criterion)
        - w[right].sum() / total * impurity(y[right], w[right], criterion)
    )


def midpoint(a, b):
    """The threshold between neighbouring values a < b: a itself if the middle rounds to b."""
    middle = a / 2 + b / 2
    return a if middle == b else middle


# --------------------------------------------------------------------------------------
# Limits
# --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """What every split of a tree has to respect.

    `monotonic_cst` has one sign for each column, for the number that the tree
    constrains: the mean or median, or the share of the *first* class (so that
    scikit-learn's signs, which are about the second, are flipped).
    `slack` is how close a weight or a value may come to its limit before rounding
    decides; zero where sums are exact.
    """

    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    monotonic_cst: tuple | None = None
    slack: float = 0.0

    def sign(self, feature):
        return 0 if self.monotonic_cst is None else self.monotonic_cst[feature]


def constrained_value(y, w, criterion):
    """The number that monotonic constraints are about (they know one output only)."""
    if criterion in CLASSIFICATION:
        return w[y[:, 0] == 0].sum() / w.sum()
    return node_value(y, w, criterion)[0, 0]


def is_allowed(feature, left, y, w, criterion, limits, bounds, slack):
    """Whether a split respects the limits, with `slack` > 0 strictly, with `slack` < 0 nearly."""
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
        # Values carry rounding even where sums are exact, hence a least slack.
        room = math.copysign(max(abs(slack), 1e-12), slack) * (abs(value_left) + abs(value_right))
        if min(value_left, value_right) < lower + room:
            return False
        if max(value_left, value_right) > upper - room:
            return False
        if (value_left - value_right) * sign > -room:
            return False
    return True


# --------------------------------------------------------------------------------------
# Every split of a column
# --------------------------------------------------------------------------------------


class Split(NamedTuple):
    feature: int
    left: np.ndarray  # mask over the rows of the node
    gain: float
    promised: bool


@dataclass
class ColumnSearch:
    """The admissible splits of one column in one node.

    must_split : the fast tree has to find some split, whatever its gain.
    complete   : `splits` holds all admissible ones, so that nothing can beat them.
    """

    feature: int
    splits: list
    must_split: bool
    complete: bool

    @property
    def promised_gain(self):
        """The gain that must be reached; -inf: any split; None: no split has to be found."""
        promised = [split.gain for split in self.splits if split.promised]
        if promised:
            return max(promised)
        return -math.inf if self.must_split else None

    @property
    def possible_gain(self):
        if not self.complete:
            return math.inf
        return max((split.gain for split in self.splits), default=-math.inf)


def numeric_partitions(values):
    """Every question x <= threshold, with the missing rows on either side."""
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
    """Masks of the rows of each category in a node; the missing rows are one more."""
    missing = np.isnan(codes)
    masks = [codes == code for code in np.unique(codes[~missing])]
    return [*masks, missing] if missing.any() else masks


def subset_partitions(masks):
    """Every way to part the categories in two, each once."""
    first, others = masks[0], masks[1:]
    for size in range(len(others)):
        for subset in itertools.combinations(others, size):
            yield np.logical_or.reduce([first, *subset])


def ordered_partitions(masks, keys):
    """The parts that a sort by key gives; equal keys stay together, as their order is open."""
    order = np.argsort(keys, kind="stable")
    left = np.zeros_like(masks[0])
    for here, after in itertools.pairwise(order):
        left = left | masks[here]
        if keys[after] - keys[here] > 1e-12 * max(1.0, abs(keys[after])):
            yield left


def _category_keys(masks, y, w, criterion):
    """What puts categories in an order: the mean, the median, the share of the second class."""
    if criterion in CLASSIFICATION:
        return [w[mask & (y[:, 0] == 1)].sum() / w[mask].sum() for mask in masks]
    return [node_value(y[mask], w[mask], criterion)[0, 0] for mask in masks]


def _promises(masks, y, w, criterion, n_classes, is_free):
    """Partitions of the categories that the fast tree has to look at, and whether to split.

    The impurity of one mean (squared error, Poisson, two classes) is concave in
    the sums of weight and target, so that the best of all subsets is a cut in the
    order of the means. That theorem needs every subset to be admissible (`is_free`);
    if a limit forbids some, the cuts are promised and no more.
    """
    few = len(masks) <= MAX_ENUMERATED
    one_mean = y.shape[1] == 1 and (
        criterion in ("squared_error", "poisson")
        or (criterion in CLASSIFICATION and n_classes[0] <= 2)
    )
    if one_mean:
        if is_free and few:
            return list(subset_partitions(masks)), True
        return list(ordered_partitions(masks, _category_keys(masks, y, w, criterion))), is_free
    if criterion in CLASSIFICATION and y.shape[1] == 1 and len(masks) <= MAX_PROMISED:
        return list(subset_partitions(masks)), is_free
    if criterion == "absolute_error" and y.shape[1] == 1:
        return list(ordered_partitions(masks, _category_keys(masks, y, w, criterion))), is_free
    return [], is_free


def search_column(feature, column, y, w, criterion, limits, bounds, n_classes):
    """All admissible splits of the node's rows by one column, with their gains."""
    y = as_outputs(y)
    here = impurity(y, w, criterion)

    def allowed(left, slack):
        return is_allowed(feature, left, y, w, criterion, limits, bounds, slack)

    def evaluate(left, promised):
        # Near a limit, rounding decides: such a split is possible, but not promised.
        promised = promised and allowed(left, limits.slack)
        return Split(feature, left, gain(y, w, left, criterion, here), promised)

    if not column.is_categorical:
        partitions = numeric_partitions(column.values)
        splits = [evaluate(left, True) for left in partitions if allowed(left, -limits.slack)]
        return ColumnSearch(feature, splits, must_split=False, complete=True)

    masks = present_categories(column.values)
    if len(masks) < 2:
        return ColumnSearch(feature, [], must_split=False, complete=True)
    # Children are unions of categories: if each may be a child, every subset may.
    is_free = all(allowed(mask, limits.slack) for mask in masks)
    promised, must_split = _promises(masks, y, w, criterion, n_classes, is_free)
    splits = [evaluate(left, True) for left in promised if allowed(left, -limits.slack)]
    if len(masks) <= MAX_ENUMERATED:
        complete = True
        if len(promised) < 2 ** (len(masks) - 1) - 1:
            others = subset_partitions(masks)
            splits += [evaluate(left, False) for left in others if allowed(left, -limits.slack)]
    else:
        # Too many subsets to try, but by the theorem the cuts hold the best one.
        complete = is_free and len(promised) > 0 and criterion != "absolute_error"
    return ColumnSearch(feature, splits, must_split, complete)


def search_node(
    columns, y, w, criterion, limits=None, bounds=(-math.inf, math.inf), n_classes=None
):
    """`search_column` for each column of a node."""
    criterion = SYNONYMS.get(criterion, criterion)
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    if limits is None:
        limits = Limits()
    if n_classes is None and criterion in CLASSIFICATION:
        n_classes = [int(column.max()) + 1 for column in y.T]
    return [
        search_column(feature, column, y, w, criterion, limits, bounds, n_classes)
        for feature, column in enumerate(columns)
    ]


def best_gain(
    X,
    y,
    w=None,
    criterion="gini",
    categorical=(),
    min_samples_leaf=1,
    min_weight_leaf=0.0,
    monotonic_cst=None,
    bounds=(-math.inf, math.inf),
):
    """The largest gain of all admissible splits of all columns; -inf if there is none.

    `y` holds class codes or numbers. Rows of weight zero do not count.
    """
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    columns = X if isinstance(X, list) else read_table(X, categorical)
    kept = w > 0
    columns, y, w = [column.take(kept) for column in columns], y[kept], w[kept]
    limits = Limits(min_samples_leaf, min_weight_leaf, monotonic_cst)
    searches = search_node(columns, y, w, criterion, limits, bounds)
    return max(search.possible_gain for search in searches)


def tied_best_splits(X, y, w=None, criterion="gini", categorical=(), limits=None, bounds=None):
    """The splits with the largest gain, up to rounding; if errors tie, those with the best Gini."""
    y = as_outputs(y)
    w = np.ones(len(y)) if w is None else np.asarray(w, dtype=np.float64)
    columns = X if isinstance(X, list) else read_table(X, categorical)
    bounds = (-math.inf, math.inf) if bounds is None else bounds
    searches = search_node(columns, y, w, criterion, limits, bounds)
    splits = [split for search in searches for split in search.splits]
    for score in [criterion] + ["gini"] * (criterion == "misclassification"):
        scores = [gain(y, w, split.left, score) for split in splits]
        enough = max(scores, default=0.0) - RELATIVE * impurity(y, w, score)
        splits = [split for split, each in zip(splits, scores, strict=True) if each >= enough]
    return splits


# --------------------------------------------------------------------------------------
# Weakest-link pruning
# --------------------------------------------------------------------------------------


def weakest_links(tree):
    """The sequence of minimal cost-complexity pruning, one branch at a time.

    The cost of a node is its share of the weight times its impurity. A branch is
    worth keeping while alpha is below the cost it saves for each further leaf; the
    branch that saves least goes first.

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
