"""Logistic regression."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy import linalg
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as _SklearnLogisticRegression
from sklearn.utils._param_validation import Hidden, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.mixins import SetsOnRequest
from spinney.data.sklearn_versions import (
    check_sample_weight,
    compute_class_weight,
    liblinear_penalty,
    validate_data,
)
from spinney.linear_model._absolute_penalty import minimise_with_absolute
from spinney.linear_model._extreme_values import explain_overflow
from spinney.linear_model._logistic_loss import LogisticObjective
from spinney.linear_model._newton import (
    Minimum,
    add_common_curvature,
    choose_solver,
    minimise_by_lbfgs,
    minimise_by_newton,
)
from spinney.linear_model._quasi_separation import is_separable
from spinney.linear_model._row_products import RowwiseDecision
from spinney.linear_model._summary import Summary, summarise
from spinney.linear_model.design import Design, Floats
from spinney.linear_model.penalty import read_penalty
from spinney.models.methods import ModelMethods
from spinney.models.outcomes import Softmax, TwoClasses
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LogisticRegression"]

# Curvature relative to that at zero, below which a direction may separate classes.
_VANISHED_CURVATURE = 5e-3
_MOST_WITH_HESSIAN = 3_000  # with more parameters the Hessian is not computed after a fit


class LogisticRegression(RowwiseDecision, SetsOnRequest, ModelMethods, _SklearnLogisticRegression):  # type: ignore[misc]
    """Logistic regression: two classes, or several by softmax.

    It minimises the logistic loss, summed over rows, plus ``1/C`` times the penalty ``l1_ratio *
    |w|₁ + (1 - l1_ratio) / 2 * |w|²``, which does not include the intercept. The size of the data
    selects the solver: Newton's method with Cholesky or L-BFGS. With an l1 penalty it is coordinate
    descent on working sets. All solvers find the same optimum.

    Parameters
    ----------
    penalty : {"l1", "l2", "elasticnet"} or None
        Deprecated, as in scikit-learn: use `l1_ratio` and `C`.
    C : float, default=1.0
        Inverse of the strength of the penalty; ``np.inf`` for no penalty.
    l1_ratio : float, default=0.0
        Share of the l1 penalty: 0 is ridge, 1 is the lasso with many zero coefficients.
    dual : bool, default=False
        Whether "liblinear" solves the dual problem.
    tol : float, default=1e-4
        Largest derivative of the mean objective at the end of a fit. The fit also continues until
        the next step would gain less than ``0.01 * tol**2`` of the objective (with an l1 penalty:
        until derivatives are 10,000 times smaller). Therefore dense and sparse rows, and all
        solvers, have the same coefficients.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1
        Value of the constant column of "liblinear".
    class_weight : dict, "balanced" or None, default=None
        Weights of classes.
    random_state : int, RandomState or None, default=None
        Seed of "liblinear".
    solver : str, default="lbfgs"
        With "lbfgs", "sag" and "saga", the size of the data selects the solver, for every penalty.
        "newton-cg" and "newton-cholesky" are Newton's method. "liblinear" is scikit-learn's, which
        penalises the intercept.
    max_iter : int, default=100
        Maximum number of steps.
    verbose : int, default=0
        Verbosity of "liblinear".
    warm_start : bool, default=False
        Whether to start from the coefficients of the last fit.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    n_iter_ : ndarray of shape (1,)
        Number of steps.
    solver_ : str
        "newton-cholesky", "lbfgs", "coordinate_descent" or "liblinear".
    is_separated_ : bool
        Whether planes separate the classes, except perhaps for rows on the boundary. Without a
        penalty the loss has no minimum then, and a warning is emitted.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from spinney.linear_model import LogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegression(C=0.1, l1_ratio=1).fit(scale(X), y)
    >>> int((model.coef_ != 0).sum()), round(model.score(scale(X), y), 3)
    (8, 0.974)
    """

    _parameter_constraints: dict[str, Any] = {
        **_SklearnLogisticRegression._parameter_constraints,
        "penalty": [
            StrOptions({"l1", "l2", "elasticnet"}),
            None,
            Hidden(StrOptions({"deprecated"})),
        ],
    }
    _parameter_constraints.pop("multi_class", None)
    multi_class = "deprecated"  # scikit-learn before 1.8 reads it

    def __init__(
        self,
        penalty: str | None = "deprecated",
        *,
        C: float = 1.0,
        l1_ratio: float | None = 0.0,
        dual: bool = False,
        tol: float = 1e-4,
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: Any = None,
        random_state: Any = None,
        solver: str = "lbfgs",
        max_iter: int = 100,
        verbose: int = 0,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.penalty = penalty
        self.C = C
        self.l1_ratio = l1_ratio
        self.dual = dual
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.random_state = random_state
        self.solver = solver
        self.max_iter = max_iter
        self.verbose = verbose
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,)
            Classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        LogisticRegression
            The estimator.
        """
        self._spread: Floats | None = None
        self.is_separated_ = False
        if self.solver == "liblinear" or getattr(self, "_skl_callbacks", None):
            if self.solver == "liblinear" and type_of_target(y) == "multiclass":
                # scikit-learn before 1.8 fits one class against the rest.
                raise ValueError(
                    "The 'liblinear' solver does not support multiclass classification (n_classes "
                    ">= 3). Either use another solver or wrap the estimator in a "
                    "OneVsRestClassifier to keep applying a one-versus-rest scheme."
                )
            self.solver_ = self.solver
            with liblinear_penalty(self):
                return super().fit(X, y, sample_weight)  # type: ignore[no-any-return]
        penalty, share = read_penalty(self)
        if self.dual:
            raise ValueError(f"Solver {self.solver} supports only dual=False, got dual={self.dual}")
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=(np.float64, np.float32),
            ensure_all_finite=sp.issparse(X),
        )  # fmt: skip
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the data "
                f"contains only one class: {self.classes_[0]!r}"
            )
        weights = self._read_weights(X, y, labels, sample_weight)
        design = Design(X, weights, effective_n_jobs(self.n_jobs))
        return self._fit_design(design, labels.astype(np.int32), penalty, share, X.dtype)

    def _fit_design(
        self, design: Design, labels: Any, penalty: float, share: float, dtype: Any
    ) -> LogisticRegression:
        """Fit to validated rows; `share` is the share of the l1 penalty."""
        objective = LogisticObjective(
            design, labels, len(self.classes_), (1 - share) * penalty, self.fit_intercept
        )
        start = self._start(objective)
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._minimise(objective, start, share * penalty)
        if not np.isfinite(found.w).all():
            design.check_finite(self)
            raise self._explain_failure(design, penalty)
        if penalty == 0 and not found.is_separated:
            self._look_for_separation(objective, found)
        self._keep(objective, found, dtype)
        self._warn(found)
        if penalty == 0 and found.converged:
            self._keep_standard_errors(objective, found.w)
        return self

    def _explain_failure(self, design: Design, penalty: float) -> ValueError:
        """Return an error that names the cause of coefficients that are not finite."""
        if not np.isfinite(penalty):
            return ValueError(f"C: expected a value whose inverse is finite, got {self.C:g}")
        if not np.isfinite(penalty / design.total):
            return ValueError(
                f"sample_weight: expected a sum that is not tiny compared with 1/C, got "
                f"{design.total:.3g} with C={self.C:g}; multiply all weights by the same number"
            )
        return explain_overflow(design, names=getattr(self, "feature_names_in_", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = self.solver != "liblinear"
        tags.array_api_support = False  # the core reads NumPy's arrays
        return tags

    def _outcome(self, n_scores: int) -> TwoClasses | Softmax:
        return (TwoClasses if n_scores == 1 else Softmax)(self.classes_)

    def _read_weights(self, X: Any, y: Any, labels: Any, sample_weight: Any) -> Floats | None:
        """Return the products of row and class weights, or None if there are none."""
        if sample_weight is None and self.class_weight is None:
            return None
        weights = check_sample_weight(
            sample_weight, X, dtype=np.float64, copy=True, ensure_non_negative=True
        )
        if not weights.any():
            raise ValueError("sample_weight: expected a positive weight, got zeros only")
        if self.class_weight is not None:
            class_weights = compute_class_weight(
                self.class_weight, classes=self.classes_, y=y, sample_weight=sample_weight
            )
            # The "balanced" weight of a class without weighted rows is infinite: replace it by 0.
            weights *= np.where(np.isfinite(class_weights), class_weights, 0.0)[labels]
            if not weights.any():
                raise ValueError(
                    "class_weight: expected a class with a positive weight, got "
                    f"{self.class_weight}"
                )
        return np.asarray(weights)

    def _start(self, objective: LogisticObjective) -> Floats:
        """Return the initial parameters: zero, or those of the last fit with `warm_start`."""
        start = np.zeros(objective.shape)
        coef = getattr(self, "coef_", None) if self.warm_start else None
        if coef is not None and coef.shape == (objective.n_scores, objective.shape[1] - 1):
            start[:, :-1] = coef.toarray() if sp.issparse(coef) else coef
            if self.fit_intercept:
                start[:, -1] = self.intercept_
            return objective.centre_parameters(start)
        return start

    def _minimise(self, objective: LogisticObjective, start: Floats, absolute: float) -> Minimum:
        if absolute > 0:
            self.solver_ = "coordinate_descent"
            return minimise_with_absolute(objective, absolute, start, self.tol, self.max_iter)
        is_newton = self.solver in ("newton-cg", "newton-cholesky")
        self.solver_ = "newton-cholesky" if is_newton else choose_solver(objective)
        minimise = minimise_by_lbfgs if self.solver_ == "lbfgs" else minimise_by_newton
        return minimise(objective, start, self.tol, self.max_iter)

    def _look_for_separation(self, objective: LogisticObjective, found: Minimum) -> None:
        """Check whether the classes are separable except for rows on the boundary.

        Then the loss has no minimum, even if its gradient is small. Second derivatives along a
        separating direction have nearly vanished relative to those at zero. If there is no such
        direction, the check is skipped.
        """
        if objective.n_scores * objective.shape[1] > _MOST_WITH_HESSIAN:
            return
        free, width = objective.free(), objective.shape[1]

        def curvature(w: Floats) -> Floats:
            hessian = objective.measure_loss(w, second=True)[2]
            return add_common_curvature(objective, hessian, width)[np.ix_(free, free)]

        here, start = curvature(found.w), curvature(np.zeros_like(found.w))
        scale = np.sqrt(np.diagonal(start))
        scale = np.where(scale > 0, scale, 1.0)
        scale = np.outer(scale, scale)
        slack = 1e-12 * np.eye(len(here))
        if (
            linalg.eigvalsh(here / scale + slack, start / scale + 2 * slack)[0]
            > _VANISHED_CURVATURE
        ):
            return
        if is_separable(objective.design, objective.labels, objective.fit_intercept):
            found.is_separated, found.converged = True, False

    def _keep(self, objective: LogisticObjective, found: Minimum, dtype: Any) -> None:
        w = objective.uncentre_parameters(found.w)
        if objective.n_scores > 1:
            # A common shift of the intercepts changes neither probabilities nor the penalty.
            w[:, -1] -= w[:, -1].mean()
        self.coef_ = np.ascontiguousarray(w[:, :-1]).astype(dtype)
        self.intercept_ = w[:, -1].astype(dtype)
        if not self.fit_intercept:
            self.intercept_ = np.zeros(objective.n_scores, dtype=dtype)
        self.n_iter_ = np.array([found.n_iter], dtype=np.int32)
        self.is_separated_ = found.is_separated

    def _warn(self, found: Minimum) -> None:
        if found.is_separated:
            warnings.warn(
                "The classes are separable (except perhaps for rows on the boundary): without a "
                "penalty the loss has no minimum, and coefficients grow without limit. The search "
                "was stopped; choose a finite C.",
                ConvergenceWarning,
                stacklevel=4,
            )
        elif not found.converged:
            problem = f"{self.solver} failed to converge after {found.n_iter} iteration(s)"
            if self.solver in ("sag", "saga"):
                problem = "The max_iter was reached which means the coef_ did not converge"
            elif self.solver == "newton-cholesky":
                problem = f"Newton solver did not converge after {found.n_iter} iterations"
            warnings.warn(
                f"{problem}. Increase the number of iterations (max_iter={self.max_iter}), scale "
                f"the columns to similar sizes, or choose a smaller C (C={self.C:g}).",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep_standard_errors(self, objective: LogisticObjective, w: Floats) -> None:
        """Keep the diagonal of the inverse Hessian, and facts for `summary`."""
        if objective.n_scores > 1 or objective.shape[1] > _MOST_WITH_HESSIAN:
            return
        loss, _, hessian = objective.measure(w, second=True)
        free = objective.free()
        matrix = hessian[np.ix_(free, free)] * objective.total
        scale = np.sqrt(np.diagonal(matrix))
        try:
            factor = linalg.cho_factor(matrix / np.outer(scale, scale), lower=True)
        except (linalg.LinAlgError, ValueError):
            return
        inverse = linalg.cho_solve(factor, np.eye(len(scale))) / np.outer(scale, scale)
        if objective.fit_intercept:  # convert to parameters of the given columns
            shift = np.eye(len(scale))
            shift[-1, :-1] = -objective.centre
            inverse = shift @ inverse @ shift.T
        self._spread = np.diagonal(inverse)
        weights = objective.design.weights
        class_sizes = np.bincount(objective.labels, weights)
        shares = class_sizes / class_sizes.sum()
        null_loss = -float((class_sizes * np.log(shares)).sum())
        n_rows = len(objective.labels) if weights is None else int((weights > 0).sum())
        self._facts = {
            "n_rows": float(n_rows),
            "log_likelihood": -loss * objective.total,
            "log_likelihood_of_shares": -null_loss,
            "pseudo_r2": 1 - loss * objective.total / null_loss,
        }

    def summary(self, confidence: float = 0.95) -> Summary:
        """Return standard errors, tests and confidence intervals of the coefficients.

        Available for two classes without a penalty.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence level of the intervals, between 0 and 1.

        Returns
        -------
        Summary
            The table, whose columns are attributes; `print` shows it.

        Raises
        ------
        ValueError
            If there is a penalty, or there are several classes, or columns depend on each other.
        """
        check_is_fitted(self)
        if self._spread is None:
            raise ValueError(
                "summary: standard errors require two classes, no penalty (C=np.inf), an optimum "
                "and independent columns"
            )
        names = getattr(self, "feature_names_in_", None)
        names = [f"x{i}" for i in range(self.n_features_in_)] if names is None else list(names)
        coef, errors = self.coef_[0].astype(np.float64), np.sqrt(self._spread)
        if self.fit_intercept:
            names = ["(intercept)", *names]
            coef = np.concatenate([self.intercept_.astype(np.float64), coef])
            errors = np.concatenate([errors[-1:], errors[:-1]])
        names = [str(name) for name in names]
        return summarise(
            names, coef, errors, confidence=confidence, degrees=None, facts=self._facts
        )
