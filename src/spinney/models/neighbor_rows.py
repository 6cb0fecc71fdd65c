"""Fitted nearest-neighbour models as values: training rows and their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

__all__ = ["NeighborModel"]

Floats = NDArray[np.float64]

_BLOCK_SIZE = 1 << 22  # distances that are in memory at a time


@dataclass(frozen=True)
class NeighborModel:
    """Weighted means over the k nearest training rows in Euclidean distance.

    If several rows have the same distance, the row with the smallest number is nearest.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features)
        The training rows.
    values : ndarray of shape (n_rows, n_scores)
        Class indicators, or targets, of these rows.
    k : int
        Number of neighbours.
    by_distance : bool
        Whether a neighbour's weight is 1 / distance; otherwise all weights are equal. If some
        neighbours have distance 0, only these have weight, and their weights are equal.
    outcome : outcome of `spinney.models.form`
        Conversion of scores to predictions.
    """

    rows: Floats
    values: Floats
    k: int
    by_distance: bool
    outcome: Any

    def raw_scores(self, X: ArrayLike) -> Floats:
        """Return the scores of rows, before their conversion to predictions.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_queries, n_scores)
            The weighted means of the neighbours' values.
        """
        queries = np.asarray(X, dtype=np.float64)
        out = np.empty((len(queries), self.values.shape[1]))
        length = max(1, _BLOCK_SIZE // len(self.rows))
        for first in range(0, len(queries), length):
            block = slice(first, first + length)
            squares = cdist(queries[block], self.rows, "sqeuclidean")
            out[block] = self._mean_of_nearest(squares)
        return out

    def _mean_of_nearest(self, squares: Floats) -> Floats:
        """Average the values of the k nearest rows, given all squared distances."""
        nearest = np.argsort(squares, axis=1, kind="stable")[:, : self.k]
        values = self.values[nearest]
        if not self.by_distance:
            return np.asarray(values.mean(axis=1))
        distances = np.sqrt(np.take_along_axis(squares, nearest, axis=1))
        is_same = distances == 0
        with np.errstate(divide="ignore"):
            inverse = 1 / distances
        weights = np.where(is_same.any(axis=1, keepdims=True), is_same, inverse)
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("ijk,ij->ik", values, weights) / total)
