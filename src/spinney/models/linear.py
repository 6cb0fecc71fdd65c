"""Fitted linear models and polynomials as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.polynomial import legendre
from numpy.typing import NDArray

from spinney.models.outcomes import LargestScore, Numbers, Sides, Softmax, TwoClasses
from spinney.models.row_products import as_csr, multiply_rows
from spinney.runtime.threads import effective_n_jobs

__all__ = ["LinearModel", "PolynomialModel", "legendre_terms"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LinearModel:
    """A linear model with the scores ``coef @ (x - center) + intercept``.

    Parameters
    ----------
    coef : ndarray of shape (n_scores, n_features)
        Coefficients.
    intercept : ndarray of shape (n_scores,)
        Intercepts.
    outcome : Numbers, TwoClasses, Softmax, Sides or LargestScore
        The conversion of scores to predictions. The outcome of a classifier has its classes.
    center : ndarray of shape (n_features,) or None
        Subtracted from the rows first; None means zero.
    """

    coef: Floats
    intercept: Floats
    outcome: Numbers | TwoClasses | Softmax | Sides | LargestScore
    center: Floats | None = None

    @classmethod
    def from_attributes(
        cls, coef: Any, intercept: Any, outcome: Any, *, center: Floats | None = None
    ) -> Self:
        """Return the model of scikit-learn's attributes `coef_` and `intercept_`.

        `coef` may be sparse or have one axis; `intercept` may be one number for all scores. Arrays
        of type float64 are not copied.
        """
        coef = coef.toarray() if sp.issparse(coef) else coef
        coef = np.atleast_2d(np.asarray(coef, dtype=np.float64))
        intercept = np.asarray(intercept, dtype=np.float64).ravel()
        return cls(coef, np.broadcast_to(intercept, (len(coef),)), outcome, center)

    def raw_scores(self, X: Any, *, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows, before the conversion to predictions.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            The rows. Dense rows of type float64 or float32 are not copied.
        n_jobs : int or None, default=None
            Number of threads; None is the value of `spinney.set_num_threads`. The result is the
            same.

        Returns
        -------
        ndarray of shape (n_rows, n_scores)
            The scores.
        """
        n_threads = effective_n_jobs(n_jobs)
        if sp.issparse(X):
            # Centred rows would be dense: the intercept is moved to the origin instead.
            intercept = self.intercept
            if self.center is not None:
                intercept = intercept - self.coef @ self.center
            return multiply_rows(as_csr(X), self.coef, n_threads=n_threads) + intercept
        X = np.asarray(X, dtype=np.float32 if X.dtype.type is np.float32 else np.float64)
        products = multiply_rows(X, self.coef, center=self.center, n_threads=n_threads)
        return products + self.intercept


@dataclass(frozen=True)
class PolynomialModel:
    """A polynomial: scores are sums of products of Legendre polynomials.

    Parameters
    ----------
    coef : ndarray of shape (n_scores, n_terms)
        Coefficient of each term.
    exponents : ndarray of shape (n_terms, n_features)
        Degree of each column in each term.
    middle, half : ndarray of shape (n_features,)
        The columns are scaled as ``(x - middle) / half``.
    outcome : Numbers
        The conversion of scores to predictions.
    """

    coef: Floats
    exponents: NDArray[np.int64]
    middle: Floats
    half: Floats
    outcome: Numbers

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

    def raw_scores(self, X: Any, *, n_jobs: int | None = None) -> Floats:
        """Return the scores of rows.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
            The rows.
        n_jobs : int or None, default=None
            Number of threads; None is the value of `spinney.set_num_threads`. The result is the
            same.

        Returns
        -------
        ndarray of shape (n_rows, n_scores)
            The scores.
        """
        terms = legendre_terms(X, self.exponents, middle=self.middle, half=self.half)
        return multiply_rows(terms, self.coef, n_threads=effective_n_jobs(n_jobs))


def legendre_terms(X: Any, exponents: NDArray[np.int64], *, middle: Floats, half: Floats) -> Floats:
    """Return products of Legendre polynomials of the scaled columns.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows.
    exponents : ndarray of shape (n_terms, n_features)
        Degree of each column in each term.
    middle, half : ndarray of shape (n_features,)
        The columns are scaled as ``(x - middle) / half``.

    Returns
    -------
    ndarray of shape (n_rows, n_terms)
        The terms.
    """
    scaled = (np.asarray(X, dtype=np.float64) - middle) / half
    powers = legendre.legvander(scaled, int(exponents.max()))
    terms = np.ones((len(powers), len(exponents)))
    for column in range(powers.shape[1]):
        terms *= powers[:, column, :][:, exponents[:, column]]
    return terms
