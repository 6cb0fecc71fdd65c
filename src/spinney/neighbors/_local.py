"""Local regression: polynomials fitted to the training rows around each point."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    RegressorMixin,
    _fit_context,
    is_regressor,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, subsample_rows
from spinney.data.labels import encode_labels
from spinney.data.sklearn_versions import check_sample_weight, validate_data
from spinney.models.methods import ModelMethods
from spinney.neighbors._neighborhoods import LOCAL_METRICS
from spinney.neighbors._smoother import KERNEL_SUPPORTS, LocalFits, Smoother, Width
from spinney.neighbors._width_choice import choose_width
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LocalClassifier", "LocalRegression"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

_MAX_TERMS = 2_000


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


class BaseLocal(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of the local regressor and the local classifier."""

    _parameter_constraints: dict[str, Any] = {
        # Checked in `fit`, whose error messages are more precise.
        "degree": "no_validation",
        "kernel": "no_validation",
        "bandwidth": "no_validation",
        "n_neighbors": "no_validation",
        "alpha": "no_validation",
        "metric": "no_validation",
        "outside": "no_validation",
        "n_jobs": "no_validation",
    }

    n_features_in_: int
    degree: Any
    kernel: Any
    bandwidth: Any
    n_neighbors: Any
    alpha: Any
    metric: Any
    outside: Any
    n_jobs: Any

    @abstractmethod
    def _encode(self, y: Array) -> Floats:
        """Return the targets of the smoother, (n_rows, n_outputs)."""

    @abstractmethod
    def _finish(self, values: Floats) -> Floats:
        """Convert the smoother's values to predictions, both (n_rows, n_outputs)."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Smoother:
        """Check the data, store the rows with positive weight, and select the width."""
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        targets = self._encode(y)
        weights = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        has_weight = weights > 0
        if not has_weight.any():
            raise ValueError("sample_weight: expected at least one positive weight, got only zeros")
        if not has_weight.all():
            X, targets, weights = X[has_weight], targets[has_weight], weights[has_weight]
        n_terms = X.shape[1] * (X.shape[1] + 3) // 2 if self.degree == 2 else X.shape[1]
        if self.degree and n_terms > _MAX_TERMS:
            raise ValueError(
                f"degree={self.degree}: expected at most {_MAX_TERMS} coefficients, got {n_terms} "
                f"for {X.shape[1]} features"
            )
        smoother = Smoother(
            X,
            targets,
            weights,
            kernel=self.kernel,
            degree=int(self.degree),
            alpha=float(self.alpha),
            metric=self.metric,
            logit=getattr(self, "link", "identity") == "logit",
        )
        for name in ("cv_widths_", "cv_errors_", "_held_out", "_squares"):
            self.__dict__.pop(name, None)
        self._width = self._read_width(smoother)
        self.bandwidth_ = self._width.bandwidth
        self.n_neighbors_ = self._width.k
        self._smoother = smoother
        self._inside: LocalFits | None = None
        self._left_out: Floats | None = None
        return smoother

    def _check_parameters(self) -> None:
        def fail(name: str, expected: str) -> None:
            raise ValueError(f"{name}: expected {expected}, got {getattr(self, name)!r}")

        if (
            not _is_number(self.degree)
            or not isinstance(self.degree, Integral)
            or self.degree not in (0, 1, 2)
        ):
            fail("degree", "0, 1 or 2")
        if not callable(self.kernel) and not (
            isinstance(self.kernel, str) and self.kernel in KERNEL_SUPPORTS
        ):
            fail("kernel", f"a function or one of {', '.join(KERNEL_SUPPORTS)}")
        if self.bandwidth is not None and not (
            (isinstance(self.bandwidth, str) and self.bandwidth == "cv")
            or (_is_number(self.bandwidth) and 0 < self.bandwidth < np.inf)
        ):
            fail("bandwidth", "a positive number, 'cv' or None")
        k = self.n_neighbors
        if not (isinstance(k, str) and k == "cv") and not (
            _is_number(k) and (int(k) >= 1 if isinstance(k, Integral) else 0 < k <= 1)
        ):
            fail("n_neighbors", "a number of rows >= 1, a fraction in (0, 1] or 'cv'")
        if not _is_number(self.alpha) or not 0 <= self.alpha < np.inf:
            fail("alpha", "a finite number >= 0")
        if not isinstance(self.metric, str) or self.metric not in LOCAL_METRICS:
            fail("metric", f"one of {', '.join(LOCAL_METRICS)}")
        if not isinstance(self.outside, str) or self.outside not in ("nearest", "nan"):
            fail("outside", "'nearest' or 'nan'")

    def _read_width(self, smoother: Smoother) -> Width:
        """Convert `n_neighbors` or `bandwidth` to a width; select it for "cv"."""
        kind = "n_neighbors" if self.bandwidth is None else "bandwidth"
        given = getattr(self, kind)
        if isinstance(given, str):
            width, self.cv_widths_, self.cv_errors_ = choose_width(
                smoother, kind, self._finish, effective_n_jobs(self.n_jobs)
            )
            return width
        if kind == "bandwidth":
            return Width(bandwidth=float(given))
        if isinstance(given, Integral):
            return Width(k=int(given))
        k = float(given) * smoother.total
        # With fractional weights, k may be a fraction, too.
        are_counts = smoother.counted is None or (smoother.counted % 1 == 0).all()
        return Width(k=max(1, int(k + 1e-5)) if are_counts else k)

    def _fit_locally(self, X: Any, with_gradients: bool = False) -> LocalFits:
        """Fit the polynomials at the rows of X."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        fits = self._smoother.smooth(
            np.ascontiguousarray(X),
            self._width,
            effective_n_jobs(self.n_jobs),
            with_gradients=with_gradients,
        )
        if self.outside == "nan":
            fits.values[fits.is_isolated] = np.nan
            fits.noise[fits.is_isolated] = np.nan
            if with_gradients:
                fits.gradients[fits.is_isolated] = np.nan
        return fits

    def _fits_at_training_rows(self) -> LocalFits:
        """Return the fits at the training rows, which are computed on demand."""
        check_is_fitted(self)
        if self._inside is None:
            smoother = self._smoother
            self._inside = smoother.smooth(
                smoother.X,
                self._width,
                effective_n_jobs(self.n_jobs),
                own_rows=np.arange(smoother.n_rows),
            )
        return self._inside

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[misc]
        if "_inside" in state:
            state["_inside"] = None  # computed again on demand
        return state

    def _leave_one_out(self) -> Floats:
        """Return the leave-one-out predictions, which are computed on demand."""
        check_is_fitted(self)
        if self._left_out is None:
            smoother = self._smoother
            self._left_out = self._finish(
                smoother.leave_one_out(
                    np.arange(smoother.n_rows), self._width, effective_n_jobs(self.n_jobs)
                )
            )
        return self._left_out

    @property
    def effective_dof_(self) -> float:
        """Effective number of parameters: the trace of the smoother."""
        check_is_fitted(self)
        if self._smoother.logit:
            raise AttributeError("effective_dof_ requires link='identity', got 'logit'")
        return float(self._fits_at_training_rows().leverages.sum())


