"""Linear predictors."""

from spinney.linear_model._linear_regression import LinearRegression
from spinney.linear_model._logistic import LogisticRegression
from spinney.linear_model._ridge import Ridge, RidgeCV

__all__ = ["LinearRegression", "LogisticRegression", "Ridge", "RidgeCV"]
