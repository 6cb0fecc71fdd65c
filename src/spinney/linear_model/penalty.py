"""Penalty of a logistic regression, from its parameters and their deprecated forms."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = ["read_penalty"]


def read_penalty(model: Any) -> tuple[float, float]:
    """Return the strength of the penalty, and the share of the L1 penalty.

    Parameters
    ----------
    model : LogisticRegression
        The estimator, fitted or not. Deprecated parameters warn, contradictory ones raise.
    """
    ratio = model.l1_ratio
    if model.penalty != "deprecated":
        warnings.warn(
            "'penalty' was deprecated in version 1.8 of scikit-learn: use l1_ratio=0 instead "
            "of penalty='l2', l1_ratio=1 instead of penalty='l1', l1_ratio between 0 and 1 "
            "instead of penalty='elasticnet', and C=np.inf instead of penalty=None.",
            FutureWarning,
            stacklevel=3,
        )
        if model.penalty is None:
            if model.C != 1.0:
                warnings.warn(
                    "Setting penalty=None will ignore the C and l1_ratio parameters",
                    stacklevel=3,
                )
            return 0.0, 0.0
        if model.penalty == "elasticnet" and ratio is None:
            raise ValueError("l1_ratio must be specified when penalty is elasticnet.")
        if model.penalty != "elasticnet" and ratio is not None and 0 < ratio < 1:
            warnings.warn(
                "l1_ratio parameter is only used when penalty is 'elasticnet'. Got "
                f"(penalty={model.penalty})",
                stacklevel=3,
            )
        if ratio is not None and {"l1": 1, "l2": 0}.get(model.penalty, ratio) != ratio:
            warnings.warn(
                f"Inconsistent values: penalty={model.penalty} with l1_ratio={ratio}. penalty "
                "is deprecated. Please use l1_ratio only.",
                stacklevel=3,
            )
        ratio = {"l1": 1.0, "l2": 0.0}.get(model.penalty, ratio)
    elif ratio is None:
        warnings.warn(
            "'l1_ratio=None' was deprecated in version 1.8 of scikit-learn: use 0 instead.",
            FutureWarning,
            stacklevel=3,
        )
        ratio = 0.0
    if ratio and model.solver in ("newton-cg", "newton-cholesky", "sag"):
        kind = "l1" if ratio == 1 else "elasticnet"
        raise ValueError(
            f"Solver {model.solver} supports only 'l2' or None penalties, got {kind} penalty."
        )
    return 1.0 / model.C, float(ratio)
