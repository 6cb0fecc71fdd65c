"""Sampled Shapley values of any estimator, by antithetic permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state, get_tags

from spinney.inspection.shap.trees import Parts
from spinney.inspection.table_view import TableView, stacked

__all__ = ["explain_by_sampling"]

Floats = NDArray[np.float64]
_MOST_ROWS = 100_000  # handed to the model at once
_NUMBER_PARTS = ("clusterer", "density_estimator")  # their predictions are names, not amounts


def explain_by_sampling(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_permutations: int,
    max_background: int,
    random_state: Any,
) -> Parts:
    """Explain what an estimator predicts by exchanging values with background rows.

    Each row goes from each background row to itself, column after column in a random order, and
    once more in the opposite order: what the prediction changes by when a column's turn comes is
    that column's. The mean of the two ways is one draw. Every way leads all the way, so that the
    parts add up whatever the number of draws.
    """
    random = check_random_state(random_state)
    table, n_rows, others = stacked(X, background)
    if len(others) > max_background:
        others = np.sort(random.choice(others, max_background, replace=False))
    view = TableView(table, model)
    predict, output, names = _output(model)

    def answers(rows: Any, changes: dict[int, Any]) -> Floats:
        told = np.asarray(predict(view.make(rows, changes)), dtype=np.float64)
        return told.reshape(len(told), -1)

    every_other = answers(others, {})
    n_columns, n_outputs = view.n_columns, every_other.shape[1]
    total = np.zeros((n_rows, n_columns, n_outputs))
    squares = np.zeros_like(total)
    per_row = max(2 * (n_columns - 1), 1)
    size = max(1, _MOST_ROWS // per_row)
    n_draws = n_permutations * len(others)
    for first in range(0, n_rows, size):
        rows = np.arange(first, min(first + size, n_rows))
        own = answers(rows, {})
        for draw in range(n_draws):
            other = others[draw % len(others)]
            start = every_other[draw % len(others)]
            rank = random.random_sample((len(rows), n_columns)).argsort(axis=1)
            parts = _two_ways(answers, rows, other, rank, start, own)
            total[rows] += parts
            squares[rows] += parts**2
    values = total / n_draws
    variance = np.maximum(squares / n_draws - values**2, 0.0) / max(n_draws - 1, 1)
    errors = np.sqrt(variance) if n_draws > 1 else np.full_like(values, np.nan)
    method = f"sampling, {n_draws} antithetic permutations"
    return Parts(values, every_other.mean(axis=0), output, names, method, errors)


def _two_ways(answers: Any, rows: Any, other: Any, rank: Any, start: Floats, own: Floats) -> Floats:
    """Return what each column changes when its turn comes, the mean of both directions."""
    n, n_columns = rank.shape
    steps = np.arange(1, n_columns)
    known = np.concatenate(  # [row][step, there and back][column]: which are the row's own
        [
            rank[:, np.newaxis] < steps[:, np.newaxis],
            rank[:, np.newaxis] >= n_columns - steps[:, np.newaxis],
        ],
        axis=1,
    )
    told = np.empty((n, 2, n_columns + 1, start.shape[0]))
    told[:, :, 0] = start
    told[:, :, -1] = own[:, np.newaxis]
    if n_columns > 1:
        repeated = np.repeat(rows, 2 * (n_columns - 1))
        flat = known.reshape(-1, n_columns)
        changes = {j: np.where(flat[:, j], repeated, other) for j in range(n_columns)}
        told[:, :, 1:-1] = answers(repeated, changes).reshape(n, 2, n_columns - 1, -1)
    change = np.diff(told, axis=2)
    there = np.take_along_axis(change[:, 0], rank[:, :, np.newaxis], axis=1)
    back = np.take_along_axis(change[:, 1], (n_columns - 1 - rank)[:, :, np.newaxis], axis=1)
    return (there + back) / 2


def _output(model: Any) -> tuple[Any, str, list[str] | None]:
    """Return the function that is explained, what it gives, and the names of its outputs."""
    if hasattr(model, "__sklearn_tags__") and is_classifier(model):
        classes = getattr(model, "classes_", None)
        several = isinstance(classes, list)
        names = None if classes is None or several else [str(c) for c in classes]
        if hasattr(model, "predict_proba") and not several:
            return model.predict_proba, "probability", names
        if hasattr(model, "decision_function"):
            two = names is not None and len(names) == 2
            return model.decision_function, "decision function", None if two else names
        raise TypeError(
            f"model: expected a classifier with predict_proba or decision_function, for one "
            f"column of classes, got {type(model).__name__}"
        )
    if isinstance(model, BaseEstimator) and get_tags(model).estimator_type in _NUMBER_PARTS:
        raise TypeError(
            f"model: expected a classifier, a regressor or a function, got {type(model).__name__}, "
            "which predicts the number of a part; a function of rows, such as its score_samples, "
            "can be explained"
        )
    if hasattr(model, "predict"):
        return model.predict, "prediction", None
    if callable(model):
        return model, "prediction", None
    raise TypeError(f"model: expected a fitted estimator or a function, got {type(model).__name__}")
