"""Test error of forests over a folder of tables, against scikit-learn's with the same parameters.

    python benchmarks/forest_quality.py [--data FOLDER] [--rows N] [table …]

Three folds a table, 100 trees, everything else at its default. Error is the share of wrong answers,
or the root of the mean squared error over the target's standard deviation. scikit-learn gets
categories as ordinal codes and one-hot, Spinney as they are; tables without categories show one
column of scikit-learn's. "out of bag" is Spinney's random forest's own estimate of its error.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn.ensemble as peer
from scipy.stats import ttest_1samp
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

import spinney.ensemble as ours

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
OUTCOMES = {
    "nycflights13": ["dep_delay", "arr_delay", "air_time"],
    "bike_sharing": ["casual", "registered"],
}
# Not tables of rows and a target, or too few rows for folds.
SKIPPED = {
    *("mq2008", "glove_50d", "glove_50d_groundtruth", "mnist", "fashion_mnist", "lightgbm_rank"),
    *("play_tennis", "play_tennis_numeric", "contact_lenses"),
}


def load(folder, meta, n_rows):
    frame = pd.read_parquet(folder / meta["file"]).drop(columns=OUTCOMES.get(meta["name"], []))
    if len(frame) > n_rows:
        frame = frame.sample(n_rows, random_state=0).reset_index(drop=True)
    y = frame.pop("target")
    frame = frame.dropna(axis=1, how="all")
    for column in frame:
        if frame[column].dtype.kind not in "iufb":
            frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
            frame[column] = frame[column].map(str, na_action="ignore").astype("category")
        else:
            frame[column] = frame[column].astype("float64")
    if meta["task"] == "regression":
        return frame, y.to_numpy(float), False
    codes = pd.factorize(y.astype("string"), sort=True)[0]
    kept = np.bincount(codes)[codes] >= 10
    return frame[kept].reset_index(drop=True), pd.factorize(codes[kept], sort=True)[0], True


def encoded(frame, fit, test, how):
    categories = [c for c in frame if str(frame[c].dtype) == "category"]
    if not categories:
        return frame.iloc[fit].to_numpy(), frame.iloc[test].to_numpy()
    encoder = (
        OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
        )
        if how == "ordinal"
        else OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    )
    rest = [c for c in frame if c not in categories]
    transform = ColumnTransformer([("c", encoder, categories), ("n", "passthrough", rest)])
    return (
        np.asarray(transform.fit_transform(frame.iloc[fit]), dtype=float),
        np.asarray(transform.transform(frame.iloc[test]), dtype=float),
    )


def error(model, X_fit, y_fit, X_test, y_test, scale):
    model.fit(X_fit, y_fit)
    predicted = model.predict(X_test)
    if scale is None:
        return float(np.mean(predicted != y_test))
    return float(np.sqrt(np.mean((predicted - y_test) ** 2)) / scale)


def evaluate(frame, y, classes):
    """Errors by method, one for each fold."""
    has_categories = any(str(frame[c].dtype) == "category" for c in frame)
    suffix = "Classifier" if classes else "Regressor"
    scale = None if classes else y.std()
    folds = (StratifiedKFold if classes else KFold)(3, shuffle=True, random_state=0)
    out = {}
    for seed, (fit, test) in enumerate(folds.split(frame, y)):
        for kind in ("RandomForest", "ExtraTrees"):
            options = {"n_estimators": 100, "n_jobs": 2, "random_state": seed}
            for how in ("ordinal", "one-hot") if has_categories else ("ordinal",):
                X_fit, X_test = encoded(frame, fit, test, how)
                model = getattr(peer, kind + suffix)(**options)
                out.setdefault((kind, how), []).append(
                    error(model, X_fit, y[fit], X_test, y[test], scale)
                )
            if kind == "RandomForest":
                options["oob_score"] = True
            model = getattr(ours, kind + suffix)(**options)
            rows = (frame.iloc[fit], y[fit], frame.iloc[test], y[test], scale)
            out.setdefault((kind, "spinney"), []).append(error(model, *rows))
            if kind == "RandomForest":
                guess = model.oob_prediction_ if not classes else None
                out.setdefault((kind, "out of bag"), []).append(
                    1 - model.oob_score_
                    if classes
                    else np.sqrt(np.mean((guess - y[fit]) ** 2)) / scale
                )
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--rows", type=int, default=4000)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    index = [json.loads(line) for line in (arguments.data / "DATASETS.jsonl").open()]
    columns = [
        *[("RandomForest", how) for how in ("ordinal", "one-hot", "spinney", "out of bag")],
        *[("ExtraTrees", how) for how in ("ordinal", "one-hot", "spinney")],
    ]
    print("Errors; scikit-learn with categories as ordinal codes and one-hot, and Spinney\n")
    print(f"{'':<26}{'random forest':>20}{'':>22}{'extra trees':>22}")
    print(f"{'':<26}" + "".join(f"{how:>11}" for _, how in columns))
    table = {}
    for meta in index:
        name = meta["name"]
        if name in SKIPPED or (arguments.tables and name not in arguments.tables):
            continue
        try:
            frame, y, classes = load(arguments.data, meta, arguments.rows)
        except (KeyError, OSError):
            continue
        if len(frame) < 60:
            continue
        errors = evaluate(frame, y, classes)
        table[name] = errors
        cells = (f"{np.mean(errors[c]):11.4f}" if c in errors else f"{'':>11}" for c in columns)
        print(f"{name:<26}" + "".join(cells), flush=True)
    summarise(table)


def summarise(table):
    for kind in ("RandomForest", "ExtraTrees"):
        print()
        plain = [e for e in table.values() if (kind, "one-hot") not in e]
        mixed = [e for e in table.values() if (kind, "one-hot") in e]
        for title, group, rival in (
            (
                "without categories, against scikit-learn",
                plain,
                lambda e, kind=kind: e[kind, "ordinal"],
            ),
            (
                "with categories, against the better of its two codings",
                mixed,
                lambda e, kind=kind: min(e[kind, "ordinal"], e[kind, "one-hot"], key=np.mean),
            ),
            (
                "with categories, against ordinal codes",
                mixed,
                lambda e, kind=kind: e[kind, "ordinal"],
            ),
            ("with categories, against one-hot", mixed, lambda e, kind=kind: e[kind, "one-hot"]),
        ):
            if len(group) < 2:
                continue
            mine = np.array([np.mean(e[kind, "spinney"]) for e in group])
            theirs = np.array([np.mean(rival(e)) for e in group])
            test = ttest_1samp(mine - theirs, 0.0)
            print(
                f"{kind}, {len(group)} tables {title}: mean error {mine.mean():.4f} / "
                f"{theirs.mean():.4f}, better on {np.sum(mine < theirs)}, worse on "
                f"{np.sum(mine > theirs)}, t = {test.statistic:+.2f} (p = {test.pvalue:.2f})"
            )
        if kind == "RandomForest":
            gap = [
                np.mean(e[kind, "out of bag"]) - np.mean(e[kind, "spinney"]) for e in table.values()
            ]
            print(f"out of bag less test error: mean {np.mean(gap):+.4f}, sd {np.std(gap):.4f}")


if __name__ == "__main__":
    main()
