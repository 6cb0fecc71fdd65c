"""Properties of fits with any partition of the rows."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.distributed.exchange import ThreadExchange
from spinney.distributed.totals import Totals
from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from support.workers import (
    assert_same,
    assign_rows,
    fit_on_one_worker,
    fit_on_workers,
    run_in_threads,
    split_rows,
)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n_rows=st.integers(2, 150),
    n_workers=st.integers(1, 5),
    loss=st.sampled_from(["squared_error", "absolute_error", "huber", "log_loss"]),
    growth=st.sampled_from(["best_first", "level_wise", "oblivious"]),
    scale=st.sampled_from([1e-8, 1.0, 1e12]),
    weighted=st.booleans(),
    subsample=st.sampled_from([0.3, 1.0]),
)
def test_any_partition_gives_the_same_model(
    seed, n_rows, n_workers, loss, growth, scale, weighted, subsample
):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n_rows, 3)), 1)
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.round(rng.standard_cauchy(n_rows), 1) * scale
    weights = rng.exponential(size=n_rows) + 1e-3 if weighted else None
    common = {"n_estimators": 3, "growth": growth, "min_samples_leaf": 2, "subsample": subsample}
    if loss == "log_loss":
        y = rng.integers(0, 3, n_rows)

        def create():
            return GradientBoostingClassifier(**common)
    else:

        def create():
            return GradientBoostingRegressor(loss=loss, **common)

    one_process = fit_on_one_worker(create(), X, y, weights)
    for model in fit_on_workers(create, assign_rows(n_rows, n_workers, rng), X, y, weights):
        assert_same(one_process, model)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(4, 200),
    n_workers=st.integers(1, 4),
    fraction=st.sampled_from([1, 0.1, 0.5]),
    n_classes=st.integers(1, 3),
)
def test_any_partition_has_the_same_validation_rows(seed, n_rows, n_workers, fraction, n_classes):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n_rows)
    train_rows, validation_rows = split_rows(n_rows, 1, fraction, classes=classes, seed=seed)[0]
    assert sorted([*train_rows, *validation_rows]) == list(range(n_rows))
    assert len(validation_rows) == (
        fraction if isinstance(fraction, int) else np.ceil(fraction * n_rows)
    )
    blocks = assign_rows(n_rows, n_workers, rng)
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = blocks[rank]
        folds = split_rows(
            len(rows),
            1,
            fraction,
            classes=classes[rows],
            seed=seed,
            numbers=rows.astype(np.uint64),
            totals=Totals(exchanges[rank]),
        )
        return rows[folds[0][1]]

    validation_of_workers = run_in_threads(
        [lambda rank=rank: work(rank) for rank in range(n_workers)]
    )
    assert sorted(np.concatenate(validation_of_workers)) == sorted(validation_rows)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(8, 200),
    n_workers=st.integers(1, 4),
    n_folds=st.integers(2, 9),
    n_classes=st.integers(1, 3),
)
def test_any_partition_has_the_same_folds(seed, n_rows, n_workers, n_folds, n_classes):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n_rows)
    folds = split_rows(n_rows, n_folds, 0.1, classes=classes, seed=seed)
    assert len(folds) == min(n_folds, n_rows)
    all_validation_rows = [all_validation_rows for _, all_validation_rows in folds]
    assert sorted(np.concatenate(all_validation_rows)) == list(range(n_rows))
    assert np.ptp([len(fold) for fold in all_validation_rows]) <= 1
    if np.bincount(classes, minlength=n_classes).min() >= n_folds:
        counts = [np.bincount(classes[fold], minlength=n_classes) for fold in all_validation_rows]
        assert np.ptp(counts, axis=0).max() <= 1
    blocks = assign_rows(n_rows, n_workers, rng)
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = blocks[rank]
        own_folds = split_rows(
            len(rows),
            n_folds,
            0.1,
            classes=classes[rows],
            seed=seed,
            numbers=rows.astype(np.uint64),
            totals=Totals(exchanges[rank]),
        )
        return [
            (rows[train_rows], rows[validation_rows]) for train_rows, validation_rows in own_folds
        ]

    folds_of_workers = run_in_threads([lambda rank=rank: work(rank) for rank in range(n_workers)])
    for k, (train_rows, validation_rows) in enumerate(folds):
        assert (
            sorted(np.concatenate([fold[k][0] for fold in folds_of_workers])) == train_rows.tolist()
        )
        assert (
            sorted(np.concatenate([fold[k][1] for fold in folds_of_workers]))
            == validation_rows.tolist()
        )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_groups=st.integers(2, 40),
    n_workers=st.integers(1, 4),
    n_folds=st.integers(1, 5),
)
def test_any_partition_has_the_same_groups_in_a_fold(seed, n_groups, n_workers, n_folds):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(n_groups).repeat(rng.integers(1, 6, n_groups))
    folds = split_rows(len(groups), n_folds, 0.3, groups=groups, seed=seed)
    assert len(folds) == min(n_folds, n_groups)
    for train_rows, validation_rows in folds:
        assert not set(groups[train_rows]) & set(groups[validation_rows])
    worker = rng.integers(0, n_workers, n_groups)[groups]
    blocks = [np.flatnonzero(worker == k) for k in range(n_workers)]
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = blocks[rank]
        own_folds = split_rows(
            len(rows),
            n_folds,
            0.3,
            groups=groups[rows],
            seed=seed,
            numbers=rows.astype(np.uint64),
            totals=Totals(exchanges[rank]),
        )
        return [rows[validation_rows] for _, validation_rows in own_folds]

    folds_of_workers = run_in_threads([lambda rank=rank: work(rank) for rank in range(n_workers)])
    for k, (_, validation_rows) in enumerate(folds):
        assert (
            sorted(np.concatenate([folds_of_worker[k] for folds_of_worker in folds_of_workers]))
            == validation_rows.tolist()
        )
