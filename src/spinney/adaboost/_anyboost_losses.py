"""Losses for functional gradient descent: value and first derivative of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CLASS_LOSSES", "NUMBER_LOSSES", "Loss", "as_loss"]

# Of (targets, scores): the loss of each row, and its derivative by the score.
Loss = Callable[[Any, Any], tuple[Any, Any]]


def exponential(sign: Any, score: Any) -> tuple[Any, Any]:
    """Exponential loss of signs: that of AdaBoost."""
    value = np.exp(-sign * score)
    return value, -sign * value


def log_loss(sign: Any, score: Any) -> tuple[Any, Any]:
    """Logistic loss of signs."""
    agreement = sign * score
    return np.logaddexp(0, -agreement), -sign * np.exp(-np.logaddexp(0, agreement))


def squared_hinge(sign: Any, score: Any) -> tuple[Any, Any]:
    """Half of the square by which a margin of one is missed."""
    missed = np.maximum(0, 1 - sign * score)
    return 0.5 * missed**2, -sign * missed


def squared_error(y: Any, score: Any) -> tuple[Any, Any]:
    """Half of the squared error."""
    away = score - y
    return 0.5 * away**2, away


def absolute_error(y: Any, score: Any) -> tuple[Any, Any]:
    """Absolute error."""
    away = score - y
    return np.abs(away), np.sign(away)


def log_cosh(y: Any, score: Any) -> tuple[Any, Any]:
    """Square near zero, absolute error far away, smooth between."""
    away = score - y
    return np.logaddexp(away, -away) - np.log(2), np.tanh(away)


CLASS_LOSSES: dict[str, Loss] = {
    "exponential": exponential,
    "log_loss": log_loss,
    "squared_hinge": squared_hinge,
    "squared_error": squared_error,
}
NUMBER_LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "log_cosh": log_cosh,
}


def as_loss(given: Any, known: dict[str, Loss]) -> Loss:
    """Find a loss by its name, or check what a function of the user's returns."""
    if not callable(given):
        return known[given]

    def checked(y: Any, score: Any) -> tuple[Any, Any]:
        told = given(y, score)
        if not isinstance(told, tuple) or len(told) != 2:
            raise ValueError("loss: expected a function that returns (value, derivative)")
        out = []
        for name, values in zip(("value", "derivative"), told, strict=True):
            values = np.asarray(values, dtype=np.float64)
            if values.shape != score.shape:
                raise ValueError(
                    f"loss: expected a {name} of shape {score.shape}, got {values.shape}"
                )
            if np.isnan(values).any():
                raise ValueError(f"loss: its {name} contains NaN")
            out.append(values)
        return out[0], out[1]

    return checked
