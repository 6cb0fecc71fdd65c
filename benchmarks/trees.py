"""Decision trees against scikit-learn: time, memory and score, side by side, in one run.

    python benchmarks/trees.py [--data FOLDER] [--quick] [case …]

Both libraries fit the same rows, one after the other, several times; the best time of each counts.
scikit-learn's trees use one thread whatever the machine has. Ratios carry over between machines,
seconds do not. FOLDER holds covertype.parquet and california_housing.parquet.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from sklearn import tree as peer
from sklearn.datasets import load_iris

from spinney import tree as ours

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def synthetic(n_rows, n_features=54, n_classes=7, seed=0):
    """Continuous columns, a linear rule with a third of the columns and much noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    rule = rng.normal(size=(n_features, n_classes)) * (rng.random((n_features, n_classes)) < 0.3)
    y = np.argmax(X @ rule + 3 * rng.gumbel(size=(n_rows, n_classes)), axis=1)
    return X.astype(np.float32).astype(np.float64), y


def read(folder, name):
    import pandas as pd

    frame = pd.read_parquet(folder / f"{name}.parquet")
    y = frame.pop("target").to_numpy()
    return np.ascontiguousarray(frame.to_numpy(dtype=np.float64)), y


def california(folder, copies=10):
    """The table several times over, with a little noise so that no two rows are equal."""
    X, y = read(folder, "california_housing")
    rng = np.random.default_rng(0)
    X = np.tile(X, (copies, 1))
    y = np.tile(y.astype(float), copies)
    X = X + 0.01 * X.std(axis=0) * rng.normal(size=X.shape)
    return X.astype(np.float32).astype(np.float64), y + 0.01 * rng.normal(size=len(y))


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


def split(X, y):
    test = np.random.default_rng(1).random(len(y)) < 0.2
    return X[~test], y[~test], X[test], y[test]


def row(*cells):
    widths = (40, 7, 10, 10, 7, 8, 18)
    print(
        "  ".join(
            str(c).ljust(w) if i == 0 else str(c).rjust(w)
            for i, (c, w) in enumerate(zip(cells, widths, strict=True))
        ),
        flush=True,
    )


def compare(title, X, y, ours_class, peer_class, *, target, threads=(1, 2), repeats=3, **params):
    """Fit on four fifths, score on the rest, and time predict on all rows."""
    X_fit, y_fit, X_test, y_test = split(X, y)
    theirs = peer_class(random_state=0, **params)
    mine = [ours_class(n_jobs=n, **params) for n in threads]
    times = best_times([lambda m=m: m.fit(X_fit, y_fit) for m in [theirs, *mine]], repeats)
    scores = f"{mine[-1].score(X_test, y_test):.4f} / {theirs.score(X_test, y_test):.4f}"
    for n, seconds in zip(threads, times[1:], strict=True):
        row(
            title + " fit",
            n,
            f"{times[0]:.4f}",
            f"{seconds:.4f}",
            f"{times[0] / seconds:.1f}x",
            target.get(n, ""),
            scores,
        )
    times = best_times([lambda m=m: m.predict(X) for m in [theirs, *mine]], 2 * repeats + 1)
    for n, seconds in zip(threads, times[1:], strict=True):
        row(
            title + " predict",
            n,
            f"{times[0]:.4f}",
            f"{seconds:.4f}",
            f"{times[0] / seconds:.1f}x",
            "5x" if n == 2 else "",
            "",
        )


def case_synthetic(folder, quick):
    X, y = synthetic(20_000 if quick else 125_000)
    compare(
        "synthetic 100,000 x 54, 7 classes",
        X,
        y,
        ours.DecisionTreeClassifier,
        peer.DecisionTreeClassifier,
        target={1: "12x", 2: "20x"},
    )


def case_covertype(folder, quick):
    X, y = read(folder, "covertype")
    compare(
        "covertype 74,000 x 54",
        X,
        y,
        ours.DecisionTreeClassifier,
        peer.DecisionTreeClassifier,
        target={2: "10x"},
        repeats=5,
    )


def case_squared(folder, quick):
    X, y = california(folder, 2 if quick else 10)
    compare(
        "california x10, squared error",
        X,
        y,
        ours.DecisionTreeRegressor,
        peer.DecisionTreeRegressor,
        target={2: "10x"},
        repeats=4,
    )


def case_absolute(folder, quick):
    X, y = california(folder, 1 if quick else 10)
    compare(
        "california x10, absolute error",
        X,
        y,
        ours.DecisionTreeRegressor,
        peer.DecisionTreeRegressor,
        target={2: "10x"},
        repeats=2,
        criterion="absolute_error",
    )


