"""A fitted model as a sum and what follows from it: all that the writers know of models.

A row gets *scores* (from trees, a linear function or its neighbours), and an *outcome* says what
they mean: numbers, or classes with or without probabilities. Every formula is that of the model's
own `predict`, in the same order, so that a writer in double precision can give the same bits.
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
    "NeighborScores",
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

LOG_LINK = ("poisson", "gamma", "tweedie")  # losses whose predictions are exponentials of scores

Floats = NDArray[np.float64]


class NotExpressible(Exception):
    """Why a model has no form, or a form cannot be written."""


# ---------------------------------------------------------------------------------------- scores


@dataclass(frozen=True)
class TreeScores:
    """Scores that start somewhere, to which every tree adds what its leaf holds.

    Parameters
    ----------
    trees : list of Tree
        Their questions, in the order in which they add.
    values : list of ndarray of shape (n_nodes, n_scores) or (n_nodes, 1)
        What each node of each tree adds (leaves count alone).
    adds_to : list of (int or None)
        The score that a tree adds to; None if it adds to all.
    start : ndarray of shape (n_scores,)
        The scores before the first tree.
    """

    trees: list[Tree]
    values: list[Floats]
    adds_to: list[int | None]
    start: Floats


@dataclass(frozen=True)
class LinearScores:
    """Scores ``coef @ (x - center) + intercept``; `coef` has a row for each score."""

    coef: Floats
    intercept: Floats
    center: Floats | None = None


@dataclass(frozen=True)
class PolynomialScores:
    """Sums of terms, which are products of Legendre's polynomials of the columns.

    Parameters
    ----------
    coef : ndarray of shape (n_scores, n_terms)
        What each term counts.
    exponents : ndarray of shape (n_terms, n_features)
        Degree of each column in each term.
    middle, half : ndarray of shape (n_features,)
        Columns are taken as ``(x - middle) / half``.
    """

    coef: Floats
    exponents: NDArray[np.int64]
    middle: Floats
    half: Floats

    @property
    def degree(self) -> int:
        """The highest degree of a column."""
        return int(self.exponents.max())

    def factors(self) -> NDArray[np.int64]:
        """Return the polynomials of each term, (n_terms, degree).

        Polynomial ``power * n_features + column`` is that of a degree in a column. A term of fewer
        factors has polynomial 0, which is one, in their place.
        """
        n_features = self.exponents.shape[1]
        out = np.zeros((len(self.exponents), max(self.degree, 1)), dtype=np.int64)
        for term, powers in enumerate(self.exponents):
            columns = np.flatnonzero(powers)
            out[term, : len(columns)] = powers[columns] * n_features + columns
        return out


@dataclass(frozen=True)
class NeighborScores:
    """Weighted means over the k nearest rows, in Euclidean distance, of what these rows have.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The rows of fit.
    values : ndarray of shape (n_rows, n_scores)
        Indicators of classes, or targets.
    k : int
        How many count.
    by_distance : bool
        Whether each counts one over its distance, instead of all the same.
    """

    rows: Floats
    values: Floats
    k: int
    by_distance: bool


# -------------------------------------------------------------------------------------- outcomes


@dataclass(frozen=True)
class Numbers:
    """The scores over `divisor`; `flat` if the model predicts one number, not an array of them."""

    flat: bool
    divisor: float = 1.0


@dataclass(frozen=True)
class Exponential:
    """The exponentials of the scores."""

    flat: bool


@dataclass(frozen=True)
class Logistic:
    """``1 / (1 + exp(-score))`` as a number."""

    flat: bool


@dataclass(frozen=True)
class SortedQuantiles:
    """The scores in ascending order, output k being the one at ``places[k]``."""

    places: list[int]
    flat: bool = False


@dataclass(frozen=True)
class WeightedMedian:
    """The least score at which the weights of scores up to it reach half of all."""

    weights: Floats
    flat: bool = True


@dataclass(frozen=True)
class Isolation:
    """``-2 ** -(score / usual)`` less `offset`: below zero for outliers, which are class -1."""

    usual: float
    offset: float


@dataclass(frozen=True)
class Shares:
    """Scores that are probabilities, but for the `divisor`."""

    classes: NDArray[Any]
    divisor: float


@dataclass(frozen=True)
class SeveralShares:
    """The same for several columns of classes, whose scores stand one after another."""

    classes: list[NDArray[Any]]
    divisor: float


@dataclass(frozen=True)
class TwoClasses:
    """One score: `factor` times it is the logarithm of the second class's odds."""

    classes: NDArray[Any]
    factor: float = 1.0


@dataclass(frozen=True)
class Softmax:
    """Scores whose exponentials are in proportion to probabilities."""

    classes: NDArray[Any]


@dataclass(frozen=True)
class BoostedVotes:
    """AdaBoost's votes, of which `total` were given; `real` if they are sums of logarithms."""

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
    """The only class there is."""

    classes: NDArray[Any]


# ------------------------------------------------------------------------------------------ form


@dataclass(frozen=True)
class Form:
    """What is written of a model.

    Parameters
    ----------
    model : str
        The name of its class.
    names : list of str or None
        Names of the columns, if fit saw some.
    categories : list of (ndarray or None)
        The values of each column of categories, whose places are their codes; None for a numeric
        column.
    scores, outcome
        Of the types above.
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
        """Return the name of a column, made up where fit saw none."""
        return f"x{feature}" if self.names is None else self.names[feature]
