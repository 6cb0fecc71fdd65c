"""Boosting by two workers of one thread each, against one process of two threads and the peers.

    python benchmarks/distributed.py                     # 100,000 and 1,000,000 rows
    python benchmarks/distributed.py --rows 10000000 --trees 30 --rounds 1   # needs some 10 GB

All on a Dask cluster of two processes on this machine, with rows that the workers make themselves
and hold before the clock starts. Spinney's local fit, Spinney on Dask, LightGBM's and XGBoost's
Dask interfaces grow the same number of trees of 31 leaves with 255 bins; their turns alternate, and
the best of the rounds counts. The time of a tree is what ten trees take less than `--trees` do,
over the difference: starting, reading and coding are in the column "first".

A worker's memory is what its process had at most during a fit, over what it had before, when it
held its rows and had given back what it did not use. "few" is that of the first fit of all, of
1,000 rows: buffers of a fixed size, and libraries that are loaded then (Spinney is loaded before,
as workers load what this script does). "memory" is that of the fits of all rows, which come after.
"a row" is "memory" over the rows of a worker, in bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import gc
import os
import sys
import time
from pathlib import Path

# This file has the name of a package that it needs, and scripts come first on the path.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import dask  # noqa: E402
import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402

from distributed import Client, LocalCluster, wait  # noqa: E402
from spinney import ensemble  # noqa: E402
from spinney.dask import GradientBoostingClassifier  # noqa: E402

FEW = 10
COLUMNS = 28


def make_block(seed: int, n: int) -> np.ndarray:
    """Draw rows of float32 and, last, classes that depend on some of the columns."""
    rng = np.random.default_rng(seed)
    rows = np.empty((n, COLUMNS + 1), dtype=np.float32)
    for f in range(COLUMNS):
        rows[:, f] = rng.standard_normal(n, dtype=np.float32)
    score = rows[:, 0] * rows[:, 1] + np.sin(2 * rows[:, 2]) + rows[:, 3] ** 2 - 1
    score += 0.5 * rows[:, 4]
    rows[:, COLUMNS] = score + rng.logistic(size=n) > 0
    return rows


def make_rows(client: Client, n_rows: int) -> tuple[da.Array, da.Array]:
    """Have the workers make their rows, in eight blocks, each at one of them."""
    workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
    X, y = [], []
    for i, rows in enumerate(np.array_split(np.arange(n_rows), 8)):
        n, at = len(rows), [workers[i * len(workers) // 8]]
        block = client.submit(make_block, i, n, workers=at, pure=False)
        both = [
            client.submit(lambda b: np.ascontiguousarray(b[:, :COLUMNS]), block, workers=at),
            client.submit(lambda b: b[:, COLUMNS].astype(np.int32), block, workers=at),
        ]
        wait(both)
        del block
        X.append(da.from_delayed(dask.delayed(both[0]), (n, COLUMNS), np.float32))
        y.append(da.from_delayed(dask.delayed(both[1]), (n,), np.int32))
    # Not persisted again: that might move blocks to the other worker.
    return da.concatenate(X), da.concatenate(y)


def spinney_params(n_trees: int) -> dict[str, object]:
    """Parameters of Spinney's boosters."""
    return {
        "n_estimators": n_trees, "max_leaf_nodes": 31, "learning_rate": 0.1, "growth": "best_first",
        "min_samples_leaf": 20, "l2_regularization": 1.0, "subsample": 1.0, "max_features": 1.0,
        "early_stopping": False, "random_state": 0,
    }  # fmt: skip


def fit_local(client: Client, X, y, lazy, n_trees: int):
    """Spinney in this process, two threads."""
    return ensemble.GradientBoostingClassifier(n_jobs=2, n_folds=1, **spinney_params(n_trees)).fit(
        X, y
    )


def fit_dask(client: Client, X, y, lazy, n_trees: int):
    """Spinney on the workers."""
    return GradientBoostingClassifier(**spinney_params(n_trees)).fit(*lazy)


def fit_lightgbm(client: Client, X, y, lazy, n_trees: int):
    """LightGBM on the workers."""
    import lightgbm

    model = lightgbm.DaskLGBMClassifier(
        client=client, n_estimators=n_trees, num_leaves=31, learning_rate=0.1, max_bin=255,
        min_child_samples=20, reg_lambda=1.0, tree_learner="data", n_jobs=1, verbose=-1,
    )  # fmt: skip
    return model.fit(*lazy)


def fit_xgboost(client: Client, X, y, lazy, n_trees: int):
    """XGBoost on the workers."""
    import xgboost.dask

    model = xgboost.dask.DaskXGBClassifier(
        n_estimators=n_trees, max_leaves=31, max_depth=0, grow_policy="lossguide", max_bin=255,
        learning_rate=0.1, reg_lambda=1.0, tree_method="hist", n_jobs=1,
    )  # fmt: skip
    model.client = client
    return model.fit(*lazy)


