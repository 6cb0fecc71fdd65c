"""Shapley values and permutation importance against LightGBM, XGBoost, shap and scikit-learn.

    python benchmarks/explain.py [--rows N] [--trees N] [--repeats N] [--only NAME]

Two threads each, the libraries take turns, the best time counts. The boosters are the libraries'
own models, explained by themselves and, imported, by Spinney; their values are compared. The others
explain a fifth of the rows, and their time is scaled up; so is that of shap's TreeExplainer (which
has one thread), which explains scikit-learn's forests: once of depth 12, once without a limit.
Single rows are timed too. Permutation importance is Spinney's and scikit-learn's of the same forest
(Spinney's), and scikit-learn's of its own. Time of processors (of all threads) is printed too: it
tells more where others use the machine.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

THREADS = 2
BOOSTERS = ("lightgbm", "xgboost", "interactions")
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402

import spinney  # noqa: E402
from spinney.inspection import shap_interaction_values, shap_values  # noqa: E402


def make_rows(n_rows, n_columns=28):
    """Normal columns with products among the effects."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32).astype(float)
    score = X[:, :8].sum(axis=1) + X[:, 0] * X[:, 1] + np.abs(X[:, 2]) * X[:, 9]
    return X, score + rng.normal(size=n_rows)


def take_turns(functions, repeats):
    """Best time of each, with the processor's time, and what it returned."""
    best = dict.fromkeys(functions, (np.inf, np.inf))
    told = {}
    for _ in range(repeats):
        for name, function in functions.items():
            begin, cpu = time.perf_counter(), time.process_time()
            told[name] = function()
            seconds = time.perf_counter() - begin, time.process_time() - cpu
            best[name] = min(best[name], seconds)
    return best, told


def report(label, best, differences):
    print(label)
    for name, (seconds, cpu) in best.items():
        ratio = "" if name == "spinney" else f"{seconds / best['spinney'][0]:8.1f} x"
        print(f"  {name:<32}{seconds:9.3f} s (of processors {cpu:8.3f} s){ratio}")
    for name, difference in differences.items():
        print(f"  largest difference from {name}: {difference:.1e}")
    print(flush=True)


