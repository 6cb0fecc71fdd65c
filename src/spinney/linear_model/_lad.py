"""Least absolute deviations and quantile regression with proven optimality."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, solve
from scipy.special import ndtri
from sklearn.base import BaseEstimator, RegressorMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from spinney.conformal.mixins import HeldOut, IntervalMixin, subsample_rows
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.linear_model._columns import Columns, power_of_two
from spinney.linear_model._distinct_rows import DistinctRows
from spinney.linear_model._pinball import minimise
from spinney.models.linear import LinearModel
from spinney.models.methods import ModelMethods
from spinney.models.outcomes import Numbers

__all__ = ["LADRegressor"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Largest duality gap without a warning: relative to the loss, and to the size of the targets.
GAP = 1e-7
ROUNDING = 1e-12
# Sums Xᵀ dual_ that count as zero, relative to the sums of the absolute terms.
SUMS = 1e-8


class LADRegressor(IntervalMixin, RegressorMixin, ModelMethods, BaseEstimator):
    """Linear regression by least absolute deviations, exact.

    Minimises ``Σ w_i |y_i − ⟨x_i, coef⟩ − intercept|``. For quantiles other than the median it
    minimises the sum of 2 w_i ρ(r_i), where ρ(r) is `quantile` · r above the fit and
    (`quantile` − 1) · r below it. The fit goes through as many rows as there are coefficients.
    Multipliers of the rows prove that no other fit has a smaller loss.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile, strictly between 0 and 1: about this share of the rows is below the fit. 0.5
        is least absolute deviations.
    fit_intercept : bool, default=True
        Whether there is an intercept.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients; zero for columns that depend on others.
    intercept_ : float
        The intercept.
    dual_ : ndarray of shape (n_samples,)
        Multipliers of the rows: `2 * quantile` times the weight of a row above the fit,
        `2 * (quantile - 1)` times the weight of a row below it, and between both for rows on it.
        Since Xᵀ `dual_` = 0 (and Σ `dual_` = 0 with an intercept), Σ `dual_` · y is a lower bound
        of the loss of every fit.
    duality_gap_ : float
        The loss minus this bound: zero up to rounding errors, including those of `predict`. If it
        is larger, a warning is emitted.
    loss_ : float
        The minimised sum.
    support_ : ndarray of int
        Indexes of the rows that the fit goes through.
    n_iter_ : int
        Number of steps of the interior point method and along edges of the polytope.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all are strings.

    Notes
    -----
    As a linear program, the problem has 2n rows and n + d columns. Here its dual is solved by an
    interior point method with d equations per step, and then vertex by vertex until the multipliers
    are within their bounds. If several fits are optimal, the choice does not depend on the order of
    the rows.

    Sparse matrices are converted to dense ones.

    `predict_interval` uses leave-one-out errors, approximated to first order in the leverage of
    each row. This is accurate on average with many rows per coefficient, but it guarantees no
    coverage. ``calibration`` rows guarantee it.

    References
    ----------
    Barrodale, Roberts: An improved algorithm for discrete l1 linear approximation, 1973.
    Portnoy, Koenker: The Gaussian hare and the Laplacian tortoise, 1997.

    Examples
    --------
    An outlier does not move the line:

    >>> from spinney.linear_model import LADRegressor
    >>> X = [[0], [1], [2], [3], [4]]
    >>> line = LADRegressor().fit(X, [1, 3, 5, 700, 9])
    >>> line.coef_.round(9).tolist(), round(line.intercept_, 9)
    ([2.0], 1.0)
    >>> round(line.loss_, 9)
    693.0
    """

    _parameter_constraints: dict[str, Any] = {
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "fit_intercept": ["boolean"],
    }

    n_features_in_: int

    def __init__(self, *, quantile: float = 0.5, fit_intercept: bool = True) -> None:
        self.quantile = quantile
        self.fit_intercept = fit_intercept

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LADRegressor:
        """Fit the line.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, at least 0; a row of weight 2 counts as two rows.

        Returns
        -------
        self
        """
        X, y = validate_data(
            self, X, y, accept_sparse=["csr", "csc"], dtype=np.float64, y_numeric=True
        )
        y = np.asarray(y, dtype=np.float64)
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if sparse.issparse(X):
            X = X.toarray()
        # The rounding of BLAS depends on its threads, and would choose between equally good fits.
        with threadpool_limits(limits=1, user_api="blas"):
            self._solve(X, y, weights)
        return self

    def _solve(self, X: Floats, y: Floats, weights: Floats) -> None:
        distinct = DistinctRows.from_rows(X, y, weights)
        columns = Columns.from_rows(X[distinct.rows], self.fit_intercept)
        scale = float(power_of_two(np.abs(y[distinct.rows]).max()))
        targets = y[distinct.rows] / scale
        low, high = 2 * (float(self.quantile) - 1), 2 * float(self.quantile)
        if columns.design.shape[1] == 0:
            solution, rows = np.zeros(0), np.zeros(0, dtype=np.intp)
            dual = np.where(targets > 0, high, low)
            feasible = True
            self.n_iter_ = 0
        else:
            shares = distinct.weights / distinct.weights.max()
            vertex = minimise(
                columns.orthogonal(shares),
                targets * shares,
                low,
                high,
                distinct.perturbation(shares),
            )
            rows, dual = vertex.rows, vertex.dual
            solution = solve(columns.design[rows], targets[rows])
            # Compute the multipliers of these rows again from the columns themselves: the
            # orthogonal basis is imprecise in rows of tiny weight.
            others = dual * shares
            others[rows] = 0.0
            own = -solve(columns.design[rows].T, others @ columns.design) / shares[rows]
            dual[rows] = np.clip(own, low, high)
            terms = (dual * shares)[:, None] * columns.design
            feasible = (np.abs(terms.sum(axis=0)) <= SUMS * np.abs(terms).sum(axis=0)).all()
            self.n_iter_ = vertex.n_steps
        self.support_ = np.sort(distinct.rows[rows])
        self.coef_, self.intercept_ = columns.restore_coef(solution, scale)
        self._center = columns.centers
        self._at_center = float(solution[-1]) * scale if self.fit_intercept else 0.0
        if not (np.isfinite(self.coef_).all() and np.isfinite(self.intercept_)):
            raise ValueError(
                "X and y: coefficients are beyond the range of float64; got y up to "
                f"{np.abs(y).max():.3g} and columns of X up to {np.abs(X).max(axis=0)}; multiply "
                "columns, or divide y, by a power of ten"
            )
        # Residuals of `predict`, so that the gap includes its rounding errors.
        residuals = targets - self._line(X[distinct.rows]) / scale
        losses = np.maximum(low * residuals, high * residuals)
        loss, gap = distinct.weights @ losses, distinct.weights @ (losses - dual * residuals)
        self.loss_, self.duality_gap_ = scale * float(loss), scale * float(gap)
        # `members` is -1 for rows of weight zero; their multipliers become zero.
        self.dual_ = dual[distinct.members] * weights
        self._held_out: HeldOut | None = None
        if columns.design.shape[1]:
            self._estimate_held_out(distinct, columns, X, y, weights)
        near = gap <= GAP * loss + ROUNDING * float(distinct.weights @ np.abs(targets))
        if not (near and feasible):
            warnings.warn(
                "LADRegressor: the fit is not proven optimal because of rounding errors; columns "
                "nearly depend on others, or weights have very different sizes; duality_gap_ is "
                f"{self.duality_gap_:.3g}, and the sums Xᵀ dual_ are "
                f"{'zero' if feasible else 'not zero'}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _estimate_held_out(
        self, distinct: DistinctRows, columns: Columns, X: Floats, y: Floats, weights: Floats
    ) -> None:
        """Keep approximate leave-one-out predictions of rows.

        Without a row, the prediction at this row changes by its leverage times its multiplier over
        twice the density of the errors at the fit, up to second-order terms in the leverage.
        """
        n_columns = columns.design.shape[1]
        counted = np.flatnonzero(weights > 0)
        if len(counted) < 4 * n_columns:
            return
        rows = counted[subsample_rows(len(counted))]
        design = columns.design
        matrix = (design * distinct.weights[:, None]).T @ design
        try:
            factor = cho_factor(matrix, lower=True)
        except (LinAlgError, ValueError):
            return
        chosen = design[distinct.members[rows]]
        leverage = np.einsum("ij,ji->i", chosen, cho_solve(factor, chosen.T))
        residuals = y[rows] - self._line(X[rows])
        spacing = _inverse_density(residuals, float(self.quantile))
        pull = self.dual_[rows] * leverage * spacing / 2
        predictions = np.asarray(y[rows] - residuals - pull)
        kept_weights = None if (weights == 1).all() else weights[rows]
        self._held_out = HeldOut(
            "approximate leave-one-out residuals", y[rows], predictions, weights=kept_weights
        )

    def _reason_without_rows(self) -> str:
        return " (held-out errors need at least four rows per coefficient)"

    def _line(self, X: Any) -> Floats:
        model = self.fitted_model()
        if sparse.issparse(X):
            # `raw_scores` would compute the intercept at the origin again, with other rounding.
            model = LinearModel.from_attributes(self.coef_, self.intercept_, model.outcome)
        return model.raw_scores(X)[:, 0]

    def fitted_model(self) -> LinearModel:
        """Return the fitted line as a value.

        Returns
        -------
        LinearModel
            Its method `raw_scores` returns predictions of shape (n_rows, 1).
        """
        check_is_fitted(self)
        # Dense rows are centred before they are multiplied: rows far from the origin keep their
        # digits. The intercept is therefore that of centred rows, not `intercept_`.
        return LinearModel.from_attributes(
            self.coef_, self._at_center, Numbers(flat=True), center=np.asarray(self._center)
        )

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The fitted line at each row.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc"], dtype=np.float64, reset=False)
        return self._line(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _inverse_density(residuals: Floats, level: float) -> float:
    """Return 1 / density of the residuals at a quantile."""
    # A difference of two quantiles; Bofinger's width minimises the mean squared error if errors are
    # normal.
    z = ndtri(level)
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    width = (4.5 * density**4 / (len(residuals) * (2 * z * z + 1) ** 2)) ** 0.2
    low, high = max(level - width, 0.0), min(level + width, 1.0)
    below, above = np.quantile(residuals, [low, high])
    return float((above - below) / (high - low))
