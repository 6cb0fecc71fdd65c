"""Make the models of other libraries in this folder, and their predictions for some rows.

    python tests/data/imported/make.py

Needs the libraries (``pip install '.[bench]'``); the tests that read the files do not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent


def make_rows(n: int, seed: int) -> Any:
    """Return four columns with missing values and zeros, and one with integers from 0 to 11."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(3)
    X[rng.random(X.shape) < 0.15] = 0.0
    X[rng.random(X.shape) < 0.15] = np.nan
    X[:, 4] = rng.integers(0, 12, n)
    return X


def make_score(X: Any) -> Any:
    """Return a target that depends on three of the columns."""
    return np.nan_to_num(X[:, 0], nan=0.7) - np.isin(X[:, 4], [1, 5, 7]) * 1.5 + (X[:, 1] > 0.2)


def make_lightgbm(X: Any, score: Any, queries: Any) -> dict[str, Any]:
    """Train and save boosters of LightGBM."""
    import lightgbm

    common = {"num_leaves": 6, "min_data_in_leaf": 5, "min_data_per_group": 5, "cat_smooth": 1}
    common |= {"verbose": -1, "num_threads": 1, "max_bin": 31}
    cases: dict[str, tuple[dict[str, Any], Any]] = {
        "binary": ({"objective": "binary"}, score > 0.3),
        "multiclass": ({"objective": "multiclass", "num_class": 3}, np.digitize(score, [0, 1])),
        "zero": ({"objective": "quantile", "alpha": 0.3, "zero_as_missing": True}, score),
        "nothing_missing": ({"objective": "gamma", "use_missing": False}, np.exp(score)),
        "forest": (
            {"objective": "poisson", "boosting": "rf", "bagging_fraction": 0.6, "bagging_freq": 1},
            np.exp(score).round(),
        ),
    }
    predictions = {}
    for name, (params, y) in cases.items():
        data = lightgbm.Dataset(X, y, categorical_feature=[4])
        model = lightgbm.train({**common, **params}, data, 3)
        model.save_model(FOLDER / f"lightgbm_{name}.txt")
        predictions[f"lightgbm_{name}.txt"] = model.predict(queries).tolist()
    return predictions


def make_xgboost(X: Any, score: Any, queries: Any) -> dict[str, Any]:
    """Train and save boosters of XGBoost."""
    import xgboost

    kinds = ["q", "q", "q", "q", "c"]
    common = {"max_depth": 3, "nthread": 1, "max_cat_to_onehot": 2, "max_bin": 31}
    cases: dict[str, tuple[dict[str, Any], Any]] = {
        "binary.json": ({"objective": "binary:logistic"}, score > 0.3),
        "classes.ubj": (
            {"objective": "multi:softprob", "num_class": 3, "num_parallel_tree": 2},
            np.digitize(score, [0, 1]),
        ),
        "dart.json": (
            {"objective": "reg:gamma", "booster": "dart", "rate_drop": 0.5},
            np.exp(score),
        ),
        "outputs.ubj": ({"objective": "reg:squarederror"}, np.c_[score, -2 * score]),
    }
    predictions = {}
    for name, (params, y) in cases.items():
        data = xgboost.DMatrix(X, y, feature_types=kinds, enable_categorical=True)
        model = xgboost.train({**common, **params}, data, 3)
        model.save_model(FOLDER / f"xgboost_{name}")
        rows = xgboost.DMatrix(queries, feature_types=kinds, enable_categorical=True)
        predictions[f"xgboost_{name}"] = model.predict(rows).astype(np.float64).tolist()
    return predictions


def make_catboost(X: Any, score: Any, queries: Any) -> dict[str, Any]:
    """Train and save boosters of CatBoost."""
    import catboost

    common = {"iterations": 3, "depth": 3, "thread_count": 1, "border_count": 15}
    common |= {"verbose": False, "allow_writing_files": False, "random_seed": 0}
    cases: dict[str, tuple[Any, dict[str, Any], Any]] = {
        "binary": (catboost.CatBoostClassifier, {}, np.array(["no", "yes"])[1 * (score > 0.3)]),
        "multiclass": (
            catboost.CatBoostClassifier,
            {"nan_mode": "Max"},
            np.digitize(score, [0, 1]),
        ),
        "leafwise": (
            catboost.CatBoostRegressor,
            {"loss_function": "Poisson", "grow_policy": "Lossguide"},
            np.exp(score),
        ),
    }
    predictions = {}
    for name, (kind, params, y) in cases.items():
        model = kind(**common, **params).fit(X, y)
        path = FOLDER / f"catboost_{name}.json"
        model.save_model(path, format="json")
        document = json.loads(path.read_text())
        kept = ("params", "class_params")  # the rest describes the machine and the time
        info = {key: document["model_info"][key] for key in kept if key in document["model_info"]}
        document["model_info"] = info
        path.write_text(json.dumps(document) + "\n")
        proba = (model.predict if name == "leafwise" else model.predict_proba)(queries)
        predictions[path.name] = (proba[:, 1] if name == "binary" else proba).tolist()
    return predictions


def main() -> None:
    """Write the models and their predictions."""
    X, queries = make_rows(300, 0), make_rows(60, 1)
    queries[:5] *= 1e20
    queries[:5, 4] = np.arange(5)
    score = make_score(X)
    predictions = make_lightgbm(X, score, queries) | make_xgboost(X, score, queries)
    predictions |= make_catboost(X, score, queries)
    rows = [[None if np.isnan(v) else v for v in row] for row in queries.tolist()]
    (FOLDER / "expected.json").write_text(
        json.dumps({"rows": rows, "predictions": predictions}) + "\n"
    )


if __name__ == "__main__":
    main()
