"""Boosters fitted by several workers equal the booster of one worker."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss

from spinney.boosting import _out_of_fold
from spinney.boosting import _settings as boosting_rules
from spinney.boosting import base as boosting
from spinney.distributed import agreement
from spinney.distributed.exchange import ExchangeError, SocketExchange, ThreadExchange
from spinney.distributed.totals import RowNumbers, Totals
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRanker,
    GradientBoostingRegressor,
)
from spinney.models.forest_store import ForestStore
from support.waiting import LIMIT
from support.worker_process import fit_in_process
from support.workers import (
    assert_same,
    assign_rows,
    fit_on_one_worker,
    fit_on_workers,
    fit_worker,
    row_ranges_of,
    run_in_threads,
)


def make_rows(n, seed=0):
    """Create numbers, some missing, some tied, and a categorical column."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 3] = np.round(X[:, 3])
    frame = pd.DataFrame(X, columns=list("abcd"))
    kinds = np.array(["red", "green", "blue", "grey", None], dtype=object)
    frame["kind"] = pd.Categorical(kinds[rng.integers(0, 5, n)])
    signal = np.nan_to_num(X[:, 0]) * 2 + np.nan_to_num(X[:, 1]) ** 2
    signal += (frame["kind"] == "red").to_numpy() + rng.normal(size=n) * 0.3
    return frame, signal, rng.random(n) + 0.1


