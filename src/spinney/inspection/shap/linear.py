"""Shapley values of linear models: coefficients times distances from the mean."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.data.sklearn_versions import validate_data
from spinney.inspection.shap.trees import ShapResult
from spinney.models.outcomes import LargestScore, Numbers, Sides, Softmax, TwoClasses

__all__ = ["explain_linear"]


def explain_linear(model: Any, X: Any, background: Any, *, interactions: bool) -> ShapResult:
    """Return Shapley values of a linear model relative to the background's mean.

    Columns are treated as independent: a column outside the coalition is at the background's mean,
    and there are no interactions.
    """
    scores = model.fitted_model()
    outcome = scores.outcome
    rows = _read(model, X)
    mean = _read(model, background).mean(axis=0)
    values = (rows - mean)[:, :, np.newaxis] * scores.coef.T
    center = 0.0 if scores.center is None else scores.center
    base = scores.coef @ (mean - center) + scores.intercept
    names = None if len(scores.coef) == 1 else [str(k) for k in range(len(scores.coef))]
    output = "prediction"
    if isinstance(outcome, TwoClasses):
        output = f"log-odds of {outcome.classes[1]}"
    elif isinstance(outcome, Softmax):
        output, names = "score before softmax", [str(c) for c in outcome.classes]
    elif isinstance(outcome, Sides):
        output = f"score of {outcome.classes[1]}"
    elif isinstance(outcome, LargestScore):
        output, names = "score", [str(c) for c in outcome.classes]
    else:
        assert isinstance(outcome, Numbers)
        base = base / outcome.divisor
    if interactions:
        pairs = np.zeros((len(rows), rows.shape[1], rows.shape[1], values.shape[2]))
        diagonal = np.arange(rows.shape[1])
        pairs[:, diagonal, diagonal] = values
        values = pairs
    return ShapResult(values, base, output, names, "linear, against the mean of the background")


def _read(model: Any, X: Any) -> Any:
    rows = validate_data(model, X, reset=False, accept_sparse=True, dtype=np.float64)
    return rows.toarray() if hasattr(rows, "toarray") else rows
