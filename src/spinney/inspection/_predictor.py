"""Predictions of a model for rows whose columns are set to other values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from spinney.inspection._tree_sums import read_tree_sum
from spinney.inspection.table_view import TableView
from spinney.runtime.threads import effective_n_jobs

__all__ = ["Predictor"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]
_ROWS_AT_ONCE = 50_000  # limits the memory for many settings of a large table
_NUMBERS_AT_ONCE = 4_000_000  # the same, for scores


class Predictor:
    """Predictions of a model for rows whose columns are set to other values.

    For sums over trees, the core evaluates all settings of a row in one pass through each tree.
    Other models predict tables in which the values are replaced.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model; it must have one target.
    view : TableView
        The table.
    target : object, default=None
        The class whose probability is returned. None: the second of two classes, or all classes
        if there are more.
    n_jobs : int or None, default=None
        The number of threads.

    Attributes
    ----------
    outputs : list of str
        Names of the outputs: classes, or "prediction" for a regressor.
    is_probability : bool
        Whether the outputs are class probabilities.
    """

    def __init__(
        self, model: Any, view: TableView, target: Any = None, n_jobs: int | None = None
    ) -> None:
        self._view = view
        self._model = model
        self._threads = effective_n_jobs(n_jobs)
        self._picked, self.outputs, self.is_probability = _read_outputs(model, target)
        self._sum = read_tree_sum(model)

    def predict(self, X: Any) -> Floats:
        """Return predictions, (n_outputs, n_rows)."""
        if self.is_probability:
            return np.asarray(self._model.predict_proba(X), dtype=np.float64).T[self._picked]
        predictions = np.asarray(self._model.predict(X), dtype=np.float64)
        if predictions.ndim > 1 and predictions.shape[1] > 1:
            raise ValueError(f"model: expected one output, got {predictions.shape[1]}")
        return predictions.reshape(1, -1)

    def average(self, rows: Rows, changes: dict[int, NDArray[Any]]) -> Floats:
        """Return mean predictions over rows, (n_outputs, n_settings).

        Parameters
        ----------
        rows : ndarray of int
            Rows of the table.
        changes : dict of int to ndarray
            Maps a column to its value in each setting, in the format of `TableView.make`.
        """
        if self._sum is None or not self._sum.is_linear:
            n_settings = len(next(iter(changes.values())))
            total = np.zeros((len(self.outputs), n_settings))
            at_once = max(1, _NUMBERS_AT_ONCE // (n_settings * len(self.outputs)))
            for first in range(0, len(rows), at_once):
                total += self.each(rows[first : first + at_once], changes).sum(axis=1)
            return total / len(rows)
        core, _ = self._sum.read(self._view.make(rows, {}))
        columns, values = self._settings(changes)
        scores = self._sum.score(core, columns, values, False, self._threads)[0]
        return self._sum.predict(scores)[:, self._picked].T

    def each(self, rows: Rows, changes: dict[int, NDArray[Any]]) -> Floats:
        """Return the predictions of each row, (n_outputs, n_rows, n_settings)."""
        n_settings = len(next(iter(changes.values())))
        predictions = np.empty((len(self.outputs), len(rows), n_settings))
        if self._sum is not None:
            columns, values = self._settings(changes)
            at_once = max(1, _NUMBERS_AT_ONCE // (n_settings * self._sum.n_scores))
            for first in range(0, len(rows), at_once):
                some = slice(first, first + at_once)
                core, _ = self._sum.read(self._view.make(rows[some], {}))
                scores = self._sum.score(core, columns, values, True, self._threads)
                predictions[:, some] = np.moveaxis(
                    self._sum.predict(scores)[..., self._picked], -1, 0
                )
            return predictions
        at_once = max(1, _ROWS_AT_ONCE // len(rows))
        for first in range(0, n_settings, at_once):
            some = slice(first, first + at_once)
            set_to = {j: np.repeat(new[some], len(rows)) for j, new in changes.items()}
            n = min(at_once, n_settings - first)
            predicted = self.predict(self._view.make(np.tile(rows, n), set_to))
            predictions[:, :, some] = predicted.reshape(len(self.outputs), n, len(rows)).swapaxes(
                1, 2
            )
        return predictions

    def _settings(self, changes: dict[int, NDArray[Any]]) -> tuple[list[int], Floats]:
        """Return the columns that are set, and their values as the trees read them."""
        assert self._sum is not None
        columns = list(changes)
        n = len(changes[columns[0]])
        made = self._view.make(np.zeros(n, dtype=np.intp), changes)
        return columns, self._sum.values(made, columns)


def _read_outputs(model: Any, target: Any) -> tuple[list[int], list[str], bool]:
    """Return indices of the outputs, their names, and whether they are probabilities."""
    if not is_classifier(model):
        if target is not None:
            raise ValueError(f"target: expected None for a regressor, got {target!r}")
        return [0], ["prediction"], False
    if not hasattr(model, "predict_proba"):
        raise ValueError(
            f"model: expected a classifier with predict_proba, got {type(model).__name__}"
        )
    if isinstance(model.classes_, list):
        raise ValueError(f"model: expected one output, got {len(model.classes_)}")
    classes = list(model.classes_)
    if target is not None:
        if target not in classes:
            shown = ", ".join(repr(one) for one in np.asarray(classes)[:8].tolist())
            raise ValueError(f"target: expected a class of the model ({shown}), got {target!r}")
        picked = [classes.index(target)]
    else:
        picked = [1] if len(classes) == 2 else list(range(len(classes)))
    return picked, [str(classes[index]) for index in picked], True