REGRESSOR, CLASSIFIER = GradientBoostingRegressor, GradientBoostingClassifier
CASES = {
    "squared": (REGRESSOR, {}, "numbers", False),
    "weights": (REGRESSOR, {"min_samples_leaf": 3}, "numbers", True),
    "whole weights": (REGRESSOR, {"min_samples_leaf": 5}, "numbers", "integer"),
    "absolute": (REGRESSOR, {"loss": "absolute_error"}, "numbers", False),
    "absolute, weights": (REGRESSOR, {"loss": "absolute_error"}, "numbers", True),
    "huber": (REGRESSOR, {"loss": "huber"}, "numbers", True),
    "quantiles": (REGRESSOR, {"loss": "quantile", "alpha": [0.1, 0.5]}, "numbers", False),
    "poisson": (REGRESSOR, {"loss": "poisson"}, "positive", False),
    "gamma": (REGRESSOR, {"loss": "gamma"}, "positive", True),
    "tweedie": (REGRESSOR, {"loss": "tweedie"}, "positive", False),
    "logistic": (CLASSIFIER, {}, "classes", False),
    "exponential": (CLASSIFIER, {"loss": "exponential"}, "classes", False),
    "balanced": (CLASSIFIER, {"class_weight": "balanced"}, "classes", False),
    "softmax": (CLASSIFIER, {"max_leaf_nodes": 6}, "labels", True),
    "stopping": (CLASSIFIER, {"early_stopping": True, "n_iter_no_change": 2}, "classes", False),
    "level by level": (CLASSIFIER, {"growth": "level_wise", "max_depth": 4}, "classes", False),
    "oblivious": (CLASSIFIER, {"growth": "oblivious", "min_samples_leaf": 30}, "classes", False),
    "monotone": (REGRESSOR, {"monotonic_cst": {"a": 1, "b": -1}}, "numbers", False),
    "oblivious, monotone": (
        *(REGRESSOR, {"monotonic_cst": {"a": 1}, "growth": "oblivious"}),
        *("numbers", False),
    ),
    "interactions, L1": (
        *(REGRESSOR, {"interaction_cst": [[0, 1], [2, 3, 4]], "l1_regularization": 1.0}),
        *("numbers", False),
    ),
    "columns": (
        CLASSIFIER,
        {"max_features": 0.6, "max_features_tree": 0.8, "max_features_level": 0.9},
        "classes",
        False,
    ),
    "rows": (CLASSIFIER, {"subsample": 0.6}, "classes", True),
    "rows by gradient": (CLASSIFIER, {"subsample": 0.4, "sampling": "gradient"}, "classes", False),
    "quantile by gradient": (
        *(REGRESSOR, {"subsample": 0.4, "sampling": "gradient", "loss": "quantile"}),
        *("numbers", False),
    ),
    "few": (REGRESSOR, {"min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 8}, "n", False),
}


@pytest.mark.parametrize("name", CASES)
def test_workers_fit_the_model_of_one_process(name):
    kind, params, target, weighted = CASES[name]
    n = 120 if name == "few" else 900
    X, signal, weights = make_rows(n)
    y = {
        "positive": np.exp(signal / 4),
        "classes": np.where(signal > 1, "yes", "no"),
        "labels": np.digitize(signal, [0, 2]),
    }.get(target, signal)
    weights = np.ceil(3 * weights) if weighted == "integer" else weights if weighted else None
    common = {"n_estimators": 6, "n_jobs": 2, **params}
    one_process = fit_on_one_worker(kind(**common), X, y, weights)
    rng = np.random.default_rng(len(name))
    for n_workers in (1, 2, 3, 5):
        blocks = assign_rows(n, n_workers, rng)
        if n_workers == 5:
            # One worker has no rows.
            blocks[1], blocks[2] = (
                np.sort(np.concatenate(blocks[1:3])),
                blocks[2][:0],
            )
        for model in fit_on_workers(lambda: kind(**common), blocks, X, y, weights):
            assert_same(one_process, model)
            assert "_workers" not in vars(model)


def test_workers_have_their_own_validation_rows():
    X, y, _ = make_rows(800)
    common = {"n_estimators": 8, "early_stopping": True, "n_iter_no_change": 3}
    X_eval, y_eval, _ = make_rows(200, seed=1)
    one_process = fit_on_one_worker(REGRESSOR(**common), X, y, eval_set=(X_eval, y_eval))
    blocks = assign_rows(800, 3, np.random.default_rng(0))
    sets = [(X_eval[:150], y_eval[:150]), (X_eval[:0], y_eval[:0]), (X_eval[150:], y_eval[150:])]
    for model in fit_on_workers(lambda: REGRESSOR(**common), blocks, X, y, eval_set=sets):
        assert_same(one_process, model)


@pytest.mark.parametrize("loss", ["ndcg", "pairwise"])
def test_workers_fit_the_ranker_of_one_process(loss):
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 12, 60)
    X = rng.normal(size=(sizes.sum(), 5))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) * 0.5 + 1), 0, 3)
    ends = np.r_[0, np.cumsum(sizes)]
    bounds = [0, 20, 20, 60]  # of the groups; the second worker has no rows
    blocks = [np.arange(ends[a], ends[b]) for a, b in pairwise(bounds)]
    groups = [sizes[a:b] for a, b in pairwise(bounds)]
    common = {"loss": loss, "n_estimators": 5, "min_samples_leaf": 5}
    one_process = fit_on_one_worker(GradientBoostingRanker(**common), X, y, group=sizes)
    models = fit_on_workers(lambda: GradientBoostingRanker(**common), blocks, X, y, group=groups)
    for model in models:
        assert_same(one_process, model)


@pytest.mark.parametrize("early_stopping", [False, True])
@pytest.mark.parametrize("kind", [REGRESSOR, CLASSIFIER])
def test_fit_continues_from_a_tree(kind, early_stopping):
    X, y, _ = make_rows(600)
    y = y if kind is REGRESSOR else np.digitize(y, [0, 2])
    common = {
        "n_estimators": 9,
        "subsample": 0.7,
        "early_stopping": early_stopping,
        "n_iter_no_change": 4,
    }
    blocks = assign_rows(600, 2, np.random.default_rng(1))
    stored_rounds = []

    def keep(n_rounds, store, booster):
        per_round = len(store) // n_rounds
        stored_rounds.append(
            pickle.dumps(store.part(per_round * (n_rounds - 1), per_round * n_rounds))
        )

    one_process = fit_on_workers(lambda: kind(**common), blocks, X, y, after_round=[keep, None])[0]
    start = pickle.loads(stored_rounds[0])
    for stored in stored_rounds[1:5]:
        start.extend(pickle.loads(stored))
    assert isinstance(start, ForestStore)
    other_blocks = assign_rows(600, 3, np.random.default_rng(2))
    for model in fit_on_workers(lambda: kind(**common), other_blocks, X, y, start=[[start]] * 3):
        assert_same(one_process, model)


