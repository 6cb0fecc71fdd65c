"""AdaBoost against scikit-learn's: 200 rounds of stumps and of trees of depth three.

    python benchmarks/adaboost.py [--data FOLDER] [--repeats N]

Two threads, the libraries take turns, the best time of each counts; next to it stands the error on
the training rows. Tables: spam (bundled), adult with its categories as numbers, and 20,000 rows of
covertype; FOLDER holds the last two as Parquet.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import sklearn
import sklearn.ensemble as sk
import sklearn.tree as sk_tree

import spinney
from spinney.datasets import load_spam
from spinney.ensemble import AdaBoostClassifier
from spinney.tree import DecisionTreeClassifier

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = 2
ROUNDS = 200


def read(folder, name, n_rows=None):
    import pandas as pd

    frame = pd.read_parquet(folder / f"{name}.parquet")
    frame = frame.drop(columns=[c for c in ("split", "set") if c in frame])
    if n_rows is not None:
        frame = frame.sample(n_rows, random_state=0)
    y = np.unique(frame.pop("target").to_numpy(), return_inverse=True)[1]
    for column in frame:
        if not pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype("category").cat.codes
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64)), y


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    print(
        f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}; {THREADS} threads, "
        f"{ROUNDS} rounds"
    )
    tables = {
        "spam": load_spam(return_X_y=True),
        "adult": read(arguments.data, "adult"),
        "covertype": read(arguments.data, "covertype", 20_000),
    }
    for name, (X, y) in tables.items():
        for depth in (1, 3):
            models = {
                "spinney": AdaBoostClassifier(
                    DecisionTreeClassifier(max_depth=depth), n_estimators=ROUNDS, n_jobs=THREADS
                ),
                "scikit-learn": sk.AdaBoostClassifier(
                    sk_tree.DecisionTreeClassifier(max_depth=depth), n_estimators=ROUNDS
                ),
            }
            seconds = dict.fromkeys(models, np.inf)
            for _ in range(arguments.repeats):
                for peer, model in models.items():
                    start = time.perf_counter()
                    model.fit(X, y)
                    seconds[peer] = min(seconds[peer], time.perf_counter() - start)
            for peer, model in models.items():
                ratio = seconds["scikit-learn"] / seconds[peer]
                print(
                    f"{name} {X.shape[0]:,} x {X.shape[1]}, depth {depth}".ljust(36)
                    + f"{peer:14s} {seconds[peer]:8.3f} s   training error "
                    f"{1 - model.score(X, y):.4f}   {ratio:.1f}x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
