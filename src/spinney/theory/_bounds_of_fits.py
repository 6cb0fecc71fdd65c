"""Bounds for fits of AdaBoost and of the perceptron."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

__all__ = ["adaboost_bound", "perceptron_bound"]


def adaboost_bound(errors: Any, *, from_edges: bool = False) -> float:
    """Return AdaBoost's bound of the training error, ∏ 2 √(ε_t (1 − ε_t)).

    With edges γ_t = ½ − ε_t it is ∏ √(1 − 4 γ_t²).

    Parameters
    ----------
    errors : array-like of shape (n_rounds,)
        Weighted errors ε_t of the weak learners, each on its own distribution, in [0, 1]; or, with
        `from_edges`, their edges γ_t = ½ − ε_t.
    from_edges : bool, default=False
        Whether edges are given.

    Returns
    -------
    float
        Upper bound of the training error of the weighted vote, with the initial row weights.

    Examples
    --------
    Weak learners that are always right in 60 % of the cases:

    >>> from spinney.theory import adaboost_bound
    >>> round(adaboost_bound([0.4] * 100), 4)
    0.1299
    >>> round(adaboost_bound([0.1] * 100, from_edges=True), 4)
    0.1299
    """
    values = np.asarray(errors, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"errors: expected an array (rounds,), got shape {values.shape}")
    edges = values if from_edges else 0.5 - values
    if not (np.abs(edges) <= 0.5).all():
        expected = "edges in [-1/2, 1/2]" if from_edges else "errors in [0, 1]"
        raise ValueError(f"errors: expected {expected}")
    return float(np.prod(np.sqrt((1 - 2 * edges) * (1 + 2 * edges))))


def perceptron_bound(
    X: Any, y: Any, coef: Any = None, intercept: float = 0.0, *, fit_intercept: bool = True
) -> float:
    """Return Novikoff's bound (R/γ)² of the perceptron's mistakes on separable rows.

    R is the length of the longest row and γ the margin of a separating hyperplane. With
    `fit_intercept` both are computed with an additional feature of value 1. The bound holds for
    every separating hyperplane; the one with the largest margin gives the smallest bound.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Rows.
    y : array-like of shape (n_samples,)
        Two classes; `coef` points to the side of the second.
    coef : array-like of shape (n_features,), default=None
        Normal of the hyperplane; None: found by `HalfspaceClassifier`.
    intercept : float, default=0.0
        Intercept of the hyperplane.
    fit_intercept : bool, default=True
        Whether the perceptron has an intercept.

    Returns
    -------
    float
        The bound; infinite if the hyperplane does not separate the classes, or if none does.

    Examples
    --------
    >>> from spinney.theory import perceptron_bound
    >>> perceptron_bound([[3.0], [1.0], [-1.0], [-2.0]], [1, 1, 0, 0], [1.0], fit_intercept=False)
    9.0
    """
    X = check_array(X, dtype=np.float64, input_name="X")
    y = np.asarray(y)
    check_consistent_length(X, y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y: expected two classes, got {len(classes)}")
    if coef is None:
        # Imported only here, as the other functions need no estimators.
        from spinney.linear_model import HalfspaceClassifier

        halfspace = HalfspaceClassifier(fit_intercept=fit_intercept).fit(X, y)
        if not halfspace.separable_:
            return float("inf")
        coef, intercept = halfspace.coef_[0], halfspace.intercept_[0]
    normal = np.asarray(coef, dtype=np.float64).ravel()
    if len(normal) != X.shape[1]:
        raise ValueError(f"coef: expected {X.shape[1]} numbers, got {len(normal)}")
    if fit_intercept:
        X = np.column_stack([X, np.ones(len(X))])
        normal = np.append(normal, float(intercept))
    elif intercept != 0:
        raise ValueError(f"intercept: expected 0 with fit_intercept=False, got {intercept!r}")
    length = np.linalg.norm(normal)
    if length == 0:
        return float("inf")
    margin = np.min(np.where(y == classes[1], 1.0, -1.0) * (X @ (normal / length)))
    if margin <= 0:
        return float("inf")
    return float((np.linalg.norm(X, axis=1).max() / margin) ** 2)