FOLDS = {
    "numbers": (REGRESSOR, {}, "numbers", False),
    "weights": (REGRESSOR, {}, "numbers", True),
    "median": (REGRESSOR, {"loss": "absolute_error"}, "numbers", False),
    "quantiles": (REGRESSOR, {"loss": "quantile", "alpha": [0.1, 0.9]}, "numbers", False),
    "monotone": (REGRESSOR, {"monotonic_cst": {"a": 1}}, "numbers", False),
    "classes": (CLASSIFIER, {}, "classes", False),
    "labels": (CLASSIFIER, {}, "labels", True),
    "labels, one growth": (CLASSIFIER, {"growth": "level_wise", "n_folds": 4}, "labels", False),
    "given folds": (REGRESSOR, {"n_folds": 3, "n_estimators": 9, "early_stopping": True}, "n", 0),
    "one fold": (CLASSIFIER, {"n_folds": 1}, "labels", True),
}
QUICK = {"n_iter_no_change": 3, "learning_rate": 0.3, "n_jobs": 2}


@pytest.mark.parametrize("name", FOLDS)
def test_automatic_settings_equal_those_of_one_process(name):
    kind, params, target, weighted = FOLDS[name]
    X, signal, weights = make_rows(310)
    y = {
        "classes": np.where(signal > 1, "yes", "no"),
        "labels": np.digitize(signal, [0, 2]),
    }.get(target, signal)
    weights = weights if weighted else None
    common = {**QUICK, **params}
    one_process = fit_on_one_worker(kind(**common), X, y, weights)
    assert one_process.fitted_model().n_boosters == {"given folds": 3, "one fold": 1}.get(
        name, params.get("n_folds", 8)
    )
    rng = np.random.default_rng(len(name))
    for n_workers in (2, 3):
        blocks = assign_rows(310, n_workers, rng)
        if n_workers == 3:
            # One worker has no rows.
            blocks[1], blocks[2] = (
                np.sort(np.concatenate(blocks[1:])),
                blocks[2][:0],
            )
        for model in fit_on_workers(lambda: kind(**common), blocks, X, y, weights):
            assert_same(one_process, model)
            if kind is REGRESSOR:
                actual, expected = (fitted.predict_interval(X) for fitted in (model, one_process))
            else:
                actual, expected = (fitted.predict_set(X) for fitted in (model, one_process))
            assert np.array_equal(actual, expected)


@pytest.mark.parametrize("n_folds", ["auto", 3, 1])
def test_automatic_settings_of_rankers_equal_those_of_one_process(n_folds):
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 9, 50)
    X = rng.normal(size=(sizes.sum(), 4))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=len(X)) * 0.5 + 1), 0, 3)
    names = rng.permutation(50).repeat(sizes)  # consecutive rows, in any order
    ends = np.r_[0, np.cumsum(sizes)]
    bounds = [0, 20, 20, 50]  # of the groups; the second worker has no rows
    blocks = [np.arange(ends[a], ends[b]) for a, b in pairwise(bounds)]
    common = {"n_folds": n_folds, **QUICK}
    one_process = fit_on_one_worker(GradientBoostingRanker(**common), X, y, group=names)
    assert one_process.fitted_model().n_boosters == (8 if n_folds == "auto" else n_folds)
    groups = [names[block] for block in blocks]
    models = fit_on_workers(lambda: GradientBoostingRanker(**common), blocks, X, y, group=groups)
    for model in models:
        assert_same(one_process, model)


