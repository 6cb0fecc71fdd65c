"""Errors of linear models: by normal theory or from leave-one-out residuals.

Let x be a centred row and A the sums of products of columns plus the penalty. The *leverage* of a
training row is h = w (1/n + x'A⁻¹x). Its leave-one-out error is e / (1 - h), where e is its
residual. The error of a new row has the variance σ² (1 + 1/n + x'A⁻¹x). The leave-one-out error
divided by the root of the factor of σ² is the studentised residual e / √(1 - h), for every row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg, special

from spinney.conformal.mixins import HeldOut, IntervalMixin, check_method
from spinney.conformal.rules import Floats, check_coverage
from spinney.data.sklearn_versions import validate_data
from spinney.linear_model._least_squares import Moments, column_lengths
from spinney.linear_model.design import Design

__all__ = ["LinearErrors", "LinearIntervals", "measure_errors"]

_EPS = float(np.finfo(np.float64).eps)
_MOST_PRODUCTS = 2e7  # products to compute leverages: little compared with most fits
_FEWEST, _MOST = 1_000, 5_000  # limits of the number of rows whose residuals are kept
_METHODS = ("auto", "conformal", "normal")


@dataclass(frozen=True)
class LinearErrors:
    """Errors of a linear model, from which intervals are computed.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        Means of the columns; zeros without an intercept.
    root : ndarray of shape (n_features, rank)
        The matrix R with x'A⁻¹x = |R'x|².
    of_mean : float
        1/n with an intercept, else 0.
    sigma : ndarray of shape (n_targets,)
        Standard deviations of the noise; NaN if no degrees of freedom are left.
    degrees : float
        Degrees of freedom of the noise.
    left_out : HeldOut
        Studentised residuals of the rows (or of a sample), stored as `truth` around zero.
    """

    centre: Floats
    root: Floats
    of_mean: float
    sigma: Floats
    degrees: float
    left_out: HeldOut

    def spread(self, X: Any) -> Floats:
        """Return standard deviations of new errors in units of the noise, (n_rows, 1)."""
        return np.sqrt(1 + self.of_mean + _squares(X, self.centre, self.root))[:, None]


def _squares(X: Any, centre: Floats, root: Floats) -> Floats:
    """Return x'A⁻¹x of each row."""
    if sp.issparse(X):
        rotated = np.asarray(X @ root) - centre @ root
    else:
        rotated = (np.asarray(X, dtype=np.float64) - centre) @ root
    return np.asarray(np.einsum("ij,ij->i", rotated, rotated))


def _root_of_inverse(moments: Moments, alpha: float) -> Floats:
    """Return R with R R' = (xx + alpha)⁻¹; of the pseudoinverse if it is singular."""
    lengths = column_lengths(moments)
    scales = np.sqrt(lengths**2 + alpha)
    scales[scales == 0] = 1.0
    matrix = (moments.xx + alpha * np.eye(len(scales))) / np.outer(scales, scales)
    factor, failed = linalg.lapack.dpotrf(matrix, lower=1)
    if not failed:
        rcond, _ = linalg.lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
        if rcond > 1e-12:
            inverse = linalg.lapack.dtrtri(factor, lower=1)[0]
            return np.ascontiguousarray(np.tril(inverse).T / scales[:, None])
    values, basis = linalg.eigh(matrix)
    kept = values > len(values) * _EPS * max(values[-1], _EPS)
    return np.ascontiguousarray(basis[:, kept] / np.sqrt(values[kept]) / scales[:, None])


