"""Counterfactuals, compared with an exhaustive search over the cells of the trees."""

from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import counterfactual
from spinney.inspection._tree_sums import read_tree_sum
from spinney.linear_model import LinearRegression
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor


def thresholds(model, column):
    core = read_tree_sum(model).core
    values = []
    for t in range(len(core)):
        arrays = core.expand(t)
        inner = arrays["children_left"] >= 0
        values.append(arrays["threshold"][inner & (arrays["feature"] == column)])
    return np.unique(np.concatenate(values))


def cost_by_exhaustive_search(model, row, X, reached, fixed=()):
    """Return the lowest cost of a valid point; each cell has one nearest point."""
    options = []
    for j in range(X.shape[1]):
        current = X[row, j]
        if j in fixed:
            options.append([(current, 0.0)])
            continue
        cuts = thresholds(model, j)
        lows = np.concatenate([[X[:, j].min()], np.nextafter(cuts, np.inf)])
        highs = np.concatenate([cuts, [X[:, j].max()]])
        scale = np.median(np.abs(X[:, j] - np.median(X[:, j])))
        nearest_values = [
            np.clip(current, a, b) for a, b in zip(lows, highs, strict=True) if a <= b
        ]
        options.append([(value, abs(value - current) / scale) for value in nearest_values])
    points = np.array([[value for value, _ in choices] for choices in product(*options)])
    costs = np.array([sum(cost for _, cost in choices) for choices in product(*options)])
    is_reached = reached(model.predict(points))
    return costs[is_reached].min() if is_reached.any() else np.inf


MODELS = [
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestClassifier(4, max_depth=3, random_state=0),
    RandomForestClassifier(3, max_depth=2, random_state=0, voting="hard"),
    GradientBoostingClassifier(
        n_estimators=4, max_leaf_nodes=4, min_samples_leaf=2, early_stopping=False, random_state=0
    ),
    AdaBoostClassifier(n_estimators=4, random_state=0),
]


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), row=st.integers(0, 39), n_classes=st.integers(2, 3))
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_counterfactual_is_the_nearest_one(model, seed, row, n_classes):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 3))
    ranks = np.argsort(np.argsort(X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=40) / 2))
    model.fit(X, ranks * n_classes // 40)
    prediction = model.predict(X[row : row + 1])[0]
    result = counterfactual(model, row, X)
    expected = cost_by_exhaustive_search(
        model, row, X, lambda predictions: predictions != prediction
    )
    assert result.status == ("impossible" if np.isinf(expected) else "optimal")
    assert result.cost == pytest.approx(expected)
    if result.row is not None:
        assert model.predict(result.row)[0] == result.prediction != prediction
        changed = np.flatnonzero(np.asarray(result.row)[0] != X[row])
        assert [f"column {j}" for j in changed] == list(result.changes)
    target = (prediction + 1) % n_classes
    with_fixed_column = counterfactual(model, row, X, target=target, fixed=[0])
    expected = cost_by_exhaustive_search(
        model, row, X, lambda predictions: predictions == target, fixed=(0,)
    )
    assert with_fixed_column.cost == pytest.approx(expected)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), row=st.integers(0, 39), share=st.floats(0.05, 0.95))
@pytest.mark.parametrize("loss", ["tree", "forest", "poisson"])
def test_regression_counterfactual_crosses_the_threshold(loss, seed, row, share):
    random = np.random.default_rng(seed)
    X = random.normal(size=(40, 3))
    y = np.exp(X[:, 0] + X[:, 1] / 2)
    model = {
        "tree": DecisionTreeRegressor(max_depth=4),
        "forest": RandomForestRegressor(3, max_depth=3, random_state=0),
        "poisson": GradientBoostingRegressor(
            n_estimators=3, max_leaf_nodes=4, loss="poisson", early_stopping=False, random_state=0
        ),
    }[loss].fit(X, y)
    value = np.quantile(model.predict(X), share) * 1.0001
    result = counterfactual(model, row, X, at_least=value)
    expected = cost_by_exhaustive_search(model, row, X, lambda predictions: predictions >= value)
    assert result.cost == pytest.approx(expected)
    result = counterfactual(model, row, X, at_most=value)
    expected = cost_by_exhaustive_search(model, row, X, lambda predictions: predictions <= value)
    assert result.cost == pytest.approx(expected)


