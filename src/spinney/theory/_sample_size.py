"""Bounds of generalization errors, and sample sizes."""

from __future__ import annotations

import math

from spinney.theory._arguments import check_count, check_number

__all__ = [
    "growth_of_halfspaces",
    "hoeffding_deviation",
    "hoeffding_sample_size",
    "sauer_bound",
    "vc_deviation",
    "vc_dimension_of_halfspaces",
    "vc_sample_size",
]


def vc_dimension_of_halfspaces(n_features: int, *, fit_intercept: bool = True) -> int:
    """Return the VC dimension of halfspaces: d + 1, or d through the origin.

    It is the largest number of points for which halfspaces realize all labelings.

    Parameters
    ----------
    n_features : int
        The dimension d, at least 1.
    fit_intercept : bool, default=True
        Whether the halfspaces have a bias.

    Returns
    -------
    int

    Examples
    --------
    >>> from spinney.theory import vc_dimension_of_halfspaces
    >>> vc_dimension_of_halfspaces(2), vc_dimension_of_halfspaces(2, fit_intercept=False)
    (3, 2)
    """
    return check_count("n_features", n_features) + bool(fit_intercept)


def growth_of_halfspaces(n_samples: int, n_features: int, *, fit_intercept: bool = True) -> int:
    """Return the growth function of halfspaces: 2 Σ_{k < D} C(n − 1, k) (Cover, 1965).

    It is the largest number of labelings of n points by halfspaces, and points in general position
    reach it. D is the VC dimension: the value is 2ⁿ up to n = D, and smaller beyond.

    Parameters
    ----------
    n_samples : int
        Number n of points.
    n_features : int
        Dimension d.
    fit_intercept : bool, default=True
        Whether the halfspaces have a bias.

    Returns
    -------
    int

    Examples
    --------
    Four points in the plane have 16 labelings; halfspaces realize all except the two of XOR:

    >>> from spinney.theory import growth_of_halfspaces
    >>> growth_of_halfspaces(4, 2)
    14
    """
    n = check_count("n_samples", n_samples)
    dimension = vc_dimension_of_halfspaces(n_features, fit_intercept=fit_intercept)
    return 2 * sum(math.comb(n - 1, k) for k in range(min(dimension, n)))


def sauer_bound(n_samples: int, vc_dimension: int) -> int:
    """Return Sauer's bound of the growth function: Σ_{k <= D} C(n, k).

    Parameters
    ----------
    n_samples : int
        Number n of points.
    vc_dimension : int
        VC dimension D of the class, at least 0.

    Returns
    -------
    int
        Maximum number of labelings of n points by a class of this dimension.

    Examples
    --------
    >>> from spinney.theory import sauer_bound
    >>> sauer_bound(3, 3), sauer_bound(10, 3)
    (8, 176)
    """
    n = check_count("n_samples", n_samples)
    dimension = check_count("vc_dimension", vc_dimension, 0)
    return sum(math.comb(n, k) for k in range(min(dimension, n) + 1))


def hoeffding_deviation(n_samples: int, delta: float, n_hypotheses: int = 1) -> float:
    """Return the bound of ``|training error − true error|`` for finitely many hypotheses.

    √(ln(2 M / δ) / (2 n)), by Hoeffding's inequality and the union bound: with probability at least
    1 − δ it holds for all M hypotheses, if they are fixed before the n rows are drawn.

    Parameters
    ----------
    n_samples : int
        Number n of rows.
    delta : float
        Probability δ of failure, in (0, 1).
    n_hypotheses : int, default=1
        Number M of hypotheses.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import hoeffding_deviation
    >>> round(hoeffding_deviation(1000, 0.05), 4), round(hoeffding_deviation(1000, 0.05, 100), 4)
    (0.0429, 0.0644)
    """
    n = check_count("n_samples", n_samples)
    d = check_number("delta", delta, 0, 1)
    return math.sqrt(
        (math.log(2 / d) + math.log(check_count("n_hypotheses", n_hypotheses))) / (2 * n)
    )


