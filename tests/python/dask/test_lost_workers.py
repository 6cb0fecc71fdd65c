"""Fits continue when workers or the scheduler are lost, and from checkpoints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney import ensemble
from support.waiting import LIMIT
from support.workers import assert_same

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from spinney.dask import _boost_driver, _boost_task  # noqa: E402
from support.dask_rows import ROUNDS_8, ROUNDS_10, Interrupt, X, Y, blocks  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


THREE_FOLDS = {
    "n_folds": 3, "early_stopping": True, "n_estimators": 60, "n_iter_no_change": 8, "tol": 0.0,
    "learning_rate": 0.02, "random_state": 5, "subsample": 0.8,
}  # fmt: skip


@pytest.mark.parametrize("n_before", [9, 100, 170])
def test_fit_continues_from_a_checkpoint_of_folds(n_before, monkeypatch, tmp_path):
    """The checkpoint may be in the middle of a fold: folds are fitted one after the other."""
    local = ensemble.GradientBoostingRegressor(**THREE_FOLDS).fit(X, Y)
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
            assert is_saved.wait(LIMIT)

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
        sd.GradientBoostingRegressor(**THREE_FOLDS).fit(blocks(X), Y, checkpoint=checkpoint)
    monkeypatch.undo()
    half = spinney.load(checkpoint)
    assert n_before <= sum(map(len, half._checkpoint_trees)) <= n_before + 3
    assert half.n_estimators_ * half.fitted_model().n_boosters == len(half.fitted_model().store)
    assert np.isfinite(half.predict(X)).all()
    seen = []
    again = sd.GradientBoostingRegressor(
        callbacks=lambda done, total: seen.append((done, total)), **THREE_FOLDS
    ).fit(blocks(X), Y, checkpoint=checkpoint)
    assert_same(local, again.to_local())
    assert_same(local, spinney.load(checkpoint))
    assert seen == sorted(set(seen))
    finished = sd.GradientBoostingRegressor(**THREE_FOLDS).fit(blocks(X), Y, checkpoint=checkpoint)
    assert_same(local, finished.to_local())


def test_checkpoint_of_other_rows_raises(tmp_path):
    checkpoint = tmp_path / "half.spinney"
    names = pd.DataFrame(X, columns=list("abcd"))
    sd.GradientBoostingRegressor(**ROUNDS_10).fit(names, Y, checkpoint=checkpoint)
    for rows, target, params, message in (
        (names, Y + 1, {}, "sum of y"),
        (names[:-9], Y[:-9], {}, "n_rows 900"),
        (names.rename(columns={"a": "q"}), Y, {}, "columns"),
        (names, Y, {"random_state": 6}, "random_state=5, got 6"),
    ):
        model = sd.GradientBoostingRegressor(**{**ROUNDS_10, **params})
        with pytest.raises(ValueError, match=message):
            model.fit(rows, target, checkpoint=checkpoint)
    longer_params = {**ROUNDS_10, "n_estimators": 14}
    longer = sd.GradientBoostingRegressor(**longer_params).fit(names, Y, checkpoint=checkpoint)
    assert_same(
        ensemble.GradientBoostingRegressor(n_folds=1, **longer_params).fit(names, Y), longer
    )
    with pytest.raises(ValueError, match="writable folder"):
        sd.GradientBoostingRegressor(**ROUNDS_10).fit(X, Y, checkpoint=tmp_path / "no" / "m")


ROUNDS_150 = {"n_estimators": 150, "max_leaf_nodes": 31, "early_stopping": False, "random_state": 5}


def long_rows():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12_000, 10))
    return rows, rows[:, 0] + rows[:, 1] ** 2 + rng.normal(size=12_000)


@pytest.mark.parametrize("out_of_core", [False, True])
def test_killed_worker_does_not_change_the_model(cluster, out_of_core):
    rows, target = long_rows()
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_150).fit(rows, target)
    victims = list(cluster.run(os.getpid).values())[-1:]
    seen = []

    def kill_worker(done, total):
        seen.append(done)
        if done >= 30 and victims:
            os.kill(victims.pop(), signal.SIGKILL)

    ours = sd.GradientBoostingRegressor(callbacks=kill_worker, **ROUNDS_150)
    lazy = da.from_array(rows, chunks=(2500, 10))
    ours.fit(lazy, target, out_of_core=out_of_core)
    assert ours._dask_losses >= 1
    assert not victims
    assert_same(local, ours.to_local())
    assert seen == sorted(set(seen))  # no round is reported twice


def test_worker_killed_between_folds_does_not_change_the_model(cluster):
    rows, target = long_rows()
    params = {**ROUNDS_150, "n_estimators": 80, "n_iter_no_change": 80, "n_folds": 3}
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


def test_only_worker_is_replaced_while_rows_are_read(tmp_path):
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
        model = sd.GradientBoostingRegressor(**ROUNDS_8).fit(rows, Y)
    assert model._dask_losses >= 1
    assert_same(
        ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_8).fit(X, Y), model.to_local()
    )


def test_repeatedly_lost_workers_raise(monkeypatch, tmp_path):
    def attempt(driver):
        driver.n_rounds = min(driver.n_rounds + 1, 20)
        raise _boost_driver._WorkerLost("it has left the cluster")

    monkeypatch.setattr(_boost_driver.BoostDriver, "_attempt", attempt)
    message = "after 20 finished rounds workers were lost 11 times: .* out_of_core=True"
    model = sd.GradientBoostingRegressor(**ROUNDS_8)
    with pytest.raises(RuntimeError, match=message):
        model.fit(blocks(X), Y)


def test_fit_continues_from_the_checkpoint_after_the_scheduler_is_lost(cluster, tmp_path):
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
         "--nthreads", "1", "--no-nanny", "--no-dashboard", "--death-timeout", "30"], **quiet,
    )  # fmt: skip
    checkpoint = tmp_path / "half.spinney"
    try:
        client = distributed.Client(
            scheduler_file=address_file, timeout=LIMIT, set_as_default=False
        )
        client.wait_for_workers(1, timeout=LIMIT)

        def kill_scheduler(done, total):
            if done >= 40:
                scheduler.kill()
                scheduler.wait()

        model = sd.GradientBoostingRegressor(callbacks=kill_scheduler, **ROUNDS_150)
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
    other = sd.GradientBoostingRegressor(**{**ROUNDS_150, "max_leaf_nodes": 15})
    with pytest.raises(ValueError, match="max_leaf_nodes=15"):
        other.fit(lazy, target, checkpoint=checkpoint)
    seen = []
    again = sd.GradientBoostingRegressor(
        callbacks=lambda done, total: seen.append(done), **ROUNDS_150
    )
    again.fit(lazy, target, checkpoint=checkpoint)
    assert seen[0] == half.n_estimators_ + 10
    local = ensemble.GradientBoostingRegressor(n_folds=1, **ROUNDS_150).fit(rows, target)
    assert_same(local, again.to_local())
    assert_same(local, spinney.load(checkpoint))
