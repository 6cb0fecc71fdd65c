"""Residuals of a regressor, and their means in groups of similar predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection.table_view import as_numbers

__all__ = ["Residuals", "calculate_residuals"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Residuals:
    """Predictions and residuals, and the mean residual by prediction.

    Attributes
    ----------
    predicted, residual : ndarray of shape (n_rows,)
        Predictions, and targets minus predictions.
    middle, mean, standard_error : ndarray of shape (n_groups,)
        For groups of rows with similar predictions: the median of the predictions, and the mean and
        standard error of the residuals.
    r2 : float
        The share of the targets' variance that is explained (NaN for constant targets).
    """

    predicted: Floats
    residual: Floats
    middle: Floats
    mean: Floats
    standard_error: Floats
    r2: float


def calculate_residuals(model: Any, X: Any, y: Any, n_groups: int = 10) -> Residuals:
    """Calculate the residuals of a model or, if `model` is an array, of predictions."""
    y = as_numbers(y, "y")
    if hasattr(model, "predict"):
        check_is_fitted(model)
        if X is None:
            raise ValueError(f"X: expected rows for {type(model).__name__} to predict, got None")
        predicted = as_numbers(model.predict(X), "model")
    else:
        predicted = as_numbers(model, "model")
    if len(predicted) != len(y):
        raise ValueError(f"y: expected {len(predicted)} values, one for each row, got {len(y)}")
    residual = y - predicted
    groups = _groups(predicted, n_groups)
    spread = np.array([residual[rows].std(ddof=1) if len(rows) > 1 else np.nan for rows in groups])
    total = float(((y - y.mean()) ** 2).sum())
    return Residuals(
        predicted,
        residual,
        np.array([np.median(predicted[rows]) for rows in groups]),
        np.array([residual[rows].mean() for rows in groups]),
        spread / np.sqrt([len(rows) for rows in groups]),
        1 - float((residual**2).sum()) / total if total > 0 else float("nan"),
    )


def _groups(predicted: Floats, n_groups: int) -> list[NDArray[np.intp]]:
    """Split rows by prediction into groups of similar size, without splitting ties."""
    edges = np.unique(np.quantile(predicted, np.linspace(0, 1, n_groups + 1)[1:-1]))
    codes = np.searchsorted(edges, predicted)
    return [np.flatnonzero(codes == code) for code in np.unique(codes)]
