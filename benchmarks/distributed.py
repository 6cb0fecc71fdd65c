"""Boosting by two workers of one thread each, against one process of two threads and the peers.

    python benchmarks/distributed.py                     # 100,000 and 1,000,000 rows
    python benchmarks/distributed.py --rows 10000000     # needs some 20 GB

All on a Dask cluster of two processes on this machine, with rows that are spread over both before
the clock starts. Spinney's local fit, Spinney on Dask, LightGBM's and XGBoost's Dask interfaces
grow the same number of trees of 31 leaves with 255 bins; their turns alternate, and the best of the
rounds counts. The time of a tree is what ten trees take less than `--trees` do, over the
difference: starting, reading and coding are in the column "first". A worker's memory is what its
process had at most during the fit, over what it had before.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

# This file has the name of a package that it needs, and scripts come first on the path.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import dask.array as da  # noqa: E402
import numpy as np  # noqa: E402
from sklearn.metrics import log_loss  # noqa: E402

from distributed import Client, LocalCluster, wait  # noqa: E402
from spinney import ensemble  # noqa: E402
from spinney.dask import GradientBoostingClassifier  # noqa: E402

FEW = 10
COLUMNS = 28


def make_rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows of float32 and classes that depend on some of the columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 - 1 + 0.5 * X[:, 4]
    return X, (score + rng.logistic(size=n) > 0).astype(np.int32)


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
    """Forget the peak of this process's memory, and return what it has now, in bytes."""
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return _status("VmRSS")


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) * 1024


def run(n_rows: int, n_trees: int, n_rounds: int, wanted: list[str]) -> None:
    """Print a table for so many rows."""
    X, y = make_rows(n_rows)
    print(f"\n{n_rows:,} rows × {COLUMNS} columns of float32, {n_trees} trees of 31 leaves")
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        size = -(-n_rows // 8)
        lazy = client.persist([da.from_array(X, chunks=(size, -1)), da.from_array(y, chunks=size)])
        wait(lazy)
        client.rebalance(lazy)
        best: dict[tuple[str, int], float] = {}
        facts: dict[str, dict[str, float]] = {}
        for _ in range(n_rounds):
            for name, fit in CANDIDATES.items():
                if not any(part in name.lower() for part in wanted):
                    continue
                for trees in (FEW, n_trees):
                    before = client.run(_reset_peak)
                    began = time.perf_counter()
                    try:
                        model = fit(client, X, y, lazy, trees)
                    except Exception as error:
                        print(f"  {name}: {type(error).__name__}: {error}")
                        break
                    seconds = time.perf_counter() - began
                    peak = client.run(_status, "VmHWM")
                    key = (name, trees)
                    best[key] = min(best.get(key, np.inf), seconds)
                    more = max(peak[worker] - before[worker] for worker in before)
                    told = facts.setdefault(name, {})
                    told["memory"] = max(told.get("memory", 0), more)
                    told["loss"] = _loss(model, X[:50_000], y[:50_000])
                    if hasattr(model, "workers_"):
                        told["bytes"] = max(one["bytes_sent"] for one in model.workers_) / trees
                        told["exchanges"] = model.workers_[0]["exchanges"] / trees
    head = f"{'':32}{'ms a tree':>10}{'first, s':>10}{'all, s':>9}{'loss':>9}{'memory':>10}"
    print(f"{head}{'sent a tree':>14}{'exchanges':>11}")
    for name in facts:
        few, all_ = best.get((name, FEW), np.nan), best.get((name, n_trees), np.nan)
        each = (all_ - few) / (n_trees - FEW)
        told = facts[name]
        memory = "" if name.startswith("Spinney, ") else f"{told['memory'] / 2**20:7.0f} MB"
        line = f"{name:32}{1000 * each:10.1f}{few - FEW * each:10.2f}{all_:9.2f}{told['loss']:9.4f}"
        line += f"{memory:>10}"
        if "bytes" in told:
            line += f"{told['bytes'] / 2**20:11.2f} MB{told['exchanges']:11.1f}"
        print(line)
    share = n_rows / 2
    codes = 2 * share * COLUMNS  # a byte by column, one by row
    bound = codes + 24 * share
    print(
        f"a worker's rows are {share * COLUMNS * 4 / 2**20:.0f} MB; their codes, twice, and 24 "
        f"bytes a row are {bound / 2**20:.0f} MB"
    )


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
