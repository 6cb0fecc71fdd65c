"""How far a linear model's predictions are off: by a formula, or by its rows left out in turn.

With x about the means and A the sums of products plus the penalty, a row's *leverage* is
h = w (1/n + x'A⁻¹x). The error of a row that is left out is e / (1 - h), and that of a new row
has the variance σ² (1 + 1/n + x'A⁻¹x). In units of its root the former is e / √(1 - h), whichever
row it is: a studentised residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg, special

from spinney.conformal.mixins import HeldOut, IntervalMixin, check_method
from spinney.conformal.rules import Floats, check_coverage
from spinney.linear_model._least_squares import Moments, column_lengths
from spinney.linear_model.design import Design

__all__ = ["LinearErrors", "LinearIntervals", "measure_errors"]

_EPS = float(np.finfo(np.float64).eps)
_WORK = 2e7  # products for the leverages of rows; most fits have many times as many
_FEWEST, _MOST = 1_000, 5_000  # rows whose residuals are kept
_METHODS = ("auto", "conformal", "normal")


@dataclass(frozen=True)
class LinearErrors:
    """What intervals of a linear model need.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        Means of the columns; zeros without an intercept.
    root : ndarray of shape (n_features, rank)
        R with x'A⁻¹x = |R'x|².
    of_mean : float
        1/n with an intercept, else 0.
    sigma : ndarray of shape (n_targets,)
        Standard deviations of the noise; NaN if no degrees of freedom are left.
    degrees : float
        Degrees of freedom of these.
    left_out : HeldOut
        Studentised residuals (as `truth`, around zero) of rows, or of some of very many.
    """

    centre: Floats
    root: Floats
    of_mean: float
    sigma: Floats
    degrees: float
    left_out: HeldOut

    def spread(self, X: Any) -> Floats:
        """Standard deviation of a new row's error in units of the noise, (n_rows, 1)."""
        return np.sqrt(1 + self.of_mean + _squares(X, self.centre, self.root))[:, None]


def _squares(X: Any, centre: Floats, root: Floats) -> Floats:
    if sp.issparse(X):
        turned = np.asarray(X @ root) - centre @ root
    else:
        turned = (np.asarray(X, dtype=np.float64) - centre) @ root
    return np.asarray(np.einsum("ij,ij->i", turned, turned))


def _root_of_inverse(moments: Moments, alpha: float) -> Floats:
    """R with R R' = (xx + alpha)⁻¹; where there is no inverse, on the columns that tell."""
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
    """Measure the errors of a fit; None where there are no more rows than columns, or none here.

    Parameters
    ----------
    design : Design
        The rows.
    targets : ndarray of shape (n_rows, n_targets)
        Their targets.
    moments : Moments
        Their moments.
    coef : ndarray of shape (n_features, n_targets)
        What was found.
    alpha : float
        The penalty.
    fit_intercept : bool
        Whether there is an intercept.
    """
    if not isinstance(targets, np.ndarray):  # rows that lie elsewhere, of which no sample is kept
        return None
    d = design.n_features
    if not moments.is_finite or moments.xx.shape != (d, d) or d == 0:
        return None
    root = _root_of_inverse(moments, alpha)
    of_mean = 1 / moments.total if fit_intercept else 0.0
    weights = design.weights
    counted: Any = slice(None) if weights is None else np.flatnonzero(weights > 0)
    n_counted = design.n_rows if weights is None else len(counted)
    n_kept = int(min(_MOST, max(_FEWEST, _WORK / d**2)))
    rows = counted
    if n_counted > n_kept:
        rows = np.unique(np.random.default_rng(0).integers(n_counted, size=n_kept))
        rows = rows if weights is None else counted[rows]
    some = design.X[rows]
    own = np.ones(some.shape[0]) if weights is None else weights[rows]
    leverages = own * (of_mean + _squares(some, moments.means, root))
    intercept = moments.target_means - moments.means @ coef
    residuals = targets[rows] - (some @ coef + intercept)
    # A row that its own coefficient fits exactly tells nothing.
    told = leverages < 1 - 1e-9
    studentised = residuals[told] / np.sqrt(1 - leverages[told])[:, None]
    # Sum of all leverages: the rank less what the penalty takes, and one for the intercept.
    used = float(root.shape[1])
    if alpha > 0:
        used = float(np.einsum("ij,ij->", root, moments.xx @ root))
    degrees = n_counted - used - int(fit_intercept)
    squares = moments.yy - 2 * np.einsum("ij,ij->j", coef, moments.xy)
    squares += np.einsum("ij,ij->j", coef, moments.xx @ coef)
    if (squares < 1e-6 * moments.yy).any():  # the difference has lost its digits: ask the rows
        every = targets[counted] - (design.X[counted] @ coef + intercept)
        squares = np.square(every).T @ (
            np.ones(len(every)) if weights is None else weights[counted]
        )
    sigma = np.sqrt(np.maximum(squares, 0) / degrees) if degrees > 0 else squares * np.nan
    held = HeldOut(
        "rows left out in turn",
        np.asarray(studentised),
        np.zeros(studentised.shape),
        weights=None if weights is None else own[told],
        rows=np.arange(design.n_rows)[rows][told],
    )
    return LinearErrors(moments.means, root, of_mean, sigma, float(degrees), held)


