"""A halfspace that linear programming finds, or the proof that none separates the classes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve
from scipy.optimize import linprog
from sklearn.base import BaseEstimator, ClassifierMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from spinney.conformal.mixins import MarginSets
from spinney.data.labels import encode_labels
from spinney.linear_model._columns import Columns, is_flat, power_of_two
from spinney.linear_model._distinct_rows import DistinctRows
from spinney.linear_model._pinball import minimise
from spinney.linear_model._separation import Points, separate
from spinney.models.linear import LinearModel
from spinney.models.methods import ModelMethods
from spinney.models.outcomes import Sides

__all__ = ["HalfspaceClassifier"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Sparse matrices of up to this many numbers are made dense: rows can be compared there.
MOST_DENSE = 20_000_000


class HalfspaceClassifier(MarginSets, ClassifierMixin, ModelMethods, BaseEstimator):
    """Halfspace by linear programming, for two classes.

    If some halfspace has the second class inside and the first one outside, one is found, with
    y_i (⟨w, x_i⟩ + b) >= 1 for all rows (y_i = ±1). Otherwise multipliers of the rows prove that
    there is none, and the halfspace with the least sum of slacks max(0, 1 − y_i (⟨w, x_i⟩ + b)) is
    found. The decision is exact: what the solver of linear programs says is checked with bounds of
    rounding, and where they leave a doubt without rounding.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether the halfspace may have a bias b; without one its border goes through the origin.
    slack : {"hinge", "error"}, default="hinge"
        What to do where no halfspace separates the classes: minimise the sum of slacks, or raise
        ValueError.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The normal w of the border, pointing to the second class.
    intercept_ : ndarray of shape (1,)
        The bias b.
    separable_ : bool
        Whether the halfspace has the classes strictly apart: no training error.
    margin_ : float
        Distance of the nearest row from the border, min y_i (⟨w, x_i⟩ + b) / ‖w‖. It is the margin
        of the halfspace that was found, not the largest of all halfspaces; below zero if the
        classes are not separable.
    certificate_ : ndarray of shape (n_samples,) or None
        If the classes are not separable: λ >= 0 with Σ λ_i = 1, Σ λ_i y_i x_i = 0 and (with
        `fit_intercept`) Σ λ_i y_i = 0, but for rounding; the true numbers, of which these are
        roundings, fulfil it exactly. Then no w and b can have all y_i (⟨w, x_i⟩ + b) > 0: weighted
        by λ they add up to zero. The two sides of the sum are one point in both classes' hulls.
    slack_ : float
        The weighted sum of slacks, zero if separable.
    classes_ : ndarray of shape (2,)
        The classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if all are strings.

    See Also
    --------
    Perceptron : Finds a separating halfspace by going through the rows.

    Notes
    -----
    Among the separating halfspaces the program takes the one that, with columns centred and scaled
    to about one, has the largest least y_i (⟨w, x_i⟩ + b) for coefficients in [−1, 1]: the largest
    margin in Manhattan distance, in these units. Weights of rows matter for slacks only; rows of
    weight zero do not count.

    The slacks are minimised by the method of `LADRegressor`, and by HiGHS for sparse matrices of
    more than 20 million entries.

    Examples
    --------
    >>> from spinney.linear_model import HalfspaceClassifier
    >>> X = [[0, 0], [1, 0], [0, 1], [1, 1]]
    >>> both = HalfspaceClassifier().fit(X, [0, 0, 0, 1])
    >>> both.separable_, both.predict(X).tolist(), round(both.margin_, 3)
    (True, [0, 0, 0, 1], 0.354)
    >>> either = HalfspaceClassifier().fit(X, [0, 1, 1, 0])
    >>> either.separable_, either.certificate_.tolist()
    (False, [0.25, 0.25, 0.25, 0.25])
    """

    _parameter_constraints: dict[str, Any] = {
        "fit_intercept": ["boolean"],
        "slack": [StrOptions({"hinge", "error"})],
    }

    n_features_in_: int

    def __init__(self, *, fit_intercept: bool = True, slack: str = "hinge") -> None:
        self.fit_intercept = fit_intercept
        self.slack = slack

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> HalfspaceClassifier:
        """Find the halfspace.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the slacks, >= 0. Rows of weight zero do not count.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"y: expected two classes, got a target of type {kind}")
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        counted = weights > 0
        classes, codes = encode_labels(y)
        if len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. y: expected two classes, got "
                f"{len(classes)}"
            )
        if len(np.unique(codes[counted])) < 2:
            raise ValueError(
                f"y: expected two classes in rows of positive weight, got one class: "
                f"{classes[codes[counted][0]]}"
            )
        self.classes_ = classes
        signs = np.where(codes == 1, 1.0, -1.0)
        if sparse.issparse(X) and X.shape[0] * X.shape[1] <= MOST_DENSE:
            X = X.toarray()
        # Sums by BLAS depend on its threads, and these would decide between equally good answers.
        with threadpool_limits(limits=1, user_api="blas"):
            self._decide(X, signs, weights)
        return self

    def _decide(self, X: Any, signs: Floats, weights: Floats) -> None:
        dense = not sparse.issparse(X)
        if dense:
            distinct = DistinctRows.of(X, signs, weights)
            rows, weights_of_rows = distinct.rows, distinct.weights
        else:
            rows = np.flatnonzero(weights > 0)
            weights_of_rows = weights[rows]
        part, sides = X[rows], signs[rows]
        sizes = power_of_two(abs(part).max(axis=0).toarray()[0] if not dense else _sizes(part))
        points = _points(part, sides, sizes, self.fit_intercept)
        found = separate(points)
        self.certificate_ = None
        self.separable_ = found.normal is not None
        if found.normal is not None:
            normal = found.normal
            least = float(np.min(np.asarray(points.exact @ normal)))
            if not found.safe or least <= 0:
                warnings.warn(
                    "HalfspaceClassifier: the classes are separable, but so barely that products "
                    "in float64 may put training rows on the wrong side",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            # A power of two, which rounds nothing, just below: so that every product is >= 1.
            unit = float(power_of_two(least)) / 2 if least > 0 else 1.0
            coef, bias = self._unscale(normal / unit, sizes)
            self.slack_ = 0.0
        else:
            assert found.multipliers is not None
            if self.slack == "error":
                raise ValueError(
                    "X and y: expected classes that a halfspace separates (slack='error'), got "
                    "classes with a point in common, a convex combination of "
                    f"{np.count_nonzero(found.multipliers)} rows; slack='hinge' finds a halfspace"
                )
            if dense:
                coef, bias = self._least_slack(part, sides, distinct)
                shares = weights / distinct.weights[distinct.members]
                self.certificate_ = np.where(
                    weights > 0, found.multipliers[distinct.members] * shares, 0.0
                )
            else:
                normal = _sparse_least_slack(points.exact, weights_of_rows)
                coef, bias = self._unscale(normal, sizes)
                self.certificate_ = np.zeros(len(signs))
                self.certificate_[rows] = found.multipliers
        if not (np.isfinite(coef).all() and np.isfinite(bias)):
            raise ValueError(
                "X: expected columns whose coefficients float64 can hold, got values up to "
                f"{abs(X).max():.3g}"
            )
        self.coef_ = coef[None]
        self.intercept_ = np.array([bias])
        products = sides * self.fitted_model().raw_scores(part)[:, 0]
        if not self.separable_:
            self.slack_ = float(weights_of_rows @ np.maximum(0.0, 1.0 - products))
        largest = np.abs(coef).max(initial=0.0)
        length = largest * float(np.linalg.norm(coef / largest)) if largest > 0 else 0.0
        self.margin_ = float(products.min() / length) if length > 0 else 0.0

    def _unscale(self, normal: Floats, sizes: Floats) -> tuple[Floats, float]:
        with np.errstate(over="ignore", under="ignore"):
            if not self.fit_intercept:
                return normal / sizes, 0.0
            return normal[:-1] / sizes, float(normal[-1])

    def _least_slack(
        self, X: Floats, sides: Floats, distinct: DistinctRows
    ) -> tuple[Floats, float]:
        """Minimise Σ w max(0, 1 − y f(x)): a loss that is linear on both sides, 0 and 1."""
        columns = Columns.of(X, self.fit_intercept)
        columns.design *= sides[:, None]
        if columns.design.shape[1] == 0:
            return np.zeros(X.shape[1]), 0.0
        shares = distinct.weights / distinct.weights.max()
        vertex = minimise(
            columns.orthogonal(shares), shares, 0.0, 1.0, distinct.disturbance(shares)
        )
        if not vertex.proven:
            warnings.warn(
                "HalfspaceClassifier: rounding kept the sum of slacks from being proven least",
                ConvergenceWarning,
                stacklevel=4,
            )
        solution = solve(columns.design[vertex.rows], np.ones(len(vertex.rows)))
        return columns.back(solution, 1.0)

    def fitted_model(self) -> LinearModel:
        """Return the fitted halfspace as a value.

        Returns
        -------
        LinearModel
            Its method `raw_scores` returns scores of shape (n_rows, 1), positive for the second
            class; its `outcome` has the classes.
        """
        check_is_fitted(self)
        return LinearModel.from_attributes(self.coef_, self.intercept_, Sides(self.classes_))

    def decision_function(self, X: Any) -> Floats:
        """Compute ⟨w, x⟩ + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive for the second class.
        """
        model = self.fitted_model()
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return model.raw_scores(X)[:, 0]

    def predict(self, X: Any) -> Array:
        """Predict classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The class of each row; the first one on the border itself.
        """
        inside = self.decision_function(X) > 0
        return np.asarray(self.classes_[inside.astype(np.intp)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_class = False
        return tags


def _sizes(X: Floats) -> Floats:
    return np.abs(X).max(axis=0, initial=0.0)


def _points(X: Any, sides: Floats, sizes: Floats, fit_intercept: bool) -> Points:
    if sparse.issparse(X):
        exact = sparse.diags(sides) @ X @ sparse.diags(1 / sizes)
        if fit_intercept:
            exact = sparse.hstack([exact, sides[:, None]])
        exact = exact.tocsr()
        return Points(exact, np.zeros(exact.shape[1]), np.ones(exact.shape[1]))
    scaled = X / sizes
    centers, scales = np.zeros(X.shape[1]), np.ones(X.shape[1])
    exact = scaled * sides[:, None]
    if fit_intercept:
        centers = np.r_[scaled.mean(axis=0), 0.0]
        # What is constant but for rounding stays small: no coefficient is worth it.
        spreads = np.where(is_flat(scaled), 1.0, _sizes(scaled - centers[:-1]))
        scales = np.r_[power_of_two(spreads), 1.0]
        exact = np.column_stack([exact, sides])
    return Points(exact, centers, scales)


def _sparse_least_slack(Z: Any, weights: Floats) -> Floats:
    n_rows, n_columns = Z.shape
    solved = linprog(
        np.r_[np.zeros(n_columns), weights / weights.max()],
        A_ub=sparse.hstack([-Z, -sparse.identity(n_rows)]).tocsr(),
        b_ub=-np.ones(n_rows),
        bounds=[(None, None)] * n_columns + [(0.0, None)] * n_rows,
        method="highs",
    )
    if solved.x is None:
        raise RuntimeError(f"HalfspaceClassifier: HiGHS found no halfspace: {solved.message}")
    return np.asarray(solved.x[:n_columns])
