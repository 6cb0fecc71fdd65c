"""Intervals that know how large errors are for each category."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import spinney
from spinney.calibration import ConformalRegressor
from spinney.comparison.scaled_linear import ScaledLinearRegression, ScaledRidge
from spinney.comparison.scaled_neighbors import ScaledNeighborsRegressor
from spinney.conformal.group_scale import learn_group_scale
from spinney.data.table import Schema, Table
from spinney.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.forest.out_of_bag import _less_variable, as_of_all, means_of_all
from spinney.neighbors import KNeighborsRegressor

TOWNS = np.array(["calm", "usual", "wild"])
MODELS = [
    GradientBoostingRegressor(random_state=0, early_stopping=True, learning_rate=0.2),
    HistGradientBoostingRegressor(
        random_state=0, early_stopping=True, learning_rate=0.2, validation_fraction=0.5
    ),
    RandomForestRegressor(50, random_state=0),
    ScaledLinearRegression(),
    ScaledNeighborsRegressor(),
    ScaledRidge(),
    KNeighborsRegressor(15, metric="gower"),
]


def _table(columns: list[Any], n_categories: list[int]) -> tuple[Table, Schema]:
    arrays = [np.asarray(column, dtype=np.int32) for column in columns]
    names = tuple(np.arange(n) for n in n_categories)
    return Table(len(arrays[0]), len(arrays), columns=arrays), Schema(None, names)


def _shop(n: int, seed: int) -> tuple[pd.DataFrame, Any]:
    random = np.random.default_rng(seed)
    town = random.choice(3, n, p=[0.5, 0.35, 0.15])
    frame = pd.DataFrame(
        {
            "x": random.normal(size=n),
            "town": pd.Categorical(TOWNS[town]),
            "colour": random.choice(["red", "blue"], n),
        }
    )
    return frame, frame["x"].to_numpy() + np.array([0.3, 1.0, 4.0])[town] * random.normal(size=n)


def test_factors_are_those_of_the_noise() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 3, 20_000), random.integers(0, 2, 20_000)
    sizes = np.array([1.0, 2.0, 4.0])[a] * np.array([1.0, 3.0])[b] * random.exponential(size=20_000)
    found = learn_group_scale(*_table([a, b], [3, 2]), sizes)
    assert found is not None
    first, second = found[0].factors
    np.testing.assert_allclose(first[:3] / first[0], [1, 2, 4], rtol=0.1)
    np.testing.assert_allclose(second[:2] / second[0], [1, 3], rtol=0.1)
    # Of categories that nobody has, and of values that are missing, nothing is known.
    assert first[3] == second[2] == 1.0
    rows, _ = _table([[0, -1], [1, -1]], [3, 2])
    np.testing.assert_allclose(found[0].of(rows), [first[0] * second[1], 1.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_no_error_decides_its_own_factor_and_units_do_not_matter(seed: int, unit: float) -> None:
    random = np.random.default_rng(seed)
    codes, sizes = random.integers(-1, 4, 120), random.exponential(size=120)
    table, schema = _table([codes], [4])
    found, scaled = (learn_group_scale(table, schema, some) for some in (sizes, unit * sizes))
    assert found is not None
    assert scaled is not None
    np.testing.assert_allclose(found[1], scaled[1], rtol=1e-9)
    row = int(random.integers(120))
    sizes[row] *= 7
    again = learn_group_scale(table, schema, sizes)
    assert again is not None
    assert again[1][row] == found[1][row]


def test_equal_errors_few_rows_and_no_errors() -> None:
    table, schema = _table([np.arange(200) % 5], [5])
    found = learn_group_scale(table, schema, np.full(200, 3.0))
    assert found is not None
    np.testing.assert_allclose(found[0].factors[0], 1.0)
    np.testing.assert_allclose(found[1], 1.0)
    assert learn_group_scale(table, schema, np.zeros(200)) is None
    assert learn_group_scale(table.take(np.arange(50)), schema, np.ones(50)) is None


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_wild_towns_do_not_fall_short(model: Any) -> None:
    X, y = _shop(1500, 0)
    rows, truth = _shop(3000, 1)
    low, high = model.fit(X, y).predict_interval(rows, coverage=0.9).T
    held = (low <= truth) & (truth <= high)
    # Those of the limit vary as well as those of the test.
    n_held = 750 if isinstance(model, HistGradientBoostingRegressor) else len(y)
    assert abs(held.mean() - 0.9) < 3 * np.sqrt(0.09 * (1 / n_held + 1 / len(held)))
    for town in TOWNS:
        mine = held[(rows["town"] == town).to_numpy()]
        assert mine.mean() > 0.8 - 2 * np.sqrt(
            0.16 / len(mine)
        )  # without factors four to seven in ten
    # A column that tells nothing of the noise, and a town that is new, change little.
    assert np.ptp([held[(rows["colour"] == c).to_numpy()].mean() for c in ("red", "blue")]) < 0.05
    new = pd.DataFrame({"x": [0.0], "town": ["new"], "colour": [None]})
    assert np.isfinite(model.predict_interval(new)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_frames_and_files_agree(model: Any, tmp_path: Path) -> None:
    X, y = _shop(300, 2)
    ends = model.fit(X, y).predict_interval(X)
    spinney.save(model, tmp_path / "m")
    np.testing.assert_array_equal(spinney.load(tmp_path / "m").predict_interval(X), ends)
    if not isinstance(model, KNeighborsRegressor):
        np.testing.assert_array_equal(model.predict_interval(pl.from_pandas(X)), ends)


def test_forests_that_go_on() -> None:
    X, y = _shop(400, 3)
    forest = RandomForestRegressor(20, warm_start=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=40).fit(X, y)
    whole = RandomForestRegressor(40, random_state=0).fit(X, y)
    np.testing.assert_allclose(forest.predict_interval(X), whole.predict_interval(X))
    numbers = X[["x"]]
    forest.set_params(warm_start=False).fit(numbers, y)
    assert forest.predict_interval(numbers).shape == (400, 2)


def test_votes_of_some_trees_as_those_of_all() -> None:
    random = np.random.default_rng(0)
    chance = random.beta(2, 2, size=20_000)
    codes = (random.uniform(size=20_000) < chance).astype(np.int32)
    n_some = random.integers(30, 45, 20_000)
    of_all = random.binomial(100, chance) / 100
    of_some = random.binomial(n_some, chance) / n_some
    shares = np.column_stack([1 - of_some, of_some])
    assert np.var(of_some) > 1.05 * np.var(of_all)
    for rule in (as_of_all, _less_variable):
        told = rule(shares, codes, n_some, 100)
        np.testing.assert_allclose(told.sum(axis=1), 1.0)
        for code in (0, 1):
            mine = codes == code
            assert told[mine, 1].mean() == pytest.approx(of_some[mine].mean(), abs=0.005)
        assert np.var(told[:, 1]) == pytest.approx(np.var(of_all), rel=0.02)
    one = _less_variable(shares[:1], codes[:1], n_some[:1], 100)
    np.testing.assert_array_equal(one, shares[:1])
    np.testing.assert_array_equal(told, _less_variable(shares, codes, n_some, 100))


@pytest.mark.parametrize("n_all", [3, 10])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_votes_have_the_values_of_all_trees(n_all: int, n_classes: int) -> None:
    random = np.random.default_rng(n_classes)
    chance = random.dirichlet(np.full(n_classes, 0.7), size=20_000)
    codes = (random.uniform(size=(20_000, 1)) > chance.cumsum(axis=1)).sum(axis=1)
    n_some = np.maximum(random.binomial(n_all, 0.37, 20_000), 1)
    of_all = random.multinomial(n_all, chance)
    shares = random.multinomial(n_some, chance) / n_some[:, None]
    told = as_of_all(shares, codes, n_some, n_all) * n_all
    np.testing.assert_allclose(told, np.rint(told), atol=1e-9)
    rows = np.arange(20_000)
    # How often the right class has so many votes: what the limit of sets is made from.
    right, exact = (np.rint(one[rows, codes]).astype(int) for one in (told, of_all))
    counts = [np.bincount(one, minlength=n_all + 1) / 20_000 for one in (right, exact)]
    np.testing.assert_allclose(counts[0], counts[1], atol=0.02)


def test_means_of_some_trees_as_those_of_all() -> None:
    random = np.random.default_rng(0)
    n_some = random.integers(1, 8, 20_000)
    signal = random.normal(size=20_000)
    truth = signal + random.normal(size=20_000)
    trees = signal[:, None] + 2.0 * random.normal(size=(20_000, 10))
    seen = np.arange(10) < n_some[:, None]
    told = np.where(seen, trees, 0).sum(axis=1) / n_some
    variance = np.where(seen, (trees - told[:, None]) ** 2, 0).sum(axis=1) / n_some
    made = means_of_all(told[:, None], truth[:, None], variance[:, None], n_some, 10)[:, 0]
    errors = np.mean((truth - trees.mean(axis=1)) ** 2)
    assert np.mean((truth - told) ** 2) > 1.5 * errors
    assert np.mean((truth - made) ** 2) == pytest.approx(errors, rel=0.05)
    # One tree alone, and nothing to correct.
    same = means_of_all(told[:3, None], truth[:3, None], variance[:3, None], np.ones(3), 10)
    np.testing.assert_array_equal(same, told[:3, None])


def test_intervals_of_few_bagged_trees() -> None:
    random = np.random.default_rng(0)
    held = []
    for seed in range(8):
        X = random.normal(size=(2000, 4))
        y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * random.normal(size=2000)
        ends = BaggingRegressor(random_state=seed).fit(X[:500], y[:500]).predict_interval(X[500:])
        held.append(((ends[:, 0] <= y[500:]) & (y[500:] <= ends[:, 1])).mean())
    assert abs(np.mean(held) - 0.9) < 0.015


@pytest.mark.parametrize(
    ("shares", "n_trees"),
    [([[1.0]], [2]), ([[0.0, 1.0]], [1]), ([[1.0, 0.0], [1.0, 0.0]], [3, 3]), ([[0.5, 0.5]], [2])],
)
def test_votes_of_hardly_any_rows(shares: Any, n_trees: Any) -> None:
    codes = np.zeros(len(shares), dtype=np.int32)
    told = as_of_all(np.array(shares), codes, np.array(n_trees), 3)
    np.testing.assert_allclose(told.sum(axis=1), 1.0)
    assert (told >= 0).all()


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(random_state=0),
        RandomForestClassifier(5, random_state=0),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.n_estimators}",
)
def test_sets_of_few_trees(model: Any) -> None:
    random = np.random.default_rng(0)
    held, size = [], []
    for _ in range(4):
        X = random.normal(size=(2500, 4))
        y = np.digitize(X[:, 0] + 0.5 * random.normal(size=2500), [-0.7, 0.0, 0.7])
        sets = model.fit(X[:800], y[:800]).predict_set(X[800:])
        held.append(sets[np.arange(1700), y[800:]].mean())
        size.append(sets.sum(axis=1).mean())
    # Shares of few votes are tied, which can only make sets hold more.
    assert np.mean(held) > 0.88
    if model.n_estimators > 5:  # where one right class in ten has no vote, all have to be named
        assert np.mean(held) < 0.97
        assert np.mean(size) < 3.5


def test_sets_of_noisy_classes_hold_no_more_than_asked() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(6000, 6))
    y = (X[:, 0] + 1.5 * random.normal(size=6000) > 0).astype(int)
    held = []
    for seed in range(3):
        model = RandomForestClassifier(random_state=seed).fit(X[:1500], y[:1500])
        sets = model.predict_set(X[1500:], coverage=0.9)
        held.append(sets[np.arange(4500), y[1500:]].mean())
    assert abs(np.mean(held) - 0.9) < 0.02


@pytest.mark.parametrize("method", ["cross", "split"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_any_regressor_knows_categories(method: str, kind: Any) -> None:
    X, y = _shop(1500, 0)
    rows, truth = _shop(3000, 1)
    X["day"] = rows["day"] = "x"  # a constant tells nothing
    X["when"] = rows["when"] = pd.Timestamp("2020-01-01")  # nor does what is no category
    line = make_pipeline(FunctionTransformer(_numbers), LinearRegression())
    model = ConformalRegressor(line, method=method, random_state=0).fit(kind(X), y)
    assert "columns of categories" in model.interval_method_
    low, high = model.predict_interval(kind(rows)).T
    held = (low <= truth) & (truth <= high)
    assert abs(held.mean() - 0.9) < 0.04
    for town in TOWNS:
        mine = held[(rows["town"] == town).to_numpy()]
        assert mine.mean() > 0.8 - 2 * np.sqrt(0.16 / len(mine))
    model.set_params(groups=None).fit(kind(X), y)
    low, high = model.predict_interval(kind(rows)).T
    wild = (rows["town"] == "wild").to_numpy()
    assert ((low <= truth) & (truth <= high))[wild].mean() < 0.6


def _numbers(X: Any) -> Any:
    return np.asarray(X["x"], dtype=float)[:, None]
