"""Plug-in rules: Bayes' rule with estimated densities or log-odds."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import _fit_context, clone
from sklearn.neighbors import KernelDensity
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from spinney.mixture._bayes_rule import BayesRule

__all__ = ["PlugInClassifier"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

_MOST_ODDS = 30.0  # clip log-odds: for separable classes they would grow without limit
_LEAST_SPREAD = 1e-6  # lower limit of p (1 − p): bounds the targets of misclassified rows


def _uses_densities(model: PlugInClassifier) -> bool:
    return model.regressor is None


class PlugInClassifier(BayesRule):
    """Bayes' rule with estimated densities or log-odds.

    Either a density is fitted to the rows of each class, and a row gets the class whose prior times
    density is largest; or a regression method fits the log-odds γ(x) = log P(1 | x) / P(0 | x).

    The regression is fitted repeatedly by least squares, as in Fisher scoring: with
    p = 1 / (1 + e^−γ) of the previous fit, the targets are γ + (y − p) / (p (1 − p)) with weights
    p (1 − p). With linear functions this is logistic regression, with smoothers local scoring.
    With ``step="bounded"``, and for a method whose `fit` has no `sample_weight`, the targets are
    γ + 4 (y − p) without these weights, which converge to the same solution in more steps. With
    more than two classes each is fitted against the rest, and the probabilities are normalized.

    Parameters
    ----------
    density : estimator with `score_samples`, default=None
        Cloned for each class: KernelDensity, GaussianMixture, a pipeline that ends with one. None,
        and no regressor: scikit-learn's KernelDensity with Scott's bandwidth for each class,
        s n^(−1 / (n_features + 4)), where s is the root of the mean variance of its features.
    regressor : regressor, default=None
        Cloned for the log-odds of each class. Only one of `density` and `regressor` may be given.
    priors : array-like of shape (n_classes,), default=None
        Probabilities of the classes; None: their shares of the rows. Log-odds are shifted to them.
    step : {"newton", "bounded"}, default="newton"
        How log-odds are fitted, see above. "bounded" is for methods that use weights not only as
        factors in a sum, such as `LocalRegression`, where they also determine the neighborhood.
    max_iter : int, default=20
        Maximum number of fits of each log-odds. Use few for methods that can fit any rows exactly,
        as these drive log-odds to the limits (±30).
    tol : float, default=1e-6
        Fits stop when no probability of a training row changes by more.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    class_prior_ : ndarray of shape (n_classes,)
        Their probabilities.
    estimators_ : list
        A density for each class; or a regressor for each class against the rest, for two classes
        one for the second. None for a class whose rows all have weight zero: its probability is 0.
    n_iter_ : ndarray
        Number of fits of the log-odds of each class; 1 for densities.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    MixtureClassifier : A mixture of Gaussians for each class, with the number of components by BIC.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KernelDensity
    >>> from spinney.mixture import PlugInClassifier
    >>> from spinney.neighbors import LocalRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(PlugInClassifier(KernelDensity(bandwidth=0.4)).fit(X, y).score(X, y) > 0.95)
    True
    >>> smooth = PlugInClassifier(regressor=LocalRegression(n_neighbors=75), step="bounded")
    >>> bool(smooth.fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: dict[str, Any] = {
        # Checked in fit, with errors in the form of the other estimators.
        "density": "no_validation",
        "regressor": "no_validation",
        "priors": "no_validation",
        "step": "no_validation",
        "max_iter": "no_validation",
        "tol": "no_validation",
    }

    def __init__(
        self,
        density: Any = None,
        *,
        regressor: Any = None,
        priors: Any = None,
        step: str = "newton",
        max_iter: int = 20,
        tol: float = 1e-6,
    ) -> None:
        self.density = density
        self.regressor = regressor
        self.priors = priors
        self.step = step
        self.max_iter = max_iter
        self.tol = tol

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PlugInClassifier:
        """Fit densities or log-odds.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, for methods whose `fit` takes them; an error for others.

        Returns
        -------
        PlugInClassifier
            Itself.
        """
        self._check_parameters()
        method = self.regressor if self.density is None else self.density
        if method is None:
            method = KernelDensity()
        takes_weights = has_fit_parameter(method, "sample_weight")
        if sample_weight is not None and not takes_weights:
            raise ValueError(
                f"sample_weight: expected None, as {type(method).__name__}.fit does not accept it"
            )
        X, codes, weights = self._read_training(X, y, sample_weight)
        if self.regressor is None:
            self.estimators_: list[Any] = [None] * len(self.classes_)
            self.n_iter_ = (self._class_shares > 0).astype(np.int64)
            for c in np.flatnonzero(self._class_shares):
                own = codes == c
                density = clone(method)
                if self.density is None:
                    density.set_params(bandwidth=_scott_bandwidth(X[own], weights[own]))
                extra = {"sample_weight": weights[own]} if sample_weight is not None else {}
                self.estimators_[c] = density.fit(X[own], **extra)
            return self
        n_classes = len(self.classes_)
        targets = [1] if n_classes == 2 else range(n_classes) if n_classes > 2 else []
        fits = [
            self._fit_log_odds(
                X,
                (codes == c).astype(np.float64),
                weights,
                takes_weights=takes_weights,
                weighted=sample_weight is not None,
            )
            if 0 < self._class_shares[c] < 1
            else (None, 0)
            for c in targets
        ]
        self.estimators_ = [fit for fit, _ in fits]
        self.n_iter_ = np.array([n_fits for _, n_fits in fits], dtype=np.int64)
        return self

    def _check_parameters(self) -> None:
        if self.density is not None and self.regressor is not None:
            raise ValueError("density, regressor: expected at most one of both, got both")
        for name, needed in (("density", "score_samples"), ("regressor", "predict")):
            method = getattr(self, name)
            if method is not None and not (hasattr(method, "fit") and hasattr(method, needed)):
                raise ValueError(
                    f"{name}: expected an estimator with fit and {needed}, got {method!r}"
                )
        if not isinstance(self.step, str) or self.step not in ("newton", "bounded"):
            raise ValueError(f"step: expected 'newton' or 'bounded', got {self.step!r}")
        number, small = self.max_iter, self.tol
        if not isinstance(number, Integral) or isinstance(number, bool) or int(number) < 1:
            raise ValueError(f"max_iter: expected an integer >= 1, got {number!r}")
        if not isinstance(small, Real) or isinstance(small, bool) or not 0 <= small < np.inf:
            raise ValueError(f"tol: expected a number >= 0, got {small!r}")

    def _fit_log_odds(
        self,
        X: Array,
        indicator: Floats,
        weights: Floats,
        *,
        takes_weights: bool,
        weighted: bool,
    ) -> tuple[Any, int]:
        """Fit the regressor to one class's log-odds; return it and the number of fits."""
        share = float(weights @ indicator / weights.sum())
        odds = np.full(len(X), np.log(share / (1 - share)))
        p = expit(odds)
        n_fits, change = 0, np.inf
        while n_fits < self.max_iter and change > self.tol:
            newton = takes_weights and self.step == "newton"
            # p (1 − p) is at most 1/4, so that the bounded step is never too long.
            spread = np.maximum(p * (1 - p), _LEAST_SPREAD) if newton else np.full(len(X), 0.25)
            targets = odds + (indicator - p) / spread
            extra = {}
            if newton:
                extra = {"sample_weight": weights * spread}
            elif weighted:
                extra = {"sample_weight": weights}
            model = clone(self.regressor).fit(X, targets, **extra)
            odds = _clip_odds(model.predict(X))
            before, p = p, expit(odds)
            change = float(np.abs(p - before).max())
            n_fits += 1
        return model, n_fits

    def _log_joint(self, X: Array) -> Floats:
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.class_prior_)
        if self.regressor is None:
            densities = [d.score_samples(X) for d in self.estimators_ if d is not None]
            joint = self._joint_of_all_classes(densities, len(X)) + log_priors
            # A row at which all densities are zero gets the priors.
            joint[np.isneginf(joint).all(axis=1)] = log_priors
            return joint
        present = self._class_shares > 0
        if present.sum() == 1:
            return self._joint_of_all_classes([np.zeros(len(X))], len(X))
        models = [model for model in self.estimators_ if model is not None]
        odds = [_clip_odds(model.predict(X)) for model in models]
        if len(self.classes_) == 2:
            posterior = [np.zeros(len(X)), *odds]
        else:
            posterior = [log_expit(o) for o in odds]
        shifts = log_priors[present] - np.log(self._class_shares[present])
        return self._joint_of_all_classes(
            [p + shift for p, shift in zip(posterior, shifts, strict=True)], len(X)
        )

    @available_if(_uses_densities)
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
        X = self._read(X)
        with np.errstate(divide="ignore"):
            log_priors = np.log(self.class_prior_)
        densities = [d.score_samples(X) for d in self.estimators_ if d is not None]
        return logsumexp(self._joint_of_all_classes(densities, len(X)) + log_priors, axis=1)


def _scott_bandwidth(X: Array, weights: Floats) -> float:
    """Return the bandwidth of a kernel density by Scott's rule."""
    mean = np.average(X, axis=0, weights=weights)
    variance = float(np.average((X - mean) ** 2, axis=0, weights=weights).mean())
    spread = np.sqrt(variance) if 0 < variance < np.inf else 1.0
    return float(spread * weights.sum() ** (-1 / (X.shape[1] + 4)))


def _clip_odds(odds: Any) -> Floats:
    """Return log-odds clipped to ±30, as a vector."""
    return np.clip(np.asarray(odds, dtype=np.float64).reshape(-1), -_MOST_ODDS, _MOST_ODDS)
