"""Gradient boosting against LightGBM, XGBoost, CatBoost and scikit-learn, in one run.

    python benchmarks/boosting.py [--data FOLDER] [--repeats N] [--peers a,b,…] [case …]

100 trees at a learning rate of 0.1, two threads, 31 and 255 leaves, binning included, no early
stopping; the libraries take turns, and the best time of each counts. Next to the time stands the
loss on rows left out (mean ± two standard errors of the difference to ours). CatBoost grows leaf by
leaf (`Lossguide`), XGBoost leaf by leaf and level by level. Ratios carry over between machines,
seconds do not. FOLDER holds the tables as Parquet.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = 2
TREES = 100


# ------------------------------------------------------------------------------------ tables


def synthetic(n_rows, seed=0):
    """28 columns, a rule of products and waves, much noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 28)).astype(np.float32)
    f = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] ** 2 / 2 - np.abs(X[:, 4])
    f += X[:, 5:10].sum(axis=1) * X[:, 10] / 2
    return X, (rng.random(n_rows) < 1 / (1 + np.exp(-f))).astype(int)


def read(folder, name, n_rows=None):
    """A table with its text columns as categories; numbers only come as a matrix."""
    import pandas as pd

    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame.drop(columns=[c for c in ("split", "set") if c in frame])
    if n_rows is not None:
        frame = frame[:n_rows]
    y = np.unique(frame.pop("target").to_numpy(), return_inverse=True)[1]
    texts = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    if not texts:
        return np.ascontiguousarray(frame.to_numpy(dtype=np.float32)), y
    for column in texts:
        frame[column] = frame[column].astype("category")
    return frame, y


def table(name, folder):
    if name == "synthetic":
        return synthetic(1_000_000)
    if name == "small":
        X, y = synthetic(2000)
        return X[:, :10], y
    return read(folder, name, 10_000 if name == "fashion_mnist" else None)


def parts(X, y, name):
    test = np.random.default_rng(1).random(len(y)) < (0.5 if name == "small" else 0.1)
    take = (lambda rows: X[rows].reset_index(drop=True)) if hasattr(X, "columns") else X.__getitem__
    return take(~test), y[~test], take(test), y[test]


# ----------------------------------------------------------------------------------- learners


def spinney_(leaves, has_categories):
    from spinney.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        n_estimators=TREES, max_leaf_nodes=leaves, early_stopping=False, n_jobs=THREADS
    )


def lightgbm_(leaves, has_categories):
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=TREES, num_leaves=leaves, n_jobs=THREADS, verbose=-1)


def xgboost_(leaves, has_categories, policy="lossguide"):
    from xgboost import XGBClassifier

    shape = (
        {"max_leaves": leaves, "max_depth": 0}
        if policy == "lossguide"
        else {"max_depth": int(np.ceil(np.log2(leaves)))}
    )
    return XGBClassifier(
        n_estimators=TREES,
        learning_rate=0.1,
        grow_policy=policy,
        tree_method="hist",
        enable_categorical=has_categories,
        n_jobs=THREADS,
        **shape,
    )


class CatBoost:
    """CatBoost's classifier, told which columns are categories."""

    def __init__(self, leaves, policy="Lossguide"):
        from catboost import CatBoostClassifier

        shape = {"max_leaves": leaves, "max_depth": 16}
        if policy != "Lossguide":
            shape = {"max_depth": min(int(np.ceil(np.log2(leaves))), 8)}

        self.model = CatBoostClassifier(
            n_estimators=TREES,
            learning_rate=0.1,
            grow_policy=policy,
            **shape,
            thread_count=THREADS,
            verbose=0,
            allow_writing_files=False,
        )

    def _texts(self, X):
        if not hasattr(X, "columns"):
            return X
        X = X.copy()
        self.cats = [c for c in X if X[c].dtype == "category"]
        for column in self.cats:
            X[column] = X[column].astype(object).fillna("missing").astype(str)
        return X

    def fit(self, X, y):
        X = self._texts(X)
        self.model.fit(X, y, cat_features=getattr(self, "cats", None))
        return self

    def predict_proba(self, X):
        return self.model.predict_proba(self._texts(X))


def catboost_(leaves, has_categories):
    return CatBoost(leaves)


def sklearn_(leaves, has_categories):
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=TREES, max_leaf_nodes=leaves, early_stopping=False
    )


LEARNERS = {
    "spinney": spinney_,
    "lightgbm": lightgbm_,
    "xgboost": xgboost_,
    "xgboost levels": lambda leaves, cats: xgboost_(leaves, cats, "depthwise"),
    "sklearn": sklearn_,
    "catboost": catboost_,
    "catboost symmetric": lambda leaves, cats: CatBoost(leaves, "SymmetricTree"),
}


# -------------------------------------------------------------------------------- measurement


def losses(model, X, y):
    p = np.clip(model.predict_proba(X)[np.arange(len(y)), y], 1e-15, 1)
    return -np.log(p)