@pytest.mark.parametrize("n_rounds_kept", [1, 12, 30, 40, 63])
def test_fit_with_folds_continues_from_a_tree(n_rounds_kept):
    """Continue a fit inside a fold, with the first or the second kind of trees."""
    X, y, _ = make_rows(300)
    common = {"n_folds": 3, "n_iter_no_change": 4, "learning_rate": 0.4, "n_estimators": 11}
    common |= {"early_stopping": True, "subsample": 0.7}

    def create():
        return REGRESSOR(**common)

    def both_growths(*given, **options):
        first = boosting_rules.resolve_settings(*given, **options)[0]
        return [replace(first, growth=kind) for kind in ("best_first", "oblivious")]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boosting, "resolve_settings", both_growths)
        blocks = assign_rows(300, 2, np.random.default_rng(1))
        stores, boosters_seen = [], []

        def keep(n_rounds, store, booster):
            if len(boosters_seen) == n_rounds_kept:
                return
            boosters_seen.append(booster)
            stores[booster:] = [store.part(0, n_rounds)]

        one_process = fit_on_workers(create, blocks, X, y, after_round=[keep, None])[0]
        assert_same(fit_on_one_worker(create(), X, y), one_process)
        assert len(boosters_seen) == n_rounds_kept
        other_blocks = assign_rows(300, 3, np.random.default_rng(2))
        for model in fit_on_workers(create, other_blocks, X, y, start=[stores] * 3):
            assert_same(one_process, model)


def test_held_out_rows_are_sampled_like_by_one_process(monkeypatch):
    monkeypatch.setattr(_out_of_fold, "MOST_ROWS", 90)
    X, y, _ = make_rows(400)
    common = {"n_folds": 3, "n_estimators": 5, "early_stopping": True}
    one_process = fit_on_one_worker(REGRESSOR(**common), X, y)
    assert len(one_process._held_out) == 90
    blocks = assign_rows(400, 3, np.random.default_rng(0))
    for model in fit_on_workers(lambda: REGRESSOR(**common), blocks, X, y):
        assert_same(one_process, model)


def test_few_exchanges_per_tree():
    X, y, _ = make_rows(3000)
    X = X.drop(columns="kind").to_numpy()
    counts = []
    for n_rounds in (2, 12):
        exchanges = ThreadExchange.of(2)
        blocks = assign_rows(3000, 2, np.random.default_rng(0))
        fit_on_workers(
            lambda n=n_rounds: REGRESSOR(n_estimators=n), blocks, X, y, exchanges=exchanges
        )
        counts.append(exchanges[0].n_exchanges)
    assert (counts[1] - counts[0]) / 10 <= 15


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_random_trees_equal_those_of_one_process(seed):
    """Small tables with tied gains, small nodes, and trees that reach a limit or not."""
    rng = np.random.default_rng(seed)
    n, n_columns = int(rng.choice([40, 200, 900])), int(rng.integers(1, 6))
    X = rng.normal(size=(n, n_columns))
    if rng.random() < 0.6:
        X = np.round(X * rng.choice([1, 3, 30]))
    X[rng.random(X.shape) < rng.choice([0, 0.1])] = np.nan
    X_filled = np.nan_to_num(X)
    y = X_filled[:, 0] * X_filled[:, -1] + rng.normal(size=n) * rng.choice([0, 0.1, 2])
    kind, params = [
        (REGRESSOR, {}),
        (REGRESSOR, {"loss": "poisson"}),
        (CLASSIFIER, {}),
    ][rng.integers(3)]
    y = (y > 0).astype(int) if kind is CLASSIFIER else np.exp(np.clip(y, -3, 3)) if params else y
    params |= {
        "n_estimators": 3,
        "max_leaf_nodes": int(rng.choice([2, 3, 7, 31, 60])),
        "min_samples_leaf": int(rng.choice([1, 5, 20])),
        "growth": str(rng.choice(["best_first", "level_wise"])),
        "learning_rate": float(rng.choice([0.1, 1.0])),
        "n_jobs": 1,
    }
    weights = [None, rng.random(n) + 0.01, rng.integers(1, 4, n).astype(float)][rng.integers(3)]
    one_process = fit_on_one_worker(kind(**params), X, y, weights)
    blocks = assign_rows(n, int(rng.integers(2, 5)), rng)
    for model in fit_on_workers(lambda: kind(**params), blocks, X, y, weights):
        assert_same(one_process, model)


