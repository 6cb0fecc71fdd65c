"""Forests against scikit-learn: time, memory and score, side by side, in one run.

    python benchmarks/forests.py [--data FOLDER] [--trees N] [--repeats N] [case …]

Both libraries fit the same rows with the same parameters and two threads, one after the other,
several times; the best time of each counts. ydf and LightGBM's forests are shown for the record
where they are installed. Memory is that of a process of its own: the largest resident size during
the fit above the size before it. Ratios carry over between machines, seconds do not. FOLDER holds
covertype, fashion_mnist and california_housing as Parquet.
"""

from __future__ import annotations

import argparse
import gc
import os
import pickle
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn.ensemble as peer

import spinney.ensemble as ours
from trees import california, read, synthetic

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
THREADS = 2


def best_times(tasks, repeats):
    """Run every task in turn, `repeats` times over; the least seconds of each."""
    best = [np.inf] * len(tasks)
    for _ in range(repeats):
        for i, task in enumerate(tasks):
            gc.collect()
            start = time.perf_counter()
            task()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def row(*cells):
    widths = (46, 10, 10, 8, 7, 18)
    print(
        "  ".join(
            str(c).ljust(w) if i == 0 else str(c).rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ),
        flush=True,
    )


def table(name, folder):
    """The rows of a case: (X, y, classes?)."""
    if name == "synthetic":
        X, y = synthetic(100_000)
        return X.astype(np.float32), y, True
    if name == "covertype":
        X, y = read(folder, "covertype")
        return X.astype(np.float32), y, True
    if name == "fashion":
        import pandas as pd

        frame = pd.read_parquet(folder / "fashion_mnist.parquet")
        frame = frame.drop(columns=[c for c in ("split", "set") if c in frame])[:10_000]
        y = frame.pop("target").to_numpy()
        return np.ascontiguousarray(frame.to_numpy(dtype=np.float32)), y, True
    if name == "california":
        X, y = california(folder)
        return X.astype(np.float32), y, False
    if name == "small":
        X, y = synthetic(1000, n_features=10, n_classes=2)
        return X.astype(np.float32), y, True
    raise ValueError(name)


def estimator(module, kind, classes, n_trees):
    name = {"forest": "RandomForest", "extra": "ExtraTrees"}[kind]
    cls = getattr(module, name + ("Classifier" if classes else "Regressor"))
    return cls(n_trees, n_jobs=THREADS, random_state=0)


def fit_case(title, name, folder, *, kind="forest", target, arguments):
    X, y, classes = table(name, folder)
    test = np.random.default_rng(1).random(len(y)) < (0.2 if len(y) < 50_000 else 0.1)
    theirs, mine = (estimator(m, kind, classes, arguments.trees) for m in (peer, ours))
    X_fit, y_fit = X[~test], y[~test]
    repeats = arguments.repeats if len(y) > 5000 else 5 * arguments.repeats
    seconds = best_times([lambda m=m: m.fit(X_fit, y_fit) for m in (theirs, mine)], repeats)
    scores = f"{mine.score(X[test], y[test]):.4f} / {theirs.score(X[test], y[test]):.4f}"
    show(f"{title}: fit", seconds, target, scores)
    rows = X[:100_000]
    seconds = best_times([lambda m=m: m.predict(rows) for m in (theirs, mine)], 3)
    show(f"{title}: predict {len(rows):,}", seconds, "10x" if len(rows) >= 90_000 else "")
    sizes = [len(pickle.dumps(m, protocol=5)) / 1e6 for m in (theirs, mine)]
    row(
        f"{title}: pickle MB", *(f"{s:.2f}" for s in sizes), f"{sizes[0] / sizes[1]:.1f}x", "4x", ""
    )
    if name == "synthetic" and kind == "forest":
        one = X[:1]
        seconds = best_times(
            [lambda m=m: [m.predict(one) for _ in range(200)] for m in (theirs, mine)], 3
        )
        show("one row: predict", [s / 200 for s in seconds], "50 us", "")
    if name != "small":
        del theirs, mine
        for_memory(title, name, kind, arguments)


