"""Quad trees, compared with a recursive reference; invariants; invalid input."""

import pickle
import warnings

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinney.tree import (
    QuadTreeClassifier,
    QuadTreeRegressor,
    export_graphviz,
    export_rules,
    export_svg,
    export_text,
    plot_partition,
)
from support.examples import examples

mpl.use("agg")

KINDS = [QuadTreeClassifier, QuadTreeRegressor]
SPLITS = ["midpoint", "point"]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_equal_repeated_rows_with_ten_features(kind):
    rng = np.random.RandomState(42)
    X, y, weights = rng.rand(15, 10), rng.randint(0, 3, size=15), rng.randint(0, 5, size=15)
    weighted = kind().fit(X, y, weights)
    repeated = kind().fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X))
    if kind is QuadTreeClassifier:
        np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X))


# -------------------------------------------------------------------------------- reference


def grow_recursively(rows, low, high, *, at_points, capacity, max_depth):
    """Grow a tree recursively from tuples (row, values) in order of insertion."""
    node = {"rows": [row for row, _ in rows], "low": low, "high": high, "children": {}}
    values = [x for _, x in rows]
    if len(rows) <= capacity or max_depth == 0 or len(set(values)) == 1:
        return node
    if at_points:
        center = values[0]
        if all(a <= b for x in values for a, b in zip(x, center, strict=True)):
            center = next(x for x in values if x != center)
    else:
        center = tuple(
            midpoint if (midpoint := a + (b - a) / 2) < b else a
            for a, b in zip(low, high, strict=True)
        )
    node["center"] = center
    for child in range(2 ** len(low)):
        bits = [child >> j & 1 for j in range(len(low))]
        inside = [
            (row, x)
            for row, x in rows
            if all((a > c) == b for a, c, b in zip(x, center, bits, strict=True))
        ]
        if inside:
            node["children"][child] = grow_recursively(
                inside,
                tuple(c if b else a for a, c, b in zip(low, center, bits, strict=True)),
                tuple(a if b else c for a, c, b in zip(high, center, bits, strict=True)),
                at_points=at_points,
                capacity=capacity,
                max_depth=None if max_depth is None else max_depth - 1,
            )
    return node


def slow_fit(X, split, capacity, max_depth, seed):
    order = np.arange(len(X))
    if split == "point":
        order = np.random.RandomState(seed).permutation(len(X))
    rows = [(int(i), tuple(X[i].tolist())) for i in order]
    low, high = tuple(X.min(axis=0).tolist()), tuple(X.max(axis=0).tolist())
    return grow_recursively(
        rows, low, high, at_points=split == "point", capacity=capacity, max_depth=max_depth
    )


def compare_trees(tree, leaves, slow, node=0, depth=0):
    """Compare with the reference tree and return the number of nodes."""
    assert tree.low[node].tolist() == list(slow["low"])
    assert tree.high[node].tolist() == list(slow["high"])
    assert tree.depth[node] == depth
    assert tree.n_node_samples[node] == len(slow["rows"])
    assert tree.is_leaf[node] == (not slow["children"])
    children = tree.children[node]
    assert set(np.flatnonzero(children >= 0).tolist()) == set(slow["children"])
    if not slow["children"]:
        assert (leaves[slow["rows"]] == node).all()
        assert np.isnan(tree.center[node]).all()
        return 1
    assert tree.center[node].tolist() == list(slow["center"])
    return 1 + sum(
        compare_trees(tree, leaves, child, children[slot], depth + 1)
        for slot, child in slow["children"].items()
    )


