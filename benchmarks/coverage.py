"""How often intervals and sets hold the truth, over the tables of a folder.

    python benchmarks/coverage.py FOLDER [--rows 8000] [--tables a,b] [--models "random forest"]
        [--tasks binary,multiclass] [--minutes 60] [--output FILE]

FOLDER has DATASETS.jsonl and Parquet files. Each table (at most so many of its rows) is divided at
random into halves, one for fit and one for the test, as often as the estimate needs: with small
tables up to 12 times. "rows of" says how many rows are used, and how many the table has. Asked for
is a coverage of 0.9. A line fails if the coverage is more than two points off, or if a group of a
column of categories (with 100 test rows or more, all divisions together) is below 0.8. Sets are
never empty: where the likeliest class alone is right in more than 92 % of the rows, no set can do
less, and the line says "one class". Boosters are left out with more than ten classes, and where
rows, columns and classes multiply to more than ten million, for their time, and below fifty rows to
learn from, where nothing is held out.
Tables that the minutes did not suffice for are named at the end.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from spinney.calibration import ConformalClassifier, ConformalRegressor
from spinney.comparison.scaled_linear import ScaledLogisticRegression, ScaledRidge
from spinney.comparison.scaled_neighbors import ScaledNeighborsClassifier, ScaledNeighborsRegressor
from spinney.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

COVERAGE = 0.9
LEAVE_OUT = {
    "nycflights13": ["dep_delay", "arr_delay", "air_time"],
    "bike_sharing": ["casual", "registered"],
}
SPLITS = ("split", "fold", "set", "is_test")
FEWEST_ROWS = 90
LARGE_GROUP = 100  # test rows
FEWEST_TO_LEARN = 20  # rows of a group in a fit, on average


def read(folder, line, most_rows):
    frame = pd.read_parquet(folder / line["file"])
    frame = frame.drop(columns=LEAVE_OUT.get(line["name"], []))
    frame = frame.drop(columns=[c for c in SPLITS if c in frame])
    frame = frame[frame["target"].notna()]
    most = min(most_rows, 2_000_000 // frame.shape[1])
    if len(frame) > most:
        frame = frame.sample(most, random_state=0)
    frame = frame.reset_index(drop=True)
    y = frame.pop("target")
    if line["task"] == "regression":
        return frame, y.to_numpy(float)
    y = y.astype(str).to_numpy()
    labels, counts = np.unique(y, return_counts=True)
    kept = np.isin(y, labels[counts >= 8])
    return frame[kept].reset_index(drop=True), y[kept]


def category_columns(frame):
    kinds = ("object", "string", "category", "str")
    return [c for c in frame if str(frame[c].dtype) in kinds]


class Tally:
    """Whether rows were held, over all divisions."""

    def __init__(self):
        self.held, self.size, self.groups, self.seconds = [], [], {}, 0.0
        self.right = []

    def add(self, held, size, right, test, learned, columns):
        self.held.append(held)
        self.size.append(size)
        self.right.append(right)
        for column in columns:
            values = test[column].map(str).to_numpy(dtype=str)
            seen = learned[column].map(str).astype(object).value_counts()
            for value in sorted(set(values)):
                mine = values == value
                entry = self.groups.setdefault((column, value), [0, 0, []])
                entry[0] += int(held[mine].sum())
                entry[1] += int(mine.sum())
                entry[2].append(int(seen.get(value, 0)))

    def worst(self, column=None):
        large = [
            (held / n, n, name)
            for name, (held, n, learned) in self.groups.items()
            if n >= LARGE_GROUP
            and np.mean(learned) >= FEWEST_TO_LEARN
            and column in (None, name[0])
        ]
        return min(large, default=None)


def measure(make, X, y, repeats, classes):
    tally, method = Tally(), ""
    columns = category_columns(X)
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        fit, test = order[: len(y) // 2], order[len(y) // 2 :]
        start = time.perf_counter()
        model = make(seed).fit(X.iloc[fit], y[fit])
        rows, truth = X.iloc[test], y[test]
        if classes:
            sets = model.predict_set(rows, COVERAGE)
            place = np.searchsorted(model.classes_, truth)
            known = np.minimum(place, len(model.classes_) - 1)
            seen = model.classes_[known] == truth
            held = sets[np.arange(len(test)), known] & seen
            size, right = sets.sum(axis=1), model.predict(rows) == truth
            method = model.set_method_
        else:
            low, high = model.predict_interval(rows, COVERAGE).T
            held, size = (low <= truth) & (truth <= high), (high - low) / np.std(y)
            right, method = held, model.interval_method_
        tally.seconds += time.perf_counter() - start
        tally.add(held, size, right, rows, X.iloc[fit], columns)
    return tally, method


def models(task):
    if task == "regression":
        return {
            "random forest": lambda s: RandomForestRegressor(random_state=s),
            "boosting": lambda s: GradientBoostingRegressor(random_state=s),
            "ridge": lambda s: ScaledRidge(random_state=s),
            "k neighbors": lambda s: ScaledNeighborsRegressor(random_state=s),
        }
    return {
        "random forest": lambda s: RandomForestClassifier(random_state=s),
        "boosting": lambda s: GradientBoostingClassifier(random_state=s),
        "logistic, cross": lambda s: ConformalClassifier(
            ScaledLogisticRegression(random_state=s), random_state=s
        ),
        "k neighbors": lambda s: ScaledNeighborsClassifier(random_state=s),
    }


def grouped(task, column):
    if task == "regression":
        return lambda s: ConformalRegressor(RandomForestRegressor(random_state=s), groups=column)
    return lambda s: ConformalClassifier(RandomForestClassifier(random_state=s), groups=column)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=8000)
    parser.add_argument("--tables", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--tasks", default="regression,binary,multiclass")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    wanted = [name for name in arguments.tables.split(",") if name]
    only = [name for name in arguments.models.split(",") if name]
    out = [sys.stdout]
    if arguments.output:
        out.append(arguments.output.open("w"))

    def say(text):
        for file in out:
            print(text, file=file, flush=True)

    say(f"asked for: {COVERAGE:.0%}; width in standard deviations of the target, size in classes")
    say(
        f"{'table':25}{'rows':>6}{'of':>8}  {'model':34}{'coverage':>9}{'± se':>6}{'width':>7}"
        f"  {'worst group':34}{'':>9}  verdict"
    )
    verdicts, failed, missed = [], [], []
    end = time.perf_counter() + 60 * arguments.minutes
    lines = [json.loads(text) for text in (arguments.folder / "DATASETS.jsonl").open()]
    for line in sorted(lines, key=lambda line: line["rows"] * line["columns"]):
        if line["task"] not in arguments.tasks.split(","):
            continue
        if wanted and line["name"] not in wanted:
            continue
        if line["rows"] < FEWEST_ROWS:
            continue
        if time.perf_counter() > end:
            missed.append(line["name"])
            continue
        X, y = read(arguments.folder, line, arguments.rows)
        classes = line["task"] != "regression"
        repeats = int(np.clip(6000 // len(y), 2, 12))
        todo = [one for one in models(line["task"]).items() if not only or one[0] in only]
        worst_column = None
        while todo:
            name, make = todo.pop(0)
            n_classes = len(set(y)) if classes else 1
            if name == "boosting" and (
                len(y) < 100 or n_classes > 10 or X.size * n_classes > 10_000_000
            ):
                continue
            try:
                tally, _ = measure(make, X, y, repeats, classes)
            except (ValueError, TypeError) as error:
                place = f"{line['name']:25}{len(y):6}{line['rows']:8}  {name:34}"
                say(f"{place}{type(error).__name__}: {error}"[:180])
                verdicts.append("error")
                failed.append(f"{line['name']}, {name}: error")
                continue
            held = np.concatenate(tally.held)
            # Rows of a division share their limit: divisions are what varies.
            each = [part.mean() for part in tally.held]
            error = max(
                np.std(each, ddof=1) / np.sqrt(repeats), 0.3 / np.sqrt(min(len(held), len(y)))
            )
            share = held.mean()
            size = np.concatenate(tally.size).astype(float).mean()
            worst = tally.worst(worst_column if "groups" in name else None)
            one_class = classes and np.concatenate(tally.right).mean() > 0.92
            faults = []
            if abs(share - COVERAGE) > 0.02 and not (one_class and share > COVERAGE):
                faults.append("coverage")
            if worst is not None and worst[0] < 0.8:
                faults.append("group")
            verdict = " ".join(faults) or ("one class" if one_class and share > 0.92 else "ok")
            verdicts.append(verdict)
            if faults:
                told = f"{share:.1%} ± {error:.1%}" if "coverage" in faults else ""
                group = f"{worst[2][0]}={worst[2][1]} {worst[0]:.1%}" if "group" in faults else ""
                failed.append(f"{line['name']}, {name}: {' '.join([told, group]).strip()}")
            shown = ""
            if worst is not None:
                shown = f"{f'{worst[2][0]}={worst[2][1]}'[:33]:34}{worst[0]:5.1%}{worst[1]:>6}"
            say(
                f"{line['name']:25}{len(y):6}{line['rows']:8}  {name[:33]:34}"
                f"{share:9.1%}{error:6.1%}{size:7.2f}  {shown:45}  {verdict}"
            )
            if name == "random forest" and worst is not None:
                worst_column = worst[2][0]
                todo.append(
                    (f"random forest, groups={worst_column}", grouped(line["task"], worst_column))
                )
    say("")
    if missed:
        say(f"not reached: {', '.join(missed)}")
    for verdict in sorted(set(verdicts)):
        say(f"{verdicts.count(verdict):4} lines: {verdict}")
    for line in failed:
        say(f"fails: {line}")


if __name__ == "__main__":
    main()
