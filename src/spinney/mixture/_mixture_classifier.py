"""A mixture of Gaussians for each class, and Bayes' rule."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.base import _fit_context
from threadpoolctl import threadpool_limits

from spinney.mixture._bayes_rule import BayesRule
from spinney.mixture._gaussian_mixture import GaussianMixture
from spinney.mixture._growth import GrownMixture, grow_mixture
from spinney.mixture.em import Components, Prior, WeightedRows, sum_moments
from spinney.runtime.threads import effective_n_jobs

__all__ = ["MixtureClassifier"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

KINDS = ("diag", "tied", "full")
_BEYOND_SQUARES = (
    "X: expected columns whose variances are finite numbers, got larger or smaller ones; scale X"
)


class MixtureClassifier(BayesRule):
    """A mixture of Gaussians for each class, and Bayes' rule.

    The density of each class is a mixture; a row gets the class whose prior times density is
    largest. Mixtures grow one component at a time: the widest one is split across its principal
    axis and EM continues from there, until the Bayesian information criterion gets worse. The
    growth is deterministic.

    Covariances are regularized by a prior, the covariance within all classes, which counts as
    `prior_rows` rows in each component and is itself shrunk towards its diagonal. So they are
    always invertible (with few rows, collinear or constant columns), and a class with few rows has
    the shape of the others. In BIC the parameters of a covariance are weighted by the share of the
    rows in its estimate.

    Parameters
    ----------
    n_components : "bic", int or array-like of int, default="bic"
        Number of components of each class: chosen by BIC, the same for all, or one for each class
        in the order of `classes_`. Classes with fewer distinct rows get fewer.
    covariance_type : {"bic", "full", "tied", "diag", "spherical"}, default="bic"
        Covariances within each class: a matrix for each component, one for all components of the
        class, variances, or one variance for each component. "bic": the one of "diag", "tied" and
        "full" with the smallest sum of BIC over classes.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes; None: their shares of the rows.
    max_components : int, default=10
        Maximum number of components of a class with "bic".
    prior_rows : float, default=None
        The number of rows that the prior covariance counts as; None: 2 n_features + 4.
    tol : float, default=1e-3
        EM stops when the mean log-likelihood changes by less.
    max_iter : int, default=100
        Maximum number of EM steps for each number of components.
    n_jobs : int, default=None
        Number of threads; None is `spinney.get_num_threads()`. The fit does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        Their probabilities.
    mixtures_ : list of GaussianMixture
        Their densities; None for a class whose rows all have weight zero.
    n_components_ : ndarray of shape (n_classes,)
        Their numbers of components; 0 for such a class.
    covariance_type_ : str
        The covariance type, given or chosen by BIC.
    n_iter_ : ndarray of shape (n_classes,)
        Number of EM steps with that number of components.
    bic_ : dict of float
        For each covariance type that was tried, the sum of BIC over classes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PlugInClassifier : The same rule with any density, or with log-odds by any regression.

    References
    ----------
    C. Fraley and A. E. Raftery, "Bayesian regularization for normal mixture estimation and
    model-based clustering", Journal of Classification 24 (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.mixture import MixtureClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MixtureClassifier().fit(X, y)
    >>> model.n_components_.tolist(), model.covariance_type_
    ([1, 1, 1], 'tied')
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        # Checked in fit, with errors in the form of the other estimators.
        "n_components": "no_validation",
        "covariance_type": "no_validation",
        "priors": "no_validation",
        "max_components": "no_validation",
        "prior_rows": "no_validation",
        "tol": "no_validation",
        "max_iter": "no_validation",
        "n_jobs": "no_validation",
    }

    def __init__(
        self,
        n_components: Any = "bic",
        *,
        covariance_type: str = "bic",
        priors: Any = None,
        max_components: int = 10,
        prior_rows: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 100,
        n_jobs: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.priors = priors
        self.max_components = max_components
        self.prior_rows = prior_rows
        self.tol = tol
        self.max_iter = max_iter
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MixtureClassifier:
        """Fit a mixture to the rows of each class.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows; integer weights are equivalent to repeated rows. A class whose
            rows all have weight zero has probability 0.

        Returns
        -------
        MixtureClassifier
            Itself.
        """
        self._check_parameters()
        X, codes, weights = self._read_training(X, y, sample_weight)
        sizes = self._read_sizes()
        # Results of BLAS may depend on its number of threads, and the matrices here are small.
        with threadpool_limits(limits=1, user_api="blas"):
            n_threads = effective_n_jobs(self.n_jobs)
            groups = []
            present = np.flatnonzero(self._class_shares)
            for c in present:
                own = codes == c
                groups.append(WeightedRows.about_their_mean(X[own], weights[own], n_threads))
            sizes = [sizes[c] for c in present]
            best = self._choose(groups, sizes, self._estimate_prior(groups))
        self.mixtures_: list[GaussianMixture | None] = [None] * len(self.classes_)
        for c, rows, grown in zip(present, groups, best, strict=True):
            mixture = GaussianMixture(
                len(grown.result.components.weights),
                covariance_type=self.covariance_type_,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
            )
            mixture._keep(grown.result, rows)
            mixture.n_features_in_ = self.n_features_in_
            self.mixtures_[c] = mixture
        self.n_components_ = np.array([m.n_components if m else 0 for m in self.mixtures_])
        self.n_iter_ = np.array([m.n_iter_ if m else 0 for m in self.mixtures_])
        return self

    def _choose(
        self, groups: list[WeightedRows], sizes: list[int | None], prior: Prior
    ) -> list[GrownMixture]:
        kinds = KINDS if self.covariance_type == "bic" else (self.covariance_type,)
        found: dict[str, list[GrownMixture]] = {}
        for kind in kinds:
            found[kind] = [
                grow_mixture(
                    rows,
                    kind,
                    prior,
                    n_components=size,
                    most=self.max_components,
                    tol=self.tol,
                    max_iter=self.max_iter,
                )
                for rows, size in zip(groups, sizes, strict=True)
            ]
        self.bic_ = {kind: sum(grown.bic for grown in found[kind]) for kind in kinds}
        # The simplest type within rounding errors: with one component "tied" equals "full".
        best_bic = min(self.bic_.values())
        limit = best_bic + 1e-9 * abs(best_bic)
        self.covariance_type_ = next(kind for kind in kinds if self.bic_[kind] <= limit)
        return found[self.covariance_type_]

    def _estimate_prior(self, groups: list[WeightedRows]) -> Prior:
        """Return the prior: the covariance within classes, shrunk towards its diagonal."""
        n_features = groups[0].X.shape[1]
        n_rows = float(2 * n_features + 4 if self.prior_rows is None else self.prior_rows)
        zero_means = Components("full", np.ones(1), np.zeros((1, n_features)), None, None)
        total = sum(rows.total for rows in groups)
        means = np.array([rows.shift for rows in groups])
        within = np.zeros((n_features, n_features))
        for rows in groups:
            labels = np.zeros(len(rows.X), dtype=np.int32)
            within += sum_moments(rows, zero_means, labels=labels).products[0] / total
        if not np.isfinite(within).all():
            raise ValueError(_BEYOND_SQUARES)
        variances = np.diag(within)
        # Columns that are constant in every class, up to rounding. They separate classes if their
        # means differ, and have no effect otherwise.
        rounding = 1e-14 * np.abs(means).max(axis=0)
        constant = variances <= rounding**2
        mean_range = np.ptp(means, axis=0)
        ignored = constant & (mean_range <= rounding)
        variances = np.where(constant, np.where(ignored, 1.0, (0.1 * mean_range) ** 2), variances)
        covariance = (total * within + n_rows * np.diag(variances)) / (total + n_rows)
        covariance[ignored, ignored] = 1.0
        if not (np.diag(covariance) > 0).all():
            raise ValueError(_BEYOND_SQUARES)
        return Prior(n_rows, covariance, ignored)

    def _check_parameters(self) -> None:
        def refuse(name: str, expected: str) -> None:
            raise ValueError(f"{name}: expected {expected}, got {getattr(self, name)!r}")

        def is_count(value: Any) -> bool:
            return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1

        def is_number(value: Any) -> bool:
            return isinstance(value, Real) and not isinstance(value, bool)

        kinds = ("bic", "full", "tied", "diag", "spherical")
        if not isinstance(self.covariance_type, str) or self.covariance_type not in kinds:
            refuse("covariance_type", f"one of {', '.join(kinds)}")
        for name in ("max_components", "max_iter"):
            if not is_count(getattr(self, name)):
                refuse(name, "an integer >= 1")
        if self.prior_rows is not None and not (
            is_number(self.prior_rows) and 0 < self.prior_rows < np.inf
        ):
            refuse("prior_rows", "a positive number or None")
        if not is_number(self.tol) or not 0 <= self.tol < np.inf:
            refuse("tol", "a number >= 0")
        given = self.n_components
        if isinstance(given, str):
            if given != "bic":
                refuse("n_components", "'bic' or integers >= 1")
        else:
            try:
                numbers = list(np.atleast_1d(given))
            except (TypeError, ValueError):
                numbers = [None]
            if not numbers or not all(is_count(number) for number in numbers):
                refuse("n_components", "'bic' or integers >= 1")

    def _read_sizes(self) -> list[int | None]:
        n_classes = len(self.classes_)
        if isinstance(self.n_components, str):
            return [None] * n_classes
        sizes = [int(number) for number in np.atleast_1d(self.n_components)]
        if np.ndim(self.n_components) == 0:
            sizes *= n_classes
        if len(sizes) != n_classes:
            raise ValueError(
                f"n_components: expected one number for each of {n_classes} classes, "
                f"got {len(sizes)}"
            )
        return list(sizes)

    def _log_joint(self, X: Array) -> Floats:
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.class_prior_)
        densities = [m._score(X, "densities") for m in self.mixtures_ if m is not None]
        return self._joint_of_all_classes(densities, len(X)) + log_priors

    def score_samples(self, X: Any) -> Floats:
        """Return the log-density of rows over all classes: log Σ prior · density.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Logs of densities.
        """
        return logsumexp(self._log_joint(self._read(X)), axis=1)
