"""Fixed partitions, compared with a dict of cells, and invalid input."""

import math
import pickle
import warnings
from collections import defaultdict

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binned_statistic
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from spinney.tree import (
    PartitionClassifier,
    PartitionRegressor,
    export_rules,
    export_svg,
    export_text,
    plot_partition,
)
from spinney.tree.partition._grid import Grid
from support.examples import examples

mpl.use("agg")

KINDS = [PartitionClassifier, PartitionRegressor]


def by_parity(X):
    return np.floor(X[:, 0]).astype(int) % 2


# -------------------------------------------------------------------------------- reference


def cell_index(x, edges):
    """Return how many edges are below x."""
    return sum(x > edge for edge in edges)


def predict_by_dict(X, y, weights, *, edges, queries, empty):
    """Return predictions and cells of a reference implementation with a dict."""
    cells = defaultdict(list)
    for row, target, weight in zip(X, y, weights, strict=True):
        if weight > 0:
            cells[tuple(map(cell_index, row, edges))].append((target, weight))

    def mean(rows):
        return sum(t * w for t, w in rows) / sum(w for _, w in rows)

    all_rows = [pair for rows in cells.values() for pair in rows]
    predictions = []
    for row in queries:
        cell = tuple(map(cell_index, row, edges))
        if cell in cells:
            predictions.append(mean(cells[cell]))
        elif empty == "global":
            predictions.append(mean(all_rows))
        elif empty == "nearest":
            squared_distances = {
                o: sum((a - b) ** 2 for a, b in zip(o, cell, strict=True)) for o in cells
            }
            predictions.append(mean(cells[min(sorted(cells), key=squared_distances.__getitem__)]))
        else:
            predictions.append(math.nan if empty == "nan" else empty)
    return predictions, cells


numbers = st.integers(-8, 8).map(lambda i: i / 4) | st.floats(-3, 3)


@st.composite
def tables(draw):
    n_rows, n_features = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    row = st.lists(numbers, min_size=n_features, max_size=n_features)
    X = draw(st.lists(row, min_size=n_rows, max_size=n_rows))
    queries = draw(st.lists(row, min_size=1, max_size=10))
    y = draw(st.lists(st.integers(-3, 3), min_size=n_rows, max_size=n_rows))
    weights = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    weights[draw(st.integers(0, n_rows - 1))] = 1
    cells = draw(
        st.integers(1, 6)
        | st.lists(
            st.integers(1, 5) | st.lists(numbers, max_size=4, unique=True).map(sorted),
            min_size=n_features,
            max_size=n_features,
        )
    )
    return np.array(X), np.array(y), np.array(weights), np.array(queries), cells


@examples(25)
@given(tables(), st.sampled_from(["global", "nearest", "nan", 7.0]))
def test_predictions_match_a_dict_of_cells(table, empty):
    X, y, weights, queries, cells = table
    model = PartitionRegressor(cells, empty=empty).fit(X, y, weights)
    all_rows = np.r_[X, queries]
    expected, expected_cells = predict_by_dict(
        X, y, weights, edges=model.edges_, queries=all_rows, empty=empty
    )
    np.testing.assert_allclose(model.predict(all_rows), expected, atol=1e-12)
    assert model.n_cells_ == len(expected_cells) == len(model.cell_values_)
    assert [tuple(cell) for cell in model.cells_] == sorted(expected_cells)
    np.testing.assert_array_equal(
        model.cell_counts_, [len(expected_cells[c]) for c in sorted(expected_cells)]
    )
    np.testing.assert_array_equal(
        model.cell_weights_, [sum(w for _, w in expected_cells[c]) for c in sorted(expected_cells)]
    )
    numbers_of = {cell: number for number, cell in enumerate(sorted(expected_cells))}
    np.testing.assert_array_equal(
        model.apply(all_rows),
        [numbers_of.get(tuple(map(cell_index, row, model.edges_)), -1) for row in all_rows],
    )


