"""Grids: edges along each feature, and indices of the occupied cells.

With 10 cells per feature and 20 features, a grid has 10^20 cells, more than 64 bits can count. Only
occupied cells get an index. The indices along the features form one integer key. Before a key
would exceed 62 bits, the keys so far are replaced by their ranks among those that occur.
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

__all__ = ["Grid"]

Array = NDArray[Any]
Floats = NDArray[np.float64]

_LARGEST_KEY = 2**62
_BLOCK = 4096  # cells per nearest-neighbour query


class Grid:
    """A grid and its occupied cells.

    Parameters
    ----------
    edges : list of ndarray
        Inner edges along each feature. Interval i is (edges[i − 1], edges[i]], as a tree sends
        ``x <= edge`` to the left; the first and the last interval are unbounded.

    Attributes
    ----------
    cells : ndarray of shape (n_cells, n_features)
        Interval indices of the occupied cells, in lexicographic order.
    """

    cells: Array

    def __init__(self, edges: list[Floats]) -> None:
        self.edges = edges
        self._stages: list[Array] = []  # sorted keys that occur, for each renumbering

    def occupy(self, X: Floats) -> Array:
        """Index the cells that contain rows, and return the cell of each row."""
        numbers = self._number(X, fit=True)
        example = np.empty(len(self._stages[-1]), dtype=np.intp)  # any row of each cell
        example[numbers] = np.arange(len(X))
        self.cells = np.stack(list(self._cell_indices(X[example])), axis=1).astype(np.int32)
        return numbers

    def find(self, X: Floats) -> Array:
        """Return the index of the cell of each row, −1 for an empty cell."""
        return self._number(X, fit=False)

    def nearest(self, X: Floats) -> Array:
        """Return the occupied cell nearest to the cell of each row; ties go to the first.

        The distance is Euclidean, in cells.
        """
        indices = np.stack(list(self._cell_indices(X)), axis=1)
        queries, which = np.unique(indices, axis=0, return_inverse=True)
        tree = cKDTree(self.cells)
        found = np.empty(len(queries), dtype=np.intp)
        for start in range(0, len(queries), _BLOCK):
            block = queries[start : start + _BLOCK]
            distances, _ = tree.query(block)
            # Squared distances are integers, so the radius sqrt(d² + 0.5) contains only the ties.
            ties = tree.query_ball_point(block, np.sqrt(np.square(distances) + 0.5))
            found[start : start + _BLOCK] = [min(tied) for tied in ties]
        return found[which.ravel()]

    def _cell_indices(self, X: Floats) -> Iterator[Array]:
        for column, edges in zip(X.T, self.edges, strict=True):
            yield np.searchsorted(edges, np.ascontiguousarray(column), side="left")

    def _number(self, X: Floats, fit: bool) -> Array:
        keys = np.zeros(len(X), dtype=np.intp)
        known = np.ones(len(X), dtype=bool)
        n_keys, n_done = 1, 0
        for index, edges in zip(self._cell_indices(X), self.edges, strict=True):
            size = len(edges) + 1
            if n_keys * size > _LARGEST_KEY:
                keys = self._renumber(keys, n_keys, n_done, fit)
                known &= keys >= 0
                keys[~known] = 0
                n_keys = len(self._stages[n_done])
                n_done += 1
            keys = keys * size + index
            n_keys *= size
        keys = self._renumber(keys, n_keys, n_done, fit)
        keys[~known] = -1
        return keys

    def _renumber(self, keys: Array, n_keys: int, stage: int, fit: bool) -> Array:
        """Return the ranks of keys among those of the training rows, −1 for other keys.

        A lookup table is used if the number of possible keys is small.
        """
        dense = n_keys <= 4 * len(keys)
        if fit and not dense:
            occupied, numbers = np.unique(keys, return_inverse=True)
            self._stages.append(occupied)
            return numbers
        if fit:
            self._stages.append(np.flatnonzero(np.bincount(keys, minlength=n_keys)))
        occupied = self._stages[stage]
        if dense:
            table = np.full(n_keys, -1, dtype=np.intp)
            table[occupied] = np.arange(len(occupied))
            return table[keys]
        numbers = np.minimum(np.searchsorted(occupied, keys), len(occupied) - 1)
        numbers[occupied[numbers] != keys] = -1
        return numbers

    @staticmethod
    def make_edges(cells: Any, limits: Floats) -> list[Floats]:
        """Return the inner edges along each feature for the parameter `cells`.

        Parameters
        ----------
        cells : int, or sequence of ints and arrays of edges
            Numbers of cells of the same width, or edges.
        limits : ndarray of shape (n_features, 2)
            The ranges to divide into cells of the same width.

        Returns
        -------
        list of ndarray
            The inner edges along each feature.
        """
        n_features = len(limits)
        if _is_whole(cells):
            cells = [cells] * n_features
        try:
            given = list(cells) if not isinstance(cells, str | bytes | dict) else None
        except TypeError:
            given = None
        if given is None:
            raise ValueError(
                "cells: expected an int, one int or array of edges for each feature, or a "
                f"callable, got {cells!r}"
            )
        if len(given) != n_features:
            raise ValueError(
                f"cells: expected one entry for each of the {n_features} features, got {len(given)}"
            )
        return [
            _equal_edges(int(one), *limits[j]) if _is_whole(one) else _checked_edges(one, j)
            for j, one in enumerate(given)
        ]

    @staticmethod
    def read_limits(given: Any, X: Floats) -> Floats:
        """Return the range of each feature, (n_features, 2), for the parameter `range`."""
        n_features = X.shape[1]
        if given is None:
            return np.stack([X.min(axis=0), X.max(axis=0)], axis=1)
        expected = f"range: expected None, (low, high) or {n_features} such pairs"
        try:
            limits = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{expected}, got {given!r}") from None
        if limits.shape not in ((2,), (n_features, 2)):
            raise ValueError(f"{expected}, got {given!r}")
        limits = np.array(np.broadcast_to(limits, (n_features, 2)))
        if not (np.isfinite(limits).all() and (limits[:, 0] < limits[:, 1]).all()):
            raise ValueError(f"range: expected finite numbers with low < high, got {given!r}")
        return limits


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def _equal_edges(n_cells: int, low: float, high: float) -> Floats:
    if n_cells < 1:
        raise ValueError(f"cells: expected at least 1 cell for each feature, got {n_cells}")
    if low == high:
        return np.empty(0)  # a constant column is one cell
    with np.errstate(over="ignore"):
        overflows = np.isinf(high - low)
    shares = np.arange(1, n_cells) / n_cells
    edges = (
        low * (1 - shares) + high * shares
        if overflows
        else np.linspace(low, high, n_cells + 1)[1:-1]
    )
    # If the range contains only a few floats, edges may coincide.
    return np.unique(np.clip(edges, low, high))


def _checked_edges(edges: Any, feature: int) -> Floats:
    expected = f"cells: expected an int or ascending finite edges for feature {feature}"
    try:
        out = np.array(edges, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{expected}, got {edges!r}") from None
    if out.ndim != 1 or isinstance(edges, str | bytes):
        raise ValueError(f"{expected}, got {edges!r}")
    if not (np.isfinite(out).all() and (np.diff(out) > 0).all()):
        raise ValueError(f"{expected}, got {edges!r}")
    return out
