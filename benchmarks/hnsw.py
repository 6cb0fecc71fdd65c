"""HNSW against hnswlib and faiss: build time, memory, and queries a second at a recall of 0.95.

    python benchmarks/hnsw.py [--data FOLDER] [--repeats N] [--only NAME]

All have M=16 and ef_construction=200 and look for ten neighbours by Euclidean distance. Each gets
the smallest ef of a list that reaches the recall on the same queries; then they take turns, and the
best time of several counts, that of the 1,000 queries together. Memory is what the process grows by
while an index is built, the caller's array not counted. FOLDER holds glove_50d, its neighbours and
fashion_mnist as Parquet.
"""

from __future__ import annotations

import argparse
import ctypes
import time
from importlib.metadata import version
from pathlib import Path

import faiss
import hnswlib
import numpy as np
import psutil
import pyarrow.parquet as pq

import spinney
from spinney.neighbors import HNSW

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
M, EF_CONSTRUCTION, K, RECALL = 16, 200, 10, 0.95
EFS = [*range(10, 32, 1), *range(32, 64, 2), *range(64, 128, 4), *range(128, 513, 16)]


def read_columns(path, names):
    table = pq.read_table(path, columns=names)
    return np.stack([table[name].to_numpy() for name in names], axis=1).astype(np.float32)


def glove(folder):
    X = read_columns(folder / "glove_50d.parquet", [f"v{i}" for i in range(50)])
    truth = pq.read_table(folder / "glove_50d_groundtruth.parquet").to_pandas()
    truth = truth.sort_values(["query_row", "rank"])["l2_neighbour_row"].to_numpy()
    return X[:199_000].copy(), X[199_000:].copy(), truth.reshape(1000, -1)[:, :K]


def fashion(folder):
    X = read_columns(folder / "fashion_mnist.parquet", [f"pixel_{i}" for i in range(784)])
    base, queries = X[:60_000].copy(), X[60_000:61_000].copy()
    # Whole numbers: exact in float64.
    wide = base.astype(np.float64)
    squares = (wide**2).sum(1)
    truth = [
        np.argsort(squares - 2 * wide @ query.astype(np.float64), kind="stable")[:K]
        for query in queries
    ]
    return base, queries, np.array(truth)


def build_spinney(codes):
    def build(base, n_threads):
        index = HNSW(M=M, ef_construction=EF_CONSTRUCTION, codes=codes, n_jobs=n_threads)
        index.fit(base)

        def query(queries, ef, threads):
            index.n_jobs = threads
            return index.query(queries, k=K, ef=ef)[1]

        return query

    return build


def build_hnswlib(base, n_threads):
    index = hnswlib.Index("l2", base.shape[1])
    index.init_index(len(base), M=M, ef_construction=EF_CONSTRUCTION, random_seed=0)
    index.add_items(base, num_threads=n_threads)

    def query(queries, ef, threads):
        index.set_ef(ef)
        return index.knn_query(queries, K, num_threads=threads)[0]

    return query


def build_faiss(base, n_threads):
    faiss.omp_set_num_threads(n_threads)
    index = faiss.IndexHNSWFlat(base.shape[1], M)
    index.hnsw.efConstruction = EF_CONSTRUCTION
    index.add(base)

    def query(queries, ef, threads):
        faiss.omp_set_num_threads(threads)
        index.hnsw.efSearch = ef
        return index.search(queries, K)[1]

    return query


LIBRARIES = {
    "spinney": build_spinney(None),
    "spinney, uint8 codes": build_spinney("uint8"),
    "hnswlib": build_hnswlib,
    "faiss": build_faiss,
}


def resident():
    ctypes.CDLL(None).malloc_trim(0)
    return psutil.Process().memory_info().rss


def recall_of(found, truth):
    hits = [len(set(a) & set(b)) for a, b in zip(found, truth, strict=True)]
    return np.sum(hits) / truth.size


def compare(name, base, queries, truth, repeats):
    print(f"\n{name}: {len(base)} x {base.shape[1]}, {len(queries)} queries", flush=True)
    indexes, seconds, memory, widths, recalls = {}, {}, {}, {}, {}
    for library, build in LIBRARIES.items():
        before, start = resident(), time.perf_counter()
        indexes[library] = build(base, 1)
        seconds[library, 1] = time.perf_counter() - start
        memory[library] = resident() - before
        for ef in EFS:
            recalls[library] = recall_of(indexes[library](queries, ef, 1), truth)
            widths[library] = ef
            if recalls[library] >= RECALL:
                break
    for library, build in LIBRARIES.items():
        start = time.perf_counter()
        build(base, 2)
        seconds[library, 2] = time.perf_counter() - start
    best = {}
    for _ in range(repeats):
        for threads in (1, 2):
            for library, query in indexes.items():
                start = time.perf_counter()
                query(queries, widths[library], threads)
                took = time.perf_counter() - start
                best[library, threads] = min(took, best.get((library, threads), np.inf))
    print(
        f"{'':22s} {'build s':>14s} {'memory':>8s} {'ef':>5s} {'recall':>7s} {'queries/s':>16s}"
        f" {'x hnswlib':>12s} {'x faiss':>12s}"
    )
    print(f"{'threads':22s} {'1':>6s} {'2':>7s} {'MB':>8s} {'':13s} {'1':>8s} {'2':>7s}")
    for library in LIBRARIES:
        rates = [len(queries) / best[library, threads] for threads in (1, 2)]
        ratios = [
            "".join(f"{best[other, t] / best[library, t]:6.2f}" for t in (1, 2))
            for other in ("hnswlib", "faiss")
        ]
        print(
            f"{library:22s} {seconds[library, 1]:6.1f} {seconds[library, 2]:7.1f}"
            f" {memory[library] / 1e6:8.0f} {widths[library]:5d} {recalls[library]:7.4f}"
            f" {rates[0]:8.0f} {rates[1]:7.0f} {ratios[0]:>12s} {ratios[1]:>12s}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--only", choices=["glove_50d", "fashion_mnist"])
    options = parser.parse_args()
    versions = ", ".join(f"{name} {version(name)}" for name in ("hnswlib", "faiss-cpu"))
    print(f"spinney {spinney.__version__}, {versions}")
    for name, read in {"glove_50d": glove, "fashion_mnist": fashion}.items():
        if options.only in (None, name):
            compare(name, *read(options.data), options.repeats)


if __name__ == "__main__":
    main()
