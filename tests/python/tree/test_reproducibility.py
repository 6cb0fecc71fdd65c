"""Threads, memory layouts, dtypes and pickles do not change a bit of a tree."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from reference import tree_checker as checker
from spinney.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from support.tree_tables import LIMITS, Table, bits, class_tables, examples, grow, regression_tables


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


@examples(20)
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


@examples(20)
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


@examples(20)
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
