"""Models to save, and helpers for the tests of model files."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from safetensors.numpy import load_file, save_file
from sklearn.base import BaseEstimator, is_classifier, is_regressor

import spinney
from spinney.tree import DecisionTreeClassifier, DecisionTreeRegressor

PACKAGES = (
    "calibration",
    "ensemble",
    "linear_model",
    "mixture",
    "neighbors",
    "preprocessing",
    "tree",
)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
NUMBERS = 2 * X[:, 0] - X[:, 1] + RNG.normal(size=90)
CLASSES = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
QUERIES = RNG.normal(size=(40, 3))
METHODS = ("predict", "predict_proba", "decision_function", "transform", "score_samples")


def public_estimators() -> list[Any]:
    """Return the public estimator classes of all packages."""
    estimators = []
    for package in PACKAGES:
        module = importlib.import_module(f"spinney.{package}")
        estimators += [
            getattr(module, name)
            for name in module.__all__
            if inspect.isclass(getattr(module, name))
            and issubclass(getattr(module, name), BaseEstimator)
        ]
    return estimators


def fitted(kind: type[Any]) -> Any:
    """Return a fitted estimator of a class."""
    if kind.__name__.startswith(("Stacking", "Voting", "Bayesian")):
        tree = DecisionTreeClassifier if "Classifier" in kind.__name__ else DecisionTreeRegressor
        model = kind([("deep", tree(random_state=0)), ("flat", tree(max_depth=2))])
    elif kind.__name__ == "ID3Classifier":
        days, play = spinney.datasets.load_play_tennis(return_X_y=True)
        return kind().fit(days, play)
    elif kind.__name__ == "RadiusNeighborsClassifier":
        model = kind(outlier_label="no")
    else:
        model = kind()
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    if kind.__name__ == "GradientBoostingRanker":
        return model.fit(X, (NUMBERS > 0).astype(int), group=[45, 45])
    if is_classifier(model):
        return model.fit(X, CLASSES)
    return model.fit(X, NUMBERS) if is_regressor(model) else model.fit(X)


def outputs_of(model: Any, queries: Any) -> dict[str, Any]:
    """Return all outputs of a model for some rows."""
    outputs = {
        name: getattr(model, name)(queries) for name in METHODS if callable(_get(model, name))
    }
    if hasattr(model, "kneighbors"):
        outputs["kneighbors"], _ = model.kneighbors(queries)
    if type(model).__name__ == "HNSW":
        outputs["query"], _ = model.query(queries, 3)
    return {
        name: output.toarray() if sp.issparse(output) else output
        for name, output in outputs.items()
    }


def _get(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except NotImplementedError:
        return None


def assert_same(model: Any, loaded: Any, queries: Any) -> None:
    """Check that a loaded model has exactly the outputs of the saved one."""
    expected, actual = outputs_of(model, queries), outputs_of(loaded, queries)
    assert expected
    assert expected.keys() == actual.keys()
    for name, output in expected.items():
        np.testing.assert_array_equal(actual[name], output, err_msg=name, strict=True)


def round_trip(model: Any, folder: Path) -> Any:
    """Save a model and return the loaded one."""
    spinney.save(model, folder / "model.spinney")
    return spinney.load(folder / "model.spinney")


def rewrite_header(path: Path, **changes: Any) -> None:
    """Replace texts in the header of a model file; update the checksums."""
    import hashlib

    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        header = dict(file.metadata())
    header |= {
        name: text if isinstance(text, str) else json.dumps(text) for name, text in changes.items()
    }
    checksums = json.loads(header["checksums"])
    for name in ("about", "state"):
        checksums[name] = hashlib.sha256(header[name].encode()).hexdigest()
    save_file(load_file(path), path, header | {"checksums": json.dumps(checksums)})
