"""Models of other libraries in tests/data/imported, and their predictions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "imported"


def read_expected() -> tuple[Any, dict[str, Any]]:
    """Return rows, and their predictions by the library of each file."""
    content = json.loads((FOLDER / "expected.json").read_text())
    return np.array(content["rows"], dtype=np.float64), {
        name: np.array(predictions) for name, predictions in content["predictions"].items()
    }


def predict_like_source(model: Any, X: Any, expected: Any) -> Any:
    """Return predictions in the format of the other libraries."""
    if not hasattr(model, "predict_proba"):
        return model.predict(X)
    return model.predict_proba(X)[:, 1] if expected.ndim == 1 else model.predict_proba(X)


def make_rows(seed, n=250):
    """Return rows with missing values, zeros and an integer column, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 20, n)
    return X, np.nan_to_num(X[:, 0]) + np.sin(X[:, 3]) + 0.3 * np.nan_to_num(X[:, 1])