def for_memory(title, name, kind, arguments):
    sizes = []
    for library in ("sklearn.ensemble", "spinney.ensemble"):
        command = [
            *(sys.executable, __file__, "--memory", library, "--kind", kind),
            *("--data", str(arguments.data), "--trees", str(arguments.trees), name),
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        sizes.append([float(x) for x in run.stdout.split()])
    for k, what in enumerate(("peak of fit", "fitted")):
        a, b = sizes[0][k], sizes[1][k]
        row(f"{title}: {what}, MB", f"{a:.0f}", f"{b:.0f}", f"{a / b:.1f}x", "4x", "")


def measure_memory(library, name, arguments):
    """Print the peak during the fit, and what stays, in MB above the level before."""
    import importlib

    X, y, classes = table(name, arguments.data)
    module = importlib.import_module(library)
    model = estimator(module, arguments.kind, classes, arguments.trees)
    estimator(module, arguments.kind, classes, 1).fit(X[:50], y[:50])
    gc.collect()
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    model.fit(X, y)
    peak = resident("VmHWM")
    gc.collect()
    print(peak - before, resident() - before)


def resident(field="VmRSS"):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {field}")


def show(title, seconds, target, scores=""):
    digits = 4 if seconds[1] > 0.001 else 6
    row(
        title,
        f"{seconds[0]:.{digits}f}",
        f"{seconds[1]:.{digits}f}",
        f"{seconds[0] / seconds[1]:.1f}x",
        target,
        scores,
    )


def case_synthetic(arguments):
    fit_case(
        "synthetic 100,000 x 54, 7 classes",
        "synthetic",
        arguments.data,
        target="8x",
        arguments=arguments,
    )


def case_covertype(arguments):
    fit_case("covertype 93,000 x 54", "covertype", arguments.data, target="8x", arguments=arguments)


def case_fashion(arguments):
    fit_case(
        "fashion_mnist 10,000 x 784", "fashion", arguments.data, target="8x", arguments=arguments
    )


def case_california(arguments):
    fit_case("california x10", "california", arguments.data, target="6x", arguments=arguments)


def case_small(arguments):
    fit_case("synthetic 1,000 x 10", "small", arguments.data, target="10x", arguments=arguments)


def case_extra(arguments):
    for title, name in (
        ("extra trees, synthetic 100,000 x 54", "synthetic"),
        ("extra trees, covertype", "covertype"),
        ("extra trees, california x10", "california"),
    ):
        fit_case(title, name, arguments.data, kind="extra", target="5x", arguments=arguments)


def case_isolation(arguments):
    X, _, _ = table("covertype", arguments.data)
    models = [m.IsolationForest(n_jobs=THREADS, random_state=0) for m in (peer, ours)]
    seconds = best_times([lambda m=m: m.fit(X).score_samples(X) for m in models], 3)
    show("isolation forest, covertype: fit + score", seconds, "5x")


def case_record(arguments):
    """What other libraries take for a forest of this size; their trees are not grown to the end."""
    X, y, _ = table("covertype", arguments.data)
    mine = ours.RandomForestClassifier(arguments.trees, n_jobs=THREADS, random_state=0)
    tasks = {"spinney": lambda: mine.fit(X, y)}
    try:
        import lightgbm

        labels = np.unique(y, return_inverse=True)[1]
        booster = lightgbm.LGBMClassifier(
            boosting_type="rf",
            n_estimators=arguments.trees,
            num_leaves=4096,
            subsample=0.632,
            subsample_freq=1,
            colsample_bynode=0.13,
            n_jobs=THREADS,
            verbose=-1,
        )
        tasks["lightgbm rf, 4,096 leaves"] = lambda: booster.fit(X, labels)
    except ImportError:
        pass
    try:
        import pandas as pd
        import ydf

        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=y)
        learner = ydf.RandomForestLearner(
            label="y",
            num_trees=arguments.trees,
            num_threads=THREADS,
            compute_oob_performances=False,
        )
        tasks["ydf, depth 16"] = lambda: learner.train(frame, verbose=0)
    except ImportError:
        pass
    for name, task in tasks.items():
        row(f"covertype: fit, {name}", "", f"{best_times([task], 1)[0]:.2f}", "", "", "")


CASES = {name[5:]: task for name, task in globals().copy().items() if name.startswith("case_")}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--memory", help=argparse.SUPPRESS)
    parser.add_argument("--kind", default="forest", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.memory:
        measure_memory(arguments.memory, arguments.cases[0], arguments)
        return
    import sklearn

    import spinney

    print(
        f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}, numpy "
        f"{np.__version__}, {os.cpu_count()} CPUs, {THREADS} threads, {arguments.trees} trees"
    )
    row("", "sklearn", "spinney", "ratio", "target", "score ours/theirs")
    for name in arguments.cases:
        CASES[name](arguments)


if __name__ == "__main__":
    main()
