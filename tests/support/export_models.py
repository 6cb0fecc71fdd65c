"""Models of every kind that can be exported, with difficult data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

import spinney.ensemble as ens
import spinney.linear_model as lin
import spinney.mixture as mix
import spinney.neighbors as nb
import spinney.tree as tree

CATEGORICAL = ["colour", "town", "code", "size", "flag"]
_TOWNS = [f"town {i}" for i in range(150)]


def rows_with_missing(n: int = 300, *, missing: float = 0.1, seed: int = 0) -> Any:
    """Return float32 rows with missing values, some of them on thresholds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5)).round(1).astype(np.float32)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def targets(X: Any) -> dict[str, Any]:
    """Return targets of every kind."""
    rng = np.random.default_rng(1)
    X = np.nan_to_num(X).astype(np.float64)
    number = 2 * X[:, 0] + np.exp(X[:, 1])
    noisy = X[:, 0] + 0.3 * rng.normal(size=len(X))
    return {
        "two": np.where(noisy > 0, 7, -3),
        "three": np.array(["a", "b", "ç"])[np.digitize(noisy, [-0.5, 0.5])],
        "one": np.full(len(X), 4),
        "number": number,
        "positive": np.abs(number) + 0.1,
        "share": 1 / (1 + np.exp(-noisy)),
        "several": np.c_[number, X[:, 2]],
        "nothing": None,
    }


def tree_classifiers() -> list[Any]:
    """Return tree-based classifiers."""
    small = {"n_estimators": 12, "random_state": 0}
    return [
        tree.DecisionTreeClassifier(max_depth=5, random_state=0),
        tree.DecisionTreeClassifier(criterion="entropy", min_samples_leaf=5, random_state=0),
        tree.ExtraTreeClassifier(random_state=0),
        ens.RandomForestClassifier(min_samples_leaf=3, **small),
        ens.RandomForestClassifier(min_samples_leaf=3, voting="hard", **small),
        ens.ExtraTreesClassifier(**small),
        ens.BaggingClassifier(max_features=0.6, **small),
        ens.GradientBoostingClassifier(**small),
        ens.HistGradientBoostingClassifier(max_iter=8, random_state=0),
        ens.AdaBoostClassifier(**small),
        ens.AdaBoostClassifier(algorithm="M1", **small),
        ens.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=2), algorithm="real", **small),
    ]


def tree_regressors() -> list[tuple[Any, str]]:
    """Return tree-based regressors, each with the name of its target."""
    small = {"n_estimators": 12, "random_state": 0}
    boost = ens.GradientBoostingRegressor
    return [
        (tree.DecisionTreeRegressor(random_state=0), "number"),
        (tree.ExtraTreeRegressor(random_state=0), "number"),
        (ens.RandomForestRegressor(**small), "number"),
        (ens.ExtraTreesRegressor(**small), "number"),
        (ens.BaggingRegressor(**small), "number"),
        (ens.AdaBoostRegressor(**small), "number"),
        (boost(**small), "number"),
        (boost(loss="huber", **small), "number"),
        (boost(loss="quantile", alpha=[0.1, 0.9, 0.5], **small), "number"),
        (boost(loss="poisson", **small), "positive"),
        (boost(loss="cross_entropy", **small), "share"),
        (ens.HistGradientBoostingRegressor(max_iter=8, loss="gamma", random_state=0), "positive"),
        (tree.DecisionTreeRegressor(max_depth=4, random_state=0), "several"),
        (ens.RandomForestRegressor(max_depth=5, **small), "several"),
        (boost(**small), "several"),
        (ens.IsolationForest(**small), "nothing"),
        (ens.IsolationForest(contamination=0.1, **small), "nothing"),
        (boost(loss="poisson", **small), "several positive"),
    ]