CANDIDATES = {
    "Spinney, 1 process × 2 threads": fit_local,
    "Spinney on Dask, 2 × 1": fit_dask,
    "lightgbm.dask, 2 × 1": fit_lightgbm,
    "xgboost.dask, 2 × 1": fit_xgboost,
}


def _reset_peak() -> int:
    """Give back what is not used, forget the peak of this process's memory, tell what it has."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) * 1024


def fit_and_measure(fit, client: Client, local, lazy, n_trees: int):
    """Fit; give the model, seconds, and by how much a worker's memory grew at most."""
    before = client.run(_reset_peak)
    began = time.perf_counter()
    model = fit(client, *local, lazy, n_trees)
    seconds = time.perf_counter() - began
    peak = client.run(_status, "VmHWM")
    return model, seconds, max(peak[worker] - before[worker] for worker in before)


@functools.cache
def memory_of_few(fit) -> float:
    """By how much the memory of a worker that has done nothing yet grows with 1,000 rows."""
    with cluster_of_two() as client:
        return fit_and_measure(fit, client, (None, None), make_rows(client, 1000), FEW)[2]


def run(n_rows: int, n_trees: int, n_rounds: int, wanted: list[str]) -> None:
    """Print a table for so many rows."""
    print(f"\n{n_rows:,} rows × {COLUMNS} columns of float32, {n_trees} trees of 31 leaves")
    candidates = {
        name: fit
        for name, fit in CANDIDATES.items()
        if any(part in name.lower() for part in wanted)
    }
    facts: dict[str, dict[str, float]] = {name: {} for name in candidates}
    best: dict[tuple[str, int], float] = {}
    with cluster_of_two() as client:
        few, lazy = make_rows(client, 1000), make_rows(client, n_rows)
        X, y = dask.compute(*lazy) if fit_local in candidates.values() else (None, None)
        test = make_block(99, 50_000)
        for fit in candidates.values():
            fit_and_measure(fit, client, dask.compute(*few), few, FEW)
        for _ in range(n_rounds):
            for name, fit in candidates.items():
                told = facts[name]
                for trees in (FEW, n_trees):
                    model, seconds, more = fit_and_measure(fit, client, (X, y), lazy, trees)
                    key = (name, trees)
                    best[key] = min(best.get(key, np.inf), seconds)
                    told["memory"] = max(told.get("memory", 0), more)
                    told["loss"] = _loss(model, test[:, :COLUMNS], test[:, COLUMNS])
                    if hasattr(model, "workers_"):
                        told["bytes"] = max(one["bytes_sent"] for one in model.workers_) / trees
                        told["exchanges"] = model.workers_[0]["exchanges"] / trees
                    del model
    head = f"{'':32}{'ms a tree':>10}{'first, s':>10}{'all, s':>9}{'loss':>9}"
    print(f"{head}{'few':>9}{'memory':>9}{'a row':>8}{'sent a tree':>14}{'exchanges':>11}")
    for name, fit in candidates.items():
        told = facts[name]
        few, all_ = best[name, FEW], best[name, n_trees]
        each = (all_ - few) / (n_trees - FEW)
        line = f"{name:32}{1000 * each:10.1f}{few - FEW * each:10.2f}{all_:9.2f}{told['loss']:9.4f}"
        if not name.startswith("Spinney, "):
            line += f"{memory_of_few(fit) / 2**20:6.0f} MB{told['memory'] / 2**20:6.0f} MB"
            line += f"{told['memory'] / (n_rows / 2):8.0f}"
        if "bytes" in told:
            line += f"{told['bytes'] / 2**20:11.2f} MB{told['exchanges']:11.1f}"
        print(line)
    stride = -(-COLUMNS // 16) * 16
    histograms = 31 * COLUMNS * 256 * 8
    goal = (n_rows / 2 * (stride + 24) + histograms) / 2**20
    print(
        f"the rows of a worker, which it held before, are {n_rows / 2 * COLUMNS * 4 / 2**20:.0f} "
        f"MB; Spinney's codes of them take {stride} bytes a row; these, 24 bytes a row and the "
        f"histograms of 31 leaves are {goal:.0f} MB"
    )


@contextlib.contextmanager
def cluster_of_two():
    """Start two workers of one thread each."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def _loss(model, X, y) -> float:
    local = model.to_local() if hasattr(model, "to_local") else model
    if type(model).__name__ == "DaskXGBClassifier":
        import xgboost

        p = model.get_booster().predict(xgboost.DMatrix(X))
        return float(log_loss(y, p))
    return float(log_loss(y, local.predict_proba(X)))


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--trees", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of names")
    arguments = parser.parse_args()
    print(f"{os.cpu_count()} processors; best of {arguments.rounds} rounds that take turns")
    for n_rows in arguments.rows:
        run(n_rows, arguments.trees, arguments.rounds, [part.lower() for part in arguments.only])


if __name__ == "__main__":
    main()
