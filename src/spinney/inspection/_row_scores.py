"""Scores from means over rows: what each row adds, so that the score has a standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

__all__ = ["find_row_scores", "of_mean", "slope_at"]

Floats = NDArray[np.float64]


def of_mean(scoring: Any, mean: float) -> float:
    """Return the score whose rows add `mean` on average: nearly always that mean itself."""
    return -math.sqrt(-mean) if scoring == _ROOT else mean


def slope_at(scoring: Any, mean: float) -> float:
    """Return by how much the score changes with the mean: 1, where it is that mean."""
    if scoring != _ROOT:
        return 1.0
    return 0.5 / math.sqrt(-mean) if mean < 0 else 0.0  # without an error there is none to spread


def find_row_scores(model: Any, scoring: Any, y: NDArray[Any]) -> Callable[[Any], Floats] | None:
    """Return a function from X to what each row adds; `of_mean` makes the score of their mean.

    None where the score is no mean over rows (the area under a curve, say), or not one of those
    that are known here.
    """
    if scoring is None:
        score = getattr(type(model), "score", None)
        if score is ClassifierMixin.score and not isinstance(getattr(model, "classes_", 0), list):
            scoring = "accuracy"
        elif score is RegressorMixin.score:
            scoring = "r2"
    if not isinstance(scoring, str) or scoring not in _SCORES:
        return None
    if is_classifier(model) != (scoring in _OF_CLASSES):
        return None
    return _SCORES[scoring](model, y)


def _accuracy(model: Any, y: NDArray[Any]) -> Callable[[Any], Floats]:
    return lambda X: (np.asarray(model.predict(X)) == y).astype(np.float64)


def _log_loss(model: Any, y: NDArray[Any]) -> Callable[[Any], Floats] | None:
    if not hasattr(model, "predict_proba"):
        return None
    classes = np.asarray(model.classes_)
    places = np.searchsorted(classes, y)
    if not np.array_equal(classes[np.minimum(places, len(classes) - 1)], y):
        return None  # classes that the model does not know: the scorer's business
    rows = np.arange(len(y))

    def score(X: Any) -> Floats:
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        tiny = np.finfo(shares.dtype).eps
        shares = np.clip(shares, tiny, 1 - tiny)
        return np.log(shares[rows, places] / shares.sum(axis=1))

    return score


def _errors(
    model: Any, y: NDArray[Any], measure: Callable[[Floats], Floats]
) -> Callable[[Any], Floats]:
    numbers = np.asarray(y, dtype=np.float64)

    def score(X: Any) -> Floats:
        told = np.asarray(model.predict(X), dtype=np.float64)
        if told.ndim > 1 and told.shape[1:] != (1,):
            raise ValueError(f"model: expected one output, got {told.shape[1]}")
        return measure(numbers - told.reshape(-1))

    return score


def _r2(model: Any, y: NDArray[Any]) -> Callable[[Any], Floats] | None:
    numbers = np.asarray(y, dtype=np.float64)
    spread = float(np.mean((numbers - numbers.mean()) ** 2))
    if not spread > 0:
        return None
    return _errors(model, y, lambda error: 1 - error**2 / spread)


def _squares(model: Any, y: NDArray[Any]) -> Callable[[Any], Floats]:
    return _errors(model, y, lambda error: -(error**2))


def _absolutes(model: Any, y: NDArray[Any]) -> Callable[[Any], Floats]:
    return _errors(model, y, lambda error: -np.abs(error))


_ROOT = "neg_root_mean_squared_error"
_OF_CLASSES = ("accuracy", "neg_log_loss")
_SCORES: dict[str, Any] = {
    "accuracy": _accuracy,
    "neg_log_loss": _log_loss,
    "r2": _r2,
    "neg_mean_squared_error": _squares,
    _ROOT: _squares,
    "neg_mean_absolute_error": _absolutes,
}
