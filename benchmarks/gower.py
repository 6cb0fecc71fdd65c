"""Neighbours under Gower's distance: Spinney's kernel against NumPy, on adult.

    python benchmarks/gower.py [--data FOLDER] [--repeats N]

1,000 queries against 48,842 rows of 6 numbers and 8 categories, some missing; ten neighbours each.
NumPy goes through blocks of 50 queries, column by column, with codes for categories. The best time
of several counts, and both take turns. FOLDER holds adult as Parquet.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd

import spinney
from spinney.neighbors import NearestNeighbors

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def timed(action):
    start = time.perf_counter()
    out = action()
    return time.perf_counter() - start, out


def coded(frame):
    """Columns as float64, NaN where missing; and whether each has categories."""
    columns, is_category = [], []
    for name in frame:
        column = frame[name]
        is_category.append(column.dtype == "category")
        if is_category[-1]:
            codes = column.cat.codes.to_numpy().astype(float)
            columns.append(np.where(codes < 0, np.nan, codes))
        else:
            columns.append(column.to_numpy(dtype=float))
    return columns, is_category


def by_numpy(queries, rows, is_category, k):
    spans = [np.nanmax(row) - np.nanmin(row) for row in rows]
    distances = []
    for first in range(0, len(queries[0]), 50):
        total = np.zeros((len(queries[0][first : first + 50]), len(rows[0])))
        count = np.zeros_like(total)
        for query, row, span, categories in zip(queries, rows, spans, is_category, strict=True):
            block = query[first : first + 50, None]
            is_there = ~(np.isnan(block) | np.isnan(row))
            far = (block != row).astype(float) if categories else np.abs(block - row) / span
            total += np.where(is_there, far, 0.0)
            count += is_there
        total /= count
        distances.append(np.sort(np.partition(total, k - 1, axis=1)[:, :k], axis=1))
    return np.vstack(distances)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    frame = pd.read_parquet(arguments.data / "adult.parquet").drop(columns="target")
    queries = frame.sample(1000, random_state=0)
    rows, is_category = coded(frame)
    asked = [column[queries.index] for column in rows]
    models = {
        n_jobs: NearestNeighbors(n_neighbors=10, metric="gower", n_jobs=n_jobs).fit(frame)
        for n_jobs in (1, 2)
    }
    best = dict.fromkeys(["NumPy", *models], np.inf)
    for _ in range(arguments.repeats):
        seconds, expected = timed(lambda: by_numpy(asked, rows, is_category, 10))
        best["NumPy"] = min(best["NumPy"], seconds)
        for n_jobs, model in models.items():
            seconds, (distances, _) = timed(lambda model=model: model.kneighbors(queries))
            best[n_jobs] = min(best[n_jobs], seconds)
            np.testing.assert_allclose(distances, expected, atol=1e-12)
    print(f"spinney {spinney.__version__}, numpy {np.__version__}")
    print(f"adult {len(frame):,} x {frame.shape[1]}, 1,000 queries, 10 neighbours")
    for name, seconds in best.items():
        label = name if name == "NumPy" else f"Spinney, {name} threads"
        print(f"{label:<22}{seconds:>8.3f} s   {best['NumPy'] / seconds:>5.1f} times NumPy's speed")


if __name__ == "__main__":
    main()
