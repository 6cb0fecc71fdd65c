"""Compare two builds of Spinney with each other, for changes that must not cost speed.

    python benchmarks/builds.py OLD NEW [--repeats 7] [--instructions] [CASE ...]

OLD and NEW are folders that contain the package `spinney` (a build, or ``src`` with the compiled
module in it). Each build runs in a process of its own; the processes take turns, one measurement
each, and the best time of each case counts. The ratio is old / new: above 1 the new build is
faster.

With ``--instructions``, each case runs once on one thread in valgrind, which counts instructions
(millions). The counts repeat on a busy machine; valgrind has AVX2 but not AVX-512.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep

# A worker reads the names of cases, one per line, runs each once and writes the seconds. With a
# library that controls callgrind as its argument, it writes millions of instructions.
WORKER = """
import ctypes
import os
import sys
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

import spinney
from spinney.ensemble import (
    AdaBoostClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.inspection import shap_values
from spinney.linear_model import LinearRegression, LogisticRegression, Ridge
from spinney.mixture import GaussianMixture
from spinney.neighbors import HNSW, KDTree, KNeighborsClassifier, LocalRegression
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

expected = os.environ["PYTHONPATH"]
if not spinney.__file__.startswith(expected):
    sys.exit(f"spinney was imported from {spinney.__file__}, not from {expected}; is it installed?")
counter = sys.argv[1] if sys.argv[1:] and sys.argv[1] != "--list" else None
N_JOBS = 2 if counter is None else 1
if counter is not None:
    spinney.set_num_threads(1)
rng = np.random.default_rng(0)
X = rng.normal(size=(50_000, 20))
y = X[:, 0] + np.sin(3 * X[:, 1]) * X[:, 2] + rng.normal(size=len(X))
c = np.digitize(y, [-1, 0, 1])
few, few_y, few_c = X[:20], y[:20], c[:20]
points = rng.random((50_000, 3))

tree = DecisionTreeClassifier(random_state=0, n_jobs=N_JOBS).fit(X, c)
forest = RandomForestClassifier(50, random_state=0, n_jobs=N_JOBS).fit(X[:20_000], c[:20_000])
booster = GradientBoostingRegressor(n_estimators=100, n_jobs=N_JOBS).fit(X, y)
index = KDTree(points)
graph = HNSW().fit(X[:5_000])
neighbors = KNeighborsClassifier().fit(X[:5_000], c[:5_000])
row = np.ascontiguousarray(X[:1])

def often(n, call):
    return lambda: [call() for _ in range(n)]

cases = {
    "tree, classes, fit": lambda: DecisionTreeClassifier(random_state=0, n_jobs=N_JOBS).fit(X, c),
    "tree, numbers, fit": lambda: DecisionTreeRegressor(random_state=0, n_jobs=N_JOBS).fit(X, y),
    "tree, 20 rows, fit": often(300, lambda: DecisionTreeClassifier().fit(few, few_c)),
    "tree, 20 rows, predict": often(3_000, lambda: tree.predict(few)),
    "tree, predict": often(10, lambda: tree.predict(X)),
    "forest, classes, fit": lambda: RandomForestClassifier(20, random_state=0, n_jobs=N_JOBS).fit(
        X[:20_000], c[:20_000]
    ),
    "forest, numbers, fit": lambda: RandomForestRegressor(10, random_state=0, n_jobs=N_JOBS).fit(
        X[:20_000], y[:20_000]
    ),
    "forest, 20 rows, fit": often(20, lambda: RandomForestClassifier(10).fit(few, few_c)),
    "forest, predict": lambda: forest.predict(X[:20_000]),
    "forest, one row, predict": often(500, lambda: forest.predict(row)),
    "boosting, numbers, fit": lambda: GradientBoostingRegressor(
        n_estimators=100, n_jobs=N_JOBS
    ).fit(X, y),
    "boosting, classes, fit": lambda: GradientBoostingClassifier(
        n_estimators=20, n_jobs=N_JOBS
    ).fit(X, c),
    "boosting, defaults, 2,000 rows, fit": lambda: GradientBoostingRegressor(
        n_jobs=N_JOBS, random_state=0
    ).fit(X[:2_000], y[:2_000]),
    "boosting, 20 rows, fit": often(
        30, lambda: GradientBoostingRegressor(n_estimators=10).fit(few, few_y)
    ),
    "boosting, predict": often(5, lambda: booster.predict(X)),
    "boosting, one row, predict": often(2_000, lambda: booster.predict(row)),
    "k-d tree, build": lambda: KDTree(points),
    "k-d tree, query": lambda: index.query(points, 5),
    "hnsw, query": often(3, lambda: graph.query(X[:2_000], 5)),
    "k neighbours, predict": lambda: neighbors.predict(X[:5_000]),
    "k neighbours, one row, predict": often(500, lambda: neighbors.predict(row)),
    "hnsw, build": lambda: HNSW().fit(X[:5_000]),
    "logistic regression, fit": lambda: LogisticRegression().fit(X, c),
    "linear regression, fit": often(5, lambda: LinearRegression().fit(X, y)),
    "ridge, fit": often(5, lambda: Ridge().fit(X, y)),
    "local regression, fit and predict": lambda: LocalRegression().fit(
        points[:2_000], y[:2_000]
    ).predict(points[:2_000]),
    "adaboost, fit": lambda: AdaBoostClassifier(n_estimators=20, random_state=0).fit(X, c),
    "gaussian mixture, fit": lambda: GaussianMixture(5, random_state=0, max_iter=10, tol=0).fit(X),
    "shap values, booster": lambda: shap_values(booster, X[:2_000]),
    "shap values, forest": lambda: shap_values(forest, X[:100]),
}
if sys.argv[1:] == ["--list"]:
    print("\\n".join(cases))
    sys.exit()


def seconds(case):
    start = perf_counter()
    case()
    return perf_counter() - start


def instructions(library, case):
    library.start()
    case()
    library.stop()
    newest = max(Path(counter).parent.glob("counts.*"), key=lambda file: file.stat().st_mtime_ns)
    totals = [line for line in newest.read_text().splitlines() if line.startswith("totals:")]
    return int(totals[-1].split()[1]) / 1e6


measure = seconds if counter is None else partial(instructions, ctypes.CDLL(counter))
print("ready", flush=True)
for line in sys.stdin:
    print(measure(cases[line.strip()]), flush=True)
"""
# Starts and stops the counting of instructions.
COUNTER = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_ZERO_STATS; }
void stop(void) { CALLGRIND_DUMP_STATS; CALLGRIND_STOP_INSTRUMENTATION; }
"""
# Seconds between measurements: threads of the other process's BLAS wait actively for a while.
PAUSE = 0.2
SHELL = {
    "shell, import spinney": ["-c", "import spinney"],
    "shell, --help": ["-m", "spinney", "--help"],
    "shell, datasets": ["-m", "spinney", "datasets"],
}


class Build:
    """A process in which one build is measured.

    With a folder for counts, the process runs in valgrind.
    """

    def __init__(self, folder: Path, counts: Path | None = None) -> None:
        self.environment = {**os.environ, "PYTHONPATH": str(folder.resolve())}
        command = [sys.executable, "-c", WORKER]
        if counts is not None:
            counts.mkdir()
            source, library = counts / "counter.c", counts / "counter.so"
            source.write_text(COUNTER)
            subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
            output = f"--callgrind-out-file={counts / 'counts'}"
            valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", output]
            command = [*valgrind, *command, str(library)]
            self.environment.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
        self.process = subprocess.Popen(
            command,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def measure(self, case: str) -> float:
        """Return the seconds that one run of a case takes."""
        if case in SHELL:
            start = perf_counter()
            subprocess.run(
                [sys.executable, *SHELL[case]],
                env=self.environment,
                stdout=subprocess.DEVNULL,
                check=True,
            )
            return perf_counter() - start
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{case}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("cases", nargs="*", help="words that the names of cases contain")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--instructions", action="store_true", help="count instructions instead")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        compare(options, Path(folder))


def compare(options: argparse.Namespace, folder: Path) -> None:
    """Measure both builds and print a table; the folder receives counts of instructions."""
    counts = [folder / name if options.instructions else None for name in ("old", "new")]
    builds = [Build(options.old, counts[0]), Build(options.new, counts[1])]
    listed = subprocess.run(
        [sys.executable, "-c", WORKER, "--list"],
        env=builds[1].environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    names = [
        name
        for name in (listed if options.instructions else [*listed, *SHELL])
        if not options.cases or any(word in name for word in options.cases)
    ]
    repeats, unit, digits = (1, "M", 1) if options.instructions else (options.repeats, "s", 4)
    title = "instructions, one thread" if options.instructions else f"best of {repeats}"
    print(f"{title:<40}{'old ' + unit:>10}{'new ' + unit:>10}{'old/new':>10}")
    for name in names:
        results = []
        for _ in range(repeats):
            results.append([])
            for build in builds:
                sleep(PAUSE)
                results[-1].append(build.measure(name))
        old, new = (min(column) for column in zip(*results, strict=True))
        print(f"{name:<40}{old:>10.{digits}f}{new:>10.{digits}f}{old / new:>10.2f}", flush=True)


if __name__ == "__main__":
    main()
