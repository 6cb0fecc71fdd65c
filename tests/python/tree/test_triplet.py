"""Comparison trees and forests: kernels, references, oracles, strings, counts."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from spinney import _core
from spinney.ensemble import ComparisonForestClassifier, ComparisonForestRegressor
from spinney.tree import (
    ComparisonTreeClassifier,
    ComparisonTreeRegressor,
    export_rules,
    export_svg,
    export_text,
)
from spinney.tree.triplet.queries import METRICS, StringRows
from spinney.tree.triplet.tree import _draw_pivots
from support.examples import examples

TREES = [ComparisonTreeClassifier, ComparisonTreeRegressor]
FORESTS = [ComparisonForestClassifier, ComparisonForestRegressor]
CLASSIFIERS = [ComparisonTreeClassifier, ComparisonForestClassifier]
ARRAYS = [
    *("left", "right", "pivot_a", "pivot_b", "value"),
    *("n_node_samples", "weighted_n_node_samples", "depth"),
]


def small_model(kind, **parameters):
    """Create an estimator with few trees."""
    if kind in FORESTS:
        parameters.setdefault("n_estimators", 5)
    return kind(random_state=0, **parameters)


def assert_same_trees(one, other):
    ours = one.trees_ if hasattr(one, "trees_") else [one.tree_]
    theirs = other.trees_ if hasattr(other, "trees_") else [other.tree_]
    for a, b in zip(ours, theirs, strict=True):
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


# ------------------------------------------------------------------------------------ kernels


def random_triplets(rng, n_rows, n_pivots, n=400):
    x = rng.integers(n_rows, size=n)
    return x, rng.integers(n_pivots, size=n), rng.integers(n_pivots, size=n)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "cosine"])
@pytest.mark.parametrize("n_features", [1, 2, 7, 8, 9, 16, 23, 64])
def test_vector_kernels_match_scipy(metric, n_features):
    rng = np.random.default_rng(n_features)
    # Integers have exact distances and exact ties.
    rows = rng.integers(-5, 6, size=(60, n_features)).astype(float)
    pivots = rng.integers(-5, 6, size=(50, n_features)).astype(float)
    if metric == "cosine":
        rows, pivots = rng.normal(size=rows.shape), rng.normal(size=pivots.shape)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        pivots /= np.linalg.norm(pivots, axis=1, keepdims=True)
    distances = cdist(rows, pivots, "cityblock" if metric == "manhattan" else metric)
    x, a, b = random_triplets(rng, 60, 50)
    near, far = distances[x, a], distances[x, b]
    clear = np.abs(near - far) > 1e-12 if metric == "cosine" else np.full(len(x), True)
    for n_threads in (1, 2, 5):
        closer = np.empty(len(x), dtype=bool)
        _core.closer_vectors(metric, rows, pivots, x, a, b, n_threads, closer)
        np.testing.assert_array_equal(closer[clear], (near < far)[clear])


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e-200, 1e150, 1e200, 1e307])
def test_vector_kernels_do_not_overflow(metric, scale):
    rng = np.random.default_rng(0)
    integers = rng.integers(-8, 9, size=(40, 11)).astype(float)
    x, a, b = random_triplets(rng, 40, 40)
    closer, expected = np.empty(len(x), dtype=bool), np.empty(len(x), dtype=bool)
    _core.closer_vectors(metric, integers, integers, x, a, b, 1, expected)
    scaled = integers * 2.0 ** np.floor(np.log2(scale))
    _core.closer_vectors(metric, scaled, scaled, x, a, b, 1, closer)
    np.testing.assert_array_equal(closer, expected)


def test_cosine_works_for_extreme_numbers():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    tree = ComparisonTreeClassifier(metric="cosine", random_state=0)
    expected = tree.fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(tree.fit(X * 2.0**1000, y).predict_proba(X), expected)
    np.testing.assert_array_equal(tree.fit(X * 2.0**-1000, y).predict_proba(X), expected)
    tree.fit(np.vstack([X, np.zeros((2, 3))]), np.append(y, [0, 1]))  # the zero vector has no angle


def test_core_checks_row_indices():
    X = np.zeros((3, 2))
    out = np.empty(1, dtype=bool)
    good, bad = np.array([0]), np.array([3])
    for x, a, b in [(bad, good, good), (good, bad, good), (good, good, -bad)]:
        with pytest.raises(ValueError, match="out of range"):
            _core.closer_vectors("euclidean", X, X, x, a, b, 1, out)


def slow_edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, u in enumerate(a, 1):
        previous, row = row, [i]
        for j, v in enumerate(b, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (u != v)))
    return row[-1]


def core_distance(metric, a, b):
    out = np.empty((1, 1))
    left, right = StringRows([a], metric).encoded(), StringRows([b], metric).encoded()
    _core.string_distances(metric, left, right, 1, out)
    return int(out[0, 0])


TEXT = st.one_of(
    st.text(max_size=12),
    st.text("ab", max_size=90),
    st.text("aé語\U0001f332\U0001f333", max_size=70),
    st.text("abcdé語\U0001f332", min_size=60, max_size=140),
)


@examples(100)
@given(TEXT, TEXT)
def test_edit_distance_matches_the_reference(a, b):
    assert core_distance("edit", a, b) == slow_edit_distance(a, b)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(min_codepoint=256), min_size=50, max_size=64), st.randoms())
def test_edit_distance_of_many_rare_characters(text, random):
    other = "".join(random.sample(text, len(text)))
    assert core_distance("edit", text, other) == slow_edit_distance(text, other)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 128, 129])
@pytest.mark.parametrize("m", [0, 1, 63, 64, 65, 200])
def test_edit_distance_at_word_boundaries_of_64_bits(n, m):
    rng = np.random.default_rng(n * 1000 + m)
    a, b = ("".join(rng.choice(list("abc"), size)) for size in (n, m))
    assert core_distance("edit", a, b) == slow_edit_distance(a, b)
    assert core_distance("edit", "x" + a, b + "y") == slow_edit_distance("x" + a, b + "y")


@settings(max_examples=200, deadline=None)
@given(TEXT, TEXT)
def test_hamming_distance_matches_the_reference(a, b):
    differing = sum(u != v for u, v in zip(a, b, strict=False)) + abs(len(a) - len(b))
    assert core_distance("hamming", a, b) == differing


@settings(max_examples=50, deadline=None)
@given(st.lists(TEXT, min_size=2, max_size=8), st.sampled_from(["edit", "hamming"]))
def test_string_kernel_matches_single_distances(strings, metric):
    rows = StringRows(strings, metric)
    n = len(strings)
    x, a, b = (indices.ravel() for indices in np.indices((n, n, n)))
    distances = np.array([[core_distance(metric, u, v) for v in strings] for u in strings])
    closer = rows.closer(rows, 2)(x, a, b)
    np.testing.assert_array_equal(closer, distances[x, a] < distances[x, b])


# -------------------------------------------------------------------------------------- draws


def test_pairs_are_drawn_in_proportion_to_weights():
    """Pairs of different classes are drawn in proportion to their weights."""
    codes = np.array([0, 0, 1, 2, 0, 1, 1])
    weights = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0, 0.5])
    starts = np.array([0, 4, 7])
    rng = np.random.default_rng(0)
    counts = np.zeros((7, 7))
    n = 20_000
    for _ in range(n):
        a, b = _draw_pivots(np.arange(7), starts, codes, weights, rng)
        counts[a, b] += 1
    expected = np.outer(weights, weights) * (codes[:, np.newaxis] != codes)
    for first, last in [(0, 4), (4, 7)]:
        block = expected[first:last, first:last]
        observed = counts[first:last, first:last]
        np.testing.assert_allclose(observed / n, block / block.sum(), atol=0.015)
        assert not observed[block == 0].any()
        assert observed.sum() == n


@examples(50)
@given(st.lists(st.floats(1e-300, 1e300), min_size=4, max_size=9), st.integers(0, 1000))
def test_pivots_have_different_classes_for_any_weights(weights, seed):
    rng = np.random.default_rng(seed)
    n = len(weights)
    y = np.append(rng.integers(3, size=n - 2), [0, 1])
    X = rng.normal(size=(n, 2))
    tree = ComparisonTreeClassifier(random_state=seed).fit(X, y, weights)
    inner = tree.tree_.left >= 0
    assert (y[tree.tree_.pivot_a[inner]] != y[tree.tree_.pivot_b[inner]]).all()


# ---------------------------------------------------------- reference with a distance matrix


def slow_walk(tree, distances, row):
    """Return the path of a row, computed from a distance matrix."""
    path = [0]
    while tree.left[path[-1]] >= 0:
        node = path[-1]
        closer = distances[row, tree.pivot_a[node]] < distances[row, tree.pivot_b[node]]
        path.append(int(tree.left[node] if closer else tree.right[node]))
    return path


@pytest.mark.parametrize("kind", TREES)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "canberra", "seuclidean"])
@pytest.mark.parametrize("options", [{}, {"leaf_size": 7}, {"max_depth": 3}])
def test_tree_matches_the_reference(kind, metric, options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4))
    X[100:] = X[:50]  # duplicate rows with other targets
    y = rng.integers(3, size=150)
    weights = rng.uniform(0.5, 2, size=150) * (rng.uniform(size=150) > 0.1)
    model = kind(metric=metric, random_state=0, **options).fit(X, y, weights)
    tree = model.tree_
    extra = {"V": X.var(axis=0, ddof=1)} if metric == "seuclidean" else {}
    distances = cdist(X, X, "cityblock" if metric == "manhattan" else metric, **extra)
    paths = [slow_walk(tree, distances, row) for row in range(150)]
    np.testing.assert_array_equal(model.apply(X), [path[-1] for path in paths])
    np.testing.assert_array_equal(model.count_comparisons(X), [len(p) - 1 for p in paths])
    members = [[row for row in range(150) if node in paths[row]] for node in range(len(tree.left))]
    for node, rows in enumerate(members):
        kept = [row for row in rows if weights[row] > 0]
        assert tree.n_node_samples[node] == len(kept)
        assert tree.depth[node] == next(p.index(node) for p in paths if node in p)
        node_weights = weights[kept]
        assert tree.weighted_n_node_samples[node] == pytest.approx(node_weights.sum())
        if kind is ComparisonTreeClassifier:
            expected = [node_weights[y[kept] == k].sum() / node_weights.sum() for k in range(3)]
        else:
            expected = [node_weights @ y[kept] / node_weights.sum()]
        np.testing.assert_allclose(tree.value[node], expected)
        is_pure = len(set(y[kept])) == 1
        if tree.left[node] >= 0:
            a, b = tree.pivot_a[node], tree.pivot_b[node]
            assert a in kept
            assert b in kept
            assert y[a] != y[b]
            assert not is_pure
            assert len(kept) > options.get("leaf_size", 1)
            assert tree.depth[node] < options.get("max_depth", 1000)
        else:
            identical_rows = len(np.unique(X[kept], axis=0)) == 1
            small_enough = len(kept) <= options.get("leaf_size", 1)
            assert (
                is_pure
                or identical_rows
                or small_enough
                or tree.depth[node] == options.get("max_depth")
            )
    predicted = np.array([tree.value[path[-1]] for path in paths])
    if kind is ComparisonTreeClassifier:
        np.testing.assert_array_equal(model.predict_proba(X), predicted)
        np.testing.assert_array_equal(model.predict(X), predicted.argmax(axis=1))
    else:
        np.testing.assert_array_equal(model.predict(X), predicted[:, 0])


@pytest.mark.parametrize("kind", FORESTS)
def test_forest_predicts_the_mean_of_its_trees(kind):
    X, y = load_diabetes(return_X_y=True)
    y = np.digitize(y, [100, 200]) if kind is ComparisonForestClassifier else y
    forest = kind(7, random_state=3).fit(X[:300], y[:300])
    leaves = forest.apply(X)
    values = [tree.value[leaf] for tree, leaf in zip(forest.trees_, leaves.T, strict=True)]
    predicted = getattr(forest, "predict_proba", forest.predict)(X)
    np.testing.assert_allclose(predicted, np.mean(values, axis=0).reshape(predicted.shape))
    depths = [tree.depth[leaf] for tree, leaf in zip(forest.trees_, leaves.T, strict=True)]
    np.testing.assert_array_equal(forest.count_comparisons(X), np.sum(depths, axis=0))
    larger = kind(9, random_state=3).fit(X[:300], y[:300])
    for a, b in zip(forest.trees_, larger.trees_[:7], strict=True):
        np.testing.assert_array_equal(a.pivot_a, b.pivot_a)
    # The first tree of a forest equals a single tree with the same seed.
    single_tree = TREES[FORESTS.index(kind)](random_state=3).fit(X[:300], y[:300])
    np.testing.assert_array_equal(single_tree.tree_.pivot_a, forest.trees_[0].pivot_a)


@pytest.mark.parametrize("kind", TREES + FORESTS)
def test_threads_and_row_order_do_not_matter(kind):
    X, y = make_moons(3000, noise=0.3, random_state=0)
    expected = small_model(kind, n_jobs=1).fit(X, y)
    for n_jobs in (2, 3):
        threaded = small_model(kind, n_jobs=n_jobs).fit(X, y)
        assert_same_trees(expected, threaded)
        np.testing.assert_array_equal(expected.predict(X), threaded.predict(X))
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = small_model(kind).fit(X[order], y[order])
    np.testing.assert_allclose(expected.predict(X), shuffled.predict(X))


def test_identical_rows_form_a_leaf():
    tree = ComparisonTreeClassifier(random_state=0).fit([[1.0]] * 5, [0, 0, 1, 1, 1])
    assert tree.tree_.node_count == 1
    np.testing.assert_allclose(tree.predict_proba([[7.0]]), [[0.4, 0.6]])
    assert tree.n_comparisons_ == 6 * 5  # a pair, tried six times
    np.testing.assert_array_equal(tree.count_comparisons([[7.0]]), [0])


# ------------------------------------------------------------------------------------ oracles


class OpaqueObject:
    """An object whose attributes cannot be read."""

    __slots__ = ()

    def __getattribute__(self, name):
        raise AssertionError(f"attribute {name} was accessed")


class Oracle:
    """An oracle that compares opaque objects and counts its comparisons."""

    def __init__(self, distances, objects):
        self.distances = distances
        self.index_of = {id(item): i for i, item in enumerate(objects)}
        self.n_comparisons = 0

    def __call__(self, x, a, b):
        assert len(x) == len(a) == len(b)
        self.n_comparisons += len(x)
        x, a, b = ([self.index_of[id(item)] for item in objects] for objects in (x, a, b))
        return self.distances[x, a] < self.distances[x, b]


@pytest.mark.parametrize("kind", TREES + FORESTS)
def test_fit_and_predict_use_only_comparisons(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X = X[np.argsort(X[:, 0])]  # vectors are sorted by this column, other inputs are not
    y = rng.integers(3, size=120)
    distances = cdist(X, X)
    objects = [OpaqueObject() for _ in range(120)]
    oracle = Oracle(distances, objects)
    train, test = slice(0, 120, 2), slice(1, 120, 2)

    by_oracle = small_model(kind, metric="oracle", oracle=oracle).fit(objects[train], y[train])
    assert by_oracle.n_comparisons_ == oracle.n_comparisons > 0
    by_vectors = small_model(kind).fit(X[train], y[train])
    by_matrix = small_model(kind, metric="precomputed").fit(distances[train, train], y[train])
    by_calls = small_model(kind, metric=lambda u, v: np.linalg.norm(u - v)).fit(X[train], y[train])
    by_cdist = small_model(kind, metric="minkowski").fit(X[train], y[train])
    oracle.n_comparisons = 0
    expected = by_oracle.predict(objects[test])
    assert by_oracle.count_comparisons(objects[test]).sum() * 2 == oracle.n_comparisons > 0
    for other, rows in [
        (by_vectors, X[test]),
        (by_matrix, distances[test, train]),
        (by_calls, X[test]),
        (by_cdist, X[test]),
    ]:
        assert_same_trees(by_oracle, other)
        assert other.n_comparisons_ == by_oracle.n_comparisons_
        np.testing.assert_array_equal(other.predict(rows), expected)


def test_oracles_receive_the_original_objects():
    positions = {"ulm": 0.0, "bonn": 1.0, "kiel": 9.0, "jena": 10.0}
    names = list(positions)

    def oracle(x, a, b):
        position_of = np.vectorize(positions.__getitem__)
        return np.abs(position_of(x) - position_of(a)) < np.abs(position_of(x) - position_of(b))

    for X in (names, np.array(names), pd.Series(names), pl.Series(names), tuple(names)):
        tree = ComparisonTreeClassifier(oracle=oracle, random_state=0).fit(X, [0, 0, 1, 1])
        np.testing.assert_array_equal(tree.predict(X), [0, 0, 1, 1])
    rows = np.arange(8.0).reshape(4, 2)  # rows of a matrix are also objects
    by_rows = ComparisonTreeClassifier(
        oracle=lambda x, a, b: abs(x - a).sum(axis=1) < abs(x - b).sum(axis=1), random_state=0
    )
    assert by_rows.fit(rows, [0, 0, 1, 1]).score(rows, [0, 0, 1, 1]) == 1


@pytest.mark.parametrize(
    "compare", [lambda x: True, lambda x: [0.5] * len(x), lambda x: np.ones((len(x), 1), bool)]
)
def test_invalid_results_of_an_oracle_raise(compare):
    tree = ComparisonTreeClassifier(metric="oracle", oracle=lambda x, a, b: compare(x))
    with pytest.raises(ValueError, match="oracle: expected an array of 3 booleans"):
        tree.fit(["u", "v", "w"], [0, 1, 1])


# ------------------------------------------------------------------------------------ strings


def words(rng, n):
    """Return words of two invented languages, and the languages."""
    languages = [["ka", "ri", "to", "mu"], ["sch", "elk", "orn", "ung"]]
    y = rng.integers(2, size=n)
    return ["".join(rng.choice(languages[k], rng.integers(2, 6))) for k in y], y


@pytest.mark.parametrize("metric", ["auto", "edit", "hamming"])
def test_string_metrics_separate_languages(metric):
    rng = np.random.default_rng(0)
    X, y = words(rng, 300)
    X_test, y_test = words(rng, 200)
    forest = ComparisonForestClassifier(50, metric=metric, random_state=0).fit(X, y)
    assert forest.score(X_test, y_test) > 0.97
    for kind in (np.array, pd.Series, lambda s: pd.DataFrame({"w": s}), pl.Series):
        refitted = clone(forest).fit(kind(X), y)
        np.testing.assert_array_equal(
            refitted.predict_proba(kind(X_test)), forest.predict_proba(X_test)
        )
    single_thread = ComparisonTreeClassifier(metric=metric, random_state=0, n_jobs=1).fit(X, y)
    two_threads = ComparisonTreeClassifier(metric=metric, random_state=0, n_jobs=2).fit(X, y)
    assert_same_trees(single_thread, two_threads)
    if metric == "edit":
        by_calls = ComparisonTreeClassifier(metric=slow_edit_distance, random_state=0)
        assert_same_trees(by_calls.fit(X[:60], y[:60]), clone(single_thread).fit(X[:60], y[:60]))


def test_forest_regression_on_strings():
    X, _ = words(np.random.default_rng(0), 300)
    y = np.array([float(len(word)) for word in X])
    forest = ComparisonForestRegressor(50, leaf_size=3, random_state=0).fit(X[:200], y[:200])
    assert forest.score(X[200:], y[200:]) > 0.5


# --------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("metric", ["auto", "manhattan", "chebyshev", "cosine"])
def test_forest_accuracy_on_digits(metric):
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    forest = ComparisonForestClassifier(100, metric=metric, random_state=0).fit(X_train, y_train)
    assert forest.score(X_test, y_test) > 0.95


def test_forest_regression_score_on_diabetes():
    X, y = load_diabetes(return_X_y=True)
    forest = ComparisonForestRegressor(leaf_size=5, random_state=0)
    assert cross_val_score(forest, X, y).mean() > 0.35


@pytest.mark.parametrize("kind", FORESTS)
def test_bootstrap_and_max_samples(kind):
    X, y = make_moons(200, noise=0.2, random_state=0)
    weights = np.random.default_rng(0).uniform(size=200)
    bootstrapped = small_model(kind, bootstrap=True).fit(X, y, weights)
    for tree in bootstrapped.trees_:
        assert tree.weighted_n_node_samples[0] == 200
        assert 80 < tree.n_node_samples[0] < 150
    quarter = small_model(kind, max_samples=0.25).fit(X, y)
    assert all(tree.n_node_samples[0] == 50 for tree in quarter.trees_)
    twenty_draws = small_model(kind, max_samples=20, bootstrap=True).fit(X, y)
    assert all(tree.weighted_n_node_samples[0] == 20 for tree in twenty_draws.trees_)
    with pytest.raises(ValueError, match="max_samples: expected at most 200"):
        small_model(kind, max_samples=201).fit(X, y)


@pytest.mark.parametrize("kind", TREES + FORESTS)
def test_pickles_keep_only_pivots(kind):
    X = np.random.default_rng(0).normal(size=(2000, 50))
    y = (X[:, 0] > 0).astype(int)
    model = small_model(kind, leaf_size=400).fit(X, y)
    pickled = pickle.dumps(model)
    assert len(pickled) < X.nbytes / 4
    unpickled = pickle.loads(pickled)
    np.testing.assert_array_equal(unpickled.predict(X), model.predict(X))
    assert_same_trees(unpickled, model)
    for metric, rows in [("precomputed", cdist(X, X)), ("edit", [str(v) for v in X[:, 0]])]:
        model = small_model(kind, metric=metric, leaf_size=400).fit(rows, y)
        unpickled = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(unpickled.predict(rows[:50]), model.predict(rows[:50]))


def test_grid_search():
    X, y = make_moons(150, noise=0.2, random_state=0)
    grid = {"leaf_size": [1, 5], "metric": ["euclidean", "manhattan"]}
    search = GridSearchCV(ComparisonForestClassifier(10, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    matrix = ComparisonForestClassifier(10, metric="precomputed", random_state=0)
    assert GridSearchCV(matrix, {"leaf_size": [1, 5]}, cv=3).fit(cdist(X, X), y).best_score_ > 0.9
    X, y = words(np.random.default_rng(0), 100)
    strings = GridSearchCV(ComparisonForestClassifier(10), {"metric": ["edit", "hamming"]}, cv=3)
    assert strings.fit(X, y).best_score_ > 0.9


@pytest.mark.parametrize("metric", sorted(METRICS - {"auto", "precomputed", "oracle", "edit"}))
def test_named_metrics_fit_and_predict(metric):
    X, y = make_moons(60, noise=0.1, random_state=0)
    X = np.abs(X)  # distributions and sets are not negative
    model = ComparisonTreeClassifier(metric=metric, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (60, 2)
    assert clone(model).fit(X[:1], y[:1]).predict(X[:1]) == y[:1]
    if metric in ("mahalanobis", "seuclidean"):  # the metric uses the training rows only
        one_by_one = np.concatenate([model.predict_proba(X[i : i + 1]) for i in range(60)])
        np.testing.assert_array_equal(one_by_one, model.predict_proba(X))


def test_callbacks_receive_progress():
    X, y = make_moons(50, random_state=0)
    calls = []
    ComparisonForestClassifier(4, callbacks=lambda *progress: calls.append(progress)).fit(X, y)
    assert calls == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_invalid_input_raises(kind):
    X, y = np.arange(6.0)[:, np.newaxis], np.arange(6) % 2
    for name, value in [
        ("metric", "nearness"),
        ("oracle", 3),
        ("leaf_size", 0),
        ("max_depth", 0),
        ("n_jobs", "two"),
    ]:
        with pytest.raises(ValueError, match=f"'{name}' parameter"):
            small_model(kind, **{name: value}).fit(X, y)
    with pytest.raises(ValueError, match="oracle: expected a callable"):
        small_model(kind, metric="oracle").fit(X, y)
    with pytest.raises(ValueError, match="oracle: expected None with metric='edit'"):
        small_model(kind, metric="edit", oracle=max).fit(["a", "b"], [0, 1])
    with pytest.raises(ValueError, match=r"X: expected strings .* shape"):
        small_model(kind, metric="edit").fit(X, y)
    with pytest.raises(ValueError, match="X: expected strings, got float in row 1"):
        small_model(kind).fit(["a", np.nan, "b"], [0, 1, 1])
    with pytest.raises(ValueError, match="X: expected a sequence of strings"):
        small_model(kind).fit("ab", [0, 1])
    with pytest.raises(ValueError, match="metric: expected 'edit'"):
        small_model(kind, metric="euclidean").fit(["a", "b"], [0, 1])
    with pytest.raises(ValueError, match="X: expected a square matrix"):
        small_model(kind, metric="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        small_model(kind).fit(np.where(X == 3, np.nan, X), y)
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        small_model(kind).fit(X, y, -np.ones(6))
    with pytest.raises(ValueError, match="at least one non-zero"):
        small_model(kind).fit(X, y, np.zeros(6))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        small_model(kind).fit(["a", "b"], [0, 1, 1])
    with pytest.raises(ValueError, match="y is None"):
        small_model(kind).fit(["a", "b"], None)
    with pytest.raises(NotFittedError):
        small_model(kind).count_comparisons(X)
    fitted = small_model(kind, metric="precomputed").fit(cdist(X, X), y)
    with pytest.raises(ValueError, match=r"5 features, but .* is expecting 6"):
        fitted.predict(np.zeros((2, 5)))


# ------------------------------------------------------------------------------------- exports


def test_exported_rules_match_predictions():
    strings = ["abba", "abca", "bbab", "xyzz", "zyxx", "yyzx", "aaaa", "zzzz"]
    y = [0, 0, 0, 1, 1, 1, 0, 1]
    model = ComparisonTreeClassifier(random_state=0).fit(strings, y)
    rules = export_rules(model)
    for word in [*strings, "abxy", "q", ""]:
        (rule,) = [rule for rule in rules if rule.covers(word)]
        assert [rule.prediction] == model.predict([word]).tolist()
    assert "closer to '" in export_text(model)
    assert export_svg(model).startswith("<svg")
    X = np.random.default_rng(0).normal(size=(40, 3))
    regressor = ComparisonTreeRegressor(random_state=0).fit(X, X[:, 0])
    rules = export_rules(regressor)
    for row, prediction in zip(X, regressor.predict(X), strict=True):
        (rule,) = [rule for rule in rules if rule.covers(row)]
        assert rule.prediction == prediction
    assert "closer to row " in export_text(regressor)
    shallow = ComparisonTreeRegressor(max_depth=1, random_state=0).fit(X, X[:, 0])
    other = int(np.flatnonzero(shallow._pivot_indices < 0)[0])
    with pytest.raises(ValueError, match="near, far: expected training rows that are pivots"):
        shallow.is_closer(X, other, other)
