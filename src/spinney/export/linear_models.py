"""Conversion of linear models to scores and outcomes."""

from __future__ import annotations

from typing import Any

from spinney.linear_model import (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeCV,
)
from spinney.models.linear import LinearModel, PolynomialModel

__all__ = ["LINEAR_MODELS", "read_linear"]

LINEAR_MODELS = (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeCV,
)


def read_linear(model: Any) -> tuple[LinearModel | PolynomialModel, Any]:
    """Return the scores and the outcome of a linear model or a polynomial regression."""
    fitted = model.fitted_model()
    return fitted, fitted.outcome
