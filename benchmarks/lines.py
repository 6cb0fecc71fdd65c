"""Perceptrons and halfspaces: times against scikit-learn's perceptron and plain HiGHS.

    python benchmarks/lines.py [--repeats N]

Perceptrons make the same passes, and their coefficients are compared. Halfspaces are held against
the lecture's linear program (feasibility, w free) given to HiGHS as it is, which says "infeasible"
without a proof where the classes are not separable, and finds no halfspace then.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import sklearn
import sklearn.linear_model as theirs
from scipy.optimize import linprog
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import spinney
from spinney.linear_model import HalfspaceClassifier, Perceptron


def best_times(repeats, *actions):
    best = [np.inf] * len(actions)
    for _ in range(repeats):
        for i, action in enumerate(actions):
            start = time.perf_counter()
            action()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def clouds(n, d, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=d) + noise * rng.normal(size=n) > 0).astype(int)


def perceptrons(repeats):
    tables = [("digits", *load_digits(return_X_y=True))]
    tables += [("two clouds", *clouds(n, d, 0.5)) for n, d in ((10_000, 20), (200_000, 50))]
    for name, X, y in tables:
        for n_jobs in (1, 2):
            ours, peer = Perceptron(n_jobs=n_jobs), theirs.Perceptron(n_jobs=n_jobs)
            mine, other = best_times(
                repeats,
                lambda m=ours, X=X, y=y: m.fit(X, y),
                lambda m=peer, X=X, y=y: m.fit(X, y),
            )
            same = np.allclose(ours.coef_, peer.coef_, rtol=1e-9)
            print(
                f"perceptron, {name}, {X.shape[0]:,} x {X.shape[1]}, n_jobs={n_jobs}".ljust(56)
                + f"{mine:8.3f} s   peer {other:8.3f} s   {other / mine:5.1f} times   same: {same}",
                flush=True,
            )


def halfspaces(repeats):
    for n, d in ((1_000, 10), (10_000, 50), (100_000, 20)):
        for noise in (0.0, 0.5):
            X, y = clouds(n, d, noise)
            Z = np.column_stack([X, np.ones(n)]) * np.where(y == 1, 1.0, -1.0)[:, None]
            model = HalfspaceClassifier()

            def program(Z=Z):
                return linprog(
                    np.zeros(Z.shape[1]),
                    A_ub=-Z,
                    b_ub=-np.ones(len(Z)),
                    bounds=(None, None),
                    method="highs",
                )

            mine, other = best_times(repeats, lambda m=model, X=X, y=y: m.fit(X, y), program)
            print(
                f"halfspace, {n:,} x {d}, separable: {model.separable_}".ljust(56)
                + f"{mine:8.3f} s   HiGHS {other:7.3f} s   {other / mine:5.1f} times",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    print(f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}")
    perceptrons(repeats)
    halfspaces(repeats)


if __name__ == "__main__":
    main()
