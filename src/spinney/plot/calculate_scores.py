"""What classifiers say next to what is true: rates, calibration, confusion, margins."""

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
    "Rates",
    "Told",
    "calculate_calibration",
    "calculate_confusion",
    "calculate_margins",
    "calculate_precision_recall",
    "calculate_roc",
    "read_told",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Told:
    """What one model says about the rows.

    Attributes
    ----------
    name : str
        The model.
    classes : ndarray
        The classes.
    scores : ndarray of shape (n_rows, n_classes)
        A score of each class: probabilities, or what `decision_function` gives.
    is_probability : bool
        Whether they are probabilities.
    """

    name: str
    classes: NDArray[Any]
    scores: Floats
    is_probability: bool


def read_told(models: Any, X: Any, y: Any, parameter: str = "models") -> tuple[list[Told], Any]:
    """Ask models about the rows, or take what they said.

    Parameters
    ----------
    models : classifier, array of scores, or dict of name to either
        Fitted classifiers, or scores of shape (n_rows,) for the second of two classes, or of
        shape (n_rows, n_classes).
    X : table or None
        The rows, for models.
    y : array-like of shape (n_rows,)
        The true classes.

    Returns
    -------
    (list of Told, ndarray)
        What each says, and y as an array.
    """
    if y is None:
        raise ValueError("y: expected the true classes, got None")
    y = as_vector(y)
    named = dict(models) if isinstance(models, Mapping) else {"": models}
    if not named:
        raise ValueError(f"{parameter}: expected one or more, got an empty dict")
    return [_read(str(name), model, X, y, parameter) for name, model in named.items()], y


def _read(name: str, model: Any, X: Any, y: NDArray[Any], parameter: str) -> Told:
    if not hasattr(model, "predict"):
        return _scores_as_told(name, np.asarray(model), y, parameter)
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
            f"{parameter}: expected predict_proba or decision_function, "
            f"{type(model).__name__} has neither"
        )
    if scores.ndim == 1:
        scores = np.stack([-scores, scores], axis=1)
    if len(scores) != len(y):
        raise ValueError(f"y: expected {len(scores)} values, one for each row of X, got {len(y)}")
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y: expected classes of the model, got {unknown.tolist()[0]!r}")
    return Told(name, classes, scores, is_probability)


def _scores_as_told(name: str, scores: NDArray[Any], y: NDArray[Any], parameter: str) -> Told:
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
        raise ValueError(f"{parameter}: expected scores without NaN")
    is_probability = bool((scores >= 0).all() and (scores <= 1).all())
    if scores.ndim == 1:
        if len(classes) > 2:
            raise ValueError(
                f"{parameter}: expected scores of shape ({len(y)}, {len(classes)}), a column for "
                f"each class, got {scores.shape}"
            )
        other = 1 - scores if is_probability else -scores
        if len(classes) == 1:
            if classes[0] not in (0, 1):  # which of the two it is cannot be told
                raise ValueError(f"y: expected two classes, got {classes.tolist()[0]!r} alone")
            classes = np.array([0, 1])
        scores = np.stack([other, scores], axis=1)
    if scores.shape[1] != len(classes):
        raise ValueError(
            f"{parameter}: expected {len(classes)} columns, one for each class of y, "
            f"got {scores.shape[1]}"
        )
    return Told(name, classes, scores, is_probability)


def positive_class(told: Told, positive: Any) -> int | None:
    """Return the place of the class to look at, None for all of several classes."""
    if positive is not None:
        found = np.flatnonzero(told.classes == positive)
        if len(found) == 0:
            raise ValueError(
                f"positive: expected one of the classes {told.classes.tolist()[:8]}, "
                f"got {positive!r}"
            )
        return int(found[0])
    return len(told.classes) - 1 if len(told.classes) <= 2 else None


@dataclass(frozen=True)
class Rates:
    """A curve of rates.

    Attributes
    ----------
    name : str
        The model or the class.
    across, up : ndarray
        False and true positive rate; or recall and precision.
    area : float
        Area under the curve; or average precision.
    share : float
        Share of the rows that are of the class.
    members : list of Rates
        For several classes those of each, of which this one is the mean.
    """

    name: str
    across: Floats
    up: Floats
    area: float
    share: float
    members: list[Rates] = field(default_factory=list)


def calculate_roc(told: Told, y: NDArray[Any], positive: Any = None) -> Rates:
    """True against false positive rate at all thresholds."""

    def one(name: str, right: NDArray[np.bool_], scores: Floats) -> Rates:
        across, up, _ = roc_curve(right, scores)
        return Rates(name, across, up, float(auc(across, up)), float(right.mean()))

    def at(places: Floats, curve: Rates) -> Floats:
        # Below a place where the curve jumps, and after the jump: (n_places, 2).
        low = np.searchsorted(curve.across, places, side="left")
        high = np.searchsorted(curve.across, places, side="right") - 1
        between = np.interp(places, curve.across, curve.up)
        on_it = curve.across[np.minimum(low, len(curve.across) - 1)] == places
        return np.stack(
            [np.where(on_it, curve.up[low], between), np.where(on_it, curve.up[high], between)], 1
        )

    return _rates(told, y, positive, one, at)


def calculate_precision_recall(told: Told, y: NDArray[Any], positive: Any = None) -> Rates:
    """Precision against recall at all thresholds."""

    def one(name: str, right: NDArray[np.bool_], scores: Floats) -> Rates:
        up, across, _ = precision_recall_curve(right, scores)
        area = float(average_precision_score(right, scores))
        return Rates(name, across[::-1], up[::-1], area, float(right.mean()))

    def at(places: Floats, curve: Rates) -> Floats:
        # Precision is a step function of recall: that of the first threshold which reaches it.
        return curve.up[np.searchsorted(curve.across, places, side="left")][:, None]

    return _rates(told, y, positive, one, at)


