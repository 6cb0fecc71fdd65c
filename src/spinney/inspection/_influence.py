"""Influence of rows on a linear model: leverage, residuals, Cook's distance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.special import expit
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from spinney.data.sklearn_versions import check_sample_weight
from spinney.inspection.table_view import as_numbers, as_vector
from spinney.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV
from spinney.linear_model.penalty import read_penalty

__all__ = ["Influence", "influence"]

Floats = NDArray[np.float64]

# Relative tolerances of the gradient, which is zero at the optimal coefficients: for direct solvers
# in double and single precision, and for iterative solvers.
_ROUNDED, _ROUNDED_SINGLE, _ITERATED = 1e-6, 1e-3, 0.02


@dataclass(frozen=True)
class Influence:
    """How much each row influences a fitted linear model.

    Attributes
    ----------
    leverage : ndarray of shape (n_rows,)
        The diagonal of the hat matrix: the effect of a row's target on its own prediction.
    residual : ndarray of shape (n_rows,)
        Target minus prediction; for a logistic model, Pearson residuals.
    standardised : ndarray of shape (n_rows,)
        Residuals over their standard deviation, estimated from all rows.
    studentised : ndarray of shape (n_rows,)
        Residuals over their standard deviation, estimated from all other rows; for a logistic
        model the same as `standardised`.
    cooks_distance : ndarray of shape (n_rows,)
        Cook's distance: the change of all predictions when the row is deleted, in units of the
        model's uncertainty.
    dffits : ndarray of shape (n_rows,)
        The change of the row's own prediction, in standard errors.
    n_parameters : float
        Trace of the hat matrix: the effective number of parameters.
    """

    leverage: Floats
    residual: Floats
    standardised: Floats
    studentised: Floats
    cooks_distance: Floats
    dffits: Floats
    n_parameters: float

    def largest(self, n: int) -> NDArray[np.intp]:
        """Return the n rows with the largest Cook's distance, the largest first."""
        return np.argsort(-self.cooks_distance, kind="stable")[:n]


