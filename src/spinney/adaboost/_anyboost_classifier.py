"""AnyBoost for binary classification."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from spinney.adaboost._anyboost_losses import CLASSIFICATION_LOSSES, Loss, resolve_loss
from spinney.adaboost.anyboost import BaseAnyBoost
from spinney.conformal.mixins import SetsOnRequest
from spinney.data.labels import encode_labels
from spinney.tree import DecisionTreeRegressor

__all__ = ["AnyBoostClassifier"]


class AnyBoostClassifier(SetsOnRequest, ClassifierMixin, BaseAnyBoost):
    """Functional gradient descent for binary classification: any learner, any loss.

    Each round fits a learner to the direction of steepest descent of the loss and takes a step in
    the direction of its predictions. A regressor is fitted to the negative gradient −g of the loss
    at the rows; a classifier to the classes −sign(g), with weights ``|g|``. With classifiers, the
    exponential loss and line search, this is equivalent to AdaBoost.

    Parameters
    ----------
    estimator : estimator, default=None
        The learner: a regressor, or a classifier of the classes −1 and 1 (one that takes no
        ``sample_weight`` gets rows drawn by weight). None means a Spinney regression tree of depth
        3.
    loss : {"exponential", "log_loss", "squared_hinge", "squared_error"} or callable, \
default="log_loss"
        The loss, or a function of (targets −1 and 1, scores) that returns the loss of each row and
        its derivative by the score.
    n_estimators : int, default=100
        Largest number of rounds.
    step : {"line_search", "refit"} or float, default="line_search"
        Step size: "line_search" minimises the loss along the direction; "refit" fits all
        coefficients again after each round; a float is a fixed step.
    learning_rate : float, default=1.0
        Factor of each step; not used with "refit".
    random_state : int, RandomState instance or None, default=None
        Seed of the learners.
    verbose : int, default=0
        1 shows a progress bar, and warns if fitting stops early.
    callbacks : callable or list of callables, default=None
        Called during fit with (rounds done, all rounds).

    Attributes
    ----------
    estimators_ : list of estimators
        The learners.
    estimator_weights_ : ndarray of shape (n_rounds,)
        Coefficients α of the learners.
    init_ : float
        The score before the first round: 0.
    train_score_ : ndarray of shape (n_rounds + 1,)
        Mean loss before the first round and after each.
    stopped_ : str or None
        Reason for stopping before `n_estimators` rounds: Σ g f ≥ 0 for a learner, or a gradient of
        zero. None if all rounds were run.
    classes_ : ndarray of shape (2,)
        The classes.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from spinney.ensemble import AnyBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AnyBoostClassifier(n_estimators=30, learning_rate=0.3).fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseAnyBoost._parameter_constraints,
        "loss": [StrOptions(set(CLASSIFICATION_LOSSES)), callable],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: Any = "log_loss",
        n_estimators: int = 100,
        step: Any = "line_search",
        learning_rate: float = 1.0,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.n_estimators = n_estimators
        self.step = step
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _default_estimator(self) -> Any:
        return DecisionTreeRegressor(max_depth=3)

    def _loss(self) -> Loss:
        return resolve_loss(self.loss, CLASSIFICATION_LOSSES)

    def _start(self, loss: Loss, targets: Any, weights: Any) -> float:
        return 0.0

    def _encode(self, y: Any) -> NDArray[np.float64]:
        y = column_or_1d(y, warn=True)
        y = check_array(
            y, ensure_2d=False, dtype=None, ensure_all_finite=False, input_name="y", estimator=self
        )
        if y.dtype.kind in "fc":
            check_array(y, ensure_2d=False, input_name="y", estimator=self)
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        if len(self.classes_) != 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{len(self.classes_)} class" + ("es" if len(self.classes_) > 1 else "")
            )
        return np.where(codes > 0, 1.0, -1.0)

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the scores F.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Positive for the second class.
        """
        return np.asarray(self._raw(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The classes.
        """
        codes = (self.decision_function(X) > 0).astype(np.intp)
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, 2)
            The logistic function of the score; of twice the score for the exponential loss, whose
            log-odds this is. For the squared losses and custom losses, the values are not
            calibrated.
        """
        odds = self.decision_function(X) * (2 if self.loss == "exponential" else 1)
        return np.column_stack([expit(-odds), expit(odds)])

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Return the scores after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            `decision_function` of the first 1, 2, … learners.
        """
        yield from self._staged_raw(X)

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Predict classes after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions of the first 1, 2, … learners.
        """
        for scores in self._staged_raw(X):
            yield self.classes_[(scores > 0).astype(np.intp)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is None
        return tags
