"""Whitening: linear maps to uncorrelated features of variance one."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, _fit_context
from sklearn.utils.validation import (
    _check_feature_names_in,
    check_is_fitted,
)
from threadpoolctl import threadpool_limits

from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.mixture.em import Components, WeightedRows, sum_moments
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["Whitener"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

METHODS = ("center", "standard", "cholesky", "pca", "zca")


class Whitener(OneToOneFeatureMixin, TransformerMixin, ModelMethods, BaseEstimator):
    """Center, scale or whiten rows.

    With mean μ and covariance A = Σ (x − μ)(x − μ)ᵀ / n, a row x becomes M⁻¹ (x − μ), where
    A = M Mᵀ. After whitening the covariance of the rows is the identity. Several M fulfil this;
    `method` selects one.

    Rows may lie in a subspace (constant, repeated or collinear columns, fewer rows than columns).
    Directions without variance are dropped, so that the covariance of the outputs is the identity.
    `inverse_transform` sets these directions to their mean. It returns the same row if the row
    lies in the subspace, as all training rows do.

    Parameters
    ----------
    method : {"cholesky", "pca", "zca", "standard", "center"}, default="cholesky"
        - "cholesky": M is lower triangular. Output j depends only on the features up to the j-th:
          it is the residual of feature j given the features before it, in units of its standard
          deviation. A feature that is determined by the features before it has no output.
        - "pca": outputs are the principal components, widest first, each in units of its
          standard deviation; those without variance are dropped.
        - "zca": M is the symmetric root of A; outputs stay as close to the features as possible.
          There is one for each feature; in a subspace their covariance is the projection onto it,
          not the identity.
        - "standard": M is diagonal: features in units of their standard deviations, with
          unchanged correlations. Constant features become zero.
        - "center": M is the identity.
    tol : float, default=1e-10
        Directions with less than this share of the variance count as having none; features are
        measured in units of their standard deviations. Constant features have no variance.
    n_jobs : int, default=None
        Number of threads of `fit`; None is `spinney.get_num_threads()`.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean.
    covariance_ : ndarray of shape (n_features, n_features)
        The covariance A.
    whitening_ : ndarray of shape (n_outputs, n_features)
        The matrix M⁻¹ of `transform`.
    unwhitening_ : ndarray of shape (n_features, n_outputs)
        The matrix M of `inverse_transform`.
    rank_ : int
        Number of directions with variance.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.preprocessing import Whitener
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) @ [[3.0, 1.0], [0.0, 0.1]] + 1e6
    >>> white = Whitener().fit_transform(X)
    >>> (np.cov(white.T, bias=True).round(9) + 0.0).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    _parameter_constraints: dict[str, Any] = {
        # Checked in fit, with errors in the form of the other estimators.
        "method": "no_validation",
        "tol": "no_validation",
        "n_jobs": "no_validation",
    }

    n_features_in_: int
    mean_: Floats
    covariance_: Floats
    whitening_: Floats
    unwhitening_: Floats

    def __init__(
        self, method: str = "cholesky", *, tol: float = 1e-10, n_jobs: int | None = None
    ) -> None:
        self.method = method
        self.tol = tol
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Whitener:
        """Compute mean and covariance.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : None
            Not used.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; integer weights are equivalent to repeated rows.

        Returns
        -------
        Whitener
            Itself.
        """
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {self.method!r}")
        if (
            not isinstance(self.tol, Real)
            or isinstance(self.tol, bool)
            or not 0 <= float(self.tol) < 1
        ):
            raise ValueError(f"tol: expected a number in [0, 1), got {self.tol!r}")
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        weights = None
        if sample_weight is not None:
            weights = check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            positive = weights > 0
            if not positive.all():
                X, weights = X[positive], weights[positive]
        rows = WeightedRows.about_their_mean(X, weights, effective_n_jobs(self.n_jobs))
        self.mean_ = rows.shift
        self.covariance_ = _covariance(rows)
        if not np.isfinite(self.covariance_).all():
            raise ValueError("X: expected numbers whose squares are finite, got larger ones")
        # Results of BLAS may depend on its number of threads.
        with threadpool_limits(limits=1, user_api="blas"):
            self._find_maps()
        return self

    def _find_maps(self) -> None:
        n_features = len(self.mean_)
        variances = np.diag(self.covariance_)
        # Treat rounding errors of a large constant as zero variance.
        varies = variances > (1e-14 * np.abs(self.mean_)) ** 2
        units = np.where(varies, np.sqrt(variances), 1.0)
        correlation = self.covariance_ / np.outer(units, units)
        correlation[~varies] = correlation[:, ~varies] = 0.0
        if self.method == "center":
            self.whitening_ = self.unwhitening_ = np.eye(n_features)
            self.rank_ = int(varies.sum())
            self._sources = np.arange(n_features)
        elif self.method == "standard":
            self.whitening_ = np.diag(varies / units)
            self.unwhitening_ = np.diag(units * varies)
            self.rank_ = int(varies.sum())
            self._sources = np.arange(n_features)
        elif self.method == "cholesky":
            factor, self._sources = _leading_cholesky(correlation, self.tol)
            self.rank_ = len(self._sources)
            inverse = np.eye(self.rank_)
            if self.rank_ > 0:
                inverse = solve_triangular(factor[self._sources], inverse, lower=True)
            self.whitening_ = np.zeros((self.rank_, n_features))
            self.whitening_[:, self._sources] = inverse / units[self._sources]
            self.unwhitening_ = factor * units[:, None]
        else:
            self._find_symmetric_maps(correlation, units)

    def _find_symmetric_maps(self, correlation: Floats, units: Floats) -> None:
        """Set the maps of "pca" and "zca".

        The principal axes are those of the covariance. Directions without variance are found from
        the correlation, which does not depend on the units of the features.
        """
        values, vectors = np.linalg.eigh(correlation)
        has_variance = values > self.tol * max(float(values[-1]), 0.0)
        self.rank_ = int(has_variance.sum())
        # An orthonormal basis of the subspace, in the units of the features.
        basis = np.linalg.qr(units[:, None] * vectors[:, has_variance])[0]
        root = (units[:, None] * vectors[:, has_variance]) * np.sqrt(values[has_variance])
        inner = basis.T @ root
        axes, deviations, _ = np.linalg.svd(inner)
        directions = basis @ axes
        # The sign of an axis is arbitrary: make its largest entry positive.
        largest = np.abs(directions).argmax(axis=0)
        directions = directions * np.sign(directions[largest, np.arange(self.rank_)])
        down = directions.T / deviations[:, None]
        up = directions * deviations
        self._sources = np.arange(self.rank_ if self.method == "pca" else len(units))
        self.whitening_ = down if self.method == "pca" else directions @ down
        self.unwhitening_ = up if self.method == "pca" else up @ directions.T

    def transform(self, X: Any) -> Floats:
        """Whiten rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
            The rows, whitened.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return (X - self.mean_) @ self.whitening_.T

    def inverse_transform(self, X: Any) -> Floats:
        """Map whitened rows back to the features.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_outputs)
            Whitened rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Rows.
        """
        check_is_fitted(self)
        white = np.asarray(X, dtype=np.float64)
        n_outputs = len(self.whitening_)
        if white.ndim != 2 or white.shape[1] != n_outputs:
            raise ValueError(
                f"X: expected rows of {n_outputs} whitened numbers, got shape {white.shape}"
            )
        return white @ self.unwhitening_.T + self.mean_

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the outputs: feature names, or pca0, pca1, … for "pca".

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the features, if they had none in `fit`.

        Returns
        -------
        ndarray of str
            Names.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        if self.method == "pca":
            return np.array([f"pca{i}" for i in range(self.rank_)], dtype=object)
        return np.asarray(names, dtype=object)[self._sources]


def _covariance(rows: WeightedRows) -> Floats:
    """Return the covariance of rows."""
    n_features = rows.X.shape[1]
    zero_mean = Components("full", np.ones(1), np.zeros((1, n_features)), None, None)
    moments = sum_moments(rows, zero_mean, labels=np.zeros(len(rows.X), dtype=np.int32))
    return moments.products[0] / rows.total


def _leading_cholesky(matrix: Floats, tol: float) -> tuple[Floats, NDArray[np.intp]]:
    """Return the Cholesky factor of a semidefinite matrix, and the rows with pivots.

    Columns of zero pivots are dropped: the factor has shape (n, rank). LAPACK's pivoted routine
    would change the order of the features.
    """
    n = len(matrix)
    columns: list[Floats] = []
    sources = []
    remainder = matrix.copy()
    for j in range(n):
        pivot = remainder[j, j]
        if pivot <= tol or pivot <= n * 1e-15:
            remainder[j, :] = remainder[:, j] = 0.0
            continue
        column = remainder[:, j] / np.sqrt(pivot)
        column[:j] = 0.0
        remainder[j:, j:] -= np.outer(column[j:], column[j:])
        columns.append(column)
        sources.append(j)
    factor = np.stack(columns, axis=1) if columns else np.zeros((n, 0))
    return factor, np.array(sources, dtype=np.intp)