@examples(25)
@given(tables(), st.sampled_from(["global", "nearest"]))
def test_probabilities_are_means_of_class_indicators(table, empty):
    X, y, weights, queries, cells = table
    model = PartitionClassifier(cells, empty=empty).fit(X, y, weights)
    probabilities = model.predict_proba(queries)
    for k, label in enumerate(model.classes_):
        expected, _ = predict_by_dict(
            X, y == label, weights, edges=model.edges_, queries=queries, empty=empty
        )
        np.testing.assert_allclose(probabilities[:, k], expected, atol=1e-12)
    np.testing.assert_array_equal(
        model.predict(queries), model.classes_[probabilities.argmax(axis=1)]
    )


@examples(25)
@given(tables())
def test_integer_weights_equal_repeated_rows(table):
    X, y, weights, queries, cells = table
    repeated_X, repeated_y = X.repeat(weights, axis=0), y.repeat(weights)
    weighted = PartitionRegressor(cells).fit(X, y, weights)
    repeated = PartitionRegressor(cells).fit(repeated_X, repeated_y)
    np.testing.assert_allclose(weighted.cell_weights_, repeated.cell_counts_)
    np.testing.assert_allclose(weighted.predict(queries), repeated.predict(queries), atol=1e-12)
    weighted = PartitionClassifier(cells).fit(X, y, weights)
    repeated = PartitionClassifier(cells).fit(repeated_X, repeated_y)
    probabilities = weighted.predict_proba(queries)
    has_weight = np.isin(
        weighted.classes_, repeated.classes_
    )  # some classes have only rows of weight zero
    assert not probabilities[:, ~has_weight].any()
    np.testing.assert_allclose(
        probabilities[:, has_weight], repeated.predict_proba(queries), atol=1e-12
    )


@examples(20)
@given(st.integers(0, 10_000), st.integers(1, 30))
def test_one_feature_matches_binned_statistic(seed, n_cells):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=200), rng.normal(size=200)
    means, edges, _ = binned_statistic(x, y, "mean", n_cells)
    model = PartitionRegressor(n_cells).fit(x[:, np.newaxis], y)
    np.testing.assert_array_equal(model.edges_[0], edges[1:-1])
    np.testing.assert_allclose(model.cell_values_, means[~np.isnan(means)])
    with_range = PartitionRegressor(n_cells, range=(-1, 2)).fit(x[:, np.newaxis], y)
    np.testing.assert_array_equal(with_range.edges_[0], np.linspace(-1, 2, n_cells + 1)[1:-1])


# -------------------------------------------------------------------------------- many cells


@pytest.mark.parametrize("n_features", [2, 18, 20, 45])
def test_more_cells_than_64_bits_can_number(n_features):
    rng = np.random.default_rng(0)
    centers = rng.random((50, n_features))
    X = np.r_[
        centers[rng.integers(0, 50, 1000)], np.zeros((1, n_features)), np.ones((1, n_features))
    ]
    y = rng.normal(size=len(X))
    model = PartitionRegressor(10, empty="nan").fit(X, y)
    queries = np.r_[X, rng.random((100, n_features))]
    expected, expected_cells = predict_by_dict(
        X, y, np.ones(len(y)), edges=model.edges_, queries=queries, empty="nan"
    )
    np.testing.assert_allclose(model.predict(queries), expected)
    assert [tuple(cell) for cell in model.cells_] == sorted(expected_cells)
    if n_features > 2:
        assert np.isnan(model.predict(queries[-100:])).all()


