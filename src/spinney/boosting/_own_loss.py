"""Derivatives of a user-defined loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spinney.boosting._loss import Loss

__all__ = ["custom_derivatives"]


def custom_derivatives(function: Any, loss: Loss, targets: Any, scores: Any) -> Callable[[], Any]:
    """Return the core's callback for the derivatives of a user-defined loss.

    Parameters
    ----------
    function : callable
        The loss: it takes (targets, raw scores) and returns (gradient, hessian).
    loss : Loss
        The loss for the core; only its number of targets is read.
    targets : ndarray of shape (n_rows,)
        The targets.
    scores : ndarray of shape (1, n_rows)
        The raw scores; the core updates them in place.
    """
    if loss.n_targets > 1:
        raise ValueError("loss: a function supports one output; y has several")
    # Loss objects of scikit-learn are callable, but return the loss instead of derivatives.
    differentiate = getattr(function, "gradient_hessian", function)

    def derivatives() -> tuple[Any, Any]:
        returned = differentiate(targets, scores[0])
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ValueError("loss: expected a function that returns (gradient, hessian)")
        gradient, hessian = (np.asarray(values, dtype=np.float64) for values in returned)
        for name, values in (("gradient", gradient), ("hessian", hessian)):
            if values.shape != targets.shape:
                raise ValueError(
                    f"loss: expected a {name} of shape {targets.shape}, got {values.shape}"
                )
            if not np.isfinite(values).all():
                raise ValueError(f"loss: its {name} contains NaN or infinity")
        if (hessian < 0).any():
            raise ValueError("loss: its hessian has negative values")
        return np.ascontiguousarray(gradient), np.ascontiguousarray(hessian)

    return derivatives
