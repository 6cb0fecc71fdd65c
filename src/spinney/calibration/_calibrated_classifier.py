"""Calibrated class probabilities for any classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from spinney.calibration._calibrators import CALIBRATIONS, Calibrator
from spinney.calibration._wrapper import Wrapper
from spinney.calibration.probabilities import (
    all_classes,
    columns_of,
    fold_shares,
    held_out_shares,
    read_classes,
    unit_of_margins,
)
from spinney.conformal.rules import Floats
from spinney.data.table import check_rows

__all__ = ["CalibratedClassifier"]


class CalibratedClassifier(ClassifierMixin, Wrapper):  # type: ignore[misc]
    """A classifier whose probabilities are calibrated on held-out rows.

    The model is fitted once, on all rows. The correction of its probabilities is fitted on rows
    that the model held out by itself (out of the bag, or for early stopping). If it holds out
    none, out-of-fold probabilities of further models are used.

    Parameters
    ----------
    estimator : estimator, default=None
        A classifier with `predict_proba`, or with the margins of a `decision_function`, Spinney's
        or scikit-learn's; None is a `RandomForestClassifier`.
    method : {"auto", "temperature", "sigmoid", "isotonic"}, default="auto"
        "temperature": all probabilities become more or less extreme, and the most probable class
        stays the same. "sigmoid": a logistic function for each class (Platt). "isotonic": any
        increasing function for each class, which needs many rows. "auto" is "isotonic" if each
        class has at least 500 held-out rows, else "temperature".
    cv : "auto", "oob", int, splitter or iterable, default="auto"
        "oob": the rows that the model held out by itself. A number, or a splitter: folds. "auto"
        is "oob" if the model holds rows out, else five folds.
    random_state : int, RandomState instance or None, default=None
        Seed of the partition of the rows into folds.

    Attributes
    ----------
    estimator_ : estimator
        The model, fitted on all rows.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    method_ : str
        The method that was used.
    source_ : str
        The origin of the held-out rows, for example "rows out of the bag".
    n_features_in_ : int
        Columns seen in fit.
    feature_names_in_ : ndarray of str
        Their names, if X had names that are all strings.

    Examples
    --------
    >>> from sklearn.metrics import log_loss
    >>> from spinney.calibration import CalibratedClassifier
    >>> from spinney.datasets import load_spam
    >>> from spinney.ensemble import RandomForestClassifier
    >>> X, y = load_spam(return_X_y=True, split="train")
    >>> X_test, y_test = load_spam(return_X_y=True, split="test")
    >>> forest = RandomForestClassifier(random_state=0)
    >>> model = CalibratedClassifier(forest).fit(X, y)
    >>> model.method_, model.source_
    ('isotonic', 'rows out of the bag')
    >>> plain = forest.fit(X, y)
    >>> losses = [log_loss(y_test, m.predict_proba(X_test)) for m in (model, plain)]
    >>> bool(losses[0] < losses[1])
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str = "auto",
        cv: Any = "auto",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv
        self.random_state = random_state

    def _model(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        # Imported late, as only the default estimator needs it.
        from spinney.ensemble import RandomForestClassifier

        return RandomForestClassifier(random_state=0)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CalibratedClassifier:
        """Fit the model, and calibrate its probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, for both.

        Returns
        -------
        CalibratedClassifier
            Itself.
        """
        self._check_method(("auto", *CALIBRATIONS))
        if isinstance(self.cv, str) and self.cv not in ("auto", "oob"):
            raise ValueError(f"cv: expected 'auto', 'oob', a number or a splitter, got {self.cv!r}")
        y_all = y
        X, y, weights = self._read(X, y, sample_weight)
        y, self._known, codes = read_classes(self, y)
        self.classes_ = all_classes(self, y_all, y, self._known)
        self.estimator_, held = self._own_rows(X, y, weights)
        self._unit = unit_of_margins(self.estimator_, X)
        if isinstance(self.cv, str) and held is not None:
            self.source_ = held.source
            shares, codes = held.predicted, held.truth
            weights = held.weights
        elif isinstance(self.cv, str) and self.cv == "oob":
            raise ValueError(f"cv='oob': {type(self.estimator_).__name__} holds out no rows")
        else:
            self.source_ = "rows of folds"
            shares = self._fold_shares(X, y, weights)
        self._calibrator = Calibrator(self.method).fit(shares, codes, weights)
        self.method_ = self._calibrator.method
        return self

    def _fold_shares(self, X: Any, y: Any, weights: Any) -> Floats:
        cv = self.cv
        try:
            self.cv = 5 if isinstance(cv, str) else cv
            folds = self._folds(X, y)
        finally:
            self.cv = cv
        return fold_shares(
            self._model(),
            X,
            y,
            weights=weights,
            classes=self._known,
            folds=folds,
            unit=self._unit,
        )

    def predict_proba(self, X: Any) -> Floats:
        """Predict calibrated class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        unit = vars(self).get("_unit", 1.0)
        known = vars(self).get("_known", self.classes_)  # classes with rows of positive weight
        shares = self._calibrator.apply(held_out_shares(self.estimator_, X, known, unit))
        return np.asarray(columns_of(self.classes_, shares, known))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The most probable class; of equals the first.
        """
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])
