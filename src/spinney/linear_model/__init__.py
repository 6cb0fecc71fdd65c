"""Linear predictors."""

from spinney.linear_model._halfspace import HalfspaceClassifier
from spinney.linear_model._lad import LADRegressor
from spinney.linear_model._perceptron import Perceptron

__all__ = ["HalfspaceClassifier", "LADRegressor", "Perceptron"]