def measure_errors(
    design: Design,
    targets: Floats,
    moments: Moments,
    coef: Floats,
    alpha: float = 0.0,
    *,
    fit_intercept: bool,
) -> LinearErrors | None:
    """Return the errors of a fit, or None.

    They need rows in memory, and more rows than columns.

    Parameters
    ----------
    design : Design
        The rows.
    targets : ndarray of shape (n_rows, n_targets)
        Their targets.
    moments : Moments
        Their moments.
    coef : ndarray of shape (n_features, n_targets)
        Coefficients of the fit.
    alpha : float
        The penalty.
    fit_intercept : bool
        Whether there is an intercept.
    """
    if not isinstance(targets, np.ndarray):  # rows in other processes: no sample is kept
        return None
    d = design.n_features
    if not moments.is_finite or moments.xx.shape != (d, d) or d == 0:
        return None
    root = _root_of_inverse(moments, alpha)
    of_mean = 1 / moments.total if fit_intercept else 0.0
    weights = design.weights
    counted: Any = slice(None) if weights is None else np.flatnonzero(weights > 0)
    n_counted = design.n_rows if weights is None else len(counted)
    n_kept = int(min(_MOST, max(_FEWEST, _MOST_PRODUCTS / d**2)))
    rows = counted
    if n_counted > n_kept:
        rows = np.unique(np.random.default_rng(0).integers(n_counted, size=n_kept))
        rows = rows if weights is None else counted[rows]
    sample = design.X[rows]
    row_weights = np.ones(sample.shape[0]) if weights is None else weights[rows]
    leverages = row_weights * (of_mean + _squares(sample, moments.means, root))
    intercept = moments.target_means - moments.means @ coef
    residuals = targets[rows] - (sample @ coef + intercept)
    # A row with leverage 1 is always fitted exactly: its residual has no information.
    informative = leverages < 1 - 1e-9
    studentised = residuals[informative] / np.sqrt(1 - leverages[informative])[:, None]
    # The sum of all leverages without the intercept: the rank, reduced by the penalty.
    used = float(root.shape[1])
    if alpha > 0:
        used = float(np.einsum("ij,ij->", root, moments.xx @ root))
    degrees = n_counted - used - int(fit_intercept)
    squares = moments.yy - 2 * np.einsum("ij,ij->j", coef, moments.xy)
    squares += np.einsum("ij,ij->j", coef, moments.xx @ coef)
    if (squares < 1e-6 * moments.yy).any():
        # The difference has lost its digits: sum the squared residuals of the rows instead.
        all_residuals = targets[counted] - (design.X[counted] @ coef + intercept)
        squares = np.square(all_residuals).T @ (
            np.ones(len(all_residuals)) if weights is None else weights[counted]
        )
    sigma = np.sqrt(np.maximum(squares, 0) / degrees) if degrees > 0 else squares * np.nan
    held = HeldOut(
        "leave-one-out residuals",
        np.asarray(studentised),
        np.zeros(studentised.shape),
        weights=None if weights is None else row_weights[informative],
        rows=np.arange(design.n_rows)[rows][informative],
    )
    return LinearErrors(moments.means, root, of_mean, sigma, float(degrees), held)


class LinearIntervals(IntervalMixin):
    """`predict_interval` of a linear model whose fit sets `_errors`."""

    fit_intercept: bool

    def _linear_errors(self) -> LinearErrors:
        errors = vars(self).get("_errors")
        if errors is None:
            raise ValueError(
                f"{type(self).__name__} has no errors for intervals: they require more rows than "
                "columns, no sign constraints, one penalty and a direct solver; use "
                "spinney.calibration.ConformalRegressor, which adds intervals to any regressor, or "
                "pass held-out rows as calibration=(X, y)"
            )
        return errors  # type: ignore[no-any-return]

    def _held_out_rows(self) -> HeldOut:
        return self._linear_errors().left_out

    @property
    def interval_method_(self) -> str:
        """Description of how ``method="auto"`` makes intervals, and from which rows."""
        method = super().interval_method_
        return f"{method}; the t distribution if these are too few for the coverage"

    def _predict_with_scale(self, X: Any) -> tuple[Floats, Any]:
        predicted = np.asarray(self.predict(X), dtype=np.float64)  # type: ignore[attr-defined]
        if vars(self).get("_errors") is None:
            return predicted, None
        spread = self._linear_errors().spread(_rows(self, X))
        n_targets = predicted.size // max(len(predicted), 1)
        return predicted, np.broadcast_to(spread, (len(predicted), n_targets)).reshape(
            predicted.shape
        )

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Floats:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval.
        method : {"auto", "conformal", "normal"}, default="auto"
            "conformal": quantiles of the leave-one-out errors determine how far an interval reaches
            below and above the prediction. Errors are scaled by their standard deviation, which
            depends on the leverage of the row. "normal": the t distribution, exact for independent
            normal errors of equal variance. "auto": "conformal", or "normal" if there are too few
            rows for the coverage, where "conformal" returns infinite ends.
        calibration : tuple (X, y), default=None
            Held-out rows and their targets, whose errors "conformal" uses instead.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        coverage = check_coverage(coverage)
        check_method(method, _METHODS)
        if calibration is not None:
            if method == "normal":
                raise ValueError("calibration: expected None with method='normal'; got (X, y)")
            return super().predict_interval(X, coverage, method, calibration)
        predicted = np.asarray(self.predict(X), dtype=np.float64)  # type: ignore[attr-defined]
        errors = self._linear_errors()
        tail = (1 - coverage) / 2
        if method == "auto" and (len(errors.left_out) + 1) * tail < 1:
            method = "normal"
        spread = errors.spread(_rows(self, X))
        if method == "conformal" or method == "auto":
            flat = predicted.reshape(len(predicted), -1)
            ends = errors.left_out.interval(flat, np.broadcast_to(spread, flat.shape), coverage)
            return ends.reshape(*predicted.shape, 2)
        if errors.degrees <= 0:
            raise ValueError(
                "method='normal': expected more rows than coefficients, to estimate the variance "
                f"of the errors; got {errors.degrees:g} degrees of freedom"
            )
        half = special.stdtrit(errors.degrees, 1 - tail) * errors.sigma * spread
        half = half.reshape(predicted.shape)
        return np.stack([predicted - half, predicted + half], axis=-1)


def _rows(model: Any, X: Any) -> Any:
    """Return rows as floats, after `predict` has checked them."""
    if sp.issparse(X):
        return X.tocsr()
    return validate_data(model, X, dtype=np.float64, reset=False)
