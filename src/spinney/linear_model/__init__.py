"""Linear predictors."""

from spinney.linear_model._halfspace import HalfspaceClassifier
from spinney.linear_model._lad import LADRegressor

__all__ = ["HalfspaceClassifier", "LADRegressor"]
