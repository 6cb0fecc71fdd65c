"""Conversion of nearest-neighbour models to scores and outcomes."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

from spinney.models.form import NeighborScores, NotExpressible
from spinney.models.outcomes import Numbers, SeveralShares, Shares
from spinney.neighbors import KNeighborsClassifier, KNeighborsRegressor

__all__ = ["NEIGHBOR_MODELS", "read_neighbors"]

NEIGHBOR_MODELS = (KNeighborsClassifier, KNeighborsRegressor)


def read_neighbors(model: Any) -> tuple[NeighborScores, Any]:
    """Return the scores and the outcome of a k-neighbours classifier or regressor."""
    if model.effective_metric_ not in ("euclidean", "l2"):
        raise NotExpressible(f"its metric is {model.effective_metric_!r}, expected 'euclidean'")
    if model.weights not in (None, "uniform", "distance"):
        raise NotExpressible(f"weights={model.weights!r}, expected 'uniform' or 'distance'")
    if model._fit_method == "hnsw":
        raise NotExpressible("algorithm='hnsw' is approximate, expected an exact algorithm")
    rows = model._fit_X
    rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    if model.n_neighbors > rows.shape[0]:
        raise NotExpressible(
            f"n_neighbors={model.n_neighbors} is more than the {rows.shape[0]} training rows"
        )
    by_distance = model.weights == "distance"
    targets = np.asarray(model._y)
    if not is_classifier(model):
        values = targets.reshape(len(targets), -1).astype(np.float64)
        outcome: Any = Numbers(flat=targets.ndim == 1)
    elif model.outputs_2d_:
        of_outputs = [np.eye(len(c))[targets[:, k]] for k, c in enumerate(model.classes_)]
        values, outcome = np.concatenate(of_outputs, axis=1), SeveralShares(model.classes_, 1.0)
    else:
        values, outcome = np.eye(len(model.classes_))[targets], Shares(model.classes_, 1.0)
    return NeighborScores(
        rows.astype(np.float64), values, int(model.n_neighbors), by_distance
    ), outcome
