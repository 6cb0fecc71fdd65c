"""Accumulated local effects of two columns, numeric or categorical."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.base import BaseEstimator, RegressorMixin

from reference.slow_effects import Side, effects_of_two
from spinney import plot
from spinney.ensemble import GradientBoostingRegressor, RandomForestClassifier
from spinney.inspection import accumulated_local_effects
from spinney.inspection._category_order import order_categories
from spinney.inspection.table_view import TableView
from spinney.tree import DecisionTreeRegressor

PAIRS = [("number", "colour"), ("colour", "number"), ("colour", "shape"), ("shape", "whole")]


class Formula(RegressorMixin, BaseEstimator):
    """A model that predicts a given function of the table."""

    def __init__(self, function=None):
        self.function = function

    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.asarray(self.function(X), dtype=np.float64)

    def __sklearn_is_fitted__(self):
        return True


def table(seed=0, n=160):
    random = np.random.default_rng(seed)
    colour = random.choice(["red", "green", "blue", "grey"], n, p=[0.4, 0.3, 0.2, 0.1])
    shape = random.choice(["round", "square", "flat"], n)
    number = random.normal(size=n) + (colour == "red")
    colour, shape = colour.astype(object), shape.astype(object)
    colour[random.uniform(size=n) < 0.1] = None
    shape[random.uniform(size=n) < 0.1] = None
    number[random.uniform(size=n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "number": number,
            "colour": pd.Categorical(colour),
            "shape": pd.Categorical(shape),
            "whole": random.integers(0, 3, n).astype(float),
        }
    )


def price(frame):
    red, flat = frame["colour"] == "red", frame["shape"] == "flat"
    number = frame["number"].fillna(0.5)
    return (number * (1 + 2 * red) + 3 * red * flat + frame["whole"] * flat).to_numpy()


def sides(result):
    return [Side(grid.name, grid.values) for grid in result.grids]


def complete_rows(frame, pair):
    return frame[frame[list(pair)].notna().all(axis=1)]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_effects_match_the_definition(pair):
    frame = table()
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(frame, price(frame))
    result = accumulated_local_effects(model, frame, pair, n_intervals=3)
    rows = complete_rows(frame, pair)
    expected = effects_of_two(model.predict, rows, *sides(result))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(result.effect[0], expected, atol=1e-9)
    assert result.n_missing == len(frame) - len(rows)
    assert result.counts.sum() == len(rows)
    assert np.isnan(result.error).all()
    for grid, size, observed in zip(
        result.grids, result.counts.shape, result.observed, strict=True
    ):
        assert size == (len(grid) if grid.is_category else len(grid) - 1)
        assert len(observed) == len(rows)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_category_order_does_not_depend_on_the_other_column(pair):
    """Missing values in the other column do not change the order."""
    for seed in range(8):
        frame = table(seed)
        view = TableView(frame)
        result = accumulated_local_effects(Formula(price), frame, pair)
        for name, grid in zip(pair, result.grids, strict=True):
            if grid.is_category:
                j = list(frame).index(name)
                levels, rows = view.levels(j), np.flatnonzero(frame[name].notna())
                present = np.arange(len(levels.labels))
                order = order_categories(view, rows, j, levels.codes[rows], present)
                assert grid.values == [levels.labels[index] for index in order]
                alone = accumulated_local_effects(Formula(price), frame, name)
                assert grid.values == alone.grids[0].values


def test_categories_without_complete_rows_are_omitted():
    frame = table(1)
    frame.loc[frame["colour"] == "grey", "number"] = np.nan
    result = accumulated_local_effects(Formula(price), frame, ("colour", "number"), n_intervals=2)
    order = accumulated_local_effects(Formula(price), frame, "colour").grids[0].values
    assert result.grids[0].values == [name for name in order if name != "grey"]
    expected = effects_of_two(price, complete_rows(frame, ("colour", "number")), *sides(result))
    np.testing.assert_allclose(result.effect[0], expected, atol=1e-9)


def test_empty_steps_take_the_nearest_change():
    """Two categories of each column never occur together."""
    pairs = [(a, b) for a in "abcd" for b in "wxyz" if a in "ab" or b in "wx"]
    frame = pd.DataFrame(pairs * 3, columns=["one", "other"]).astype("category")
    table_of_values = np.random.default_rng(0).normal(size=(4, 4))

    def value_of_pair(rows):
        return table_of_values[rows["one"].cat.codes, rows["other"].cat.codes]

    result = accumulated_local_effects(Formula(value_of_pair), frame, ("one", "other"))
    codes = [
        [order.index(name) for name in grid.values]
        for order, grid in zip(("abcd", "wxyz"), result.grids, strict=True)
    ]
    ordered_values = table_of_values[np.ix_(*codes)]
    counts = result.counts[1:] + result.counts[:-1]
    empty = counts[:, 1:] + counts[:, :-1] == 0
    changes = np.diff(np.diff(result.effect[0], axis=0), axis=1)
    expected = np.diff(np.diff(ordered_values, axis=0), axis=1)
    np.testing.assert_allclose(changes[~empty], expected[~empty], atol=1e-12)
    ((s, t),) = np.argwhere(empty)
    neighbors = [(s + 1, t), (s - 1, t), (s, t + 1), (s, t - 1)]
    candidates = [
        expected[neighbor] for neighbor in neighbors if max(neighbor) < 3 and min(neighbor) >= 0
    ]
    assert np.isclose(changes[s, t], candidates, atol=1e-12).any()


# ------------------------------------------------------------------------------- closed forms


def factorial(n_first, n_second, repeats=2):
    """Return two columns of codes in which each pair occurs equally often."""
    pairs = list(itertools.product(range(n_first), range(n_second))) * repeats
    return np.array(pairs, dtype=np.float64)


def named(codes):
    return pd.Categorical([f"name {int(code)}" for code in codes])


def values_of(grid, category_values):
    """Return the numeric value of each grid position; `worth` has those of categories."""
    if not grid.is_category:
        return np.asarray(grid.values)
    return category_values[[int(name.split()[1]) for name in grid.values]]


@pytest.mark.parametrize("categories", [(False, True), (True, False), (True, True)])
def test_effect_of_a_product_is_the_product_of_centred_values(categories):
    random = np.random.default_rng(2)
    codes, sizes = factorial(5, 4), (5, 4)
    category_values = [random.normal(size=n) for n in sizes]
    frame = pd.DataFrame(
        {
            name: named(centred) if is_category else centred
            for name, centred, is_category in zip("ab", codes.T, categories, strict=True)
        }
    )

    def read(rows, k):
        column = rows["ab"[k]]
        return category_values[k][column.cat.codes] if categories[k] else column.to_numpy()

    model = Formula(lambda rows: read(rows, 0) * read(rows, 1) + 5 * read(rows, 0) - read(rows, 1))
    result = accumulated_local_effects(model, frame, ("a", "b"))
    expected = 1.0
    for k, grid in enumerate(result.grids):
        grid_values = values_of(grid, category_values[k])
        # The weighted mean over rows, with each row at the middle of its interval.
        cells = grid_values if grid.is_category else (grid_values[1:] + grid_values[:-1]) / 2
        centred = grid_values - np.average(cells, weights=result.counts.sum(axis=1 - k))
        expected = np.multiply.outer(expected, centred)
    np.testing.assert_allclose(result.effect[0], expected, atol=1e-12)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_additive_models_have_no_joint_effect(data):
    """The joint effect is zero for any rows, also if some cells are empty."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.integers(1, 40))
    category_values = random.normal(size=(2, 8))
    columns = {}
    for name in "ab":
        codes = random.integers(0, data.draw(st.integers(1, 8)), n)
        column = named(codes) if data.draw(st.booleans()) else codes.astype(np.float64)
        columns[name] = pd.Series(column).where(random.uniform(size=n) > 0.1)
    frame = pd.DataFrame(columns | {"other": random.normal(size=n)})
    if not frame[["a", "b"]].notna().all(axis=1).any():
        return

    def added(rows):
        total = rows["other"].to_numpy()
        for name, own in zip("ab", category_values, strict=True):
            column = rows[name]
            codes = column.cat.codes if hasattr(column, "cat") else column.fillna(0).astype(int)
            total = total + own[codes]
        return total

    result = accumulated_local_effects(Formula(added), frame, ("a", "b"), n_intervals=4)
    np.testing.assert_allclose(result.effect, 0, atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    categories=st.sampled_from([(False, True), (True, False), (True, True), (False, False)]),
    n_more=st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_random_pairs_match_the_definition(seed, sizes, categories, n_more):
    """The effects match the definition, for both column orders, and have mean zero."""
    random = np.random.default_rng(seed)
    codes = factorial(*sizes, repeats=1)
    codes = np.concatenate([codes, codes[random.integers(0, len(codes), n_more)]])
    frame = pd.DataFrame(
        {
            name: named(own) if is_category else own
            for name, own, is_category in zip("ab", codes.T, categories, strict=True)
        }
    )
    frame["other"] = random.normal(size=len(frame))
    value_of_pair = random.normal(size=(2, *sizes))

    def predict(rows):
        codes = [
            (rows[name].cat.codes if is_category else rows[name]).to_numpy().astype(int)
            for name, is_category in zip("ab", categories, strict=True)
        ]
        return value_of_pair[0][*codes] + rows["other"].to_numpy() * value_of_pair[1][*codes]

    result = accumulated_local_effects(Formula(predict), frame, ("a", "b"), n_intervals=3)
    if min(result.effect.shape) > 1 or min(sizes) == 1:
        expected = np.zeros(result.effect.shape[1:])
        if min(sizes) > 1:
            expected = effects_of_two(predict, frame, *sides(result))
        np.testing.assert_allclose(result.effect[0], expected, atol=1e-12)
    swapped = accumulated_local_effects(Formula(predict), frame, ("b", "a"), n_intervals=3)
    np.testing.assert_allclose(swapped.effect[0], result.effect[0].T, atol=1e-12)
    np.testing.assert_array_equal(swapped.counts, result.counts.T)
    assert result.counts.sum() == len(frame)
    if all(categories):
        assert (result.effect[0] * result.counts).sum() == pytest.approx(0, abs=1e-9)


# ---------------------------------------------------------------------------- tables and models


def test_frame_types_and_numeric_categories_agree():
    frame = table(2).drop(columns=["whole"])
    model = DecisionTreeRegressor(max_depth=5).fit(frame, frame["number"].fillna(0))
    result = accumulated_local_effects(model, frame, ("colour", "shape"))
    other = accumulated_local_effects(model, pl.from_pandas(frame), ("colour", "shape"))
    assert [grid.values for grid in result.grids] == [grid.values for grid in other.grids]
    np.testing.assert_array_equal(result.effect, other.effect)

    random = np.random.default_rng(0)
    codes = random.integers(0, 4, (200, 2)).astype(np.float64)
    model = DecisionTreeRegressor(categorical_features=[0]).fit(codes, codes[:, 0] * codes[:, 1])
    result = accumulated_local_effects(model, codes, (0, 1))
    assert [grid.is_category for grid in result.grids] == [True, False]
    assert np.ptp(result.effect) > 1


def test_each_class_has_its_own_effect():
    frame = table(3)
    labels = np.digitize(price(frame), [0.5, 2.0])
    model = RandomForestClassifier(10, random_state=0).fit(frame, labels)
    result = accumulated_local_effects(model, frame, ("colour", "shape"))
    assert result.effect.shape == (3, 4, 3)
    np.testing.assert_allclose(result.effect.sum(axis=0), 0, atol=1e-12)  # probabilities sum to one
    one = accumulated_local_effects(model, frame, ("colour", "shape"), target=2)
    np.testing.assert_array_equal(one.effect[0], result.effect[2])


def test_constant_category_has_no_effect():
    frame = pd.DataFrame({"one": pd.Categorical(["a"] * 9), "number": np.arange(9.0)})
    result = accumulated_local_effects(
        Formula(lambda rows: rows["number"]), frame, ("one", "number"), n_intervals=3
    )
    assert result.effect.shape == (1, 1, 4)
    assert (result.effect == 0).all()
    assert result.counts.tolist() == [[3, 3, 3]]


def test_columns_without_common_values_raise():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None, None]), "b": [np.nan, np.nan, 1, 2]})
    model = Formula(lambda rows: np.zeros(len(rows)))
    with pytest.raises(ValueError, match="columns: expected rows with values in both 'a' and 'b'"):
        accumulated_local_effects(model, frame, ("a", "b"))
    frame["a"] = pd.Categorical([None] * 4, categories=["x"])
    with pytest.raises(
        ValueError, match="columns: expected a value in column 'a', got only missing values"
    ):
        accumulated_local_effects(model, frame, ("b", "a"))


