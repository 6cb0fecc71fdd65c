"""Errors for invalid rows, weights, partitions, clients and workers."""

from __future__ import annotations

import asyncio

import numpy as np
import pandas as pd
import pytest

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
import spinney.dask as sd  # noqa: E402
from spinney.dask import _boost_driver, _boost_task, _cluster  # noqa: E402
from support.dask_rows import (  # noqa: E402
    CLASSES,
    FULL,
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


def test_inconsistent_partitions_raise():
    frame = mixed_frame(60)
    for wrong, message in (
        (frame.rename(columns={"k": "q"}), "expected the columns"),
        (frame.assign(town=1.5), "column .town.* in all partitions"),
    ):
        lazy = dd.from_delayed(
            [delayed_frame(frame), delayed_frame(wrong)], meta=frame.iloc[:0], verify_meta=False
        )
        with pytest.raises(ValueError, match=message):
            sd.GradientBoostingRegressor(**ROUNDS_8).fit(lazy, "y")


def test_errors_name_the_invalid_input():
    rows = blocks(X)
    for call, message in (
        (lambda: sd.Ridge().fit(rows, Y[:-1]), "y: expected 900 rows"),
        (lambda: sd.Ridge().fit(rows, da.from_array(Y[:-1])), "y: expected 900 rows"),
        (lambda: sd.Ridge().fit(rows, "y"), "y='y': expected a column of X"),
        (lambda: sd.Ridge().fit(rows[:, 0], Y), "X: expected rows and columns"),
        (lambda: sd.Ridge().fit(rows, Y), "NaN"),
        (lambda: sd.Ridge(solver="sag").fit(blocks(FULL), Y), "solver='sag'"),
        (lambda: sd.Ridge().fit(blocks(FULL), Y, -WEIGHTS), "[Nn]egative"),
        (lambda: sd.LogisticRegression(l1_ratio=1).fit(rows, CLASSES), "l1_ratio=1"),
        (lambda: sd.LogisticRegression().fit(blocks(FULL), CLASSES == "other"), "one class"),
        (lambda: sd.GradientBoostingRegressor(max_bins=None).fit(rows, Y), "max_bins=None"),
        (lambda: sd.GradientBoostingRegressor().fit(rows, Y * np.nan), "NaN"),
        (lambda: sd.GradientBoostingRegressor().fit(rows[:0], Y[:0]), "at least one row"),
        (lambda: sd.GradientBoostingRegressor().fit(rows, Y, eval_set=X), "eval_set"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-WEIGHTS, "of at least 0, got -"),
        (WEIGHTS * np.nan, "of at least 0, got nan"),
        (WEIGHTS * 0, "no row of positive weight"),
        (np.full(900, "a"), "expected numbers"),
        (np.c_[WEIGHTS, WEIGHTS], "one axis, got 2"),
    ],
)
def test_errors_name_invalid_weights(weights, message):
    with pytest.raises(ValueError, match=f"sample_weight.*{message}"):
        sd.GradientBoostingRegressor(**ROUNDS_8).fit(blocks(X), Y, blocks(weights))


def test_asynchronous_client_raises(cluster):
    async def fit():
        address = cluster.scheduler.address
        async with distributed.Client(address, asynchronous=True, set_as_default=False) as client:
            with client.as_current(), pytest.raises(ValueError, match="not asynchronous"):
                sd.GradientBoostingRegressor(**ROUNDS_10).fit(blocks(X), Y)

    asyncio.run(fit())


def test_workers_that_cannot_connect_raise(monkeypatch):
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
        sd.GradientBoostingRegressor(**ROUNDS_10).fit(X, Y)
    assert not _boost_task._fit_states


def test_cluster_without_workers_raises(monkeypatch):
    monkeypatch.setattr(_cluster, "_FIRST_WORKER_TIMEOUT", 1.0)
    in_process = {"processes": False, "dashboard_address": None, "set_as_default": False}
    with distributed.Client(n_workers=0, **in_process) as client, client.as_current():
        for rows in (X, pd.DataFrame(X), blocks(X)):
            with pytest.raises(ValueError, match="at least one within 1 seconds, got none"):
                sd.GradientBoostingRegressor(**ROUNDS_10).fit(rows, Y)


def test_intervals_without_held_out_rows_and_several_targets_raise():
    model = sd.GradientBoostingRegressor(**ROUNDS_10).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"without held-out rows to estimate its errors .*early_stopping"
    ):
        model.predict_interval(X)
    assert model.predict_interval(X[:3], calibration=(X, Y)).shape == (3, 2)
    with pytest.raises(ValueError, match="several"):
        sd.GradientBoostingRegressor(**ROUNDS_10).fit(X, np.c_[Y, Y])


def test_workers_with_another_version_raise(monkeypatch):
    monkeypatch.setattr(_boost_driver, "__version__", "99.0")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as two,
        distributed.Client(two, set_as_default=False) as client,
        client.as_current(),
        pytest.raises(RuntimeError, match=r"has Spinney .*, expected 99\.0"),
    ):
        sd.GradientBoostingRegressor(**ROUNDS_8).fit(blocks(X), Y)
