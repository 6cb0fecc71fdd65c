"""Least absolute deviations: time and loss against scikit-learn's QuantileRegressor.

    python benchmarks/lad.py [--repeats N] [--peer-rows N]

The peer solves the linear program by HiGHS (quantile=0.5, alpha=0). Both take turns; the best time
of several counts. Above --peer-rows rows the peer is left out: its time grows much faster than the
rows.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import sklearn
from sklearn.linear_model import QuantileRegressor

import spinney
from spinney.linear_model import LADRegressor

SIZES = [(1_000, 5), (5_000, 20), (10_000, 20), (100_000, 20), (1_000_000, 20), (5_000, 200)]


def timed(model, X, y):
    start = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - start


def data(kind, n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = X @ rng.normal(size=d) + rng.standard_t(2, size=n)
    if kind == "whole numbers":
        X, y = np.round(X), np.round(y)
    return X, y


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--peer-rows", type=int, default=10_000)
    arguments = parser.parse_args()
    print(f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}")
    print(
        f"{'rows x columns':>20s} {'y':14s} {'spinney':>9s} {'gap / loss':>11s} {'peer':>9s} "
        f"{'ratio':>7s} {'peer loss / ours - 1':>21s}"
    )
    for n, d in SIZES:
        for kind in ("heavy tails", "whole numbers"):
            X, y = data(kind, n, d)
            ours, theirs = LADRegressor(), QuantileRegressor(quantile=0.5, alpha=0, solver="highs")
            with_peer = n * d <= arguments.peer_rows * 20
            best, peer = np.inf, np.inf
            for _ in range(arguments.repeats):
                best = min(best, timed(ours, X, y))
                if with_peer and peer == np.inf:
                    peer = timed(theirs, X, y)
            size, gap = f"{n:,} x {d}", ours.duality_gap_ / ours.loss_
            line = f"{size:>20s} {kind:14s} {best:7.3f} s {gap:11.1e}"
            if with_peer:
                more = np.abs(y - theirs.predict(X)).sum() / ours.loss_ - 1
                line += f" {peer:7.2f} s {peer / best:7.0f} {more:21.1e}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
