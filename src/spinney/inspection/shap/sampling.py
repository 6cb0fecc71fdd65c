"""Sampled Shapley values of any estimator, by antithetic permutations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils import check_random_state, get_tags

from spinney.inspection.shap.trees import ShapResult
from spinney.inspection.table_view import TableView, stacked

__all__ = ["explain_by_sampling"]

Floats = NDArray[np.float64]
_MOST_ROWS = 100_000  # maximum number of rows in one call of the model
_PART_NUMBERS = ("clusterer", "density_estimator")  # they predict labels, not amounts


def explain_by_sampling(
    model: Any,
    X: Any,
    background: Any,
    *,
    n_permutations: int,
    max_background: int,
    random_state: Any,
) -> ShapResult:
    """Return sampled Shapley values, by replacing values of background rows.

    Starting from a background row, the columns are set to the row's values one after another, in a
    random order and in the reversed order. The change of the prediction at a step belongs to the
    step's column. The mean of both orders is one draw. Every order ends at the row itself, so the
    values always add up to the prediction, for any number of draws.
    """
    random = check_random_state(random_state)
    table, n_rows, others = stacked(X, background)
    if len(others) > max_background:
        others = np.sort(random.choice(others, max_background, replace=False))
    view = TableView(table, model)
    predict, output, names = _output(model)

    def outputs_of(rows: Any, changes: dict[int, Any]) -> Floats:
        predicted = np.asarray(predict(view.make(rows, changes)), dtype=np.float64)
        return predicted.reshape(len(predicted), -1)

    of_background = outputs_of(others, {})
    n_columns, n_outputs = view.n_columns, of_background.shape[1]
    total = np.zeros((n_rows, n_columns, n_outputs))
    squares = np.zeros_like(total)
    per_row = max(2 * (n_columns - 1), 1)
    size = max(1, _MOST_ROWS // per_row)
    n_draws = n_permutations * len(others)
    for first in range(0, n_rows, size):
        rows = np.arange(first, min(first + size, n_rows))
        own = outputs_of(rows, {})
        for draw in range(n_draws):
            other = others[draw % len(others)]
            start = of_background[draw % len(others)]
            rank = random.random_sample((len(rows), n_columns)).argsort(axis=1)
            changes = _changes_by_column(outputs_of, rows, other, rank, start=start, own=own)
            total[rows] += changes
            squares[rows] += changes**2
    values = total / n_draws
    variance = np.maximum(squares / n_draws - values**2, 0.0) / max(n_draws - 1, 1)
    errors = np.sqrt(variance) if n_draws > 1 else np.full_like(values, np.nan)
    method = f"sampling, {n_draws} antithetic permutations"
    return ShapResult(values, of_background.mean(axis=0), output, names, method, errors)


def _changes_by_column(
    outputs_of: Any, rows: Any, other: Any, rank: Any, *, start: Floats, own: Floats
) -> Floats:
    """Return the changes by column, averaged over an order and its reverse.

    Parameters
    ----------
    outputs_of : callable
        Returns the outputs for rows with changed columns.
    rows : ndarray
        The rows that are explained.
    other : int
        The background row.
    rank : ndarray of shape (n_rows, n_columns)
        The position of each column in the random order.
    start : ndarray of shape (n_outputs,)
        The output for the background row.
    own : ndarray of shape (n_rows, n_outputs)
        The outputs for `rows`.
    """
    n, n_columns = rank.shape
    steps = np.arange(1, n_columns)
    is_own = np.concatenate(  # [row][step, forward and backward][column]: has the row's own value
        [
            rank[:, np.newaxis] < steps[:, np.newaxis],
            rank[:, np.newaxis] >= n_columns - steps[:, np.newaxis],
        ],
        axis=1,
    )
    outputs = np.empty((n, 2, n_columns + 1, start.shape[0]))
    outputs[:, :, 0] = start
    outputs[:, :, -1] = own[:, np.newaxis]
    if n_columns > 1:
        repeated = np.repeat(rows, 2 * (n_columns - 1))
        flat = is_own.reshape(-1, n_columns)
        changes = {j: np.where(flat[:, j], repeated, other) for j in range(n_columns)}
        outputs[:, :, 1:-1] = outputs_of(repeated, changes).reshape(n, 2, n_columns - 1, -1)
    change = np.diff(outputs, axis=2)
    forward = np.take_along_axis(change[:, 0], rank[:, :, np.newaxis], axis=1)
    backward = np.take_along_axis(change[:, 1], (n_columns - 1 - rank)[:, :, np.newaxis], axis=1)
    return (forward + backward) / 2


def _output(model: Any) -> tuple[Any, str, list[str] | None]:
    """Return the explained function, the kind of its output, and names of outputs."""
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
            f"model: expected a classifier with one target and with predict_proba or "
            f"decision_function, got {type(model).__name__}"
        )
    if isinstance(model, BaseEstimator) and get_tags(model).estimator_type in _PART_NUMBERS:
        raise TypeError(
            f"model: expected a classifier, a regressor or a function, got {type(model).__name__}, "
            "which predicts the number of a component; give a function of rows instead, such as "
            "its score_samples"
        )
    if hasattr(model, "predict"):
        return model.predict, "prediction", None
    if callable(model):
        return model, "prediction", None
    raise TypeError(f"model: expected a fitted estimator or a function, got {type(model).__name__}")
