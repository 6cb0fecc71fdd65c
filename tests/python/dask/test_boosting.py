"""Boosters on a Dask cluster equal local boosters of the same rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss

import spinney
from spinney import ensemble
from support.workers import assert_same

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from support.dask_rows import (  # noqa: E402
    CLASSES,
    ROUNDS_8,
    ROUNDS_10,
    WEIGHTS,
    X,
    Y,
    blocks,
    delayed_frame,
    mixed_frame,
)

pytestmark = pytest.mark.usefixtures("cluster")


def weighted_validation(classes):
    target = CLASSES if classes else Y
    return (X[:100], target[:100], WEIGHTS[:100])


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"early_stopping": True, "subsample": 0.6, "max_features": 0.5},
        {"growth": "oblivious", "max_leaf_nodes": 8},
    ],
)
@pytest.mark.parametrize("kind", ["classes", "numbers", "median"])
def test_boosters_equal_local_boosters_bitwise(kind, params):
    name = "GradientBoostingClassifier" if kind == "classes" else "GradientBoostingRegressor"
    target = CLASSES if kind == "classes" else Y
    params = {**ROUNDS_8, **params, **({"loss": "absolute_error"} if kind == "median" else {})}
    local = getattr(ensemble, name)(n_folds=1, **params).fit(X, target, WEIGHTS)
    ours = getattr(sd, name)(**params).fit(blocks(X), blocks(target), blocks(WEIGHTS))
    assert_same(local, ours.to_local())
    assert len(ours.workers_) == 3
    assert sum(worker["rows"] for worker in ours.workers_) == 900
    assert all(worker["bytes_sent"] > 0 for worker in ours.workers_)
    np.testing.assert_array_equal(ours.predict(blocks(X)).compute(), local.predict(X))


def test_validation_rows_zero_weights_and_other_partitions():
    weights = np.where(np.arange(900) % 5, WEIGHTS, 0.0)
    validation = weighted_validation(classes=True)
    local = ensemble.GradientBoostingClassifier(n_folds=1, **ROUNDS_8)
    local.fit(X, CLASSES, weights, eval_set=validation)
    for n_rows in (901, 70):
        ours = sd.GradientBoostingClassifier(**ROUNDS_8).fit(
            da.from_array(X, chunks=(n_rows, 3)),
            CLASSES,
            weights,
            eval_set=tuple(da.from_array(values, chunks=40) for values in validation),
        )
        assert_same(local, ours.to_local())


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
@pytest.mark.parametrize("out_of_core", [False, True])
def test_integer_weights_equal_repeated_rows(loss, out_of_core, tmp_path):
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
def test_classes_without_weight_are_kept(out_of_core):
    weights = np.where(CLASSES == "perhaps", 0.0, WEIGHTS)
    local = ensemble.GradientBoostingClassifier(n_folds=1, **ROUNDS_8).fit(X, CLASSES, weights)
    assert local.classes_.tolist() == ["no", "perhaps", "yes"]
    ours = sd.GradientBoostingClassifier(**ROUNDS_8)
    ours.fit(blocks(X), blocks(CLASSES), blocks(weights), out_of_core=out_of_core)
    assert_same(local, ours.to_local())
    assert ours.predict_proba(blocks(X)).compute()[:, 1].max() < 1e-6


@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_boosting_with_extreme_weights(factor):
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_8).fit(X, Y, WEIGHTS * factor)
    ours = sd.GradientBoostingRegressor(**ROUNDS_8).fit(
        blocks(X), blocks(Y), blocks(WEIGHTS * factor)
    )
    assert_same(local, ours.to_local())
    assert np.isfinite(local.predict(X)).all()


def test_ranking():
    groups = np.repeat(np.arange(90), 10)
    relevance = np.clip(np.round(Y), 0, 4)
    local = ensemble.GradientBoostingRanker(n_folds=1, **ROUNDS_8).fit(X, relevance, group=groups)
    rows = da.from_array(X, chunks=(300, 4))
    ours = sd.GradientBoostingRanker(**ROUNDS_8).fit(rows, relevance, group=groups)
    assert_same(local, ours.to_local())
    assert ours.score(rows, relevance, group=groups) == pytest.approx(
        local.score(X, relevance, group=groups)
    )
    odd = da.from_array(X, chunks=(305, 4))
    with pytest.raises(ValueError, match="rows of each group in one partition"):
        sd.GradientBoostingRanker(**ROUNDS_8).fit(odd, relevance, group=groups)


def test_frames_with_categories_from_memory_and_from_files(tmp_path):
    frame = mixed_frame()
    rows = frame.drop(columns="y")
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_8).fit(rows, frame.y.to_numpy())
    lazy = dd.from_pandas(frame, npartitions=4)
    lazy.to_parquet(tmp_path / "rows")
    for given in (lazy, tmp_path / "rows", frame, pl.from_pandas(frame)):
        ours = sd.GradientBoostingRegressor(**ROUNDS_8).fit(given, "y")
        assert_same(local, ours.to_local())
    ours = sd.GradientBoostingRegressor(**ROUNDS_8).fit(lazy, "y", out_of_core=True)
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
    joined = pd.concat([part.assign(town=part.town.astype(str)) for part in parts])[list(frame)]
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_8)
    local.fit(joined.drop(columns="y"), joined.y.to_numpy())
    meta = joined.iloc[:0]
    lazy = dd.from_delayed([delayed_frame(part) for part in parts], meta=meta, verify_meta=False)
    ours = sd.GradientBoostingRegressor(**ROUNDS_8).fit(lazy, "y")
    assert_same(local, ours.to_local())
    forest = sd.RandomForestRegressor(6, random_state=1).fit(lazy, "y", spread="rows")
    assert forest.categories_[2].tolist() == ["Bonn", "Jena", "Trier", "Ulm"]


def test_parameters_clones_and_files(tmp_path):
    model = sd.GradientBoostingClassifier(**ROUNDS_8)
    assert model.get_params() == ensemble.GradientBoostingClassifier(**ROUNDS_8).get_params()
    fitted = clone(model).fit(blocks(X), CLASSES)
    fitted.save(tmp_path / "model.spinney")
    spinney.save(fitted, tmp_path / "same.spinney")
    assert type(spinney.load(tmp_path / "same.spinney")) is ensemble.GradientBoostingClassifier
    again = ensemble.GradientBoostingClassifier.load(tmp_path / "model.spinney")
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    frame = fitted.predict_proba(dd.from_pandas(pd.DataFrame(X), npartitions=2)).compute()
    assert list(frame.columns) == ["no", "perhaps", "yes"]


STOPS_EARLY = {"n_iter_no_change": 4, "learning_rate": 0.3, "random_state": 5}


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_automatic_defaults_in_folds_equal_the_local_fit(kind, weights):
    name = "GradientBoostingClassifier" if kind == "classes" else "GradientBoostingRegressor"
    target = CLASSES if kind == "classes" else Y
    local = getattr(ensemble, name)(**STOPS_EARLY).fit(X, target, weights)
    assert local.fitted_model().n_boosters == 8
    given = None if weights is None else blocks(weights)
    ours = getattr(sd, name)(**STOPS_EARLY).fit(blocks(X), blocks(target), given)
    assert_same(local, ours.to_local())
    method = "predict_set" if kind == "classes" else "predict_interval"
    true = getattr(local, method)(X)
    np.testing.assert_array_equal(getattr(ours, method)(blocks(X)).compute(), true)
    np.testing.assert_array_equal(getattr(ours, method)(X), true)


def test_automatic_defaults_without_any_parameter_equal_the_local_fit():
    local = ensemble.GradientBoostingRegressor(random_state=0).fit(X[:200], Y[:200])
    ours = sd.GradientBoostingRegressor(random_state=0)
    ours.fit(da.from_array(X[:200], chunks=(70, 4)), Y[:200])
    assert local.fitted_model().n_boosters == 8
    assert_same(local, ours.to_local())


@pytest.mark.parametrize("n_folds", ["auto", 1])
def test_automatic_defaults_of_rankings_equal_the_local_fit(n_folds):
    groups = np.repeat(np.random.default_rng(0).permutation(90), 10)
    relevance = np.clip(np.round(Y), 0, 4)
    params = {**STOPS_EARLY, "n_folds": n_folds}
    local = ensemble.GradientBoostingRanker(**params).fit(X, relevance, group=groups)
    assert local.fitted_model().n_boosters == (8 if n_folds == "auto" else 1)
    ours = sd.GradientBoostingRanker(**params)
    ours.fit(da.from_array(X, chunks=(300, 4)), relevance, group=groups)
    assert_same(local, ours.to_local())


@pytest.mark.parametrize("out_of_core", [False, True])
def test_folds_of_rows_with_categories(out_of_core):
    frame = mixed_frame()
    rows = frame.drop(columns="y")
    params = {**STOPS_EARLY, "n_folds": 3}
    local = ensemble.GradientBoostingRegressor(**params).fit(rows, frame.y.to_numpy())
    lazy = dd.from_pandas(frame, npartitions=4)
    ours = sd.GradientBoostingRegressor(**params).fit(lazy, "y", out_of_core=out_of_core)
    assert_same(local, ours.to_local())
    np.testing.assert_array_equal(ours.predict_interval(rows), local.predict_interval(rows))


def test_several_quantiles():
    params = {**ROUNDS_8, "loss": "quantile", "alpha": [0.1, 0.5, 0.9]}
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
    ours = sd.GradientBoostingClassifier(**ROUNDS_8).fit(blocks(X), CLASSES)
    local = ours.to_local()
    leaves = ours.apply(blocks(X))
    assert leaves.shape == (900, local.n_estimators_, 3)
    np.testing.assert_array_equal(leaves.compute(), local.apply(X))
    np.testing.assert_array_equal(next(ours.staged_predict(X)), next(local.staged_predict(X)))
    with pytest.raises(TypeError, match="rows in memory"):
        next(ours.staged_predict(blocks(X)))


def test_fewer_validation_partitions_than_workers():
    validation = (X[:100], Y[:100])
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_10).fit(
        X, Y, eval_set=validation
    )
    lazy = tuple(da.from_array(values, chunks=-1) for values in validation)
    ours = sd.GradientBoostingRegressor(**ROUNDS_10).fit(blocks(X), Y, eval_set=lazy)
    assert_same(local, ours.to_local())


def test_groups_in_memory_stay_together():
    groups = np.repeat(np.arange(45), 20)[::-1]
    relevance = np.clip(np.round(Y), 0, 4)
    local = ensemble.GradientBoostingRanker(n_folds=1, **ROUNDS_10).fit(X, relevance, group=groups)
    frame = pd.DataFrame(X).add_prefix("x").assign(g=groups)
    for rows, group in ((X, groups), (frame, "g"), (pl.from_pandas(frame), "g")):
        ours = sd.GradientBoostingRanker(**ROUNDS_10).fit(rows, relevance, group=group)
        assert_same(local, ours.to_local())
    with pytest.raises(ValueError, match="group: expected the group of each row"):
        sd.GradientBoostingRanker(**ROUNDS_10).fit(X, relevance, group=None)


def test_bins_of_sampled_rows_are_as_accurate_as_those_of_all_rows():
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