def test_bins_from_samples_equal_those_of_one_process():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=201_000), rng.integers(0, 1000, 201_000)])
    y = X[:, 0] + X[:, 1] / 500
    common = {"n_estimators": 2, "early_stopping": False, "max_leaf_nodes": 4}
    one_process = fit_on_one_worker(REGRESSOR(**common), X, y)
    blocks = [np.arange(150_000), np.arange(150_000, 201_000)]
    for model in fit_on_workers(lambda: REGRESSOR(**common), blocks, X, y):
        assert_same(one_process, model)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"early_stopping": True, "n_iter_no_change": 2},
        {"loss": "absolute_error"},
        {"loss": "huber", "early_stopping": True},
        {"subsample": 0.5},
        {"subsample": 0.5, "sampling": "gradient"},
        {"growth": "oblivious", "max_leaf_nodes": 8},
        {"growth": "level_wise", "min_samples_leaf": 3000},
    ],
)
@pytest.mark.parametrize("kind", ["counts", "halves", "any numbers", "weighted"])
def test_many_rows_with_packed_targets_equal_one_process(kind, params):
    """Use sums instead of derivatives, and targets of 1, 4 or 8 bytes.

    This needs more than 65,536 rows. With one byte, columns of large nodes are copied.
    """
    rng = np.random.default_rng(2)
    n = 70_000
    X = np.column_stack([rng.normal(size=(n, 3)), np.full(n, 2.0), rng.integers(0, 4, n)])
    X[::11, 1] = np.nan
    y = X[:, 0] + X[:, 4] + rng.normal(size=n)
    y = {"counts": np.clip(np.round(y), 0, 9), "halves": np.round(2 * y) / 2}.get(kind, y)
    weights = rng.uniform(0.5, 2, n) if kind == "weighted" else None
    common = {"n_estimators": 3, "early_stopping": False, "max_leaf_nodes": 9, **params}
    one_process = fit_on_one_worker(REGRESSOR(n_folds=1, **common), X, y, weights)
    blocks = [np.arange(20_000), np.arange(20_000, 20_000), np.arange(20_000, n)]
    for model in fit_on_workers(lambda: REGRESSOR(**common), blocks, X, y, weights):
        assert_same(one_process, model)


def test_more_columns_are_split_on_than_are_copied():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(70_000, 7))
    # The best split of the root uses one column after the other.
    y = (X > 1.5) @ (3.0 ** np.arange(7)) + rng.normal(size=70_000) > 20
    common = {"n_estimators": 12, "early_stopping": False, "max_leaf_nodes": 2, "learning_rate": 1}
    one_process = fit_on_one_worker(CLASSIFIER(n_folds=1, **common), X, y)
    assert np.count_nonzero(one_process.feature_importances_) > 3
    for n_jobs in (1, 2):
        blocks = [np.arange(30_000), np.arange(30_000, 70_000)]
        for model in fit_on_workers(lambda n=n_jobs: CLASSIFIER(n_jobs=n, **common), blocks, X, y):
            assert_same(one_process, model)


