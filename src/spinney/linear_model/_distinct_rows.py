"""Rows without repetitions, in an order that depends only on their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DistinctRows", "Perturbation"]

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Perturbation:
    """Pseudo-random numbers in [−1, 1] that perturb the target and weight of rows.

    They depend only on the bits of the row. Those for targets are multiplied by the row's weight,
    like the targets.
    """

    targets: Floats
    weights: Floats


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows, with the sums of their weights.

    Attributes
    ----------
    rows : ndarray of int
        Index of the first occurrence of each distinct row.
    members : ndarray of int
        Index of the distinct row of each given row; -1 for rows of weight zero.
    weights : ndarray
        Sums of weights.
    """

    rows: NDArray[np.intp]
    members: NDArray[np.intp]
    weights: Floats
    hashes: Bits

    @classmethod
    def from_rows(cls, X: Floats, y: Floats, weights: Floats) -> DistinctRows:
        """Find the distinct rows of (X, y) with positive weights."""
        counted = np.flatnonzero(weights > 0)
        hashes = np.full(len(counted), 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in (*X.T, y):
            # Adding zero turns -0.0 into 0.0.
            hashes = _scramble(hashes ^ (column[counted] + 0.0).view(np.uint64))
        order = np.argsort(hashes, kind="stable")
        ordered = counted[order]
        # Different rows may have equal hashes, though rarely. Hashes therefore determine the order
        # only; values determine which rows are equal.
        new = np.ones(len(counted), dtype=bool)
        new[1:] = hashes[order[1:]] != hashes[order[:-1]]
        candidates = np.flatnonzero(~new)
        first = ordered[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))]
        row, earlier = ordered[candidates], first[candidates]
        new[candidates] = (X[row] != X[earlier]).any(axis=1) | (y[row] != y[earlier])
        members = np.full(len(y), -1)
        members[ordered] = np.cumsum(new) - 1
        sums = np.bincount(members[counted], weights[counted]).astype(np.float64)
        return cls(ordered[new], members, sums, hashes[order[new]])

    def perturbation(self, weights: Floats) -> Perturbation:
        """Return perturbations of the rows, given weights in the solver's units."""
        of_targets, of_weights = (
            _scramble(self.hashes + np.uint64(k)).astype(np.float64) * 2.0**-63 - 1.0
            for k in (1, 2)
        )
        return Perturbation(of_targets * weights, of_weights)


def _scramble(bits: Bits) -> Bits:
    """Return a bijection of 64 bits: the output function of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
