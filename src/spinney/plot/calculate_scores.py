"""Evaluation of classifiers: rates, calibration, confusion matrix, margins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    auc,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    precision_recall_curve,
    roc_curve,
)
from sklearn.utils.validation import check_is_fitted

from spinney.inspection.table_view import as_vector

__all__ = [
    "Calibration",
    "Confusion",
    "ModelScores",
    "Rates",
    "calculate_calibration",
    "calculate_confusion",
    "calculate_margins",
    "calculate_precision_recall",
    "calculate_roc",
    "read_scores",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ModelScores:
    """The class scores that one model predicts for the rows.

    Attributes
    ----------
    name : str
        The model.
    classes : ndarray
        The classes.
    scores : ndarray of shape (n_rows, n_classes)
        A score for each class: probabilities, or the values of `decision_function`.
    is_probability : bool
        Whether the scores are probabilities.
    """

    name: str
    classes: NDArray[Any]
    scores: Floats
    is_probability: bool


def read_scores(
    models: Any, X: Any, y: Any, parameter: str = "models"
) -> tuple[list[ModelScores], Any]:
    """Return the scores that models predict for rows, or read scores from arrays.

    Parameters
    ----------
    models : classifier, array of scores, or dict of name to either
        Fitted classifiers, or scores of shape (n_rows,) for the second of two classes, or of
        shape (n_rows, n_classes).
    X : table or None
        The rows; not needed for arrays of scores.
    y : array-like of shape (n_rows,)
        The true classes.
    parameter : str, default="models"
        The name of `models` in errors.

    Returns
    -------
    (list of ModelScores, ndarray)
        The scores of each model, and y as an array.
    """
    if y is None:
        raise ValueError("y: expected the true classes, got None")
    y = as_vector(y)
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise ValueError(f"{parameter}: expected one or more models, got an empty dict")
    return [_read(str(name), model, X, y, parameter) for name, model in named.items()], y


def _read(name: str, model: Any, X: Any, y: NDArray[Any], parameter: str) -> ModelScores:
    """Return the scores of a fitted classifier, or of an array of scores."""
    if not hasattr(model, "predict"):
        return _from_array(name, np.asarray(model), y, parameter)
    check_is_fitted(model)
    if X is None:
        raise ValueError(f"X: expected rows for {type(model).__name__} to predict, got None")
    if not hasattr(model, "classes_"):
        raise ValueError(f"{parameter}: expected a classifier, got {type(model).__name__}")
    if isinstance(model.classes_, list):
        raise ValueError(f"{parameter}: expected one output, got {len(model.classes_)}")
    classes = np.asarray(model.classes_)
    is_probability = hasattr(model, "predict_proba")
    if is_probability:
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
    else:
        raise ValueError(
            f"{parameter}: expected a classifier with predict_proba or decision_function, "
            f"{type(model).__name__} has neither"
        )
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    if len(scores) != len(y):
        raise ValueError(f"y: expected {len(scores)} values, one for each row of X, got {len(y)}")
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y: expected classes of the model, got {unknown.tolist()[0]!r}")
    return ModelScores(name, classes, scores, is_probability)


def _from_array(name: str, scores: NDArray[Any], y: NDArray[Any], parameter: str) -> ModelScores:
    """Return scores given as an array; the classes are those of y."""
    classes = np.unique(y)
    if scores.dtype.kind not in "biuf" or scores.ndim not in (1, 2):
        raise TypeError(
            f"{parameter}: expected fitted classifiers or arrays of scores, got {scores.dtype} "
            f"of shape {scores.shape}"
        )
    scores = scores.astype(np.float64)
    if len(scores) != len(y):
        raise ValueError(
            f"{parameter}: expected {len(y)} scores, one for each y, got {len(scores)}"
        )
    if np.isnan(scores).any():
        raise ValueError(f"{parameter}: expected scores without NaN, got some NaN")
    is_probability = bool((scores >= 0).all() and (scores <= 1).all())
    if scores.ndim == 1:
        if len(classes) > 2:
            raise ValueError(
                f"{parameter}: expected scores of shape ({len(y)}, {len(classes)}), a column for "
                f"each class, got {scores.shape}"
            )
        other = 1 - scores if is_probability else -scores
        if len(classes) == 1:
            if classes[0] not in (0, 1):  # unknown which of the two classes it is
                raise ValueError(f"y: expected two classes, got only {classes.tolist()[0]!r}")
            classes = np.array([0, 1])
        scores = np.stack([other, scores], axis=1)
    if scores.shape[1] != len(classes):
        raise ValueError(
            f"{parameter}: expected {len(classes)} columns, one for each class of y, "
            f"got {scores.shape[1]}"
        )
    return ModelScores(name, classes, scores, is_probability)


def positive_class(scored: ModelScores, positive: Any) -> int | None:
    """Return the index of the positive class, or None for several classes."""
    if positive is not None:
        found = np.flatnonzero(scored.classes == positive)
        if len(found) == 0:
            raise ValueError(
                f"positive: expected one of the classes {scored.classes.tolist()[:8]}, "
                f"got {positive!r}"
            )
        return int(found[0])
    return len(scored.classes) - 1 if len(scored.classes) <= 2 else None


@dataclass(frozen=True)
class Rates:
    """A ROC curve or a precision–recall curve.

    Attributes
    ----------
    name : str
        The model or the class.
    across, up : ndarray
        False and true positive rates, or recall and precision.
    area : float
        Area under the curve, or average precision.
    share : float
        The share of the rows that belong to the class.
    members : list of Rates
        For several classes, the curve of each class; this curve is their mean.
    """

    name: str
    across: Floats
    up: Floats
    area: float
    share: float
    members: list[Rates] = field(default_factory=list)


def calculate_roc(scored: ModelScores, y: NDArray[Any], positive: Any = None) -> Rates:
    """Return the true and false positive rates at all thresholds."""

    def one(name: str, right: NDArray[np.bool_], scores: Floats) -> Rates:
        across, up, _ = roc_curve(right, scores)
        return Rates(name, across, up, float(auc(across, up)), float(right.mean()))

    def at(positions: Floats, curve: Rates) -> Floats:
        # Heights before and after a jump of the curve: (n_positions, 2).
        low = np.searchsorted(curve.across, positions, side="left")
        high = np.searchsorted(curve.across, positions, side="right") - 1
        between = np.interp(positions, curve.across, curve.up)
        on_it = curve.across[np.minimum(low, len(curve.across) - 1)] == positions
        return np.stack(
            [np.where(on_it, curve.up[low], between), np.where(on_it, curve.up[high], between)], 1
        )

    return _rates(scored, y, positive, one, at)


def calculate_precision_recall(scored: ModelScores, y: NDArray[Any], positive: Any = None) -> Rates:
    """Return precision and recall at all thresholds."""

    def one(name: str, right: NDArray[np.bool_], scores: Floats) -> Rates:
        up, across, _ = precision_recall_curve(right, scores)
        area = float(average_precision_score(right, scores))
        return Rates(name, across[::-1], up[::-1], area, float(right.mean()))

    def at(positions: Floats, curve: Rates) -> Floats:
        # Precision is a step function of recall: that of the first threshold with this recall.
        return curve.up[np.searchsorted(curve.across, positions, side="left")][:, None]

    return _rates(scored, y, positive, one, at)


def _rates(scored: ModelScores, y: NDArray[Any], positive: Any, one: Any, at: Any) -> Rates:
    """Return the curve of one class, or the mean of the curves of all classes.

    Parameters
    ----------
    scored : ModelScores
        The scores.
    y : ndarray
        The true classes.
    positive : object
        The positive class, or None.
    one : callable
        ``one(name, right, scores)`` returns the curve of one class.
    at : callable
        ``at(positions, curve)`` returns heights of a curve, (n_positions, n_heights).
    """
    index = positive_class(scored, positive)
    if index is not None:
        right = y == scored.classes[index]
        _check_both_kinds(right, scored.classes[index])
        return one(scored.name, right, scored.scores[:, index])
    members = []
    for c, label in enumerate(scored.classes):
        right = y == label
        if 0 < right.sum() < len(right):  # the curve is undefined without rows of both kinds
            members.append(one(str(label), right, scored.scores[:, c]))
    if not members:
        _check_both_kinds(y == y[0], y[0])
    positions = np.unique(np.concatenate([member.across for member in members]))
    up = np.mean([at(positions, member) for member in members], axis=0)
    area = float(np.mean([member.area for member in members]))
    share = float(np.mean([member.share for member in members]))
    return Rates(scored.name, np.repeat(positions, up.shape[1]), up.ravel(), area, share, members)


def _check_both_kinds(right: NDArray[np.bool_], label: Any) -> None:
    """Raise an error unless there are rows of the class and other rows."""
    if right.all() or not right.any():
        has = "only rows of this class" if right.all() else "no rows of this class"
        raise ValueError(
            f"y: expected rows of class {np.asarray(label).tolist()!r} and other rows, got {has}"
        )


@dataclass(frozen=True)
class Calibration:
    """Predicted and observed shares in bins of the prediction.

    Attributes
    ----------
    name : str
        The model.
    predicted, observed : ndarray of shape (n_used_bins,)
        Mean predicted probability, and observed frequency of the event.
    low, high : ndarray of shape (n_used_bins,)
        95 % confidence interval of the observed frequency (Wilson).
    counts : ndarray of shape (n_used_bins,)
        The number of rows in each bin.
    brier : float
        Brier score: the mean squared difference of prediction and outcome.
    event : str
        The event whose probability is predicted.
    """

    name: str
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    counts: NDArray[np.intp]
    brier: float
    event: str


def calculate_calibration(
    scored: ModelScores,
    y: NDArray[Any],
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    positive: Any = None,
) -> Calibration:
    """Compare predicted probabilities with observed frequencies, in bins.

    With more than two classes and no `positive`, the event is that the predicted class is right.

    Parameters
    ----------
    scored : ModelScores
        Predicted probabilities.
    y : ndarray
        The true classes.
    n_bins : int, default=10
        The number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        Bins of equal width, or of equal numbers of rows.
    positive : object, default=None
        The class whose probability is compared.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins: expected a positive number, got {n_bins}")
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy: expected 'uniform' or 'quantile', got {strategy!r}")
    if not scored.is_probability:
        name = scored.name or "the model"
        raise ValueError(f"models: expected probabilities from 0 to 1, {name} returns other scores")
    index = positive_class(scored, positive)
    if index is None:
        probability = scored.scores.max(axis=1)
        right = scored.classes[scored.scores.argmax(axis=1)] == y
        event = "the predicted class"
    else:
        probability, right = scored.scores[:, index], y == scored.classes[index]
        event = f"class {scored.classes[index]}"
    probability = np.clip(probability, 0.0, 1.0)  # sums of shares may exceed 1 by a rounding error
    observed, predicted = calibration_curve(
        right.astype(int), probability, n_bins=n_bins, strategy=strategy, pos_label=1
    )
    counts = _bin_counts(probability, n_bins, strategy)
    low, high = _wilson(observed, counts)
    return Calibration(
        scored.name,
        predicted,
        observed,
        low,
        high,
        counts,
        float(brier_score_loss(right, probability, pos_label=True)),
        event,
    )


