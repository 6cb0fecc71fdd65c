"""Intervals that adapt to the size of the errors in each category."""

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
from spinney.forest.out_of_bag import _less_variable, mean_of_all_trees, votes_of_all_trees
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


def _shop_table(n_rows: int, seed: int) -> tuple[pd.DataFrame, Any]:
    random = np.random.default_rng(seed)
    town = random.choice(3, n_rows, p=[0.5, 0.35, 0.15])
    frame = pd.DataFrame(
        {
            "x": random.normal(size=n_rows),
            "town": pd.Categorical(TOWNS[town]),
            "colour": random.choice(["red", "blue"], n_rows),
        }
    )
    return frame, frame["x"].to_numpy() + np.array([0.3, 1.0, 4.0])[town] * random.normal(
        size=n_rows
    )


def test_factors_match_the_noise_of_each_category() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 3, 20_000), random.integers(0, 2, 20_000)
    sizes = np.array([1.0, 2.0, 4.0])[a] * np.array([1.0, 3.0])[b] * random.exponential(size=20_000)
    scale = learn_group_scale(*_table([a, b], [3, 2]), sizes)
    assert scale is not None
    first_factors, second_factors = scale[0].factors
    np.testing.assert_allclose(first_factors[:3] / first_factors[0], [1, 2, 4], rtol=0.1)
    np.testing.assert_allclose(second_factors[:2] / second_factors[0], [1, 3], rtol=0.1)
    # A category without rows and a missing value have factor 1.
    assert first_factors[3] == second_factors[2] == 1.0
    new_rows, _ = _table([[0, -1], [1, -1]], [3, 2])
    np.testing.assert_allclose(scale[0].of(new_rows), [first_factors[0] * second_factors[1], 1.0])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_factors_ignore_the_own_error_and_the_unit(seed: int, unit: float) -> None:
    random = np.random.default_rng(seed)
    codes, sizes = random.integers(-1, 4, 120), random.exponential(size=120)
    table, schema = _table([codes], [4])
    scale, in_other_unit = (
        learn_group_scale(table, schema, values) for values in (sizes, unit * sizes)
    )
    assert scale is not None
    assert in_other_unit is not None
    np.testing.assert_allclose(scale[1], in_other_unit[1], rtol=1e-9)
    row = int(random.integers(120))
    sizes[row] *= 7
    changed = learn_group_scale(table, schema, sizes)
    assert changed is not None
    assert changed[1][row] == scale[1][row]