def influence(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Influence:
    """Measure how much each row influences a linear model.

    Parameters
    ----------
    model : fitted LinearRegression, Ridge, RidgeCV or LogisticRegression
        The model, with one target or two classes. Its penalty, if any, is taken into account. For
        logistic models, L1 penalties are not supported, and the effect of deleting a row is
        approximated by one step of Newton's method.
    X : array-like or frame of shape (n_rows, n_features)
        The training rows.
    y : array-like of shape (n_rows,)
        Their targets. An error is raised if the coefficients are not optimal for these rows.
    sample_weight : array-like of shape (n_rows,), default=None
        The weights that `fit` was called with.

    Returns
    -------
    Influence
        Leverages, residuals and distances. A row with leverage 1 determines its own prediction: its
        residual is zero, and quantities divided by 1 - leverage are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.inspection import influence
    >>> from spinney.linear_model import LinearRegression
    >>> x, y = np.array([[0.0], [1], [2], [3], [10]]), np.array([0.1, 0.9, 2.1, 2.9, 4.0])
    >>> rows = influence(LinearRegression().fit(x, y), x, y)
    >>> int(rows.largest(1)[0]), round(float(rows.leverage[4]), 3)
    (4, 0.936)
    """
    check_is_fitted(model)
    if not isinstance(model, LinearRegression | Ridge | RidgeCV | LogisticRegression):
        raise ValueError(
            "model: expected LinearRegression, Ridge, RidgeCV or LogisticRegression, got "
            f"{type(model).__name__}"
        )
    rows = check_array(X, accept_sparse=True, dtype=np.float64)
    rows = rows.toarray() if hasattr(rows, "toarray") else rows
    if rows.shape[1] != model.n_features_in_:
        raise ValueError(f"X: expected {model.n_features_in_} columns, got {rows.shape[1]}")
    targets = as_vector(y)
    if len(targets) != len(rows):
        raise ValueError(f"y: expected {len(rows)} values, one for each row, got {len(targets)}")
    weights = np.ones(len(rows))
    if sample_weight is not None:
        weights = check_sample_weight(sample_weight, rows, ensure_non_negative=True)
    if isinstance(model, LogisticRegression):
        return _logistic_influence(model, rows, targets, weights)
    return _least_squares_influence(model, rows, as_numbers(targets, "y"), weights)


def _leverages(rows: Floats, weights: Floats, penalty: float, with_intercept: bool) -> Floats:
    """Return the hat matrix diagonal of weighted least squares with an L2 penalty."""
    root = np.sqrt(weights)
    leverage = np.zeros(len(rows))
    if with_intercept:
        # The intercept has no penalty: it centres the columns and adds w / sum(w).
        rows = rows - np.average(rows, axis=0, weights=weights)
        leverage += weights / weights.sum()
    scaled = rows * root[:, np.newaxis]
    if penalty > 0:
        scaled = np.concatenate([scaled, np.sqrt(penalty) * np.eye(rows.shape[1])])
    q, r, _ = _pivoted(scaled)
    rank = int(np.count_nonzero(np.abs(np.diag(r)) > _tolerance(scaled, r)))
    return leverage + (q[: len(rows), :rank] ** 2).sum(axis=1)


def _pivoted(matrix: Floats) -> tuple[Floats, Floats, Any]:
    """Return the QR decomposition with column pivoting."""
    q, r, order = qr(matrix, mode="economic", pivoting=True)
    return q, r, order


def _tolerance(matrix: Floats, r: Floats) -> float:
    """Return the largest diagonal element of R that counts as zero."""
    largest = float(np.abs(r[0, 0])) if r.size else 0.0
    return max(matrix.shape) * np.finfo(np.float64).eps * largest


def _precision(model: Any) -> float:
    """Return the relative tolerance of the gradient for the model's solver."""
    solvers = {getattr(model, name, None) for name in ("solver", "solver_")}
    if solvers & {"lsqr", "sparse_cg", "sag", "saga", "lbfgs"}:
        return _ITERATED
    return _ROUNDED_SINGLE if np.asarray(model.coef_).dtype == np.float32 else _ROUNDED


def _check_training_rows(slope: Floats, allowed: Floats) -> None:
    """Raise an error unless the gradient at the coefficients is zero for these rows."""
    if not (np.abs(slope) <= allowed).all():
        raise ValueError(
            "X, y, sample_weight: expected the training rows and their weights, got others: the "
            "model's coefficients are not optimal for these rows"
        )


def _least_squares_influence(model: Any, rows: Floats, y: Floats, weights: Floats) -> Influence:
    """Return the influence of rows on a model of least squares or ridge regression."""
    if np.ndim(model.coef_) > 1 and len(model.coef_) > 1:
        raise ValueError(f"model: expected one target, got {len(model.coef_)}")
    if getattr(model, "positive", False):
        raise ValueError(
            "model: expected positive=False, got positive=True, for which there is no hat matrix"
        )
    penalty = 0.0
    if isinstance(model, RidgeCV):
        penalty = float(model.alpha_)
    elif isinstance(model, Ridge):
        penalty = float(np.ravel(model.alpha)[0])
    if not (weights > 0).any():
        raise ValueError("sample_weight: expected at least one positive weight, got none")
    leverage = _leverages(rows, weights, penalty, bool(model.fit_intercept))
    coef = np.ravel(model.coef_).astype(np.float64)
    predicted = rows @ coef + np.ravel(model.intercept_)[0]
    residual = (y - predicted) * np.sqrt(weights)
    with_one = np.column_stack([rows, np.ones(len(rows))]) if model.fit_intercept else rows
    slope = with_one.T @ (weights * (y - predicted))
    slope[: len(coef)] -= penalty * coef
    lengths = np.sqrt(weights @ with_one**2)
    largest = np.sqrt(weights @ y**2) + np.abs(coef) @ lengths[: len(coef)]
    allowed = _precision(model) * lengths * largest
    allowed[: len(coef)] += _precision(model) * penalty * np.abs(coef)
    _check_training_rows(slope, allowed)
    n_parameters = float(leverage.sum())
    n_rows = int(np.count_nonzero(weights))
    freedom = n_rows - n_parameters
    squares = float(residual @ residual)
    rest = np.where(1 - leverage > 1e-10, 1 - leverage, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = squares / freedom if freedom > 1e-10 else np.nan
        standardised = residual / np.sqrt(variance * rest)
        # Deleting row i reduces the sum of squares by residual_i^2 / (1 - leverage_i).
        without = (squares - residual**2 / rest) / (freedom - 1) if freedom > 1 else np.nan
        studentised = residual / np.sqrt(np.maximum(without, 0) * rest)
        cooks = standardised**2 * leverage / rest / n_parameters
        dffits = studentised * np.sqrt(leverage / rest)
    return Influence(leverage, residual, standardised, studentised, cooks, dffits, n_parameters)


def _logistic_influence(model: Any, rows: Floats, y: NDArray[Any], weights: Floats) -> Influence:
    """Return the influence of rows on a logistic regression, by one Newton step."""
    if len(model.classes_) != 2:
        raise ValueError(f"model: expected two classes, got {len(model.classes_)}")
    unknown = ~np.isin(y, model.classes_)
    if unknown.any():
        raise ValueError(f"y: expected classes of the model, got {y[unknown].tolist()[0]!r}")
    penalty, share = read_penalty(model)
    if share * penalty > 0:
        raise ValueError("model: expected an L2 penalty or none, got an L1 penalty")
    if getattr(model, "class_weight", None) is not None:
        raise ValueError(
            f"model: expected class_weight=None, got {model.class_weight!r}; use sample_weight "
            "instead"
        )
    is_second = (y == model.classes_[1]).astype(np.float64)
    shares = expit(rows @ np.ravel(model.coef_) + np.ravel(model.intercept_)[0])
    spread = shares * (1 - shares)
    curvature = weights * spread
    coef = np.ravel(model.coef_)
    if model.fit_intercept:
        rows = np.column_stack([np.ones(len(rows)), rows])
        coef = np.concatenate([[0.0], coef])  # the intercept has no penalty
    diagonal = np.full(rows.shape[1], float(penalty))
    if model.fit_intercept:
        diagonal[0] = 0.0
    if np.max(model.n_iter_) < model.max_iter:  # otherwise the solver has not converged
        slope = rows.T @ (weights * (is_second - shares)) - penalty * coef
        reached = 2 * model.tol * weights.sum()
        added_up = weights @ np.abs(rows) + penalty * np.abs(coef)
        # Large terms that cancel in a row's score leave rounding errors of this relative size.
        terms = (np.abs(rows) @ np.abs(coef)).max() + np.abs(model.intercept_).max()
        share = _ROUNDED_SINGLE + float(terms * np.finfo(model.coef_.dtype).eps)
        _check_training_rows(slope, reached + share * added_up)
    scaled = rows * np.sqrt(curvature)[:, np.newaxis]
    stacked = np.concatenate([scaled, np.diag(np.sqrt(diagonal))])
    _, r, order = _pivoted(stacked)
    rank = int(np.count_nonzero(np.abs(np.diag(r)) > _tolerance(stacked, r)))
    half = solve_triangular(r[:rank, :rank], scaled[:, order[:rank]].T, trans="T")
    leverage = (half**2).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        residual = (is_second - shares) * np.sqrt(weights) / np.sqrt(spread)
        rest = np.where(1 - leverage > 1e-10, 1 - leverage, np.nan)
        standardised = residual / np.sqrt(rest)
        n_parameters = float(leverage.sum())
        cooks = standardised**2 * leverage / rest / n_parameters
        dffits = standardised * np.sqrt(leverage / rest)
    return Influence(leverage, residual, standardised, standardised, cooks, dffits, n_parameters)