# Adjacent floats at 1, but not near 0, where separating them takes a thousand halvings.
numbers = (
    st.integers(-8, 8).map(lambda i: i / 4)
    | st.floats(-3, 3).map(lambda x: round(x, 4))
    | st.sampled_from([1.0, 1 + 2.0**-52, 1 + 2.0**-51])
)
anything = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@st.composite
def tables(draw):
    n_rows, n_features = draw(st.integers(1, 40)), draw(st.integers(1, 3))
    rows = st.lists(numbers, min_size=n_features, max_size=n_features)
    X = np.array(draw(st.lists(rows, min_size=n_rows, max_size=n_rows)))
    y = np.array(draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows)))
    weights = np.array(draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    weights[draw(st.integers(0, n_rows - 1))] = 1
    queries = np.array(draw(st.lists(rows, min_size=1, max_size=10)))
    return X, y, weights, queries


capacities = st.sampled_from([1, 2, 5, 10])
depths = st.sampled_from([None, None, 0, 1, 3])


@examples(25)
@given(tables(), st.sampled_from(SPLITS), capacities, depths, st.integers(0, 5))
def test_tree_matches_the_recursive_reference(table, split, capacity, max_depth, seed):
    X, y, _, _ = table
    model = QuadTreeRegressor(
        split=split, leaf_capacity=capacity, max_depth=max_depth, random_state=seed
    ).fit(X, y)
    slow = slow_fit(X, split, capacity, max_depth, seed)
    assert compare_trees(model.tree_, model.apply(X), slow) == model.tree_.n_nodes


@examples(25)
@given(tables(), st.sampled_from(SPLITS), capacities, depths)
def test_invariants_of_nodes_and_boxes(table, split, capacity, max_depth):
    X, y, weights, queries = table
    model = QuadTreeRegressor(
        split=split, leaf_capacity=capacity, max_depth=max_depth, random_state=0
    ).fit(X, y, weights)
    X, y, weights = X[weights > 0], y[weights > 0], weights[weights > 0]
    tree, leaves = model.tree_, model.apply(X)
    assert tree.is_leaf[leaves].all()
    assert model.get_n_leaves() == tree.is_leaf.sum() == len(set(leaves.tolist()))
    assert model.get_depth() == tree.depth.max()
    # Boxes contain their rows. Lower bounds are exclusive, except at the minimum of the data.
    low, high = tree.low[leaves], tree.high[leaves]
    assert (((low < X) | (tree.low[0] == X)) & (high >= X)).all()
    # Boxes (low, high] of leaves are disjoint: in some feature one ends where the other starts.
    leaf_nodes = np.flatnonzero(tree.is_leaf)
    for a in leaf_nodes:
        for b in leaf_nodes[leaf_nodes > a]:
            assert ((tree.high[a] <= tree.low[b]) | (tree.high[b] <= tree.low[a])).any()
    for leaf in leaf_nodes:
        inside = leaves == leaf
        assert tree.n_node_samples[leaf] == inside.sum()
        assert (
            inside.sum() <= capacity
            or len(np.unique(X[inside], axis=0)) == 1
            or tree.depth[leaf] == max_depth
        )
    # The statistics of every node match those of the rows below it.
    child = tree.children
    for node in range(tree.n_nodes):
        descendants, stack = [], [node]
        while stack:
            current = stack.pop()
            descendants.append(current)
            stack.extend(child[current][child[current] >= 0].tolist())
        inside = np.isin(leaves, descendants)
        mean = np.average(y[inside], weights=weights[inside])
        np.testing.assert_allclose(tree.value[node, 0], mean, atol=1e-12)
        np.testing.assert_allclose(
            tree.impurity[node],
            np.average((y[inside] - mean) ** 2, weights=weights[inside]),
            atol=1e-12,
        )
        assert tree.weighted_n_node_samples[node] == weights[inside].sum()
        assert tree.n_node_samples[node] == inside.sum()
    np.testing.assert_array_equal(model.predict(X), tree.value[leaves, 0])
    # New rows stop where the child does not exist.
    for row, applied in zip(queries, model.apply(queries), strict=True):
        node = 0
        while not tree.is_leaf[node]:
            slot = sum(1 << j for j in range(len(row)) if row[j] > tree.center[node, j])
            if child[node, slot] < 0:
                break
            node = child[node, slot]
        assert applied == node


@examples(25)
@given(st.lists(st.tuples(anything, anything), min_size=1, max_size=15), st.sampled_from(SPLITS))
def test_all_different_rows_are_separated(rows, split):
    X = np.array(rows)
    _, y = np.unique(X, axis=0, return_inverse=True)
    model = QuadTreeRegressor(split=split, leaf_capacity=1, random_state=0).fit(X, y.ravel())
    np.testing.assert_array_equal(model.predict(X), y.ravel())
    leaves, tree = model.apply(X), model.tree_
    assert (((tree.low[leaves] < X) | (tree.low[0] == X)) & (tree.high[leaves] >= X)).all()


@examples(25)
@given(tables(), st.sampled_from(SPLITS), capacities)
def test_probabilities_are_means_of_class_indicators(table, split, capacity):
    X, y, weights, queries = table
    parameters = {"split": split, "leaf_capacity": capacity, "random_state": 0}
    model = QuadTreeClassifier(**parameters).fit(X, y, weights)
    probabilities = model.predict_proba(queries)
    for k, label in enumerate(model.classes_):
        means = QuadTreeRegressor(**parameters).fit(X, y == label, weights)
        np.testing.assert_allclose(probabilities[:, k], means.predict(queries), atol=1e-12)
    np.testing.assert_array_equal(
        model.predict(queries), model.classes_[probabilities.argmax(axis=1)]
    )
    gini = 1 - (model.tree_.value**2).sum(axis=1)
    np.testing.assert_allclose(model.tree_.impurity, gini, atol=1e-12)


@examples(25)
@given(tables())
def test_integer_weights_equal_repeated_rows(table):
    """The leaf capacity is one, because a larger capacity counts rows."""
    X, y, weights, queries = table
    weighted = QuadTreeRegressor(leaf_capacity=1).fit(X, y, weights)
    repeated = QuadTreeRegressor(leaf_capacity=1).fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_array_equal(weighted.tree_.children, repeated.tree_.children)
    np.testing.assert_allclose(weighted.tree_.value, repeated.tree_.value, atol=1e-12)
    np.testing.assert_allclose(weighted.tree_.impurity, repeated.tree_.impurity, atol=1e-12)
    np.testing.assert_array_equal(
        weighted.tree_.weighted_n_node_samples, repeated.tree_.n_node_samples
    )
    np.testing.assert_array_equal(weighted.apply(queries), repeated.apply(queries))


# -------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("split", SPLITS)
def test_large_tables_match_the_recursive_reference(split):
    rng = np.random.default_rng(0)
    for X in (rng.random((3000, 2)), np.sort(rng.normal(size=(3000, 2)), axis=0)):
        model = QuadTreeRegressor(split=split, random_state=3).fit(X, X[:, 0])
        slow = slow_fit(X, split, 10, None, 3)
        assert compare_trees(model.tree_, model.apply(X), slow) == model.tree_.n_nodes
        assert model.get_depth() < 40
        assert model.score(X, X[:, 0]) > 0.9


def test_point_splits_depend_on_the_seed():
    X = np.random.default_rng(0).random((200, 2))
    y = X[:, 0]

    def fitted(seed):
        return QuadTreeRegressor(split="point", random_state=seed).fit(X, y)

    np.testing.assert_array_equal(fitted(0).tree_.center, fitted(0).tree_.center)
    assert not np.array_equal(fitted(0).predict(X), fitted(1).predict(X))


@pytest.mark.parametrize("split", SPLITS)
def test_duplicate_rows_share_a_leaf(split):
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], 100, axis=0)
    model = QuadTreeRegressor(split=split, leaf_capacity=1, random_state=0).fit(X, X[:, 1])
    assert model.get_n_leaves() == 3
    np.testing.assert_array_equal(model.predict(X), X[:, 1])
    constant = QuadTreeRegressor(split=split).fit(np.ones((50, 3)), np.arange(50))
    assert constant.tree_.n_nodes == 1
    assert constant.predict([[9.0, 9.0, 9.0]]) == 24.5


