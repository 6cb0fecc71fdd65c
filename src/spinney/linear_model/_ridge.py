"""Ridge regression with a given penalty, or one chosen by leave-one-out errors."""

from __future__ import annotations

import numbers
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.linear_model import Ridge as _SklearnRidge
from sklearn.linear_model import RidgeCV as _SklearnRidgeCV
from sklearn.utils import check_array, check_scalar
from sklearn.utils._param_validation import Interval
from sklearn.utils.metadata_routing import _routing_enabled

from spinney import _core
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.linear_model._extreme_values import (
    check_coefficients,
    explain_overflow,
    largest_of_columns,
    rescale,
)
from spinney.linear_model._least_squares import (
    Moments,
    collect_moments,
    measure_lengths,
    reduce_rows,
    solve_least_squares,
)
from spinney.linear_model._leave_one_out import LinearErrors, LinearIntervals, measure_errors
from spinney.linear_model._row_products import RowwisePredictions
from spinney.linear_model.design import Design, Floats
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["Ridge", "RidgeCV"]

_MOST_SPARSE = 2_000  # sparse rows with more columns are left to scikit-learn
_EPS = float(np.finfo(np.float64).eps)
_SMALLEST_RCOND = 1e-10  # smallest reciprocal condition of normal equations


def _read(
    estimator: Any, X: Any, y: Any, sample_weight: Any, min_rows: int = 1
) -> tuple[Any, Any, Any]:
    """Validate X, y and the weights, and return them."""
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        y_numeric=True,
        multi_output=True,
        ensure_all_finite=sp.issparse(X),
        ensure_min_samples=min_rows,
    )
    if sample_weight is not None:
        sample_weight = check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    return X, y, sample_weight


def _as_targets(y: Any) -> Floats:
    """Return targets as a matrix, (n_rows, n_targets)."""
    return np.asarray(y, dtype=np.float64).reshape(len(y), -1)


def _solve(
    design: Design, Y: Floats, moments: Moments, alphas: Floats, shrunk: Any = None
) -> Floats:
    """Return coefficients, (n_features, n_targets); each target has its penalty.

    With `shrunk`, the root of the penalty of column j is divided by ``2**shrunk[j]``.
    """
    coef = np.empty((design.n_features, Y.shape[1]))
    for alpha in np.unique(alphas):
        chosen = alphas == alpha
        selected = replace(
            moments,
            target_means=moments.target_means[chosen],
            xy=moments.xy[:, chosen],
            yy=moments.yy[chosen],
        )
        coef[:, chosen] = _solve_one(design, Y[:, chosen], selected, float(alpha), shrunk)
    return coef


def _solve_one(design: Design, Y: Floats, moments: Moments, alpha: float, shrunk: Any) -> Floats:
    """Return the coefficients of targets with the same penalty."""
    d = design.n_features
    if moments.is_finite and alpha > 0 and shrunk is None:
        matrix = moments.xx + alpha * np.eye(d)
        factor, failed = linalg.lapack.dpotrf(matrix, lower=1)
        if not failed:
            rcond, _ = linalg.lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max(), uplo="L")
            if rcond > _SMALLEST_RCOND:
                solved: Floats = linalg.cho_solve((factor, True), moments.xy)
                return solved
    if alpha == 0:
        return solve_least_squares(design, Y, moments).coef
    # Append the penalty as rows to the triangular matrix.
    roots = np.full(d, np.sqrt(alpha))
    if shrunk is not None:
        roots = np.ldexp(roots, -shrunk)
    lengths = np.hypot(measure_lengths(design, moments), roots)  # of columns with their penalty
    lengths = np.where(lengths > 0, lengths, 1.0)
    triangle = reduce_rows(design, Y, moments, lengths)
    upper = np.vstack([triangle[:d, :d], np.diag(roots / lengths)])
    right = np.vstack([triangle[:d, d:], np.zeros((d, Y.shape[1]))])
    return np.linalg.lstsq(upper, right, rcond=None)[0] / lengths[:, np.newaxis]


def _decompose(moments: Moments) -> tuple[Floats, Floats]:
    """Return eigenvalues and eigenvectors of the moments of the columns."""
    values, basis = linalg.eigh(moments.xx)
    return np.maximum(values, 0.0), basis


