"""Accumulated local effects of two columns, of numbers or categories: against the definition."""

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
    """Predicts what a function of the table says."""

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


def sides(told):
    return [Side(grid.name, grid.values) for grid in told.grids]


def known(frame, pair):
    return frame[frame[list(pair)].notna().all(axis=1)]


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_effects_are_those_of_the_definition(pair):
    frame = table()
    model = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(frame, price(frame))
    told = accumulated_local_effects(model, frame, pair, n_intervals=3)
    rows = known(frame, pair)
    expected = effects_of_two(model.predict, rows, *sides(told))
    assert np.ptp(expected) > 0.1
    np.testing.assert_allclose(told.effect[0], expected, atol=1e-9)
    assert told.n_missing == len(frame) - len(rows)
    assert told.counts.sum() == len(rows)
    assert np.isnan(told.error).all()
    for grid, size, seen in zip(told.grids, told.counts.shape, told.observed, strict=True):
        assert size == (len(grid) if grid.is_category else len(grid) - 1)
        assert len(seen) == len(rows)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_categories_are_in_the_order_of_one_column(pair):
    """Whatever rows the other column loses."""
    for seed in range(8):
        frame = table(seed)
        view = TableView(frame)
        told = accumulated_local_effects(Formula(price), frame, pair)
        for name, grid in zip(pair, told.grids, strict=True):
            if grid.is_category:
                j = list(frame).index(name)
                levels, rows = view.levels(j), np.flatnonzero(frame[name].notna())
                present = np.arange(len(levels.labels))
                order = order_categories(view, rows, j, levels.codes[rows], present)
                assert grid.values == [levels.labels[place] for place in order]
                alone = accumulated_local_effects(Formula(price), frame, name)
                assert grid.values == alone.grids[0].values


def test_categories_that_are_only_seen_without_the_other_value_are_left_out():
    frame = table(1)
    frame.loc[frame["colour"] == "grey", "number"] = np.nan
    told = accumulated_local_effects(Formula(price), frame, ("colour", "number"), n_intervals=2)
    order = accumulated_local_effects(Formula(price), frame, "colour").grids[0].values
    assert told.grids[0].values == [name for name in order if name != "grey"]
    expected = effects_of_two(price, known(frame, ("colour", "number")), *sides(told))
    np.testing.assert_allclose(told.effect[0], expected, atol=1e-9)


def test_steps_without_rows_take_the_nearest_change():
    """Two categories of the one column are never seen with two of the other."""
    places = [(a, b) for a in "abcd" for b in "wxyz" if a in "ab" or b in "wx"]
    frame = pd.DataFrame(places * 3, columns=["one", "other"]).astype("category")
    worth = np.random.default_rng(0).normal(size=(4, 4))

    def looked_up(rows):
        return worth[rows["one"].cat.codes, rows["other"].cat.codes]

    told = accumulated_local_effects(Formula(looked_up), frame, ("one", "other"))
    at = [
        [order.index(name) for name in grid.values]
        for order, grid in zip(("abcd", "wxyz"), told.grids, strict=True)
    ]
    own = worth[np.ix_(*at)]
    counts = told.counts[1:] + told.counts[:-1]
    empty = counts[:, 1:] + counts[:, :-1] == 0
    changes = np.diff(np.diff(told.effect[0], axis=0), axis=1)
    expected = np.diff(np.diff(own, axis=0), axis=1)
    np.testing.assert_allclose(changes[~empty], expected[~empty], atol=1e-12)
    ((s, t),) = np.argwhere(empty)
    beside = [(s + 1, t), (s - 1, t), (s, t + 1), (s, t - 1)]
    near = [expected[place] for place in beside if max(place) < 3 and min(place) >= 0]
    assert np.isclose(changes[s, t], near, atol=1e-12).any()


# ------------------------------------------------------------------------------- closed forms


def factorial(n_first, n_second, repeats=2):
    """Every pair of two columns of codes, as often as the others."""
    pairs = list(itertools.product(range(n_first), range(n_second))) * repeats
    return np.array(pairs, dtype=np.float64)


