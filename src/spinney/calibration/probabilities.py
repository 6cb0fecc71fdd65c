"""Out-of-fold class probabilities, with a column for each class."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _num_samples, check_array, column_or_1d

from spinney.calibration._wrapper import fit_on
from spinney.conformal.rules import Floats
from spinney.data.labels import encode_labels
from spinney.data.sklearn_versions import safe_indexing

__all__ = [
    "all_classes",
    "columns_of",
    "fold_shares",
    "held_out_shares",
    "read_classes",
    "unit_of_margins",
]


def read_classes(estimator: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return the labels as an array, the classes, and each row's code."""
    y = column_or_1d(y, warn=True)
    if y.dtype.kind in "fc":
        check_array(y, ensure_2d=False, input_name="y", estimator=estimator)
    check_classification_targets(y)
    classes, codes = encode_labels(np.asarray(y))
    return np.asarray(y), classes, np.asarray(codes).astype(np.int32)


def all_classes(estimator: Any, every: Any, y: Any, classes: Any) -> Any:
    """Return the classes of all rows; `classes` are those of the weighted rows."""
    return classes if len(y) == _num_samples(every) else read_classes(estimator, every)[1]


def held_out_shares(model: Any, X: Any, classes: Any, unit: float = 1.0) -> Floats:
    """Return the probabilities of all classes by a model that may lack some of them.

    If a model has margins only, margins / `unit` are used as log-odds (with more than two classes,
    as logits of a softmax). These probabilities increase with the margins, which is all that
    calibration and prediction sets need.
    """
    if hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
    else:
        margins = _margins(model, X) / unit
        if margins.ndim == 1:
            second = expit(margins)
            shares = np.column_stack([1 - second, second])
        else:
            shares = np.asarray(softmax(margins, axis=1))
    return columns_of(classes, shares, model.classes_)


def columns_of(classes: Any, values: Any, present: Any) -> Any:
    """Return columns for all classes, with zeros for the classes that are not present."""
    if len(present) == len(classes):
        return values
    out = np.zeros((len(values), len(classes)), dtype=values.dtype)
    out[:, np.searchsorted(classes, present)] = values
    return out


def unit_of_margins(model: Any, X: Any) -> float:
    """Return the mean absolute margin of a model, or 1 for a model with probabilities."""
    if hasattr(model, "predict_proba"):
        return 1.0
    margins = _margins(model, X)
    if margins.ndim == 2:
        margins = margins - margins.mean(axis=1, keepdims=True)
    size = float(np.abs(margins).mean())
    return size if np.isfinite(size) and size > 0 else 1.0


def _margins(model: Any, X: Any) -> Floats:
    """Return the margins: of the second of two classes, (n_rows,), or of all classes."""
    if not hasattr(model, "decision_function"):
        raise ValueError(
            "estimator: expected a classifier with predict_proba or decision_function, got "
            f"{type(model).__name__}"
        )
    margins = np.asarray(model.decision_function(X), dtype=np.float64)
    n_classes = len(model.classes_)
    if margins.ndim == 2 and margins.shape[1] != n_classes:
        raise ValueError(
            f"estimator: expected a margin for each of {n_classes} classes, got "
            f"{margins.shape[1]} from {type(model).__name__}"
        )
    return margins


def fold_shares(
    base: Any,
    X: Any,
    y: Any,
    *,
    weights: Any,
    classes: Any,
    folds: list[tuple[Any, Any]],
    unit: float = 1.0,
) -> Floats:
    """Return out-of-fold probabilities of all rows."""
    out = np.empty((len(y), len(classes)))
    for train, test in folds:
        model = fit_on(base, X, y, weights, train)
        out[test] = held_out_shares(model, safe_indexing(X, test), classes, unit)
    return out
