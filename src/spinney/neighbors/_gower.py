"""Gower's distance: neighbours in tables of numbers and categories, some of them missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.neighbors._index import BlockIndex

__all__ = ["GowerIndex", "MixedRows"]

_UNSEEN = -2  # a category that no row of fit has: unlike a missing one it differs from all

Array = NDArray[Any]


@dataclass(frozen=True)
class MixedRows:
    """Rows as the core takes them: a line for each column.

    Parameters
    ----------
    numbers : ndarray of shape (n_numbers, n_rows), float64
        NaN where missing.
    codes : ndarray of shape (n_codes, n_rows), int32
        -1 where missing, -2 where fit did not see the category.
    """

    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows, number of columns."""
        return self.numbers.shape[1], len(self.numbers) + len(self.codes)

    def __getitem__(self, part: slice) -> MixedRows:
        cut = np.ascontiguousarray
        return MixedRows(cut(self.numbers[:, part]), cut(self.codes[:, part]))

    def core(self) -> _core.MixedRows:
        """Rows for the core, without a copy."""
        return _core.MixedRows(self.numbers, self.codes)


class GowerIndex(BlockIndex):
    """Rows under Gower's distance.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_``.
    X : array or frame of shape (n_rows, n_features)
        The rows of fit.
    weights : array-like of shape (n_features,) or None
        How much each column counts; None is one for each.
    scale : {'range', 'std'}
        What a difference of numbers is divided by: the range of the column, as Gower does, or its
        standard deviation, which a single far value does not change as much.
    categorical_features : 'from_dtype', None or array-like
        Which columns are categories, as `spinney.data.table.fit_table` takes it.
    """

    def __init__(
        self,
        estimator: Any,
        X: Any,
        *,
        weights: Any = None,
        scale: str = "range",
        categorical_features: Any = "from_dtype",
    ) -> None:
        if scale not in ("range", "std"):
            raise ValueError(f"metric_params: expected scale 'range' or 'std', got {scale!r}")
        table, schema = fit_table(
            estimator, X, accept_sparse=False, categorical_features=categorical_features
        )
        self.schema: Schema = schema
        self.n_rows = table.n_rows
        given = _check_weights(weights, table.n_features)
        columns = [_column(table, j) for j in range(table.n_features)]
        # A column of one number only has no range: it is a category, the number or another.
        self.exponents = np.zeros(table.n_features, dtype=np.int64)
        self.constants: dict[int, float] = {}
        numbers, scales = [], []
        for j in np.flatnonzero(~schema.is_categorical).tolist():
            there = columns[j][~np.isnan(columns[j])]
            if len(there) == 0 or there.min() == there.max():
                self.constants[j] = float(there[0]) if len(there) > 0 else np.nan
                continue
            # Powers of two change no digit, and no difference of huge numbers is infinite then.
            _, self.exponents[j] = np.frexp(np.abs(there).max())
            there = np.ldexp(there.astype(np.float64), -self.exponents[j])
            numbers.append(j)
            unit = there.max() - there.min() if scale == "range" else there.std()
            scales.append(given[j] / unit)
        self.numbers = np.array(numbers, dtype=np.intp)
        self.codes = np.setdiff1d(np.arange(table.n_features), self.numbers)
        self.rows = self._arrange(table)
        self._columns: tuple[Any, ...] = (
            np.array(scales, dtype=np.float64),
            given[self.numbers],
            np.isnan(self.rows.numbers).any(axis=1),
            given[self.codes],
            (self.rows.codes < 0).any(axis=1),
        )

    def read(self, estimator: Any, X: Any) -> MixedRows:
        """Read queries."""
        return self._arrange(
            read_table(estimator, X, self.schema, accept_sparse=False, unseen=_UNSEEN)
        )

    def _arrange(self, table: Table) -> MixedRows:
        numbers = np.empty((len(self.numbers), table.n_rows))
        codes = np.empty((len(self.codes), table.n_rows), dtype=np.int32)
        for line, j in zip(numbers, self.numbers.tolist(), strict=True):
            line[:] = np.ldexp(_column(table, j).astype(np.float64), -self.exponents[j])
        for row, j in zip(codes, self.codes.tolist(), strict=True):
            column = _column(table, j)
            if j in self.constants:
                is_same = column == self.constants[j]
                row[:] = np.where(np.isnan(column), -1, np.where(is_same, 0, _UNSEEN))
            else:
                row[:] = column
        return MixedRows(numbers, codes)

    def coded_table(self) -> Table:
        """Return the rows of fit with their columns of categories alone."""
        columns: list[Any] = [np.empty(0)] * self.schema.n_features
        for j, codes in zip(self.codes.tolist(), self.rows.codes, strict=True):
            columns[j] = codes
        return Table(self.n_rows, len(columns), columns=columns)

    def measure(self, X: MixedRows, n_threads: int) -> NDArray[np.float64]:
        out = np.empty((X.shape[0], self.n_rows))
        columns = _core.MixedColumns(*self._columns)
        _core.gower_distances(columns, X.core(), self.rows.core(), n_threads, out)
        return out

    def query(
        self, X: MixedRows, k: int, n_threads: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        distances = np.empty((X.shape[0], k))
        rows = np.empty((X.shape[0], k), dtype=np.int64)
        columns = _core.MixedColumns(*self._columns)
        _core.nearest_gower(columns, X.core(), self.rows.core(), n_threads, distances, rows)
        return distances, rows


def _column(table: Table, j: int) -> Array:
    if table.columns is not None:
        return table.columns[j]
    assert table.matrix is not None
    return np.asarray(table.matrix[:, j])


def _check_weights(weights: Any, n_features: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n_features)
    out = np.asarray(weights, dtype=np.float64)
    if out.shape != (n_features,):
        raise ValueError(
            f"metric_params: expected {n_features} weights, one for each column, got shape "
            f"{out.shape}"
        )
    if not (np.isfinite(out).all() and (out >= 0).all() and out.any()):
        raise ValueError("metric_params: expected weights of at least 0, not all of them 0")
    return out