def named(codes):
    return pd.Categorical([f"name {int(code)}" for code in codes])


def values_of(grid, worth):
    """What the places of a grid are worth: numbers themselves, categories what a table says."""
    if not grid.is_category:
        return np.asarray(grid.values)
    return worth[[int(name.split()[1]) for name in grid.values]]


@pytest.mark.parametrize("categories", [(False, True), (True, False), (True, True)])
def test_a_product_of_codes_is_the_product_of_distances_from_their_means(categories):
    random = np.random.default_rng(2)
    codes, sizes = factorial(5, 4), (5, 4)
    worth = [random.normal(size=n) for n in sizes]
    frame = pd.DataFrame(
        {
            name: named(own) if is_category else own
            for name, own, is_category in zip("ab", codes.T, categories, strict=True)
        }
    )

    def read(rows, k):
        column = rows["ab"[k]]
        return worth[k][column.cat.codes] if categories[k] else column.to_numpy()

    model = Formula(lambda rows: read(rows, 0) * read(rows, 1) + 5 * read(rows, 0) - read(rows, 1))
    told = accumulated_local_effects(model, frame, ("a", "b"))
    expected = 1.0
    for k, grid in enumerate(told.grids):
        at = values_of(grid, worth[k])
        # The mean over rows, of which those of an interval are in its middle.
        cells = at if grid.is_category else (at[1:] + at[:-1]) / 2
        own = at - np.average(cells, weights=told.counts.sum(axis=1 - k))
        expected = np.multiply.outer(expected, own)
    np.testing.assert_allclose(told.effect[0], expected, atol=1e-12)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_sums_have_no_joint_effect(data):
    """Whatever rows there are, and wherever there are none."""
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.integers(1, 40))
    worth = random.normal(size=(2, 8))
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
        for name, own in zip("ab", worth, strict=True):
            column = rows[name]
            codes = column.cat.codes if hasattr(column, "cat") else column.fillna(0).astype(int)
            total = total + own[codes]
        return total

    told = accumulated_local_effects(Formula(added), frame, ("a", "b"), n_intervals=4)
    np.testing.assert_allclose(told.effect, 0, atol=1e-12)


@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    categories=st.sampled_from([(False, True), (True, False), (True, True), (False, False)]),
    n_more=st.integers(0, 30),
)
@settings(max_examples=60, deadline=None)
def test_any_pair(seed, sizes, categories, n_more):
    """The definition, either way round, with a mean of zero: any function, all cells have rows."""
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
    looked_up = random.normal(size=(2, *sizes))

    def predict(rows):
        places = [
            (rows[name].cat.codes if is_category else rows[name]).to_numpy().astype(int)
            for name, is_category in zip("ab", categories, strict=True)
        ]
        return looked_up[0][*places] + rows["other"].to_numpy() * looked_up[1][*places]

    told = accumulated_local_effects(Formula(predict), frame, ("a", "b"), n_intervals=3)
    if min(told.effect.shape) > 1 or min(sizes) == 1:
        expected = np.zeros(told.effect.shape[1:])
        if min(sizes) > 1:
            expected = effects_of_two(predict, frame, *sides(told))
        np.testing.assert_allclose(told.effect[0], expected, atol=1e-12)
    swapped = accumulated_local_effects(Formula(predict), frame, ("b", "a"), n_intervals=3)
    np.testing.assert_allclose(swapped.effect[0], told.effect[0].T, atol=1e-12)
    np.testing.assert_array_equal(swapped.counts, told.counts.T)
    assert told.counts.sum() == len(frame)
    if all(categories):
        assert (told.effect[0] * told.counts).sum() == pytest.approx(0, abs=1e-9)


# ---------------------------------------------------------------------------- tables and models


