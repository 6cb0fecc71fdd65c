"""Linear predictors."""

from spinney.linear_model._halfspace import HalfspaceClassifier
from spinney.linear_model._lad import LADRegressor
from spinney.linear_model._linear_regression import LinearRegression
from spinney.linear_model._logistic import LogisticRegression
from spinney.linear_model._perceptron import Perceptron
from spinney.linear_model._polynomial import PolynomialRegression
from spinney.linear_model._ridge import Ridge, RidgeCV

__all__ = [
    "HalfspaceClassifier",
    "LADRegressor",
    "LinearRegression",
    "LogisticRegression",
    "Perceptron",
    "PolynomialRegression",
    "Ridge",
    "RidgeCV",
]
