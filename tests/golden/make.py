"""Make the golden files: small models of every estimator, and their outputs for some rows.

They are made once for each version of the format. Later versions of Spinney must load them and
return the same outputs. Run ``python tests/golden/make.py`` after `VERSION` has increased, or for
an estimator without a file. Existing files and stored outputs are not changed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

sys.path.insert(0, str(Path(__file__).parents[1]))

import spinney
from golden.queries import WORDS, outputs_of
from spinney.model_file.files import VERSION

FOLDER = Path(__file__).parent

SMALL = {"n_estimators": 3, "random_state": 0, "max_depth": 3, "max_leaf_nodes": 5}


def training_rows() -> tuple[Any, Any, Any, Any]:
    """Return numeric rows, a table of mixed columns, a numeric target and classes."""
    import pandas as pd

    rng = np.random.default_rng(0)
    X = rng.normal(size=(48, 3)).round(2)
    table = pd.DataFrame({"size": X[:, 0], "city": rng.choice(["Bath", "Ely", "York"], 48)})
    table.loc[::7, "size"] = np.nan
    y = (2 * X[:, 0] - X[:, 1] + 3 * (table["city"] == "Ely") + rng.normal(size=48)).round(2)
    return X, table, y.to_numpy(), np.where(y > 0.5, "yes", "no")


def models() -> dict[str, Any]:
    """Return unfitted models by the names of their files."""
    from spinney import (
        calibration,
        ensemble,
        linear_model,
        mixture,
        neighbors,
        preprocessing,
        tree,
    )

    out: dict[str, Any] = {}
    for module in (calibration, ensemble, linear_model, mixture, neighbors, preprocessing, tree):
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and hasattr(kind, "fit") and hasattr(kind, "get_params"):
                out[name] = _small(kind)
    classifier = tree.DecisionTreeClassifier(max_depth=2)
    return out | {
        "KNeighborsClassifier-ball_tree": neighbors.KNeighborsClassifier(3, algorithm="ball_tree"),
        "KNeighborsClassifier-brute": neighbors.KNeighborsClassifier(3, algorithm="brute"),
        "KNeighborsClassifier-canberra": neighbors.KNeighborsClassifier(3, metric="canberra"),
        "KNeighborsClassifier-hnsw": neighbors.KNeighborsClassifier(3, algorithm="hnsw"),
        "KNeighborsClassifier-mahalanobis": neighbors.KNeighborsClassifier(
            3, metric="mahalanobis", algorithm="brute"
        ),
        "GradientBoostingClassifier-early": ensemble.GradientBoostingClassifier(
            n_estimators=4, early_stopping=True, min_samples_leaf=5, random_state=0
        ),
        "Pipeline": make_pipeline(StandardScaler(), linear_model.LogisticRegression()),
        "GradientBoostingClassifier-compact8": ensemble.GradientBoostingClassifier(
            n_estimators=4, early_stopping=False, min_samples_leaf=5, random_state=0
        ),
        "RandomForestClassifier-compact16": ensemble.RandomForestClassifier(
            3, min_samples_leaf=3, random_state=0
        ),
        "RandomForestRegressor-compact8": ensemble.RandomForestRegressor(3, random_state=0),
        "table-RandomForestRegressor-compact16": ensemble.RandomForestRegressor(3, random_state=0),
        "RandomForestClassifier-oob": ensemble.RandomForestClassifier(
            3, oob_score=True, random_state=0
        ),
        "BaggingClassifier-neighbors": ensemble.BaggingClassifier(
            neighbors.KNeighborsClassifier(3), n_estimators=2, random_state=0
        ),
        "AdaBoostClassifier-logistic": ensemble.AdaBoostClassifier(
            linear_model.LogisticRegression(), n_estimators=2, random_state=0
        ),
        "PlugInClassifier-regressor": mixture.PlugInClassifier(
            regressor=linear_model.LinearRegression()
        ),
        "table-C45Classifier": tree.C45Classifier(),
        "table-DecisionTreeClassifier": classifier,
        "table-DecisionTreeRegressor": tree.DecisionTreeRegressor(max_depth=3),
        "table-AdaBoostClassifier": ensemble.AdaBoostClassifier(n_estimators=3, random_state=0),
        "table-ExtraTreesClassifier": ensemble.ExtraTreesClassifier(3, random_state=0),
        "table-GradientBoostingClassifier": ensemble.GradientBoostingClassifier(
            n_estimators=3, min_samples_leaf=5, random_state=0
        ),
        "table-GradientBoostingRegressor": ensemble.GradientBoostingRegressor(
            n_estimators=3, min_samples_leaf=5, random_state=0
        ),
        "table-KNeighborsClassifier-gower": neighbors.KNeighborsClassifier(3, metric="gower"),
        "table-Pipeline": make_pipeline(
            ColumnTransformer(
                [
                    ("numbers", SimpleImputer(), ["size"]),
                    ("texts", OneHotEncoder(handle_unknown="ignore"), ["city"]),
                ]
            ),
            linear_model.LogisticRegression(),
        ),
        "table-RandomForestClassifier": ensemble.RandomForestClassifier(3, random_state=0),
        "table-RandomForestRegressor": ensemble.RandomForestRegressor(3, random_state=0),
        "words-KNeighborsClassifier-edit": neighbors.KNeighborsClassifier(1, metric="edit"),
        "words-ComparisonTreeClassifier": tree.ComparisonTreeClassifier(
            metric="edit", random_state=0
        ),
        "ConformalRegressor-quantiles": calibration.ConformalRegressor(
            ensemble.GradientBoostingRegressor(n_estimators=2, min_samples_leaf=5, random_state=0),
            method="quantile",
            random_state=0,
        ),
        "table-ConformalClassifier": calibration.ConformalClassifier(
            tree.DecisionTreeClassifier(max_depth=2), random_state=0
        ),
        "several-DecisionTreeClassifier": tree.DecisionTreeClassifier(max_depth=3),
        "several-DecisionTreeRegressor": tree.DecisionTreeRegressor(max_depth=3),
        "several-GradientBoostingRegressor": ensemble.GradientBoostingRegressor(
            n_estimators=3, min_samples_leaf=5, random_state=0
        ),
        "several-KNeighborsClassifier": neighbors.KNeighborsClassifier(3),
        "several-LinearRegression": linear_model.LinearRegression(),
        "several-RandomForestClassifier": ensemble.RandomForestClassifier(3, random_state=0),
        "several-RandomForestRegressor": ensemble.RandomForestRegressor(3, random_state=0),
        "GradientBoostingRegressor-quantiles": ensemble.GradientBoostingRegressor(
            n_estimators=3, loss="quantile", alpha=[0.1, 0.9], min_samples_leaf=5, random_state=0
        ),
        "float32-RandomForestRegressor": ensemble.RandomForestRegressor(3, random_state=0),
        "float32-LogisticRegression": linear_model.LogisticRegression(),
        "sparse-DecisionTreeClassifier": tree.DecisionTreeClassifier(max_depth=3),
        "sparse-KNeighborsRegressor": neighbors.KNeighborsRegressor(3),
        **_compared(),
    }


def _compared() -> dict[str, Any]:
    """Return the estimators that `compare` derives from others, for a mixed table."""
    from spinney.comparison.families import FAMILIES

    out = {}
    for family in FAMILIES:
        for task in family.tasks:
            model = family.make(task, 0, 1)
            if type(model).__module__.startswith(("spinney.comparison.", "spinney.tree.pruned")):
                out[f"table-{type(model).__name__}"] = model
    return out


def _small(kind: type[Any]) -> Any:
    name = kind.__name__
    if name.startswith(("Stacking", "Voting", "Bayesian")):
        from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

        tree = DecisionTreeClassifier if "Classifier" in name else DecisionTreeRegressor
        return kind([("deep", tree(max_depth=3)), ("flat", tree(max_depth=1))])
    if name in ("CalibratedClassifier", "ConformalClassifier", "ConformalRegressor"):
        from spinney.linear_model import LinearRegression, LogisticRegression

        model = LogisticRegression() if name.endswith("Classifier") else LinearRegression()
        return kind(model, random_state=0)
    model = kind(outlier_label="no") if name == "RadiusNeighborsClassifier" else kind()
    known = model.get_params(deep=False)
    if "GradientBoosting" in name:
        model.set_params(min_samples_leaf=5)
    if name.startswith("Hist"):
        model.set_params(max_iter=3)
    return model.set_params(**{key: value for key, value in SMALL.items() if key in known})


def fit(name: str, model: Any) -> Any:
    """Fit a model to the rows that its name specifies."""
    X, table, y, classes = training_rows()
    if name == "ID3Classifier":
        return model.fit(*spinney.datasets.load_play_tennis(return_X_y=True))
    if name.startswith("words-"):
        return model.fit(WORDS, np.arange(len(WORDS)))
    plain, _, bits = name.partition("-compact")
    if bits:
        return fit(plain, model).compact(int(bits))
    rows = table if name.startswith("table-") else X
    if name.startswith("several-"):
        y, classes = np.column_stack([y, -X[:, 2]]), np.column_stack([classes, X[:, 2] > 0])
    if name.startswith("float32-"):
        rows = X.astype(np.float32)
    if name.startswith("sparse-"):
        rows = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    if name == "GradientBoostingRanker":
        return model.fit(rows, (y > 0).astype(int), group=[24, 24])
    if is_classifier(model):
        return model.fit(rows, classes)
    return model.fit(rows, y) if is_regressor(model) else model.fit(rows)


def main() -> None:
    """Write the files that do not exist yet."""
    folder = FOLDER / f"v{VERSION}"
    folder.mkdir(exist_ok=True)
    kept = folder / "outputs.npz"
    outputs = dict(np.load(kept)) if kept.exists() else {}
    for name, model in models().items():
        path = folder / f"{name}.spinney"
        if path.exists():
            fitted = spinney.load(path)
        else:
            fitted = fit(name, model)
            spinney.save(fitted, path)
            print(f"{path.name}: {path.stat().st_size:,} bytes")
        for method, output in outputs_of(name, fitted).items():
            outputs.setdefault(f"{name} {method}", output)
    np.savez_compressed(kept, **outputs)


if __name__ == "__main__":
    main()