def test_long_cell_keys_are_renumbered_in_stages(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, queries = rng.random((300, 9)), rng.normal(size=300), rng.random((300, 9))
    one_stage = PartitionRegressor(3, empty="nan").fit(X, y)
    expected = one_stage.apply(queries), one_stage.apply(X)
    monkeypatch.setattr("spinney.tree.partition._grid._LARGEST_KEY", 1000)
    several_stages = PartitionRegressor(3, empty="nan").fit(X, y)
    assert len(several_stages._cells._stages) > 2
    np.testing.assert_array_equal(several_stages.cells_, one_stage.cells_)
    np.testing.assert_array_equal(several_stages.apply(queries), expected[0])
    np.testing.assert_array_equal(several_stages.apply(X), expected[1])
    np.testing.assert_array_equal(several_stages.apply(X[:1]), expected[1][:1])


def test_nearest_cell_breaks_ties_by_order():
    grid = Grid([np.arange(9.0), np.arange(9.0)])
    grid.occupy(np.array([[3.0, 3.0], [5.0, 5.0], [3.0, 5.0], [5.0, 3.0]]))
    assert grid.nearest(np.array([[4.0, 4.0]])).tolist() == [0]
    assert grid.cells[grid.nearest(np.array([[4.0, 5.0]]))].tolist() == [[3, 5]]


# -------------------------------------------------------------------------------- functions


def test_cell_functions_may_return_any_hashable_labels():
    X, y = np.arange(6.0)[:, np.newaxis], np.arange(6.0)

    def strings(X):
        return np.where(X[:, 0] < 3, "low", "higher")

    def mixed(X):
        return np.array([None if x < 2 else ("pair", x > 3) for x in X[:, 0]] + [0], object)[:-1]

    model = PartitionRegressor(strings).fit(X, y)
    assert model.edges_ is None
    np.testing.assert_array_equal(model.predict(X), [1, 1, 1, 4, 4, 4])
    model = PartitionRegressor(mixed).fit(X[:4], y[:4])
    np.testing.assert_array_equal(model.predict(X), [0.5, 0.5, 2.5, 2.5, 1.5, 1.5])
    assert model.apply(X).tolist() == [0, 0, 1, 1, -1, -1]
    assert list(model.cells_) == [None, ("pair", False)]
    unpickled = pickle.loads(pickle.dumps(PartitionRegressor(by_parity).fit(X, y)))
    np.testing.assert_array_equal(unpickled.predict(X), [2, 3] * 3)


def test_invalid_cell_labels_raise():
    X, y = np.zeros((3, 1)), [0, 1, 1]
    for function, message in [
        (lambda X: [0], r"3 labels, one for each row, got an array of shape \(1,\)"),
        (lambda X: X, r"shape \(3, 1\)"),
        (lambda X: X[:, 0] * np.nan, "got NaN"),
        (lambda X: np.array([[], {}, None, 0], object)[:3], r"hashable labels, got \[\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            PartitionClassifier(function).fit(X, y)
    with pytest.raises(ValueError, match="empty='nearest': expected a grid"):
        PartitionClassifier(by_parity, empty="nearest").fit(X, y)


# -------------------------------------------------------------------------------- predictions


def test_cells_include_their_right_edge():
    model = PartitionRegressor([[0.0, 1.0]]).fit([[-5.0], [0.0], [0.5], [1.0], [1.5]], range(5))
    np.testing.assert_array_equal(
        model.predict([[-9], [0], [1e-9], [1], [2]]), [0.5, 0.5, 2.5, 2.5, 4]
    )


def test_empty_cells_of_classifiers():
    X, y = [[0.0], [1.0], [9.0]], ["b", "b", "a"]
    assert PartitionClassifier(9).fit(X, y).predict([[5.0]]) == "b"
    assert PartitionClassifier(9, empty="a").fit(X, y).predict([[5.0]]) == "a"
    np.testing.assert_array_equal(
        PartitionClassifier(9, empty="a").fit(X, y).predict_proba([[5.0]]), [[1, 0]]
    )
    assert PartitionClassifier(9, empty="nearest").fit(X, y).predict([[5.5]]) == "a"
    assert PartitionClassifier(9, empty=1).fit(X, [1, 0, 0]).predict([[5.0]]) == 1


def test_ties_predict_the_first_class():
    model = PartitionClassifier(1).fit([[0.0], [1.0]], ["b", "a"])
    assert model.predict([[0.0]]) == "a"


def test_rows_of_weight_zero_have_no_effect():
    X, y = np.array([[0.0], [1.0], [50.0]]), np.array([0.0, 1.0, 99.0])
    model = PartitionRegressor(2).fit(X, y, [1, 1, 0])
    np.testing.assert_array_equal(model.edges_[0], [0.5])
    np.testing.assert_array_equal(model.predict(X), [0, 1, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_constant_and_extreme_columns(kind):
    largest, smallest = 1.7e308, 5e-324
    X = np.array(
        [[3, -largest, 0, 1], [3, largest, smallest, 1 + 2e-16], [3, 0, 2 * smallest, 1 + 5e-16]]
    )
    y = [0, 1, 2]
    with np.errstate(all="ignore"):
        for cells in (1, 2, 1000):
            model = kind(cells).fit(X, y)
            assert [len(edges) for edges in model.edges_[:1]] == [0]
            assert all((np.diff(edges) > 0).all() for edges in model.edges_)
            assert all(np.isfinite(edges).all() for edges in model.edges_)
        np.testing.assert_array_equal(model.predict(X), y)
    one_row = kind().fit([[1.0, 2.0]], [4])
    assert one_row.predict([[7.0, -3.0]]) == 4
    assert one_row.n_cells_ == 1


def test_container_types_agree():
    X, y = make_moons(200, noise=0.2, random_state=0)
    expected = PartitionClassifier(5).fit(X, y).predict(X)
    read_only = np.array(X)
    read_only.flags.writeable = False
    wide = np.zeros((400, 4))
    wide[::2, ::2] = X
    for other in (X.tolist(), read_only, wide[::2, ::2], np.asfortranarray(X)):
        np.testing.assert_array_equal(PartitionClassifier(5).fit(other, y).predict(other), expected)
    for frame in (pd.DataFrame(X, columns=["a", "b"]), pl.DataFrame(X, schema=["a", "b"])):
        model = PartitionClassifier(5).fit(frame, y)
        assert model.feature_names_in_.tolist() == ["a", "b"]
        np.testing.assert_array_equal(model.predict(frame), expected)


def test_pipelines_grid_search_and_clones():
    X, y = make_moons(300, noise=0.2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), PartitionClassifier())
    search = GridSearchCV(pipeline, {"partitionclassifier__cells": [1, 5, 10, [3, 4]]}).fit(X, y)
    assert search.best_score_ > 0.85
    model = clone(PartitionClassifier([3, 4], empty="nearest", range=(0, 1))).fit(X, y)
    unpickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(unpickled.predict_proba(X * 2), model.predict_proba(X * 2))


# -------------------------------------------------------------------------------- invalid input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cells": 0}, "cells: expected at least 1 cell for each feature, got 0"),
        ({"cells": 2.5}, "cells: expected an int, one int or array of edges.*, got 2.5"),
        ({"cells": True}, "cells: expected an int"),
        ({"cells": "many"}, "cells: expected an int.*got 'many'"),
        ({"cells": None}, "cells: expected an int.*got None"),
        ({"cells": [3]}, "cells: expected one entry for each of the 2 features, got 1"),
        ({"cells": [3, -1]}, "cells: expected at least 1 cell.*got -1"),
        ({"cells": [3, 1.5]}, "cells: expected an int or ascending finite edges for feature 1"),
        ({"cells": [3, "ab"]}, "for feature 1, got 'ab'"),
        ({"cells": [[2.0, 1.0], 3]}, r"for feature 0, got \[2.0, 1.0\]"),
        ({"cells": [[1.0, 1.0], 3]}, "ascending"),
        ({"cells": [[np.nan], 3]}, "finite"),
        ({"cells": [[[1.0]], 3]}, r"got \[\[1.0\]\]"),
        ({"range": (1, 1)}, r"range: expected finite numbers with low < high, got \(1, 1\)"),
        ({"range": (0, np.inf)}, "range: expected finite"),
        ({"range": 5}, r"range: expected None, \(low, high\) or 2 such pairs, got 5"),
        ({"range": [(0, 1)] * 3}, "range: expected None"),
        ({"range": "wide"}, "range: expected None.*got 'wide'"),
        ({"empty": "mean"}, "empty: expected 'global', 'nearest'.*got 'mean'"),
        ({"empty": None}, "empty: expected 'global'.*got None"),
        ({"empty": [1, 2]}, "empty: expected 'global'"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", KINDS)
def test_invalid_parameters_raise(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters).fit([[0.0, 1.0], [2.0, 3.0]], [0, 1])


def test_empty_must_be_a_class():
    with pytest.raises(ValueError, match=r"one of the classes \[0, 1\], got 'nan'"):
        PartitionClassifier(empty="nan").fit([[0.0], [1.0]], [0, 1])


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_data_raises(kind):
    X, y = np.zeros((3, 1)), [0, 1, 1]
    with pytest.raises(ValueError, match="contains NaN"):
        kind().fit([[np.nan], [0], [0]], y)
    with pytest.raises(ValueError, match="infinity"):
        kind().fit(X, y).predict([[np.inf]])
    with pytest.raises(ValueError, match="at least one non-zero number"):
        kind().fit(X, y, [0, 0, 0])
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        kind().fit(X, y, [1, -1, 1])


# -------------------------------------------------------------------------------- output


def test_plot_partition():
    X, y = make_moons(100, noise=0.2, random_state=0)
    figure, axes = plt.subplots(1, 4)
    try:
        assert plot_partition(PartitionClassifier([4, 6]).fit(X, y), X, y, axes[0]) is axes[0]
        assert len(axes[0].collections[0].get_paths()) == 24
        plot_partition(PartitionRegressor(5, empty="nan").fit(X, y), ax=axes[1])
        values = axes[1].collections[0].get_array()
        assert len(values) == 25
        assert values.mask.any()
        frame = pd.DataFrame(X, columns=["east", "north"])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            plot_partition(PartitionRegressor(5).fit(frame, y), frame, y, axes[2])
        assert axes[2].get_xlabel() == "east"
        plot_partition(PartitionRegressor(5).fit(X * [0, 1], y), ax=axes[3])
        assert len(axes[3].collections[0].get_paths()) == 5
        figure.canvas.draw()
    finally:
        plt.close(figure)
    with pytest.raises(ValueError, match="must have 2 features; got 1"):
        plot_partition(PartitionClassifier().fit(X[:, :1], y))
    with pytest.raises(ValueError, match="must be a grid or a quad tree"):
        plot_partition(PartitionClassifier(by_parity).fit(X, y))
    with pytest.raises(TypeError, match="got StandardScaler"):
        plot_partition(StandardScaler())
    with pytest.raises(ValueError, match="y needs X"):
        plot_partition(PartitionClassifier().fit(X, y), y=y)


def test_exported_rules_match_predictions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] > X[:, 1]).astype(int)
    model = PartitionClassifier(cells=[[0.0], 3]).fit(X, y)
    rules = export_rules(model)
    assert len(rules) == model.n_cells_
    for row, prediction in zip(X, model.predict(X), strict=True):
        (rule,) = [rule for rule in rules if rule.covers(row)]
        assert rule.prediction == prediction
    assert "x[0] <= 0 and" in export_text(model)
    assert export_svg(model).startswith("<svg")
    by_function = PartitionRegressor(cells=by_parity).fit(X, X[:, 0])
    assert "cell = 1" in export_text(by_function)
    with pytest.raises(TypeError, match="export_rules: expected a partition with a grid"):
        export_rules(by_function)
