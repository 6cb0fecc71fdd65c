"""Models on a Dask cluster of processes, compared with local models on the same rows."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import spinney
from spinney import ensemble, linear_model, neighbors
from support.workers import assert_same

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from spinney.dask import _boost_driver, _boost_task, _cluster  # noqa: E402
from spinney.dask._boost_task import METRIC  # noqa: E402
from spinney.dask._cluster import workers_of  # noqa: E402
from spinney.dask._rows import Part, join_partitions  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None
        ) as workers,
        distributed.Client(workers) as client,
    ):
        yield client


RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
X[::17, 1] = np.nan
FULL = np.nan_to_num(X)
Y = FULL[:, 0] + FULL[:, 1] ** 2 + RNG.normal(size=900)
C = np.array(["no", "perhaps", "yes"])[np.digitize(Y, [0, 2])]
W = RNG.uniform(0.5, 2, size=900)
# Block sizes differ, and one block is empty.
CHUNKS = ((300, 1, 0, 419, 180), 4)


def blocks(values):
    chunks = CHUNKS[:1] if values.ndim == 1 else (CHUNKS[0], values.shape[1])
    return da.from_array(values, chunks=chunks)


def mixed_frame(n=600):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=n), "k": rng.integers(0, 5, n)})
    frame["town"] = np.array(["Ulm", "Bonn", "Trier", "Jena"])[rng.integers(0, 4, n)]
    frame["y"] = frame.a + (frame.town == "Bonn") * 2 + rng.normal(size=n) / 4
    return frame


# ---------------------------------------------------------------------- linear models


@pytest.mark.parametrize(
    ("ours", "local"),
    [
        (sd.LinearRegression(), linear_model.LinearRegression()),
        (sd.LinearRegression(fit_intercept=False), linear_model.LinearRegression()),
        (sd.Ridge(alpha=3.0), linear_model.Ridge(alpha=3.0)),
    ],
)
@pytest.mark.parametrize("weights", [None, W])
def test_least_squares_are_the_local_ones(ours, local, weights):
    local = type(local)(**ours.get_params()).fit(FULL, Y, weights)
    fitted = clone(ours).fit(blocks(FULL), blocks(Y), None if weights is None else blocks(W))
    np.testing.assert_allclose(fitted.coef_, local.coef_, rtol=1e-12)
    np.testing.assert_allclose(fitted.intercept_, local.intercept_, rtol=1e-12)
    np.testing.assert_allclose(
        fitted.predict(blocks(FULL)).compute(), local.predict(FULL), rtol=1e-11
    )
    assert type(fitted.to_local()) is type(local)
    assert fitted.score(blocks(FULL), Y) == pytest.approx(local.score(FULL, Y))


def test_collinear_columns_have_the_local_coefficients():
    rows = np.c_[FULL, FULL[:, 0], np.full(900, 3.0)]
    local = linear_model.LinearRegression().fit(rows, Y)
    ours = sd.LinearRegression().fit(blocks(rows), Y)
    assert (ours.solver_, ours.rank_) == (local.solver_, local.rank_)
    np.testing.assert_allclose(ours.coef_, local.coef_, atol=1e-9)


def test_sums_are_reproducible():
    first = sd.LinearRegression().fit(blocks(FULL), Y)
    assert sd.LinearRegression().fit(blocks(FULL), Y).coef_.tobytes() == first.coef_.tobytes()


def test_few_rows_and_several_targets():
    targets = np.c_[Y, -2 * Y]
    wide = sd.LinearRegression().fit(da.from_array(FULL[:3], chunks=(1, 4)), Y[:3])
    np.testing.assert_allclose(wide.predict(FULL[:3]), Y[:3])
    for ours in (sd.LinearRegression(), sd.Ridge(alpha=[1.0, 2.0])):
        local = ours._local_class(**ours.get_params()).fit(FULL, targets)
        fitted = ours.fit(blocks(FULL), blocks(targets))
        np.testing.assert_allclose(fitted.coef_, local.coef_, rtol=1e-10)
        assert fitted.predict(blocks(FULL)).compute().shape == (900, 2)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"no": 2, "perhaps": 1, "yes": 0.5}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_is_the_local_one(n_classes, class_weight):
    labels = np.where(C == "perhaps", "no", C) if n_classes == 2 else C
    labels = np.sort(labels)  # most partitions lack a class
    if n_classes == 2 and isinstance(class_weight, dict):
        class_weight = {"no": 2, "yes": 0.5}
    local = linear_model.LogisticRegression(class_weight=class_weight, tol=1e-8)
    local.fit(FULL, labels, W)
    ours = sd.LogisticRegression(class_weight=class_weight, tol=1e-8)
    ours.fit(blocks(FULL), blocks(labels), blocks(W))
    assert ours.classes_.tolist() == local.classes_.tolist()
    np.testing.assert_allclose(ours.coef_, local.coef_, atol=1e-9)
    lazy = ours.predict_proba(blocks(FULL))
    assert lazy.shape == (900, n_classes)
    np.testing.assert_allclose(lazy.compute(), local.predict_proba(FULL), atol=1e-9)


# ---------------------------------------------------------------------- neighbours


@pytest.mark.parametrize("weights", ["uniform", "distance", "tricube"])
def test_neighbours_are_those_of_one_index(weights):
    tied = np.round(FULL)  # many rows are equally far
    local = neighbors.KNeighborsClassifier(7, weights=weights).fit(tied, C)
    ours = sd.KNeighborsClassifier(7, weights=weights).fit(blocks(tied), blocks(C))
    for found, true in zip(ours.kneighbors(blocks(tied)), local.kneighbors(tied), strict=True):
        np.testing.assert_array_equal(found, true)
    np.testing.assert_array_equal(ours.predict_proba(blocks(tied)), local.predict_proba(tied))
    np.testing.assert_array_equal(ours.predict(tied), local.predict(tied))
    np.testing.assert_array_equal(ours.to_local().predict(tied), local.predict(tied))
    regressor = sd.KNeighborsRegressor(3, weights=weights).fit(blocks(tied), Y)
    true = neighbors.KNeighborsRegressor(3, weights=weights).fit(tied, Y).predict(tied)
    np.testing.assert_array_equal(regressor.predict(blocks(tied)), true)


def test_neighbours_refuse_unsupported_parameters():
    with pytest.raises(ValueError, match="algorithm='hnsw'"):
        sd.KNeighborsClassifier(algorithm="hnsw").fit(blocks(FULL), C)
    with pytest.raises(ValueError, match="metric='seuclidean'"):
        sd.KNeighborsRegressor(metric="seuclidean").fit(blocks(FULL), Y)
    model = sd.KNeighborsRegressor(901).fit(blocks(FULL), Y)
    with pytest.raises(ValueError, match="n_neighbors = 901"):
        model.predict(FULL)


# ---------------------------------------------------------------------- forests


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("RandomForestClassifier", C),
        ("RandomForestRegressor", Y),
        ("ExtraTreesClassifier", C),
        ("ExtraTreesRegressor", Y),
    ],
)
def test_forests_spread_by_trees_are_the_local_ones(name, target):
    local = getattr(ensemble, name)(10, random_state=1).fit(X, target)
    ours = getattr(sd, name)(10, random_state=1).fit(blocks(X), blocks(target))
    assert ours.spread_ == "trees"
    left, right = local.fitted_model().store.core.state(), ours.fitted_model().store.core.state()
    assert all(left[key].tobytes() == right[key].tobytes() for key in left)
    np.testing.assert_array_equal(ours.predict(blocks(X)).compute(), local.predict(X))
    if name.endswith("Regressor"):
        assert np.isfinite(ours.to_local().predict_quantiles(X, [0.1, 0.9])).all()


def test_forests_spread_by_rows():
    ordered = np.sort(C)  # a block has two of the three classes at most
    ours = sd.RandomForestClassifier(12, random_state=1)
    ours.fit(blocks(X), blocks(ordered), spread="rows")
    assert len(ours.to_local()) == 12
    assert ours.classes_.tolist() == ["no", "perhaps", "yes"]
    assert ours.predict_proba(blocks(X)).compute().shape == (900, 3)
    numbers = sd.RandomForestRegressor(12, random_state=1).fit(blocks(X), Y, spread="rows")
    assert numbers.score(blocks(X), Y) > 0.5
    with pytest.raises(ValueError, match="blocks of rows"):
        numbers.predict_quantiles(X, [0.5])
    with pytest.raises(ValueError, match="oob_score=True"):
        sd.RandomForestClassifier(oob_score=True).fit(blocks(X), C)
    with pytest.raises(ValueError, match="spread"):
        sd.RandomForestClassifier().fit(blocks(X), C, spread="columns")


def test_isolation_forest():
    local = ensemble.IsolationForest(n_estimators=20, random_state=1, contamination=0.1).fit(X)
    ours = sd.IsolationForest(n_estimators=20, random_state=1, contamination=0.1).fit(blocks(X))
    np.testing.assert_array_equal(ours.score_samples(blocks(X)), local.score_samples(X))
    np.testing.assert_array_equal(ours.predict(blocks(X)), local.predict(X))
    rows = sd.IsolationForest(n_estimators=20, random_state=1).fit(blocks(X), spread="rows")
    assert np.corrcoef(rows.score_samples(X), local.score_samples(X))[0, 1] > 0.8


# ---------------------------------------------------------------------- boosting

FEW = {"n_estimators": 8, "random_state": 5, "max_leaf_nodes": 7}


def weighted_validation(classes):
    target = C if classes else Y
    return (X[:100], target[:100], W[:100])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"early_stopping": True, "subsample": 0.6, "max_features": 0.5},
        {"growth": "oblivious", "max_leaf_nodes": 8},
    ],
)
@pytest.mark.parametrize("kind", ["classes", "numbers", "median"])
def test_boosters_are_the_local_ones_to_the_bit(kind, params):
    name = "GradientBoostingClassifier" if kind == "classes" else "GradientBoostingRegressor"
    target = C if kind == "classes" else Y
    params = {**FEW, **params, **({"loss": "absolute_error"} if kind == "median" else {})}
    local = getattr(ensemble, name)(n_folds=1, **params).fit(X, target, W)
    ours = getattr(sd, name)(**params).fit(blocks(X), blocks(target), blocks(W))
    assert_same(local, ours.to_local())
    assert len(ours.workers_) == 3
    assert sum(one["rows"] for one in ours.workers_) == 900
    assert all(one["bytes_sent"] > 0 for one in ours.workers_)
    np.testing.assert_array_equal(ours.predict(blocks(X)).compute(), local.predict(X))


def test_validation_rows_zero_weights_and_other_partitions():
    weights = np.where(np.arange(900) % 5, W, 0.0)
    validation = weighted_validation(classes=True)
    local = ensemble.GradientBoostingClassifier(n_folds=1, **FEW)
    local.fit(X, C, weights, eval_set=validation)
    for n_rows in (901, 70):
        ours = sd.GradientBoostingClassifier(**FEW).fit(
            da.from_array(X, chunks=(n_rows, 3)),
            C,
            weights,
            eval_set=tuple(da.from_array(values, chunks=40) for values in validation),
        )
        assert_same(local, ours.to_local())


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("out_of_core", [False, True])
def test_integer_weights_are_repeated_rows(loss, out_of_core, tmp_path):
    weights = np.random.default_rng(2).integers(1, 4, 900)
    repeats = np.repeat(np.arange(900), weights)
    params = {"n_estimators": 10, "min_samples_leaf": 1, "random_state": 5, "loss": loss}
    local = ensemble.GradientBoostingRegressor(**params).fit(X[repeats], Y[repeats])
    ours = sd.GradientBoostingRegressor(**params)
    if out_of_core:
        frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, w=weights)
        dd.from_pandas(frame, npartitions=5).to_parquet(tmp_path / "rows")
        rows = dd.read_parquet(tmp_path / "rows")
        ours.fit(rows, "y", "w", out_of_core=True)
        predicted = ours.predict(frame.drop(columns=["y", "w"]))
    else:
        predicted = ours.fit(blocks(X), blocks(Y), blocks(weights)).predict(X)
    np.testing.assert_array_equal(predicted, local.predict(X))


@pytest.mark.parametrize("out_of_core", [False, True])
def test_classes_without_weight_stay(out_of_core):
    weights = np.where(C == "perhaps", 0.0, W)
    local = ensemble.GradientBoostingClassifier(n_folds=1, **FEW).fit(X, C, weights)
    assert local.classes_.tolist() == ["no", "perhaps", "yes"]
    ours = sd.GradientBoostingClassifier(**FEW)
    ours.fit(blocks(X), blocks(C), blocks(weights), out_of_core=out_of_core)
    assert_same(local, ours.to_local())
    assert ours.predict_proba(blocks(X)).compute()[:, 1].max() < 1e-6


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_boosting_with_weights_of_extreme_sizes(factor):
    local = ensemble.GradientBoostingRegressor(n_folds=1, **FEW).fit(X, Y, W * factor)
    ours = sd.GradientBoostingRegressor(**FEW).fit(blocks(X), blocks(Y), blocks(W * factor))
    assert_same(local, ours.to_local())
    assert np.isfinite(local.predict(X)).all()


def test_ranking():
    groups = np.repeat(np.arange(90), 10)
    relevance = np.clip(np.round(Y), 0, 4)
    local = ensemble.GradientBoostingRanker(n_folds=1, **FEW).fit(X, relevance, group=groups)
    rows = da.from_array(X, chunks=(300, 4))
    ours = sd.GradientBoostingRanker(**FEW).fit(rows, relevance, group=groups)
    assert_same(local, ours.to_local())
    assert ours.score(rows, relevance, group=groups) == pytest.approx(
        local.score(X, relevance, group=groups)
    )
    odd = da.from_array(X, chunks=(305, 4))
    with pytest.raises(ValueError, match="rows of each group in one partition"):
        sd.GradientBoostingRanker(**FEW).fit(odd, relevance, group=groups)


def test_frames_with_categories_from_memory_and_from_files(tmp_path):
    frame = mixed_frame()
    rows = frame.drop(columns="y")
    local = ensemble.GradientBoostingRegressor(n_folds=1, **FEW).fit(rows, frame.y.to_numpy())
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy.to_parquet(tmp_path / "rows")
    for given in (lazy, tmp_path / "rows", frame, pl.from_pandas(frame)):
        ours = sd.GradientBoostingRegressor(**FEW).fit(given, "y")
        assert_same(local, ours.to_local())
    ours = sd.GradientBoostingRegressor(**FEW).fit(lazy, "y", out_of_core=True)
    assert_same(local, ours.to_local())
    predicted = ours.predict(lazy.drop(columns="y"))
    assert isinstance(predicted, dd.Series)
    np.testing.assert_array_equal(predicted.compute().to_numpy(), local.predict(rows))


def test_categories_are_merged_by_name():
    frame = mixed_frame()
    parts = [
        frame[frame.town.isin(towns)].copy() for towns in (["Ulm", "Jena"], ["Bonn"], ["Trier"])
    ]
    for part in parts:  # each partition has its own categories
        part["town"] = part["town"].astype("category")
    parts[1] = parts[1][["y", "town", "k", "a"]]  # and one has another order of columns
    parts[2]["k"] = parts[2]["k"].astype(float)
    whole = pd.concat([part.assign(town=part.town.astype(str)) for part in parts])[list(frame)]
    local = ensemble.GradientBoostingRegressor(n_folds=1, **FEW)
    local.fit(whole.drop(columns="y"), whole.y.to_numpy())
    meta = whole.iloc[:0]
    lazy = dd.from_delayed([delayed_frame(part) for part in parts], meta=meta, verify_meta=False)
    ours = sd.GradientBoostingRegressor(**FEW).fit(lazy, "y")
    assert_same(local, ours.to_local())
    forest = sd.RandomForestRegressor(6, random_state=1).fit(lazy, "y", spread="rows")
    assert forest.categories_[2].tolist() == ["Bonn", "Jena", "Trier", "Ulm"]


def delayed_frame(frame):
    import dask

    return dask.delayed(lambda: frame)()


def test_inconsistent_partitions_are_refused():
    frame = mixed_frame(60)
    for wrong, message in (
        (frame.rename(columns={"k": "q"}), "expected the columns"),
        (frame.assign(town=1.5), "numeric in all"),
    ):
        lazy = dd.from_delayed(
            [delayed_frame(frame), delayed_frame(wrong)], meta=frame.iloc[:0], verify_meta=False
        )
        with pytest.raises(ValueError, match=message):
            sd.GradientBoostingRegressor(**FEW).fit(lazy, "y")


def test_errors_name_the_bad_input():
    rows = blocks(X)
    for call, message in (
        (lambda: sd.Ridge().fit(rows, Y[:-1]), "y: expected 900 rows"),
        (lambda: sd.Ridge().fit(rows, da.from_array(Y[:-1])), "y: expected 900 rows"),
        (lambda: sd.Ridge().fit(rows, "y"), "y='y': expected a column of X"),
        (lambda: sd.Ridge().fit(rows[:, 0], Y), "X: expected rows and columns"),
        (lambda: sd.Ridge().fit(rows, Y), "NaN"),
        (lambda: sd.Ridge(solver="sag").fit(blocks(FULL), Y), "solver='sag'"),
        (lambda: sd.Ridge().fit(blocks(FULL), Y, -W), "[Nn]egative"),
        (lambda: sd.LogisticRegression(l1_ratio=1).fit(rows, C), "l1_ratio=1"),
        (lambda: sd.LogisticRegression().fit(blocks(FULL), C == "other"), "one class"),
        (lambda: sd.GradientBoostingRegressor(max_bins=None).fit(rows, Y), "max_bins=None"),
        (lambda: sd.GradientBoostingRegressor().fit(rows, Y * np.nan), "NaN"),
        (lambda: sd.GradientBoostingRegressor().fit(rows[:0], Y[:0]), "at least one row"),
        (lambda: sd.GradientBoostingRegressor().fit(rows, Y, eval_set=X), "eval_set"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_parameters_clones_and_files(tmp_path):
    model = sd.GradientBoostingClassifier(**FEW)
    assert model.get_params() == ensemble.GradientBoostingClassifier(**FEW).get_params()
    fitted = clone(model).fit(blocks(X), C)
    fitted.save(tmp_path / "model.spinney")
    spinney.save(fitted, tmp_path / "same.spinney")
    assert type(spinney.load(tmp_path / "same.spinney")) is ensemble.GradientBoostingClassifier
    again = ensemble.GradientBoostingClassifier.load(tmp_path / "model.spinney")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    frame = fitted.predict_proba(dd.from_pandas(pd.DataFrame(X), npartitions=2)).compute()
    assert list(frame.columns) == ["no", "perhaps", "yes"]


SOON = {"n_iter_no_change": 4, "learning_rate": 0.3, "random_state": 5}


@pytest.mark.parametrize("weights", [None, W])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_automatic_defaults_in_folds_are_the_local_ones(kind, weights):
    name = "GradientBoostingClassifier" if kind == "classes" else "GradientBoostingRegressor"
    target = C if kind == "classes" else Y
    local = getattr(ensemble, name)(**SOON).fit(X, target, weights)
    assert local.fitted_model().n_boosters == 8
    given = None if weights is None else blocks(weights)
    ours = getattr(sd, name)(**SOON).fit(blocks(X), blocks(target), given)
    assert_same(local, ours.to_local())
    method = "predict_set" if kind == "classes" else "predict_interval"
    true = getattr(local, method)(X)
    np.testing.assert_array_equal(getattr(ours, method)(blocks(X)).compute(), true)
    np.testing.assert_array_equal(getattr(ours, method)(X), true)


def test_automatic_defaults_without_any_parameter_are_the_local_ones():
    local = ensemble.GradientBoostingRegressor(random_state=0).fit(X[:200], Y[:200])
    ours = sd.GradientBoostingRegressor(random_state=0)
    ours.fit(da.from_array(X[:200], chunks=(70, 4)), Y[:200])
    assert local.fitted_model().n_boosters == 8
    assert_same(local, ours.to_local())


@pytest.mark.parametrize("n_folds", ["auto", 1])
def test_automatic_defaults_of_rankings_are_the_local_ones(n_folds):
    groups = np.repeat(np.random.default_rng(0).permutation(90), 10)
    relevance = np.clip(np.round(Y), 0, 4)
    params = {**SOON, "n_folds": n_folds}
    local = ensemble.GradientBoostingRanker(**params).fit(X, relevance, group=groups)
    assert local.fitted_model().n_boosters == (8 if n_folds == "auto" else 1)
    ours = sd.GradientBoostingRanker(**params)
    ours.fit(da.from_array(X, chunks=(300, 4)), relevance, group=groups)
    assert_same(local, ours.to_local())


@pytest.mark.parametrize("out_of_core", [False, True])
def test_folds_of_rows_with_categories(out_of_core):
    frame = mixed_frame()
    rows = frame.drop(columns="y")
    params = {**SOON, "n_folds": 3}
    local = ensemble.GradientBoostingRegressor(**params).fit(rows, frame.y.to_numpy())
    lazy = dd.from_pandas(frame, npartitions=4)
    ours = sd.GradientBoostingRegressor(**params).fit(lazy, "y", out_of_core=out_of_core)
    assert_same(local, ours.to_local())
    np.testing.assert_array_equal(ours.predict_interval(rows), local.predict_interval(rows))


IN_FOLDS = {
    "n_folds": 3, "early_stopping": True, "n_estimators": 60, "n_iter_no_change": 8, "tol": 0.0,
    "learning_rate": 0.02, "random_state": 5, "subsample": 0.8,
}  # fmt: skip


@pytest.mark.parametrize("n_before", [9, 100, 170])
def test_a_fit_continues_from_a_checkpoint_of_folds(n_before, monkeypatch, tmp_path):
    """The checkpoint may be in the middle of a fold: folds are fitted one after the other."""
    local = ensemble.GradientBoostingRegressor(**IN_FOLDS).fit(X, Y)
    checkpoint = tmp_path / "half.spinney"
    add_trees = _boost_driver.BoostDriver._add_trees
    after_round = _boost_task._RoundTracker.after_round
    is_saved = threading.Event()

    def add_some_trees(driver, message):
        add_trees(driver, message)
        if driver.n_rounds >= n_before:
            is_saved.set()
            raise Interrupt

    def wait_after_round(tracker, *state):
        after_round(tracker, *state)
        if tracker.sends and tracker.n_rounds >= n_before:
            is_saved.wait(30)

    monkeypatch.setattr(_boost_task._RoundTracker, "after_round", wait_after_round)
    monkeypatch.setattr(_boost_task, "_SEND_EVERY", 0.0)
    monkeypatch.setattr(_boost_driver, "_SAVE_EVERY", 0.0)
    monkeypatch.setattr(_boost_driver.BoostDriver, "_add_trees", add_some_trees)
    in_process = {"processes": False, "dashboard_address": None, "set_as_default": False}
    with (
        distributed.Client(n_workers=2, threads_per_worker=1, **in_process) as threads,
        threads.as_current(),
        pytest.raises(Interrupt),
    ):
        sd.GradientBoostingRegressor(**IN_FOLDS).fit(blocks(X), Y, checkpoint=checkpoint)
    monkeypatch.undo()
    half = spinney.load(checkpoint)
    assert n_before <= sum(map(len, half._checkpoint_trees)) <= n_before + 3
    assert half.n_estimators_ * half.fitted_model().n_boosters == len(half.fitted_model().store)
    assert np.isfinite(half.predict(X)).all()
    seen = []
    again = sd.GradientBoostingRegressor(
        callbacks=lambda done, total: seen.append((done, total)), **IN_FOLDS
    ).fit(blocks(X), Y, checkpoint=checkpoint)
    assert_same(local, again.to_local())
    assert_same(local, spinney.load(checkpoint))
    assert seen == sorted(set(seen))
    finished = sd.GradientBoostingRegressor(**IN_FOLDS).fit(blocks(X), Y, checkpoint=checkpoint)
    assert_same(local, finished.to_local())


def test_several_quantiles():
    params = {**FEW, "loss": "quantile", "alpha": [0.1, 0.5, 0.9]}
    ours = sd.GradientBoostingRegressor(**params).fit(blocks(X), Y)
    local = ensemble.GradientBoostingRegressor(n_folds=1, **params).fit(X, Y)
    predicted = ours.predict(blocks(X))
    assert predicted.shape == (900, 3)
    np.testing.assert_array_equal(predicted.compute(), local.predict(X))
    assert ours.score(blocks(X), Y) == local.score(X, Y)
    frame = pd.DataFrame(X)
    lazy = dd.from_pandas(frame, npartitions=3)
    intervals = ours.predict_interval(lazy, calibration=(frame, Y))
    true = local.predict_interval(X, calibration=(X, Y))
    np.testing.assert_array_equal(intervals.compute(), true)


def test_leaves_and_rounds():
    ours = sd.GradientBoostingClassifier(**FEW).fit(blocks(X), C)
    local = ours.to_local()
    leaves = ours.apply(blocks(X))
    assert leaves.shape == (900, local.n_estimators_, 3)
    np.testing.assert_array_equal(leaves.compute(), local.apply(X))
    np.testing.assert_array_equal(next(ours.staged_predict(X)), next(local.staged_predict(X)))
    with pytest.raises(TypeError, match="rows in memory"):
        next(ours.staged_predict(blocks(X)))


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-W, "of at least 0, got -"),
        (W * np.nan, "of at least 0, got nan"),
        (W * 0, "no row of positive weight"),
        (np.full(900, "a"), "expected numbers"),
        (np.c_[W, W], "one axis, got 2"),
    ],
)
def test_errors_name_wrong_weights(weights, message):
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        sd.GradientBoostingRegressor(**FEW).fit(blocks(X), Y, blocks(weights))


def test_a_progress_bar_ends_with_its_fit(monkeypatch):
    ended = []

    class Bar:
        def __init__(self, title):
            pass

        def __call__(self, done, total, score=None):
            pass

        def __del__(self):
            ended.append(True)

    monkeypatch.setattr("spinney.runtime.progress._Bar", Bar)
    gc.collect()
    gc.disable()
    try:
        sd.GradientBoostingRegressor(**FEW, verbose=1).fit(blocks(X), Y)
    finally:
        gc.enable()
    assert ended == [True]


def test_callbacks_receive_progress_and_can_end_a_fit():
    seen = []

    def record(done, total, score):
        seen.append((done, total, score))
        return done >= 10

    model = sd.GradientBoostingRegressor(
        n_estimators=400, early_stopping=False, callbacks=record, max_leaf_nodes=31
    ).fit(blocks(X), Y)
    assert seen[0][:2] == (10, 400)
    assert 10 <= model.n_estimators_ < 400


def test_workers_report_their_rounds_to_the_dashboard(cluster):
    def rounds(dask_worker):
        metric = dask_worker.metrics.get(METRIC)
        return None if metric is None else metric(dask_worker)

    seen = []
    sd.GradientBoostingRegressor(
        n_estimators=30, early_stopping=False, callbacks=lambda *_: seen.append(cluster.run(rounds))
    ).fit(blocks(X), Y)
    first = seen[0].values()
    assert all(one is None or one >= 10 for one in first)
    assert any(one is not None for one in first)
    assert set(cluster.run(rounds).values()) == {None}


def test_one_to_five_processes_fit_the_same_model(cluster):
    alone = ensemble.GradientBoostingClassifier(n_estimators=8, n_folds=1, random_state=0)
    alone.fit(X, C)
    cluster.cluster.scale(5)
    cluster.wait_for_workers(5, timeout=120)
    try:
        for n_workers in (1, 2, 3, 5):  # the number of partitions is the same
            rows = da.from_array(X, chunks=(-(-len(X) // n_workers), 4))
            model = sd.GradientBoostingClassifier(n_estimators=8, random_state=0).fit(rows, C)
            assert len(model.workers_) == n_workers
            assert_same(alone, model.to_local())
    finally:
        cluster.cluster.scale(3)
        for _ in range(300):
            if len(workers_of(cluster)) == 3:
                break
            time.sleep(0.1)


# ---------------------------------------------------------------------- cleanup after fits

TEN = {"n_estimators": 10, "random_state": 5, "max_leaf_nodes": 7, "early_stopping": False}


def assert_clean(cluster):
    # A nested function is pickled by value: the workers cannot import this file.
    def leftovers(dask_worker):
        names = os.listdir(dask_worker.local_directory)
        files = [name for name in names if name.startswith("spinney-")]
        return len(_boost_task._fit_states), files, dask_worker.state.executing_count

    for _ in range(100):
        found = list(cluster.run(leftovers).values())
        if all(of_worker == (0, [], 0) for of_worker in found):
            return
        time.sleep(0.1)
    raise AssertionError(found)


class Interrupt(BaseException):
    """Like KeyboardInterrupt, which pytest handles itself."""


def test_workers_stop_if_a_callback_raises(cluster):
    def interrupt(done, total):
        raise Interrupt

    model = sd.GradientBoostingRegressor(
        n_estimators=100_000, early_stopping=False, callbacks=interrupt
    )
    began = time.monotonic()
    with pytest.raises(Interrupt):
        model.fit(blocks(X), Y, out_of_core=True)
    assert_clean(cluster)
    assert time.monotonic() - began < 60  # all rounds would take hours


def test_workers_clean_up_after_errors_in_the_rows(cluster):
    with pytest.raises(ValueError, match="NaN"):
        sd.GradientBoostingRegressor(**TEN).fit(
            blocks(X), np.where(np.arange(900) == 500, np.nan, Y), out_of_core=True
        )
    with pytest.raises(ValueError, match="expected 900 rows"):
        sd.GradientBoostingRegressor(**TEN).fit(blocks(X), Y[:-1], out_of_core=True)
    assert_clean(cluster)


def test_simultaneous_fits_run_in_turn_with_their_own_progress(cluster):
    local = ensemble.GradientBoostingRegressor(n_folds=1, **TEN).fit(X, Y)
    models, seen = {}, {0: [], 1: []}

    def fit(k):
        model = sd.GradientBoostingRegressor(
            callbacks=lambda done, total: seen[k].append(done), **TEN
        )
        with cluster.as_current():
            models[k] = model.fit(blocks(X), Y)

    threads = [threading.Thread(target=fit, args=(k,)) for k in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for k in seen:
        assert_same(local, models[k].to_local())
        assert seen[k] == [10]
    assert_clean(cluster)


@pytest.mark.parametrize("n_tasks", [1, 4])
def test_boosting_within_tasks(cluster, n_tasks):
    """Tasks leave the thread pool while they wait, and fit one after the other."""
    # Local variables: a worker closes if a task refers to a module that it cannot import.
    rows, target, params = X, Y, TEN

    def fit(seed):
        from spinney.dask import GradientBoostingRegressor

        model = GradientBoostingRegressor(**{**params, "random_state": seed})
        return model.fit(rows, target).predict(rows)

    predicted = cluster.gather([cluster.submit(fit, seed, pure=False) for seed in range(n_tasks)])
    for seed in range(n_tasks):
        local = ensemble.GradientBoostingRegressor(n_folds=1, **{**TEN, "random_state": seed})
        np.testing.assert_array_equal(predicted[seed], local.fit(X, Y).predict(X))
    assert_clean(cluster)


def test_fewer_validation_partitions_than_workers():
    validation = (X[:100], Y[:100])
    local = ensemble.GradientBoostingRegressor(n_folds=1, **TEN).fit(X, Y, eval_set=validation)
    lazy = tuple(da.from_array(values, chunks=-1) for values in validation)
    ours = sd.GradientBoostingRegressor(**TEN).fit(blocks(X), Y, eval_set=lazy)
    assert_same(local, ours.to_local())


def test_the_scheduler_keeps_no_trees(cluster):
    sd.GradientBoostingRegressor(**TEN).fit(blocks(X), Y)
    events = cluster.get_events()
    kept = [topic for topic in events if topic.startswith("spinney-boosting-")]
    assert not kept
    assert set(events["spinney-boosting"][-1][1]) == {"done", "total", "score", "worker"}


def test_an_asynchronous_client_is_refused(cluster):
    async def fit():
        address = cluster.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with client.as_current(), pytest.raises(ValueError, match="not asynchronous"):
                sd.GradientBoostingRegressor(**TEN).fit(blocks(X), Y)

    asyncio.run(fit())


def test_a_checkpoint_of_other_rows_is_refused(tmp_path):
    checkpoint = tmp_path / "half.spinney"
    names = pd.DataFrame(X, columns=list("abcd"))
    sd.GradientBoostingRegressor(**TEN).fit(names, Y, checkpoint=checkpoint)
    for rows, target, params, message in (
        (names, Y + 1, {}, "sum of y"),
        (names[:-9], Y[:-9], {}, "n_rows 900"),
        (names.rename(columns={"a": "q"}), Y, {}, "columns"),
        (names, Y, {"random_state": 6}, "random_state=5, got 6"),
    ):
        model = sd.GradientBoostingRegressor(**{**TEN, **params})
        with pytest.raises(ValueError, match=message):
            model.fit(rows, target, checkpoint=checkpoint)
    more = {**TEN, "n_estimators": 14}
    longer = sd.GradientBoostingRegressor(**more).fit(names, Y, checkpoint=checkpoint)
    assert_same(ensemble.GradientBoostingRegressor(n_folds=1, **more).fit(names, Y), longer)
    with pytest.raises(ValueError, match="writable folder"):
        sd.GradientBoostingRegressor(**TEN).fit(X, Y, checkpoint=tmp_path / "no" / "m")


def test_workers_that_cannot_connect_are_an_error(monkeypatch):
    def fail(listener, *arguments):
        listener.close()
        raise _boost_task.ExchangeError("no way")

    monkeypatch.setattr(_boost_task, "SocketExchange", type("Failing", (), {
        "listen": _boost_task.SocketExchange.listen,
        "__new__": lambda cls, *arguments: fail(*arguments),
    }))  # fmt: skip
    in_process = {"processes": False, "dashboard_address": None, "set_as_default": False}
    with (
        distributed.Client(n_workers=2, threads_per_worker=1, **in_process) as threads,
        threads.as_current(),
        pytest.raises(RuntimeError, match=r"could not connect to each other 3 times.*no way"),
    ):
        sd.GradientBoostingRegressor(**TEN).fit(X, Y)
    assert not _boost_task._fit_states


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(_cluster, "_FIRST_WORKER_TIMEOUT", 1.0)
    in_process = {"processes": False, "dashboard_address": None, "set_as_default": False}
    with distributed.Client(n_workers=0, **in_process) as client, client.as_current():
        for rows in (X, pd.DataFrame(X), blocks(X)):
            with pytest.raises(ValueError, match="at least one within 1 seconds, got none"):
                sd.GradientBoostingRegressor(**TEN).fit(rows, Y)


def test_intervals_without_held_out_rows_and_several_targets_are_errors():
    model = sd.GradientBoostingRegressor(**TEN).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"without held-out rows to estimate its errors .*early_stopping"
    ):
        model.predict_interval(X)
    assert model.predict_interval(X[:3], calibration=(X, Y)).shape == (3, 2)
    with pytest.raises(ValueError, match="several"):
        sd.GradientBoostingRegressor(**TEN).fit(X, np.c_[Y, Y])


def test_groups_in_memory_stay_together():
    groups = np.repeat(np.arange(45), 20)[::-1]
    relevance = np.clip(np.round(Y), 0, 4)
    local = ensemble.GradientBoostingRanker(n_folds=1, **TEN).fit(X, relevance, group=groups)
    frame = pd.DataFrame(X).add_prefix("x").assign(g=groups)
    for rows, group in ((X, groups), (frame, "g"), (pl.from_pandas(frame), "g")):
        ours = sd.GradientBoostingRanker(**TEN).fit(rows, relevance, group=group)
        assert_same(local, ours.to_local())
    with pytest.raises(ValueError, match="group: expected the group of each row"):
        sd.GradientBoostingRanker(**TEN).fit(X, relevance, group=None)


def test_neighbours_after_their_client_is_closed(cluster):
    with distributed.Client(cluster.scheduler.address) as other, other.as_current():
        model = sd.KNeighborsRegressor().fit(blocks(FULL), Y)
    for call in (model.to_local, lambda: model.predict(FULL), lambda: model.kneighbors(FULL)):
        with pytest.raises(RuntimeError, match="expected the client of fit to be open"):
            call()


# ---------------------------------------------------------------------- without a cluster


def test_incomplete_lists_of_workers_are_requested_again():
    class Client:
        status = "running"
        responses = iter(
            [{"n_workers": 2, "workers": {}}, {"n_workers": 2, "workers": {"a": 1, "b": 2}}]
        )

        def scheduler_info(self, n_workers):
            assert n_workers == -1
            return next(self.responses)

    assert workers_of(Client()) == {"a": 1, "b": 2}


def test_join_partitions():
    frames = [pd.DataFrame({"c": pd.Categorical(values)}) for values in ([3, 1], [2, 1], [])]
    joined = join_partitions([Part(frame, np.zeros(len(frame))) for frame in frames])
    assert joined.X.c.tolist() == [3, 1, 2, 1]
    assert isinstance(joined.X.c.dtype, pd.CategoricalDtype)
    assert joined.n_rows == len(joined.y) == 4


# ---------------------------------------------------------------------- failures
# The last tests of this file: they replace workers of the cluster.

LONG = {"n_estimators": 150, "max_leaf_nodes": 31, "early_stopping": False, "random_state": 5}


def long_rows():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12_000, 10))
    return rows, rows[:, 0] + rows[:, 1] ** 2 + rng.normal(size=12_000)


@pytest.mark.parametrize("out_of_core", [False, True])
def test_the_model_is_the_same_if_a_worker_is_killed(cluster, out_of_core):
    rows, target = long_rows()
    local = ensemble.GradientBoostingRegressor(n_folds=1, **LONG).fit(rows, target)
    victims = list(cluster.run(os.getpid).values())[-1:]
    seen = []

    def kill_worker(done, total):
        seen.append(done)
        if done >= 30 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    ours = sd.GradientBoostingRegressor(callbacks=kill_worker, **LONG)
    lazy = da.from_array(rows, chunks=(2500, 10))
    ours.fit(lazy, target, out_of_core=out_of_core)
    assert ours._dask_losses >= 1
    assert not victims
    assert_same(local, ours.to_local())
    assert seen == sorted(set(seen))  # no round is reported twice


def test_the_model_is_the_same_if_a_worker_is_killed_between_folds(cluster):
    rows, target = long_rows()
    params = {**LONG, "n_estimators": 80, "n_iter_no_change": 80, "n_folds": 3}
    params |= {"early_stopping": True}
    local = ensemble.GradientBoostingRegressor(**params).fit(rows, target)
    victims = list(cluster.run(os.getpid).values())[-1:]
    seen = []

    def kill_worker(done, total):
        seen.append(done)
        while victims:
            os.kill(victims.pop(), signal.SIGKILL)

    ours = sd.GradientBoostingRegressor(callbacks=kill_worker, **params)
    ours.fit(da.from_array(rows, chunks=(2500, 10)), target)
    assert ours._dask_losses >= 1
    assert_same(local, ours.to_local())
    assert seen == sorted(set(seen))


def test_workers_with_another_version_are_refused(monkeypatch):
    monkeypatch.setattr(_boost_driver, "__version__", "99.0")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as two,
        distributed.Client(two, set_as_default=False) as client,
        client.as_current(),
        pytest.raises(RuntimeError, match=r"has Spinney .*, expected 99\.0"),
    ):
        sd.GradientBoostingRegressor(**FEW).fit(blocks(X), Y)


def test_bins_of_sampled_rows_are_as_good_as_those_of_all_rows():
    rng = np.random.default_rng(4)
    for skew in (0.0, 2.0):
        z = rng.normal(size=(300_000, 4))
        rows = np.exp(skew * z) if skew else np.rint(50 * z)
        labels = z[:, 0] * z[:, 1] + np.sin(3 * z[:, 2]) + rng.logistic(size=300_000) > 0
        train, test = slice(0, 240_000), slice(240_000, None)  # the sample has 200,000 rows
        order = np.argsort(rows[train, 2])  # partitions have different distributions
        params = {"n_estimators": 15, "max_leaf_nodes": 31, "early_stopping": False}
        params |= {"learning_rate": 0.1, "growth": "best_first", "random_state": 0}
        lazy = da.from_array(rows[train][order], chunks=(50_000, 4))
        ours = sd.GradientBoostingClassifier(**params).fit(lazy, labels[train][order])
        cuts = [np.unique(np.quantile(column, np.arange(1, 255) / 255)) for column in rows[train].T]
        coded = np.stack(
            [np.searchsorted(*pair) for pair in zip(cuts, rows.T, strict=True)], axis=1
        )
        exact = ensemble.GradientBoostingClassifier(n_folds=1, **params)
        exact.fit(coded[train].astype(np.float32), labels[train])
        loss = log_loss(labels[test], ours.predict_proba(rows[test])[:, 1])
        best = log_loss(labels[test], exact.predict_proba(coded[test])[:, 1])
        assert loss < 1.002 * best


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_rows_in_files_need_less_memory_than_their_size(tmp_path):
    def peak_memory():  # nested, so that workers need not import this file
        with open("/proc/self/status") as file:
            return 1024 * int(next(line for line in file if line.startswith("VmHWM")).split()[1])

    n, d = 50_000, 24
    for i in range(20):
        rng = np.random.default_rng(i)
        frame = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"c{k}" for k in range(d)])
        frame.assign(y=frame["c0"] * frame["c1"]).to_parquet(tmp_path / f"{i:02}.parquet")
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as one,
        distributed.Client(one, set_as_default=False) as client,
        client.as_current(),
    ):
        model = sd.GradientBoostingRegressor(**{**FEW, "early_stopping": False})
        model.fit(str(tmp_path / "00.parquet"), "y")
        (before,) = client.run(peak_memory).values()
        model.fit(str(tmp_path), "y")
        (after,) = client.run(peak_memory).values()
    assert model.workers_[0]["rows"] == 20 * n
    # Codes take one byte for each value, the rest about 30 bytes per row; a partition is 10 MB.
    assert after - before < 0.6 * 20 * n * (d + 1) * 8


def test_the_only_worker_is_lost_and_replaced_while_rows_are_read(tmp_path):
    def lose_first(block, path):
        """End the process that is the first to read a partition."""
        if not os.path.exists(path):
            with open(path, "w"):
                os._exit(1)
        return block

    rows = da.from_array(X, chunks=(300, 4)).map_blocks(
        lose_first, str(tmp_path / "lost"), dtype=X.dtype, meta=X[:0]
    )
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as one,
        distributed.Client(one, set_as_default=False) as client,
        client.as_current(),
    ):
        model = sd.GradientBoostingRegressor(**FEW).fit(rows, Y)
    assert model._dask_losses >= 1
    assert_same(ensemble.GradientBoostingRegressor(n_folds=1, **FEW).fit(X, Y), model.to_local())


def test_workers_that_are_lost_repeatedly_are_an_error(monkeypatch, tmp_path):
    def attempt(driver):
        driver.n_rounds = min(driver.n_rounds + 1, 20)
        raise _boost_driver._WorkerLost("it has left the cluster")

    monkeypatch.setattr(_boost_driver.BoostDriver, "_attempt", attempt)
    message = "after 20 finished rounds workers were lost 11 times: .* out_of_core=True"
    model = sd.GradientBoostingRegressor(**FEW)
    with pytest.raises(RuntimeError, match=message):
        model.fit(blocks(X), Y)


def test_a_fit_continues_from_the_checkpoint_if_the_scheduler_is_lost(cluster, tmp_path):
    rows, target = long_rows()
    lazy = da.from_array(rows, chunks=(2500, 10))
    address_file = str(tmp_path / "scheduler.json")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    python = [sys.executable, "-m"]
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
         "--no-dashboard", "--scheduler-file", address_file], **quiet,
    )  # fmt: skip
    worker = subprocess.Popen(
        [*python, "distributed.cli.dask_worker", "--scheduler-file", address_file,
         "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "2"], **quiet,
    )  # fmt: skip
    checkpoint = tmp_path / "half.spinney"
    try:
        client = distributed.Client(scheduler_file=address_file, timeout=30, set_as_default=False)
        client.wait_for_workers(1, timeout=30)

        def kill_scheduler(done, total):
            if done >= 40:
                scheduler.kill()
                scheduler.wait()

        model = sd.GradientBoostingRegressor(callbacks=kill_scheduler, **LONG)
        with (
            client.as_current(),
            pytest.raises(RuntimeError, match=r"scheduler .* lost after .* has their trees"),
        ):
            model.fit(lazy, target, checkpoint=checkpoint)
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
    half = spinney.load(checkpoint)
    assert 0 < half.n_estimators_ < 150
    other = sd.GradientBoostingRegressor(**{**LONG, "max_leaf_nodes": 15})
    with pytest.raises(ValueError, match="max_leaf_nodes=15"):
        other.fit(lazy, target, checkpoint=checkpoint)
    seen = []
    again = sd.GradientBoostingRegressor(callbacks=lambda done, total: seen.append(done), **LONG)
    again.fit(lazy, target, checkpoint=checkpoint)
    assert seen[0] == half.n_estimators_ + 10
    local = ensemble.GradientBoostingRegressor(n_folds=1, **LONG).fit(rows, target)
    assert_same(local, again.to_local())
    assert_same(local, spinney.load(checkpoint))