def test_group_scale_with_equal_errors_zero_errors_and_few_rows() -> None:
    table, schema = _table([np.arange(200) % 5], [5])
    scale = learn_group_scale(table, schema, np.full(200, 3.0))
    assert scale is not None
    np.testing.assert_allclose(scale[0].factors[0], 1.0)
    np.testing.assert_allclose(scale[1], 1.0)
    assert learn_group_scale(table, schema, np.zeros(200)) is None
    assert learn_group_scale(table.take(np.arange(50)), schema, np.ones(50)) is None


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_noisy_categories_reach_the_coverage(model: Any) -> None:
    X, y = _shop_table(1500, 0)
    X_test, y_test = _shop_table(3000, 1)
    low, high = model.fit(X, y).predict_interval(X_test, coverage=0.9).T
    covered = (low <= y_test) & (y_test <= high)
    # The rows that set the limit vary as well as the test rows.
    n_calibration = 750 if isinstance(model, HistGradientBoostingRegressor) else len(y)
    assert abs(covered.mean() - 0.9) < 3 * np.sqrt(0.09 * (1 / n_calibration + 1 / len(covered)))
    for town in TOWNS:
        in_town = covered[(X_test["town"] == town).to_numpy()]
        # Without factors the coverage is 0.4 to 0.7.
        assert in_town.mean() > 0.8 - 2 * np.sqrt(0.16 / len(in_town))
    # A column unrelated to the noise and an unseen town change little.
    assert (
        np.ptp([covered[(X_test["colour"] == c).to_numpy()].mean() for c in ("red", "blue")]) < 0.05
    )
    unseen = pd.DataFrame({"x": [0.0], "town": ["new"], "colour": [None]})
    assert np.isfinite(model.predict_interval(unseen)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_pandas_polars_and_loaded_models_agree(model: Any, tmp_path: Path) -> None:
    X, y = _shop_table(300, 2)
    intervals = model.fit(X, y).predict_interval(X)
    spinney.save(model, tmp_path / "m")
    np.testing.assert_array_equal(spinney.load(tmp_path / "m").predict_interval(X), intervals)
    if not isinstance(model, KNeighborsRegressor):
        np.testing.assert_array_equal(model.predict_interval(pl.from_pandas(X)), intervals)


def test_warm_start_gives_the_intervals_of_one_fit() -> None:
    X, y = _shop_table(400, 3)
    forest = RandomForestRegressor(20, warm_start=True, random_state=0).fit(X, y)
    forest.set_params(n_estimators=40).fit(X, y)
    one_fit = RandomForestRegressor(40, random_state=0).fit(X, y)
    np.testing.assert_allclose(forest.predict_interval(X), one_fit.predict_interval(X))
    numeric = X[["x"]]
    forest.set_params(warm_start=False).fit(numeric, y)
    assert forest.predict_interval(numeric).shape == (400, 2)


def test_rescaled_votes_have_the_variance_of_all_trees() -> None:
    random = np.random.default_rng(0)
    probability = random.beta(2, 2, size=20_000)
    codes = (random.uniform(size=20_000) < probability).astype(np.int32)
    n_some = random.integers(30, 45, 20_000)
    of_all = random.binomial(100, probability) / 100
    of_some = random.binomial(n_some, probability) / n_some
    fractions = np.column_stack([1 - of_some, of_some])
    assert np.var(of_some) > 1.05 * np.var(of_all)
    for rule in (votes_of_all_trees, _less_variable):
        rescaled = rule(fractions, codes, n_some, 100)
        np.testing.assert_allclose(rescaled.sum(axis=1), 1.0)
        for code in (0, 1):
            of_class = codes == code
            assert rescaled[of_class, 1].mean() == pytest.approx(
                of_some[of_class].mean(), abs=0.005
            )
        assert np.var(rescaled[:, 1]) == pytest.approx(np.var(of_all), rel=0.02)
    single_row = _less_variable(fractions[:1], codes[:1], n_some[:1], 100)
    np.testing.assert_array_equal(single_row, fractions[:1])
    np.testing.assert_array_equal(rescaled, _less_variable(fractions, codes, n_some, 100))


@pytest.mark.parametrize("n_all", [3, 10])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_few_rescaled_votes_have_the_distribution_of_all_trees(n_all: int, n_classes: int) -> None:
    random = np.random.default_rng(n_classes)
    probability = random.dirichlet(np.full(n_classes, 0.7), size=20_000)
    codes = (random.uniform(size=(20_000, 1)) > probability.cumsum(axis=1)).sum(axis=1)
    n_some = np.maximum(random.binomial(n_all, 0.37, 20_000), 1)
    of_all = random.multinomial(n_all, probability)
    fractions = random.multinomial(n_some, probability) / n_some[:, None]
    votes = votes_of_all_trees(fractions, codes, n_some, n_all) * n_all
    np.testing.assert_allclose(votes, np.rint(votes), atol=1e-9)
    rows = np.arange(20_000)
    # The distribution of the true class's votes determines the limit of prediction sets.
    rescaled_votes, true_votes = (
        np.rint(votes_of_rows[rows, codes]).astype(int) for votes_of_rows in (votes, of_all)
    )
    counts = [
        np.bincount(votes_of_rows, minlength=n_all + 1) / 20_000
        for votes_of_rows in (rescaled_votes, true_votes)
    ]
    np.testing.assert_allclose(counts[0], counts[1], atol=0.02)


def test_rescaled_means_have_the_error_of_all_trees() -> None:
    random = np.random.default_rng(0)
    n_some = random.integers(1, 8, 20_000)
    signal = random.normal(size=20_000)
    truth = signal + random.normal(size=20_000)
    trees = signal[:, None] + 2.0 * random.normal(size=(20_000, 10))
    used = np.arange(10) < n_some[:, None]
    mean_of_some = np.where(used, trees, 0).sum(axis=1) / n_some
    variance = np.where(used, (trees - mean_of_some[:, None]) ** 2, 0).sum(axis=1) / n_some
    rescaled = mean_of_all_trees(
        mean_of_some[:, None], truth[:, None], variance[:, None], n_some, 10
    )[:, 0]
    errors = np.mean((truth - trees.mean(axis=1)) ** 2)
    assert np.mean((truth - mean_of_some) ** 2) > 1.5 * errors
    assert np.mean((truth - rescaled) ** 2) == pytest.approx(errors, rel=0.05)
    # With a single tree there is nothing to correct.
    unchanged = mean_of_all_trees(
        mean_of_some[:3, None], truth[:3, None], variance[:3, None], np.ones(3), 10
    )
    np.testing.assert_array_equal(unchanged, mean_of_some[:3, None])


def test_intervals_of_few_bagged_trees_reach_the_coverage() -> None:
    random = np.random.default_rng(0)
    covered = []
    for seed in range(8):
        X = random.normal(size=(2000, 4))
        y = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.7 * random.normal(size=2000)
        intervals = (
            BaggingRegressor(random_state=seed).fit(X[:500], y[:500]).predict_interval(X[500:])
        )
        covered.append(((intervals[:, 0] <= y[500:]) & (y[500:] <= intervals[:, 1])).mean())
    assert abs(np.mean(covered) - 0.9) < 0.015


@pytest.mark.parametrize(
    ("fractions", "n_trees"),
    [([[1.0]], [2]), ([[0.0, 1.0]], [1]), ([[1.0, 0.0], [1.0, 0.0]], [3, 3]), ([[0.5, 0.5]], [2])],
)
def test_rescaled_votes_of_very_few_rows_are_probabilities(fractions: Any, n_trees: Any) -> None:
    codes = np.zeros(len(fractions), dtype=np.int32)
    rescaled = votes_of_all_trees(np.array(fractions), codes, np.array(n_trees), 3)
    np.testing.assert_allclose(rescaled.sum(axis=1), 1.0)
    assert (rescaled >= 0).all()


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(random_state=0),
        RandomForestClassifier(5, random_state=0),
        RandomForestClassifier(10, random_state=0),
    ],
    ids=lambda model: f"{type(model).__name__}-{model.n_estimators}",
)
def test_sets_of_few_trees_reach_the_coverage(model: Any) -> None:
    random = np.random.default_rng(0)
    covered, sizes = [], []
    for _ in range(4):
        X = random.normal(size=(2500, 4))
        y = np.digitize(X[:, 0] + 0.5 * random.normal(size=2500), [-0.7, 0.0, 0.7])
        sets = model.fit(X[:800], y[:800]).predict_set(X[800:])
        covered.append(sets[np.arange(1700), y[800:]].mean())
        sizes.append(sets.sum(axis=1).mean())
    # Few trees give tied votes, which can only increase the coverage.
    assert np.mean(covered) > 0.88
    if model.n_estimators > 5:  # 5 trees: a tenth of the true classes has no vote
        assert np.mean(covered) < 0.97
        assert np.mean(sizes) < 3.5


