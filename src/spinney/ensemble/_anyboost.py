"""AnyBoost: gradient descent in the space of functions, with any learner and any loss."""

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
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
)

from spinney._model_methods import ModelMethods
from spinney._progress import progress_hook
from spinney._sample_weights import check_weights
from spinney._table import check_rows
from spinney.ensemble._anyboost_losses import Loss

__all__ = ["BaseAnyBoost"]

_LARGEST_STEP = 1e6  # where a loss falls forever, as when classes can be told apart


class BaseAnyBoost(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of both kinds; not to be used directly."""

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
        """Give the learner that None stands for."""

    @abstractmethod
    def _encode(self, y: Any) -> NDArray[np.float64]:
        """Targets as the loss takes them."""

    @abstractmethod
    def _loss(self) -> Loss:
        """Find the loss."""

    @abstractmethod
    def _start(self, loss: Loss, targets: Any, weights: Any) -> float:
        """Find the score before the first round."""

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Descend.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
            The rows; they reach the learners as they are.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the loss.

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
        given = weights  # as they are for the learners: whole ones are repeated rows
        weights = weights / weights.sum()
        loss = self._loss()
        base = self._default_estimator() if self.estimator is None else self.estimator
        self.estimator_ = base
        random_state = check_random_state(self.random_state)
        hook = progress_hook(self)
        self.init_ = self._start(loss, targets, weights)
        self.estimators_ = []
        self.stopped_: str | None = None
        told: list[Any] = []  # what each learner says about the rows
        steps = np.empty(0)
        scores = np.full(n_rows, self.init_)
        losses = [float(weights @ loss(targets, scores)[0])]
        for t in range(self.n_estimators):
            derivative = loss(targets, scores)[1]
            gradient = weights * derivative
            if not gradient.any():
                self.stopped_ = "the gradient is zero: nothing is left to improve"
                break
            even = sample_weight is None
            learner = self._fit_learner(base, X, derivative, given, even, random_state)
            says = np.asarray(learner.predict(X), dtype=np.float64).ravel()
            slope = float(gradient @ says)
            if not slope < 0:
                self.stopped_ = (
                    f"round {t + 1}: the learner does not point downhill (Σ g f = {slope:.3g} ≥ 0)"
                )
                break
            told.append(says)
            self.estimators_.append(learner)
            steps = self._find_steps(loss, targets, weights, scores, told, steps)
            scores = self.init_ + np.array(told).T @ steps
            losses.append(float(weights @ loss(targets, scores)[0]))
            if hook is not None:
                hook(t + 1, self.n_estimators)
        self.train_score_ = np.array(losses)
        self.estimator_weights_ = steps
        if self.stopped_ is not None and self.verbose:
            warn(self.stopped_, ConvergenceWarning, stacklevel=2)
        return self

    def _fit_learner(
        self, base: Any, X: Any, derivative: Any, weights: Any, even: bool, random_state: Any
    ) -> Any:
        """Fit a learner to the direction of steepest descent."""
        learner = clone(base)
        if "random_state" in learner.get_params():
            learner.set_params(random_state=random_state.randint(np.iinfo(np.int32).max))
        aim = -derivative
        if is_classifier(learner):
            # Σ |g| [f ≠ −sign g] is what a classifier minimises, and with it Σ g f.
            weights = weights * np.abs(derivative)
            aim = np.where(derivative > 0, -1, 1)
            moving = np.flatnonzero(weights)
            if len(np.unique(aim[moving])) < 2:
                return _Constant(aim[moving[0]])
        elif even:
            return learner.fit(X, aim)
        if has_fit_parameter(learner, "sample_weight"):
            return learner.fit(X, aim, sample_weight=weights)
        rows = random_state.choice(len(aim), size=len(aim), p=weights / weights.sum())
        return learner.fit(_safe_indexing(X, rows), aim[rows])

    def _find_steps(
        self, loss: Loss, targets: Any, weights: Any, scores: Any, told: list[Any], steps: Any
    ) -> Any:
        if not isinstance(self.step, str):
            return np.append(steps, self.learning_rate * self.step)
        along = told[-1]
        step = _line_search(loss, targets, weights, scores, along)
        if self.step == "line_search":
            return np.append(steps, self.learning_rate * step)
        matrix = np.array(told).T

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
        """Scores before the first round and after each."""
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


class _Constant:
    """A learner that says the same about every row."""

    def __init__(self, value: int) -> None:
        self.value = value

    def predict(self, X: Any) -> Any:
        return np.full(X.shape[0] if hasattr(X, "shape") else len(X), self.value)


def best_constant(loss: Loss, targets: Any, weights: Any) -> float:
    """Find the constant score with the least loss."""
    found = minimize_scalar(
        lambda c: float(weights @ loss(targets, np.full(len(targets), c))[0]),
        bracket=(float(targets.min()), float(targets.max()))
        if np.ptp(targets) > 0
        else (float(targets[0]) - 1, float(targets[0]) + 1),
    )
    return float(found.x)


def _line_search(loss: Loss, targets: Any, weights: Any, scores: Any, along: Any) -> float:
    """Find the step where the loss stops falling: a zero of its derivative."""

    def slope(step: float) -> float:
        with np.errstate(over="ignore"):
            return float(weights @ (loss(targets, scores + step * along)[1] * along))

    if not slope(0.0) < 0:  # downhill only by the rounding of another sum
        return 0.0
    upper = 1.0
    while slope(upper) < 0:
        upper *= 2
        if upper > _LARGEST_STEP:
            return _LARGEST_STEP
    return float(brentq(slope, 0.0, upper, xtol=1e-14, rtol=1e-14))