@pytest.mark.parametrize("split", SPLITS)
def test_extreme_and_adjacent_values_are_separated(split):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X[0], X[1] = 1e300, -1.7e308
    X[2] = 1.7e308
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's sum over X overflows
        model = QuadTreeRegressor(split=split, leaf_capacity=1, random_state=0)
        model.fit(X, np.arange(200))
        np.testing.assert_array_equal(model.predict(X), np.arange(200))
    assert np.isfinite(model.tree_.low).all()
    assert np.isfinite(model.tree_.high).all()
    adjacent = 1 + np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]) * 2.0**-52
    model = QuadTreeRegressor(split=split, leaf_capacity=1, random_state=0).fit(adjacent, range(5))
    np.testing.assert_array_equal(model.predict(adjacent), range(5))
    # Adjacent floats whose midpoint is rounded up or down.
    for pair in ([1 + 2.0**-52, 1 + 2.0**-51], [1.0, 1 + 2.0**-52], [0.0, 5e-324]):
        X = np.array(pair)[:, np.newaxis]
        model = QuadTreeRegressor(split=split, leaf_capacity=1, random_state=0).fit(X, [0, 1])
        np.testing.assert_array_equal(model.predict(X), [0, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_have_no_effect(kind):
    X, y = np.random.default_rng(0).random((100, 2)), np.arange(100) % 2
    weights = np.arange(100) % 3
    X[weights == 0] *= 50
    model = kind().fit(X, y, weights)
    without = kind().fit(X[weights > 0], y[weights > 0], weights[weights > 0])
    np.testing.assert_array_equal(model.tree_.high, without.tree_.high)
    np.testing.assert_array_equal(model.tree_.value, without.tree_.value)


def test_max_depth_and_number_of_features():
    X, y = make_moons(500, noise=0.1, random_state=0)
    root = QuadTreeClassifier(max_depth=0).fit(X, y)
    assert (root.get_depth(), root.get_n_leaves(), root.tree_.children.tolist()) == (
        0,
        1,
        [[-1] * 4],
    )
    np.testing.assert_allclose(root.predict_proba(X[:1]), [[0.5, 0.5]])
    assert root.predict(X[:1]) == 0
    assert QuadTreeClassifier(max_depth=3).fit(X, y).get_depth() == 3
    ten_features = np.random.default_rng(0).random((50, 10))
    model = QuadTreeClassifier(leaf_capacity=1).fit(ten_features, np.arange(50) % 20)
    assert model.score(ten_features, np.arange(50) % 20) == 1
    assert model.tree_.children.shape == (model.tree_.n_nodes, 1024)


# -------------------------------------------------------------------------------- integration


def test_container_types_agree():
    X, y = make_moons(200, noise=0.2, random_state=0)
    expected = QuadTreeClassifier().fit(X, y).predict(X)
    read_only = np.array(X)
    read_only.flags.writeable = False
    wide = np.zeros((400, 4))
    wide[::2, ::2] = X
    for other in (X.tolist(), read_only, wide[::2, ::2], np.asfortranarray(X)):
        np.testing.assert_array_equal(QuadTreeClassifier().fit(other, y).predict(other), expected)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        model = QuadTreeClassifier().fit(frame, y)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(model.predict(frame), expected)
    np.testing.assert_array_equal(QuadTreeClassifier().fit([[1.0]], ["a"]).predict([[5.0]]), ["a"])


def test_pipelines_grid_search_and_clones():
    X, y = make_moons(300, noise=0.2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), QuadTreeClassifier(random_state=0))
    grid = {"quadtreeclassifier__leaf_capacity": [1, 10, 300], "quadtreeclassifier__split": SPLITS}
    assert GridSearchCV(pipeline, grid).fit(X, y).best_score_ > 0.85
    model = clone(QuadTreeClassifier(max_depth=4)).fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(unpickled.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(unpickled.tree_.children, model.tree_.children)


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_input_raises(kind):
    X, y = np.arange(6.0).reshape(3, 2), [0, 1, 1]
    with pytest.raises(
        ValueError, match=r"X: expected at most 10 features, got 11; .* 2\*\*n_features"
    ):
        kind().fit(np.zeros((3, 11)), y)
    for parameters in (
        {"split": "median"},
        {"leaf_capacity": 0},
        {"leaf_capacity": 2.5},
        {"max_depth": -1},
        {"random_state": "x"},
    ):
        with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of"):
            kind(**parameters).fit(X, y)
    with pytest.raises(ValueError, match="contains NaN"):
        kind().fit([[np.nan], [0], [0]], y)
    with pytest.raises(ValueError, match="infinity"):
        kind().fit(X, y).predict([[np.inf, 0]])
    with pytest.raises(ValueError, match="at least one non-zero number"):
        kind().fit(X, y, [0, 0, 0])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        kind().fit(X, y, [1, -1, 1])
    with pytest.raises(ValueError, match="expecting 2 features"):
        kind().fit(X, y).predict([[0.0]])


# -------------------------------------------------------------------------------- output


def test_plot_partition():
    X, y = make_moons(100, noise=0.2, random_state=0)
    figure, axes = plt.subplots(1, 3)
    try:
        model = QuadTreeClassifier(leaf_capacity=5).fit(X, y)
        assert plot_partition(model, X, y, axes[0]) is axes[0]
        boxes = [path.get_extents() for path in axes[0].collections[0].get_paths()]
        # The boxes, including empty ones, fill the range of the data.
        np.testing.assert_allclose(
            sum(box.width * box.height for box in boxes), np.prod(np.ptp(X, axis=0))
        )
        plot_partition(QuadTreeRegressor(split="point", random_state=0).fit(X, y), X, ax=axes[1])
        plot_partition(QuadTreeRegressor(leaf_capacity=60).fit(X * [1, 0], y), X, y, ax=axes[2])
        assert len(axes[2].collections[0].get_paths()) == 2
        figure.canvas.draw()
    finally:
        plt.close(figure)
    with pytest.raises(ValueError, match="must have 2 features; got 1"):
        plot_partition(QuadTreeClassifier().fit(X[:, :1], y))


def test_exported_rules_match_predictions():
    X, y = make_moons(80, noise=0.2, random_state=0)
    model = QuadTreeClassifier(leaf_capacity=8).fit(X, y)
    rules = export_rules(model)
    rows = np.random.default_rng(0).normal(size=(200, 2)) * 2
    for row, prediction in zip(rows, model.predict(rows), strict=True):
        (rule,) = [rule for rule in rules if rule.covers(row)]
        assert rule.prediction == prediction
    assert sum(rule.n_samples for rule in rules) == 80
    text = export_text(model, feature_names=["a", "b"])
    assert text.count("class:") == len(rules)
    assert "a <= " in text
    assert export_svg(model).count("<title>") > len(rules)
    regression_rules = export_rules(QuadTreeRegressor(leaf_capacity=8).fit(X, X[:, 0]))
    assert {rule.probability for rule in regression_rules} == {None}
    with pytest.raises(TypeError, match="export_graphviz: expected a tree"):
        export_graphviz(model)
