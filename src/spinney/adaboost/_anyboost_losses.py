"""Losses for functional gradient descent: value and first derivative of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["CLASSIFICATION_LOSSES", "REGRESSION_LOSSES", "Loss", "resolve_loss"]

# loss(targets, scores) returns the loss of each row and its derivative by the score.
Loss = Callable[[Any, Any], tuple[Any, Any]]


def exponential(sign: Any, score: Any) -> tuple[Any, Any]:
    """Return the exponential loss of AdaBoost, for targets −1 and 1."""
    value = np.exp(-sign * score)
    return value, -sign * value


def log_loss(sign: Any, score: Any) -> tuple[Any, Any]:
    """Return the logistic loss, for targets −1 and 1."""
    margin = sign * score
    return np.logaddexp(0, -margin), -sign * np.exp(-np.logaddexp(0, margin))


def squared_hinge(sign: Any, score: Any) -> tuple[Any, Any]:
    """Return half of the squared hinge loss, for targets −1 and 1."""
    hinge = np.maximum(0, 1 - sign * score)
    return 0.5 * hinge**2, -sign * hinge


def squared_error(y: Any, score: Any) -> tuple[Any, Any]:
    """Return half of the squared error."""
    error = score - y
    return 0.5 * error**2, error


def absolute_error(y: Any, score: Any) -> tuple[Any, Any]:
    """Return the absolute error."""
    error = score - y
    return np.abs(error), np.sign(error)


def log_cosh(y: Any, score: Any) -> tuple[Any, Any]:
    """Return log cosh of the error: quadratic near zero, linear for large errors."""
    error = score - y
    return np.logaddexp(error, -error) - np.log(2), np.tanh(error)


CLASSIFICATION_LOSSES: dict[str, Loss] = {
    "exponential": exponential,
    "log_loss": log_loss,
    "squared_hinge": squared_hinge,
    "squared_error": squared_error,
}
REGRESSION_LOSSES: dict[str, Loss] = {
    "squared_error": squared_error,
    "absolute_error": absolute_error,
    "log_cosh": log_cosh,
}


def resolve_loss(given: Any, known: dict[str, Loss]) -> Loss:
    """Return the loss for a name, or a callable with checks of its results."""
    if not callable(given):
        return known[given]

    def checked(y: Any, score: Any) -> tuple[Any, Any]:
        result = given(y, score)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ValueError("loss: expected a function that returns (value, derivative)")
        out = []
        for name, values in zip(("value", "derivative"), result, strict=True):
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
