"""Partial dependence, accumulated local effects and H statistics by brute force."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.inspection import partial_dependence as sklearn_dependence
from sklearn.neighbors import KNeighborsRegressor as SklearnNeighbors

from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import (
    accumulated_local_effects,
    interaction_strengths,
    partial_dependence,
)
from spinney.inspection._category_order import order_categories
from spinney.inspection._tree_sums import read_tree_sum
from spinney.inspection.table_view import TableView
from spinney.linear_model import LinearRegression
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

FEW = {"n_estimators": 7, "random_state": 0}
BOOST = {**FEW, "early_stopping": False}
MODELS = [
    DecisionTreeRegressor(random_state=0),
    DecisionTreeClassifier(max_depth=4, random_state=0),
    RandomForestRegressor(**FEW),
    RandomForestClassifier(**FEW),
    RandomForestClassifier(**FEW, voting="hard"),
    ExtraTreesClassifier(**FEW),
    BaggingRegressor(**FEW),
    GradientBoostingRegressor(**BOOST),
    GradientBoostingRegressor(**BOOST, loss="poisson"),
    GradientBoostingClassifier(**BOOST),
    AdaBoostClassifier(**FEW),
]


def table(seed=0, n=150):
    """Return a table of mixed types; two columns have missing values."""
    random = np.random.default_rng(seed)
    colour = random.choice(["red", "green", "blue", "grey"], n).astype(object)
    colour[random.uniform(size=n) < 0.1] = None
    with_nan = np.where(random.uniform(size=n) < 0.2, np.nan, random.normal(size=n))
    return pd.DataFrame(
        {
            "a": random.normal(size=n),
            "with_nan": with_nan,
            "colour": pd.Categorical(colour),
            "whole": random.integers(0, 5, n).astype(float),
        }
    )


def targets(model, frame, n_classes):
    signal = frame["a"] * 2 + frame["with_nan"].fillna(1.5) + (frame["colour"] == "red") * 2
    signal = signal + frame["a"] * frame["whole"] / 2
    if hasattr(model, "predict_proba"):
        ranks = signal.rank(method="first").to_numpy()
        return np.array(["no", "so", "yes"])[(ranks * n_classes / (len(ranks) + 1)).astype(int)]
    return np.exp(signal / 3).to_numpy()


def predict_per_setting(model, frame, changes):
    """Predict a table for each setting: (n_outputs, n_rows, n_settings)."""
    predictions = []
    for s in range(len(next(iter(changes.values())))):
        changed = frame.copy()
        for name, values in changes.items():
            column = np.full(len(frame), values[s], dtype=object)
            if name == "colour":
                column = pd.Categorical(column, categories=frame["colour"].cat.categories)
                changed[name] = column
            else:
                changed[name] = column.astype(float)
        if hasattr(model, "predict_proba"):
            probabilities = model.predict_proba(changed).T
            predictions.append(probabilities[1:] if len(probabilities) == 2 else probabilities)
        else:
            predictions.append(model.predict(changed)[None])
    return np.stack(predictions, axis=-1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_dependence_matches_prediction_per_grid_value(model, n_classes):
    frame = table()
    model.fit(frame, targets(model, frame, n_classes))
    assert read_tree_sum(model) is not None
    for name in frame:
        result = partial_dependence(model, frame, name, individual=True, n_values=9)
        grid = result.grids[0]
        values = [*grid.values, *([None] * grid.has_missing)]
        expected = predict_per_setting(model, frame, {name: values})
        np.testing.assert_allclose(result.individual, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(result.average, expected.mean(axis=1), rtol=1e-9, atol=1e-12)
        average_only = partial_dependence(model, frame, name, n_values=9)
        np.testing.assert_allclose(average_only.average, result.average, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("model", MODELS[2:4] + MODELS[9:10], ids=lambda m: type(m).__name__)
def test_dependence_on_two_columns(model):
    frame = table(1)
    model.fit(frame, targets(model, frame, 2))
    result = partial_dependence(model, frame, ("with_nan", "colour"), n_values=5)
    first, second = result.grids
    assert first.has_missing
    assert second.has_missing
    a = [*first.values, None]
    b = [*second.values, None]
    expected = predict_per_setting(
        model,
        frame,
        {"with_nan": np.repeat(a, len(b)), "colour": np.tile(np.array(b, object), len(a))},
    )
    average = expected.mean(axis=1).reshape(-1, len(a), len(b))
    np.testing.assert_allclose(result.average, average, rtol=1e-9, atol=1e-12)
    with_individual = partial_dependence(
        model, frame, ("with_nan", "colour"), n_values=5, individual=True
    )
    single = expected.reshape(*expected.shape[:2], len(a), len(b))
    np.testing.assert_allclose(with_individual.individual, single, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(with_individual.average, result.average, rtol=1e-9, atol=1e-12)
    assert (with_individual.centred().individual[..., 0, 0] == 0).all()


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 40),
    n_values=st.integers(1, 700),
    n_threads=st.integers(1, 3),
)
def test_grids_of_any_size_and_order(seed, n_rows, n_values, n_threads):
    """The grid may exceed one bit mask, be unsorted, or contain the thresholds."""
    random = np.random.default_rng(seed)
    X = random.integers(-3, 4, (n_rows, 3)) / 2
    y = random.normal(size=n_rows)
    model = RandomForestRegressor(3, random_state=seed).fit(X, y)
    values = random.integers(-8, 9, n_values) / 4
    result = partial_dependence(model, X, 1, values=values, individual=True, n_jobs=n_threads)
    by_value = {}
    for value in np.unique(values):
        changed = X.copy()
        changed[:, 1] = value
        by_value[value] = model.predict(changed)
    expected = np.stack([by_value[value] for value in values], axis=1)
    np.testing.assert_allclose(result.individual[0], expected, atol=1e-12)
    alone = partial_dependence(model, X, 1, values=values, n_jobs=n_threads)
    np.testing.assert_allclose(alone.average[0], expected.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("kind", [RandomForestRegressor, GradientBoostingRegressor])
def test_result_does_not_depend_on_the_number_of_threads(kind):
    """Small trees evaluate their splits first; both methods process rows in blocks."""
    frame = table(2, 1500)
    model = kind(n_estimators=20, random_state=0).fit(frame, targets(None, frame, 2))
    single_thread = partial_dependence(model, frame, "with_nan", individual=True, n_jobs=1)
    values = [*single_thread.grids[0].values, None]
    expected = predict_per_setting(model, frame, {"with_nan": values})
    np.testing.assert_allclose(single_thread.individual, expected, rtol=1e-9, atol=1e-12)
    for n_jobs in (2, 3):
        result = partial_dependence(model, frame, "with_nan", individual=True, n_jobs=n_jobs)
        np.testing.assert_array_equal(result.individual, single_thread.individual)
    single_thread = partial_dependence(model, frame, "a", n_jobs=1)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(
            partial_dependence(model, frame, "a", n_jobs=n_jobs).average, single_thread.average
        )


@pytest.mark.skipif(
    SKLEARN_VERSION < (1, 7), reason="partial_dependence has custom_values since scikit-learn 1.7"
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_dependence_matches_scikit_learn(dtype):
    random = np.random.default_rng(0)
    X = (random.normal(size=(80, 3)) * 5).astype(dtype)
    y = X[:, 0] * 1.0 + random.normal(size=80)
    grid = np.linspace(-4, 4, 11)
    for model in (RandomForestRegressor(**FEW).fit(X, y), SklearnNeighbors().fit(X, y)):
        result = partial_dependence(model, X, 0, values=grid, individual=True)
        float_rows = X.astype(np.float64) if dtype is np.int64 else X
        expected = sklearn_dependence(model, float_rows, [0], custom_values={0: grid}, kind="both")
        np.testing.assert_allclose(result.average, expected["average"], rtol=1e-6)
        np.testing.assert_allclose(result.individual, expected["individual"], rtol=1e-6)


def test_memory_layouts_and_frame_types_agree():
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    y = X[:, 1] + random.normal(size=60)
    model = GradientBoostingRegressor(**BOOST).fit(X, y)
    expected = partial_dependence(model, X, 1).average
    locked = X.copy()
    locked.flags.writeable = False
    for same in (np.asfortranarray(X), locked, np.repeat(X, 2, axis=1)[:, ::2], X.tolist()):
        np.testing.assert_array_equal(partial_dependence(model, same, 1).average, expected)
    names = ["p", "q", "r", "s"]
    named = GradientBoostingRegressor(**BOOST).fit(pd.DataFrame(X, columns=names), y)
    for frame in (pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names)):
        np.testing.assert_array_equal(partial_dependence(named, frame, "q").average, expected)


def test_centred_curves_start_at_zero():
    frame = table()
    model = RandomForestRegressor(**FEW).fit(frame, targets(None, frame, 2))
    result = partial_dependence(model, frame, "a", individual=True)
    centred = result.centred()
    assert (centred.individual[..., 0] == 0).all()
    np.testing.assert_allclose(centred.average[0], result.average[0] - result.average[0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"columns": "b"}, "columns: expected a column of X"),
        ({"columns": ("a", "a")}, "two different"),
        ({"values": [np.nan]}, "values: expected finite"),
        ({"values": ["x"]}, "values: expected numbers"),
        ({"columns": "colour", "values": ["pink"]}, "values: expected categories"),
        ({"n_values": 1}, "n_values: expected 2"),
        ({"max_rows": 0}, "max_rows: expected a positive"),
        ({"target": "yes"}, "target: expected None"),
    ],
)
def test_invalid_arguments_raise(changes, message):
    frame = table()
    model = DecisionTreeRegressor().fit(frame, targets(None, frame, 2))
    with pytest.raises(ValueError, match=message):
        partial_dependence(model, frame, **{"columns": "a", **changes})


# ------------------------------------------------------------------ accumulated local effects


def test_effects_of_a_linear_model_have_its_slopes():
    random = np.random.default_rng(0)
    a = random.normal(size=400)
    X = np.column_stack([a, a + 0.1 * random.normal(size=400)])
    model = LinearRegression().fit(X, X @ [2.0, -3.0])
    for j, slope in ((0, 2.0), (1, -3.0)):
        result = accumulated_local_effects(model, X, j)
        edges = result.grids[0].values
        np.testing.assert_allclose(np.diff(result.effect[0]), slope * np.diff(edges))
        np.testing.assert_allclose(result.error, 0, atol=1e-9)
        assert result.counts.sum() == 400
    both = accumulated_local_effects(model, X, (0, 1))
    np.testing.assert_allclose(both.effect, 0, atol=1e-9)


class Product:
    """A model that predicts the product of two columns."""

    def fit(self, X, y):
        self.n_features_in_ = 2
        return self

    def predict(self, X):
        return X[:, 0] * X[:, 1]

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        return BaseEstimator().__sklearn_tags__()


def test_effect_of_two_columns_excludes_main_effects():
    X = np.random.default_rng(0).uniform(-1, 1, (4000, 2))
    result = accumulated_local_effects(Product(), X, (0, 1), n_intervals=10)
    a, b = (np.asarray(grid.values) for grid in result.grids)
    np.testing.assert_allclose(result.effect[0], np.outer(a, b), atol=0.05)
    alone = accumulated_local_effects(Product(), X, 0)
    assert np.abs(alone.effect).max() < 0.1


def test_effects_match_the_definition():
    frame = table(3, 60)
    model = DecisionTreeRegressor(random_state=0).fit(frame, targets(None, frame, 2))
    result = accumulated_local_effects(model, frame, "a", n_intervals=3)
    edges, values = result.grids[0].values, frame["a"].to_numpy()
    steps = []
    for low, high, first in zip(edges[:-1], edges[1:], [True, False, False], strict=True):
        rows = frame[((values > low) | (first & (values == low))) & (values <= high)]
        up, down = rows.assign(a=high), rows.assign(a=low)
        steps.append(np.mean(model.predict(up) - model.predict(down)))
    np.testing.assert_allclose(np.diff(result.effect[0]), steps)

    result = accumulated_local_effects(model, frame, "colour")
    order = result.grids[0].values
    assert sorted(order) == ["blue", "green", "grey", "red"]
    assert result.n_missing == frame["colour"].isna().sum()
    for k, (one, other) in enumerate(itertools.pairwise(order)):
        rows = frame[frame["colour"].isin([one, other])]
        at = {}
        for name in (one, other):
            colours = pd.Categorical([name] * len(rows), categories=frame["colour"].cat.categories)
            at[name] = model.predict(rows.assign(colour=colours))
        step = np.mean(at[other] - at[one])
        assert result.effect[0, k + 1] - result.effect[0, k] == pytest.approx(step)
    assert result.effect[0] @ result.counts == pytest.approx(0, abs=1e-9)


def test_standard_errors_of_effects():
    """The standard error matches the variation of the effect over many samples."""
    random = np.random.default_rng(0)
    effects, errors = [], []
    for _ in range(200):
        X = random.uniform(-1, 1, (300, 2))
        result = accumulated_local_effects(Product(), X, 0, n_intervals=4)
        effects.append(result.effect[0, -1])
        errors.append(result.error[0, -1])
    assert np.std(effects) == pytest.approx(np.mean(errors), rel=0.25)


def test_constant_columns_have_no_effect():
    X = np.column_stack([np.ones(30), np.arange(30.0)])
    model = DecisionTreeRegressor().fit(X, X[:, 1])
    assert (accumulated_local_effects(model, X, 0).effect == 0).all()
    assert (accumulated_local_effects(model, X, (0, 1)).effect == 0).all()
    assert partial_dependence(model, X, 0).average.shape == (1, 1)


# ------------------------------------------------------------------------------ interactions


def slow_h(model, X, i, j):
    def dependence(columns):
        averages = np.empty(len(X))
        for r in range(len(X)):
            changed = X.copy()
            changed[:, columns] = X[r, columns]
            averages[r] = model.predict(changed).mean()
        return averages - averages.mean()

    both = dependence([i, j])
    interaction = both - dependence([i]) - dependence([j])
    return np.sqrt((interaction**2).sum() / (both**2).sum())


@pytest.mark.parametrize("model", [RandomForestRegressor(**FEW), SklearnNeighbors(5)])
def test_h_statistics_match_the_definition(model):
    random = np.random.default_rng(0)
    X = random.uniform(size=(40, 3))
    model.fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    result = interaction_strengths(model, X)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        assert result.pairwise[i, j] == pytest.approx(slow_h(model, X, i, j), rel=1e-6)
    # The overall strength also needs the dependence on all other columns together.
    alone, others = np.empty(40), np.empty(40)
    for r in range(40):
        other = X.copy()
        other[:, 0] = X[r, 0]
        alone[r] = model.predict(other).mean()
        other = np.tile(X[r], (40, 1))
        other[:, 0] = X[:, 0]
        others[r] = model.predict(other).mean()
    predicted = model.predict(X)
    predicted, alone, others = (
        predicted - predicted.mean(),
        alone - alone.mean(),
        others - others.mean(),
    )
    expected = np.sqrt(((predicted - alone - others) ** 2).sum() / (predicted**2).sum())
    assert result.overall[0] == pytest.approx(expected, rel=1e-6)


def test_additive_model_has_no_interactions():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = LinearRegression().fit(X, X @ [1.0, 2.0, 3.0])
    result = interaction_strengths(model, X)
    assert result.overall.max() < 1e-6
    assert np.nanmax(result.pairwise) < 1e-6


def _rows_along_a_latent_line(n_categories, n_rows):
    """Return rows whose three columns follow one latent position, with some noise."""
    rng = np.random.default_rng(n_categories)
    position = rng.integers(0, n_categories, n_rows)
    other = np.clip(position * 8 // n_categories + rng.integers(-2, 3, n_rows), 0, 7)
    rows = pd.DataFrame(
        {
            "category": pd.Categorical([f"{p * 7919 % n_categories:05}" for p in position]),
            "number": position / n_categories + 0.2 * rng.normal(size=n_rows),
            "other": pd.Categorical(other),
        }
    )
    rows.loc[::17, "number"] = np.nan
    return rows, position


def test_category_order_matches_the_definition():
    X, position = _rows_along_a_latent_line(12, 300)
    model = GradientBoostingRegressor(**BOOST).fit(X, position)
    view = TableView(X, model)
    codes = view.levels(0).codes
    present = np.unique(codes)
    order = order_categories(view, np.arange(300), 0, codes, present)
    distances = np.zeros((12, 12))
    known = X["number"].notna().to_numpy()
    cuts = np.quantile(X["number"][known], np.linspace(0, 1, 101))
    for a, b in itertools.combinations(range(12), 2):
        of = [codes == present[k] for k in (a, b)]
        number = [X["number"][rows & known].to_numpy() for rows in of]
        shares = [np.bincount(X["other"].cat.codes[rows], minlength=8) / rows.sum() for rows in of]
        functions = [np.mean(values[:, None] <= cuts, axis=0) for values in number]
        distances[a, b] = distances[b, a] = (
            np.abs(functions[0] - functions[1]).max() + np.abs(shares[0] - shares[1]).sum() / 2
        )
    centre = np.eye(12) - 1 / 12
    line = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)[1][:, -1]
    assert order.tolist() in (np.argsort(line).tolist(), np.argsort(line)[::-1].tolist())


def test_effects_order_thousands_of_categories():
    X, position = _rows_along_a_latent_line(3000, 20_000)
    model = GradientBoostingRegressor(**BOOST).fit(X, position)
    result = accumulated_local_effects(model, X, "category", max_rows=None)
    names = [f"{p * 7919 % 3000:05}" for p in range(3000)]
    along = [names.index(name) for name in result.grids[0].values]
    assert len(along) == len(np.unique(position))
    assert abs(np.corrcoef(along, np.arange(len(along)))[0, 1]) > 0.9


@pytest.mark.parametrize("n_intervals", [0, -1, 2.5, "x", None])
def test_n_intervals_must_be_a_positive_integer(n_intervals):
    rows = np.arange(20.0).reshape(10, 2)
    model = DecisionTreeRegressor().fit(rows, rows[:, 0])
    with pytest.raises(ValueError, match="n_intervals: expected a positive integer, got"):
        accumulated_local_effects(model, rows, 0, n_intervals=n_intervals)
