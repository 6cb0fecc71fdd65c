"""Error rates for known distributions: class probabilities at each point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from spinney.theory._arguments import (
    check_count,
    check_number,
    check_posteriors,
    normalized_weights,
)

__all__ = [
    "bayes_classifier",
    "bayes_error",
    "cover_hart_bound",
    "entropy",
    "gini",
    "nearest_neighbor_bound",
    "nearest_neighbor_error",
    "plug_in_bound",
    "plug_in_excess",
]

Floats = NDArray[np.float64]


def bayes_classifier(posteriors: Any) -> NDArray[np.intp]:
    """Return the most probable class at each point; the first one of ties.

    Parameters
    ----------
    posteriors : array-like of shape (n_points, n_classes) or (n_points,)
        Probabilities η(y | x); one column is that of the second of two classes.

    Returns
    -------
    ndarray of int of shape (n_points,)
        Indexes of classes.

    Examples
    --------
    >>> from spinney.theory import bayes_classifier
    >>> bayes_classifier([0.1, 0.5, 0.7]).tolist()
    [0, 0, 1]
    """
    return np.argmax(check_posteriors("posteriors", posteriors), axis=1)


def bayes_error(posteriors: Any, weights: Any = None) -> float:
    """Return the Bayes error, the smallest possible one: E[1 − max_y η(y | x)].

    Parameters
    ----------
    posteriors : array-like of shape (n_points, n_classes) or (n_points,)
        Probabilities η(y | x); one column is that of the second of two classes.
    weights : array-like of shape (n_points,), default=None
        Probabilities of the points, up to a factor; None: all equal, as for a random sample.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import bayes_error
    >>> round(bayes_error([0.1, 0.5, 0.7], [0.5, 0.25, 0.25]), 9)
    0.25
    """
    eta = check_posteriors("posteriors", posteriors)
    return float(normalized_weights(weights, len(eta)) @ (1 - eta.max(axis=1)))


def nearest_neighbor_error(posteriors: Any, weights: Any = None) -> float:
    """Return the asymptotic error of the nearest neighbor rule: E[1 − Σ_y η(y|x)²].

    This is its limit as the number of training rows grows (Cover and Hart).

    Parameters
    ----------
    posteriors, weights : array-like
        As in `bayes_error`.

    Returns
    -------
    float
        The error, between the Bayes error and its `cover_hart_bound`.

    Examples
    --------
    >>> from spinney.theory import nearest_neighbor_error
    >>> round(nearest_neighbor_error([0.1]), 9)
    0.18
    """
    eta = check_posteriors("posteriors", posteriors)
    return float(normalized_weights(weights, len(eta)) @ (1 - (eta**2).sum(axis=1)))


def cover_hart_bound(bayes_error: float, n_classes: int = 2) -> float:
    """Return the bound of the nearest neighbor rule's error: R* (2 − K/(K − 1) R*).

    It holds for `nearest_neighbor_error`, the limit for many training rows.

    Parameters
    ----------
    bayes_error : float
        The Bayes error R*, from 0 to 1 − 1/K.
    n_classes : int, default=2
        Number K of classes.

    Returns
    -------
    float
        The bound, at most 2 R*. The error reaches it if all points have the same posteriors, with
        R*/(K − 1) for each class except one.

    Examples
    --------
    >>> from spinney.theory import cover_hart_bound
    >>> round(cover_hart_bound(0.1), 9)
    0.18
    """
    K = check_count("n_classes", n_classes, 2)
    error = check_number("bayes_error", bayes_error, 0, 1 - 1 / K, closed="both")
    return error * (2 - K / (K - 1) * error)


def nearest_neighbor_bound(
    bayes_error: float, lipschitz: float, n_features: int, n_samples: int
) -> float:
    """Return the bound of the nearest neighbor's mean error with n training rows.

    The bound is 2 R* + 4 c √d n^(−1/(d + 1)). It holds for two classes, rows in [0, 1]^d, and a
    probability η of the second class with Lipschitz constant c in the Euclidean distance.

    Parameters
    ----------
    bayes_error : float
        The Bayes error R*, in [0, 1/2].
    lipschitz : float
        The constant c >= 0.
    n_features : int
        The dimension d.
    n_samples : int
        The number n of rows.

    Returns
    -------
    float
        The bound; values above 1 are trivial.

    Examples
    --------
    >>> from spinney.theory import nearest_neighbor_bound
    >>> round(nearest_neighbor_bound(0.1, 1.0, 1, 10_000), 9)
    0.24
    """
    error = check_number("bayes_error", bayes_error, 0, 0.5, closed="both")
    c = check_number("lipschitz", lipschitz, 0, math.inf, closed="left")
    d, n = check_count("n_features", n_features), check_count("n_samples", n_samples)
    return 2 * error + 4 * c * math.sqrt(d) * n ** (-1 / (d + 1))


def plug_in_excess(estimated: Any, posteriors: Any, weights: Any = None) -> float:
    """Return the excess error of a plug-in rule over the Bayes classifier.

    The rule predicts the class of largest *estimated* probability. For two classes the excess is
    ``E[|2 η − 1|; the rules differ]``.

    Parameters
    ----------
    estimated : array-like of shape (n_points, n_classes) or (n_points,)
        Estimates of the posteriors; they need not be probabilities.
    posteriors, weights : array-like
        As in `bayes_error`.

    Returns
    -------
    float
        The excess, between 0 and `plug_in_bound`.

    Examples
    --------
    >>> from spinney.theory import plug_in_excess
    >>> round(plug_in_excess([0.6, 0.6], [0.4, 0.9]), 9)
    0.1
    """
    eta = check_posteriors("posteriors", posteriors)
    chosen = np.argmax(_estimates(estimated, eta), axis=1)
    lost = eta.max(axis=1) - eta[np.arange(len(eta)), chosen]
    return float(normalized_weights(weights, len(eta)) @ lost)


def plug_in_bound(estimated: Any, posteriors: Any, weights: Any = None) -> float:
    """Return the bound of a plug-in rule's excess error: ``E Σ_y |η̂(y|x) − η(y|x)|``.

    For two classes this is ``2 E|η̂ − η|``.

    Parameters
    ----------
    estimated, posteriors, weights : array-like
        As in `plug_in_excess`.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import plug_in_bound
    >>> round(plug_in_bound([0.6, 0.6], [0.4, 0.9]), 9)
    0.5
    """
    eta = check_posteriors("posteriors", posteriors)
    distance = np.abs(_estimates(estimated, eta) - eta).sum(axis=1)
    return float(normalized_weights(weights, len(eta)) @ distance)


def _estimates(estimated: Any, eta: Floats) -> Floats:
    values = np.asarray(estimated, dtype=np.float64)
    if values.ndim == 1:
        values = np.column_stack([1 - values, values])
    if values.shape != eta.shape:
        raise ValueError(f"estimated: expected shape {eta.shape}, got {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("estimated: expected finite numbers, got NaN or infinity")
    return values


def gini(proportions: Any) -> float:
    """Return the Gini impurity of class proportions: 1 − Σ p².

    Parameters
    ----------
    proportions : array-like of shape (n_classes,)
        Proportions, with sum 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import gini
    >>> round(7 * gini([4 / 7, 2 / 7, 1 / 7]), 9)
    4.0
    """
    return float(1 - np.sum(_proportions(proportions) ** 2))


def entropy(proportions: Any, base: float = 2.0) -> float:
    """Entropy of class proportions: −Σ p log p, in bits unless another base is given.

    Parameters
    ----------
    proportions : array-like of shape (n_classes,)
        Proportions, with sum 1.
    base : float, default=2.0
        Base of the logarithm, above 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import entropy
    >>> round(entropy([4 / 7, 2 / 7, 1 / 7]), 2)
    1.38
    """
    unit = math.log(check_number("base", base, 1, math.inf))
    return float(entr(_proportions(proportions)).sum()) / unit


def _proportions(proportions: Any) -> Floats:
    values = np.asarray(proportions, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"proportions: expected an array (classes,), got shape {values.shape}")
    return check_posteriors("proportions", values[None])[0]
