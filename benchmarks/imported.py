"""Imported boosters against the libraries that fitted them: predictions of 100,000 rows.

    python benchmarks/imported.py [--rows N] [--rounds N] [--repeats N]

Two threads each, the libraries take turns, the best time counts. Answers are compared first.
"""

from __future__ import annotations

import argparse
import os
import time

THREADS = 2
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402

import spinney  # noqa: E402


def make_rows(n_rows, missing):
    """Twenty columns, of which three matter, with gaps if asked for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    score = X[:, 0] + X[:, 1] * X[:, 2]
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


def fit_models(X, score, n_rounds):
    """Fit each library's classifiers and regressors on a fifth of the rows."""
    import catboost
    import lightgbm
    import xgboost
    from sklearn import ensemble

    X, score = X[: len(X) // 5], score[: len(X) // 5]
    two, five = score > 0, np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8]))
    quiet = {"verbose": 0, "thread_count": THREADS, "allow_writing_files": False}
    light = {"n_estimators": n_rounds, "n_jobs": THREADS, "verbose": -1}
    extreme = {"n_estimators": n_rounds, "n_jobs": THREADS}
    few = max(1, n_rounds // 5)
    yield "lightgbm, 2 classes", lightgbm.LGBMClassifier(**light).fit(X, two)
    yield (
        "lightgbm, 5 classes",
        lightgbm.LGBMClassifier(**{**light, "n_estimators": few}).fit(X, five),
    )
    yield "lightgbm, numbers", lightgbm.LGBMRegressor(**light).fit(X, score)
    large = lightgbm.LGBMRegressor(**light, num_leaves=255)
    yield "lightgbm, 255 leaves", large.fit(X, score)
    yield "xgboost, 2 classes", xgboost.XGBClassifier(**extreme).fit(X, two)
    yield (
        "xgboost, 5 classes",
        xgboost.XGBClassifier(**{**extreme, "n_estimators": few}).fit(X, five),
    )
    yield "xgboost, numbers", xgboost.XGBRegressor(**extreme).fit(X, score)
    for depth in (8, 10):
        deep = xgboost.XGBRegressor(**extreme, max_depth=depth)
        yield f"xgboost, {depth} levels", deep.fit(X, score)
    many = xgboost.XGBClassifier(**extreme, max_bin=1024)
    yield "xgboost, 1024 bins", many.fit(X, two)
    yield (
        "catboost, 2 classes",
        catboost.CatBoostClassifier(iterations=n_rounds, **quiet).fit(X, two),
    )
    histogram = ensemble.HistGradientBoostingRegressor(max_iter=n_rounds, early_stopping=False)
    yield "sklearn histogram, numbers", histogram.fit(X, score)


def race(title, theirs, X, repeats):
    """Time both, in turns."""
    ours = getattr(spinney, f"from_{title.split(',')[0].split()[0]}")(theirs)
    name = "predict_proba" if hasattr(theirs, "predict_proba") else "predict"
    np.testing.assert_allclose(
        getattr(ours, name)(X), getattr(theirs, name)(X), rtol=1e-4, atol=1e-4
    )
    seconds = {"spinney": np.inf, "theirs": np.inf}
    for _ in range(repeats):
        for side, model in (("theirs", theirs), ("spinney", ours)):
            time.sleep(0.05)  # the other's threads spin for a while after an answer
            start = time.perf_counter()
            getattr(model, name)(X)
            seconds[side] = min(seconds[side], time.perf_counter() - start)
    ratio = seconds["theirs"] / seconds["spinney"]
    print(
        f"{title:28s}{seconds['theirs']:9.3f} s{seconds['spinney']:9.3f} s{ratio:8.1f}x", flush=True
    )


def main():
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    spinney.set_num_threads(THREADS)
    for missing in (False, True):
        X, score = make_rows(options.rows, missing)
        print(f"{options.rows} x 20{', one in ten missing' if missing else ''}")
        for title, theirs in fit_models(X, score, options.rounds):
            race(title, theirs, X, options.repeats)


if __name__ == "__main__":
    main()
