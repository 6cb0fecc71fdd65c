"""Small random tables for the tests of trees, and comparisons of fitted trees.

The tables have many ties, constant columns, repeated rows, missing values and categories.
Numbers are small multiples of a power of two, so their sums are exact and equal trees have
equal bits.
"""

from dataclasses import dataclass

import numpy as np
from hypothesis import HealthCheck
from hypothesis import strategies as st

from reference import tree_checker as checker
from support.examples import examples as random_examples

CLASSIFIER_CRITERIA = ["gini", "entropy", "log_loss", "misclassification"]
REGRESSOR_CRITERIA = ["squared_error", "absolute_error", "poisson"]


def examples(count):
    """Return settings with reproducible examples, more of them in long runs."""
    return random_examples(
        count,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


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
def class_tables(draw, *, max_classes=4, n_outputs=1, kinds=WEIGHTS, **feature_options):
    n_rows, rng = draw(N_ROWS), draw(GENERATORS)
    X, categorical = draw(features(n_rows, rng, **feature_options))
    n_classes = draw(st.sampled_from([*range(2, max_classes + 1)] * 4 + [1]))
    y = rng.integers(n_classes, size=(n_rows, n_outputs))
    w = make_weights(rng, draw(st.sampled_from(kinds)), n_rows)
    return Table(X, y[:, 0] if n_outputs == 1 else y, w, categorical)


@st.composite
def regression_tables(draw, *, n_outputs=1, kinds=WEIGHTS, **feature_options):
    """Draw tables whose targets are also valid for Poisson: y >= 0, y[0] > 0."""
    n_rows, rng = draw(N_ROWS), draw(GENERATORS)
    X, categorical = draw(features(n_rows, rng, **feature_options))
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


def assert_same_tree(a, b, *, except_for=()):
    """Compare arrays; impurities may round, as they depend on the order of rows."""
    for name in ARRAYS:
        if name not in except_for:
            np.testing.assert_array_equal(getattr(a.tree_, name), getattr(b.tree_, name), name)
    np.testing.assert_allclose(a.tree_.impurity, b.tree_.impurity, rtol=1e-9, atol=1e-12)
    assert category_sets(a.tree_) == category_sets(b.tree_)


def partition(estimator, X):
    """Return the sets of rows that share a leaf."""
    leaves = estimator.apply(X)
    return {frozenset(np.flatnonzero(leaves == leaf)) for leaf in np.unique(leaves)}