class LocalRegression(IntervalMixin, RegressorMixin, BaseLocal):
    """Predict by a local polynomial, fitted to the training rows around each point.

    At a point x, each training row has the weight K(d(x, x_i) / h(x)). A polynomial of the
    differences x_i − x is fitted by weighted least squares. The prediction is its value at x, the
    intercept. Degree 0 is the Nadaraya-Watson estimate. Degree 1 with `n_neighbors` and `robust`
    iterations is loess.

    Parameters
    ----------
    degree : {0, 1, 2}, default=1
        Degree of the polynomials; 2 has all squares and products.
    kernel : str or callable, default="tricube"
        Weight as a function of u, the distance divided by the bandwidth. Zero for u > 1: "uniform"
        (1), "triangular" (1 − u), "epanechnikov" (1 − u²), "biweight" (1 − u²)², "triweight"
        (1 − u²)³, "tricube" (1 − u³)³ and "cosine" cos(πu/2). Unbounded: "gaussian" exp(−u²/2) and
        "logistic" 4 / (e^u + 2 + e^−u). All are 1 at u = 0. A function gets an array of u and
        returns weights >= 0.
    bandwidth : float, "cv" or None, default=None
        The bandwidth h, the same at all points. Unbounded kernels are cut off where the weight is
        below 1e-12; a function gets the distances of all rows. "cv" selects the candidate with the
        smallest leave-one-out squared error, out of 15, on at most 5,000 evenly spaced rows. None
        means that `n_neighbors` determines the bandwidth.
    n_neighbors : int, float or "cv", default=30
        The bandwidth at x is 1.001 times the distance of the n-th nearest training row, so this
        row has a small weight. Rows with the same distance as the n-th belong to the neighbours;
        farther rows have no weight for any kernel. A float is a fraction of the rows, like the span
        of loess. If n is larger than the number of rows, all rows are neighbours. A row of weight w
        counts as w rows. "cv" selects n like the bandwidth; a held-out row counts as one of the n.
    alpha : float, default=0.0
        Ridge penalty: alpha times the sum of squared coefficients is added to the weighted sum of
        squares. The intercept has no penalty.
    metric : {"euclidean", "manhattan", "chebyshev"}, default="euclidean"
        The distance. Features are not scaled; give them similar units, for instance with
        StandardScaler.
    robust : int, default=0
        Number of robust iterations, which reduce the effect of outliers. Each multiplies the
        weights by (1 − (r / 6m)²)², with the residuals r and the median m of ``|r|``. Bandwidths do
        not change.
    outside : {"nearest", "nan"}, default="nearest"
        Prediction at points where no row has weight: the target of the nearest row (with gradient
        zero), or NaN.
    n_jobs : int, default=None
        Number of threads; None means `spinney.get_num_threads()`. The result does not depend on it.

    Attributes
    ----------
    bandwidth_ : float or None
        The bandwidth, if it is fixed.
    n_neighbors_ : int, float or None
        The number of nearest rows, if it determines the bandwidth.
    cv_widths_, cv_errors_ : ndarray
        With "cv": the candidates and their mean squared errors.
    robust_weights_ : ndarray of shape (n_rows,)
        Weights of the last robust iteration, for the rows with positive sample weight.
    effective_dof_ : float
        Effective number of parameters, the trace of the smoother. This and the next three
        attributes are computed on first access, by fits at all training rows.
    sigma_ : float
        Standard deviation of the noise: the root of the weighted sum of squared residuals, divided
        by the total weight minus `effective_dof_`. NaN if this difference is zero.
    loo_residuals_ : ndarray of shape (n_rows,)
        Targets minus leave-one-out predictions, for the rows with positive sample weight. The
        bandwidths are those of all rows.
    loo_score_ : float
        R² of the leave-one-out predictions.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Too few, collinear or duplicate rows do not determine all coefficients. The fit then is the
    minimum-norm solution, with each feature scaled by its range around the point, and without a
    penalty of the intercept. If all rows are equal, the prediction is their mean. Directions in
    which the terms vary by less than 1e-9 of the largest variation are not fitted.

    References
    ----------
    W. S. Cleveland and S. J. Devlin, "Locally weighted regression", JASA 83 (1988).
    J. Fan and I. Gijbels, "Local Polynomial Modelling and Its Applications" (1996).

    See Also
    --------
    LocalClassifier : Local regression of class probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.neighbors import LocalRegression
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = LocalRegression(n_neighbors=10).fit(X, 3 * X[:, 0] + 1)
    >>> model.predict([[0.25], [2.0]]).round(6).tolist()
    [1.75, 7.0]
    >>> model.gradient([[0.25]]).round(6).tolist()
    [[3.0]]
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseLocal._parameter_constraints,
        "robust": "no_validation",
    }

    def __init__(
        self,
        degree: Any = 1,
        *,
        kernel: Any = "tricube",
        bandwidth: Any = None,
        n_neighbors: Any = 30,
        alpha: Any = 0.0,
        metric: Any = "euclidean",
        robust: Any = 0,
        outside: Any = "nearest",
        n_jobs: Any = None,
    ) -> None:
        self.degree = degree
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.metric = metric
        self.robust = robust
        self.outside = outside
        self.n_jobs = n_jobs

    def _encode(self, y: Array) -> Floats:
        return np.asarray(y, dtype=np.float64)[:, np.newaxis]

    def _finish(self, values: Floats) -> Floats:
        return values

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocalRegression:
        """Store the rows, select the bandwidth, and compute the robust weights.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The training rows; all values must be finite.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; an integer weight is equivalent to repetitions of the row.

        Returns
        -------
        LocalRegression
            This estimator.
        """
        if not _is_number(self.robust) or not isinstance(self.robust, Integral) or self.robust < 0:
            raise ValueError(f"robust: expected a number of iterations >= 0, got {self.robust!r}")
        smoother = self._fit(X, y, sample_weight)
        given = smoother.weights
        self.robust_weights_ = np.ones(smoother.n_rows)
        for _ in range(self.robust):
            residuals = smoother.targets - self._fits_at_training_rows().values
            rounding = 1e-9 * float(np.ptp(smoother.targets))
            self.robust_weights_ = _bisquare(residuals[:, 0], given, rounding)
            smoother.weights = given * self.robust_weights_
            self._inside = None
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the values of the polynomials at the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.
        return_std : bool, default=False
            Whether to return standard errors as well. They include neither the noise of a new
            target nor the bias of the fit.

        Returns
        -------
        ndarray of shape (n_rows,), or two of them
            Predictions, and their standard errors.
        """
        fits = self._fit_locally(X)
        values = fits.values[:, 0]
        if not return_std:
            return values
        return values, self.sigma_ * np.sqrt(fits.noise)

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            smoother = self._smoother
            predicted = self._leave_one_out()[:, 0]
            truth = smoother.targets[:, 0]
            # Squared errors, averaged over the same neighbourhoods, estimate the local variance.
            self._squares = Smoother(
                smoother.X,
                ((truth - predicted) ** 2)[:, np.newaxis],
                smoother.weights,
                kernel=self.kernel,
                degree=0,
                alpha=0.0,
                metric=self.metric,
            )
            n_threads = effective_n_jobs(self.n_jobs)
            all_rows = np.arange(smoother.n_rows)
            scale = self._scale(self._squares.leave_one_out(all_rows, self._width, n_threads))
            known = np.flatnonzero(np.isfinite(predicted) & np.isfinite(scale))
            rows = known[subsample_rows(len(known))]
            weights = None if smoother.counted is None else smoother.counted[rows]
            self._held_out = HeldOut(
                "rows, each by the others", truth[rows], predicted[rows], scale[rows], weights
            )
        return super()._held_out_rows()

    def _predict_with_scale(self, X: Any) -> tuple[Floats, Floats]:
        self._held_out_rows()  # sets _squares
        X = validate_data(self, X, dtype=np.float64, reset=False)
        X = np.ascontiguousarray(X)
        squares = self._squares.smooth(X, self._width, effective_n_jobs(self.n_jobs))
        return np.asarray(self.predict(X), dtype=np.float64), self._scale(squares.values)

    def _scale(self, squares: Floats) -> Floats:
        """Return the size of the local errors, with a weight of 0.1 for the global mean."""
        overall = float(np.mean(self._squares.targets))
        return np.sqrt(0.9 * squares[:, 0] + 0.1 * overall) + np.finfo(np.float64).tiny

    def gradient(self, X: Any) -> Floats:
        """Return the gradients of the polynomials at the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Gradients.
        """
        check_is_fitted(self)
        if self._smoother.degree == 0:
            raise ValueError("degree: expected 1 or 2 for gradients, got 0")
        return self._fit_locally(X, with_gradients=True).gradients[:, 0]

    @property
    def sigma_(self) -> float:
        """Standard deviation of the noise."""
        fits = self._fits_at_training_rows()
        weights = self._smoother.weights
        residuals = self._smoother.targets - fits.values
        residual_dof = weights.sum() - self.effective_dof_
        if residual_dof <= 1e-9 * weights.sum():
            return float("nan")
        return float(np.sqrt(weights @ residuals[:, 0] ** 2 / residual_dof))

    @property
    def loo_residuals_(self) -> Floats:
        """Targets minus leave-one-out predictions."""
        return (self._smoother.targets - self._leave_one_out())[:, 0]

    @property
    def loo_score_(self) -> float:
        """R² of the leave-one-out predictions."""
        predicted = self._leave_one_out()[:, 0]
        weights, targets = self._smoother.weights, self._smoother.targets[:, 0]
        errors = weights @ (targets - predicted) ** 2
        total = weights @ (targets - np.average(targets, weights=weights)) ** 2
        if total == 0:
            return 1.0 if errors == 0 else 0.0
        return float(1 - errors / total)