def boosters(X, y, n_rows, n_trees, repeats, wanted):
    import lightgbm
    import xgboost

    rows = X[:n_rows]
    light = lightgbm.LGBMRegressor(
        n_estimators=n_trees, num_leaves=31, n_jobs=THREADS, verbose=-1
    ).fit(X, y)
    extreme = xgboost.XGBRegressor(
        n_estimators=n_trees,
        max_leaves=31,
        grow_policy="lossguide",
        max_depth=0,
        tree_method="hist",
        n_jobs=THREADS,
    ).fit(X, y)
    some = rows[: max(1, n_rows // 5)]
    matrix = xgboost.DMatrix(some, nthread=THREADS)
    ours = {"lightgbm": spinney.from_lightgbm(light), "xgboost": spinney.from_xgboost(extreme)}
    theirs = {
        "lightgbm": lambda: light.predict(some, pred_contrib=True, num_threads=THREADS),
        "xgboost": lambda: extreme.get_booster().predict(matrix, pred_contribs=True),
    }
    for name, model in ours.items():
        if name not in wanted:
            continue
        best, told = take_turns(
            {"spinney": lambda m=model: shap_values(m, rows, n_jobs=THREADS), name: theirs[name]},
            repeats,
        )
        difference = np.abs(told["spinney"][: len(some)] - told[name][:, :-1]).max()
        scaled = tuple(t * len(rows) / len(some) for t in best.pop(name))
        label = f"{n_trees} trees of 31 leaves, {n_rows:,} rows, {X.shape[1]} columns, {name}"
        report(label, best | {f"{name} (from {len(some):,} rows)": scaled}, {name: difference})
    if "interactions" in wanted:
        few = rows[: max(1, n_rows // 500)]
        pairs = xgboost.DMatrix(few, nthread=THREADS)
        best, told = take_turns(
            {
                "spinney": lambda: shap_interaction_values(ours["xgboost"], few, n_jobs=THREADS),
                "xgboost": lambda: extreme.get_booster().predict(pairs, pred_interactions=True),
            },
            repeats,
        )
        difference = np.abs(told["spinney"] - told["xgboost"][:, :-1, :-1]).max()
        report(f"interactions, {len(few)} rows", best, {"xgboost": difference})


def forest(X, y, n_rows, repeats, max_depth):
    # shap loads numba, which asks more of coverage, if there is one, than some versions have.
    sys.modules.setdefault("coverage", None)
    import shap
    from sklearn.ensemble import RandomForestRegressor

    theirs = RandomForestRegressor(
        100,
        max_depth=max_depth,
        min_samples_leaf=2,
        max_features=0.5,
        n_jobs=THREADS,
        random_state=0,
    ).fit(X[:10000], y[:10000])
    ours = spinney.from_sklearn(theirs)
    few = max(1, n_rows // 500)
    explainer = shap.TreeExplainer(theirs, feature_perturbation="tree_path_dependent")
    leaves = np.mean([tree.tree_.n_leaves for tree in theirs.estimators_])
    depth = np.mean([tree.tree_.max_depth for tree in theirs.estimators_])
    shape = f"forest of 100 trees, on average {leaves:.0f} leaves and depth {depth:.0f}"
    for n in (1, few):
        best, told = take_turns(
            {
                "spinney": lambda n=n: shap_values(ours, X[:n], n_jobs=THREADS),
                "shap": lambda n=n: explainer.shap_values(X[:n]),
            },
            repeats,
        )
        difference = np.abs(told["spinney"] - told["shap"]).max()
        report(f"{shape}, {n:,} {'row' if n == 1 else 'rows'}", best, {"shap": difference})
    many = n_rows // 10
    scaled = tuple(t * many / few for t in best["shap"])
    best, _ = take_turns({"spinney": lambda: shap_values(ours, X[:many], n_jobs=THREADS)}, repeats)
    report(f"{shape}, {many:,} rows", best | {f"shap (from {few} rows)": scaled}, {})


def permutations(repeats):
    import pandas as pd
    from sklearn.ensemble import RandomForestClassifier as TheirForest
    from sklearn.inspection import permutation_importance as their_importance

    from spinney.ensemble import RandomForestClassifier
    from spinney.inspection import permutation_importance

    X, y = spinney.datasets.load_spam(return_X_y=True)
    X = pd.DataFrame(np.asarray(X)).add_prefix("column ")
    y = np.asarray(y)
    ours = RandomForestClassifier(100, random_state=0, n_jobs=THREADS).fit(X[::2], y[::2])
    theirs = TheirForest(100, random_state=0, n_jobs=THREADS).fit(X[::2], y[::2])
    X, y = X[1::2], y[1::2]
    options = {"n_repeats": 5, "random_state": 0, "n_jobs": THREADS}
    own = {"n_repeats": 5, "random_state": 0}  # the forest has its threads
    best, told = take_turns(
        {
            "spinney": lambda: permutation_importance(ours, X, y, **options),
            "scikit-learn, the same forest": lambda: their_importance(ours, X, y, **own),
            "scikit-learn, its own forest": lambda: their_importance(theirs, X, y, **own),
        },
        repeats,
    )
    expected = told["scikit-learn, the same forest"].importances_mean
    difference = np.abs(told["spinney"].mean - expected).max()
    label = f"permutation importance, {len(X):,} rows, {X.shape[1]} columns of pandas, 5 repeats"
    report(label, best, {"scikit-learn": difference})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--only", choices=[*BOOSTERS, "forest", "deepest", "permutation"])
    args = parser.parse_args()
    X, y = make_rows(max(args.rows, 20_000))
    if args.only in (None, *BOOSTERS):
        wanted = BOOSTERS if args.only is None else (args.only,)
        boosters(X, y, args.rows, args.trees, args.repeats, wanted)
    if args.only in (None, "forest"):
        forest(X, y, args.rows, args.repeats, 12)
    if args.only in (None, "deepest"):
        forest(X, y, args.rows, args.repeats, None)
    if args.only in (None, "permutation"):
        permutations(args.repeats)


if __name__ == "__main__":
    main()