def _rates(told: Told, y: NDArray[Any], positive: Any, one: Any, at: Any) -> Rates:
    """The curve of one class (`one` makes it), or the mean of all (`at` tells heights)."""
    place = positive_class(told, positive)
    if place is not None:
        right = y == told.classes[place]
        _both_kinds(right, told.classes[place])
        return one(told.name, right, told.scores[:, place])
    members = []
    for c, label in enumerate(told.classes):
        right = y == label
        if 0 < right.sum() < len(right):  # of a class without rows there is nothing to tell
            members.append(one(str(label), right, told.scores[:, c]))
    if not members:
        _both_kinds(y == y[0], y[0])
    places = np.unique(np.concatenate([member.across for member in members]))
    up = np.mean([at(places, member) for member in members], axis=0)
    area = float(np.mean([member.area for member in members]))
    share = float(np.mean([member.share for member in members]))
    return Rates(told.name, np.repeat(places, up.shape[1]), up.ravel(), area, share, members)


def _both_kinds(right: NDArray[np.bool_], label: Any) -> None:
    if right.all() or not right.any():
        has = "no other ones" if right.all() else "none"
        raise ValueError(
            f"y: expected rows of class {np.asarray(label).tolist()!r} and others, got {has}"
        )


@dataclass(frozen=True)
class Calibration:
    """Predicted and observed shares in bins of the prediction.

    Attributes
    ----------
    name : str
        The model.
    predicted, observed : ndarray of shape (n_used_bins,)
        Mean prediction, and how often it came true.
    low, high : ndarray of shape (n_used_bins,)
        95 % interval of the observed share (Wilson's).
    counts : ndarray of shape (n_used_bins,)
        Rows in each bin.
    brier : float
        Mean squared difference of prediction and outcome.
    event : str
        What the probability is of.
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
    told: Told,
    y: NDArray[Any],
    *,
    n_bins: int = 10,
    strategy: str = "uniform",
    positive: Any = None,
) -> Calibration:
    """Compare predicted probabilities with how often they come true.

    With several classes and no `positive`, the probability is that of the class predicted, and it
    comes true if the prediction is right.
    """
    if n_bins < 1:
        raise ValueError(f"n_bins: expected a positive number, got {n_bins}")
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy: expected 'uniform' or 'quantile', got {strategy!r}")
    if not told.is_probability:
        name = told.name or "the model"
        raise ValueError(f"models: expected probabilities from 0 to 1, {name} gives other scores")
    place = positive_class(told, positive)
    if place is None:
        chance = told.scores.max(axis=1)
        right = told.classes[told.scores.argmax(axis=1)] == y
        event = "the predicted class"
    else:
        chance, right = told.scores[:, place], y == told.classes[place]
        event = f"class {told.classes[place]}"
    chance = np.clip(chance, 0.0, 1.0)  # sums of shares may miss 1 by a rounding error
    observed, predicted = calibration_curve(
        right.astype(int), chance, n_bins=n_bins, strategy=strategy, pos_label=1
    )
    counts = _bin_counts(chance, n_bins, strategy)
    low, high = _wilson(observed, counts)
    return Calibration(
        told.name,
        predicted,
        observed,
        low,
        high,
        counts,
        float(brier_score_loss(right, chance, pos_label=True)),
        event,
    )


def _bin_counts(chance: Floats, n_bins: int, strategy: str) -> NDArray[np.intp]:
    """Return the sizes of the bins of scikit-learn's calibration_curve, without empty ones."""
    steps = np.linspace(0.0, 1.0, n_bins + 1)
    edges = steps if strategy == "uniform" else np.percentile(chance, steps * 100)
    counts = np.bincount(np.searchsorted(edges[1:-1], chance), minlength=len(edges))
    return counts[counts > 0]


def _wilson(share: Floats, n: NDArray[np.intp], z: float = 1.959964) -> tuple[Floats, Floats]:
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


@dataclass(frozen=True)
class Confusion:
    """How many rows of each class are taken for which.

    Attributes
    ----------
    classes : list of str
        The classes.
    counts : ndarray of shape (n_classes, n_classes)
        Rows by true class (first axis) and predicted one.
    """

    classes: list[str]
    counts: NDArray[np.intp]

    @property
    def shares(self) -> Floats:
        """Counts over the number of rows of the true class (0 for a class without rows)."""
        total = self.counts.sum(axis=1, keepdims=True)
        return np.divide(self.counts, total, out=np.zeros(self.counts.shape), where=total > 0)


def calculate_confusion(model: Any, X: Any, y: Any) -> Confusion:
    """Count the rows of each class by predicted class; `model` may be the predictions."""
    y = as_vector(y)
    if hasattr(model, "predict") and is_regressor(model):
        raise ValueError(
            f"model: expected a classifier, got {type(model).__name__}, which predicts numbers; "
            "plot.residuals shows how far they are off"
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
    """How clearly each row gets its own class: score of that one less the best of the others."""
    y = as_vector(y)
    if hasattr(model, "margins"):
        return np.asarray(model.margins(X, y), dtype=np.float64)
    (told,), y = read_told(model, X, y, "model")
    if len(told.classes) < 2:
        return np.ones(len(y))
    rows, own = np.arange(len(y)), np.searchsorted(told.classes, y)
    scores = told.scores.copy()
    right = scores[rows, own]
    scores[rows, own] = -np.inf
    margin = right - scores.max(axis=1)
    # Of two classes decision functions give one number f, and the margin is y f, not 2 y f.
    return margin / 2 if not told.is_probability and len(told.classes) == 2 else margin