def test_many_rows_of_three_classes_equal_one_process():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70_000, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=70_000), [-1, 1])
    common = {"n_estimators": 2, "early_stopping": True, "max_leaf_nodes": 5}
    one_process = fit_on_one_worker(CLASSIFIER(n_folds=1, **common), X, y)
    blocks = [np.arange(30_000), np.arange(30_000, 70_000)]
    for model in fit_on_workers(lambda: CLASSIFIER(**common), blocks, X, y):
        assert_same(one_process, model)


def sketch_tables(n):
    """Yield tables with several distributions, and classes that depend on the columns."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        Z = rng.normal(size=(n, 6))
        score = Z[:, 0] + np.sin(2 * Z[:, 2]) + Z[:, 3] ** 2 - 1 + np.maximum(Z[:, 0], 0) * Z[:, 1]
        y = (score + rng.logistic(size=n) > 0).astype(int)
        yield "normal", Z, y
        yield "skewed", np.exp(2 * Z), y
        yield "heavy tails", Z / np.abs(rng.normal(size=Z.shape)), y
        yield "few values", np.round(Z * [1, 2, 4, 8, 50, 1]), y


def test_bins_from_a_sample_hardly_increase_the_loss(monkeypatch):
    """With bins from a fifth of the rows, the test loss increases by less than 0.2 %."""
    n, n_sampled = 20_000, 4_000
    common = {"n_estimators": 60, "learning_rate": 0.1, "max_leaf_nodes": 15, "subsample": 1.0}
    common |= {"early_stopping": False, "min_samples_leaf": 50, "max_features": 1.0}
    all_rows = agreement._core.sample_rows

    def some_rows(n_rows):
        rng = np.random.default_rng(0)
        return np.sort(rng.choice(n_rows, n_sampled, replace=False)).astype(np.uint64)

    increases = []
    for name, X, y in sketch_tables(2 * n):
        losses = []
        for sample in (all_rows, some_rows):
            monkeypatch.setattr(agreement._core, "sample_rows", sample)
            blocks = [np.arange(n // 3), np.arange(n // 3, n)]
            model = fit_on_workers(lambda: CLASSIFIER(**common), blocks, X[:n], y[:n])[0]
            losses.append(log_loss(y[n:], model.predict_proba(X[n:])))
        increases.append(losses[1] / losses[0] - 1)
        print(
            f"{name}: {losses[0]:.5f} exact, {losses[1]:.5f} sampled, {100 * increases[-1]:+.3f} %"
        )
    assert max(increases) < 0.002
    # Bins and models differ for these rows.
    assert np.count_nonzero(increases) >= 6


# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_bins": None}, "max_bins=None"),
        ({"scoring": "r2"}, "scoring"),
        ({"warm_start": True}, "warm_start"),
        ({"max_set_categories": 2}, "max_set_categories=2.*column 4"),
        ({"learning_rate": -1.0}, "learning_rate"),
    ],
)
def test_unsupported_options_raise_on_every_worker(params, message):
    X, y, _ = make_rows(100)
    blocks = assign_rows(100, 2, np.random.default_rng(0))
    for error in fit_on_workers(lambda: REGRESSOR(n_estimators=2, **params), blocks, X, y):
        assert isinstance(error, ValueError), repr(error)
        with pytest.raises(ValueError, match=message):
            raise error


def test_tables_with_other_columns_raise():
    X, y, _ = make_rows(100)
    blocks = [np.arange(50), np.arange(50, 100)]
    wider = [X[:50], X[50:].assign(more=1.0)]
    numbers = [X[:50], X[50:].assign(kind=1.0)]
    for frames, message in ((wider, "same columns"), (numbers, "'kind'")):
        exchanges = ThreadExchange.of(2)
        errors = run_in_threads(
            [
                lambda k=k, frames=frames, exchanges=exchanges: fit_worker(
                    *(REGRESSOR(n_estimators=2), frames[k], y[blocks[k]]),
                    exchange=exchanges[k],
                    row_ranges=row_ranges_of(blocks[k]),
                    seed=0,
                )
                for k in range(2)
            ]
        )
        for error in errors:
            with pytest.raises(ValueError, match=message):
                raise error


class _Billions(ThreadExchange):
    """An exchange that adds 2**30 rows to the row count."""

    def add(self, values):
        super().add(values)
        if values.tolist() == [100]:  # the row count
            values += 2**30


def test_too_many_rows_raise():
    X, y, _ = make_rows(100)
    exchanges = [_Billions(one._group, one.rank) for one in ThreadExchange.of(2)]
    errors = fit_on_workers(
        lambda: REGRESSOR(n_estimators=2),
        assign_rows(100, 2, np.random.default_rng(0)),
        X,
        y,
        exchanges=exchanges,
    )
    for error in errors:
        with pytest.raises(ValueError, match=r"X: expected fewer than 2\*\*30 rows, got"):
            raise error


def test_workers_without_any_rows_raise():
    for error in fit_on_workers(REGRESSOR, [np.arange(0)] * 2, np.empty((0, 2)), np.empty(0)):
        with pytest.raises(ValueError, match="at least one row"):
            raise error


def test_error_of_one_worker_stops_the_others():
    X, y, _ = make_rows(200)

    def fail(n_rounds, store, booster):
        if n_rounds == 2:
            raise KeyError("enough")

    blocks = assign_rows(200, 3, np.random.default_rng(0))
    results = fit_on_workers(
        lambda: REGRESSOR(n_estimators=50), blocks, X, y, after_round=[None, fail, None]
    )
    assert isinstance(results[1], KeyError)
    assert isinstance(results[0], ExchangeError)
    assert isinstance(results[2], ExchangeError)


def test_callback_of_one_worker_stops_all():
    X, y, _ = make_rows(200)
    models = fit_on_workers(
        lambda: REGRESSOR(n_estimators=50, callbacks=lambda done, total: done >= 20),
        *(assign_rows(200, 2, np.random.default_rng(0)), X, y),
    )
    assert [model.n_estimators_ for model in models] == [20, 20]


# ------------------------------------------------------------------------------------------- totals


def test_totals_are_correct_and_equal_for_any_partition():
    rng = np.random.default_rng(0)
    values = np.r_[rng.normal(size=400) * 1e6, rng.normal(size=100), 0.0, -0.0]
    weights = rng.random(502) + 0.01
    single = Totals()
    assert single.mean(values, None)[0] == pytest.approx(values.mean(), rel=1e-14)
    weighted = np.average(values, weights=weights)
    assert single.mean(values, weights)[0] == pytest.approx(weighted, rel=1e-13)
    for level in (0.001, 0.3, 0.5, 0.999):
        assert single.quantile(values, None, level) == np.quantile(values, level)
        expected = np.quantile(values, level, weights=weights, method="inverted_cdf")
        assert single.quantile(values, weights, level) == expected

    def statistics(totals, rows):
        return (
            totals.mean(values[rows], None)[0],
            totals.mean(values[rows], weights[rows])[0],
            totals.quantile(values[rows], None, 0.3),
            totals.quantile(values[rows], weights[rows], 0.7),
            totals.class_weights(rows % 3, weights[rows], 3).tolist(),
        )

    expected = statistics(single, np.arange(502))
    for n_workers in (2, 5):
        exchanges = ThreadExchange.of(n_workers)
        blocks = assign_rows(502, n_workers, rng)
        results = run_in_threads(
            [
                lambda exchange=exchange, rows=rows: statistics(Totals(exchange), rows)
                for exchange, rows in zip(exchanges, blocks, strict=True)
            ]
        )
        assert results == [expected] * n_workers


def test_row_numbers_of_ranges():
    assert RowNumbers([(0, 10), (2, 3)]).of(4).tolist() == [10, 11, 3, 4]
    assert RowNumbers().of(2).tolist() == [0, 1]
    assert RowNumbers([(0, 5)]).of(0).tolist() == []


# ------------------------------------------------------------------------------------------ sockets


def connected(n, work, token=b"0123456789abcdef"):
    """Call work(exchange) for each of n workers connected by sockets, in threads."""
    listeners = [SocketExchange.listen() for _ in range(n)]
    addresses = [run_worker.getsockname() for run_worker in listeners]

    def run_worker(rank):
        exchange = SocketExchange(listeners[rank], rank, addresses, token, timeout=LIMIT)
        try:
            return work(exchange)
        finally:
            exchange.close()

    return run_in_threads([lambda rank=rank: run_worker(rank) for rank in range(n)])


@pytest.mark.parametrize("n_workers", [1, 2, 3, 4, 5, 7])
@pytest.mark.parametrize("size", [0, 1, 1000, 100_003])
def test_sockets_reduce_and_gather(n_workers, size):
    def work(exchange):
        rng = np.random.default_rng(exchange.rank)
        integers = rng.integers(-(2**40), 2**40, size)
        floats = rng.normal(size=size)
        exchange.add(integers)
        exchange.max(floats)
        return integers.tobytes(), floats.tobytes(), exchange.gather(bytes([exchange.rank]) * 3)

    streams = [np.random.default_rng(rank) for rank in range(n_workers)]
    integers = sum(rng.integers(-(2**40), 2**40, size) for rng in streams)
    floats = np.max([rng.normal(size=size) for rng in streams], axis=0)
    messages = [bytes([rank]) * 3 for rank in range(n_workers)]
    expected = (np.asarray(integers).tobytes(), floats.tobytes(), messages)
    assert connected(n_workers, work) == [expected] * n_workers


def test_different_calls_of_workers_raise():
    def work(exchange):
        exchange.add(np.zeros(3 + exchange.rank, dtype=np.int64))

    for error in connected(2, work):
        assert isinstance(error, ExchangeError)


def test_unknown_connections_are_rejected():
    listeners = [SocketExchange.listen() for _ in range(2)]
    addresses = [one.getsockname() for one in listeners]
    with socket.create_connection(addresses[0]) as stranger:
        stranger.sendall(b"x" * 100)

        def work(rank):
            exchange = SocketExchange(listeners[rank], rank, addresses, b"a" * 16, timeout=LIMIT)
            values = np.array([rank + 1])
            exchange.add(values)
            exchange.close()
            return values.tolist()

        assert run_in_threads([lambda: work(0), lambda: work(1)]) == [[3], [3]]
    with pytest.raises(ValueError, match="token"):
        SocketExchange(SocketExchange.listen(), 0, [("127.0.0.1", 1)], b"short")
    with pytest.raises(ValueError, match="rank"):
        SocketExchange(SocketExchange.listen(), 2, [("127.0.0.1", 1)], b"a" * 16)


def test_workers_in_processes_and_a_lost_worker():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 3)), rng.normal(size=500)
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for rank in range(3):
        our_end, their_end = context.Pipe()
        process = context.Process(target=fit_in_process, args=(rank, their_end), daemon=True)
        process.start()
        their_end.close()
        pipes.append(our_end)
        processes.append(process)
    results = {False: [], True: []}
    for killed in (False, True):
        addresses = [pipe.recv() for pipe in pipes]
        for pipe, rows in zip(pipes, assign_rows(500, 3, rng), strict=True):
            pipe.send((addresses, X, y, rows))
        for rank, pipe in enumerate(pipes):
            assert pipe.poll(LIMIT)
            if killed and rank == 1:
                with pytest.raises(EOFError):
                    pipe.recv()
            else:
                results[killed].append(pipe.recv())
    for process in processes:
        process.join(LIMIT)
        assert not process.is_alive()
    one_process = fit_on_one_worker(REGRESSOR(n_estimators=6), X, y)
    for model in results[False]:
        assert_same(one_process, model)
    assert results[True] == ["another worker was lost"] * 2
