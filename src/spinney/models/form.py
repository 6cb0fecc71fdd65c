"""Fitted models in a common form, from which exporters generate code and files.

A row has *scores* (from trees, a linear function or its neighbours). An *outcome* converts scores
to predictions: numbers, or classes with or without probabilities. Every formula matches the
`predict` of the model, in the same order, so that exports in double precision are bit-identical.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.models.tree import Tree

__all__ = [
    "LOG_LINK",
    "BoostedVotes",
    "Exponential",
    "Form",
    "Isolation",
    "LargestScore",
    "LinearScores",
    "Logistic",
    "NotExpressible",
    "Numbers",
    "OneClass",
    "PolynomialScores",
    "SeveralShares",
    "Shares",
    "Sides",
    "Softmax",
    "SortedQuantiles",
    "TreeScores",
    "TwoClasses",
    "WeightedMedian",
]

LOG_LINK = ("poisson", "gamma", "tweedie")  # losses with predictions exp(score)

Floats = NDArray[np.float64]


class NotExpressible(Exception):
    """A model has no form, or a form cannot be exported; the message gives the reason."""


# ---------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class TreeScores:
    """Scores that are sums of leaf values over trees, plus a start value.

    Parameters
    ----------
    trees : list of Tree
        The splits of the trees, in the order of summation.
    values : list of ndarray of shape (n_nodes, n_scores) or (n_nodes, 1)
        The value that each node of each tree adds; only leaves are used.
    adds_to : list of (int or None)
        The score that a tree adds to; None means all scores.
    start : ndarray of shape (n_scores,)
        The scores before the first tree.
    """

    trees: list[Tree]
    values: list[Floats]
    adds_to: list[int | None]
    start: Floats


@dataclass(frozen=True)
class LinearScores:
    """Scores ``coef @ (x - center) + intercept``; `coef` has one row per score."""

    coef: Floats
    intercept: Floats
    center: Floats | None = None


@dataclass(frozen=True)
class PolynomialScores:
    """Scores that are sums of terms: products of Legendre polynomials of the columns.

    Parameters
    ----------
    coef : ndarray of shape (n_scores, n_terms)
        Coefficient of each term.
    exponents : ndarray of shape (n_terms, n_features)
        Degree of each column in each term.
    middle, half : ndarray of shape (n_features,)
        The columns are scaled as ``(x - middle) / half``.
    """

    coef: Floats
    exponents: NDArray[np.int64]
    middle: Floats
    half: Floats

    @property
    def degree(self) -> int:
        """The largest degree of a column."""
        return int(self.exponents.max())

    def factors(self) -> NDArray[np.int64]:
        """Return the polynomials of each term, (n_terms, degree).

        The index of the polynomial of a degree and a column is ``degree * n_features + column``.
        Terms with fewer factors are filled up with polynomial 0, the constant one.
        """
        n_features = self.exponents.shape[1]
        out = np.zeros((len(self.exponents), max(self.degree, 1)), dtype=np.int64)
        for term, powers in enumerate(self.exponents):
            columns = np.flatnonzero(powers)
            out[term, : len(columns)] = powers[columns] * n_features + columns
        return out


# -------------------------------------------------------------------------------------- outcomes


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


# ------------------------------------------------------------------------------------------ form


@dataclass(frozen=True)
class Form:
    """The form of a model for export.

    Parameters
    ----------
    model : str
        Name of the model's class.
    names : list of str or None
        Names of the columns; None if the training data had none.
    categories : list of (ndarray or None)
        The categories of each categorical column, in the order of their codes; None for a numeric
        column.
    scores, outcome
        Instances of the classes above.
    """

    model: str
    names: list[str] | None
    categories: list[Any]
    scores: Any
    outcome: Any

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.categories)

    @property
    def has_categories(self) -> bool:
        """Whether any column has categories."""
        return any(values is not None for values in self.categories)

    def column_name(self, feature: int) -> str:
        """Return the name of a column; a generic name if the columns have none."""
        return f"x{feature}" if self.names is None else self.names[feature]
