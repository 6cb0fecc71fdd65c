"""What holds for rows in any parts."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.boosting._validation_split import split_rows
from spinney.distributed.exchange import ThreadExchange
from spinney.distributed.totals import Totals
from spinney.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from support.shards import assert_same, cut, fit_alone, fit_together, run


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
def test_any_parts_give_the_same_model(
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

        def make():
            return GradientBoostingClassifier(**common)
    else:

        def make():
            return GradientBoostingRegressor(loss=loss, **common)

    alone = fit_alone(make(), X, y, weights)
    for model in fit_together(make, cut(n_rows, n_workers, rng), X, y, weights):
        assert_same(alone, model)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(4, 200),
    n_workers=st.integers(1, 4),
    fraction=st.sampled_from([1, 0.1, 0.5]),
    n_classes=st.integers(1, 3),
)
def test_any_parts_watch_the_same_rows(seed, n_rows, n_workers, fraction, n_classes):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n_rows)
    every = split_rows(np.arange(n_rows), n_folds=1, fraction=fraction, classes=classes, seed=seed)[
        0
    ]
    learned, watched = every.train_rows, every.validation_rows
    assert sorted([*learned, *watched]) == list(range(n_rows))
    assert len(watched) == (fraction if isinstance(fraction, int) else np.ceil(fraction * n_rows))
    parts = cut(n_rows, n_workers, rng)
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = parts[rank]
        numbers, totals = rows.astype(np.uint64), Totals(exchanges[rank])
        fold = split_rows(
            numbers, n_folds=1, fraction=fraction, classes=classes[rows], seed=seed, totals=totals
        )[0]
        return rows[fold.validation_rows]

    told = run([lambda rank=rank: work(rank) for rank in range(n_workers)])
    assert sorted(np.concatenate(told)) == sorted(watched)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(8, 200),
    n_workers=st.integers(1, 4),
    n_folds=st.integers(2, 9),
    n_classes=st.integers(1, 3),
)
def test_any_parts_have_the_same_folds(seed, n_rows, n_workers, n_folds, n_classes):
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, n_rows)
    of_all = split_rows(
        np.arange(n_rows), n_folds=n_folds, fraction=0.1, classes=classes, seed=seed
    )
    assert len(of_all) == min(n_folds, n_rows)
    watched = [fold.validation_rows for fold in of_all]
    assert sorted(np.concatenate(watched)) == list(range(n_rows))
    assert np.ptp([len(one) for one in watched]) <= 1
    if np.bincount(classes, minlength=n_classes).min() >= n_folds:
        counts = [np.bincount(classes[one], minlength=n_classes) for one in watched]
        assert np.ptp(counts, axis=0).max() <= 1
    parts = cut(n_rows, n_workers, rng)
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = parts[rank]
        folds = split_rows(
            rows.astype(np.uint64),
            n_folds=n_folds,
            fraction=0.1,
            classes=classes[rows],
            seed=seed,
            totals=Totals(exchanges[rank]),
        )
        return [(rows[fold.train_rows], rows[fold.validation_rows]) for fold in folds]

    told = run([lambda rank=rank: work(rank) for rank in range(n_workers)])
    for k, fold in enumerate(of_all):
        assert sorted(np.concatenate([one[k][0] for one in told])) == fold.train_rows.tolist()
        assert sorted(np.concatenate([one[k][1] for one in told])) == fold.validation_rows.tolist()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    n_groups=st.integers(2, 40),
    n_workers=st.integers(1, 4),
    n_folds=st.integers(1, 5),
)
def test_any_parts_have_the_same_groups_in_a_fold(seed, n_groups, n_workers, n_folds):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(n_groups).repeat(rng.integers(1, 6, n_groups))
    of_all = split_rows(
        np.arange(len(groups)), n_folds=n_folds, fraction=0.3, groups=groups, seed=seed
    )
    assert len(of_all) == min(n_folds, n_groups)
    for fold in of_all:
        assert not set(groups[fold.train_rows]) & set(groups[fold.validation_rows])
    worker = rng.integers(0, n_workers, n_groups)[groups]
    parts = [np.flatnonzero(worker == k) for k in range(n_workers)]
    exchanges = ThreadExchange.of(n_workers)

    def work(rank):
        rows = parts[rank]
        folds = split_rows(
            rows.astype(np.uint64),
            n_folds=n_folds,
            fraction=0.3,
            groups=groups[rows],
            seed=seed,
            totals=Totals(exchanges[rank]),
        )
        return [rows[fold.validation_rows] for fold in folds]

    told = run([lambda rank=rank: work(rank) for rank in range(n_workers)])
    for k, fold in enumerate(of_all):
        assert sorted(np.concatenate([one[k] for one in told])) == fold.validation_rows.tolist()