def test_bounds_costs_and_integer_columns():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(20, 70, 200),
            "income": random.normal(50, 10, 200),
            "home": pd.Categorical(random.choice(["rent", "own", "other"], 200)),
        }
    )
    y = (frame["age"] / 10 + frame["income"] / 10 + 2 * (frame["home"] == "own") > 10).astype(int)
    forest = RandomForestClassifier(20, max_depth=4, random_state=0).fit(frame, y)
    row = int(np.flatnonzero(forest.predict(frame) == 0)[0])
    result = counterfactual(forest, row, frame, target=1)
    assert result.status == "optimal"
    assert list(result.row.columns) == list(frame.columns)
    assert result.row["home"].dtype == frame["home"].dtype
    assert float(result.row["age"].iloc[0]) % 1 == 0
    assert forest.predict(result.row)[0] == 1
    expensive = counterfactual(
        forest, row, frame, target=1, costs=dict.fromkeys(result.changes, 100.0)
    )
    assert expensive.cost >= result.cost
    income_only = counterfactual(
        forest, row, frame, target=1, fixed=["home", "age"], bounds={"income": (None, 1000.0)}
    )
    assert income_only.row is None or set(income_only.changes) == {"income"}
    value = float(frame["income"].iloc[row])
    impossible = counterfactual(
        forest, row, frame, target=1, fixed=["home", "age"], bounds={"income": (value, value)}
    )
    assert impossible.status == "impossible"
    assert impossible.row is None


def test_missing_values_stay_missing():
    random = np.random.default_rng(0)
    X = random.normal(size=(100, 3))
    X[::3, 1] = np.nan
    y = (X[:, 0] + np.nan_to_num(X[:, 1], nan=1.0) > 0).astype(int)
    tree = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    result = counterfactual(tree, 0, X)
    assert result.status == "optimal"
    assert np.isnan(result.row[0, 1])


def test_search_limit_returns_a_solution_and_a_lower_bound():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 8))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    forest = RandomForestClassifier(60, random_state=0).fit(X, y)
    short = counterfactual(forest, 0, X, max_boxes=5)
    assert short.status == "found"
    assert 0 <= short.lower_bound < short.cost
    assert forest.predict(short.row)[0] == short.prediction != forest.predict(X[:1])[0]
    longer = counterfactual(forest, 0, X, max_boxes=300)
    assert longer.cost <= short.cost
    assert longer.lower_bound >= short.lower_bound


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"x": 500}, ValueError, "x: expected a number below 40"),
        ({"x": 1.5}, TypeError, "x: expected the number"),
        ({"x": "0"}, TypeError, "x: expected the number"),
        ({"x": True}, TypeError, "x: expected the number"),
        ({"x": None}, TypeError, "x: expected the number"),
        ({"x": np.zeros((1, 1, 2))}, TypeError, "x: expected the number"),
        ({"x": [1.0]}, ValueError, "x: expected one row of 2 values"),
        ({"x": np.zeros((2, 2))}, ValueError, "x: expected one row of 2 values"),
        ({"x": ["a", "b"]}, ValueError, "x: expected numbers"),
        ({"target": 7}, ValueError, "target: expected a class"),
        ({"fixed": ["no"]}, ValueError, "fixed: expected a column"),
        ({"bounds": {0: (2, 1)}}, ValueError, "bounds: expected low <= high"),
        ({"bounds": {0: 1}}, ValueError, "bounds: expected"),
        ({"costs": {0: 0}}, ValueError, "costs: expected positive"),
        ({"at_least": 1.0}, ValueError, "for a classifier"),
        ({"max_boxes": 0}, ValueError, "max_boxes"),
    ],
)
def test_invalid_arguments_raise(changes, error, message):
    X = np.random.default_rng(0).normal(size=(40, 2))
    tree = DecisionTreeClassifier().fit(X, (X[:, 0] > 0).astype(int))
    with pytest.raises(error, match=message):
        counterfactual(tree, **{"x": 0, "X": X, **changes})


@pytest.mark.parametrize("bad", [np.nan, "1", [1.0]])
def test_non_numeric_thresholds_raise(bad):
    X = np.random.default_rng(0).normal(size=(40, 2))
    tree = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="at_least: expected a number"):
        counterfactual(tree, 0, X, at_least=bad)
    with pytest.raises(ValueError, match="at_most: expected a number"):
        counterfactual(tree, 0, X, at_most=bad)


def test_models_without_trees_raise():
    X = np.random.default_rng(0).normal(size=(40, 2))
    with pytest.raises(ValueError, match="LinearRegression"):
        counterfactual(LinearRegression().fit(X, X[:, 0]), 0, X, at_least=1.0)


def row_as(kind, row):
    """Return one row as the type that a user may pass."""
    return {
        "frame": lambda: row,
        "shuffled": lambda: row[row.columns[::-1]],
        "series": lambda: row.iloc[0],
        "dict": lambda: row.iloc[0].to_dict(),
        "list": lambda: row.iloc[0].tolist(),
        "array": lambda: row.to_numpy(),
    }[kind]()