def _excess_exponents(design: Design, moments: Moments, alpha: float) -> Any:
    """Return exponents that scale down large columns and change no prediction.

    These columns are so large that no penalty up to `alpha` changes a digit of a prediction. Scaled
    down, they no longer hide the digits of small columns.
    """
    if moments.is_extreme:
        sizes = largest_of_columns(design.X)
        sizes = np.where(sizes > 2.0**400, sizes, 0.0)
    else:
        sizes = measure_lengths(design, moments)
    enough = np.frexp(2.0**30 * np.sqrt(alpha))[1]
    return np.where(sizes > 0, np.maximum(0, np.frexp(sizes)[1] - enough), 0)


class Ridge(RowwisePredictions, ModelMethods, LinearIntervals, _SklearnRidge):  # type: ignore[misc]
    """Least squares with a penalty on the squares of the coefficients.

    It minimises ``|y - Xw|² + alpha |w|²``. Where λ multiplies the penalty of a mean of squared
    errors, alpha is nλ. One pass over the rows sums their moments, without a copy of X.

    Parameters
    ----------
    alpha : float or array-like of shape (n_targets,), default=1.0
        The penalty, for all targets or one for each.
    fit_intercept : bool, default=True
        Whether there is an intercept, which is not penalised.
    copy_X : bool, default=True
        Whether to copy X, for solvers that change it; "auto" and "cholesky" never do.
    max_iter : int or None, default=None
        Maximum number of iterations of the iterative solvers.
    tol : float, default=1e-4
        Tolerance of the iterative solvers.
    solver : str, default="auto"
        "auto" and "cholesky" solve the normal equations if they are well conditioned, and else
        reduce the rows by QR. All others are scikit-learn's: "svd", "lsqr", "sparse_cg", "sag",
        "saga", "lbfgs".
    positive : bool, default=False
        Whether coefficients must not be negative (scikit-learn's solver).
    random_state : int, RandomState or None, default=None
        Seed of "sag" and "saga".
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    solver_ : str
        The solver that was used.
    n_iter_ : None or ndarray of shape (n_targets,)
        Number of iterations; 1 with "auto", None for direct solvers.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(Ridge(alpha=0.1).fit(X, y).score(X, y), 3)
    0.513
    """

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        fit_intercept: bool = True,
        copy_X: bool = True,
        max_iter: int | None = None,
        tol: float = 1e-4,
        solver: str = "auto",
        positive: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            alpha,
            fit_intercept=fit_intercept,
            copy_X=copy_X,
            max_iter=max_iter,
            tol=tol,
            solver=solver,
            positive=positive,
            random_state=random_state,
        )
        self.n_jobs = n_jobs

    _parameter_constraints: dict[str, Any] = {
        **_SklearnRidge._parameter_constraints,
        "alpha": [Interval(numbers.Real, 0, None, closed="left"), "array-like"],
        "n_jobs": [None, numbers.Integral],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        Ridge
            The estimator.
        """
        self._errors: LinearErrors | None = None
        if self.positive or not self._has_own_solver(X):
            super().fit(X, y, sample_weight)
            return self._check_solution(X, y)
        X, y, weights = _read(self, X, y, sample_weight)
        # With few rows, scikit-learn solves one equation per row, which is less work. For sparse
        # rows its solution is imprecise.
        if X.shape[0] <= X.shape[1] and not sp.issparse(X):
            super().fit(X, y, sample_weight)
            return self._check_solution(X, y)
        design = Design(X, weights, effective_n_jobs(self.n_jobs))
        return self._fit_design(design, _as_targets(y), y.ndim, X.dtype)

    def _fit_design(self, design: Design, targets: Any, n_dimensions: int, dtype: Any) -> Ridge:
        """Fit to validated rows."""
        alphas = np.asarray(self.alpha, dtype=np.float64).ravel()
        if len(alphas) not in (1, targets.shape[1]):
            raise ValueError(
                "Number of targets and number of penalties do not correspond: "
                f"{len(alphas)} != {targets.shape[1]}"
            )
        if (alphas < 0).any():
            raise ValueError(f"alpha: expected numbers of at least 0, got {self.alpha}")
        moments = collect_moments(design, targets, self.fit_intercept)
        if not moments.is_finite:
            design.check_finite(self)
        alphas = np.broadcast_to(alphas, targets.shape[1])
        rescaled = None
        if moments.is_extreme and isinstance(targets, np.ndarray):
            rescaled = rescale(design, targets, tiny=False)
        if rescaled is None:
            coef = _solve(design, targets, moments, alphas)
            intercept = moments.target_means - moments.means @ coef
        else:
            design, targets = rescaled.design, rescaled.targets
            moments = collect_moments(design, targets, self.fit_intercept)
            weights = rescaled.weights
            scaled_alphas = np.ldexp(alphas, -(weights % 2))
            shrunk = rescaled.columns + weights // 2
            coef = _solve(design, targets, moments, scaled_alphas, shrunk)
            intercept = rescaled.restore_targets(moments.target_means - moments.means @ coef)
            coef = rescaled.restore_coef(coef)
        check_coefficients(self, coef, intercept)
        self._keep(coef, intercept, n_dimensions, dtype)
        if rescaled is None and (alphas == alphas[0]).all():
            self._errors = measure_errors(
                design,
                targets,
                moments,
                coef,
                float(alphas[0]),
                fit_intercept=self.fit_intercept,
            )
        self.solver_ = "cholesky"
        # scikit-learn reports None for its solver "cholesky", and iterations for "auto".
        is_auto = self.solver == "auto"
        self.n_iter_ = np.ones(targets.shape[1], dtype=np.int32) if is_auto else None
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.solver != "svd" and (
            self.solver != "cholesky" or not self.fit_intercept
        )
        tags.array_api_support = False  # the core reads NumPy's arrays
        return tags

    def _has_own_solver(self, X: Any) -> bool:
        """Return whether Spinney solves this problem; otherwise scikit-learn does."""
        if not sp.issparse(X):
            return self.solver in ("auto", "cholesky")
        return self.solver == "auto" and X.shape[1] <= _MOST_SPARSE

    def _check_solution(self, X: Any, y: Any) -> Ridge:
        """Raise an error if scikit-learn's solution is not finite."""
        if np.isfinite(self.coef_).all() and np.isfinite(self.intercept_).all():
            return self
        names = getattr(self, "feature_names_in_", None)
        raise explain_overflow(Design(check_array(X, accept_sparse=True)), _as_targets(y), names)

    def _keep(self, coef: Floats, intercept: Floats, n_dimensions: int, dtype: Any) -> None:
        # A matrix with one target has a coefficient vector, as in scikit-learn.
        self.coef_ = (coef[:, 0] if coef.shape[1] == 1 else coef.T).astype(dtype)
        self.intercept_: Any = 0.0
        if self.fit_intercept:
            intercept = intercept.astype(dtype)
            self.intercept_ = intercept[0] if n_dimensions == 1 else intercept


class RidgeCV(RowwisePredictions, ModelMethods, LinearIntervals, _SklearnRidgeCV):  # type: ignore[misc]
    """Ridge regression with a penalty chosen by leave-one-out errors.

    Two passes over the rows serve all penalties: one sums the moments; one computes all
    leave-one-out errors, which have a closed form in the basis of the eigenvectors of the moments.

    Parameters
    ----------
    alphas : array-like of shape (n_alphas,), default=(0.1, 1.0, 10.0)
        Penalties to choose from.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    scoring : str, callable or None, default=None
        The score that selects the penalty; None is the mean squared error (R² with `cv`).
    cv : int, splitter, iterable or None, default=None
        The folds of cross-validation; None is leave-one-out.
    gcv_mode : {"auto", "svd", "eigen"} or None, default=None
        "svd" uses scikit-learn's solver; all other values use Spinney's.
    store_cv_results : bool, default=False
        Whether to keep the squared errors (with `scoring`, the predictions) of all rows.
    alpha_per_target : bool, default=False
        Whether to choose a penalty for each target.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    alpha_ : float or ndarray of shape (n_targets,)
        The chosen penalty.
    best_score_ : float or ndarray of shape (n_targets,)
        Its score.
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept.
    cv_results_ : ndarray of shape (n_rows, n_alphas) or (n_rows, n_targets, n_alphas)
        Squared leave-one-out errors, or predictions with `scoring`; only with `store_cv_results`.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from spinney.linear_model import RidgeCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> float(RidgeCV(alphas=[1e-3, 1e-2, 1e-1, 1]).fit(X, y).alpha_)
    0.01
    """

    def __init__(
        self,
        alphas: Any = (0.1, 1.0, 10.0),
        *,
        fit_intercept: bool = True,
        scoring: Any = None,
        cv: Any = None,
        gcv_mode: str | None = None,
        store_cv_results: bool = False,
        alpha_per_target: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            alphas,
            fit_intercept=fit_intercept,
            scoring=scoring,
            cv=cv,
            gcv_mode=gcv_mode,
            store_cv_results=store_cv_results,
            alpha_per_target=alpha_per_target,
        )
        self.n_jobs = n_jobs

    _parameter_constraints: dict[str, Any] = {
        **_SklearnRidgeCV._parameter_constraints,
        "n_jobs": [None, numbers.Integral],
    }

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> RidgeCV:
        """Choose the penalty and fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : float or array-like of shape (n_rows,), default=None
            Weights of the rows.
        **params : dict
            Parameters of the scorer, if scikit-learn's metadata routing is enabled.

        Returns
        -------
        RidgeCV
            The estimator.
        """
        self._errors: LinearErrors | None = None
        has_own_solver = (
            self.cv is None
            and not sp.issparse(X)
            and self.gcv_mode != "svd"
            and not params
            and not _routing_enabled()
        )
        if not has_own_solver:
            return super().fit(X, y, sample_weight, **params)  # type: ignore[no-any-return]
        alphas = self._check_alphas()
        X, y, weights = _read(self, X, y, sample_weight, min_rows=2)
        has_zeros = weights is not None and not (weights > 0).all()
        if has_zeros and self.scoring is not None:
            # scikit-learn's scores divide by the square roots of the weights.
            kept = weights > 0
            X, y, sample_weight = X[kept], y[kept], np.asarray(sample_weight)[kept]
        if X.shape[0] <= X.shape[1] or has_zeros:
            return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]
        targets = _as_targets(y)
        design = Design(X, weights, effective_n_jobs(self.n_jobs))
        moments = collect_moments(design, targets, self.fit_intercept)
        if moments.is_extreme:
            design.check_finite(self)
        given, given_moments, is_ordinary = design, moments, not moments.is_extreme
        values, basis = _decompose(moments) if is_ordinary else (np.ones(1), np.ones(0))
        shrunk: Any = 0
        if not is_ordinary or _EPS * values[-1] > _SMALLEST_RCOND * (values[0] + alphas.min()):
            shrunk = _excess_exponents(design, moments, float(alphas.max()))
        if np.any(shrunk):
            X = np.ldexp(np.asarray(X, dtype=np.float64), -shrunk)
            design = Design(X, weights, design.n_threads)
            moments = collect_moments(design, targets, self.fit_intercept)
        if moments.is_extreme:
            raise explain_overflow(given, targets, getattr(self, "feature_names_in_", None))
        if np.any(shrunk):
            values, basis = _decompose(moments)
        if _EPS * values[-1] > _SMALLEST_RCOND * (values[0] + alphas.min()):
            # The sizes of columns differ so much that the squares of large columns would hide the
            # small ones: compute the eigenvectors by SVD.
            ones = np.ones(design.n_features)
            triangle = reduce_rows(design, targets, moments, ones)
            _, roots, turned_back = linalg.svd(triangle[: len(ones), : len(ones)])
            values, basis = roots**2, np.ascontiguousarray(turned_back.T)
        shrinkage = 1.0 / (values + alphas[:, np.newaxis])
        turned = basis.T @ moments.xy
        weights_in_basis = shrinkage[:, np.newaxis, :] * turned.T  # alphas, targets, basis
        predictions = np.empty(0)
        if self.scoring is not None or self.store_cv_results:
            predictions = np.empty((len(targets), targets.shape[1], len(alphas)))
        sums = _core.leave_one_out(
            X,
            targets,
            np.empty(0) if design.weights is None else design.weights,
            moments.means,
            basis,
            shrinkage,
            weights_in_basis.ravel(),
            moments.target_means,
            1 / moments.total if self.fit_intercept else 0.0,
            design.n_threads,
            predictions,
        ).reshape(len(alphas), -1)
        scores = self._scores(
            sums, predictions, targets, y.ndim, weights=None if sample_weight is None else weights
        )
        best = np.argmax(scores, axis=0)  # the first of equal scores
        coef = np.einsum("jb,atb->atj", basis, weights_in_basis)
        per_target = self.alpha_per_target and targets.shape[1] > 1
        if per_target:
            coef = coef[best, np.arange(targets.shape[1])]
            self.alpha_, self.best_score_ = alphas[best], scores[best, np.arange(len(best))]
        else:
            coef = coef[int(best)]
            self.alpha_, self.best_score_ = alphas[int(best)], scores[int(best)]
            if self.alpha_per_target and y.ndim == 2:  # a matrix with one target
                self.best_score_ = np.array([self.best_score_])
        intercept = moments.target_means - coef @ moments.means
        coef = np.ldexp(coef, -shrunk)
        check_coefficients(self, np.atleast_2d(coef).T, intercept)
        self.coef_ = (coef[0] if targets.shape[1] == 1 else coef).astype(given.X.dtype)
        self.intercept_ = 0.0
        if self.fit_intercept:
            intercept = intercept.astype(given.X.dtype)
            self.intercept_ = intercept[0] if y.ndim == 1 else intercept
        if not per_target and is_ordinary:
            self._errors = measure_errors(
                given,
                targets,
                given_moments,
                np.atleast_2d(coef).T,
                float(self.alpha_),
                fit_intercept=self.fit_intercept,
            )
        if self.store_cv_results:
            self._store(predictions, targets, weights, y.ndim, given.X.dtype)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = False  # the core reads NumPy's arrays
        return tags

    def _check_alphas(self) -> Floats:
        check = partial(
            check_scalar, target_type=numbers.Real, min_val=0.0, include_boundaries="neither"
        )
        alphas = np.asarray(self.alphas)
        if alphas.ndim == 0 or len(alphas) == 1:
            check(alphas.ravel()[0].item(), "alphas")
        else:
            for index, alpha in enumerate(self.alphas):
                check(alpha, f"alphas[{index}]")
        return alphas.astype(np.float64).ravel()

    def _scores(
        self,
        sums: Floats,
        predictions: Floats,
        targets: Floats,
        n_dimensions: int,
        *,
        weights: Any,
    ) -> Floats:
        """Return a score for each penalty, or for each penalty and target."""
        n_rows, n_targets = targets.shape
        per_target = self.alpha_per_target and n_targets > 1
        if self.scoring is None:
            errors = sums / n_rows
            return -errors if per_target else -errors.mean(axis=1)
        scorer = self._get_scorer()
        more = {} if weights is None else {"sample_weight": weights}
        model = _Identity()
        y = targets[:, 0] if n_dimensions == 1 else targets
        scores = []
        for a in range(predictions.shape[2]):
            predicted = predictions[:, 0, a] if n_dimensions == 1 else predictions[:, :, a]
            if per_target:
                columns = range(n_targets)
                scores.append([scorer(model, predicted[:, t], y[:, t], **more) for t in columns])
            else:
                scores.append(scorer(model, predicted, y, **more))
        return np.asarray(scores, dtype=np.float64)

    def _store(
        self, predictions: Floats, targets: Floats, weights: Any, n_dimensions: int, dtype: Any
    ) -> None:
        """Set `cv_results_`."""
        results = predictions
        if self.scoring is None:
            results = (targets[:, :, np.newaxis] - predictions) ** 2
            if weights is not None:
                results *= weights[:, np.newaxis, np.newaxis]
        self.cv_results_ = (results[:, 0] if n_dimensions == 1 else results).astype(dtype)


class _Identity(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Estimator for scorers that are called with predictions instead of rows."""

    def predict(self, predictions: Any) -> Any:
        """Return the predictions."""
        return predictions
