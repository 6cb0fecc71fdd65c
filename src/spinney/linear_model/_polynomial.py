"""Polynomial regression by least squares, in a well-conditioned basis."""

from __future__ import annotations

import numbers
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial, legendre
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.model_selection import check_cv
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.mixins import read_calibration
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.linear_model._extreme_values import extreme_exponents, normalize_extreme_weights
from spinney.linear_model._linear_regression import LinearRegression
from spinney.linear_model.design import Floats
from spinney.models.linear import PolynomialModel, legendre_terms
from spinney.models.methods import ModelMethods
from spinney.models.outcomes import Numbers

__all__ = ["PolynomialRegression"]

_MOST_TERMS = 20_000


class PolynomialRegression(MultiOutputMixin, RegressorMixin, ModelMethods, BaseEstimator):  # type: ignore[misc]
    """A polynomial of the columns, by least squares.

    Columns are scaled to [-1, 1]. The basis consists of Legendre polynomials instead of powers; for
    several columns, of their products up to a total degree. Both bases span the same polynomials,
    but Legendre polynomials are nearly orthogonal, so that high degrees are accurate.

    Parameters
    ----------
    degree : int or "auto", default="auto"
        The degree; "auto" chooses the degree with the smallest cross-validated error.
    max_degree : int, default=10
        The highest degree that "auto" tries. Degrees with as many terms as rows are not tried.
    cv : int, splitter, iterable or None, default=None
        The folds of "auto"; None is leave-one-out, computed exactly from one fit.
    n_jobs : int or None, default=None
        Number of threads; None is the value of `spinney.set_num_threads`. The result is the same.

    Attributes
    ----------
    degree_ : int
        The degree.
    cv_errors_ : ndarray of shape (n_degrees,)
        With "auto", the mean squared errors of degrees 0, 1, … on held-out rows.
    exponents_ : ndarray of shape (n_terms, n_features)
        Degree of each column in each term.
    coef_ : ndarray of shape (n_terms,) or (n_targets, n_terms)
        Coefficients of the terms in the basis, the constant first.
    polynomial_ : numpy.polynomial.Polynomial
        For one column and one target: the polynomial, which can be called, differentiated and
        printed.
    estimator_ : LinearRegression
        The fit in the basis, with the method `summary`.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.linear_model import PolynomialRegression
    >>> x = np.linspace(0, 3, 20)
    >>> y = 1 - 2 * x + 0.5 * x**3 + 0.01 * np.cos(50 * x)
    >>> model = PolynomialRegression().fit(x[:, None], y)
    >>> model.degree_, model.polynomial_.convert().coef.round(1).tolist()
    (3, [1.0, -2.0, 0.0, 0.5])
    """

    _parameter_constraints: dict[str, Any] = {
        "degree": [Interval(numbers.Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "max_degree": [Interval(numbers.Integral, 0, None, closed="left")],
        "cv": ["cv_object"],
        "n_jobs": [None, numbers.Integral],
    }

    def __init__(
        self,
        degree: Any = "auto",
        *,
        max_degree: int = 10,
        cv: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.degree = degree
        self.max_degree = max_degree
        self.cv = cv
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PolynomialRegression:
        """Fit the polynomial.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        y : array-like of shape (n_rows,) or (n_rows, n_targets)
            Targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        PolynomialRegression
            The estimator.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        if sample_weight is not None:
            sample_weight = check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            sample_weight = normalize_extreme_weights(sample_weight)
        for name in ("cv_errors_", "polynomial_"):  # of the previous fit
            if hasattr(self, name):
                delattr(self, name)
        counted = X if sample_weight is None else X[sample_weight > 0]
        if len(counted) == 0:
            raise ValueError("sample_weight: expected a positive weight, got zeros only")
        low, high = counted.min(axis=0), counted.max(axis=0)
        with np.errstate(over="ignore"):
            self._middle, self._half = low / 2 + high / 2, high / 2 - low / 2
        self._half = np.where(self._half > 0, self._half, 1.0)
        degree: Any = self.degree
        if degree == "auto":
            degree = self._choose_degree(X, y, sample_weight)
        self.degree_ = int(degree)
        self.exponents_ = _exponents(X.shape[1], self.degree_)
        self.estimator_ = LinearRegression(fit_intercept=False, n_jobs=self.n_jobs)
        self.estimator_.fit(self._terms(X), y, sample_weight)
        self.coef_ = self.estimator_.coef_
        if X.shape[1] == 1 and self.coef_.ndim == 1:
            domain = [self._middle[0] - self._half[0], self._middle[0] + self._half[0]]
            self.polynomial_ = Polynomial(legendre.leg2poly(self.coef_), domain=domain)
        return self

    def _terms(self, X: Floats) -> Floats:
        return legendre_terms(X, self.exponents_, middle=self._middle, half=self._half)

    def _choose_degree(self, X: Floats, y: Any, weights: Any) -> int:
        """Return the lowest degree with the smallest held-out error; set `cv_errors_`."""
        most = self.max_degree
        n_distinct = len(np.unique(X if weights is None else X[weights > 0], axis=0))
        while most > 0 and comb(X.shape[1] + most, most) >= min(n_distinct, _MOST_TERMS):
            most -= 1
        exponents = _exponents(X.shape[1], most)
        terms = legendre_terms(X, exponents, middle=self._middle, half=self._half)
        ends = [int((exponents.sum(axis=1) <= degree).sum()) for degree in range(most + 1)]
        targets = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
        shift = extreme_exponents(np.abs(targets).max(initial=0.0))
        targets = np.ldexp(targets, -shift)
        if self.cv is None:
            errors = _leave_one_out_errors(terms, targets, weights, ends)
        else:
            folds = list(check_cv(self.cv).split(X, y))
            errors = np.mean(
                [
                    _fold_errors(terms, targets, weights, ends, train=train, test=test)
                    for train, test in folds
                ],
                axis=0,
            )
        with np.errstate(over="ignore", under="ignore"):
            self.cv_errors_ = np.ldexp(np.asarray(errors), 2 * shift)
        return int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))

    def fitted_model(self) -> PolynomialModel:
        """Return the fitted polynomial as a value.

        Returns
        -------
        PolynomialModel
            Its method `raw_scores` returns predictions of shape (n_rows, n_targets).
        """
        check_is_fitted(self)
        coef = np.asarray(self.coef_, dtype=np.float64)
        return PolynomialModel(
            np.atleast_2d(coef),
            self.exponents_,
            middle=self._middle,
            half=self._half,
            outcome=Numbers(flat=coef.ndim == 1),
        )

    def predict(self, X: Any) -> Any:
        """Predict with the polynomial.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_targets)
            Predictions.
        """
        model = self.fitted_model()
        X = validate_data(self, X, dtype=np.float64, reset=False)
        scores = model.raw_scores(X, n_jobs=self.n_jobs)
        return scores[:, 0] if model.outcome.flat else scores

    @property
    def interval_method_(self) -> str:
        """Description of how ``method="auto"`` makes intervals, and from which rows."""
        check_is_fitted(self)
        return self.estimator_.interval_method_

    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", calibration: Any = None
    ) -> Floats:
        """Predict an interval that holds the target with the given probability.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows.
        coverage : float, default=0.9
            Share of rows, between 0 and 1, whose target is to lie in its interval.
        method : {"auto", "conformal", "normal"}, default="auto"
            As in `LinearRegression.predict_interval`. The intervals do not account for the choice
            of the degree by the same rows.
        calibration : tuple (X, y), default=None
            Held-out rows and their targets, whose errors "conformal" uses instead.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_targets, 2)
            Lower and upper ends.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        if calibration is not None:
            rows, truth = read_calibration(calibration)
            rows = validate_data(self, rows, dtype=np.float64, reset=False)
            calibration = (self._terms(rows), truth)
        return self.estimator_.predict_interval(self._terms(X), coverage, method, calibration)


def _exponents(n_features: int, degree: int) -> Any:
    """Return the degrees of columns in all terms up to a degree, constant first."""
    n_terms = comb(n_features + degree, degree)
    if n_terms > _MOST_TERMS:
        raise ValueError(
            f"degree: expected at most {_MOST_TERMS} terms; got {n_terms} of degree {degree} with "
            f"{n_features} columns"
        )
    exponents = [np.zeros(n_features, dtype=np.int64)]
    for total in range(1, degree + 1):
        for chosen in combinations_with_replacement(range(n_features), total):
            exponents.append(np.bincount(chosen, minlength=n_features))
    return np.array(exponents)


def _leave_one_out_errors(terms: Floats, targets: Floats, weights: Any, ends: list[int]) -> Floats:
    """Return the leave-one-out errors of all degrees, from one basis.

    Terms are ordered by degree. Equal rows are held out together, so that integer weights are
    equivalent to repeated rows.
    """
    weights = np.ones(len(terms)) if weights is None else weights
    rows = np.column_stack([terms, targets])[weights > 0]
    rows, group = np.unique(rows, axis=0, return_inverse=True)
    counts = np.bincount(group.ravel(), weights[weights > 0])
    root = np.sqrt(counts)[:, np.newaxis]
    n_terms = terms.shape[1]
    basis, ends = _orthogonal(rows[:, :n_terms] * root, ends)
    right = rows[:, n_terms:] * root
    projections = basis.T @ right
    errors = []
    for end in ends:
        residual = right - basis[:, :end] @ projections[:end]
        remainder = 1 - np.square(basis[:, :end]).sum(axis=1)  # 1 - leverage
        held_out = residual / np.where(remainder > 1e-12, remainder, np.nan)[:, np.newaxis]
        errors.append(float(np.square(held_out).sum() / counts.sum() / targets.shape[1]))
    return np.array(errors)


def _orthogonal(columns: Floats, ends: list[int]) -> tuple[Floats, list[int]]:
    """Return an orthonormal basis, and the size of its part for each degree.

    The first ``ends[k]`` columns are the terms up to degree k. Columns that depend on the columns
    before them are skipped.
    """
    basis = np.empty((len(columns), 0))
    sizes = [0]
    for column in columns.T:
        rest = column
        for _ in range(2):  # the second step removes rounding errors
            rest = rest - basis @ (basis.T @ rest)
        length = float(np.linalg.norm(rest))
        if length > 1e-10 * float(np.linalg.norm(column)):
            basis = np.column_stack([basis, rest / length])
        sizes.append(basis.shape[1])
    return basis, [sizes[end] for end in ends]


def _fold_errors(
    terms: Floats, targets: Floats, weights: Any, ends: list[int], *, train: Any, test: Any
) -> list[float]:
    """Return the errors of all degrees on the test rows of a fold."""
    root = np.ones(len(terms)) if weights is None else np.sqrt(weights)
    errors = []
    for end in ends:
        rows = terms[train, :end] * root[train, np.newaxis]
        coef = np.linalg.lstsq(rows, targets[train] * root[train, np.newaxis], rcond=None)[0]
        residual = (targets[test] - terms[test, :end] @ coef) * root[test, np.newaxis]
        total = max(float(np.square(root[test]).sum()), 1e-300)
        errors.append(float(np.square(residual).sum()) / total / targets.shape[1])
    return errors