def _bin_counts(probability: Floats, n_bins: int, strategy: str) -> NDArray[np.intp]:
    """Return the sizes of the nonempty bins of scikit-learn's calibration_curve."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    edges = steps if strategy == "uniform" else np.percentile(probability, steps * 100)
    counts = np.bincount(np.searchsorted(edges[1:-1], probability), minlength=len(edges))
    return counts[counts > 0]


def _wilson(share: Floats, n: NDArray[np.intp], z: float = 1.959964) -> tuple[Floats, Floats]:
    """Return Wilson score intervals of shares of n rows."""
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix.

    Attributes
    ----------
    classes : list of str
        The classes.
    counts : ndarray of shape (n_classes, n_classes)
        The number of rows by true class (first axis) and predicted class.
    """

    classes: list[str]
    counts: NDArray[np.intp]

    @property
    def shares(self) -> Floats:
        """Counts over the number of rows of the true class (0 for a class without rows)."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.divide(self.counts, total, out=np.zeros(self.counts.shape), where=total > 0)


def calculate_confusion(model: Any, X: Any, y: Any) -> Confusion:
    """Return the confusion matrix of a classifier or of an array of predictions."""
    y = as_vector(y)
    if hasattr(model, "predict") and is_regressor(model):
        raise ValueError(
            f"model: expected a classifier, got {type(model).__name__}, which predicts numbers; "
            "use plot.residuals for regressors"
        )
    if hasattr(model, "predict"):
        check_is_fitted(model)
        if X is None:
            raise ValueError(f"X: expected rows for {type(model).__name__} to predict, got None")
        predicted = as_vector(model.predict(X), "model")
        classes = np.union1d(np.asarray(getattr(model, "classes_", predicted)), y)
    else:
        predicted = as_vector(model, "model")
        classes = np.union1d(predicted, y)
    if len(predicted) != len(y):
        raise ValueError(f"y: expected {len(predicted)} values, one for each row, got {len(y)}")
    counts = confusion_matrix(y, predicted, labels=classes)
    return Confusion([str(label) for label in classes], counts)


def calculate_margins(model: Any, X: Any, y: Any) -> Floats:
    """Return margins: the score of a row's class minus its best other score."""
    y = as_vector(y)
    if hasattr(model, "margins"):
        return np.asarray(model.margins(X, y), dtype=np.float64)
    (scored,), y = read_scores(model, X, y, "model")
    if len(scored.classes) < 2:
        return np.ones(len(y))
    rows, own = np.arange(len(y)), np.searchsorted(scored.classes, y)
    scores = scored.scores.copy()
    right = scores[rows, own]
    scores[rows, own] = -np.inf
    margin = right - scores.max(axis=1)
    # Decision functions for two classes return one number f; the margin is y f, not 2 y f.
    return margin / 2 if not scored.is_probability and len(scored.classes) == 2 else margin
