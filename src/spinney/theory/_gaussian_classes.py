"""Known distributions: classes that are Gaussians or mixtures of Gaussians."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import logsumexp, ndtr
from sklearn.utils import check_random_state

from spinney.theory._arguments import check_count, normalized_weights

__all__ = ["GaussianClasses"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

# Range of the grid in standard deviations around each mean: the rest has less than 1e-32.
REACH = 12.0
# Number of grid points of each component, at which the class with the largest density is found.
GRID_POINTS = 400
# Number of secant steps for the ends of intervals.
SECANTS = 4


class GaussianClasses:
    """Classes whose densities are known Gaussians, or mixtures of Gaussians.

    Parameters
    ----------
    means : array-like of shape (n_components, n_features) or (n_components,)
        Means of the components.
    covariances : array-like, default=1.0
        Shape (n_components, n_features, n_features); or (n_components,), or a number: the variance
        of all features.
    weights : array-like of shape (n_components,), default=None
        Probabilities of the components, up to a factor; None: all equal.
    classes : array-like of shape (n_components,), default=None
        The class of each component; None: each component is a class.

    Attributes
    ----------
    classes_ : ndarray
        The classes, ascending.

    Examples
    --------
    Two classes at distance 2, with variances of one: the error is Φ(−1).

    >>> from spinney.theory import GaussianClasses
    >>> known = GaussianClasses([-1.0, 1.0])
    >>> error, standard_error = known.bayes_error()
    >>> round(error, 6), standard_error
    (0.158655, 0.0)
    >>> known.predict([[-0.1], [0.2]]).tolist()
    [0, 1]
    """

    def __init__(
        self, means: Any, covariances: Any = 1.0, weights: Any = None, classes: Any = None
    ) -> None:
        self.means: Floats = np.array(means, dtype=np.float64)
        if self.means.ndim == 1:
            self.means = self.means[:, None]
        if self.means.ndim != 2 or self.means.size == 0 or not np.isfinite(self.means).all():
            raise ValueError(
                "means: expected finite numbers (components, features), got shape "
                f"{np.shape(means)}"
            )
        n, d = self.means.shape
        given = np.asarray(covariances, dtype=np.float64)
        if given.ndim <= 1:
            if given.ndim == 1 and given.shape != (n,):
                raise ValueError(f"covariances: expected {n} variances, got {given.shape}")
            given = np.broadcast_to(given, (n,))[:, None, None] * np.eye(d)
        if given.shape != (n, d, d):
            raise ValueError(f"covariances: expected shape {(n, d, d)}, got {given.shape}")
        self.covariances: Floats = given
        try:
            self._factors: Floats = np.linalg.cholesky(given).astype(np.float64)
        except np.linalg.LinAlgError:
            raise ValueError("covariances: expected positive definite matrices") from None
        if not np.allclose(given, np.swapaxes(given, 1, 2)):
            raise ValueError("covariances: expected symmetric matrices")
        self.weights = normalized_weights(weights, n)
        labels = np.arange(n) if classes is None else np.asarray(classes)
        if labels.shape != (n,):
            raise ValueError(f"classes: expected {n} labels, got shape {labels.shape}")
        self.classes_, self._codes = np.unique(labels, return_inverse=True)

    def _log_joint(self, X: Any) -> Floats:
        """Return log P(class) p(x | class), of shape (n_points, n_classes)."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self.means.shape[1]:
            raise ValueError(f"X: expected shape (points, {self.means.shape[1]}), got {X.shape}")
        logs = np.empty((len(X), len(self.means)))
        for k, (mean, factor) in enumerate(zip(self.means, self._factors, strict=True)):
            standard = np.linalg.solve(factor, (X - mean).T)
            logs[:, k] = -0.5 * (standard**2).sum(axis=0) - np.log(np.diag(factor)).sum()
        with np.errstate(divide="ignore"):
            logs += np.log(self.weights) - 0.5 * self.means.shape[1] * np.log(2 * np.pi)
        out = [logsumexp(logs[:, self._codes == c], axis=1) for c in range(len(self.classes_))]
        return np.column_stack(out)

    def posteriors(self, X: Any) -> Floats:
        """Return the class probabilities at points X, of shape (n_points, n_classes)."""
        joint = self._log_joint(X)
        return np.exp(joint - logsumexp(joint, axis=1, keepdims=True))

    def predict(self, X: Any) -> Array:
        """Predict the classes of points X with the Bayes classifier."""
        return np.asarray(self.classes_[np.argmax(self._log_joint(X), axis=1)])

    def sample(self, n_samples: int, random_state: Any = None) -> tuple[Floats, Array]:
        """Draw rows and their classes."""
        random = check_random_state(random_state)
        n = check_count("n_samples", n_samples)
        component = random.choice(len(self.weights), size=n, p=self.weights)
        standard = random.standard_normal((n, self.means.shape[1]))
        X = self.means[component] + np.einsum("nij,nj->ni", self._factors[component], standard)
        return X, np.asarray(self.classes_[self._codes[component]])

    def bayes_error(
        self, n_samples: int | None = None, random_state: Any = None
    ) -> tuple[float, float]:
        """Compute the Bayes error.

        Parameters
        ----------
        n_samples : int, default=None
            Number of random points. None: with one feature the error is computed from the ends of
            the classes' intervals. With two features this is integrated over the first one by
            quadrature, to about eight digits. With more features 1,000,000 points are drawn.
        random_state : int, RandomState or None, default=None
            Seed of the random points.

        Returns
        -------
        error : float
            The Bayes error.
        standard_error : float
            Standard error of the simulation; zero without one.
        """
        n_features = self.means.shape[1]
        if n_samples is None and n_features == 1:
            scales = self._factors[:, 0, 0]
            with np.errstate(divide="ignore"):
                correct = self._correct_on_a_line(np.log(self.weights), self.means[:, 0], scales)
            return max(0.0, 1.0 - correct), 0.0
        if n_samples is None and n_features == 2:
            return max(0.0, 1.0 - self._correct_in_the_plane()), 0.0
        n = check_count("n_samples", 1_000_000 if n_samples is None else n_samples, 2)
        X, _ = self.sample(n, random_state)
        wrong = 1 - self.posteriors(X).max(axis=1)
        return float(wrong.mean()), float(wrong.std(ddof=1) / np.sqrt(n))

    def _correct_on_a_line(self, logs: Floats, means: Floats, scales: Floats) -> float:
        """Return the integral over a line of the largest class density.

        The density of a class is Σ exp(logs) N(means, scales²). The line is divided into intervals
        with the same largest class, and each is integrated by the normal distribution function.
        """
        members = self._codes[:, None] == np.arange(len(self.classes_))
        largest = logs - np.log(scales)

        def joint(points: Floats) -> Floats:
            terms = largest - 0.5 * ((points[:, None] - means) / scales) ** 2
            top = terms.max(axis=1, keepdims=True)
            with np.errstate(divide="ignore"):
                return np.log(np.exp(terms - top) @ members) + top

        steps = np.linspace(-REACH, REACH, GRID_POINTS)
        grid = np.sort((means[:, None] + scales[:, None] * steps).ravel())
        best = np.argmax(joint(grid), axis=1)
        changes = np.flatnonzero(best[1:] != best[:-1])
        ends = self._crossings(joint, grid[changes], grid[changes + 1], best, changes)
        lows, highs = np.r_[-np.inf, ends], np.r_[ends, np.inf]
        winners = members[:, best[np.r_[changes, len(grid) - 1]]]
        with np.errstate(invalid="ignore"):
            below = ndtr((highs - means[:, None]) / scales[:, None])
            below -= ndtr((lows - means[:, None]) / scales[:, None])
        return float(np.exp(logs) @ (winners * below).sum(axis=1))

    @staticmethod
    def _crossings(
        joint: Any, lows: Floats, highs: Floats, best: NDArray[np.intp], changes: NDArray[np.intp]
    ) -> Floats:
        """Return the points where the largest class changes, by the secant method.

        An error of a point has only a quadratic effect on the integral.
        """
        before, after = best[changes], best[changes + 1]
        index = np.arange(len(changes))

        def lead(points: Floats) -> Floats:  # of the class on the left
            values = joint(points)
            return values[index, before] - values[index, after]

        if len(changes) == 0:
            return lows
        at_low, at_high = lead(lows), lead(highs)
        for _ in range(SECANTS):
            with np.errstate(invalid="ignore", divide="ignore"):
                share = at_low / (at_low - at_high)
            share = np.where((share >= 0) & (share <= 1), share, 0.5)
            middle = lows + share * (highs - lows)
            at_middle = lead(middle)
            leads = at_middle > 0
            lows, at_low = np.where(leads, middle, lows), np.where(leads, at_middle, at_low)
            highs, at_high = np.where(leads, highs, middle), np.where(leads, at_high, at_middle)
        return middle

    def _correct_in_the_plane(self) -> float:
        """Return the integral over the plane of the largest class density."""
        first, scales = self.means[:, 0], np.sqrt(self.covariances[:, 0, 0])
        slopes = self.covariances[:, 1, 0] / self.covariances[:, 0, 0]
        conditional_scales = np.sqrt(self.covariances[:, 1, 1] - slopes * self.covariances[:, 0, 1])
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights) - np.log(scales * np.sqrt(2 * np.pi))

        def probability_at(x: float) -> float:
            logs = log_weights - 0.5 * ((x - first) / scales) ** 2
            return self._correct_on_a_line(
                logs, self.means[:, 1] + slopes * (x - first), conditional_scales
            )

        # Integrate between the ends and the middle of each component, so that the adaptive
        # quadrature does not miss narrow components.
        edges = np.unique(first[:, None] + scales[:, None] * np.array([-REACH, -3, 0, 3, REACH]))
        return float(
            sum(
                quad(probability_at, low, high, epsabs=1e-11, limit=200)[0]
                for low, high in pairwise(edges)
            )
        )
