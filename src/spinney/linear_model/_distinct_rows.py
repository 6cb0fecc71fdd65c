"""Rows without repetitions, in an order that only their values decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DistinctRows", "Disturbance"]

Floats = NDArray[np.float64]
Bits = NDArray[np.uint64]


@dataclass(frozen=True)
class Disturbance:
    """A number in [−1, 1] for each row that moves its target, and one that moves its weight.

    They come from the bits of the row. Numbers for targets are multiplied by the row's weight, as
    the targets are.
    """

    targets: Floats
    weights: Floats


@dataclass(frozen=True)
class DistinctRows:
    """Each row once, with the sum of its weights.

    Attributes
    ----------
    rows : ndarray of int
        Where each was met first.
    members : ndarray of int
        Which of these each of the given rows is; -1 for those without weight.
    weights : ndarray
        Sums of weights.
    """

    rows: NDArray[np.intp]
    members: NDArray[np.intp]
    weights: Floats
    hashes: Bits

    @classmethod
    def of(cls, X: Floats, y: Floats, weights: Floats) -> DistinctRows:
        """Find the distinct rows of (X, y) with positive weights."""
        counted = np.flatnonzero(weights > 0)
        hashes = np.full(len(counted), 0x9E3779B97F4A7C15, dtype=np.uint64)
        for column in (*X.T, y):
            # Adding zero makes one zero of both.
            hashes = _scramble(hashes ^ (column[counted] + 0.0).view(np.uint64))
        order = np.argsort(hashes, kind="stable")
        ordered = counted[order]
        # Hashes of different rows may be the same, once in a very long time: they decide an order,
        # values decide what is equal.
        new = np.ones(len(counted), dtype=bool)
        new[1:] = hashes[order[1:]] != hashes[order[:-1]]
        same = np.flatnonzero(~new)
        first = ordered[np.maximum.accumulate(np.where(new, np.arange(len(new)), 0))]
        here, there = ordered[same], first[same]
        new[same] = (X[here] != X[there]).any(axis=1) | (y[here] != y[there])
        members = np.full(len(y), -1)
        members[ordered] = np.cumsum(new) - 1
        sums = np.bincount(members[counted], weights[counted]).astype(np.float64)
        return cls(ordered[new], members, sums, hashes[order[new]])

    def disturbance(self, weights: Floats) -> Disturbance:
        """Numbers for the rows, given weights in the solver's units."""
        targets, others = (
            _scramble(self.hashes + np.uint64(k)).astype(np.float64) * 2.0**-63 - 1.0
            for k in (1, 2)
        )
        return Disturbance(targets * weights, others)


def _scramble(bits: Bits) -> Bits:
    """A bijection of 64 bits, the end of SplitMix64."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
