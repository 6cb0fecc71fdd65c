"""Gower's distance: neighbours in tables with categories and missing values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.neighbors._index import BlockIndex

__all__ = ["GowerIndex", "MixedRows"]

_UNSEEN = -2  # a category without training rows; unlike a missing value it differs from all others

Array = NDArray[Any]


@dataclass(frozen=True)
class MixedRows:
    """Mixed rows in the layout of the core, which is column by column.

    Parameters
    ----------
    numbers : ndarray of shape (n_numbers, n_rows), float64
        The numeric columns; missing values are NaN.
    codes : ndarray of shape (n_codes, n_rows), int32
        The categorical columns; -1 for missing values, -2 for categories unknown in `fit`.
    """

    numbers: NDArray[np.float64]
    codes: NDArray[np.int32]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and the number of columns."""
        return self.numbers.shape[1], len(self.numbers) + len(self.codes)

    def __getitem__(self, rows: slice) -> MixedRows:
        numbers, codes = self.numbers[:, rows], self.codes[:, rows]
        return MixedRows(np.ascontiguousarray(numbers), np.ascontiguousarray(codes))

    def core(self) -> _core.MixedRows:
        """Return the core's rows, without a copy."""
        return _core.MixedRows(self.numbers, self.codes)


class GowerIndex(BlockIndex):
    """Brute force with Gower's distance.

    Parameters
    ----------
    estimator : estimator instance
        Receives ``n_features_in_`` and ``feature_names_in_``.
    X : array or frame of shape (n_rows, n_features)
        The training rows.
    weights : array-like of shape (n_features,) or None, default=None
        Weights of the columns; None means equal weights.
    scale : {'range', 'std'}, default='range'
        Divisor of the differences of numeric columns: the range of the column, as in Gower's
        paper, or its standard deviation, which depends less on a single outlier.
    categorical_features : 'from_dtype', None or array-like, default='from_dtype'
        The categorical columns, as in `spinney.data.table.fit_table`.
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
        column_weights = _check_column_weights(weights, table.n_features)
        columns = [_table_column(table, j) for j in range(table.n_features)]
        # A constant numeric column has no range. It becomes a category: equal or not equal.
        self.exponents = np.zeros(table.n_features, dtype=np.int64)
        self.constants: dict[int, float] = {}
        numbers, scales = [], []
        for j in np.flatnonzero(~schema.is_categorical).tolist():
            known = columns[j][~np.isnan(columns[j])]
            if len(known) == 0 or known.min() == known.max():
                self.constants[j] = float(known[0]) if len(known) > 0 else np.nan
                continue
            # Scaling by a power of two is exact, and keeps differences of huge values finite.
            _, self.exponents[j] = np.frexp(np.abs(known).max())
            known = np.ldexp(known.astype(np.float64), -self.exponents[j])
            numbers.append(j)
            unit = known.max() - known.min() if scale == "range" else known.std()
            scales.append(column_weights[j] / unit)
        self.numbers = np.array(numbers, dtype=np.intp)
        self.codes = np.setdiff1d(np.arange(table.n_features), self.numbers)
        self.rows = self._to_rows(table)
        self._columns: tuple[Any, ...] = (
            np.array(scales, dtype=np.float64),
            column_weights[self.numbers],
            np.isnan(self.rows.numbers).any(axis=1),
            column_weights[self.codes],
            (self.rows.codes < 0).any(axis=1),
        )

    def read(self, estimator: Any, X: Any) -> MixedRows:
        """Convert queries to the layout of the core."""
        return self._to_rows(
            read_table(estimator, X, self.schema, accept_sparse=False, unseen=_UNSEEN)
        )

    def _to_rows(self, table: Table) -> MixedRows:
        numbers = np.empty((len(self.numbers), table.n_rows))
        codes = np.empty((len(self.codes), table.n_rows), dtype=np.int32)
        for number, j in zip(numbers, self.numbers.tolist(), strict=True):
            number[:] = np.ldexp(_table_column(table, j).astype(np.float64), -self.exponents[j])
        for code, j in zip(codes, self.codes.tolist(), strict=True):
            column = _table_column(table, j)
            if j in self.constants:
                is_same = column == self.constants[j]
                code[:] = np.where(np.isnan(column), -1, np.where(is_same, 0, _UNSEEN))
            else:
                code[:] = column
        return MixedRows(numbers, codes)

    def coded_table(self) -> Table:
        """Return a table of the training rows with only the categorical columns."""
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


def _table_column(table: Table, j: int) -> Array:
    if table.columns is not None:
        return table.columns[j]
    assert table.matrix is not None
    return np.asarray(table.matrix[:, j])


def _check_column_weights(weights: Any, n_features: int) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n_features)
    out = np.asarray(weights, dtype=np.float64)
    if out.shape != (n_features,):
        raise ValueError(
            f"metric_params: expected weights of shape ({n_features},), one for each column, got "
            f"shape {out.shape}"
        )
    if not (np.isfinite(out).all() and (out >= 0).all() and out.any()):
        raise ValueError(
            "metric_params: expected finite weights >= 0 with at least one positive weight, got "
            f"{weights}"
        )
    return out