@pytest.mark.parametrize("kind", ["frame", "shuffled", "series", "dict", "list", "array"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_row_passed_separately_from_the_table(kind, library):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=120),
            "b": rng.integers(0, 9, 120),
            "c": rng.choice(["red", "green", "blue"], 120),
        }
    )
    y = (X["a"] + 0.3 * X["b"] + (X["c"] == "red") > 1.5).to_numpy().astype(int)
    table, other_rows = X, X.iloc[1:]
    if library == "polars":
        polars = pytest.importorskip("polars")
        table, other_rows = polars.from_pandas(X), polars.from_pandas(X.iloc[1:])
    model = RandomForestClassifier(8, max_depth=4, random_state=0).fit(table, y)
    by_index = counterfactual(model, 0, table)
    result = counterfactual(model, row_as(kind, X.iloc[:1]), table)
    assert result.status == by_index.status == "optimal"
    assert result.cost == pytest.approx(by_index.cost)
    assert result.prediction == by_index.prediction != model.predict(table[:1])[0]
    # The row is not in the reference table.
    outside = counterfactual(model, row_as(kind, X.iloc[:1]), other_rows)
    assert type(outside.row) is type(table)
    assert model.predict(outside.row)[0] == outside.prediction != model.predict(table[:1])[0]


def test_row_that_differs_in_type_or_columns():
    X = np.arange(40).reshape(20, 2)
    tree = DecisionTreeClassifier().fit(X, (X[:, 0] > 20).astype(int))
    result = counterfactual(tree, [3.5, np.nan], X)  # the table holds integers, the row a fraction
    assert result.status == "optimal"
    assert result.changes == {"column 0": (3.5, 22.0)}
    frame = pd.DataFrame(X, columns=["a", "b"])
    tree = DecisionTreeClassifier().fit(frame, (X[:, 0] > 20).astype(int))
    result = counterfactual(tree, {"a": 3.5, "b": None, "more": 1}, frame)
    assert result.changes == {"a": (3.5, 22.0)}
    with pytest.raises(ValueError, match="x: expected a value for every column of X, got none"):
        counterfactual(tree, {"a": 3.5}, frame)
    with pytest.raises(ValueError, match="x: expected a number in column 'b', got 'much'"):
        counterfactual(tree, {"a": 3.5, "b": "much"}, frame)
    with pytest.raises(ValueError, match="x: expected one row, got 2"):
        counterfactual(tree, frame[:2], frame)


def test_initial_solution_is_near_the_optimum():
    """The first solution, before any box is split, costs at most 10% more on average."""
    costs, optimal_costs = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 3))
        y = (X @ [1.0, 1.0, -1.0] + 0.5 * rng.normal(size=30) > 0).astype(int)
        model = RandomForestClassifier(4, max_depth=3, random_state=0).fit(X, y)
        now = model.predict(X[:1])[0]
        optimal_costs.append(
            cost_by_exhaustive_search(model, 0, X, lambda result, now=now: result != now)
        )
        result = counterfactual(model, 0, X, max_boxes=1)
        costs.append(result.cost)
        assert result.lower_bound <= optimal_costs[-1] + 1e-9 <= result.cost + 2e-9
    assert np.mean(costs) < 1.1 * np.mean(optimal_costs)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_boolean_columns_stay_boolean(kind):
    random = np.random.default_rng(0)
    flag = random.integers(0, 2, 60) > 0
    frame = kind({"flag": flag, "x": random.normal(size=60)})
    tree = DecisionTreeClassifier(random_state=0).fit(frame, flag)
    for bounds in (None, {"flag": (0, 5)}):
        result = counterfactual(tree, 0, frame, bounds=bounds)
        assert result.changes == {"flag": (bool(flag[0]), not flag[0])}
        assert result.row["flag"].dtype == frame["flag"].dtype
    value = float(flag[0])
    assert counterfactual(tree, 0, frame, bounds={"flag": (value, value)}).status == "impossible"


def test_bounds_without_effect_raise():
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"town": pd.Categorical(random.choice(["a", "b"], 60)), "x": random.normal(size=60)}
    )
    tree = DecisionTreeClassifier(random_state=0).fit(frame, frame["x"] > 0)
    with pytest.raises(ValueError, match="bounds: expected numeric columns, got 'town'"):
        counterfactual(tree, 0, frame, bounds={"town": (0, 1)})
    with pytest.raises(ValueError, match=r"bounds: .* own value of column 'x', which is"):
        counterfactual(tree, 0, frame, bounds={"x": (5, 9)})
