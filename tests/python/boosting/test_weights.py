"""Boosting with integer weights equals boosting with repeated rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from spinney import _core
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from support.workers import assert_same, assign_rows, fit_on_one_worker, fit_on_workers

REGRESSION = [
    "squared_error",
    "absolute_error",
    "huber",
    "quantile",
    "quantiles",
    "poisson",
    "gamma",
    "tweedie",
    "cross_entropy",
    "outputs",
]
CLASSIFICATION = ["binary", "exponential", "three classes"]


def reference_edges(values, weights, max_bins):
    """Return pairs of neighbouring values with an edge between them, by repeated rows."""
    repeated = np.repeat(values, weights)
    present = sorted(repeated[~np.isnan(repeated)].tolist())
    distinct = sorted(set(present))
    if len(distinct) <= max_bins:
        return list(itertools.pairwise(distinct))
    counts = dict.fromkeys(distinct, 0)
    for value in present:
        counts[value] += 1
    # A value that fills a bin gets its own bin; the other values share the rest evenly.
    own_bin = {value for value in distinct if counts[value] * max_bins >= len(present)}
    rows_left = sum(counts[value] for value in distinct if value not in own_bin)
    bins_left = max_bins - len(own_bin)
    bin_size = rows_left / bins_left if bins_left else 0.0
    edges, in_bin = [], 0
    for value, following in itertools.pairwise(distinct):
        if len(edges) + 1 == max_bins:
            break
        rows_left -= 0 if value in own_bin else counts[value]
        in_bin += counts[value]
        is_full = value in own_bin or in_bin >= bin_size
        if is_full or (following in own_bin and in_bin >= bin_size / 2):
            edges.append((value, following))
            in_bin = 0
            if value not in own_bin and bins_left > 1:
                bins_left -= 1
                bin_size = rows_left / bins_left
    return edges


def assert_between(edges, pairs):
    assert len(edges) == len(pairs)
    assert all(low <= edge < high for edge, (low, high) in zip(edges, pairs, strict=True))


def weighted_edges(values, weights, max_bins):
    units = _core.weight_units(weights.astype(float), float(weights.max()), len(weights))
    return _core.find_cuts(values, max_bins, units)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 600),
    digits=st.sampled_from([0, 1, 2, 12]),
    heaviest=st.sampled_from([1, 2, 3, 40]),
    max_bins=st.sampled_from([2, 3, 16, 255]),
    missing=st.booleans(),
    narrow=st.booleans(),
)
def test_edges_of_weighted_rows_equal_those_of_repeated_rows(
    seed, n_rows, digits, heaviest, max_bins, missing, narrow
):
    rng = np.random.default_rng(seed)
    values = np.round(rng.standard_cauchy(n_rows), digits)
    values = values.astype(np.float32 if narrow else np.float64)
    if missing:
        values[rng.random(n_rows) < 0.2] = np.nan
    weights = rng.integers(0, heaviest + 1, n_rows)
    weights[rng.integers(n_rows)] = heaviest
    edges = weighted_edges(values, weights, max_bins)
    repeated = _core.find_cuts(np.repeat(values, weights), max_bins)
    assert edges.tobytes() == repeated.tobytes()
    expected = reference_edges(values.astype(np.float64), weights, max_bins)
    assert_between(edges, expected)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1, 600),
    scale=st.sampled_from([1e-310, 1e-300, 0.1, 1 / 3, 7.0, 1e300]),
    max_bins=st.sampled_from([2, 16, 255]),
)
def test_scale_of_equal_weights_does_not_matter(seed, n_rows, scale, max_bins):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=n_rows), 2)
    edges = weighted_edges(values, np.full(n_rows, scale), max_bins)
    assert edges.tobytes() == _core.find_cuts(values, max_bins).tobytes()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(1000, 3000),
    max_bins=st.sampled_from([4, 16, 60]),
)
def test_edges_are_weighted_quantiles(seed, n_rows, max_bins):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n_rows)
    weights = 2 * rng.random(n_rows) * (1 + np.sign(values)) + 0.01  # most weight is on one side
    edges = weighted_edges(values, weights, max_bins)
    assert len(edges) == max_bins - 1
    mass = np.bincount(np.searchsorted(edges, values), weights, minlength=max_bins)
    # A bin has at most one row too many; later bins share the difference.
    tolerance = weights.max() * (1 + np.sum(1 / np.arange(1, max_bins + 1)))
    assert (np.abs(mass - weights.sum() / max_bins) <= tolerance).all()


def test_large_columns_are_sorted_like_small_ones():
    rng = np.random.default_rng(0)
    for values in (rng.normal(size=9000), rng.normal(size=9000).astype(np.float32)):
        values[::7] = np.nan
        values[3], values[4] = -0.0, 0.0
        weights = rng.integers(0, 4, 9000)
        edges = weighted_edges(values, weights, 255)
        assert edges.tobytes() == _core.find_cuts(np.repeat(values, weights), 255).tobytes()
        expected = reference_edges(values.astype(np.float64), weights, 255)
        assert_between(edges, expected)


def make_targets(task, signal, rng):
    """Return targets of a task and the settings that it needs."""
    if task == "binary":
        return (signal > 0).astype(int), {}
    if task == "exponential":
        return (signal > 0).astype(int), {"loss": "exponential"}
    if task == "three classes":
        return np.array(["a", "b", "c"])[np.digitize(signal, [-0.7, 0.7])], {}
    if task == "outputs":
        return np.column_stack([signal, np.abs(signal), rng.normal(size=len(signal))]), {}
    if task == "quantiles":
        return signal, {"loss": "quantile", "alpha": [0.2, 0.7]}
    if task == "quantile":
        return signal, {"loss": "quantile", "alpha": 0.3}
    if task in ("poisson", "gamma", "tweedie"):
        return np.exp(signal), {"loss": task}
    if task == "cross_entropy":
        return 1 / (1 + np.exp(-signal)), {"loss": task}
    return signal, {"loss": task}


def make_rows(kind, n_rows, digits, rng):
    """Return rows of a kind and a signal for the targets."""
    X = np.round(rng.normal(size=(n_rows, 4)), digits)
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.normal(size=n_rows)
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    elif kind == "sparse":
        X[rng.random(X.shape) < 0.7] = 0
        return sparse.csr_matrix(X), signal
    elif kind == "categories":
        frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
        codes = np.minimum(rng.geometric(0.1, n_rows), 40)
        frame["few"] = pd.Categorical(rng.choice(list("xyz"), n_rows))
        frame["many"] = pd.Categorical(codes.astype(str))
        return frame, signal + np.sin(codes)
    return X, signal


def take(X, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def state_of(model, X):
    """Return splits, values, gains and predictions as bytes, without numbers of rows."""
    state = model.fitted_model().store.core.state()
    row_counts = ("sizes", "leaf_rows", "leaf_weight", "leaf_weight_exact")
    trees = {name: array.tobytes() for name, array in state.items() if name not in row_counts}
    predicted = model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)
    return trees, model.fitted_model().baseline.tobytes(), predicted.tobytes()


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(20, 300),
    digits=st.sampled_from([1, 12]),
    task=st.sampled_from(REGRESSION + CLASSIFICATION),
    kind=st.sampled_from(["numbers", "missing", "sparse", "categories"]),
    growth=st.sampled_from(["best_first", "level_wise", "oblivious"]),
    heaviest=st.sampled_from([1, 3, 12]),
    max_bins=st.sampled_from([2, 7, 32, 255, None]),
    min_samples_leaf=st.sampled_from([1, 4]),
    bounded=st.booleans(),
    columns=st.sampled_from([1.0, 0.5]),
)
def test_integer_weights_equal_repeated_rows(
    seed,
    n_rows,
    digits,
    task,
    kind,
    growth,
    heaviest,
    max_bins,
    min_samples_leaf,
    bounded,
    columns,
):
    rng = np.random.default_rng(seed)
    X, signal = make_rows(kind, n_rows, digits, rng)
    y, task_settings = make_targets(task, signal, rng)
    if task == "outputs" and max_bins is None:
        max_bins = 255
    if growth == "oblivious" and (max_bins is None or task == "outputs"):
        growth = "best_first"
    settings_ = {
        "n_estimators": 6,
        "growth": growth,
        "max_bins": max_bins,
        "max_set_categories": None,
        "min_samples_leaf": min_samples_leaf,
        "max_features": columns,
        "learning_rate": 0.3,
        "random_state": 0,
        **task_settings,
    }
    if bounded and task not in ("three classes", "outputs"):
        settings_["monotonic_cst"] = [1, 0, -1, 0] + [0] * (X.shape[1] - 4)
        settings_["l1_regularization"] = 0.1
    estimator = GradientBoostingClassifier if task in CLASSIFICATION else GradientBoostingRegressor
    weights = rng.integers(0, heaviest + 1, n_rows)
    for row in np.unique(y if task in CLASSIFICATION else [0.0], return_index=True)[1]:
        weights[row] = heaviest  # every class has at least one row
    repeats = np.repeat(np.arange(n_rows), weights)
    weighted = estimator(**settings_).fit(X, y, weights.astype(float))
    repeated = estimator(**settings_).fit(take(X, repeats), y[repeats])
    assert (weighted.n_estimators_, weighted._continuation.loss) == (
        repeated.n_estimators_,
        repeated._continuation.loss,
    )
    states = [state_of(model, X) for model in (weighted, repeated)]
    assert states[0] == states[1]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(20, 300),
    n_workers=st.integers(1, 4),
    task=st.sampled_from(["squared_error", "absolute_error", "huber", "poisson", "three classes"]),
    kind=st.sampled_from(["numbers", "missing", "categories"]),
    growth=st.sampled_from(["best_first", "oblivious"]),
    integers=st.booleans(),
    max_bins=st.sampled_from([7, 255]),
    min_samples_leaf=st.sampled_from([1, 4]),
)
def test_workers_with_weights_equal_one_process(
    seed, n_rows, n_workers, task, kind, growth, integers, max_bins, min_samples_leaf
):
    rng = np.random.default_rng(seed)
    X, signal = make_rows(kind, n_rows, 12, rng)
    y, task_settings = make_targets(task, signal, rng)
    weights = rng.integers(1, 5, n_rows) if integers else rng.exponential(size=n_rows) + 1e-3
    estimator = GradientBoostingClassifier if task in CLASSIFICATION else GradientBoostingRegressor

    def create():
        return estimator(
            n_estimators=4,
            growth=growth,
            max_bins=max_bins,
            max_set_categories=None,
            min_samples_leaf=min_samples_leaf,
            **task_settings,
        )

    one_process = fit_on_one_worker(create(), X, y, weights.astype(float))
    blocks = assign_rows(n_rows, n_workers, rng)
    for model in fit_on_workers(create, blocks, X, y, weights.astype(float)):
        assert_same(one_process, model)
    if integers:
        repeats = np.repeat(np.arange(n_rows), weights)
        repeated = fit_on_one_worker(create(), take(X, repeats), y[repeats])
        assert state_of(repeated, X) == state_of(one_process, X)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(30, 400),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber"]),
    max_bins=st.sampled_from([7, 255]),
    integers=st.booleans(),
)
def test_rows_of_weight_zero_are_ignored(seed, n_rows, loss, max_bins, integers):
    rng = np.random.default_rng(seed)
    X, y = make_rows("missing", n_rows, 12, rng)
    weights = rng.integers(0, 3, n_rows) * (1.0 if integers else 0.3)
    weights[0] = 1.0
    kept = weights > 0
    model = GradientBoostingRegressor(
        loss=loss, n_estimators=5, max_bins=max_bins, min_samples_leaf=1
    )
    weighted = model.fit(X, y, weights).predict(X)
    assert (model.fit(X[kept], y[kept], weights[kept]).predict(X) == weighted).all()


@pytest.mark.parametrize("max_bins", [32, None])
def test_class_weights_equal_repeated_rows(max_bins):
    rng = np.random.default_rng(0)
    X, signal = make_rows("numbers", 900, 12, rng)
    y = np.digitize(signal, [-0.7, 0.7])
    times = np.array([3, 1, 2])
    repeats = np.repeat(np.arange(900), times[y])
    common = {"n_estimators": 20, "max_bins": max_bins, "min_samples_leaf": 1}
    weighted = GradientBoostingClassifier(class_weight={0: 3, 1: 1, 2: 2}, **common).fit(X, y)
    repeated = GradientBoostingClassifier(**common).fit(X[repeats], y[repeats])
    assert state_of(weighted, X) == state_of(repeated, X)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("model", "task"),
    [
        (GradientBoostingRegressor(n_estimators=50, min_samples_leaf=1), "squared_error"),
        (GradientBoostingClassifier(n_estimators=50, min_samples_leaf=1), "binary"),
        (GradientBoostingClassifier(n_estimators=50, min_samples_leaf=1), "three classes"),
        (HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=1), "squared_error"),
        (
            HistGradientBoostingRegressor(
                max_iter=50, min_samples_leaf=1, loss="quantile", quantile=0.3
            ),
            "squared_error",
        ),
        (HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=1), "three classes"),
    ],
)
def test_integer_weights_equal_repeated_rows_with_normal_columns(model, task, n_jobs):
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(1000, 5)), rng.normal(size=(2000, 5))
    y = make_targets(task, 2 * X[:, 0] + np.sin(3 * X[:, 1]), rng)[0]
    weights = rng.integers(1, 4, 1000)
    repeats = np.repeat(np.arange(1000), weights)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    predicted = []
    for rows, arguments in ((X, (y, weights)), (X[repeats], (y[repeats],))):
        model.fit(rows, *arguments)
        predicted.append(model.predict(X_new))
    assert (predicted[0] == predicted[1]).all()


def test_integer_weights_equal_repeated_rows_in_several_blocks():
    """Use more rows than a block of sums has and than leaf refinement uses."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60_000, 3))
    y = X[:, 0] + np.sin(3 * X[:, 1]) + 0.1 * rng.normal(size=60_000)
    weights = rng.integers(1, 6, 60_000)
    assert 65_536 < weights.sum() <= 200_000
    repeats = np.repeat(np.arange(60_000), weights)
    for n_jobs in (1, 2):
        model = GradientBoostingRegressor(n_estimators=5, min_samples_leaf=1, n_jobs=n_jobs)
        weighted = state_of(model.fit(X, y, weights), X)
        assert weighted == state_of(model.fit(X[repeats], y[repeats]), X)
