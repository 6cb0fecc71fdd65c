"""The shell: how long the commands take to start, and how much memory predictions need.

    python benchmarks/shell.py [--rows 100000 1000000 5000000] [--repeats 5]

A booster is fitted on a table of ten columns, then predicts CSV files of more and more rows. Memory
is the largest resident size of the process (its children's, as the system counts it): it should
stay where it is while the files grow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyarrow import csv

_COLUMNS = 10
_ROWS_AT_A_TIME = 100_000


def main() -> None:
    """Parse the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print(f"{'command':44}{'seconds':>9}{'memory':>10}{'file':>10}")
    for arguments in (["--version"], ["--help"], ["compare", "--help"], ["datasets"]):
        best = min(run(arguments) for _ in range(options.repeats))
        show("spinney " + " ".join(arguments), *best)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_table(folder / "train.csv", 10_000)
        model = str(folder / "model")
        fit = ["fit", str(folder / "train.csv"), "--target", "y", "--model", "gradient_boosting"]
        show("spinney fit, 10,000 rows", *run([*fit, "-o", model]))
        for rows in options.rows:
            data = folder / "data.csv"
            write_table(data, rows)
            seconds, memory = run(["predict", model, str(data), "-o", str(folder / "out.csv")])
            show(f"spinney predict, {rows:,} rows", seconds, memory, data.stat().st_size)


def run(arguments: list[str]) -> tuple[float, int]:
    """Run a command of the shell; return its seconds and the most bytes that it held."""
    start = perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "spinney", *arguments], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - start
    if status != 0:
        raise SystemExit(f"spinney {' '.join(arguments)} ended with status {status}")
    return seconds, usage.ru_maxrss * 1024


def write_table(path: Path, rows: int) -> None:
    """Write a table of numbers, one of them with gaps, a category and a target."""
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, _ROWS_AT_A_TIME):
        n = min(_ROWS_AT_A_TIME, rows - start)
        X = rng.normal(size=(n, _COLUMNS - 1)).round(4)
        kinds = rng.integers(0, 5, n)
        y = X[:, 0] + X[:, 1] * X[:, 2] + kinds + 0.1 * rng.normal(size=n)
        columns = {f"x{i}": pa.array(X[:, i]) for i in range(_COLUMNS - 1)}
        columns["x3"] = pa.array(X[:, 3], mask=rng.random(n) < 0.1)
        columns["kind"] = pa.array(np.array(list("abcde"))[kinds])
        columns["y"] = pa.array(y.round(4))
        table = pa.table(columns)
        writer = writer or csv.CSVWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def show(what: str, seconds: float, memory: int, size: int | None = None) -> None:
    """Print a line of the table."""
    file = "" if size is None else f"{size / 1e6:.0f} MB"
    print(f"{what:44}{seconds:9.2f}{memory / 1e6:7.0f} MB{file:>10}", flush=True)


if __name__ == "__main__":
    main()
