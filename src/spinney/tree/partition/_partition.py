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
    """The cells of a function that names them."""

    cells: Array

    def __init__(self, function: Any) -> None:
        self._function = function

    def occupy(self, X: Floats) -> Array:
        """Number the labels that rows have, and return each row's number."""
        self.cells, numbers = self._unique(X)
        self._numbers = {name: number for number, name in enumerate(self.cells.tolist())}
        return numbers

    def find(self, X: Floats) -> Array:
        """Return the number of the cell of each row, −1 where the cell is empty."""
        names, which = self._unique(X)
        numbers = [self._numbers.get(name, -1) for name in names.tolist()]
        return np.array(numbers, dtype=np.intp)[which]

    def _unique(self, X: Floats) -> tuple[Array, Array]:
        told = self._function(X)
        names = np.asarray(told)
        if names.shape != (len(X),):
            raise ValueError(
                f"cells: expected a function that returns {len(X)} labels, one for each row, got "
                f"an answer of shape {names.shape}"
            )
        if names.dtype.kind == "f" and np.isnan(names).any():
            raise ValueError("cells: expected a function that returns labels, got NaN")
        if names.dtype.kind != "O":
            names, which = np.unique(names, return_inverse=True)
            return names, which
        # Labels of any kind need not have an order: they are numbered as they come.
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
    """Base class of both kinds; not to be used directly."""

    _parameter_constraints: dict[str, Any] = {
        # Read where they are used, with texts that say what was expected.
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
        """What an empty cell holds, given what all rows together hold; both (n_values,)."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Count or average the rows of each cell.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The rows: finite numbers.
        y : array-like of shape (n_rows,)
            The targets.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows. Rows of weight zero have no say, not even in the range.

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
                    "empty='nearest': expected a grid, got a callable for cells, whose labels have "
                    "no distances"
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
        # The last row is what an empty cell, number −1, says.
        self._table = np.vstack([values, self._empty_value(everywhere)])
        self._cells = cells
        self._everywhere, self._total = everywhere, float(weights.sum())
        self._remember_rows(rows, targets, weights)
        return self

    def _left_out(self, cells: Array, own: Floats, weights: Floats) -> Floats | None:
        if isinstance(self.empty, str) and self.empty == "nearest":
            return None
        w = weights[:, np.newaxis]
        alone = self.cell_counts_[cells] == 1
        rest = np.where(alone[:, np.newaxis], 1.0, self.cell_weights_[cells][:, np.newaxis] - w)
        told = (self._table[cells] * self.cell_weights_[cells][:, np.newaxis] - w * own) / rest
        empty = np.broadcast_to(self._table[-1], told.shape)
        if isinstance(self.empty, str) and self.empty == "global":
            others = np.maximum(self._total - w, np.finfo(np.float64).tiny)
            empty = (self._everywhere * self._total - w * own) / others
        return np.where(alone[:, np.newaxis], empty, told)

    def _why_none(self) -> str:
        return " (empty='nearest' tells none)"

    def _readable_tree(self, feature_names: Any = None, class_names: Any = None) -> Any:
        return NamedPartition(self, feature_names, class_names)

    def apply(self, X: Any) -> Array:
        """Return the number of each row's cell.

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
            lost = np.flatnonzero(cells < 0)
            if len(lost):
                assert isinstance(self._cells, Grid)  # or fit would have refused
                cells[lost] = self._cells.nearest(X[lost])
        return self._table, cells


class PartitionClassifier(CellClassifier, BasePartition):
    """The histogram rule: a fixed partition of the space, and the majority in each cell.

    Parameters
    ----------
    cells : int, array-like or callable, default=10
        How the space is divided. A number: that many cells of the same width for each feature, over
        the range of the training data. A list with an entry for each feature: such a number, or an
        array of ascending inner edges e0, e1, …, that make the cells (−∞, e0], (e0, e1], …,
        (e_last, ∞): as in trees, ``x <= edge`` is left of an edge. A function: it takes an array
        (n_rows, n_features) and returns a label of any hashable kind for each row.
    range : (float, float) or list of pairs, default=None
        The range that numbers of cells divide, for all features or for each one. None: the range of
        the training data. The outermost cells have no end in either case.
    empty : {"global", "nearest"} or class, default="global"
        What a cell without training rows answers. "global": the shares of the classes among all
        rows. "nearest": the nearest cell with rows, by the Euclidean distance counted in cells, the
        first of several; not for a function. Otherwise one of the classes.

    Attributes
    ----------
    edges_ : list of ndarray or None
        The inner edges along each feature; None if `cells` is a function. A constant column has
        none, unless they were given.
    range_ : ndarray of shape (n_features, 2) or None
        The range that was divided.
    n_cells_ : int
        Number of cells with rows. Only those take memory.
    cells_ : ndarray
        Which ones they are: places along each feature, (n_cells, n_features), or labels,
        (n_cells,).
    cell_counts_, cell_weights_ : ndarray of shape (n_cells,)
        Numbers of rows of positive weight, and sums of their weights.
    cell_values_ : ndarray of shape (n_cells, n_classes)
        Shares of the classes. Of equal ones the first class is predicted.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    QuadTreeClassifier : Finer cells where there are more rows.
    DecisionTreeClassifier : Cells that follow the targets.

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
        is_it = [bool(np.all(one == self.empty)) for one in self.classes_.tolist()]
        if sum(is_it) != 1:
            raise ValueError(
                "empty: expected 'global', 'nearest' or one of the classes "
                f"{self.classes_.tolist()}, got {self.empty!r}"
            )
        return np.array(is_it, dtype=np.float64)

    @property
    def cell_values_(self) -> Floats:
        """Shares of the classes in each cell with rows."""
        return self._table[:-1]


class PartitionRegressor(CellRegressor, BasePartition):
    """The regressogram: a fixed partition of the space, and the mean of each cell.

    Parameters
    ----------
    cells : int, array-like or callable, default=10
        How the space is divided. A number: that many cells of the same width for each feature, over
        the range of the training data. A list with an entry for each feature: such a number, or an
        array of ascending inner edges e0, e1, …, that make the cells (−∞, e0], (e0, e1], …,
        (e_last, ∞): as in trees, ``x <= edge`` is left of an edge. A function: it takes an array
        (n_rows, n_features) and returns a label of any hashable kind for each row.
    range : (float, float) or list of pairs, default=None
        The range that numbers of cells divide, for all features or for each one. None: the range of
        the training data. The outermost cells have no end in either case.
    empty : {"global", "nearest", "nan"} or float, default="global"
        What a cell without training rows answers. "global": the mean of all rows. "nearest": the
        nearest cell with rows, by the Euclidean distance counted in cells, the first of several;
        not for a function. "nan": NaN. Otherwise that number.

    Attributes
    ----------
    edges_ : list of ndarray or None
        The inner edges along each feature; None if `cells` is a function. A constant column has
        none, unless they were given.
    range_ : ndarray of shape (n_features, 2) or None
        The range that was divided.
    n_cells_ : int
        Number of cells with rows. Only those take memory.
    cells_ : ndarray
        Which ones they are: places along each feature, (n_cells, n_features), or labels,
        (n_cells,).
    cell_counts_, cell_weights_ : ndarray of shape (n_cells,)
        Numbers of rows of positive weight, and sums of their weights.
    cell_values_ : ndarray of shape (n_cells,)
        Means of the targets.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    QuadTreeRegressor : Finer cells where there are more rows.
    DecisionTreeRegressor : Cells that follow the targets.

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
