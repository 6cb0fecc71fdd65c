"""Conversion of linear models to scores and outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spinney.linear_model import (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    PolynomialRegression,
    Ridge,
    RidgeCV,
)
from spinney.models.form import (
    LargestScore,
    LinearScores,
    Numbers,
    PolynomialScores,
    Sides,
    Softmax,
    TwoClasses,
)

__all__ = ["LINEAR_MODELS", "read_linear", "read_polynomial"]

LINEAR_MODELS = (
    HalfspaceClassifier,
    LADRegressor,
    LinearRegression,
    LogisticRegression,
    Perceptron,
    Ridge,
    RidgeCV,
)


def read_linear(model: Any) -> tuple[LinearScores, Any]:
    """Return the scores and the outcome of a linear model."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    flat = np.ndim(coef) == 1
    coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
    center = None
    intercept = model.intercept_
    if isinstance(model, LADRegressor):  # it subtracts the centre before multiplying
        center, intercept = np.asarray(model._center, dtype=np.float64), model._at_center
    intercept = np.asarray(intercept, dtype=np.float64).ravel()
    scores = LinearScores(coef, np.broadcast_to(intercept, (len(coef),)), center)
    if not is_classifier(model):
        return scores, Numbers(flat)
    if isinstance(model, LogisticRegression):
        return scores, (TwoClasses if len(coef) == 1 else Softmax)(model.classes_)
    return scores, (Sides if len(coef) == 1 else LargestScore)(model.classes_)


def read_polynomial(model: PolynomialRegression) -> tuple[PolynomialScores, Numbers]:
    """Return the scores and the outcome of a polynomial regression."""
    coef = np.asarray(model.coef_, dtype=np.float64)
    scores = PolynomialScores(np.atleast_2d(coef), model.exponents_, model._middle, model._half)
    return scores, Numbers(flat=coef.ndim == 1)
