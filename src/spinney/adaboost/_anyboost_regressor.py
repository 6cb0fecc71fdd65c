"""AnyBoost for regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, column_or_1d

from spinney.adaboost._anyboost_losses import REGRESSION_LOSSES, Loss, resolve_loss
from spinney.adaboost.anyboost import BaseAnyBoost, best_constant
from spinney.conformal.mixins import IntervalsOnRequest
from spinney.tree import DecisionTreeRegressor

__all__ = ["AnyBoostRegressor"]


class AnyBoostRegressor(IntervalsOnRequest, RegressorMixin, BaseAnyBoost):
    """Functional gradient descent for regression: any learner, any loss.

    Each round fits a learner to the direction of steepest descent of the loss and takes a step in
    the direction of its predictions. A regressor is fitted to the negative gradient −g of the loss
    at the rows; a classifier to the classes −sign(g), with weights ``|g|``.

    Parameters
    ----------
    estimator : estimator, default=None
        The learner: a regressor, or a classifier of the classes −1 and 1. None means a Spinney
        regression tree of depth 3.
    loss : {"squared_error", "absolute_error", "log_cosh"} or callable, default="squared_error"
        The loss, or a function of (targets, scores) that returns the loss of each row and its
        derivative by the score.
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
        The score before the first round: the constant that minimises the loss.
    train_score_ : ndarray of shape (n_rounds + 1,)
        Mean loss before the first round and after each.
    stopped_ : str or None
        Reason for stopping before `n_estimators` rounds: Σ g f ≥ 0 for a learner, or a gradient of
        zero. None if all rounds were run.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.ensemble import AnyBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AnyBoostRegressor(n_estimators=50, learning_rate=0.1).fit(X[:300], y[:300])
    >>> bool(model.score(X[300:], y[300:]) > 0.3)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseAnyBoost._parameter_constraints,
        "loss": [StrOptions(set(REGRESSION_LOSSES)), callable],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: Any = "squared_error",
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
        return resolve_loss(self.loss, REGRESSION_LOSSES)

    def _start(self, loss: Loss, targets: Any, weights: Any) -> float:
        if self.loss == "squared_error":
            return float(weights @ targets)
        return best_constant(loss, targets, weights)

    def _encode(self, y: Any) -> NDArray[np.float64]:
        y = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y", estimator=self)
        return np.asarray(column_or_1d(y, warn=True))

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict regression targets.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            The scores F.
        """
        return np.asarray(self._raw(X))

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Predict after each round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows.

        Yields
        ------
        ndarray of shape (n_rows,)
            Predictions of the first 1, 2, … learners.
        """
        yield from self._staged_raw(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.estimator is None
        return tags
