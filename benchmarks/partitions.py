"""C4.5 against scikit-learn's CART; grids, quad trees, comparison forests: times and errors.

    python benchmarks/partitions.py [--data FOLDER] [--repeats N]

The best time of several counts; where there is a peer, both take turns. Adult has its categories
and missing values as they are for C4.5, and as ordinal codes for CART; one thread each. FOLDER
holds adult and optdigits as Parquet.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import sklearn.tree as sk_tree
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import spinney
from spinney.ensemble import ComparisonForestClassifier, RandomForestClassifier
from spinney.tree import (
    C45Classifier,
    C45Rules,
    PartitionClassifier,
    PartitionRegressor,
    QuadTreeClassifier,
    QuadTreeRegressor,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def timed(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def report(name, seconds, note=""):
    print(f"{name:58s} {seconds:8.3f} s   {note}", flush=True)


def adult(folder, repeats):
    frame = pd.read_parquet(folder / "adult.parquet")
    y = frame.pop("target").to_numpy()
    coded = frame.copy()
    for column in coded:
        if not pd.api.types.is_numeric_dtype(coded[column]):
            coded[column] = coded[column].astype("category").cat.codes
    coded = coded.to_numpy(dtype=np.float64)
    models = {
        "C4.5 (pruned)": (C45Classifier(n_jobs=1), frame),
        "C4.5 without pruning": (C45Classifier(n_jobs=1, confidence=None), frame),
        "scikit-learn CART": (sk_tree.DecisionTreeClassifier(random_state=0), coded),
    }
    seconds = dict.fromkeys(models, np.inf)
    for _ in range(repeats):
        for name, (model, X) in models.items():
            seconds[name] = min(seconds[name], timed(lambda m=model, X=X: m.fit(X, y)))
    for name, (model, _) in models.items():
        ratio = seconds[name] / seconds["scikit-learn CART"]
        note = f"{model.get_n_leaves():,} leaves   {ratio:.2f} of CART's time"
        report(f"adult {len(y):,} x {frame.shape[1]}, {name}", seconds[name], note)
    rules = C45Rules(n_jobs=1)
    spent = timed(lambda: rules.fit(frame, y))
    report(f"adult {len(y):,} x {frame.shape[1]}, C4.5 rules", spent, f"{len(rules.rules_)} rules")


def plane(repeats):
    rng = np.random.default_rng(0)
    X, new = rng.random((1_000_000, 2)), rng.random((1_000_000, 2))
    number = np.sin(6 * X[:, 0]) + X[:, 1]
    label = number > 0.5
    for model, y in (
        (PartitionClassifier(cells=100), label),
        (PartitionRegressor(cells=100), number),
        (QuadTreeClassifier(), label),
        (QuadTreeRegressor(), number),
        (QuadTreeClassifier(split="point", random_state=0), label),
        (QuadTreeRegressor(split="point", random_state=0), number),
    ):
        fit = min(timed(lambda m=model, y=y: m.fit(X, y)) for _ in range(repeats))
        predict = min(timed(lambda m=model: m.predict(new)) for _ in range(repeats))
        report(f"1,000,000 x 2, {model}", fit, f"predict {predict:.3f} s")


def comparisons(repeats):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10_000, 50))
    y = (X[:, :5].sum(axis=1) > 0).astype(int)
    for n_jobs in (1, 2):
        model = ComparisonForestClassifier(100, random_state=0, n_jobs=n_jobs)
        fit = min(timed(lambda m=model: m.fit(X, y)) for _ in range(repeats))
        predict = min(timed(lambda m=model: m.predict(X)) for _ in range(repeats))
        note = f"predict {predict:.3f} s   {model.n_comparisons_:,} comparisons"
        report(f"10,000 x 50, comparison forest, 100 trees, {n_jobs} threads", fit, note)


def digits(folder):
    frame = pd.read_parquet(folder / "optdigits.parquet")
    frame = frame.drop(columns=[c for c in ("split", "set") if c in frame])
    y = frame.pop("target").to_numpy()
    X = frame.to_numpy(dtype=np.float64)
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    for name, model in (
        ("comparison forest, 100 trees", ComparisonForestClassifier(100, random_state=0)),
        ("random forest, 100 trees", RandomForestClassifier(100, random_state=0)),
        ("nearest neighbour", KNeighborsClassifier(1)),
    ):
        wrong = 100 * (1 - cross_val_score(model, X, y, cv=folds).mean())
        print(
            f"optdigits {X.shape[0]:,} x {X.shape[1]}, {name}: ".ljust(60) + f"error {wrong:.2f} %"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    print(f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}")
    adult(arguments.data, arguments.repeats)
    plane(arguments.repeats)
    comparisons(arguments.repeats)
    digits(arguments.data)


if __name__ == "__main__":
    main()