def linear_models() -> list[tuple[Any, str]]:
    """Return linear models, each with the name of its target."""
    return [
        (lin.LinearRegression(), "number"),
        (lin.LinearRegression(fit_intercept=False), "several"),
        (lin.Ridge(), "several"),
        (lin.RidgeCV(), "number"),
        (lin.LADRegressor(), "number"),
        (lin.LogisticRegression(), "two"),
        (lin.LogisticRegression(), "three"),
        (lin.Perceptron(random_state=0), "two"),
        (lin.Perceptron(random_state=0), "three"),
        (lin.HalfspaceClassifier(), "two"),
        (lin.PolynomialRegression(), "number"),
        (lin.PolynomialRegression(degree=0), "number"),
        (lin.PolynomialRegression(degree=1), "several"),
        (lin.PolynomialRegression(degree=4), "several"),
    ]


def neighbor_models() -> list[tuple[Any, str]]:
    """Return nearest-neighbour models, each with the name of its target."""
    return [
        (nb.KNeighborsClassifier(), "two"),
        (nb.KNeighborsClassifier(7, weights="distance"), "three"),
        (nb.KNeighborsClassifier(1, algorithm="ball_tree"), "three"),
        (nb.KNeighborsRegressor(), "number"),
        (nb.KNeighborsRegressor(3, weights="distance"), "several"),
    ]


def all_models() -> list[tuple[Any, str]]:
    """Return all models, each with the name of its target."""
    classifiers = [(model, y) for model in tree_classifiers() for y in ("two", "three")]
    special_cases = [
        (tree.DecisionTreeClassifier(), "one"),  # a single leaf
        (ens.GradientBoostingClassifier(n_estimators=3), "one"),
        (ens.GradientBoostingClassifier(loss="exponential", n_estimators=8), "two"),
        (
            ens.GradientBoostingClassifier(random_state=0, max_leaf_nodes=4),
            "three",
        ),  # cross-validated
    ]
    return [*classifiers, *special_cases, *tree_regressors(), *linear_models(), *neighbor_models()]


def takes_missing(model: Any) -> bool:
    """Return whether a model accepts missing values."""
    return bool(model.__sklearn_tags__().input_tags.allow_nan)


def fit_on_missing(model: Any, target: str, dtype: Any = np.float32) -> Any:
    """Fit on `rows_with_missing`, imputed if the model needs complete rows."""
    X = rows_with_missing().astype(dtype)
    by_name = targets(X)
    by_name["several positive"] = np.abs(by_name["several"]) + 0.1
    X = X if takes_missing(model) else np.nan_to_num(X)
    y = by_name[target]
    return model.fit(X) if y is None else model.fit(X, y)


def table(n: int, *, unseen: bool = False, seed: int = 0) -> pd.DataFrame:
    """Return a table with categories of every type and missing values."""
    rng = np.random.default_rng(seed)
    unseen_values = (["grün"], [99]) if unseen else ([], [])
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n).round(1).astype(np.float32),
            "colour": rng.choice(["red", "green", 'a "blue"\n?', *unseen_values[0]], n),
            "town": rng.choice(_TOWNS, n),
            "code": rng.choice([3, 7, 11, *unseen_values[1]], n),
            "size": rng.choice([0.1, 0.5, 2.5], n),
            "flag": rng.random(n) < 0.5,
        }
    ).astype({"colour": object, "town": object})
    for name in ("x", "colour", "town", "size"):
        frame.loc[rng.random(n) < 0.1, name] = None if name in ("colour", "town") else np.nan
    return frame


def table_targets(frame: pd.DataFrame) -> tuple[Any, Any]:
    """Return three classes and a number that depend on all columns of a `table`."""
    of_town = {town: np.sin(i) for i, town in enumerate(_TOWNS)}
    number = np.nan_to_num(frame["x"].to_numpy()) + 2.0 * (frame["colour"] == "red")
    number += frame["town"].map(of_town).fillna(0.5).to_numpy()
    number += (frame["code"] == 7) * frame["flag"] * frame["size"].fillna(1.0)
    number = np.asarray(number, dtype=np.float64)
    return np.digitize(number, [0.0, 1.5]), number


