"""Linear models against scikit-learn (its fastest solver that applies) and, for L1, skglm.

    python benchmarks/linear.py [--data FOLDER] [--repeats N] [--only NAME ...] [--threads N]

All take turns in one process, the best time of several counts. The objective that each ends at is
printed beside it (as what it exceeds the least of them by, relative): a time counts if that is
nothing, or no more than Spinney's. Memory is what the process grows by at most while a fit runs,
sampled every millisecond. FOLDER holds adult as Parquet, for the sparse design.
"""

from __future__ import annotations

import argparse
import threading
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import scipy.sparse as sp
import sklearn.linear_model as theirs
from scipy.special import expit
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

import spinney
import spinney.linear_model as ours

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def normal_rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 3
    w = rng.normal(size=d) / np.sqrt(d)
    return X, w, rng


def regression(n=500_000, d=50):
    X, w, rng = normal_rows(n, d)
    return X, X @ w + rng.normal(size=n)


def classes(n=500_000, d=50):
    X, w, rng = normal_rows(n, d)
    z = (X - 3) @ w * 2
    return X, (rng.random(n) < expit(z)).astype(int)


def spam():
    X, y = spinney.datasets.load_spam(return_X_y=True)
    return StandardScaler().fit_transform(np.asarray(X, dtype=np.float64)), np.asarray(y)


def wide():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 20_000))
    w = np.zeros(20_000)
    w[:50] = rng.normal(size=50)
    return X, (X @ w + rng.normal(size=2_000) > 0).astype(int)


def adult(folder):
    frame = pd.read_parquet(folder / "adult.parquet")
    target = "class" if "class" in frame else frame.columns[-1]
    y = pd.factorize(frame.pop(target))[0]
    numbers = frame.select_dtypes("number").columns
    rest = [name for name in frame.columns if name not in numbers]
    scaled = StandardScaler().fit_transform(frame[numbers].fillna(0))
    hot = OneHotEncoder().fit_transform(frame[rest].astype(str))
    return sp.hstack([sp.csr_matrix(scaled), hot]).tocsr(), y


def squares(alpha):
    def objective(model, X, y):
        error = y - model.predict(X)
        return float(error @ error + alpha * (model.coef_ @ model.coef_))

    return objective


def logistic(C, ratio=0.0):
    def objective(model, X, y):
        coef = np.ravel(model.coef_)
        z = X @ coef + np.ravel(model.intercept_)
        penalty = ratio * np.abs(coef).sum() + (1 - ratio) / 2 * (coef @ coef)
        return float((np.logaddexp(0, z) - (y == np.max(y)) * z).sum() + penalty / C)

    return objective


def alpha_of(model, X, y):
    return float(model.alpha_)


def skglm_l1(C, n_rows, tol):
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic
    from skglm.penalties import L1
    from skglm.solvers import ProxNewton

    return GeneralizedLinearEstimator(
        Logistic(), L1(1 / C / n_rows), ProxNewton(tol=tol, fit_intercept=True)
    )


class _Signs:
    """skglm's logistic loss wants -1 and 1."""

    def __init__(self, model):
        self.model = model

    def fit(self, X, y):
        self.model.fit(X, np.where(y == np.max(y), 1.0, -1.0))
        self.coef_, self.intercept_ = self.model.coef_, self.model.intercept_
        return self


