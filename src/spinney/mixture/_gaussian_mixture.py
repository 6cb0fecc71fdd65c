"""Gaussian mixtures, fitted by EM."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as SkGaussianMixture
from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky_from_precisions
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from spinney.data.sklearn_versions import check_sample_weight, mixture_options, validate_data
from spinney.mixture._starts import initial_components
from spinney.mixture.em import Components, EmResult, WeightedRows, core_mixture, run_em
from spinney.models.methods import ModelMethods
from spinney.runtime.threads import effective_n_jobs

__all__ = ["GaussianMixture"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


class GaussianMixture(ModelMethods, SkGaussianMixture):
    """A mixture of Gaussians, fitted by EM.

    The model, the parameters and the attributes are those of scikit-learn's class, and the same
    start gives the same fit. The E and M steps are one pass over blocks of rows in the core, which
    never stores all responsibilities.

    Parameters
    ----------
    n_components : int, default=1
        Number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        A matrix for each component, one for all, variances for each, or one variance for each.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood changes by less.
    reg_covar : float, default=1e-6
        Added to the diagonals of covariances.
    max_iter : int, default=100
        Maximum number of EM steps.
    n_init : int, default=1
        Number of starts; the result with the largest likelihood is kept.
    init_params : {"kmeans", "k-means++", "random", "random_from_data"}, default="kmeans"
        The start: the clusters of k-means, rows chosen by k-means++, random responsibilities, or
        random rows.
    weights_init, means_init, precisions_init : array-like, default=None
        Parameters to start from instead.
    random_state : int, RandomState instance or None, default=None
        Seed of the start, and of `sample`.
    warm_start : bool, default=False
        Whether to start from the last fit.
    verbose : int, default=0
        1 prints steps, 2 also changes and times.
    verbose_interval : int, default=10
        Number of steps between prints.
    n_jobs : int, default=None
        Number of threads; None is `spinney.get_num_threads()`. The fit does not depend on it.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        Weights of the components. A component that lost all rows has weight zero and keeps its
        parameters; a warning names it.
    means_ : ndarray of shape (n_components, n_features)
        Means.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Covariances, their inverses P and factors U with P = U Uᵀ: a matrix for each component
        ("full"), one matrix ("tied"), (n_components, n_features) ("diag") or (n_components,)
        ("spherical").
    converged_ : bool
        Whether `tol` was reached.
    n_iter_ : int
        Number of steps of the best start.
    lower_bound_ : float
        Mean log-likelihood of the rows before the last step of the best start.
    lower_bounds_ : list of float
        Mean log-likelihood before each of its steps.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MixtureClassifier : A mixture for each class, and Bayes' rule.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.mixture import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GaussianMixture(2, random_state=0).fit(X)
    >>> sorted(model.means_.round(3).tolist())
    [[1.0, 2.0], [10.0, 2.0]]
    >>> labels = model.predict([[0, 0], [12, 3]])
    >>> bool(labels[0] != labels[1])
    True
    """

    _parameter_constraints: dict[str, Any] = {
        **SkGaussianMixture._parameter_constraints,
        "n_jobs": "no_validation",
    }

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-3,
        reg_covar: float = 1e-6,
        max_iter: int = 100,
        n_init: int = 1,
        init_params: str = "kmeans",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(
            n_components,
            covariance_type=covariance_type,
            tol=tol,
            reg_covar=reg_covar,
            max_iter=max_iter,
            n_init=n_init,
            init_params=init_params,
            weights_init=weights_init,
            means_init=means_init,
            precisions_init=precisions_init,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            verbose_interval=verbose_interval,
        )
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Fit the mixture.

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
        GaussianMixture
            Itself.
        """
        self._fit(X, sample_weight)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit, and return the most probable component of each row: `fit(X).predict(X)`.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : None
            Not used.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Numbers of components.
        """
        X = self._fit(X, sample_weight)
        return self._score(X, "labels")

    def _fit(self, X: Any, sample_weight: Any) -> Array:
        X = validate_data(self, X, dtype=[np.float64, np.float32], ensure_min_samples=2)
        used, weights = X, None
        if sample_weight is not None:
            weights = check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
            positive = weights > 0
            if not positive.all():
                used, weights = X[positive], weights[positive]
        if used.shape[0] < self.n_components:
            raise ValueError(
                f"Expected n_samples >= n_components but got n_components = {self.n_components}, "
                f"n_samples = {used.shape[0]}"
            )
        self._check_parameters(used, **mixture_options())
        # Results of BLAS may depend on its number of threads, and the matrices here are small.
        with threadpool_limits(limits=1, user_api="blas"):
            rows = WeightedRows.about_their_mean(used, weights, effective_n_jobs(self.n_jobs))
            self._fit_from_all_starts(rows)
        return X

    def _fit_from_all_starts(self, rows: WeightedRows) -> None:
        is_continued = self.warm_start and hasattr(self, "converged_")
        random_state = check_random_state(self.random_state)
        best: EmResult | None = None
        for attempt in range(1 if is_continued else self.n_init):
            self._print_verbose_msg_init_beg(attempt)
            start = self._last_fit(rows) if is_continued else self._start(rows, random_state)
            if self.max_iter == 0:
                best = EmResult(start, [], False)
                continue
            result = run_em(
                rows,
                start,
                tol=self.tol,
                max_iter=self.max_iter,
                reg_covar=self.reg_covar,
                lower_bound=self.lower_bound_ if is_continued else -np.inf,
                on_step=self._print_verbose_msg_iter_end,
            )
            self._print_verbose_msg_init_end(result.lower_bound, result.converged)
            if best is None or result.lower_bound > best.lower_bound:
                best = result
        assert best is not None
        self._keep(best, rows)
        self._warn_about(best)

    def _warn_about(self, best: EmResult) -> None:
        def warn(text: str) -> None:
            warnings.warn(text, ConvergenceWarning, stacklevel=7)

        if not best.converged and self.max_iter > 0:
            warn(
                f"EM did not converge in max_iter={self.max_iter} steps to tol={self.tol} (n_init="
                f"{self.n_init}): increase max_iter or tol, or look for degenerate data"
            )
        empty = np.flatnonzero(best.components.weights == 0)
        if len(empty):
            warn(
                f"{len(empty)} of {self.n_components} components have no rows (their weights_ are "
                f"zero): {', '.join(map(str, empty[:10]))}; there may be fewer distinct rows, or "
                "fewer clusters, than n_components"
            )
        collapsed = best.components.collapsed
        if collapsed:
            warn(
                f"The rows of components {', '.join(map(str, collapsed[:10]))} have a singular "
                "covariance, and the last invertible one was kept: increase "
                f"reg_covar={self.reg_covar}, or decrease n_components={self.n_components}"
            )

    def _keep(self, best: EmResult, rows: WeightedRows) -> None:
        found = best.components
        dtype = rows.X.dtype
        parameters = (found.weights, found.means + rows.shift, found.covariances, found.factors)
        self._set_parameters(tuple(p.astype(dtype, copy=False) for p in parameters))
        self.converged_ = best.converged
        self.n_iter_ = len(best.lower_bounds)
        self.lower_bounds_ = best.lower_bounds
        self.lower_bound_ = best.lower_bounds[-1] if best.lower_bounds else -np.inf

    def _last_fit(self, rows: WeightedRows) -> Components:
        return Components(
            self.covariance_type,
            np.asarray(self.weights_, dtype=np.float64),
            self.means_ - rows.shift,
            np.asarray(self.covariances_, dtype=np.float64),
            np.asarray(self.precisions_cholesky_, dtype=np.float64),
        )

    def _start(self, rows: WeightedRows, random_state: np.random.RandomState) -> Components:
        given = (self.weights_init, self.means_init, self.precisions_init)
        if any(value is None for value in given):
            start = initial_components(
                self.init_params,
                rows,
                self.covariance_type,
                n_components=self.n_components,
                reg_covar=self.reg_covar,
                random_state=random_state,
            )
            weights, means = start.weights, start.means
            covariances, factors = start.covariances, start.factors
        if self.weights_init is not None:
            weights = np.asarray(self.weights_init, dtype=np.float64)
        if self.means_init is not None:
            means = self.means_init - rows.shift
        if self.precisions_init is not None:
            precisions = np.asarray(self.precisions_init, dtype=np.float64)
            factors = _compute_precision_cholesky_from_precisions(
                precisions, self.covariance_type, **mixture_options()
            )
            has_matrices = self.covariance_type in ("full", "tied")
            covariances = np.linalg.inv(precisions) if has_matrices else 1 / precisions
        return Components(self.covariance_type, weights, means, covariances, factors)

    def _score(self, X: Array, output: str) -> Array:
        """Return "densities", "responsibilities" or "labels" of rows, from the core."""
        check_is_fitted(self)
        shift = np.asarray(self.weights_ @ self.means_, dtype=np.float64)
        components = Components(
            self.covariance_type,
            np.asarray(self.weights_, dtype=np.float64),
            self.means_ - shift,
            None,
            np.asarray(self.precisions_cholesky_, dtype=np.float64),
        )
        shape = (len(X), len(self.weights_)) if output == "responsibilities" else len(X)
        out = np.empty(shape, dtype=np.int64 if output == "labels" else np.float64)
        outputs: dict[str, Any] = dict.fromkeys(("densities", "responsibilities", "labels"))
        outputs[output] = out
        core_mixture(components, shift).score(X, **outputs, n_threads=effective_n_jobs(self.n_jobs))
        return out if output == "labels" else out.astype(X.dtype, copy=False)

    def _read(self, X: Any) -> Array:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def score_samples(self, X: Any) -> Array:
        """Return the log-density of each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Logs of densities.
        """
        return self._score(self._read(X), "densities")

    def predict(self, X: Any) -> Array:
        """Predict the most probable component of each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Indexes of components.
        """
        return self._score(self._read(X), "labels")

    def predict_proba(self, X: Any) -> Array:
        """Predict the probabilities of the components for each row.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows, n_components)
            Probabilities.
        """
        return self._score(self._read(X), "responsibilities")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.array_api_support = False
        return tags