def test_sets_of_noisy_classes_have_the_requested_coverage() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(6000, 6))
    y = (X[:, 0] + 1.5 * random.normal(size=6000) > 0).astype(int)
    covered = []
    for seed in range(3):
        model = RandomForestClassifier(random_state=seed).fit(X[:1500], y[:1500])
        sets = model.predict_set(X[1500:], coverage=0.9)
        covered.append(sets[np.arange(4500), y[1500:]].mean())
    assert abs(np.mean(covered) - 0.9) < 0.02


@pytest.mark.parametrize("method", ["cross", "split"])
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_conformal_regressor_adapts_to_categories(method: str, kind: Any) -> None:
    X, y = _shop_table(1500, 0)
    X_test, y_test = _shop_table(3000, 1)
    X["day"] = X_test["day"] = "x"  # a constant column is not used
    X["when"] = X_test["when"] = pd.Timestamp("2020-01-01")  # dates are not used either
    pipeline = make_pipeline(FunctionTransformer(_numbers), LinearRegression())
    model = ConformalRegressor(pipeline, method=method, random_state=0).fit(kind(X), y)
    assert "columns of categories" in model.interval_method_
    low, high = model.predict_interval(kind(X_test)).T
    covered = (low <= y_test) & (y_test <= high)
    assert abs(covered.mean() - 0.9) < 0.04
    for town in TOWNS:
        in_town = covered[(X_test["town"] == town).to_numpy()]
        assert in_town.mean() > 0.8 - 2 * np.sqrt(0.16 / len(in_town))
    model.set_params(groups=None).fit(kind(X), y)
    low, high = model.predict_interval(kind(X_test)).T
    wild = (X_test["town"] == "wild").to_numpy()
    assert ((low <= y_test) & (y_test <= high))[wild].mean() < 0.6


def _numbers(X: Any) -> Any:
    return np.asarray(X["x"], dtype=float)[:, None]
