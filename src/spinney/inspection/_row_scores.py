"""Scores from means over rows: what each row adds, so that the score has a standard error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, is_classifier
from sklearn.metrics import check_scoring
from sklearn.neighbors import KNeighborsClassifier

__all__ = ["RowScores", "find_row_scores", "find_score"]

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
        """Take probabilities of all classes, or numbers, of a model of one target, (n_rows, …)."""
        if self.response == "numbers":
            return self.measure(outputs[:, 0])
        if self.response == "shares":
            return self.measure(outputs)
        return self.measure(np.asarray(self.model.classes_)[outputs.argmax(axis=1)])


def find_row_scores(
    model: Any, scoring: Any, y: NDArray[Any], weights: Floats | None = None
) -> RowScores | None:
    """Return what tells what each row adds to the score, of whose mean the score is made.

    With weights the mean is a weighted one.

    None where the score is no mean over rows (the area under a curve, say), or not one of those
    that are known here. Of several targets, errors and R² are means over them, and the accuracy is
    the share of rows in which all are right: as scikit-learn has them, which has no accuracy
    of several targets of more than two classes each, though.
    """
    if scoring is None:
        score = getattr(type(model), "score", None)
        if score in (ClassifierMixin.score, KNeighborsClassifier.score):
            scoring = "accuracy"
        elif score is RegressorMixin.score:
            scoring = "r2"
    if not isinstance(scoring, str) or scoring not in _SCORES:
        return None
    if is_classifier(model) != (scoring in _OF_CLASSES):
        return None
    found: RowScores | None = _SCORES[scoring](model, y, weights)
    return found


def find_score(
    model: Any, scoring: Any, y: NDArray[Any], weights: Floats | None = None
) -> Callable[[Any], float]:
    """Return what scores a table whose targets are y, by any score."""
    by_rows = find_row_scores(model, scoring, y, weights) if y.ndim > 1 else None
    if by_rows is not None:
        known = by_rows
        return lambda X: known.of_mean(float(np.average(known(X), weights=weights)))
    if isinstance(scoring, list | tuple | set | dict):
        raise ValueError(f"scoring: expected one score, got {scoring!r}")
    scorer = check_scoring(model, scoring=scoring)
    more = {} if weights is None else {"sample_weight": weights}

    def score(X: Any) -> float:
        try:
            return float(scorer(model, X, y, **more))
        except (AttributeError, TypeError, ValueError) as error:
            if y.ndim == 1:
                raise
            model.predict(X)  # what the model refuses is not for the score to explain
            raise ValueError(
                f"scoring: expected a score of {y.shape[1]} targets, got {scoring!r}: {error}"
            ) from error

    return score


def _same_shape(told: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return predictions in the shape of the targets."""
    told = np.asarray(told)
    n_outputs = math.prod(told.shape[1:])
    n_targets = math.prod(y.shape[1:])
    if n_outputs != n_targets:
        raise ValueError(
            f"model: expected an output for each target in y, {n_targets}, got {n_outputs}"
        )
    return told.reshape(y.shape)


def _accuracy(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores:
    def measure(told: Any) -> Floats:
        right = _same_shape(told, y) == y
        return right.reshape(len(y), -1).all(axis=1).astype(np.float64)

    return RowScores(model, "labels", measure)


def _log_loss(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores | None:
    if not hasattr(model, "predict_proba") or isinstance(model.classes_, list) or y.ndim > 1:
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
        judged = judge(numbers - _same_shape(told, numbers))
        return judged if judged.ndim == 1 else judged.mean(axis=1)

    return RowScores(model, "numbers", measure)


def _r2(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores | None:
    numbers = np.asarray(y, dtype=np.float64)
    middle = np.average(numbers, axis=0, weights=weights)
    spread = np.average((numbers - middle) ** 2, axis=0, weights=weights)
    if not np.all(spread > 0):
        return None
    return _errors(model, y, lambda error: 1 - error**2 / spread)


def _squares(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores:
    return _errors(model, y, lambda error: -(error**2))


def _root_of_squares(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores | None:
    if y.ndim > 1:
        return None  # a mean of a root for each target, of which no row knows its part
    return replace(_squares(model, y), root=True)


def _absolutes(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores:
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
