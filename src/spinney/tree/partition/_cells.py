"""Base classes of estimators whose partition is independent of the targets.

A cell predicts the class shares, or the mean target, of its training rows.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_regressor
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, subsample_rows
from spinney.data.labels import encode_labels
from spinney.data.sample_weights import check_weights
from spinney.data.sklearn_versions import validate_data
from spinney.models.methods import ModelMethods

__all__ = ["BaseCells", "CellClassifier", "CellRegressor"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


class BaseCells(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of estimators with cells; not to be used directly."""

    n_features_in_: int

    @abstractmethod
    def _encode(self, y: Array) -> Array:
        """Return the targets in the form that `_sums` needs: class codes or floats."""

    @abstractmethod
    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        """Return weighted sums by cell, (n_cells, n_values): class weights or targets."""

    @abstractmethod
    def _to_predictions(self, values: Floats) -> Array:
        """Return the predictions for the values of cells."""

    @abstractmethod
    def _locate(self, X: Floats) -> tuple[Floats, Array]:
        """Return cell values, (n_cells, n_values), and the cell of each row, (n_rows,)."""

    def _read(self, X: Any, y: Any, sample_weight: Any) -> tuple[Floats, Array, Floats]:
        """Validate the training data and drop rows of weight zero."""
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        targets = self._encode(y)
        weights = check_weights(sample_weight, len(X))
        positive = weights > 0
        if not positive.all():
            X, targets, weights = X[positive], targets[positive], weights[positive]
        return X, targets, weights

    def _store_training_rows(self, cells: Array, targets: Array, weights: Floats) -> None:
        """Store the training rows for leave-one-out predictions.

        Cells do not depend on the targets, so these predictions have a closed form.
        """
        rows = subsample_rows(len(cells))
        self._row_cells, self._row_targets = cells[rows].astype(np.int32), targets[rows]
        self._row_weights = None if (weights == 1).all() else weights[rows]
        self._held_out: HeldOut | None = None

    def _row_values(self, targets: Array) -> Floats:
        """Return the contribution of each row to its cell, (n_rows, n_values)."""
        return np.asarray(targets, dtype=np.float64)[:, np.newaxis]

    def _leave_one_out_values(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        """Return leave-one-out values of rows, or None if they are not available.

        A value is NaN if the row has no other rows to predict it.
        """
        return None

    def _compute_held_out(self) -> None:
        """Compute leave-one-out predictions of the training rows on first use."""
        if vars(self).get("_held_out") is not None or "_row_cells" not in vars(self):
            return
        targets, weights = self._row_targets, self._row_weights
        row_weights = np.ones(len(targets)) if weights is None else weights
        predicted = self._leave_one_out_values(
            self._row_cells, self._row_values(targets), row_weights
        )
        if predicted is None:
            return
        known = np.isfinite(predicted).all(axis=1)
        if not known.any():
            return
        predicted = predicted[known]
        self._held_out = HeldOut(
            "rows, each by the others of its cell",
            targets[known],
            predicted[:, 0] if is_regressor(self) else predicted,
            weights=None if weights is None else weights[known],
        )

    def _read_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def _predict_rows(self, X: Floats) -> Array:
        values, cells = self._locate(X)
        return self._to_predictions(values)[cells]

    def predict(self, X: Any) -> Array:
        """Predict the majority class, or the mean, of each row's cell.

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
    """Base class of classifiers: cells with class shares; not to be used directly."""

    classes_: Any

    def _encode(self, y: Array) -> Array:
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        return codes

    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        n_classes = len(self.classes_)
        sums = np.bincount(cells * n_classes + targets, weights, n_cells * n_classes)
        return np.asarray(sums.reshape(n_cells, n_classes))

    def _row_values(self, targets: Array) -> Floats:
        return np.eye(len(self.classes_))[targets]

    def _held_out_rows(self) -> HeldOut:
        self._compute_held_out()
        return super()._held_out_rows()

    def _to_predictions(self, values: Floats) -> Array:
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
    """Base class of regressors: cells with target means; not to be used directly."""

    def _encode(self, y: Array) -> Array:
        return np.asarray(y, dtype=np.float64)

    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        sums = np.bincount(cells, weights * targets, n_cells)
        return np.asarray(sums[:, np.newaxis], dtype=np.float64)

    def _held_out_rows(self) -> HeldOut:
        self._compute_held_out()
        return super()._held_out_rows()

    def _clip(self, ends: Floats) -> Floats:
        # A NaN prediction gives an unbounded interval.
        ends[np.isnan(ends).any(axis=1)] = [-np.inf, np.inf]
        return ends

    def _to_predictions(self, values: Floats) -> Array:
        return values[:, 0]