def cases(folder):
    yield (
        "LinearRegression 500,000 x 50",
        regression,
        squares(0.0),
        {"spinney": lambda: ours.LinearRegression(), "sklearn": lambda: theirs.LinearRegression()},
    )
    yield (
        "Ridge 500,000 x 50",
        regression,
        squares(1.0),
        {
            "spinney": lambda: ours.Ridge(),
            **{f"sklearn {s}": lambda s=s: theirs.Ridge(solver=s) for s in ("cholesky", "lsqr")},
        },
    )
    yield (
        "RidgeCV 500,000 x 50, 3 alphas",
        regression,
        alpha_of,
        {
            "spinney": lambda: ours.RidgeCV(),
            **{f"sklearn {m}": lambda m=m: theirs.RidgeCV(gcv_mode=m) for m in ("eigen", "svd")},
        },
    )
    smooth = ("lbfgs", "newton-cholesky")
    yield (
        "LogisticRegression 500,000 x 50",
        classes,
        logistic(1.0),
        {
            "spinney": lambda: ours.LogisticRegression(),
            **{f"sklearn {s}": lambda s=s: theirs.LogisticRegression(solver=s) for s in smooth},
        },
    )
    yield (
        "LogisticRegression adult, one-hot sparse",
        lambda: adult(folder),
        logistic(1.0),
        {
            "spinney": lambda: ours.LogisticRegression(),
            **{
                f"sklearn {s}": lambda s=s: theirs.LogisticRegression(solver=s, max_iter=1000)
                for s in (*smooth, "liblinear")
            },
        },
    )
    yield (
        "L1 logistic, spam 4,601 x 57, C = 1",
        spam,
        logistic(1.0, 1.0),
        {
            "spinney": lambda: ours.LogisticRegression(l1_ratio=1, tol=1e-5),
            "skglm": lambda: _Signs(skglm_l1(1.0, 4601, 1e-5)),
            "sklearn saga": lambda: theirs.LogisticRegression(
                l1_ratio=1, solver="saga", tol=1e-4, max_iter=2000
            ),
            "sklearn liblinear": lambda: theirs.LogisticRegression(
                l1_ratio=1, solver="liblinear", tol=1e-4, max_iter=1000
            ),
        },
    )
    for C in (0.05, 1.0):
        yield (
            f"L1 logistic, 2,000 x 20,000, C = {C}",
            wide,
            logistic(C, 1.0),
            {
                "spinney": lambda C=C: ours.LogisticRegression(l1_ratio=1, C=C, tol=1e-5),
                "skglm": lambda C=C: _Signs(skglm_l1(C, 2000, 1e-5)),
                "sklearn liblinear": lambda C=C: theirs.LogisticRegression(
                    l1_ratio=1, C=C, solver="liblinear", tol=1e-4, max_iter=1000
                ),
            },
        )


class Peak:
    """The most that the process grows by while the block runs."""

    def __enter__(self):
        self._process = psutil.Process()
        self._before = self._most = self._process.memory_info().rss
        self._ends = False
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self):
        while not self._ends:
            self._most = max(self._most, self._process.memory_info().rss)
            time.sleep(0.001)

    def __exit__(self, *_):
        self._ends = True
        self._thread.join()
        self.megabytes = (self._most - self._before) / 2**20


def compare(name, make, objective, models, repeats):
    X, y = make()
    print(f"\n{name}", flush=True)
    best, values, memory = {}, {}, {}
    for round_ in range(repeats + 1):
        for kind, build in models.items():
            if best.get(kind, 0) > 30:
                continue  # slow ones once
            model = build()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if round_ == repeats:
                    with Peak() as peak:
                        model.fit(X, y)
                    memory[kind] = peak.megabytes
                    continue
                start = time.perf_counter()
                model.fit(X, y)
                took = time.perf_counter() - start
            best[kind] = min(took, best.get(kind, np.inf))
            values[kind] = objective(model, X, y)
    least = min(values.values())
    for kind in models:
        beyond = (values[kind] - least) / max(abs(least), 1e-300)
        ratio = best[kind] / best["spinney"]
        print(
            f"    {kind:24s} {best[kind]:9.4f} s  {ratio:7.2f}  objective + {beyond:8.1e}"
            f"  memory {memory.get(kind, np.nan):7.0f} MB",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("scikit-learn", "skglm", "numpy"))
    print(f"spinney {spinney.__version__}, {versions}; {options.threads} threads")
    spinney.set_num_threads(options.threads)
    with threadpool_limits(options.threads):
        for name, *rest in cases(options.data):
            if not options.only or any(part in name for part in options.only):
                compare(name, *rest, options.repeats)


if __name__ == "__main__":
    main()
