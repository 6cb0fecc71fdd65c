"""Gaussian mixtures against scikit-learn's, and mixture classifiers on tables.

    python benchmarks/mixture.py [--repeats N] [--steps N] [--data FOLDER] [PART ...]

Parts: speed, tables. Speed: time, memory and likelihood from the same start.

Two threads each, the libraries take turns, the best time counts. Both start from the same means,
weights and precisions and make the same number of steps of EM, so that the likelihood must be
equal. Memory is what a fit in a process of its own takes beyond the rows. Tables: accuracy and log
loss in five folds of at most 4,000 rows, over the numeric columns of tables that FOLDER holds as
Parquet.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

THREADS = 2
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))
os.environ.setdefault("OPENBLAS_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402
from sklearn.mixture import GaussianMixture as SkGaussianMixture  # noqa: E402

from spinney.mixture import GaussianMixture, MixtureClassifier  # noqa: E402

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

CASES = (
    (200_000, 10, 8, "full"),
    (100_000, 50, 5, "full"),
    (200_000, 10, 8, "tied"),
    (200_000, 10, 8, "diag"),
    (100_000, 50, 5, "diag"),
    (200_000, 10, 8, "spherical"),
    (2_000, 5, 3, "full"),
)
TABLES = (
    *("iris", "wine", "breast_cancer_wdbc", "ecoli", "glass", "ionosphere", "sonar", "vowel"),
    *("satimage", "magic_telescope", "pima_diabetes", "spam", "optdigits", "haberman", "sa_heart"),
)
LIBRARIES = {"spinney": GaussianMixture, "scikit-learn": SkGaussianMixture}


def draw(n_rows, n_features, n_components):
    """Rows from components that overlap: every row belongs to some of them."""
    rng = np.random.default_rng(0)
    centres = 1.5 * rng.normal(size=(n_components, n_features))
    shapes = np.eye(n_features) + 0.3 * rng.normal(size=(n_components, n_features, n_features))
    labels = rng.integers(0, n_components, n_rows)
    X = rng.normal(size=(n_rows, n_features))
    for k in range(n_components):
        X[labels == k] = X[labels == k] @ shapes[k] + centres[k]
    return X


def make(library, X, n_components, kind, steps):
    n_features = X.shape[1]
    precisions = {
        "full": np.stack([np.eye(n_features)] * n_components),
        "tied": np.eye(n_features),
        "diag": np.ones((n_components, n_features)),
        "spherical": np.ones(n_components),
    }[kind]
    threads = {"n_jobs": THREADS} if library == "spinney" else {}
    return LIBRARIES[library](
        n_components,
        covariance_type=kind,
        tol=0,
        max_iter=steps,
        weights_init=np.full(n_components, 1 / n_components),
        means_init=X[:n_components],
        precisions_init=precisions,
        **threads,
    )


def race(case, repeats, steps):
    n_rows, n_features, n_components, kind = case
    X = draw(n_rows, n_features, n_components)
    fits = dict.fromkeys(LIBRARIES, np.inf)
    scores = dict.fromkeys(LIBRARIES, np.inf)
    bounds = {}
    for _ in range(repeats):
        for library in LIBRARIES:
            model = make(library, X, n_components, kind, steps)
            start = time.perf_counter()
            model.fit(X)
            middle = time.perf_counter()
            model.score_samples(X)
            fits[library] = min(fits[library], middle - start)
            scores[library] = min(scores[library], time.perf_counter() - middle)
            bounds[library] = model.lower_bound_
    title = f"{n_rows:,} x {n_features}, {n_components} {kind}"
    memory = {library: measure_memory(library, case) for library in LIBRARIES}
    for library in LIBRARIES:
        print(
            f"{title:32s}{library:14s}{fits[library]:8.3f} s{fits[library] / fits['spinney']:7.1f}"
            f"{scores[library]:10.4f} s{scores[library] / scores['spinney']:7.1f}"
            f"{memory[library]:9.0f} MB   {bounds[library]:.10f}",
            flush=True,
        )
        title = ""


def measure_memory(library, case):
    """Peak of a fit beyond what is there before it, in a process of its own."""
    command = [sys.executable, __file__, "--memory-of", library, *map(str, case)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(out)


def print_memory(library, n_rows, n_features, n_components, kind):
    import resource

    X = draw(int(n_rows), int(n_features), int(n_components))
    warm = make(library, X[:1000], int(n_components), kind, 1)
    warm.fit(X[:1000])
    model = make(library, X, int(n_components), kind, 2)
    # The peak so far is from drawing the rows: reset it, where the system can.
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    with open("/proc/self/statm") as statm:
        before = int(statm.read().split()[1]) * resource.getpagesize()
    model.fit(X)
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
    print((peak - before) / 1e6)


def read_table(path):
    """Numeric columns without gaps, at most 4,000 rows, classes of five rows or more."""
    import pandas as pd

    frame = pd.read_parquet(path)
    target = "target" if "target" in frame else frame.columns[-1]
    y = frame.pop(target).astype(str).to_numpy()
    X = frame.select_dtypes("number").dropna(axis=1).to_numpy(dtype=float)
    if len(X) > 4000:
        some = np.random.default_rng(0).choice(len(X), 4000, replace=False)
        X, y = X[some], y[some]
    names, codes = np.unique(y, return_inverse=True)
    often = np.bincount(codes, minlength=len(names))[codes] >= 5
    return X[often], y[often]


def compare_tables(folder):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.model_selection import StratifiedKFold, cross_validate
    from sklearn.naive_bayes import GaussianNB

    rules = {
        "mixtures": MixtureClassifier(n_jobs=THREADS),
        "linear": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "naive": GaussianNB(),
    }
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    print(
        "accuracy and log loss: " + ", ".join(f"{n} ({type(r).__name__})" for n, r in rules.items())
    )
    found = []
    for name in TABLES:
        X, y = read_table(folder / f"{name}.parquet")
        line = f"{name:20s}{X.shape[0]:6,d} x {X.shape[1]:<4d}"
        for rule in rules.values():
            scores = cross_validate(
                rule, X, y, cv=folds, scoring=("accuracy", "neg_log_loss"), error_score="raise"
            )
            accuracy, loss = scores["test_accuracy"].mean(), -scores["test_neg_log_loss"].mean()
            seconds = scores["fit_time"].mean()
            found.append((accuracy, loss))
            line += f"   {accuracy:.3f} {loss:5.2f} {seconds:6.3f} s"
        print(line, flush=True)
    means = np.array(found).reshape(len(TABLES), len(rules), 2).mean(axis=0)
    print(f"{'mean':33s}" + "".join(f"   {a:.3f} {loss:5.2f}         " for a, loss in means))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--memory-of", nargs=5, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("parts", nargs="*", default=["speed", "tables"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.memory_of:
        print_memory(*arguments.memory_of)
        return
    if "speed" in arguments.parts:
        print(f"{arguments.steps} steps of EM, {THREADS} threads, best of {arguments.repeats}")
        print(
            f"{'':46s}{'fit':>10s}{'ratio':>7s}{'score':>12s}{'ratio':>7s}{'memory':>12s}   "
            "mean log-likelihood"
        )
        for case in CASES:
            race(case, arguments.repeats, arguments.steps)
    if "tables" in arguments.parts:
        compare_tables(arguments.data)


if __name__ == "__main__":
    main()
