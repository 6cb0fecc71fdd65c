"""AnyBoost: functional gradient descent with any learner and any loss."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize, minimize_scalar
from sklearn.base import BaseEstimator, _fit_context, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
)

from spinney.adaboost._anyboost_losses import Loss
from spinney.data.sample_weights import check_weights
from spinney.data.sklearn_versions import safe_indexing
from spinney.data.table import check_rows
from spinney.models.methods import ModelMethods
from spinney.runtime.progress import progress_hook

__all__ = ["BaseAnyBoost", "Constant"]

_LARGEST_STEP = 1e6  # limit for losses without a minimum, as for separable classes


class BaseAnyBoost(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of both AnyBoost estimators; not to be used directly."""

    estimators_: list[Any]

    _parameter_constraints: dict[str, Any] = {
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "step": [
            StrOptions({"line_search", "refit"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callbacks": [None, callable, list, tuple],
    }

    @abstractmethod
    def _default_estimator(self) -> Any:
        """Return the default learner, for ``estimator=None``."""

    @abstractmethod
    def _encode(self, y: Any) -> NDArray[np.float64]:
        """Return the targets in the form that the loss expects."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Return the loss function."""

    @abstractmethod
    def _start(self, loss: Loss, targets: Any, weights: Any) -> float:
        """Return the score before the first round."""

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the learners, one per round.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; the learners get them unchanged.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights in the loss; None means equal weights.

        Returns
        -------
        estimator
            Itself.
        """
        check_rows(self, X, y, reset=True)
        targets = self._encode(y)
        check_consistent_length(X, targets)
        n_rows = len(targets)
        weights = check_weights(sample_weight, n_rows)
        if not weights.sum() > 0:
            raise ValueError("sample_weight leaves no row of positive weight")
        # The learners get the original weights, so that integer weights equal repeated rows.
        given = weights
        weights = weights / weights.sum()
        loss = self._loss()
        base = self._default_estimator() if self.estimator is None else self.estimator
        self.estimator_ = base
        random_state = check_random_state(self.random_state)
        hook = progress_hook(self)
        self.init_ = self._start(loss, targets, weights)
        self.estimators_ = []
        self.stopped_: str | None = None
        directions: list[Any] = []  # predictions of each learner for the training rows
        steps = np.empty(0)
        scores = np.full(n_rows, self.init_)
        losses = [float(weights @ loss(targets, scores)[0])]
        for t in range(self.n_estimators):
            derivative = loss(targets, scores)[1]
            gradient = weights * derivative
            if not gradient.any():
                self.stopped_ = "the gradient is zero: the loss cannot be reduced further"
                break
            learner = self._fit_learner(
                base,
                X,
                derivative,
                given,
                equal_weights=sample_weight is None,
                random_state=random_state,
            )
            direction = np.asarray(learner.predict(X), dtype=np.float64).ravel()
            slope = float(gradient @ direction)
            if not slope < 0:
                self.stopped_ = (
                    f"round {t + 1}: the learner is not a descent direction (Σ g f = {slope:.3g} "
                    "≥ 0)"
                )
                break
            directions.append(direction)
            self.estimators_.append(learner)
            steps = self._find_steps(
                loss, targets, weights, scores, directions=directions, steps=steps
            )
            scores = self.init_ + np.array(directions).T @ steps
            losses.append(float(weights @ loss(targets, scores)[0]))
            if hook is not None:
                hook(t + 1, self.n_estimators)
        self.train_score_ = np.array(losses)
        self.estimator_weights_ = steps
        if self.stopped_ is not None and self.verbose:
            warn(self.stopped_, ConvergenceWarning, stacklevel=2)
        return self

    def _fit_learner(
        self,
        base: Any,
        X: Any,
        derivative: Any,
        weights: Any,
        *,
        equal_weights: bool,
        random_state: Any,
    ) -> Any:
        """Fit a learner to the direction of steepest descent."""
        learner = clone(base)
        if "random_state" in learner.get_params():
            learner.set_params(random_state=random_state.randint(np.iinfo(np.int32).max))
        descent = -derivative
        if is_classifier(learner):
            # A classifier minimises Σ |g| [f ≠ −sign g], which is equivalent to minimising Σ g f.
            weights = weights * np.abs(derivative)
            descent = np.where(derivative > 0, -1, 1)
            positive = np.flatnonzero(weights)
            if len(np.unique(descent[positive])) < 2:
                return Constant(descent[positive[0]])
        elif equal_weights:
            return learner.fit(X, descent)
        if has_fit_parameter(learner, "sample_weight"):
            return learner.fit(X, descent, sample_weight=weights)
        rows = random_state.choice(len(descent), size=len(descent), p=weights / weights.sum())
        return learner.fit(safe_indexing(X, rows), descent[rows])

    def _find_steps(
        self,
        loss: Loss,
        targets: Any,
        weights: Any,
        scores: Any,
        *,
        directions: list[Any],
        steps: Any,
    ) -> Any:
        """Return the coefficients of all learners after a new round."""
        if not isinstance(self.step, str):
            return np.append(steps, self.learning_rate * self.step)
        step = _line_search(loss, targets, weights, scores, directions[-1])
        if self.step == "line_search":
            return np.append(steps, self.learning_rate * step)
        matrix = np.array(directions).T

        def objective(alpha: Any) -> tuple[float, Any]:
            value, derivative = loss(targets, self.init_ + matrix @ alpha)
            return float(weights @ value), matrix.T @ (weights * derivative)

        found = minimize(objective, np.append(steps, step), jac=True, method="L-BFGS-B")
        return found.x

    # ------------------------------------------------------------------ predictions

    def _raw(self, X: Any) -> Any:
        *_, scores = self._staged_raw(X)
        return scores

    def _staged_raw(self, X: Any) -> Iterator[Any]:
        """Yield the scores after each round; without learners, the initial scores."""
        check_is_fitted(self)
        check_rows(self, X, reset=False)
        scores: Any = self.init_
        yielded = False
        for learner, step in zip(self.estimators_, self.estimator_weights_, strict=True):
            scores = scores + step * np.asarray(learner.predict(X), dtype=np.float64).ravel()
            yielded = True
            yield scores
        if not yielded:
            yield np.full(X.shape[0] if hasattr(X, "shape") else len(X), self.init_)

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_weights_" in vars(self)


class Constant:
    """A learner that predicts a constant."""

    def __init__(self, value: int) -> None:
        self.value = value

    def predict(self, X: Any) -> Any:
        return np.full(X.shape[0] if hasattr(X, "shape") else len(X), self.value)


def best_constant(loss: Loss, targets: Any, weights: Any) -> float:
    """Return the constant score that minimises the loss."""
    found = minimize_scalar(
        lambda c: float(weights @ loss(targets, np.full(len(targets), c))[0]),
        bracket=(float(targets.min()), float(targets.max()))
        if np.ptp(targets) > 0
        else (float(targets[0]) - 1, float(targets[0]) + 1),
    )
    return float(found.x)


def _line_search(loss: Loss, targets: Any, weights: Any, scores: Any, direction: Any) -> float:
    """Return the step that minimises the loss: a zero of its derivative."""

    def slope(step: float) -> float:
        with np.errstate(over="ignore"):
            return float(weights @ (loss(targets, scores + step * direction)[1] * direction))

    if not slope(0.0) < 0:  # downhill only by the rounding of another sum
        return 0.0
    upper = 1.0
    while slope(upper) < 0:
        upper *= 2
        if upper > _LARGEST_STEP:
            return _LARGEST_STEP
    return float(brentq(slope, 0.0, upper, xtol=1e-14, rtol=1e-14))
