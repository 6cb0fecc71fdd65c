"""Nearest neighbours against SciPy, scikit-learn, pykdtree and faiss; local regression.

    python benchmarks/neighbors.py [--data FOLDER] [--repeats N] [PART ...]

Parts: trees, repeats, brute, classify, local. Two threads each, the libraries take turns, the best
time counts; building is part of it. FOLDER holds fashion_mnist as Parquet. HNSW has a script of its
own, hnsw.py, and Gower's distance gower.py.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

THREADS = 2
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402

import spinney  # noqa: E402
from spinney.neighbors import (  # noqa: E402
    BruteForce,
    KDTree,
    KNeighborsClassifier,
    LocalRegression,
)

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def race(title, contenders, repeats, check):
    """Time functions that return distances, in turns; all must agree."""
    seconds = dict.fromkeys(contenders, np.inf)
    expected = None
    for _ in range(repeats):
        for name, run in contenders.items():
            start = time.perf_counter()
            found = run()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
            if check:
                expected = found if expected is None else expected
                np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3)
    print(title)
    for name, spent in seconds.items():
        print(f"    {name:14s}{spent:9.3f} s   {spent / seconds['spinney']:6.2f}", flush=True)


def trees(repeats):
    from pykdtree.kdtree import KDTree as PyKDTree
    from scipy.spatial import cKDTree
    from sklearn.neighbors import KDTree as SkKDTree

    rng = np.random.default_rng(0)
    centres = 10 * rng.normal(size=(100, 10))

    def clustered(n):
        return centres[rng.integers(0, 100, n)] + rng.normal(size=(n, 10))

    cases = {
        "500,000 x 3 uniform, 200,000 queries": (
            rng.random((500_000, 3)),
            rng.random((200_000, 3)),
        ),
        "200,000 x 10 uniform, 20,000 queries": (
            rng.random((200_000, 10)),
            rng.random((20_000, 10)),
        ),
        "200,000 x 10 clustered, 20,000 queries": (clustered(200_000), clustered(20_000)),
    }
    for title, (X, Q) in cases.items():
        contenders = {
            "spinney": lambda X=X, Q=Q: KDTree(X, n_jobs=THREADS).query(Q, 5)[0],
            "cKDTree": lambda X=X, Q=Q: cKDTree(X).query(Q, 5, workers=THREADS)[0],
            "pykdtree": lambda X=X, Q=Q: PyKDTree(X).query(Q, 5)[0],
        }
        race(f"k-d tree, {title}, k = 5", contenders, repeats, True)
    X, Q = cases["500,000 x 3 uniform, 200,000 queries"]
    contenders = {
        "spinney": lambda: KDTree(X, n_jobs=THREADS).query(Q, 5)[0],
        "scikit-learn": lambda: SkKDTree(X).query(Q, 5)[0],
    }
    race("k-d tree, 500,000 x 3 uniform, 200,000 queries, k = 5", contenders, 1, True)


def repeated_values(repeats):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 10, (1_000_000, 1)).astype(float)
    start = time.perf_counter()
    tree = KDTree(X, n_jobs=THREADS)
    build = time.perf_counter() - start
    start = time.perf_counter()
    tree.query(X[:1000], 5)
    print(
        f"k-d tree, 1,000,000 rows of 10 values: build {build:.3f} s, "
        f"1,000 queries {time.perf_counter() - start:.3f} s"
    )


def fashion(folder):
    frame = pd.read_parquet(folder / "fashion_mnist.parquet")
    y = frame.pop("target").to_numpy()
    frame = frame.drop(columns=[c for c in ("split", "set") if c in frame])
    X = frame.to_numpy(dtype=np.float32)
    return X[:60_000], y[:60_000], X[60_000:], y[60_000:]


def brute(folder, repeats):
    import faiss
    from sklearn.neighbors import NearestNeighbors as SkNearestNeighbors

    X, _, Q, _ = fashion(folder)
    Q = np.ascontiguousarray(Q[:2000])
    faiss.omp_set_num_threads(THREADS)

    def flat():
        index = faiss.IndexFlatL2(X.shape[1])
        index.add(X)
        return np.sqrt(index.search(Q, 5)[0])

    ready = BruteForce(X, n_jobs=THREADS)
    contenders = {
        "spinney": lambda: ready.query(Q, 5)[0],
        "with building": lambda: BruteForce(X, n_jobs=THREADS).query(Q, 5)[0],
        "faiss flat": flat,
        "scikit-learn": lambda: (
            SkNearestNeighbors(n_neighbors=5, algorithm="brute", n_jobs=THREADS)
            .fit(X)
            .kneighbors(Q)[0]
        ),
    }
    race("all rows, fashion_mnist 60,000 x 784, 2,000 queries, k = 5", contenders, repeats, True)


def classify(folder):
    X, y, Q, truth = fashion(folder)
    for algorithm in ("brute", "hnsw"):
        model = KNeighborsClassifier(5, algorithm=algorithm, n_jobs=THREADS)
        start = time.perf_counter()
        model.fit(X, y)
        middle = time.perf_counter()
        told = model.predict(Q)
        spent = f"fit {middle - start:.2f} s, predict {time.perf_counter() - middle:.2f} s"
        accuracy = (told == truth).mean()
        print(f"fashion_mnist, k = 5, {algorithm}: accuracy {accuracy:.4f}, {spent}", flush=True)


def local(repeats):
    rng = np.random.default_rng(0)
    X, Q = rng.random((100_000, 3)), rng.random((100_000, 3))
    y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))
    for k in (50, 100):
        spent = np.inf
        for _ in range(repeats):
            start = time.perf_counter()
            LocalRegression(n_neighbors=k, n_jobs=THREADS).fit(X, y).predict(Q)
            spent = min(spent, time.perf_counter() - start)
        print(f"local regression, degree 1, 100,000 x 3, 100,000 queries, k = {k}: {spent:.3f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    parts = {
        "trees": lambda: trees(arguments.repeats),
        "repeats": lambda: repeated_values(arguments.repeats),
        "brute": lambda: brute(arguments.data, arguments.repeats),
        "classify": lambda: classify(arguments.data),
        "local": lambda: local(arguments.repeats),
    }
    print(f"spinney {spinney.__version__}; {THREADS} threads")
    for name in arguments.parts or parts:
        parts[name]()


if __name__ == "__main__":
    main()
