"""Least squares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import stats
from sklearn.base import _fit_context
from sklearn.linear_model import LinearRegression as _Theirs
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from spinney.linear_model._errors import LinearErrors, LinearIntervals, measure_errors
from spinney.linear_model._extreme_values import check_coefficients, rescale, tame_weights
from spinney.linear_model._least_squares import Solution, collect_moments, solve_least_squares
from spinney.linear_model._row_products import RowwisePredictions
from spinney.linear_model._summary import Summary, summarise
from spinney.linear_model.design import Design
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LinearRegression"]

_MOST_SPARSE = 2_000  # columns of sparse rows up to which their moments are summed


class LinearRegression(RowwisePredictions, ModelMethods, LinearIntervals, _Theirs):  # type: ignore[misc]
    """Least squares, by the cheapest way that is safe.

    One pass sums the moments of the rows about their means, without a copy of X. Where the columns
    are far from depending on each other, the normal equations are solved by Cholesky; else the
    rows are reduced by QR, a block at a time, and where columns do depend on each other the
    shortest of all solutions is found by singular values. Columns are brought to length one for
    these decisions, so that units of measurement do not matter.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether there is an intercept.
    copy_X : bool, default=True
        As in scikit-learn; X is never changed, except with `positive`.
    tol : float, default=1e-6
        Of the iterations for sparse rows with very many columns; other ways need none.
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
        Rank of X, about its means if there is an intercept.
    singular_ : ndarray
        Singular values of the same.
    condition_ : float
        Condition of the columns, each brought to length one; infinite where they depend on each
        other.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, if there are any.

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
            Weights of rows.

        Returns
        -------
        LinearRegression
            The estimator.
        """
        self._solution: Solution | None = None
        self._errors: LinearErrors | None = None
        for name in ("rank_", "singular_", "condition_"):  # of a fit before
            if hasattr(self, name):
                delattr(self, name)
        if self.positive:
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
            weights = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
            if not weights.any():
                raise ValueError("sample_weight: expected a positive weight, got zeros only")
            weights = tame_weights(weights)
        if sp.issparse(X) and X.shape[1] > _MOST_SPARSE:
            return self._fit_iteratively(X, y, sample_weight)
        design = Design(X, weights, effective_n_jobs(self.n_jobs))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        n_rows = design.n_rows if weights is None else int((weights > 0).sum())
        return self._fit_design(design, targets, y.ndim, X.dtype, n_rows)

    def _fit_design(
        self, design: Design, targets: Any, n_dimensions: int, dtype: Any, n_rows: int
    ) -> LinearRegression:
        """Fit to rows that were read; `n_rows` have weight."""
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
        if rescaled is not None:  # squared errors are out of range
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
        """Tell how sure the coefficients are, if errors are normal and all alike.

        Parameters
        ----------
        confidence : float, default=0.95
            Level of the intervals.
        target : int, default=0
            Which target, where there are several.

        Returns
        -------
        Summary
            A table that prints itself, with the numbers as attributes.

        Raises
        ------
        ValueError
            If columns depend on each other, there are no more rows than coefficients, or there is
            no such target.
        """
        check_is_fitted(self)
        solution = self._solution
        if solution is None or solution.spread is None:
            raise ValueError(
                "summary: standard errors need columns that do not depend on each other, values "
                "whose squares float64 can hold, and a direct solution; this fit was solved by "
                f"{self.solver_!r}"
            )
        n_targets = solution.coef.shape[1]
        if not 0 <= target < n_targets:
            raise ValueError(f"target: expected a number from 0 to {n_targets - 1}, got {target}")
        n_rows, total_squares, total = self._facts
        n_coefficients = len(solution.coef) + int(self.fit_intercept)
        degrees = n_rows - n_coefficients
        if degrees < 1:
            raise ValueError(
                f"summary: {n_rows} rows leave no degrees of freedom for {n_coefficients} "
                "coefficients"
            )
        residual = float(solution.residual[target])
        variance = residual / degrees
        diagonal, of_mean = solution.spread
        coef, errors = solution.coef[:, target], np.sqrt(variance * diagonal)
        names = [str(name) for name in self._names()]
        if self.fit_intercept:
            intercept = float(np.atleast_1d(self.intercept_)[target])
            coef = np.concatenate([[intercept], coef])
            errors = np.concatenate([[np.sqrt(variance * (1 / total + of_mean))], errors])
            names = ["(intercept)", *names]
        around = float(total_squares[target])
        explained = 1 - residual / around if around > 0 else np.nan  # nothing to explain
        among = n_rows - int(self.fit_intercept)
        n_slopes = len(solution.coef)
        ratio = (around - residual) / n_slopes / variance if variance > 0 else np.nan
        facts = {
            "n_rows": float(n_rows),
            "r2": explained,
            "adjusted_r2": 1 - (1 - explained) * among / degrees,
            "residual_std": float(np.sqrt(variance)),
            "f": ratio,
            "f_p_value": float(stats.f.sf(ratio, n_slopes, degrees)),
            "degrees_of_freedom": float(degrees),
        }
        return summarise(names, coef, errors, confidence, float(degrees), facts)

    def _names(self) -> Any:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{i}" for i in range(self.n_features_in_)] if names is None else names