def hoeffding_sample_size(
    epsilon: float, delta: float, n_hypotheses: int = 1, *, realizable: bool = False
) -> int:
    """Return a sufficient number of rows for finitely many hypotheses.

    Agnostic: with ⌈ln(2 M / δ) / (2 ε²)⌉ rows all M training errors are within ε of the true ones.
    Realizable (one hypothesis is never wrong): with ⌈ln(M / δ) / ε⌉ rows every hypothesis without
    training error has a true error of at most ε. Both hold with probability at least 1 − δ.

    Parameters
    ----------
    epsilon, delta : float
        Error ε and probability δ of failure, in (0, 1).
    n_hypotheses : int, default=1
        Number M of hypotheses.
    realizable : bool, default=False
        Whether to return the number of the realizable case.

    Returns
    -------
    int

    Examples
    --------
    >>> from spinney.theory import hoeffding_sample_size
    >>> hoeffding_sample_size(0.1, 0.05, 100)
    415
    >>> hoeffding_sample_size(0.1, 0.05, 100, realizable=True)
    77
    """
    e, d = check_number("epsilon", epsilon, 0, 1), check_number("delta", delta, 0, 1)
    count = math.log(check_count("n_hypotheses", n_hypotheses))
    if realizable:
        return max(1, math.ceil((count - math.log(d)) / e))
    return math.ceil((count + math.log(2 / d)) / (2 * e * e))


def vc_deviation(n_samples: int, delta: float, vc_dimension: int) -> float:
    """Return the bound of ``|training error − true error|`` for a finite VC dimension.

    √(8 ln(4 S / δ) / n), where S is Sauer's bound for 2n points (Vapnik and Chervonenkis): with
    probability at least 1 − δ it holds for all hypotheses of the class. Values above 1 are trivial.

    Parameters
    ----------
    n_samples : int
        Number n of rows.
    delta : float
        Probability δ of failure, in (0, 1).
    vc_dimension : int
        VC dimension of the class.

    Returns
    -------
    float

    Examples
    --------
    >>> from spinney.theory import vc_deviation
    >>> round(vc_deviation(100_000, 0.05, 3), 3)
    0.056
    """
    n = check_count("n_samples", n_samples)
    d = check_number("delta", delta, 0, 1)
    log_growth = math.log(sauer_bound(2 * n, vc_dimension))
    return math.sqrt(8 * (log_growth + math.log(4 / d)) / n)


def vc_sample_size(
    epsilon: float, delta: float, vc_dimension: int, *, realizable: bool = True
) -> int:
    """Return a sufficient number of rows for a class of finite VC dimension.

    Realizable: with max(4/ε · log₂(2/δ), 8 D/ε · log₂(13/ε)) rows every hypothesis without training
    error has a true error of at most ε (Blumer, Ehrenfeucht, Haussler, Warmuth, 1989). Up to
    log(1/ε) this is (D + log(1/δ)) / ε. Agnostic: the smallest n at which `vc_deviation` is at most
    ε. Both hold with probability at least 1 − δ.

    Parameters
    ----------
    epsilon, delta : float
        Error ε and probability δ of failure, in (0, 1).
    vc_dimension : int
        VC dimension D, at least 1.
    realizable : bool, default=True
        Whether to return the number of the realizable case.

    Returns
    -------
    int

    Examples
    --------
    >>> from spinney.theory import vc_sample_size
    >>> vc_sample_size(0.1, 0.05, 3), vc_sample_size(0.1, 0.05, 3, realizable=False)
    (1686, 28341)
    """
    e, d = check_number("epsilon", epsilon, 0, 1), check_number("delta", delta, 0, 1)
    dimension = check_count("vc_dimension", vc_dimension)
    if realizable:
        return math.ceil(max(4 / e * math.log2(2 / d), 8 * dimension / e * math.log2(13 / e)))

    def enough(n: int) -> bool:
        return vc_deviation(n, d, dimension) <= e

    high = 1
    while not enough(high):
        high *= 2
    # Bisection: `vc_deviation` decreases from n = D on, and is above 1 before.
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
