"""Probabilities of rows that a model did not learn from, a column for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from spinney._conformal import Floats
from spinney._labels import encode_labels
from spinney.calibration._wrapper import fit_on

__all__ = ["fold_shares", "held_out_shares", "read_classes"]


def read_classes(estimator: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the labels as an array, the classes, and each row's code."""
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        check_array(y, ensure_2d=False, input_name="y", estimator=estimator)
    check_classification_targets(y)
    classes, codes = encode_labels(np.asarray(y))
    return np.asarray(y), classes, np.asarray(codes).astype(np.int32)


def held_out_shares(model: Any, X: Any, classes: Any) -> Floats:
    """Ask a model, which may have seen only some of the classes."""
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"estimator: expected a classifier with predict_proba, got {type(model).__name__}"
        )
    shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    if len(model.classes_) == len(classes):
        return shares
    out = np.zeros((len(shares), len(classes)))
    out[:, np.searchsorted(classes, model.classes_)] = shares
    return out


def fold_shares(
    base: Any, X: Any, y: Any, weights: Any, classes: Any, folds: list[tuple[Any, Any]]
) -> Floats:
    """Ask about each row the model of the fold that left it out."""
    out = np.empty((len(y), len(classes)))
    for learned, asked in folds:
        model = fit_on(base, X, y, weights, learned)
        out[asked] = held_out_shares(model, _safe_indexing(X, asked), classes)
    return out