class LocalClassifier(SetMixin, ClassifierMixin, BaseLocal):
    """Predict class probabilities by local regression around each point.

    Degree 0 averages the class indicators with the weights of the kernel. Degrees 1 and 2 fit a
    polynomial to the indicator of each class; negative values become 0, and the values are
    normalized to sum 1. With ``link="logit"``, the polynomials are the log-odds of a logistic
    regression at each point.

    Parameters
    ----------
    degree : {0, 1, 2}, default=1
        Degree of the polynomials; 2 has all squares and products.
    kernel : str or callable, default="tricube"
        Weight as a function of the distance, as in LocalRegression.
    bandwidth : float, "cv" or None, default=None
        The bandwidth, the same at all points. "cv" selects the one with the smallest leave-one-out
        Brier score. None means that `n_neighbors` determines the bandwidth.
    n_neighbors : int, float or "cv", default=30
        The number of nearest rows within the bandwidth, as in LocalRegression.
    alpha : float, default=0.0
        Ridge penalty of the squared coefficients without the intercept; half of it for log-odds.
    link : {"identity", "logit"}, default="identity"
        "identity" fits the class indicators by least squares. "logit" fits their log-odds by
        maximum likelihood, with at most 25 Newton steps; several classes are fitted one against
        the rest, and normalized. "logit" is slower, but better for probabilities near 0 and 1. If
        the classes around a point are separable, the log-odds are limited to ±30; `alpha` reduces
        them.
    metric : {"euclidean", "manhattan", "chebyshev"}, default="euclidean"
        The distance. Features are not scaled; give them similar units.
    outside : {"nearest", "nan"}, default="nearest"
        Prediction at points where no row has weight: the class of the nearest row, or NaN
        probabilities (and the first class).
    n_jobs : int, default=None
        Number of threads; None means `spinney.get_num_threads()`. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes. If classes are equally probable, the first is predicted.
    bandwidth_, n_neighbors_, cv_widths_, cv_errors_, effective_dof_
        As in LocalRegression; the errors are Brier scores. `effective_dof_` requires the link
        "identity".
    loo_score_ : float
        Accuracy of the leave-one-out predictions.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    LocalRegression : Regression, with details of kernels, bandwidths and edge cases.

    Examples
    --------
    >>> from spinney.neighbors import LocalClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]]
    >>> model = LocalClassifier(0, kernel="uniform", n_neighbors=3).fit(X, list("aaabbb"))
    >>> model.predict([[0.5], [4.5]]).tolist()
    ['a', 'b']
    >>> model.predict_proba([[3.0]]).round(2).tolist()
    [[0.33, 0.67]]
    """

    _parameter_constraints: dict[str, Any] = {
        **BaseLocal._parameter_constraints,
        "link": "no_validation",
    }

    classes_: Any

    def __init__(
        self,
        degree: Any = 1,
        *,
        kernel: Any = "tricube",
        bandwidth: Any = None,
        n_neighbors: Any = 30,
        alpha: Any = 0.0,
        link: Any = "identity",
        metric: Any = "euclidean",
        outside: Any = "nearest",
        n_jobs: Any = None,
    ) -> None:
        self.degree = degree
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.alpha = alpha
        self.link = link
        self.metric = metric
        self.outside = outside
        self.n_jobs = n_jobs

    def _encode(self, y: Array) -> Floats:
        check_classification_targets(y)
        self.classes_, codes = encode_labels(y)
        return np.eye(len(self.classes_))[codes]

    def _finish(self, values: Floats) -> Floats:
        # Fits of the indicators sum to one, so the positive ones sum to at least one.
        shares = np.maximum(values, 0.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocalClassifier:
        """Store the rows and select the bandwidth.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The training rows; all values must be finite.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; an integer weight is equivalent to repetitions of the row.

        Returns
        -------
        LocalClassifier
            This estimator.
        """
        if not isinstance(self.link, str) or self.link not in ("identity", "logit"):
            raise ValueError(f"link: expected 'identity' or 'logit', got {self.link!r}")
        self._fit(X, y, sample_weight)
        return self

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            shares = self._leave_one_out()
            known = np.flatnonzero(np.isfinite(shares).all(axis=1))
            rows = known[subsample_rows(len(known))]
            codes = self._smoother.targets[rows].argmax(axis=1).astype(np.int32)
            counted = self._smoother.counted
            weights = None if counted is None else counted[rows]
            self._held_out = HeldOut(
                "rows, each by the others", codes, shares[rows], weights=weights
            )
        return super()._held_out_rows()

    def predict_proba(self, X: Any) -> Floats:
        """Predict class probabilities at the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._finish(self._fit_locally(X).values)

    def predict(self, X: Any) -> Array:
        """Predict the most probable class.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Classes.
        """
        shares = self.predict_proba(X)
        return np.asarray(self.classes_.take(shares.argmax(axis=1), axis=0))

    @property
    def loo_score_(self) -> float:
        """Accuracy of the leave-one-out predictions."""
        predicted = self._leave_one_out().argmax(axis=1)
        is_correct = predicted == self._smoother.targets.argmax(axis=1)
        return float(np.average(is_correct, weights=self._smoother.weights))


def _bisquare(residuals: Floats, weights: Floats, rounding: float) -> Floats:
    """Return loess's bisquare weights; residuals up to `rounding` count as zero."""
    sizes = np.abs(residuals)
    limit = max(6 * _weighted_median(sizes, weights), rounding)
    if limit == 0:
        return np.ones(len(sizes))
    return np.asarray(np.maximum(1 - (sizes / limit) ** 2, 0.0) ** 2)


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Return the median of values, with weights as numbers of repetitions."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    half = sums[-1] / 2
    low = int(np.searchsorted(sums, half * (1 - 1e-12)))
    high = low + (low + 1 < len(sums) and sums[low] <= half * (1 + 1e-12))
    return float(values[order[low]] + values[order[high]]) / 2