class LinearIntervals(IntervalMixin):
    """`predict_interval` of a linear model, whose fit leaves `_errors`."""

    fit_intercept: bool

    def _linear_errors(self) -> LinearErrors:
        errors = vars(self).get("_errors")
        if errors is None:
            raise ValueError(
                f"{type(self).__name__} knows its errors only with more rows than columns, no "
                "sign constraints, one penalty and a direct solution; "
                "spinney.calibration.ConformalRegressor gives intervals to any regressor, as do "
                "rows that fit did not see, given as calibration=(X, y)"
            )
        return errors  # type: ignore[no-any-return]

    def _held_out_rows(self) -> HeldOut:
        return self._linear_errors().left_out

    @property
    def interval_method_(self) -> str:
        """What intervals are made from, in words; of ``method="auto"``."""
        told = super().interval_method_
        return f"{told}; the t distribution for coverages that these are too few for"

    def _predict_with_scale(self, X: Any) -> tuple[Floats, Any]:
        told = np.asarray(self.predict(X), dtype=np.float64)  # type: ignore[attr-defined]
        if vars(self).get("_errors") is None:
            return told, None
        spread = self._linear_errors().spread(_rows(self, X))
        return told, np.broadcast_to(spread, (len(told), told.size // max(len(told), 1))).reshape(
            told.shape
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
            "conformal": the errors of rows that are left out in turn, which follow from the fit,
            say how far an interval must reach, below and above, in units of what the row's place
            among the others makes of the noise. "normal": the t distribution, right if errors are
            normal and all alike. "auto" is "conformal", and "normal" where there are too few rows
            for the coverage, which "conformal" answers with infinite ends.
        calibration : tuple (X, y), default=None
            Rows that fit did not see, and their targets: "conformal" takes their errors instead.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        coverage = check_coverage(coverage)
        check_method(method, _METHODS)
        if calibration is not None:
            if method == "normal":
                raise ValueError("calibration: method='normal' takes none")
            return super().predict_interval(X, coverage, method, calibration)
        told = np.asarray(self.predict(X), dtype=np.float64)  # type: ignore[attr-defined]
        errors = self._linear_errors()
        tail = (1 - coverage) / 2
        if method == "auto" and (len(errors.left_out) + 1) * tail < 1:
            method = "normal"
        spread = errors.spread(_rows(self, X))
        if method == "conformal" or method == "auto":
            flat = told.reshape(len(told), -1)
            ends = errors.left_out.interval(flat, np.broadcast_to(spread, flat.shape), coverage)
            return ends.reshape(*told.shape, 2)
        if errors.degrees <= 0:
            raise ValueError("method='normal': no degrees of freedom are left for the noise")
        half = special.stdtrit(errors.degrees, 1 - tail) * errors.sigma * spread
        half = half.reshape(told.shape)
        return np.stack([told - half, told + half], axis=-1)


def _rows(model: Any, X: Any) -> Any:
    """Rows as numbers; predict has checked them."""
    if sp.issparse(X):
        return X.tocsr()
    from sklearn.utils.validation import validate_data

    return validate_data(model, X, dtype=np.float64, reset=False)
