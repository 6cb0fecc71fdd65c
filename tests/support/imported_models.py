"""The models of other libraries under tests/data/imported, and what those say of some rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "data" / "imported"


def read_expected() -> tuple[Any, dict[str, Any]]:
    """Rows, and the predictions of each file's library about them."""
    read = json.loads((FOLDER / "expected.json").read_text())
    return np.array(read["rows"], dtype=np.float64), {
        name: np.array(told) for name, told in read["told"].items()
    }


def predict_like_source(model: Any, X: Any, like: Any) -> Any:
    """Predictions in the form in which the other libraries give theirs."""
    if not hasattr(model, "predict_proba"):
        return model.predict(X)
    return model.predict_proba(X)[:, 1] if like.ndim == 1 else model.predict_proba(X)


def make_rows(seed, n=250):
    """Rows with gaps, zeros, and whole numbers in the last column; and a score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[rng.random(X.shape) < 0.1] = 0.0
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = rng.integers(0, 20, n)
    return X, np.nan_to_num(X[:, 0]) + np.sin(X[:, 3]) + 0.3 * np.nan_to_num(X[:, 1])
