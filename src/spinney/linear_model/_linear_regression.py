"""Linear regression by least squares."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.base import _fit_context
from sklearn.linear_model import LinearRegression as _SklearnLinearRegression
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.linear_model._extreme_values import (
    check_coefficients,
    normalize_extreme_weights,
    rescale,
)
from spinney.linear_model._least_squares import Solution, collect_moments, solve_least_squares
from spinney.linear_model._leave_one_out import LinearErrors, LinearIntervals, measure_errors
from spinney.linear_model._row_products import RowwisePredictions
from spinney.linear_model._summary import Summary, summarise
from spinney.linear_model.design import Design
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LinearRegression"]

_MOST_SPARSE = 2_000  # sparse rows with more columns are solved iteratively


class LinearRegression(RowwisePredictions, ModelMethods, LinearIntervals, _SklearnLinearRegression):  # type: ignore[misc]
    """Least squares, by the fastest accurate method.

    One pass sums the centred moments of the rows, without a copy of X. If the columns are well
    conditioned, the normal equations are solved by Cholesky. Otherwise the rows are reduced by QR,
    one block at a time. If columns depend on each other, the solution is the shortest of all, by
    singular values. These decisions scale columns to length one, so that units do not matter.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is an intercept.
    copy_X : bool, default=True
        Whether to copy X with `positive`; without it X is never changed.
    tol : float, default=1e-6
        Tolerance of the iterations for sparse rows with more than 2000 columns; not used otherwise.
        With scikit-learn 1.6 it is always 1e-6.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.
    positive : bool, default=False
        Whether coefficients must not be negative (scikit-learn's solver).

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    solver_ : str
        "cholesky", "qr", "svd", "lsqr" or "nnls".
    rank_ : int
        Rank of X, centred if there is an intercept.
    singular_ : ndarray
        Singular values of this matrix.
    condition_ : float
        Condition number of the columns, scaled to length one; infinite if they depend on each
        other.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.linear_model import LinearRegression
    >>> X = np.arange(12.0).reshape(6, 2) ** 2
    >>> y = 1 + X @ [0.5, -0.25]
    >>> model = LinearRegression().fit(X, y)
    >>> model.coef_.round(6), round(float(model.intercept_), 6), model.solver_
    (array([ 0.5 , -0.25]), 1.0, 'qr')
    """

    _parameter_constraints: dict[str, Any] = {
        **_SklearnLinearRegression._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        tol: float = 1e-6,
        n_jobs: int | None = None,
        positive: bool = False,
    ) -> None:
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.tol = tol
        self.n_jobs = n_jobs
        self.positive = positive

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        LinearRegression
            The estimator.
        """
        self._solution: Solution | None = None
        self._errors: LinearErrors | None = None
        for name in ("rank_", "singular_", "condition_"):  # of the previous fit
            if hasattr(self, name):
                delattr(self, name)
        if self.positive:
            if sample_weight is not None:
                sample_weight = check_sample_weight(sample_weight, X)
            self.solver_ = "nnls"
            return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=(np.float64, np.float32),
            y_numeric=True,
            multi_output=True,
            ensure_all_finite=sp.issparse(X),
        )
        weights = sample_weight
        if weights is not None:
            weights = check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
            if not weights.any():
                raise ValueError("sample_weight: expected a positive weight, got zeros only")
            weights = normalize_extreme_weights(weights)
        if sp.issparse(X) and X.shape[1] > _MOST_SPARSE:
            return self._fit_iteratively(X, y, sample_weight)
        design = Design(X, weights, effective_n_jobs(self.n_jobs))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        n_rows = design.n_rows if weights is None else int((weights > 0).sum())
        return self._fit_design(design, targets, y.ndim, X.dtype, n_rows)

    def _fit_design(
        self, design: Design, targets: Any, n_dimensions: int, dtype: Any, n_rows: int
    ) -> LinearRegression:
        """Fit to validated rows, of which `n_rows` have positive weight."""
        moments = collect_moments(design, targets, self.fit_intercept)
        if not moments.is_finite:
            design.check_finite(self)
        rescaled = None
        if moments.is_extreme and isinstance(targets, np.ndarray):
            rescaled = rescale(design, targets, tiny=True)
        if rescaled is not None:
            design, targets = rescaled.design, rescaled.targets
            moments = collect_moments(design, targets, self.fit_intercept)
        solution = solve_least_squares(design, targets, moments)
        intercept = moments.target_means - moments.means @ solution.coef
        if rescaled is not None:
            solution = replace(solution, coef=rescaled.restore_coef(solution.coef), spread=None)
            intercept = rescaled.restore_targets(intercept)
        check_coefficients(self, solution.coef, intercept)
        self._keep(solution, n_dimensions, dtype)
        self.intercept_: Any = 0.0
        if self.fit_intercept:
            intercept = intercept.astype(dtype)
            self.intercept_ = intercept[0] if n_dimensions == 1 else intercept
        if rescaled is not None:  # squared errors overflow or underflow
            return self
        self._facts = n_rows, moments.yy, moments.total
        self._errors = measure_errors(
            design, targets, moments, solution.coef, fit_intercept=self.fit_intercept
        )
        return self

    def _keep(self, solution: Solution, n_dimensions: int, dtype: Any) -> None:
        coef = solution.coef.T.astype(dtype)
        self.coef_ = coef[0] if n_dimensions == 1 else coef
        self.rank_, self.singular_ = solution.rank, solution.singular.astype(dtype)
        self.condition_, self.solver_ = solution.condition, solution.solver
        self._solution = solution

    def _fit_iteratively(self, X: Any, y: Any, sample_weight: Any) -> LinearRegression:
        self.solver_ = "lsqr"
        return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]

    def summary(self, confidence: float = 0.95, target: int = 0) -> Summary:
        """Return standard errors, tests and confidence intervals of the coefficients.

        They are exact for independent normal errors of equal variance.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals, between 0 and 1.
        target : int, default=0
            Index of the target.

        Returns
        -------
        Summary
            The table, whose columns are attributes; `print` shows it.

        Raises
        ------
        ValueError
            If columns depend on each other, there are not more rows than coefficients, or the
            target does not exist.
        """
        check_is_fitted(self)
        solution = self._solution
        if solution is None or solution.spread is None:
            raise ValueError(
                "summary: standard errors require independent columns, values whose squares do not "
                f"overflow, and a direct solver; this fit used solver_={self.solver_!r}"
            )
        n_targets = solution.coef.shape[1]
        if not 0 <= target < n_targets:
            raise ValueError(f"target: expected an index from 0 to {n_targets - 1}, got {target}")
        n_rows, total_squares, total = self._facts
        n_coefficients = len(solution.coef) + int(self.fit_intercept)
        degrees = n_rows - n_coefficients
        if degrees < 1:
            raise ValueError(
                f"summary: expected more rows than the {n_coefficients} coefficients, got {n_rows} "
                "rows"
            )
        residual = float(solution.residual[target])
        variance = residual / degrees
        diagonal, mean_variance = solution.spread
        coef, errors = solution.coef[:, target], np.sqrt(variance * diagonal)
        names = [str(name) for name in self._names()]
        if self.fit_intercept:
            intercept = float(np.atleast_1d(self.intercept_)[target])
            coef = np.concatenate([[intercept], coef])
            errors = np.concatenate([[np.sqrt(variance * (1 / total + mean_variance))], errors])
            names = ["(intercept)", *names]
        total_square = float(total_squares[target])
        # A constant target has no variance to explain.
        r2 = 1 - residual / total_square if total_square > 0 else np.nan
        total_degrees = n_rows - int(self.fit_intercept)
        n_slopes = len(solution.coef)
        f = (total_square - residual) / n_slopes / variance if variance > 0 else np.nan
        facts = {
            "n_rows": float(n_rows),
            "r2": r2,
            "adjusted_r2": 1 - (1 - r2) * total_degrees / degrees,
            "residual_std": float(np.sqrt(variance)),
            "f": f,
            "f_p_value": float(stats.f.sf(f, n_slopes, degrees)),
            "degrees_of_freedom": float(degrees),
        }
        return summarise(
            names, coef, errors, confidence=confidence, degrees=float(degrees), facts=facts
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.positive
        return tags

    def _names(self) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else names
