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
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from spinney._labels import encode_labels
from spinney._model_methods import ModelMethods

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
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        said = weights > 0
        if not said.all():
            X, targets, weights = X[said], targets[said], weights[said]
        return X, targets, weights

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


class CellClassifier(ClassifierMixin, BaseCells):
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


class CellRegressor(RegressorMixin, BaseCells):
    """Cells that hold the means of the targets; not to be used directly."""

    def _encode(self, y: Array) -> Array:
        return np.asarray(y, dtype=np.float64)

    def _sums(self, cells: Array, n_cells: int, targets: Array, weights: Floats) -> Floats:
        sums = np.bincount(cells, weights * targets, n_cells)
        return np.asarray(sums[:, np.newaxis], dtype=np.float64)

    def _answers(self, values: Floats) -> Array:
        return values[:, 0]