# ---------------------------------------------------------------------------------------- plots


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_plot_labels_the_categories(pair):
    frame = table()
    model = Formula(price)
    result = accumulated_local_effects(model, frame, pair, n_intervals=5)
    ax = plot.accumulated_local_effects(
        model, frame, pair, n_intervals=5, ax=Figure((6, 4)).subplots()
    )
    shown = np.ma.filled(ax.collections[0].get_array(), np.nan).T
    assert shown.shape == result.counts.shape
    np.testing.assert_array_equal(np.isnan(shown), result.counts == 0)
    for grid, axis in zip(result.grids, (ax.xaxis, ax.yaxis), strict=True):
        assert axis.label.get_text() == grid.name
        if grid.is_category:
            assert [text.get_text() for text in axis.get_ticklabels()] == grid.values
            assert axis.get_ticklocs().tolist() == list(range(len(grid)))
    if all(grid.is_category for grid in result.grids):
        has_rows = result.counts > 0
        np.testing.assert_allclose(shown[has_rows], result.effect[0][has_rows])
    assert ax.texts[0].get_text() == f"{result.n_missing} rows with missing values omitted"


def test_plot_of_a_constant_column_raises():
    frame = pd.DataFrame({"same": pd.Categorical(["a"] * 9), "number": np.arange(9.0)})
    with pytest.raises(ValueError, match="at least two values in column 'same', got a constant"):
        plot.accumulated_local_effects(
            Formula(lambda rows: rows["number"]), frame, ("same", "number")
        )
