"""Local regression: a polynomial of its own at every place, fitted to the rows around it."""

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
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from spinney.conformal.mixins import HeldOut, IntervalMixin, SetMixin, subsample_rows
from spinney.data.labels import encode_labels
from spinney.models.methods import ModelMethods
from spinney.neighbors._neighborhoods import METRICS
from spinney.neighbors._smoother import KERNELS, Answers, Smoother, Width
from spinney.neighbors._width_choice import choose_width
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LocalClassifier", "LocalRegression"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

MOST_TERMS = 2_000


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


class BaseLocal(ModelMethods, BaseEstimator, metaclass=ABCMeta):
    """Base class of both kinds; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        # Read where they are used, with texts that say what was expected.
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
        """Targets as the smoother takes them, (n_rows, n_outputs)."""

    @abstractmethod
    def _finish(self, values: Floats) -> Floats:
        """Make predictions of what the smoother says; both (n_rows, n_outputs)."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Smoother:
        self._check_parameters()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        targets = self._encode(y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        said = weights > 0
        if not said.any():
            raise ValueError("sample_weight: expected a positive weight, got none")
        if not said.all():
            X, targets, weights = X[said], targets[said], weights[said]
        n_terms = X.shape[1] * (X.shape[1] + 3) // 2 if self.degree == 2 else X.shape[1]
        if self.degree and n_terms > MOST_TERMS:
            raise ValueError(
                f"degree={self.degree}: expected at most {MOST_TERMS} coefficients, got {n_terms} "
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
        self._inside: Answers | None = None
        self._left_out: Floats | None = None
        return smoother

    def _check_parameters(self) -> None:
        def refuse(name: str, expected: str) -> None:
            raise ValueError(f"{name}: expected {expected}, got {getattr(self, name)!r}")

        if (
            not _is_number(self.degree)
            or not isinstance(self.degree, Integral)
            or self.degree not in (0, 1, 2)
        ):
            refuse("degree", "0, 1 or 2")
        if not callable(self.kernel) and not (
            isinstance(self.kernel, str) and self.kernel in KERNELS
        ):
            refuse("kernel", f"a function or one of {', '.join(KERNELS)}")
        if self.bandwidth is not None and not (
            (isinstance(self.bandwidth, str) and self.bandwidth == "cv")
            or (_is_number(self.bandwidth) and 0 < self.bandwidth < np.inf)
        ):
            refuse("bandwidth", "a positive number, 'cv' or None")
        k = self.n_neighbors
        if not (isinstance(k, str) and k == "cv") and not (
            _is_number(k) and (int(k) >= 1 if isinstance(k, Integral) else 0 < k <= 1)
        ):
            refuse("n_neighbors", "a number >= 1 of rows, a share in (0, 1] or 'cv'")
        if not _is_number(self.alpha) or not 0 <= self.alpha < np.inf:
            refuse("alpha", "a finite number >= 0")
        if not isinstance(self.metric, str) or self.metric not in METRICS:
            refuse("metric", f"one of {', '.join(METRICS)}")
        if not isinstance(self.outside, str) or self.outside not in ("nearest", "nan"):
            refuse("outside", "'nearest' or 'nan'")

    def _read_width(self, smoother: Smoother) -> Width:
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
        # With weights that are no counts a share need not be a number of rows.
        counts = smoother.counted is None or (smoother.counted % 1 == 0).all()
        return Width(k=max(1, int(k + 1e-5)) if counts else k)

    def _answer(self, X: Any, with_gradients: bool = False) -> Answers:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        answers = self._smoother.smooth(
            np.ascontiguousarray(X),
            self._width,
            effective_n_jobs(self.n_jobs),
            with_gradients=with_gradients,
        )
        if self.outside == "nan":
            answers.values[answers.alone] = np.nan
            answers.noise[answers.alone] = np.nan
            if with_gradients:
                answers.gradients[answers.alone] = np.nan
        return answers

    def _at_training_rows(self) -> Answers:
        """Answers at the training rows: for what is only known after all of them were fitted."""
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
            state["_inside"] = None  # found again where it is asked for
        return state

    def _leave_one_out(self) -> Floats:
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
            raise AttributeError("effective_dof_ is for link='identity' alone")
        return float(self._at_training_rows().leverages.sum())


class LocalRegression(IntervalMixin, RegressorMixin, BaseLocal):
    """Local regression: at each place a polynomial, fitted to the rows around it.

    At a place x each training row gets the weight K(d(x, x_i) / h(x)), a polynomial in the
    differences x_i − x is fitted by weighted least squares, and its value at x, the intercept, is
    the prediction. Degree 0 is the estimate of Nadaraya and Watson, degree 1 with the nearest rows
    and `robust` iterations is loess.

    Parameters
    ----------
    degree : {0, 1, 2}, default=1
        Degree of the polynomials; 2 has all squares and products.
    kernel : str or callable, default="tricube"
        How the weight falls with u, the distance in bandwidths: "uniform" (1), "triangular"
        (1 − u), "epanechnikov" (1 − u²), "biweight" (1 − u²)², "triweight" (1 − u²)³, "tricube"
        (1 − u³)³ and "cosine" cos(πu/2), all zero beyond u = 1; "gaussian" exp(−u²/2) and
        "logistic" 4 / (e^u + 2 + e^−u), which have no end. All are 1 at u = 0. A function takes an
        array of u and returns weights >= 0.
    bandwidth : float, "cv" or None, default=None
        The bandwidth h, the same everywhere. Kernels without an end are cut where the weight is
        below 1e-12; a function is asked about all rows. "cv": of 15 bandwidths the one with the
        smallest squared error when rows are left out one at a time (at most 5,000 rows, evenly
        spaced). None: `n_neighbors` decides.
    n_neighbors : int, float or "cv", default=30
        The bandwidth at x reaches the n-th nearest training row: h(x) is its distance times 1.001,
        so that the n-th keeps a little weight. Rows as far as the n-th all belong to them, rows
        farther never do, whatever the kernel. A float is a share of the rows, as the span of loess.
        More than there are rows: all. A row of weight w counts as w rows. "cv": as for bandwidths;
        a row that is left out still counts as one of the n.
    alpha : float, default=0.0
        Ridge penalty: alpha times the sum of squared coefficients is added to the weighted sum of
        squares. The intercept is free.
    metric : {"euclidean", "manhattan", "chebyshev"}, default="euclidean"
        Distance. Features are taken as they are: scale them to like units first, for instance
        with StandardScaler.
    robust : int, default=0
        Number of times that rows are weighed again by (1 − (r / 6m)²)², r being their residuals
        and m the median of all ``|r|``: outliers lose their say. Bandwidths do not change.
    outside : {"nearest", "nan"}, default="nearest"
        What a place says where no row has weight: the target of the nearest row (with gradient
        zero), or NaN.
    n_jobs : int, default=None
        Number of threads; None is `spinney.get_num_threads()`. The answers do not depend on it.

    Attributes
    ----------
    bandwidth_ : float or None
        The bandwidth, if it is fixed.
    n_neighbors_ : int, float or None
        The number of nearest rows, if it decides.
    cv_widths_, cv_errors_ : ndarray
        With "cv": what was tried, and the mean squared errors.
    robust_weights_ : ndarray of shape (n_rows,)
        The last weights of robust iterations, of rows whose sample weight is positive.
    effective_dof_ : float
        Effective number of parameters, the trace of the smoother. This and the next three are
        computed when they are first asked for, by fits at all training rows.
    sigma_ : float
        Standard deviation of the noise: residuals squared, over the weight of the rows minus
        `effective_dof_`. NaN if nothing is left.
    loo_residuals_ : ndarray of shape (n_rows,)
        Targets minus predictions from all other rows, of rows whose sample weight is positive. The
        bandwidths are those with all rows.
    loo_score_ : float
        R² of those predictions.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    Where the rows do not determine all coefficients (too few of them, all in a line, duplicates),
    the smallest ones that fit best are taken, each feature measured in its range around the place,
    the intercept left free. Rows all in one place give their mean. Directions in which the terms
    vary by less than 1e-9 of the widest are not fitted.

    References
    ----------
    W. S. Cleveland and S. J. Devlin, "Locally weighted regression", JASA 83 (1988).
    J. Fan and I. Gijbels, "Local Polynomial Modelling and Its Applications" (1996).

    See Also
    --------
    LocalClassifier : The same for classes.

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
        """Keep the rows, choose the bandwidth, and weigh rows again if that was asked for.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; whole numbers are as good as repeated rows.

        Returns
        -------
        LocalRegression
            Itself.
        """
        if not _is_number(self.robust) or not isinstance(self.robust, Integral) or self.robust < 0:
            raise ValueError(f"robust: expected a number of times >= 0, got {self.robust!r}")
        smoother = self._fit(X, y, sample_weight)
        given = smoother.weights
        self.robust_weights_ = np.ones(smoother.n_rows)
        for _ in range(self.robust):
            residuals = smoother.targets - self._at_training_rows().values
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
            Return standard errors of the predictions, too: of the curve, without the noise of a
            new target and without the bias.

        Returns
        -------
        ndarray of shape (n_rows,), or two of them
            Predictions, and their standard errors.
        """
        answers = self._answer(X)
        values = answers.values[:, 0]
        if not return_std:
            return values
        return values, self.sigma_ * np.sqrt(answers.noise)

    def _held_out_rows(self) -> HeldOut:
        if vars(self).get("_held_out") is None:
            smoother = self._smoother
            told = self._leave_one_out()[:, 0]
            truth = smoother.targets[:, 0]
            # Squared errors, smoothed over the same neighbourhoods: the variance around a place.
            self._squares = Smoother(
                smoother.X,
                ((truth - told) ** 2)[:, np.newaxis],
                smoother.weights,
                kernel=self.kernel,
                degree=0,
                alpha=0.0,
                metric=self.metric,
            )
            threads = effective_n_jobs(self.n_jobs)
            every = np.arange(smoother.n_rows)
            scale = self._scale(self._squares.leave_one_out(every, self._width, threads))
            known = np.flatnonzero(np.isfinite(told) & np.isfinite(scale))
            rows = known[subsample_rows(len(known))]
            weights = None if smoother.counted is None else smoother.counted[rows]
            self._held_out = HeldOut(
                "rows, each by the others", truth[rows], told[rows], scale[rows], weights
            )
        return super()._held_out_rows()

    def _predict_with_scale(self, X: Any) -> tuple[Floats, Floats]:
        self._held_out_rows()  # which smooths the squared errors
        X = validate_data(self, X, dtype=np.float64, reset=False)
        X = np.ascontiguousarray(X)
        squares = self._squares.smooth(X, self._width, effective_n_jobs(self.n_jobs))
        return np.asarray(self.predict(X), dtype=np.float64), self._scale(squares.values)

    def _scale(self, squares: Floats) -> Floats:
        """Size of the errors around places; what is usual everywhere counts a little."""
        usual = float(np.mean(self._squares.targets))
        return np.sqrt(0.9 * squares[:, 0] + 0.1 * usual) + np.finfo(np.float64).tiny

    def gradient(self, X: Any) -> Floats:
        """Return the slopes of the polynomials at the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_features)
            Slopes.
        """
        check_is_fitted(self)
        if self._smoother.degree == 0:
            raise ValueError("degree: expected 1 or 2 for gradients, got 0")
        return self._answer(X, with_gradients=True).gradients[:, 0]

    @property
    def sigma_(self) -> float:
        """Standard deviation of the noise."""
        inside = self._at_training_rows()
        weights = self._smoother.weights
        residuals = self._smoother.targets - inside.values
        left = weights.sum() - self.effective_dof_
        if left <= 1e-9 * weights.sum():
            return float("nan")
        return float(np.sqrt(weights @ residuals[:, 0] ** 2 / left))

    @property
    def loo_residuals_(self) -> Floats:
        """Targets minus predictions from all other rows."""
        left_out = self._leave_one_out()
        return (self._smoother.targets - left_out)[:, 0]

    @property
    def loo_score_(self) -> float:
        """R² of predictions from all other rows."""
        left_out = self._leave_one_out()[:, 0]
        weights, targets = self._smoother.weights, self._smoother.targets[:, 0]
        errors = weights @ (targets - left_out) ** 2
        spread = weights @ (targets - np.average(targets, weights=weights)) ** 2
        if spread == 0:
            return 1.0 if errors == 0 else 0.0
        return float(1 - errors / spread)


class LocalClassifier(SetMixin, ClassifierMixin, BaseLocal):
    """Local regression of the classes: their shares around each place.

    Degree 0 gives shares weighed by the kernel. Degrees 1 and 2 fit a polynomial to the indicator
    of each class; what is below 0 is taken as 0, and the rest is divided by its sum. Or, with
    ``link="logit"``, to the log-odds: a logistic regression at each place.

    Parameters
    ----------
    degree : {0, 1, 2}, default=1
        Degree of the polynomials; 2 has all squares and products.
    kernel : str or callable, default="tricube"
        How the weight falls with the distance, as in LocalRegression.
    bandwidth : float, "cv" or None, default=None
        The bandwidth, the same everywhere; "cv": the one with the smallest Brier score when rows
        are left out one at a time; None: `n_neighbors` decides.
    n_neighbors : int, float or "cv", default=30
        The bandwidth reaches the n-th nearest row, as in LocalRegression.
    alpha : float, default=0.0
        Ridge penalty of the squared coefficients, not of the intercept; half of it for log-odds.
    link : {"identity", "logit"}, default="identity"
        What polynomials are fitted to: the indicators of the classes by least squares, or their
        log-odds by maximum likelihood, in up to 25 steps of Newton's method (of more than two
        classes each against all others, divided by the sum). Slower; probabilities near 0 and 1
        are better. Where the classes around a place can be parted, log-odds would have no end:
        they stop at ±30, and `alpha` keeps them smaller.
    metric : {"euclidean", "manhattan", "chebyshev"}, default="euclidean"
        Distance. Features are taken as they are: scale them to like units first.
    outside : {"nearest", "nan"}, default="nearest"
        What a place says where no row has weight: the class of the nearest row, or NaN as
        probabilities (and the first class as prediction).
    n_jobs : int, default=None
        Number of threads; None is `spinney.get_num_threads()`. The answers do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes. Of equally probable ones the first is predicted.
    bandwidth_, n_neighbors_, cv_widths_, cv_errors_, effective_dof_
        As in LocalRegression; the errors are Brier scores.
        `effective_dof_` is for the link "identity" alone.
    loo_score_ : float
        Accuracy of predictions from all other rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    LocalRegression : The same for numbers; says more about kernels, bandwidths and special cases.

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
        # Indicators sum to one and so do their fits: what is positive sums to one or more.
        shares = np.maximum(values, 0.0)
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocalClassifier:
        """Keep the rows, and choose the bandwidth.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; whole numbers are as good as repeated rows.

        Returns
        -------
        LocalClassifier
            Itself.
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
        """Return the shares of the classes around the rows.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities, in the order of `classes_`.
        """
        return self._finish(self._answer(X).values)

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
        """Accuracy of predictions from all other rows."""
        left_out = self._leave_one_out().argmax(axis=1)
        right = left_out == self._smoother.targets.argmax(axis=1)
        return float(np.average(right, weights=self._smoother.weights))


def _bisquare(residuals: Floats, weights: Floats, rounding: float) -> Floats:
    """Weigh rows by their residuals, as loess does; those up to `rounding` count as zero."""
    sizes = np.abs(residuals)
    limit = max(6 * _weighted_median(sizes, weights), rounding)
    if limit == 0:
        return np.ones(len(sizes))
    return np.asarray(np.maximum(1 - (sizes / limit) ** 2, 0.0) ** 2)


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Find the median of values, each repeated as often as its weight says."""
    order = np.argsort(values, kind="stable")
    sums = np.cumsum(weights[order])
    half = sums[-1] / 2
    low = int(np.searchsorted(sums, half * (1 - 1e-12)))
    high = low + (low + 1 < len(sums) and sums[low] <= half * (1 + 1e-12))
    return float(values[order[low]] + values[order[high]]) / 2
