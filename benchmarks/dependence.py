"""Partial dependence against scikit-learn's brute force, on the same model and on its own.

    python benchmarks/dependence.py [--rows 10000] [--columns 20] [--values 100] [--trees 100]

"same model" lets scikit-learn's ``partial_dependence(method="brute")`` ask Spinney's model, whose
predictions are fast; "its own" is scikit-learn's own model of the same size. Runs are interleaved
and the best of three counts; answers for the same model are compared.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
from sklearn import ensemble as theirs
from sklearn.datasets import make_regression
from sklearn.inspection import partial_dependence as by_force

from spinney import ensemble as ours
from spinney.inspection import partial_dependence


def measure(call):
    start = time.perf_counter()
    answer = call()
    return time.perf_counter() - start, answer


def compare(name, mine, other, X, grid):
    """Print the seconds of the three ways for one column, and how far answers are apart."""
    best = [np.inf] * 3
    for _ in range(3):
        calls = [
            lambda: partial_dependence(mine, X, 0, values=grid, max_rows=None).average,
            lambda: by_force(mine, X, [0], custom_values={0: grid}, method="brute")["average"],
            lambda: by_force(other, X, [0], custom_values={0: grid}, method="brute")["average"],
        ]
        answers = []
        for way, call in enumerate(calls):
            seconds, answer = measure(call)
            best[way] = min(best[way], seconds)
            answers.append(answer)
    apart = np.abs(answers[0] - answers[1]).max() / np.abs(answers[1]).max()
    print(
        f"{name:34} {best[0]:8.3f} {best[1]:8.3f} {best[1] / best[0]:7.1f} "
        f"{best[2]:8.3f} {best[2] / best[0]:7.1f}   {apart:.0e}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--values", type=int, default=100)
    parser.add_argument("--trees", type=int, default=100)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    X, y = make_regression(options.rows, options.columns, noise=5, random_state=0)
    label = (y > np.median(y)).astype(int)
    grid = np.linspace(*np.quantile(X[:, 0], [0.05, 0.95]), options.values)
    n = options.trees
    print(
        f"{options.rows} rows, {options.columns} columns, {options.values} values, {n} trees; "
        "seconds\n"
        f"{'':34} {'Spinney':>8} {'same':>8} {'times':>7} {'its own':>8} {'times':>7}   apart"
    )
    shared = {"random_state": 0, "n_jobs": -1}
    booster = {"random_state": 0, "early_stopping": False}
    compare(
        "random forest, numbers",
        ours.RandomForestRegressor(n, max_features=0.33, **shared).fit(X, y),
        theirs.RandomForestRegressor(n, max_features=0.33, **shared).fit(X, y),
        *(X, grid),
    )
    compare(
        "random forest, two classes",
        ours.RandomForestClassifier(n, **shared).fit(X, label),
        theirs.RandomForestClassifier(n, **shared).fit(X, label),
        *(X, grid),
    )
    compare(
        "boosting of 31 leaves, numbers",
        ours.HistGradientBoostingRegressor(max_iter=n, **booster).fit(X, y),
        theirs.HistGradientBoostingRegressor(max_iter=n, **booster).fit(X, y),
        *(X, grid),
    )
    compare(
        "boosting of 31 leaves, two classes",
        ours.HistGradientBoostingClassifier(max_iter=n, **booster).fit(X, label),
        theirs.HistGradientBoostingClassifier(max_iter=n, **booster).fit(X, label),
        *(X, grid),
    )


if __name__ == "__main__":
    main()
