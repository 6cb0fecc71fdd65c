"""Model files: size and time to load, against pickles of scikit-learn's and LightGBM's text.

    python benchmarks/files.py [--rows N] [--repeats N]

Forests of both libraries have the same number of trees, grown to the end on the same rows; boosters
the same rounds and leaves. Pickles are joblib's, without compression, as people write them. Times
are the best of some, from the file's name to a model that can predict. Memory is what a second
process has of its own after loading, while a first one has the same file loaded.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import joblib
import numpy as np
import sklearn.ensemble as theirs

import spinney
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)


def best_time(action, repeats):
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def table(n, task):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 12))
    score = X[:, 0] + X[:, 1] * X[:, 2] + rng.normal(size=n)
    return X, (score > 0).astype(int) if task == "classification" else score


_LOADS = """
import sys, numpy as np, spinney, spinney.ensemble, spinney.model_file._rebuilding
def own():
    rows = (line.split() for line in open("/proc/self/smaps_rollup"))
    return sum(int(row[1]) for row in rows if row[0].startswith("Private_"))
mmap = sys.argv[2] == "True"
spinney.load(sys.argv[3], mmap=mmap).predict(np.zeros((1, 12)))  # what the libraries need
before = own()
model = spinney.load(sys.argv[1], mmap=mmap)
model.predict(np.zeros((1, 12)))
print((own() - before) / 1e3)
"""


def memory(path, small, mmap):
    """Megabytes that a second process has of its own once it has loaded a file."""
    if not Path("/proc/self/smaps_rollup").exists():
        return float("nan")
    held = spinney.load(path, mmap=True)
    command = [sys.executable, "-c", _LOADS, str(path), str(mmap), str(small)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    del held
    return float(run.stdout)


def compact_forests(folder, model, repeats):
    whole = (folder / "ours").stat().st_size
    for bits in (None, 16, 8):
        compact = model.compact(bits)
        compact.save(folder / "compact")
        size = (folder / "compact").stat().st_size
        load = best_time(lambda: spinney.load(folder / "compact"), repeats)
        facts = compact.compaction_
        print(
            f"  compact({bits}): {size / 1e6:.2f} MB, {whole / size:.1f} times less; load "
            f"{load * 1e3:.1f} ms; predictions change by at most {facts['prediction_change']:.2g}",
            flush=True,
        )


def forests(folder, n, repeats):
    path, pickled = folder / "ours", folder / "theirs"
    for task, ours, peer in (
        ("classification", RandomForestClassifier, theirs.RandomForestClassifier),
        ("regression", RandomForestRegressor, theirs.RandomForestRegressor),
    ):
        X, y = table(n, task)
        mine = ours(100, random_state=0).fit(X, y)
        other = peer(100, random_state=0).fit(X, y)
        save = best_time(lambda m=mine: spinney.save(m, path), repeats)
        dump = best_time(lambda m=other: joblib.dump(m, pickled), repeats)
        load = best_time(lambda: spinney.load(path), repeats)
        unpickle = best_time(lambda: joblib.load(pickled), repeats)
        size, size_other = path.stat().st_size, pickled.stat().st_size
        print(
            f"random forest, {task}, {n:,} rows, 100 trees\n"
            f"  size {size / 1e6:8.2f} MB   scikit-learn's pickle {size_other / 1e6:8.2f} MB   "
            f"{size_other / size:5.1f} times\n"
            f"  load {load * 1e3:8.1f} ms   scikit-learn's pickle {unpickle * 1e3:8.1f} ms   "
            f"{unpickle / load:5.1f} times\n"
            f"  save {save * 1e3:8.1f} ms   scikit-learn's pickle {dump * 1e3:8.1f} ms",
            flush=True,
        )
        texts = [pickle.dumps(model) for model in (mine, other)]
        times = [best_time(lambda t=text: pickle.loads(t), repeats) for text in texts]
        print(f"  pickle.loads {times[0] * 1e3:.1f} ms   scikit-learn's {times[1] * 1e3:.1f} ms")
        small = folder / "small"
        ours(2, max_depth=2, random_state=0).fit(X, y).save(small)
        mapped, read = (memory(path, small, mmap) for mmap in (True, False))
        print(f"  memory of a second process: {mapped:.1f} MB mapped, {read:.1f} MB read")
        compact_forests(folder, mine, repeats)


def boosters(folder, n, repeats):
    import lightgbm

    path, text = folder / "ours", folder / "theirs"
    for task, ours, peer in (
        ("classification", GradientBoostingClassifier, lightgbm.LGBMClassifier),
        ("regression", GradientBoostingRegressor, lightgbm.LGBMRegressor),
    ):
        X, y = table(n, task)
        settings = {"n_estimators": 200, "learning_rate": 0.1}
        mine = ours(max_leaf_nodes=31, early_stopping=False, random_state=0, **settings).fit(X, y)
        other = peer(num_leaves=31, verbose=-1, random_state=0, **settings).fit(X, y)
        spinney.save(mine, path)
        other.booster_.save_model(text)
        load = best_time(lambda: spinney.load(path), repeats)
        read = best_time(lambda: lightgbm.Booster(model_file=text), repeats)
        size, size_other = path.stat().st_size, text.stat().st_size
        print(
            f"gradient boosting, {task}, {n:,} rows, 200 rounds of 31 leaves\n"
            f"  size {size / 1e6:8.2f} MB   LightGBM's text {size_other / 1e6:8.2f} MB   "
            f"{size_other / size:5.1f} times\n"
            f"  load {load * 1e3:8.1f} ms   LightGBM's text {read * 1e3:8.1f} ms   "
            f"{read / load:5.1f} times",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        forests(Path(name), arguments.rows, arguments.repeats)
        boosters(Path(name), arguments.rows, arguments.repeats)


if __name__ == "__main__":
    main()
