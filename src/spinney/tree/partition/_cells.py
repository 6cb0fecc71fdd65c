"""What cells say: shares of classes, or means of numbers, over the rows that fall into them.

The base of estimators that divide the space without looking at the targets.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, thinned
from spinney.data.labels import encode_labels
from spinney.data.sample_weights import check_weights
from spinney.models.methods import ModelMethods

__all__ = ["BaseCells", "CellClassifier", "CellRegressor"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


class BaseCells(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators with cells; not to be used directly."""

    n_features_in_: int

    @abstractmethod
    def _encode(self, y: Array) -> Array:
        """Targets as `_sums` takes them."""

    @abstractmethod
    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        """Sum by cell what the values are made of, (n_cells, n_values)."""

    @abstractmethod
    def _answers(self, values: Floats) -> Array:
        """What to predict for values of cells."""

    @abstractmethod
    def _locate(self, X: Floats) -> tuple[Floats, Array]:
        """Return values, (n_cells, n_values), and which of them answer for the rows, (n_rows,)."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Array, Floats]:
        """Validate the training data; rows without weight are left out."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        targets = self._encode(y)
        weights = check_weights(sample_weight, len(X))
        said = weights > 0
        if not said.all():
            X, targets, weights = X[said], targets[said], weights[said]
        return X, targets, weights

    def _remember_rows(self, cells: Array, targets: Array, weights: Floats) -> None:
        """Keep what leaving rows out takes: cells do not ask for targets, so it is a formula."""
        rows = thinned(len(cells))
        self._row_cells, self._row_targets = cells[rows].astype(np.int32), targets[rows]
        self._row_weights = None if (weights == 1).all() else weights[rows]
        self._held_out: HeldOut | None = None

    def _own_values(self, targets: Array) -> Floats:
        """What each row adds to its cell, (n_rows, n_values)."""
        return np.asarray(targets, dtype=np.float64)[:, np.newaxis]

    def _left_out(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        """Values of rows by all others, NaN where there are none; None if it is not known."""
        return None

    def _find_left_out(self) -> None:
        """Ask about each row the others, when that is first needed."""
        if vars(self).get("_held_out") is not None or "_row_cells" not in vars(self):
            return
        targets, weights = self._row_targets, self._row_weights
        counted = np.ones(len(targets)) if weights is None else weights
        told = self._left_out(self._row_cells, self._own_values(targets), counted)
        if told is None:
            return
        known = np.isfinite(told).all(axis=1)
        if not known.any():
            return
        told = told[known]
        self._held_out = HeldOut(
            "rows, each by the others of its cell",
            targets[known],
            told[:, 0] if is_regressor(self) else told,
            weights=None if weights is None else weights[known],
        )

    def _read_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _predict_rows(self, X: Floats) -> Array:
        values, cells = self._locate(X)
        return self._answers(values)[cells]

    def predict(self, X: Any) -> Array:
        """Predict what most rows of a cell are, or their mean.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Predictions.
        """
        return self._predict_rows(self._read_rows(X))


class CellClassifier(SetMixin, ClassifierMixin, BaseCells):
    """Cells that hold the shares of the classes; not to be used directly."""

    classes_: Any

    def _encode(self, y: Array) -> Array:
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        return codes

    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        n_classes = len(self.classes_)
        sums = np.bincount(cells * n_classes + targets, weights, n_cells * n_classes)
        return np.asarray(sums.reshape(n_cells, n_classes))

    def _own_values(self, targets: Array) -> Floats:
        return np.eye(len(self.classes_))[targets]

    def _held_out_rows(self) -> HeldOut:
        self._find_left_out()
        return super()._held_out_rows()

    def _answers(self, values: Floats) -> Array:
        return np.asarray(self.classes_.take(values.argmax(axis=1), axis=0))

    def predict_proba(self, X: Any) -> Floats:
        """Return the shares of the classes in each row's cell.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        values, cells = self._locate(self._read_rows(X))
        return values[cells]


class CellRegressor(IntervalMixin, RegressorMixin, BaseCells):
    """Cells that hold the means of the targets; not to be used directly."""

    def _encode(self, y: Array) -> Array:
        return np.asarray(y, dtype=np.float64)

    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        sums = np.bincount(cells, weights * targets, n_cells)
        return np.asarray(sums[:, np.newaxis], dtype=np.float64)

    def _held_out_rows(self) -> HeldOut:
        self._find_left_out()
        return super()._held_out_rows()

    def _clip(self, ends: Floats) -> Floats:
        # Where nothing is predicted the target may be anything.
        ends[np.isnan(ends).any(axis=1)] = [-np.inf, np.inf]
        return ends

    def _answers(self, values: Floats) -> Array:
        return values[:, 0]
