"""Coverage of the forests' intervals on rows that fit did not see.

    python benchmarks/forest_intervals.py [--data FOLDER]

Each table is divided at random, five times: half of it (at most 10,000 rows) for fit, the rest for
the test; forests without a bag take 1,000 more rows for the calibration. Coverage within two
points of the nominal one is what is asked for. FOLDER holds california_housing as Parquet.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1

from spinney.ensemble import ExtraTreesRegressor, RandomForestRegressor

REPEATS = 5
N_CALIBRATION = 1000


def tables(folder):
    rng = np.random.default_rng(0)
    yield "friedman", *make_friedman1(10_000, noise=1.0, random_state=0)
    X = rng.uniform(-2, 2, (10_000, 4))
    yield "uneven noise", X, X[:, 0] ** 2 + (0.2 + np.abs(X[:, 1])) * rng.standard_t(4, 10_000)
    yield "diabetes", *load_diabetes(return_X_y=True)
    if (folder / "california_housing.parquet").exists():
        import pandas as pd

        frame = pd.read_parquet(folder / "california_housing.parquet")
        y = frame.pop("target").to_numpy(float)
        yield "california", frame.to_numpy(float), y


def coverage(model, X, y, nominal, seed):
    """Share of test targets in their intervals, and the intervals' mean width."""
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(len(y) // 2, 10_000)
    fit, rest = order[:n], order[n:]
    calibration = None
    if not model.bootstrap:
        n_calibration = min(N_CALIBRATION, len(rest) // 2)
        calibration = (X[rest[:n_calibration]], y[rest[:n_calibration]])
        rest = rest[n_calibration:]
    model.fit(X[fit], y[fit])
    lower, upper = model.predict_interval(X[rest], nominal, calibration=calibration).T
    return np.mean((lower <= y[rest]) & (y[rest] <= upper)), np.mean(upper - lower)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments = parser.parse_args()
    print(f"{'table':14}{'forest':32}{'nominal':>9}{'coverage':>10}{'± of 5':>9}{'width':>10}")
    for name, X, y in tables(arguments.data):
        for title, make in (
            ("random forest, out of bag", RandomForestRegressor),
            (
                "extra trees, bootstrap=True",
                lambda *a, **k: ExtraTreesRegressor(*a, bootstrap=True, **k),
            ),
            ("extra trees, calibration rows", ExtraTreesRegressor),
        ):
            for nominal in (0.8, 0.9):
                runs = [
                    coverage(make(100, n_jobs=-1, random_state=seed), X, y, nominal, seed)
                    for seed in range(REPEATS)
                ]
                found, width = np.mean(runs, axis=0)
                sd = np.std([c for c, _ in runs], ddof=1)
                print(
                    f"{name:14}{title:32}{nominal:9.0%}{found:10.1%}{sd:9.1%}{width:10.3g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