def case_other_criteria(folder, quick):
    X, y = synthetic(20_000)
    compare(
        "synthetic 16,000 x 54, entropy",
        X,
        y,
        ours.DecisionTreeClassifier,
        peer.DecisionTreeClassifier,
        target={},
        criterion="entropy",
    )
    X, y = california(folder, 2)
    compare(
        "california x2, poisson",
        X,
        y - y.min() + 0.01,
        ours.DecisionTreeRegressor,
        peer.DecisionTreeRegressor,
        target={},
        criterion="poisson",
    )
    compare(
        "california x2, 5 best-first leaves",
        X,
        y,
        ours.DecisionTreeRegressor,
        peer.DecisionTreeRegressor,
        target={},
        max_leaf_nodes=5,
    )
    compare(
        "california x2, extra tree",
        X,
        y,
        ours.ExtraTreeRegressor,
        peer.ExtraTreeRegressor,
        target={},
    )
    X, y = synthetic(20_000)
    compare(
        "synthetic 16,000 x 54, sqrt columns",
        X,
        y,
        ours.DecisionTreeClassifier,
        peer.DecisionTreeClassifier,
        target={},
        max_features="sqrt",
    )


def case_small(folder, quick):
    X, y = load_iris(return_X_y=True)
    for title, n in (("iris 150 x 4", 150), ("10 rows of iris", 10)):
        rows = np.linspace(0, 149, n).astype(int)
        A, b = X[rows], y[rows]
        theirs, mine = peer.DecisionTreeClassifier(random_state=0), ours.DecisionTreeClassifier()
        times = best_times(
            [lambda t=theirs, A=A, b=b: t.fit(A, b), lambda m=mine, A=A, b=b: m.fit(A, b)], 300
        )
        row(
            title + " fit",
            2,
            f"{times[0]:.6f}",
            f"{times[1]:.6f}",
            f"{times[0] / times[1]:.1f}x",
            "1x",
            "",
        )
        times = best_times(
            [lambda t=theirs, A=A: t.predict(A), lambda m=mine, A=A: m.predict(A)], 300
        )
        row(
            title + " predict",
            2,
            f"{times[0]:.6f}",
            f"{times[1]:.6f}",
            f"{times[0] / times[1]:.1f}x",
            "",
            "",
        )


def case_growth(folder, quick):
    """Fit time against n log n, 10 columns, two classes, depth not limited."""
    sizes = (10_000, 30_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    times = []
    for n in sizes:
        X, y = synthetic(n, n_features=10, n_classes=2)
        tree = ours.DecisionTreeClassifier(n_jobs=2)
        times.append(best_times([lambda X=X, y=y, tree=tree: tree.fit(X, y)], 3)[0])
        row(f"growth {n:,} x 10 fit", 2, "", f"{times[-1]:.4f}", "", "", "")
    work = [n * np.log(n) for n in sizes]
    exponent = np.polyfit(np.log(work), np.log(times), 1)[0]
    row("growth: exponent of n log n", 2, "", "", f"{exponent:.2f}", "<= 1", "")


_MEMORY = """
import sys, numpy as np, threading, time, psutil
sys.path.insert(0, sys.argv[3])
from trees import synthetic
library, folder = sys.argv[1], sys.argv[2]
if library == "sklearn":
    from sklearn.tree import DecisionTreeClassifier as Tree
    tree = Tree(random_state=0)
else:
    from spinney.tree import DecisionTreeClassifier as Tree
    tree = Tree(n_jobs=2)
X, y = synthetic(100_000)
Tree().fit(X[:1000], y[:1000])
process = psutil.Process()
before = process.memory_info().rss
peak, done = before, False
def watch():
    global peak
    while not done:
        peak = max(peak, process.memory_info().rss)
        time.sleep(0.002)
thread = threading.Thread(target=watch); thread.start()
tree.fit(X, y)
done = True; thread.join()
print((peak - before) / 2**20)
"""


def case_memory(folder, quick):
    here = str(Path(__file__).resolve().parent)
    peaks = []
    for library in ("sklearn", "spinney"):
        out = subprocess.run(
            [sys.executable, "-c", _MEMORY, library, str(folder), here],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(float(out.stdout))
    codes = 100_000 * 54 * 8 / 2**20
    row(
        "memory above start, synthetic, MiB",
        2,
        f"{peaks[0]:.0f}",
        f"{peaks[1]:.0f}",
        "",
        f"{peaks[0] + codes:.0f}",
        f"codes {codes:.0f} MiB",
    )


CASES = {
    name.removeprefix("case_"): function
    for name, function in list(globals().items())
    if name.startswith("case_")
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help=f"of: {', '.join(CASES)}")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="smaller tables")
    arguments = parser.parse_args()
    import sklearn

    import spinney

    print(
        f"spinney {spinney.__version__}, scikit-learn {sklearn.__version__}, numpy "
        f"{np.__version__}, {len(os.sched_getaffinity(0))} CPUs"
    )
    row("", "threads", "sklearn s", "spinney s", "ratio", "target", "score ours/theirs")
    for name in arguments.cases or CASES:
        CASES[name](arguments.data, arguments.quick)


if __name__ == "__main__":
    main()
