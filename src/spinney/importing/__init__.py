"""Conversion of models fitted by other libraries to Spinney models."""

from __future__ import annotations

from spinney.importing._catboost import from_catboost
from spinney.importing._lightgbm import from_lightgbm
from spinney.importing._sklearn import from_sklearn
from spinney.importing._xgboost import from_xgboost

__all__ = ["from_catboost", "from_lightgbm", "from_sklearn", "from_xgboost"]
