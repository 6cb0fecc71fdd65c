"""Conversion of nearest-neighbour models to scores and outcomes."""

from __future__ import annotations

from typing import Any

from spinney.models.neighbor_rows import NeighborModel
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor

__all__ = ["NEIGHBOR_MODELS", "read_neighbors"]

NEIGHBOR_MODELS = (KNeighborsClassifier, KNeighborsRegressor)


def read_neighbors(model: Any) -> tuple[NeighborModel, Any]:
    """Return the scores and the outcome of a k-neighbours classifier or regressor."""
    fitted = model.fitted_model()
    return fitted, fitted.outcome
