"""Metrics of the ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter
from spinney.data.notes import Note, NoteKind
from spinney.data.task import Task

__all__ = ["MEASURES", "Measure", "class_probabilities", "find_measure", "r_squared"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Measure:
    """A metric of predictions.

    Attributes
    ----------
    name, title : str
        The name as an argument, and the title in the head of tables.
    task : {"classification", "regression"} or None
        The task of the predictions; None for scikit-learn's scorers.
    greater_is_better : bool
        Whether a larger number is better.
    needs : {"predictions", "probabilities", "model"}
        The other arguments of `calculate`: predictions; probabilities (rows × classes) and the
        classes; or, for a scorer, the model and X.
    calculate : callable
        Returns the metric.
    percent : bool
        Whether it is printed in percent.
    note : Note or None
        A note for the result.
    """

    name: str
    title: str
    task: Task | None
    greater_is_better: bool
    needs: Literal["predictions", "probabilities", "model"]
    calculate: Callable[..., float]
    percent: bool = False
    note: Note | None = None

    @property
    def sign(self) -> float:
        """The factor that turns the metric into a loss: −1 if greater is better."""
        return -1.0 if self.greater_is_better else 1.0

    def of(self, model: Any, X: Any, y: Array, classes: Array | None = None) -> float:
        """Calculate the metric of a fitted model on rows of a table."""
        if self.needs == "model":
            return float(self.calculate(model, X, y))
        if self.needs == "predictions":
            return float(self.calculate(y, np.asarray(model.predict(X)).reshape(len(y))))
        assert classes is not None
        return float(self.calculate(y, class_probabilities(model, X, classes), classes))


def class_probabilities(model: Any, X: Any, classes: Array) -> Array:
    """Return the probabilities of all `classes`; 0 for classes unseen in training."""
    predicted = np.asarray(model.predict_proba(X), dtype=np.float64)
    if len(model.classes_) == len(classes):
        return predicted
    all_classes = np.zeros((len(predicted), len(classes)))
    all_classes[:, np.searchsorted(classes, model.classes_)] = predicted
    return all_classes


def _error(y: Array, predicted: Array) -> float:
    return float(np.mean(predicted != y))


def _accuracy(y: Array, predicted: Array) -> float:
    return float(np.mean(predicted == y))


def _balanced_accuracy(y: Array, predicted: Array) -> float:
    correct = predicted == y
    return float(np.mean([correct[y == label].mean() for label in np.unique(y)]))


def _f1(y: Array, predicted: Array) -> float:
    # Imported late, for start-up time.
    from sklearn.metrics import f1_score

    return float(f1_score(y, predicted, average="macro", zero_division=0))


def _log_loss(y: Array, probabilities: Array, classes: Array) -> float:
    of_truth = probabilities[np.arange(len(y)), np.searchsorted(classes, y)]
    # A probability of 0 counts as the smallest step of single precision.
    return float(-np.log(np.maximum(of_truth, np.finfo(np.float32).eps)).mean())


def _brier(y: Array, probabilities: Array, classes: Array) -> float:
    truth = classes[None, :] == y[:, None]
    return float(((probabilities - truth) ** 2).sum(axis=1).mean())


def _over_classes(
    y: Array, probabilities: Array, classes: Array, area: Callable[..., float]
) -> float:
    """Average one-vs-rest areas over the classes; with two classes use the second only."""
    numbers = [1] if len(classes) == 2 else range(len(classes))
    areas = []
    for number in numbers:
        truth = y == classes[number]
        if truth.any() and not truth.all():
            areas.append(float(area(truth, probabilities[:, number])))
    return float(np.mean(areas)) if areas else float("nan")


def _roc_auc(y: Array, probabilities: Array, classes: Array) -> float:
    # Imported late, for start-up time.
    from sklearn.metrics import roc_auc_score

    return _over_classes(y, probabilities, classes, roc_auc_score)


def _average_precision(y: Array, probabilities: Array, classes: Array) -> float:
    # Imported late, for start-up time.
    from sklearn.metrics import average_precision_score

    return _over_classes(y, probabilities, classes, average_precision_score)


def _rmse(y: Array, predicted: Array) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def _mae(y: Array, predicted: Array) -> float:
    return float(np.mean(np.abs(predicted - y)))


def _median_absolute_error(y: Array, predicted: Array) -> float:
    return float(np.median(np.abs(predicted - y)))


def _mape(y: Array, predicted: Array) -> float:
    return float(np.mean(np.abs(predicted - y) / np.maximum(np.abs(y), np.finfo(float).eps)))


def r_squared(y: Array, predicted: Array) -> float:
    """Return the share of explained variance (R²); NaN if the target is constant."""
    spread = np.mean((y - y.mean()) ** 2)
    return float(1 - np.mean((predicted - y) ** 2) / spread) if spread > 0 else float("nan")


def _class_metric(name: str, title: str, greater: bool, calculate: Any, **more: Any) -> Measure:
    return Measure(name, title, "classification", greater, "predictions", calculate, **more)


def _probability_metric(name: str, title: str, greater: bool, calculate: Any) -> Measure:
    return Measure(name, title, "classification", greater, "probabilities", calculate)


def _regression_metric(
    name: str, title: str, greater: bool, calculate: Any, **more: Any
) -> Measure:
    return Measure(name, title, "regression", greater, "predictions", calculate, **more)


MEASURES: tuple[Measure, ...] = (
    _class_metric("error", "error %", False, _error, percent=True),
    _class_metric("accuracy", "accuracy %", True, _accuracy, percent=True),
    _class_metric("balanced_accuracy", "balanced acc. %", True, _balanced_accuracy, percent=True),
    _class_metric("f1", "F1 (macro)", True, _f1),
    _probability_metric("log_loss", "log loss", False, _log_loss),
    _probability_metric("brier", "Brier score", False, _brier),
    _probability_metric("roc_auc", "ROC AUC", True, _roc_auc),
    _probability_metric("average_precision", "avg. precision", True, _average_precision),
    _regression_metric("rmse", "RMSE", False, _rmse),
    _regression_metric("mae", "MAE", False, _mae),
    _regression_metric("median_absolute_error", "median AE", False, _median_absolute_error),
    _regression_metric("mape", "MAPE %", False, _mape, percent=True),
    _regression_metric("r2", "R²", True, r_squared),
)


# scikit-learn's scores of the positive one of two classes.
_BINARY_SCORES = {
    "precision": "precision_score",
    "recall": "recall_score",
    "jaccard": "jaccard_score",
}


def find_measure(
    task: Task, scoring: str | Callable[..., float] | None, classes: Array | None = None
) -> Measure:
    """Return the metric of this name, or of a scorer; None is the task's default."""
    ours = [measure for measure in MEASURES if measure.task == task]
    if scoring is None:
        return ours[0]
    for measure in MEASURES:
        if measure.name != scoring:
            continue
        if measure.task != task:
            raise _wrong_task(measure.name, measure.task, task)
        return measure
    if isinstance(scoring, str):
        # Imported late, for start-up time.
        from sklearn.metrics import get_scorer, get_scorer_names

        known = [m.name for m in ours]
        if scoring not in get_scorer_names():
            close = get_close_matches(scoring, [*known, *get_scorer_names()], n=1)
            hint = (
                f"did you mean {close[0]!r}?" if close else f"expected one of: {', '.join(known)}"
            )
            raise ParameterError(Parameter("scoring"), f" has no {scoring!r}; {hint}")
        scorer = get_scorer(scoring)
        if _task_of(scorer) not in (None, task):
            raise _wrong_task(scoring, _task_of(scorer), task)
        if scoring in _BINARY_SCORES and classes is not None:
            return _binary_metric(scoring, classes)
        return Measure(scoring, scoring, None, True, "model", scorer)
    if not callable(scoring):
        raise ParameterError(
            Parameter("scoring"), f" must be a name or a callable, got {scoring!r}"
        )
    name = getattr(scoring, "__name__", "score")
    return Measure(name, name, None, True, "model", scoring)


