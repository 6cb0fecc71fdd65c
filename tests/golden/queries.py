"""The rows that golden models predict. They never change."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = ["NUMBERS", "TABLE", "WORDS", "outputs_of", "rows_for"]

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
    """Return the rows that the model in a file predicts."""
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


def outputs_of(name: str, model: Any) -> dict[str, Any]:
    """Return all outputs of a model for its rows, by method."""
    rows = rows_for(name)
    outputs = {}
    for method in _METHODS:
        if callable(_get(model, method)):
            try:
                output = getattr(model, method)(rows)
            except (NotImplementedError, TypeError, ValueError):
                continue  # intervals and sets of a model without held-out rows
            output = np.stack(output, axis=1) if isinstance(output, list) else output
            outputs[method] = output.toarray() if sp.issparse(output) else np.asarray(output)
    if hasattr(model, "kneighbors"):
        outputs["kneighbors"], _ = model.kneighbors(rows)
    if type(model).__name__ == "HNSW":
        outputs["query"], _ = model.query(rows, 3)
    return {
        method: output.astype(str) if output.dtype == object else output
        for method, output in outputs.items()
    }


def _get(model: Any, name: str) -> Any:
    try:
        return getattr(model, name, None)
    except NotImplementedError:
        return None
