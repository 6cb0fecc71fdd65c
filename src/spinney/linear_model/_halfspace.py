"""Halfspaces by linear programming, with proofs of (in)separability."""

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
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from spinney.conformal.mixins import MarginSets
from spinney.data.labels import encode_labels
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.linear_model._columns import Columns, is_constant, power_of_two
from spinney.linear_model._distinct_rows import DistinctRows
from spinney.linear_model._pinball import minimise
from spinney.linear_model._separation import Points, separate
from spinney.models.linear import LinearModel
from spinney.models.methods import ModelMethods
from spinney.models.outcomes import Sides

__all__ = ["HalfspaceClassifier"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Sparse matrices of up to this many values are converted to dense ones, to find equal rows.
MOST_DENSE = 20_000_000


class HalfspaceClassifier(MarginSets, ClassifierMixin, ModelMethods, BaseEstimator):
    """Halfspace by linear programming, for two classes.

    If a halfspace separates the classes, the fit finds one with y_i (⟨w, x_i⟩ + b) >= 1 for all
    rows, where y_i = ±1. Otherwise multipliers of the rows prove that there is none, and the fit
    minimises the sum of slacks max(0, 1 − y_i (⟨w, x_i⟩ + b)). The decision is exact: the solution
    of the linear program is verified with bounds of rounding errors, and in exact arithmetic where
    these leave a doubt.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit the bias b; without it the boundary goes through the origin.
    slack : {"hinge", "error"}, default="hinge"
        If no halfspace separates the classes: minimise the sum of slacks, or raise a ValueError.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features)
        The normal w of the boundary, which points to the second class.
    intercept_ : ndarray of shape (1,)
        The bias b.
    separable_ : bool
        Whether the halfspace separates the classes strictly: no training error.
    margin_ : float
        Distance of the nearest row from the boundary, min y_i (⟨w, x_i⟩ + b) / ‖w‖. It is the
        margin of this halfspace, not the largest of all halfspaces; not positive if the classes are
        not separable.
    certificate_ : ndarray of shape (n_samples,) or None
        If the classes are not separable: λ >= 0 with Σ λ_i = 1, Σ λ_i y_i x_i = 0 and (with
        `fit_intercept`) Σ λ_i y_i = 0. These are the rounded values of an exact solution. Then no w
        and b have y_i (⟨w, x_i⟩ + b) > 0 for all rows, because the sum weighted by λ is zero. The
        two halves of the sum are a common point of the convex hulls of the classes.
    slack_ : float
        The weighted sum of slacks, zero if separable.
    classes_ : ndarray of shape (2,)
        The classes.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.

    See Also
    --------
    Perceptron : Finds a separating halfspace by passes over the rows.

    Notes
    -----
    Columns are centred and scaled to about one. Among the separating halfspaces, the program
    maximises the minimum of y_i (⟨w, x_i⟩ + b) for coefficients in [−1, 1]: the largest margin in
    Manhattan distance, in these units. Weights of rows affect only slacks; rows of weight zero are
    ignored.

    The sum of slacks is minimised by the method of `LADRegressor`, or by HiGHS for sparse matrices
    with more than 20 million values (zeros included).

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
            Weights of the slacks, at least 0. Rows of weight zero are ignored.

        Returns
        -------
        self
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"y: expected two classes, got a target of type {kind}")
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
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
        # The rounding of BLAS depends on its threads, and would choose between equally good fits.
        with threadpool_limits(limits=1, user_api="blas"):
            self._decide(X, signs, weights)
        return self

    def _decide(self, X: Any, signs: Floats, weights: Floats) -> None:
        dense = not sparse.issparse(X)
        if dense:
            distinct = DistinctRows.from_rows(X, signs, weights)
            rows, row_weights = distinct.rows, distinct.weights
        else:
            rows = np.flatnonzero(weights > 0)
            row_weights = weights[rows]
        used, sides = X[rows], signs[rows]
        sizes = power_of_two(abs(used).max(axis=0).toarray()[0] if not dense else _sizes(used))
        points = _points(used, sides, sizes, self.fit_intercept)
        found = separate(points)
        self.certificate_ = None
        self.separable_ = found.normal is not None
        if found.normal is not None:
            normal = found.normal
            smallest = float(np.min(np.asarray(points.exact @ normal)))
            if not found.safe or smallest <= 0:
                warnings.warn(
                    "HalfspaceClassifier: the classes are separable, but with so small a margin "
                    "that rounding errors may put training rows on the wrong side",
                    ConvergenceWarning,
                    stacklevel=3,
                )
            # Divide by a power of two at most the smallest product, without rounding: then all
            # products are at least 1.
            unit = float(power_of_two(smallest)) / 2 if smallest > 0 else 1.0
            coef, bias = self._unscale(normal / unit, sizes)
            self.slack_ = 0.0
        else:
            assert found.multipliers is not None
            if self.slack == "error":
                raise ValueError(
                    "X and y: expected classes that a halfspace separates (slack='error'); got "
                    "classes whose convex hulls have a common point, a combination of "
                    f"{np.count_nonzero(found.multipliers)} rows; slack='hinge' allows errors"
                )
            if dense:
                coef, bias = self._minimise_slack(used, sides, distinct)
                shares = weights / distinct.weights[distinct.members]
                self.certificate_ = np.where(
                    weights > 0, found.multipliers[distinct.members] * shares, 0.0
                )
            else:
                normal = _minimise_sparse_slack(points.exact, row_weights)
                coef, bias = self._unscale(normal, sizes)
                self.certificate_ = np.zeros(len(signs))
                self.certificate_[rows] = found.multipliers
        if not (np.isfinite(coef).all() and np.isfinite(bias)):
            raise ValueError(
                "X: coefficients are beyond the range of float64; got values up to "
                f"{abs(X).max():.3g}; multiply columns by a power of ten"
            )
        self.coef_ = coef[None]
        self.intercept_ = np.array([bias])
        products = sides * self.fitted_model().raw_scores(used)[:, 0]
        if not self.separable_:
            self.slack_ = float(row_weights @ np.maximum(0.0, 1.0 - products))
        largest = np.abs(coef).max(initial=0.0)
        length = largest * float(np.linalg.norm(coef / largest)) if largest > 0 else 0.0
        self.margin_ = float(products.min() / length) if length > 0 else 0.0

    def _unscale(self, normal: Floats, sizes: Floats) -> tuple[Floats, float]:
        """Return coefficients and bias in the units of X."""
        with np.errstate(over="ignore", under="ignore"):
            if not self.fit_intercept:
                return normal / sizes, 0.0
            return normal[:-1] / sizes, float(normal[-1])

    def _minimise_slack(
        self, X: Floats, sides: Floats, distinct: DistinctRows
    ) -> tuple[Floats, float]:
        """Minimise Σ w max(0, 1 − y f(x)), a pinball loss with the slopes 0 and 1."""
        columns = Columns.from_rows(X, self.fit_intercept)
        columns.design *= sides[:, None]
        if columns.design.shape[1] == 0:
            return np.zeros(X.shape[1]), 0.0
        shares = distinct.weights / distinct.weights.max()
        vertex = minimise(
            columns.orthogonal(shares), shares, 0.0, 1.0, distinct.perturbation(shares)
        )
        if not vertex.proven:
            warnings.warn(
                "HalfspaceClassifier: the sum of slacks is not proven minimal because of rounding "
                "errors; scale the columns of X to similar sizes",
                ConvergenceWarning,
                stacklevel=4,
            )
        solution = solve(columns.design[vertex.rows], np.ones(len(vertex.rows)))
        return columns.restore_coef(solution, 1.0)

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
            Scores, positive for the second class.
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
            The class of each row; the first class on the boundary itself.
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
    """Return the points y (x, 1), with columns of X divided by their sizes."""
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
        # Rounding errors of constant columns must not be scaled up.
        spreads = np.where(is_constant(scaled), 1.0, _sizes(scaled - centers[:-1]))
        scales = np.r_[power_of_two(spreads), 1.0]
        exact = np.column_stack([exact, sides])
    return Points(exact, centers, scales)


def _minimise_sparse_slack(Z: Any, weights: Floats) -> Floats:
    """Return the normal with the smallest weighted sum of slacks, by HiGHS."""
    n_rows, n_columns = Z.shape
    solved = linprog(
        np.r_[np.zeros(n_columns), weights / weights.max()],
        A_ub=sparse.hstack([-Z, -sparse.identity(n_rows)]).tocsr(),
        b_ub=-np.ones(n_rows),
        bounds=[(None, None)] * n_columns + [(0.0, None)] * n_rows,
        method="highs",
    )
    if solved.x is None:
        raise RuntimeError(f"HalfspaceClassifier: the solver HiGHS failed: {solved.message}")
    return np.asarray(solved.x[:n_columns])
