"""Fits on several workers, which are threads of the test process."""

from __future__ import annotations

import threading

import numpy as np

from spinney.boosting import _validation_split
from spinney.boosting.distributed import FitInput, fit_partition
from spinney.distributed.exchange import ExchangeError, ThreadExchange
from spinney.distributed.totals import RowNumbers, Totals
from spinney.distributed.workers import Checkpoints, Workers

SEED = 7


def assign_rows(n_rows, n_workers, rng):
    """Return random row numbers of each worker; a worker may have none."""
    worker = rng.integers(0, n_workers, n_rows)
    if rng.random() < 0.5:
        worker.sort()
    return [np.flatnonzero(worker == k) for k in range(n_workers)]


def row_ranges_of(rows):
    """Return the start of each contiguous range: index at this worker, row number."""
    first = np.flatnonzero(np.r_[True, np.diff(rows) != 1]) if len(rows) else []
    return [(int(i), int(rows[i])) for i in first]


def split_rows(n_rows, n_folds, fraction, *, seed=0, numbers=None, **options):
    """Split rows as boosters do; return (training rows, validation rows) of each fold."""
    numbers = np.arange(n_rows) if numbers is None else numbers
    folds = _validation_split.split_rows(
        numbers, n_folds=n_folds, fraction=fraction, seed=seed, **options
    )
    return [(fold.train_rows, fold.validation_rows) for fold in folds]


def run_in_threads(functions):
    """Call each function in a separate thread; return their results or exceptions."""
    results = [None] * len(functions)

    def call(i):
        try:
            results[i] = functions[i]()
        except BaseException as error:  # returned to the test
            results[i] = error

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def fit_worker(
    estimator,
    X,
    y,
    *,
    exchange,
    row_ranges,
    seed=SEED,
    start=(),
    after_round=None,
    group=None,
    **options,
):
    """Fit one model as the worker with these rows; `options` are arguments of `FitInput`."""
    return fit_partition(
        estimator,
        FitInput(X, y, **options),
        Workers(Totals(exchange), RowNumbers(row_ranges), seed),
        group=group,
        checkpoints=Checkpoints(start, after_round),
    )


def fit_on_workers(make, blocks, X, y, weights=None, *, exchanges=None, **options):
    """Fit one model on several workers; return the results of all of them.

    Parameters
    ----------
    make : callable
        Create the estimator of a worker.
    blocks : list of ndarray of int
        Row numbers of each worker.
    options : dict of list
        Further arguments of `fit_worker`, one value for each worker.
    """
    exchanges = ThreadExchange.of(len(blocks)) if exchanges is None else exchanges

    def fit_rank(rank, rows):
        return fit_worker(
            make(),
            X.iloc[rows] if hasattr(X, "iloc") else X[rows],
            y[rows],
            exchange=exchanges[rank],
            row_ranges=row_ranges_of(rows),
            sample_weight=None if weights is None else weights[rows],
            **{name: value[rank] for name, value in options.items()},
        )

    results = run_in_threads(
        [lambda k=k, rows=rows: fit_rank(k, rows) for k, rows in enumerate(blocks)]
    )
    # A failed worker causes an ExchangeError at the others; return its own error instead.
    causes = [error for error in results if isinstance(error, (ValueError, TypeError))]
    return [causes[0] if isinstance(one, ExchangeError) and causes else one for one in results]


def fit_on_one_worker(model, X, y, weights=None, **options):
    """Fit a model to all rows on one worker, with the same seed as several workers."""
    model._draw_seed = lambda stream: SEED
    model.fit(X, y, *(() if weights is None else (weights,)), **options)
    del model._draw_seed
    return model


def assert_same(a, b):
    """Check that two models and their held-out predictions are bitwise equal."""
    assert not isinstance(b, BaseException), repr(b)
    left, right = a.fitted_model().store.core.state(), b.fitted_model().store.core.state()
    assert left.keys() == right.keys()
    for name, array in left.items():
        assert array.tobytes() == right[name].tobytes(), name
    for name in ("train_score_", "validation_score_"):
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    left, right = a.fitted_model(), b.fitted_model()
    assert left.baseline.tobytes() == right.baseline.tobytes()
    assert (left.n_rounds, left.n_boosters, a.growth_) == (
        right.n_rounds,
        right.n_boosters,
        b.growth_,
    )
    held, other = (vars(one).get("_held_out") for one in (a, b))
    assert (held is None) == (other is None)
    if held is None:
        return
    assert held.source == other.source
    np.testing.assert_array_equal(held.truth, other.truth)  # targets of -0 may be 0
    for name in ("predicted", "scale", "weights", "rows"):
        left, right = getattr(held, name), getattr(other, name)
        assert (left is None) == (right is None), name
        assert left is None or left.tobytes() == right.tobytes(), name
    codes = [None if one.categories is None else one.categories.codes for one in (held, other)]
    np.testing.assert_array_equal(*codes)
