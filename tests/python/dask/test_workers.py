"""Workers during and after fits: progress, cleanup, simultaneous fits and memory."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pandas as pd
import pytest

from spinney import ensemble
from support.waiting import LIMIT, wait_until
from support.workers import assert_same

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from spinney.dask._boost_task import METRIC  # noqa: E402
from spinney.dask._cluster import workers_of  # noqa: E402
from spinney.dask._rows import Part, join_partitions  # noqa: E402
from support.dask_rows import (  # noqa: E402
    CLASSES,
    ROUNDS_8,
    ROUNDS_10,
    Interrupt,
    X,
    Y,
    assert_clean,
    blocks,
)

pytestmark = pytest.mark.usefixtures("cluster")


def test_progress_bar_is_released_after_the_fit(monkeypatch):
    ended = []

    class Bar:
        def __init__(self, title):
            pass

        def __call__(self, done, total, score=None):
            pass

        def __del__(self):
            ended.append(True)

    monkeypatch.setattr("spinney.runtime.progress._FitBar", Bar)
    gc.collect()
    gc.disable()
    try:
        sd.GradientBoostingRegressor(**ROUNDS_8, verbose=1).fit(blocks(X), Y)
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
    assert all(n_rounds is None or n_rounds >= 10 for n_rounds in first)
    assert any(n_rounds is not None for n_rounds in first)
    assert set(cluster.run(rounds).values()) == {None}


def test_one_to_five_processes_fit_the_same_model(cluster):
    local_model = ensemble.GradientBoostingClassifier(n_estimators=8, n_folds=1, random_state=0)
    local_model.fit(X, CLASSES)
    cluster.cluster.scale(5)
    cluster.wait_for_workers(5, timeout=LIMIT)
    try:
        for n_workers in (1, 2, 3, 5):  # the number of partitions is the same
            rows = da.from_array(X, chunks=(-(-len(X) // n_workers), 4))
            model = sd.GradientBoostingClassifier(n_estimators=8, random_state=0).fit(rows, CLASSES)
            assert len(model.workers_) == n_workers
            assert_same(local_model, model.to_local())
    finally:
        cluster.cluster.scale(3)
        wait_until(lambda: len(workers_of(cluster)) == 3, "the cluster still has other workers")


def test_workers_stop_if_a_callback_raises(cluster):
    calls = []

    def interrupt(done, total):
        calls.append(done)
        raise Interrupt

    model = sd.GradientBoostingRegressor(
        n_estimators=100_000, early_stopping=False, callbacks=interrupt
    )
    with pytest.raises(Interrupt):
        model.fit(blocks(X), Y, out_of_core=True)
    assert_clean(cluster)  # without the interruption, the tasks would run for hours
    assert len(calls) == 1
    assert calls[0] < 100_000


def test_workers_clean_up_after_errors_in_the_rows(cluster):
    with pytest.raises(ValueError, match="NaN"):
        sd.GradientBoostingRegressor(**ROUNDS_10).fit(
            blocks(X), np.where(np.arange(900) == 500, np.nan, Y), out_of_core=True
        )
    with pytest.raises(ValueError, match="expected 900 rows"):
        sd.GradientBoostingRegressor(**ROUNDS_10).fit(blocks(X), Y[:-1], out_of_core=True)
    assert_clean(cluster)


def test_simultaneous_fits_run_in_turn_with_their_own_progress(cluster):
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_10).fit(X, Y)
    models, seen = {}, {0: [], 1: []}

    def fit(k):
        model = sd.GradientBoostingRegressor(
            callbacks=lambda done, total: seen[k].append(done), **ROUNDS_10
        )
        with cluster.as_current():
            models[k] = model.fit(blocks(X), Y)

    threads = [threading.Thread(target=fit, args=(k,)) for k in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in seen:
        assert_same(local, models[k].to_local())
        assert seen[k] == [10]
    assert_clean(cluster)


@pytest.mark.parametrize("n_tasks", [1, 4])
def test_boosting_within_tasks(cluster, n_tasks):
    """Tasks leave the thread pool while they wait, and fit one after the other."""
    # Local variables: a worker closes if a task refers to a module that it cannot import.
    rows, target, params = X, Y, ROUNDS_10

    def fit(seed):
        from spinney.dask import GradientBoostingRegressor

        model = GradientBoostingRegressor(**{**params, "random_state": seed})
        return model.fit(rows, target).predict(rows)

    predicted = cluster.gather([cluster.submit(fit, seed, pure=False) for seed in range(n_tasks)])
    for seed in range(n_tasks):
        local = ensemble.GradientBoostingRegressor(n_folds=1, **{**ROUNDS_10, "random_state": seed})
        np.testing.assert_array_equal(predicted[seed], local.fit(X, Y).predict(X))
    assert_clean(cluster)


def test_scheduler_stores_no_trees(cluster):
    sd.GradientBoostingRegressor(**ROUNDS_10).fit(blocks(X), Y)
    events = cluster.get_events()
    kept = [topic for topic in events if topic.startswith("spinney-boosting-")]
    assert not kept
    assert set(events["spinney-boosting"][-1][1]) == {"done", "total", "score", "worker"}


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_rows_in_files_need_less_memory_than_their_size(tmp_path):
    def peak_memory():  # nested, so pickled by value: workers cannot import this file
        with open("/proc/self/status") as file:
            return 1024 * int(next(line for line in file if line.startswith("VmHWM")).split()[1])

    n, d = 50_000, 24
    for i in range(20):
        rng = np.random.default_rng(i)
        frame = pd.DataFrame(rng.normal(size=(n, d)), columns=[f"c{k}" for k in range(d)])
        frame.assign(y=frame["c0"] * frame["c1"]).to_parquet(tmp_path / f"{i:02}.parquet")
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None
        ) as one_worker,
        distributed.Client(one_worker, set_as_default=False) as client,
        client.as_current(),
    ):
        model = sd.GradientBoostingRegressor(**{**ROUNDS_8, "early_stopping": False})
        model.fit(str(tmp_path / "00.parquet"), "y")
        (before,) = client.run(peak_memory).values()
        model.fit(str(tmp_path), "y")
        (after,) = client.run(peak_memory).values()
    assert model.workers_[0]["rows"] == 20 * n
    # Codes take one byte for each value, the rest about 30 bytes per row; a partition is 10 MB.
    assert after - before < 0.6 * 20 * n * (d + 1) * 8
