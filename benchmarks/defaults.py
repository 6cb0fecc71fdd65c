"""Accuracy of default boosters over a folder of tables: who is best without being told anything?

    python benchmarks/defaults.py [--data FOLDER] [--peers FILE] [--limit SECONDS] [--kept]
                                  [learner …]

Each table of FOLDER (Parquet, listed in its DATASETS.jsonl) gives at most 20,000 rows and three
folds. The loss is the log loss, or the root mean squared error over the standard deviation of the
target. Learners have their library's defaults and two threads, and a process of their own for
each table; one that fails or needs longer than the limit sits a table out. Losses and seconds of
the peers are kept in FILE and computed where they are missing (not with --kept): CatBoost alone
takes an hour. Spinney runs every time. Printed are losses, mean ranks, and how often each peer was
beaten.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
DATA = HERE.parents[1] / "shared" / "data"
PEERS = ["catboost", "lightgbm", "xgboost", "sklearn", "perpetual"]
MAX_ROWS, FOLDS, LEAST = 20_000, 3, 10
# No tables for a booster: pictures, vectors, rankings, and what is too small to be divided.
SKIPPED = {
    *("fashion_mnist", "mq2008", "glove_50d", "glove_50d_groundtruth"),
    *("play_tennis", "play_tennis_numeric", "contact_lenses"),
}
# Columns that are known only after the target.
OUTCOMES = {
    "nycflights13": ["dep_delay", "arr_delay", "air_time"],
    "bike_sharing": ["casual", "registered"],
}


def described(folder):
    lines = (folder / "DATASETS.jsonl").read_text().splitlines()
    return {entry["name"]: entry for entry in map(json.loads, lines)}


def read(folder, name):
    """Rows with categories where the file has text, the target, and whether it is a number."""
    import pandas as pd

    entry = described(folder)[name]
    frame = pd.read_parquet(folder / entry["file"]).drop(columns=OUTCOMES.get(name, []))
    if len(frame) > MAX_ROWS:
        frame = frame.sample(MAX_ROWS, random_state=0).reset_index(drop=True)
    y = frame.pop("target")
    frame = frame.dropna(axis=1, how="all")
    for column in frame:
        if frame[column].dtype.kind not in "iufb":
            texts = frame[column].astype(object).where(frame[column].notna(), None)
            frame[column] = pd.Categorical([None if t is None else str(t) for t in texts])
        elif str(frame[column].dtype) in ("Int64", "Float64", "boolean"):
            frame[column] = frame[column].astype("float64")
    if entry["task"] == "regression":
        return frame, y.to_numpy(float), True
    codes = pd.factorize(y.astype("string"), sort=True)[0]
    kept = np.bincount(codes)[codes] >= LEAST  # rarer classes would be missing from some fold
    codes = pd.factorize(codes[kept], sort=True)[0]
    return frame[kept].reset_index(drop=True), codes, False


def learner(name, number, categories):
    if name == "lightgbm":
        import lightgbm

        kind = lightgbm.LGBMRegressor if number else lightgbm.LGBMClassifier
        return kind(n_jobs=2, verbose=-1)
    if name == "xgboost":
        import xgboost

        kind = xgboost.XGBRegressor if number else xgboost.XGBClassifier
        return kind(n_jobs=2, enable_categorical=True, tree_method="hist")
    if name == "catboost":
        import catboost

        kind = catboost.CatBoostRegressor if number else catboost.CatBoostClassifier
        return kind(thread_count=2, verbose=0, allow_writing_files=False, cat_features=categories)
    if name == "perpetual":
        import perpetual

        objective = "SquaredLoss" if number else "LogLoss"
        return perpetual.PerpetualBooster(objective=objective, num_threads=2)
    if name == "sklearn":
        from sklearn import ensemble

        kind = (
            ensemble.HistGradientBoostingRegressor
            if number
            else ensemble.HistGradientBoostingClassifier
        )
        return kind()
    from spinney import ensemble

    kind = ensemble.GradientBoostingRegressor if number else ensemble.GradientBoostingClassifier
    return kind(n_jobs=2, random_state=0)


def prepared(name, X, categories):
    """Categories as the library wants them."""
    X = X.copy()
    for column in categories:
        if name == "catboost":
            texts = X[column].astype("object")
            X[column] = texts.where(X[column].notna(), "(missing)").astype(str)
        elif name == "sklearn" and X[column].cat.categories.size > 255:  # more than it takes
            X[column] = X[column].cat.codes.astype(float)
    return X


def measure(folder, name, table):
    """Mean loss over the folds, and seconds of all fits and predictions."""
    from sklearn.metrics import log_loss, root_mean_squared_error
    from sklearn.model_selection import KFold, StratifiedKFold

    warnings.filterwarnings("ignore")
    X, y, number = read(folder, table)
    categories = [column for column in X if str(X[column].dtype) == "category"]
    X = prepared(name, X, categories)
    folds = (KFold if number else StratifiedKFold)(FOLDS, shuffle=True, random_state=0)
    losses, start = [], time.perf_counter()
    for train, test in folds.split(X, y):
        model = learner(name, number, categories)
        model.fit(X.iloc[train], y[train])
        if number:
            predicted = model.predict(X.iloc[test])
            losses.append(root_mean_squared_error(y[test], predicted) / y.std())
        else:
            p = np.clip(np.asarray(model.predict_proba(X.iloc[test]), float), 1e-7, 1)
            p /= p.sum(axis=1, keepdims=True)
            losses.append(log_loss(y[test], p, labels=np.unique(y)))
    return {"loss": float(np.mean(losses)), "seconds": time.perf_counter() - start}


def measure_apart(folder, name, table, limit):
    command = [sys.executable, __file__, "--data", str(folder), "--one", name, table]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"loss": None, "error": f"over {limit} s"}
    if run.returncode != 0:
        return {"loss": None, "error": run.stderr.strip().splitlines()[-1][-200:]}
    return json.loads(run.stdout.splitlines()[-1])


def show(tables, names, results):
    from scipy.stats import rankdata

    def column(key):
        return np.array(
            [[results[t].get(n, {}).get(key) or np.nan for n in names] for t in tables], float
        )

    losses, seconds = column("loss"), column("seconds")
    ours = names.index("spinney")
    losses[np.isnan(losses[:, ours]), ours] = np.inf  # sitting out is no way to win
    print(f"{'loss':28s}" + "".join(f"{n:>11s}" for n in names) + f"{'seconds':>11s}")
    for table, row, time_taken in zip(tables, losses, seconds[:, ours], strict=True):
        best = "" if np.nanargmin(row) != ours else "  first"
        cells = "".join(f"{v:11.5f}" for v in row)
        print(f"{table:28s}{cells}{time_taken:11.2f}{best}")
    ranks = np.nanmean(rankdata(losses.round(6), axis=1, nan_policy="omit"), axis=0)
    print(f"\n{'':12s}{'mean rank':>10s}{'tables':>8s}{'seconds':>9s}  spinney against it")
    for i in np.argsort(ranks):
        there = ~np.isnan(losses[:, i])
        line = f"{names[i]:12s}{ranks[i]:10.2f}{there.sum():8d}{np.nansum(seconds[:, i]):9.0f}"
        if i != ours:
            won = (losses[there, ours] < losses[there, i]).sum()
            lost = (losses[there, ours] > losses[there, i]).sum()
            taken = np.nansum(seconds[there, ours]) / np.nansum(seconds[there, i])
            line += f"  {won} won, {lost} lost, {taken:.2f} of its time"
        print(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learners", nargs="*", default=[*PEERS, "spinney"])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--peers", type=Path, default=HERE / "results" / "defaults_peers.json")
    parser.add_argument("--limit", type=float, default=400)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--one", nargs=2)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.data, *args.one)))
        return
    kept = json.loads(args.peers.read_text()) if args.peers.exists() else {}
    entries = described(args.data)
    tables = sorted((n for n in entries if n not in SKIPPED), key=lambda n: entries[n]["rows"])
    results = {table: dict(kept.get(table, {})) for table in tables}
    for name in args.learners:
        for table in tables:
            if name in results[table] or (args.kept and name != "spinney"):
                continue
            results[table][name] = measure_apart(args.data, name, table, args.limit)
            print(f"{table} {name} {results[table][name]}", file=sys.stderr, flush=True)
            if name != "spinney":
                kept.setdefault(table, {})[name] = results[table][name]
                args.peers.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
    if "spinney" in args.learners:
        show(tables, args.learners, results)


if __name__ == "__main__":
    main()