def _wrong_task(name: str, its_task: Task | None, task: Task) -> ParameterError:
    ours = ", ".join(measure.name for measure in MEASURES if measure.task == task)
    return ParameterError(
        Parameter("scoring", name),
        f" is for {its_task}, and this is {task}; expected one of: {ours}",
    )


def _task_of(scorer: Any) -> Task | None:
    """Return the task of a scikit-learn scorer, by the module of its function."""
    module = str(getattr(getattr(scorer, "_score_func", None), "__module__", ""))
    if module.endswith("._regression"):
        return "regression"
    return "classification" if module.endswith(("._classification", "._ranking")) else None


def _binary_metric(name: str, classes: Array) -> Measure:
    # Imported late, for start-up time.
    import sklearn.metrics

    if len(classes) != 2:
        raise ParameterError(
            Parameter("scoring", name),
            f" is for two classes, and the target has {len(classes):,}; "
            f"use {name + '_macro'!r} (the mean over the classes) or {name + '_weighted'!r}",
        )
    score = getattr(sklearn.metrics, _BINARY_SCORES[name])

    def calculate(y: Array, predicted: Array) -> float:
        return float(score(y, predicted, pos_label=classes[1], zero_division=0))

    note = Note(f"{name} is that of class {str(classes[1])!r}", kind=NoteKind.MEASURE)
    return Measure(name, name, "classification", True, "predictions", calculate, note=note)
