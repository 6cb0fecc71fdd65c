"""Outcomes: conversions of the scores of a model to its predictions.

Predictions are numbers, or classes with or without probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LOG_LINK",
    "BoostedVotes",
    "Exponential",
    "Isolation",
    "LargestScore",
    "Logistic",
    "Numbers",
    "OneClass",
    "SeveralShares",
    "Shares",
    "Sides",
    "Softmax",
    "SortedQuantiles",
    "TwoClasses",
    "WeightedMedian",
]

LOG_LINK = ("poisson", "gamma", "tweedie")  # losses with predictions exp(score)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Numbers:
    """The scores divided by `divisor`; `flat` if `predict` returns a 1-d array."""

    flat: bool
    divisor: float = 1.0


@dataclass(frozen=True)
class Exponential:
    """The exponentials of the scores."""

    flat: bool


@dataclass(frozen=True)
class Logistic:
    """``1 / (1 + exp(-score))`` as a regression output."""

    flat: bool


@dataclass(frozen=True)
class SortedQuantiles:
    """The sorted scores; output k is the score at ``positions[k]``."""

    positions: list[int]
    flat: bool = False


@dataclass(frozen=True)
class WeightedMedian:
    """The smallest score such that the scores up to it have half of the total weight."""

    weights: Floats
    flat: bool = True


@dataclass(frozen=True)
class Isolation:
    """``-2 ** -(score / usual) - offset``; negative for outliers, which are class -1."""

    usual: float
    offset: float


@dataclass(frozen=True)
class Shares:
    """Scores that are class probabilities after division by `divisor`."""

    classes: NDArray[Any]
    divisor: float


@dataclass(frozen=True)
class SeveralShares:
    """`Shares` for several outputs, whose scores are concatenated."""

    classes: list[NDArray[Any]]
    divisor: float


@dataclass(frozen=True)
class TwoClasses:
    """One score; `factor` times the score is the log-odds of the second class."""

    classes: NDArray[Any]
    factor: float = 1.0


@dataclass(frozen=True)
class Softmax:
    """Scores whose softmax is the class probabilities."""

    classes: NDArray[Any]


@dataclass(frozen=True)
class BoostedVotes:
    """AdaBoost's votes with sum `total`; `real` if they are sums of log-probabilities."""

    classes: NDArray[Any]
    total: float
    real: bool


@dataclass(frozen=True)
class Sides:
    """One score, positive for the second class; no probabilities."""

    classes: NDArray[Any]


@dataclass(frozen=True)
class LargestScore:
    """The class with the largest score; no probabilities."""

    classes: NDArray[Any]


@dataclass(frozen=True)
class OneClass:
    """A constant prediction: the only class of the training data."""

    classes: NDArray[Any]