def test_frames_and_numbers_that_name_things_agree():
    frame = table(2).drop(columns=["whole"])
    model = DecisionTreeRegressor(max_depth=5).fit(frame, frame["number"].fillna(0))
    told = accumulated_local_effects(model, frame, ("colour", "shape"))
    other = accumulated_local_effects(model, pl.from_pandas(frame), ("colour", "shape"))
    assert [grid.values for grid in told.grids] == [grid.values for grid in other.grids]
    np.testing.assert_array_equal(told.effect, other.effect)

    random = np.random.default_rng(0)
    codes = random.integers(0, 4, (200, 2)).astype(np.float64)
    model = DecisionTreeRegressor(categorical_features=[0]).fit(codes, codes[:, 0] * codes[:, 1])
    told = accumulated_local_effects(model, codes, (0, 1))
    assert [grid.is_category for grid in told.grids] == [True, False]
    assert np.ptp(told.effect) > 1


def test_each_class_has_its_effect():
    frame = table(3)
    labels = np.digitize(price(frame), [0.5, 2.0])
    model = RandomForestClassifier(10, random_state=0).fit(frame, labels)
    told = accumulated_local_effects(model, frame, ("colour", "shape"))
    assert told.effect.shape == (3, 4, 3)
    np.testing.assert_allclose(told.effect.sum(axis=0), 0, atol=1e-12)  # shares sum to one
    one = accumulated_local_effects(model, frame, ("colour", "shape"), target=2)
    np.testing.assert_array_equal(one.effect[0], told.effect[2])


def test_one_category_has_no_effect():
    frame = pd.DataFrame({"one": pd.Categorical(["a"] * 9), "number": np.arange(9.0)})
    told = accumulated_local_effects(
        Formula(lambda rows: rows["number"]), frame, ("one", "number"), n_intervals=3
    )
    assert told.effect.shape == (1, 1, 4)
    assert (told.effect == 0).all()
    assert told.counts.tolist() == [[3, 3, 3]]


def test_rows_that_never_have_both_values_are_refused_by_name():
    frame = pd.DataFrame({"a": pd.Categorical(["x", "y", None, None]), "b": [np.nan, np.nan, 1, 2]})
    model = Formula(lambda rows: np.zeros(len(rows)))
    with pytest.raises(ValueError, match="columns: expected rows with values in both 'a' and 'b'"):
        accumulated_local_effects(model, frame, ("a", "b"))
    frame["a"] = pd.Categorical([None] * 4, categories=["x"])
    with pytest.raises(
        ValueError, match="columns: expected a value in column 'a', got only missing values"
    ):
        accumulated_local_effects(model, frame, ("b", "a"))


# ------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_maps_name_the_categories(pair):
    frame = table()
    model = Formula(price)
    told = accumulated_local_effects(model, frame, pair, n_intervals=5)
    ax = plot.accumulated_local_effects(
        model, frame, pair, n_intervals=5, ax=Figure((6, 4)).subplots()
    )
    shown = np.ma.filled(ax.collections[0].get_array(), np.nan).T
    assert shown.shape == told.counts.shape
    np.testing.assert_array_equal(np.isnan(shown), told.counts == 0)
    for grid, axis in zip(told.grids, (ax.xaxis, ax.yaxis), strict=True):
        assert axis.label.get_text() == grid.name
        if grid.is_category:
            assert [text.get_text() for text in axis.get_ticklabels()] == grid.values
            assert axis.get_ticklocs().tolist() == list(range(len(grid)))
    if all(grid.is_category for grid in told.grids):
        seen = told.counts > 0
        np.testing.assert_allclose(shown[seen], told.effect[0][seen])
    assert ax.texts[0].get_text() == f"{told.n_missing} rows with missing values omitted"


def test_a_map_of_a_constant_is_refused_by_name():
    frame = pd.DataFrame({"same": pd.Categorical(["a"] * 9), "number": np.arange(9.0)})
    with pytest.raises(ValueError, match="at least two values in column 'same', got a constant"):
        plot.accumulated_local_effects(
            Formula(lambda rows: rows["number"]), frame, ("same", "number")
        )
