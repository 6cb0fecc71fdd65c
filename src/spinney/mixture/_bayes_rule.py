"""Bayes' rule: predict the class with the largest prior times density, or odds."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.mixins import SetsOnRequest
from spinney.data.labels import encode_labels
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.models.methods import ModelMethods

__all__ = ["BayesRule"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


class BayesRule(SetsOnRequest, ClassifierMixin, ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Abstract base class of classifiers by Bayes' rule."""

    n_features_in_: int
    classes_: Array
    class_prior_: Floats
    priors: Any

    @abstractmethod
    def _log_joint(self, X: Array) -> Floats:
        """Return log(prior · density), (n_rows, n_classes), up to a constant per row."""

    def _read_training(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Array, NDArray[np.intp], Floats]:
        """Return rows of positive weight, their class codes and weights; set the priors."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.classes_, codes = encode_labels(y)
        weighted = weights > 0
        if not weighted.all():
            X, codes, weights = X[weighted], codes[weighted], weights[weighted]
        counts = np.bincount(codes, weights=weights, minlength=len(self.classes_))
        self._class_shares = counts / counts.sum()
        self.class_prior_ = self._read_priors(self._class_shares)
        self._range = np.stack([X.min(axis=0), X.max(axis=0)])
        return X, codes, weights

    def _read_priors(self, shares: Floats) -> Floats:
        """Return the validated priors; the class shares if None."""
        if self.priors is None:
            return shares
        expected = f"{len(shares)} numbers >= 0 that sum to 1, one for each class"
        try:
            priors = np.asarray(self.priors, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"priors: expected {expected}, got {self.priors!r}") from None
        if priors.shape != shares.shape or not (priors >= 0).all() or abs(priors.sum() - 1) > 1e-6:
            raise ValueError(f"priors: expected {expected}, got {self.priors!r}")
        empty = np.flatnonzero((shares == 0) & (priors > 0))
        if len(empty):
            raise ValueError(
                f"priors: expected 0 for class {self.classes_[empty[0]]}, which has no row of "
                f"positive weight; got {priors[empty[0]]}"
            )
        return priors

    def _joint_of_all_classes(self, of_present: Any, n_rows: int) -> Floats:
        """Return columns for all classes: -inf for classes without weighted rows."""
        out = np.full((n_rows, len(self.classes_)), -np.inf)
        out[:, self._class_shares > 0] = np.stack(of_present, axis=1)
        return out

    def _read(self, X: Any) -> Array:
        """Return validated rows for predictions."""
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False)

    def predict(self, X: Any) -> Array:
        """Predict the most probable class of each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        joint = self._log_joint(self._read(X))
        return self.classes_[joint.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Floats:
        """Predict the logarithms of the class probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Logs of probabilities.
        """
        joint = self._log_joint(self._read(X))
        return joint - logsumexp(joint, axis=1, keepdims=True)

    def predict_proba(self, X: Any) -> Floats:
        """Predict class probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities.
        """
        return np.exp(self.predict_log_proba(X))

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of the second of two classes, else log-probabilities.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            The class with the largest value is predicted; with two classes the second if the
            value is positive.
        """
        joint = self._log_joint(self._read(X))
        if len(self.classes_) != 2:
            return joint - logsumexp(joint, axis=1, keepdims=True)
        return joint[:, 1] - joint[:, 0]

    def plot(self, ax: Any = None, X: Any = None, y: Any = None) -> Any:
        """Plot the decision regions, the decision boundary and lines of equal density.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on; None: the current axes.
        X : array or frame of shape (n_rows, 2), default=None
            Points to draw on top.
        y : array-like of shape (n_rows,), default=None
            Their classes.

        Returns
        -------
        matplotlib Axes
            The axes.
        """
        # Imported here for start-up time.
        from spinney.mixture._plot import plot_rule

        return plot_rule(self, X, y, ax)
