"""Reading tables: what stands between a caller's rows and the core, before any model.

    python benchmarks/tables.py [--rows 1000000] [--repeats 5]

A column of words from every kind of frame, and a small array, for which all that counts is the
fixed cost of a call. The best time counts.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from spinney.data.table import fit_table, read_table


def best(call, repeats):
    """Return the least seconds of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def main():
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    words = np.array([f"word {i}" for i in range(1000)], dtype=object)
    words = words[rng.integers(0, 1000, options.rows)]
    print(f"{options.rows} words, 1,000 of them different")
    for name, X in (
        ("pandas", pd.DataFrame({"a": words})),
        ("pandas, category", pd.DataFrame({"a": pd.Categorical(words)})),
        ("Polars", pl.DataFrame({"a": words})),
        ("Arrow", pa.table({"a": words})),
        ("NumPy, objects", words[:, None]),
    ):
        model = BaseEstimator()
        seconds = best(
            lambda X=X, m=model: fit_table(m, X, categorical_features=[0]), options.repeats
        )
        print(f"  {name:24}{seconds * 1e3:9.1f} ms")
    X = rng.normal(size=(150, 4))
    model = BaseEstimator()
    _, schema = fit_table(model, X)
    print("150 rows of 4 numbers")
    for name, call in (
        ("fit_table", lambda: fit_table(model, X)),
        ("read_table", lambda: read_table(model, X, schema)),
        ("scikit-learn's validate_data", lambda: validate_data(model, X, reset=False)),
    ):
        print(f"  {name:32}{best(call, 40 * options.repeats) * 1e6:7.1f} µs")


if __name__ == "__main__":
    main()
