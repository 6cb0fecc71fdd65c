"""Run `spinney compare` on every table of a folder, and say what came out.

    python benchmarks/compare_tables.py FOLDER [--time-limit 300] [--only NAME …]

FOLDER has Parquet files and a DATASETS.jsonl that names each one's target. For each table the
command is run as a person would, report included. A line shows how long it took, how many models
ran to the end of how many folds, what was left out, the best model and how far behind the default
booster is (as the ranking measures it; 0 where it is the best), and what went wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

BOOSTER = "gradient_boosting"


def main() -> None:
    """Parse the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time-limit", type=float, default=300.0)
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    lines = (options.folder / "DATASETS.jsonl").read_text().splitlines()
    tables = [json.loads(line) for line in lines if line.strip()]
    tables = [table for table in tables if table["target"] and table["task"] != "ranking"]
    if options.only:
        tables = [table for table in tables if table["name"] in options.only]
    print(f"time limit {options.time_limit:.0f} s")
    print(
        f"{'table':25}{'rows':>8}{'used':>8}{'columns':>8}{'seconds':>8}{'models':>7}{'folds':>6}"
        f"  {'best':22}{'score':>9}{'booster behind':>15}  remarks"
    )
    wrong = 0
    for table in sorted(tables, key=lambda table: table["rows"]):
        wrong += not run(options.folder / table["file"], table, options.time_limit)
    print(f"{len(tables)} tables, {wrong} with something wrong")


def run(path: Path, table: dict, time_limit: float) -> bool:
    """Run one table, print its line, and return whether all is well."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "spinney", "compare", str(path), "--target"]
        command += [table["target"], "--time-limit", f"{time_limit:g}", "--out", folder, "--json"]
        start = perf_counter()
        ended = subprocess.run([*command, "-q"], capture_output=True, text=True, check=False)
        seconds = perf_counter() - start
        head = f"{table['name']:25}{table['rows']:8}"
        if ended.returncode != 0:
            said = ended.stderr.strip().splitlines()[-1:] or ["no message"]
            print(f"{head}  exit {ended.returncode}: {said[0]}", flush=True)
            return False
        result = json.loads(ended.stdout)
        size = (Path(folder) / "report.html").stat().st_size
    done = [model for model in result["results"] if model["estimate"]]
    best, booster = done[0], next((m for m in done if m["name"] == BOOSTER), None)
    remarks = [f"{m['name']} failed: {m['failure']}" for m in result["results"] if m["failure"]]
    skipped = [m["name"] for m in result["results"] if m["skipped"]]
    if skipped:
        remarks.append(f"left out: {', '.join(skipped)}")
    if seconds > 1.1 * time_limit + 5:
        remarks.append("TOO SLOW")
    if booster is None:
        remarks.append("NO BOOSTER")
    behind = (booster["behind"] or {"mean": 0.0})["mean"] if booster else float("nan")
    print(
        f"{head}{result['n_rows']:8}{result['n_features']:8}{seconds:8.0f}{len(done):7}"
        f"{result['n_folds']:6}  {best['name']:22}{best['estimate']['mean']:9.4g}{behind:15.4g}"
        f"  {'; '.join(remarks)} ({size / 1e3:.0f} kB)",
        flush=True,
    )
    return not any(word in " ".join(remarks) for word in ("failed", "TOO SLOW", "NO BOOSTER"))


if __name__ == "__main__":
    main()