def table_models() -> list[Any]:
    """Return models that are fitted to a `table`."""
    frame = table(1500)
    classes, number = table_targets(frame)
    named = {"categorical_features": CATEGORICAL, "random_state": 0}
    small = {"n_estimators": 8, **named}
    return [
        tree.DecisionTreeClassifier(max_depth=8, **named).fit(frame, classes),
        ens.RandomForestClassifier(min_samples_leaf=5, **small).fit(frame, classes),
        ens.GradientBoostingClassifier(**small).fit(frame, classes),
        ens.GradientBoostingRegressor(max_set_categories=None, **small).fit(frame, number),
        ens.ExtraTreesRegressor(min_samples_leaf=5, **small).fit(frame, number),
        ens.AdaBoostClassifier(**small).fit(frame, classes),
        ens.IsolationForest(**small).fit(frame),
        tree.DecisionTreeRegressor(max_depth=8, **named).fit(frame, number),
        tree.ExtraTreeClassifier(max_depth=8, **named).fit(frame, classes),
        ens.RandomForestRegressor(min_samples_leaf=5, **small).fit(frame, number),
        ens.ExtraTreesClassifier(min_samples_leaf=5, **small).fit(frame, classes),
        ens.HistGradientBoostingClassifier(max_iter=5, **named).fit(frame, classes),
        ens.HistGradientBoostingRegressor(max_iter=5, **named).fit(frame, number),
        ens.AdaBoostRegressor(tree.DecisionTreeRegressor(max_depth=4, **named), n_estimators=6).fit(
            frame, number
        ),
        ens.BaggingClassifier(
            tree.DecisionTreeClassifier(max_depth=5, **named), 6, random_state=0
        ).fit(frame, classes),
        ens.BaggingRegressor(
            tree.DecisionTreeRegressor(max_depth=5, **named), 6, random_state=0
        ).fit(frame, number),
        tree.ExtraTreeRegressor(max_depth=8, **named).fit(frame, number),
        ens.GradientBoostingRanker(**small).fit(
            frame, classes, group=np.repeat(np.arange(len(frame) // 10), 10)
        ),
    ]


def unsupported() -> list[tuple[Any, str]]:
    """Return models without export, each with a word of the error message."""
    X = np.nan_to_num(rows_with_missing(60))
    y = targets(X)
    return [
        (nb.KNeighborsClassifier(metric="manhattan").fit(X, y["two"]), "manhattan"),
        (nb.KNeighborsRegressor(weights="tricube").fit(X, y["number"]), "tricube"),
        (nb.KNeighborsRegressor(weights=lambda d: d + 1).fit(X, y["number"]), "weights"),
        (nb.KNeighborsClassifier(metric="gower").fit(X, y["two"]), "gower"),
        (nb.KNeighborsRegressor(61).fit(X, y["number"]), "n_neighbors=61"),
        (nb.LocalRegression().fit(X[:, :1], y["number"]), "LocalRegression"),
        (tree.QuadTreeRegressor().fit(X, y["number"]), "QuadTreeRegressor"),
        (mix.MixtureClassifier().fit(X, y["two"]), "MixtureClassifier"),
        (ens.AdaBoostClassifier(lin.LogisticRegression()).fit(X, y["two"]), "LogisticRegression"),
        (ens.BaggingClassifier(lin.LogisticRegression()).fit(X, y["two"]), "LogisticRegression"),
        (tree.C45Classifier().fit(X, y["two"]), "C45Classifier"),
        (ens.RandomTreesEmbedding(n_estimators=2).fit(X), "RandomTreesEmbedding"),
    ]


def models_of_several_classes() -> list[Any]:
    """Return fitted multi-output classifiers, with numbers and strings as classes."""
    X = rows_with_missing()
    y = targets(X)
    numbers = np.c_[y["two"], np.digitize(np.nan_to_num(X[:, 2]), [-1, 0, 1])]
    strings = np.c_[y["three"], np.where(y["two"] > 0, "yes", "no")]
    small = {"n_estimators": 12, "random_state": 0}
    return [
        tree.DecisionTreeClassifier(max_depth=5, random_state=0).fit(X, numbers),
        ens.RandomForestClassifier(max_depth=5, **small).fit(X, strings),
        ens.RandomForestClassifier(max_depth=5, voting="hard", **small).fit(X, numbers),
        nb.KNeighborsClassifier(weights="distance").fit(np.nan_to_num(X), strings),
    ]
