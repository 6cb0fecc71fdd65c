"""Tables with many more columns than rows, and the demo of the shell.

    python benchmarks/wide.py [--repeats 3] [--threads 2]

Automatic boosting against boosting with ``n_estimators=100`` on 200 x 10,000; logistic regression
against scikit-learn's default on 2,000 x 20,000, with what each objective exceeds the least by; and
``spinney compare`` on the bundled data. All of a table take turns; the best time of several counts.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from time import perf_counter

import numpy as np
import sklearn.linear_model as theirs
from threadpoolctl import threadpool_limits

import spinney
import spinney.linear_model as ours
from spinney.ensemble import GradientBoostingClassifier


def best_times(models, X, y, repeats):
    """Return the best seconds of each model's fit."""
    best = dict.fromkeys(models, np.inf)
    for _ in range(repeats):
        for name, model in models.items():
            start = perf_counter()
            model.fit(X, y)
            best[name] = min(best[name], perf_counter() - start)
    return best


def objective(model, X, y):
    """Return the penalized negative log-likelihood at C = 1."""
    scores = X @ model.coef_.ravel() + model.intercept_[0]
    loss = np.logaddexp(0, -(2 * y - 1) * scores).sum()
    return loss + 0.5 * (model.coef_**2).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    spinney.set_num_threads(options.threads)
    rng = np.random.default_rng(0)
    with threadpool_limits(options.threads):
        X, y = rng.normal(size=(200, 10_000)), rng.integers(0, 2, 200)
        models = {
            "automatic": GradientBoostingClassifier(random_state=0),
            "n_estimators=100": GradientBoostingClassifier(n_estimators=100, random_state=0),
        }
        print("boosting, 200 x 10,000")
        times = best_times(models, X, y, options.repeats)
        for name, seconds in times.items():
            print(f"    {name:<20}{seconds:>9.3f} s{seconds / times['n_estimators=100']:>8.2f}")

        X = rng.normal(size=(2_000, 20_000))
        y = (X[:, 0] + rng.normal(size=len(X)) > 0).astype(int)
        models = {"spinney": ours.LogisticRegression(), "sklearn": theirs.LogisticRegression()}
        print("logistic regression, 2,000 x 20,000")
        times = best_times(models, X, y, options.repeats)
        values = {name: objective(model, X, y) for name, model in models.items()}
        least = min(values.values())
        for name, seconds in times.items():
            beyond = (values[name] - least) / least
            print(f"    {name:<20}{seconds:>9.3f} s  objective + {beyond:.1e}")

    print("spinney compare, report included")
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as folder:
            start = perf_counter()
            command = [sys.executable, "-m", "spinney", "compare", "--quiet", "--out", folder]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            print(f"    {perf_counter() - start:>29.1f} s")


if __name__ == "__main__":
    main()
