"""Scores that are means of per-row values, so that they have a standard error."""

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
    """A per-row scorer: the mean of its values over rows is the score.

    Parameters
    ----------
    model : estimator
        The model.
    response : {"labels", "shares", "numbers"}
        The output that is scored: predicted classes, class probabilities or numeric predictions.
    measure : callable
        Maps the response to the value of each row.
    root : bool, default=False
        Whether the score is minus the square root of minus the mean, not the mean itself.
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
        """Return the score for a mean over the rows."""
        return -math.sqrt(-mean) if self.root else mean

    def slope_at(self, mean: float) -> float:
        """Return the derivative of the score by the mean."""
        if not self.root:
            return 1.0
        return 0.5 / math.sqrt(-mean) if mean < 0 else 0.0  # no errors: no variance to propagate

    def from_outputs(self, outputs: Floats) -> Floats:
        """Return per-row values from class probabilities or numbers, (n_rows, n_outputs)."""
        if self.response == "numbers":
            return self.measure(outputs[:, 0])
        if self.response == "shares":
            return self.measure(outputs)
        return self.measure(np.asarray(self.model.classes_)[outputs.argmax(axis=1)])


def find_row_scores(
    model: Any, scoring: Any, y: NDArray[Any], weights: Floats | None = None
) -> RowScores | None:
    """Return a per-row scorer whose mean is the score, or None if there is none.

    With weights, the score is the weighted mean. None is returned if the score is not a mean over
    rows (such as the area under a curve), or not in the table of scores below. For several targets,
    errors and R² are means over the targets, and the accuracy is the share of rows in which all
    targets are right. This follows scikit-learn, which does not support the accuracy of several
    targets with more than two classes, however.
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
    """Return a function that scores a table with the targets y."""
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
            model.predict(X)  # if the model itself fails, its own error is raised
            raise ValueError(
                f"scoring: expected a score of {y.shape[1]} targets, got {scoring!r}: {error}"
            ) from error

    return score


def _in_target_shape(predicted: Any, y: NDArray[Any]) -> NDArray[Any]:
    """Return predictions in the shape of the targets."""
    predicted = np.asarray(predicted)
    n_outputs = math.prod(predicted.shape[1:])
    n_targets = math.prod(y.shape[1:])
    if n_outputs != n_targets:
        raise ValueError(
            f"model: expected an output for each target in y, {n_targets}, got {n_outputs}"
        )
    return predicted.reshape(y.shape)


def _accuracy(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores:
    def measure(predicted: Any) -> Floats:
        right = _in_target_shape(predicted, y) == y
        return right.reshape(len(y), -1).all(axis=1).astype(np.float64)

    return RowScores(model, "labels", measure)


def _log_loss(model: Any, y: NDArray[Any], weights: Any = None) -> RowScores | None:
    if not hasattr(model, "predict_proba") or isinstance(model.classes_, list) or y.ndim > 1:
        return None
    classes = np.asarray(model.classes_)
    codes = np.searchsorted(classes, y)
    if not np.array_equal(classes[np.minimum(codes, len(classes) - 1)], y):
        return None  # unknown classes: the scorer raises the error
    rows = np.arange(len(y))

    def measure(predicted: Any) -> Floats:
        shares = np.asarray(predicted, dtype=np.float64)
        tiny = np.finfo(shares.dtype).eps
        shares = np.clip(shares, tiny, 1 - tiny)
        return np.log(shares[rows, codes] / shares.sum(axis=1))

    return RowScores(model, "shares", measure)


def _errors(model: Any, y: NDArray[Any], score_errors: Callable[[Floats], Floats]) -> RowScores:
    """Return a scorer that maps the errors of a regressor to scores."""
    numbers = np.asarray(y, dtype=np.float64)

    def measure(predicted: Any) -> Floats:
        values = np.asarray(predicted, dtype=np.float64)
        scores = score_errors(numbers - _in_target_shape(values, numbers))
        return scores if scores.ndim == 1 else scores.mean(axis=1)

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
        return None  # the mean of one root per target is not a function of one mean over rows
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
