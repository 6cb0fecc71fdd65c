"""Scores from means over rows: what each row adds, so that the score has a standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier

__all__ = ["RowScores", "find_row_scores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RowScores:
    """What each row adds to a score.

    Parameters
    ----------
    model : estimator
        The model.
    response : {"labels", "shares", "numbers"}
        What is judged: predicted classes, their probabilities or numbers.
    measure : callable
        From the response to what each row adds.
    root : bool
        Whether the score is a root of the mean of what rows add, not that mean itself.
    """

    model: Any
    response: str
    measure: Callable[[Any], Floats]
    root: bool = False

    def __call__(self, X: Any) -> Floats:
        if self.response == "shares":
            return self.measure(self.model.predict_proba(X))
        return self.measure(self.model.predict(X))

    def of_mean(self, mean: float) -> float:
        """Return the score whose rows add `mean` on average."""
        return -math.sqrt(-mean) if self.root else mean

    def slope_at(self, mean: float) -> float:
        """Return by how much the score changes with the mean."""
        if not self.root:
            return 1.0
        return 0.5 / math.sqrt(-mean) if mean < 0 else 0.0  # without an error none spreads

    def from_outputs(self, outputs: Floats) -> Floats:
        """Take probabilities of all classes, or numbers, (n_rows, n_outputs), of a model."""
        if self.response == "numbers":
            return self.measure(outputs[:, 0])
        if self.response == "shares":
            return self.measure(outputs)
        return self.measure(np.asarray(self.model.classes_)[outputs.argmax(axis=1)])


def find_row_scores(model: Any, scoring: Any, y: NDArray[Any]) -> RowScores | None:
    """Return what tells what each row adds to the score, of whose mean the score is made.

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


def _accuracy(model: Any, y: NDArray[Any]) -> RowScores:
    return RowScores(model, "labels", lambda told: (np.asarray(told) == y).astype(np.float64))


def _log_loss(model: Any, y: NDArray[Any]) -> RowScores | None:
    if not hasattr(model, "predict_proba"):
        return None
    classes = np.asarray(model.classes_)
    places = np.searchsorted(classes, y)
    if not np.array_equal(classes[np.minimum(places, len(classes) - 1)], y):
        return None  # classes that the model does not know: the scorer's business
    rows = np.arange(len(y))

    def measure(told: Any) -> Floats:
        shares = np.asarray(told, dtype=np.float64)
        tiny = np.finfo(shares.dtype).eps
        shares = np.clip(shares, tiny, 1 - tiny)
        return np.log(shares[rows, places] / shares.sum(axis=1))

    return RowScores(model, "shares", measure)


def _errors(model: Any, y: NDArray[Any], judge: Callable[[Floats], Floats]) -> RowScores:
    numbers = np.asarray(y, dtype=np.float64)

    def measure(predicted: Any) -> Floats:
        told = np.asarray(predicted, dtype=np.float64)
        if told.ndim > 1 and told.shape[1:] != (1,):
            raise ValueError(f"model: expected one output, got {told.shape[1]}")
        return judge(numbers - told.reshape(-1))

    return RowScores(model, "numbers", measure)


def _r2(model: Any, y: NDArray[Any]) -> RowScores | None:
    numbers = np.asarray(y, dtype=np.float64)
    spread = float(np.mean((numbers - numbers.mean()) ** 2))
    if not spread > 0:
        return None
    return _errors(model, y, lambda error: 1 - error**2 / spread)


def _squares(model: Any, y: NDArray[Any]) -> RowScores:
    return _errors(model, y, lambda error: -(error**2))


def _root_of_squares(model: Any, y: NDArray[Any]) -> RowScores:
    return replace(_squares(model, y), root=True)


def _absolutes(model: Any, y: NDArray[Any]) -> RowScores:
    return _errors(model, y, lambda error: -np.abs(error))


_OF_CLASSES = ("accuracy", "neg_log_loss")
_SCORES: dict[str, Any] = {
    "accuracy": _accuracy,
    "neg_log_loss": _log_loss,
    "r2": _r2,
    "neg_mean_squared_error": _squares,
    "neg_root_mean_squared_error": _root_of_squares,
    "neg_mean_absolute_error": _absolutes,
}
