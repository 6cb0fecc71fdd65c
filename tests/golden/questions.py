"""The rows that golden models are asked about. They never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["NUMBERS", "TABLE", "WORDS", "answers_of", "rows_for"]

NUMBERS = np.array(
    [
        [0.0, 0.0, 0.0],
        [0.5, -1.25, 2.0],
        [-0.75, 0.25, -0.5],
        [1.5, 1.5, 1.5],
        [-2.0, 0.125, 0.375],
        [0.0625, -0.625, 0.875],
    ]
)
TABLE = {
    "size": [0.5, float("nan"), -1.25, 2.0, float("nan"), 0.125],
    "city": ["Bath", "Ely", "York", "Rye", None, "Ely"],
}
WORDS = ["kitten", "sitting", "mitten", "saturday"]
_METHODS = (
    *("predict", "predict_proba", "decision_function", "transform", "score_samples"),
    *("apply", "predict_interval", "predict_set"),
)


def rows_for(name: str) -> Any:
    """Return the rows that the model in a file is asked about."""
    if name == "ID3Classifier":
        import spinney

        return spinney.datasets.load_play_tennis(return_X_y=True)[0]
    if name.startswith("table-"):
        import pandas as pd

        return pd.DataFrame(TABLE)
    if name.startswith("float32-"):
        return NUMBERS.astype(np.float32)
    if name.startswith("sparse-"):
        return sp.csr_matrix(NUMBERS)
    return WORDS if name.startswith("words-") else NUMBERS


def answers_of(name: str, model: Any) -> dict[str, Any]:
    """Return everything that a model says about its rows."""
    rows = rows_for(name)
    said = {}
    for method in _METHODS:
        if callable(_get(model, method)):
            try:
                answer = getattr(model, method)(rows)
            except (NotImplementedError, TypeError, ValueError):
                continue  # intervals and sets, where there is nothing to tell them from
            answer = np.stack(answer, axis=1) if isinstance(answer, list) else answer
            said[method] = answer.toarray() if sp.issparse(answer) else np.asarray(answer)
    if hasattr(model, "kneighbors"):
        said["kneighbors"], _ = model.kneighbors(rows)
    if type(model).__name__ == "HNSW":
        said["query"], _ = model.query(rows, 3)
    return {
        method: answer.astype(str) if answer.dtype == object else answer
        for method, answer in said.items()
    }


def _get(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except NotImplementedError:
        return None
