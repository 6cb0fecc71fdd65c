"""Fixed partitions of the space: the histogram rule and the regressogram."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import _fit_context

from spinney.tree.partition._cells import BaseCells, CellClassifier, CellRegressor
from spinney.tree.partition._describe_cells import NamedPartition
from spinney.tree.partition._grid import Grid

__all__ = ["PartitionClassifier", "PartitionRegressor"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


class Labels:
    """Cells defined by a function that returns their labels."""

    cells: Array

    def __init__(self, function: Any) -> None:
        self._function = function

    def occupy(self, X: Floats) -> Array:
        """Index the labels of the training rows, and return the cell of each row."""
        self.cells, numbers = self._unique(X)
        self._numbers = {name: number for number, name in enumerate(self.cells.tolist())}
        return numbers

    def find(self, X: Floats) -> Array:
        """Return the index of the cell of each row, −1 for an empty cell."""
        names, which = self._unique(X)
        numbers = [self._numbers.get(name, -1) for name in names.tolist()]
        return np.array(numbers, dtype=np.intp)[which]

    def _unique(self, X: Floats) -> tuple[Array, Array]:
        names = np.asarray(self._function(X))
        if names.shape != (len(X),):
            raise ValueError(
                f"cells: expected a function that returns {len(X)} labels, one for each row, got "
                f"an array of shape {names.shape}"
            )
        if names.dtype.kind == "f" and np.isnan(names).any():
            raise ValueError("cells: expected a function that returns labels, got NaN")
        if names.dtype.kind != "O":
            names, which = np.unique(names, return_inverse=True)
            return names, which
        # Labels of dtype object may not be sortable, so they are indexed in order of appearance.
        numbers: dict[Any, int] = {}
        for name in names.tolist():
            if not isinstance(name, Hashable):
                raise ValueError(f"cells: expected hashable labels, got {name!r}")
            numbers.setdefault(name, len(numbers))
        which = np.array([numbers[name] for name in names.tolist()], dtype=np.intp)
        out = np.empty(len(numbers), dtype=object)
        out[:] = list(numbers)
        return out, which


class BasePartition(BaseCells):
    """Base class of both fixed partitions; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        # Checked in `fit`, with more specific error messages.
        "cells": "no_validation",
        "range": "no_validation",
        "empty": "no_validation",
    }

    def __init__(self, cells: Any = 10, *, range: Any = None, empty: Any = "global") -> None:
        self.cells = cells
        self.range = range
        self.empty = empty

    @abstractmethod
    def _empty_value(self, everywhere: Floats) -> Floats:
        """Return the value of an empty cell, given that of all rows; both (n_values,)."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Compute the class shares, or the mean target, of each cell.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights; None means equal weights. Rows of weight zero are ignored, even for the
            range.

        Returns
        -------
        estimator
            Itself.
        """
        X, targets, weights = self._read(X, y, sample_weight)
        cells: Grid | Labels
        if callable(self.cells):
            if isinstance(self.empty, str) and self.empty == "nearest":
                raise ValueError(
                    "empty='nearest': expected a grid, got a callable for cells; there are no "
                    "distances between labels"
                )
            cells = Labels(self.cells)
            self.edges_: list[Floats] | None = None
            self.range_: Floats | None = None
        else:
            self.range_ = Grid.read_limits(self.range, X)
            self.edges_ = Grid.make_edges(self.cells, self.range_)
            cells = Grid(self.edges_)
        rows = cells.occupy(X)
        n = len(cells.cells)
        self.n_cells_ = n
        self.cells_ = cells.cells
        self.cell_counts_ = np.bincount(rows, minlength=n)
        self.cell_weights_ = np.bincount(rows, weights, n)
        values = self._sums(rows, n, targets, weights)
        values /= self.cell_weights_[:, np.newaxis]
        alone = np.zeros(len(rows), dtype=np.intp)
        everywhere = self._sums(alone, 1, targets, weights)[0] / weights.sum()
        # The last row, index −1, is the value of empty cells.
        self._table = np.vstack([values, self._empty_value(everywhere)])
        self._cells = cells
        self._everywhere, self._total = everywhere, float(weights.sum())
        self._store_training_rows(rows, targets, weights)
        return self

    def _leave_one_out_values(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        if isinstance(self.empty, str) and self.empty == "nearest":
            return None
        w = weights[:, np.newaxis]
        alone = self.cell_counts_[cells] == 1
        rest = np.where(alone[:, np.newaxis], 1.0, self.cell_weights_[cells][:, np.newaxis] - w)
        predicted = (self._table[cells] * self.cell_weights_[cells][:, np.newaxis] - w * own) / rest
        empty = np.broadcast_to(self._table[-1], predicted.shape)
        if isinstance(self.empty, str) and self.empty == "global":
            others = np.maximum(self._total - w, np.finfo(np.float64).tiny)
            empty = (self._everywhere * self._total - w * own) / others
        return np.where(alone[:, np.newaxis], empty, predicted)

    def _reason_without_rows(self) -> str:
        return " (not available with empty='nearest')"

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedPartition(self, feature_names, class_names)

    def apply(self, X: Any) -> Array:
        """Return the index of each row's cell.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,)
            Index into `cell_values_`, or −1 if the cell is empty.
        """
        X = self._read_rows(X)
        return self._cells.find(X)

    def _locate(self, X: Floats) -> tuple[Floats, Array]:
        cells = self._cells.find(X)
        if isinstance(self.empty, str) and self.empty == "nearest":
            in_empty = np.flatnonzero(cells < 0)
            if len(in_empty):
                assert isinstance(self._cells, Grid)  # checked in fit
                cells[in_empty] = self._cells.nearest(X[in_empty])
        return self._table, cells


class PartitionClassifier(CellClassifier, BasePartition):
    """The histogram rule: a fixed partition with the majority class in each cell.

    Parameters
    ----------
    cells : int, array-like or callable, default=10
        The cells. A number: that many cells of the same width for each feature, over
        the range of the training data. A list with an entry for each feature: such a number, or an
        array of ascending inner edges e0, e1, …, for the cells (−∞, e0], (e0, e1], …,
        (e_last, ∞): as in trees, ``x <= edge`` is left of an edge. A function: it takes an array
        (n_rows, n_features) and returns a hashable label for each row.
    range : (float, float) or list of pairs, default=None
        The range that cells of the same width cover, for all features or for each one. None: the
        range of the training data. The outermost cells are unbounded in either case.
    empty : {"global", "nearest"} or class, default="global"
        Prediction of a cell without training rows. "global": the class shares of all rows.
        "nearest": the nearest cell with rows, by the Euclidean distance in cells (ties go to the
        first); not for a function. Otherwise one of the classes.

    Attributes
    ----------
    edges_ : list of ndarray or None
        The inner edges along each feature; None if `cells` is a function. A constant column has
        none, unless they were given.
    range_ : ndarray of shape (n_features, 2) or None
        The range of each feature.
    n_cells_ : int
        Number of cells with rows. Empty cells take no memory.
    cells_ : ndarray
        The cells with rows: indices along each feature, (n_cells, n_features), or labels,
        (n_cells,).
    cell_counts_, cell_weights_ : ndarray of shape (n_cells,)
        Number of rows of positive weight, and sum of their weights.
    cell_values_ : ndarray of shape (n_cells, n_classes)
        Class shares. Ties go to the first class.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    QuadTreeClassifier : Smaller cells in regions with more rows.
    DecisionTreeClassifier : Cells that depend on the targets.

    Examples
    --------
    >>> from spinney.tree import PartitionClassifier
    >>> model = PartitionClassifier(cells=[[1.0, 2.0]]).fit([[0.5], [1.0], [1.5]], ["a", "a", "b"])
    >>> model.predict([[1.0], [1.1], [9.0]]).tolist()
    ['a', 'b', 'a']
    >>> model.apply([[1.0], [1.1], [9.0]]).tolist()
    [0, 1, -1]
    """

    def _empty_value(self, everywhere: Floats) -> Floats:
        if isinstance(self.empty, str) and self.empty in ("global", "nearest"):
            return everywhere
        is_empty_class = [bool(np.all(one == self.empty)) for one in self.classes_.tolist()]
        if sum(is_empty_class) != 1:
            raise ValueError(
                "empty: expected 'global', 'nearest' or one of the classes "
                f"{self.classes_.tolist()}, got {self.empty!r}"
            )
        return np.array(is_empty_class, dtype=np.float64)

    @property
    def cell_values_(self) -> Floats:
        """Shares of the classes in each cell with rows."""
        return self._table[:-1]


class PartitionRegressor(CellRegressor, BasePartition):
    """The regressogram: a fixed partition of the space, and the mean of each cell.

    Parameters
    ----------
    cells : int, array-like or callable, default=10
        The cells. A number: that many cells of the same width for each feature, over
        the range of the training data. A list with an entry for each feature: such a number, or an
        array of ascending inner edges e0, e1, …, for the cells (−∞, e0], (e0, e1], …,
        (e_last, ∞): as in trees, ``x <= edge`` is left of an edge. A function: it takes an array
        (n_rows, n_features) and returns a hashable label for each row.
    range : (float, float) or list of pairs, default=None
        The range that cells of the same width cover, for all features or for each one. None: the
        range of the training data. The outermost cells are unbounded in either case.
    empty : {"global", "nearest", "nan"} or float, default="global"
        Prediction of a cell without training rows. "global": the mean of all rows. "nearest": the
        nearest cell with rows, by the Euclidean distance in cells (ties go to the first); not for a
        function. "nan": NaN. A number: that number.

    Attributes
    ----------
    edges_ : list of ndarray or None
        The inner edges along each feature; None if `cells` is a function. A constant column has
        none, unless they were given.
    range_ : ndarray of shape (n_features, 2) or None
        The range of each feature.
    n_cells_ : int
        Number of cells with rows. Empty cells take no memory.
    cells_ : ndarray
        The cells with rows: indices along each feature, (n_cells, n_features), or labels,
        (n_cells,).
    cell_counts_, cell_weights_ : ndarray of shape (n_cells,)
        Number of rows of positive weight, and sum of their weights.
    cell_values_ : ndarray of shape (n_cells,)
        Means of the targets.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    QuadTreeRegressor : Smaller cells in regions with more rows.
    DecisionTreeRegressor : Cells that depend on the targets.

    Examples
    --------
    >>> from spinney.tree import PartitionRegressor
    >>> model = PartitionRegressor(cells=2).fit([[0.0], [1.0], [3.0], [4.0]], [1.0, 3.0, 5.0, 9.0])
    >>> model.edges_
    [array([2.])]
    >>> model.predict([[2.0], [2.1]]).tolist()
    [2.0, 7.0]
    """

    def _empty_value(self, everywhere: Floats) -> Floats:
        if isinstance(self.empty, str):
            if self.empty in ("global", "nearest"):
                return everywhere
            if self.empty == "nan":
                return np.array([np.nan])
        elif isinstance(self.empty, Real) and not isinstance(self.empty, bool | np.bool_):
            return np.array([float(self.empty)])
        raise ValueError(
            "empty: expected 'global', 'nearest', 'nan' or a number, got " + repr(self.empty)
        )

    @property
    def cell_values_(self) -> Floats:
        """Mean of each cell with rows."""
        return self._table[:-1, 0]