def run(name, leaves, arguments):
    X, y = table(name, arguments.data)
    X_fit, y_fit, X_test, y_test = parts(X, y, name)
    cats = hasattr(X, "columns")
    seconds = dict.fromkeys(arguments.peers, np.inf)
    loss = {}
    refused = {}
    small = name == "small"
    for _ in range(arguments.repeats * (10 if small else 1)):
        for peer in arguments.peers:
            model = LEARNERS[peer](leaves, cats)
            gc.collect()
            start = time.perf_counter()
            try:
                model.fit(X_fit, y_fit)
            except ValueError as error:  # a table that the peer does not take
                refused[peer] = str(error)
                continue
            seconds[peer] = min(seconds[peer], time.perf_counter() - start)
            if peer not in loss:
                loss[peer] = losses(model, X_test, y_test)
    fastest = min(s for p, s in seconds.items() if p != "spinney") if len(seconds) > 1 else np.nan
    title = f"{name} {len(y_fit):,} x {X.shape[1]}, {leaves} leaves"
    for peer in arguments.peers:
        if peer in refused:
            print(f"{title:45}{peer:16}{refused[peer][:80]}", flush=True)
            continue
        away = loss[peer] - loss["spinney"]
        error = 2 * away.std() / np.sqrt(len(away))
        ratio = f"{fastest / seconds[peer]:.2f}x fastest" if peer == "spinney" else ""
        print(
            f"{title:45}{peer:16}{seconds[peer]:9.3f} s   loss {loss[peer].mean():.4f}"
            f"  {away.mean():+.4f} ± {error:.4f}   {ratio}",
            flush=True,
        )


def predict_case(arguments):
    """100,000 rows, and one row, through 100 trees of 31 leaves."""
    X, y = synthetic(100_000)
    models = {p: LEARNERS[p](31, False).fit(X, y) for p in arguments.peers}
    for title, rows, n in (("100,000 rows", X, 3), ("one row", X[:1], 300)):
        best = dict.fromkeys(models, np.inf)
        for _ in range(3):
            for peer, model in models.items():
                model.predict_proba(rows)
                start = time.perf_counter()
                for _ in range(n):
                    model.predict_proba(rows)
                best[peer] = min(best[peer], (time.perf_counter() - start) / n)
        if n > 3:
            score, row = models["spinney"].scorer(), rows[0].astype(np.float64)
            start = time.perf_counter()
            for _ in range(10_000):
                score(row)
            best["spinney scorer"] = (time.perf_counter() - start) / 10_000
        for peer, s in best.items():
            shown = f"{s * 1e3:.2f} ms" if n == 3 else f"{s * 1e6:.0f} us"
            print(
                f"{'predict_proba ' + title:45}{peer:16}{shown:>12}   "
                f"{s / best['spinney']:.1f} of ours",
                flush=True,
            )


def scale_case(arguments):
    """How fit time grows with the rows: the exponent of a power law through four sizes."""
    X, y = synthetic(800_000)
    sizes = [100_000, 200_000, 400_000, 800_000]
    for peer in arguments.peers:
        seconds = []
        for n in sizes:
            best = np.inf
            for _ in range(arguments.repeats):
                model = LEARNERS[peer](31, False)
                start = time.perf_counter()
                model.fit(X[:n], y[:n])
                best = min(best, time.perf_counter() - start)
            seconds.append(best)
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        times = ", ".join(f"{s:.2f}" for s in seconds)
        print(
            f"{'100,000 to 800,000 x 28, 31 leaves':45}{peer:16}{times} s   exponent {exponent:.2f}"
        )


def memory_case(arguments):
    """What a fit adds to the memory that the process needs, at most: in a process of its own."""
    for peer in arguments.peers:
        command = [sys.executable, __file__, "--one", peer]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        print(
            f"{'memory of 1,000,000 x 28, 31 leaves':45}{peer:16}{told.strip():>6} MiB", flush=True
        )


def added_memory(peer):
    """Peak while fitting, less what table and library take before."""
    X, y = synthetic(1_000_000)
    LEARNERS[peer](31, False).fit(X[:1000], y[:1000])
    gc.collect()
    status = Path("/proc/self/status")

    def field(name):
        line = next(line for line in status.read_text().splitlines() if line.startswith(name))
        return int(line.split()[1]) / 1024

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = field("VmRSS")
    LEARNERS[peer](31, False).fit(X, y)
    print(f"{field('VmHWM') - before:.0f}")


CASES = ("small", "higgs", "adult", "airline_100k", "covertype", "fashion_mnist", "synthetic")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of: {', '.join(CASES)}, predict, scale, memory")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--peers", type=lambda s: s.split(","), default=list(LEARNERS))
    parser.add_argument(
        "--leaves", type=lambda s: [int(k) for k in s.split(",")], default=[31, 255]
    )
    parser.add_argument("--one")
    arguments = parser.parse_args()
    if arguments.one:
        added_memory(arguments.one)
        return
    others = {"predict": predict_case, "scale": scale_case, "memory": memory_case}
    for case in arguments.cases or [*CASES, *others]:
        if case in others:
            others[case](arguments)
            continue
        for leaves in [31] if case == "small" else arguments.leaves:
            run(case, leaves, arguments)


if __name__ == "__main__":
    main()
