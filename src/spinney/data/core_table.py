"""Tables and targets in the form of the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.data.table import Schema, Table, read_table

__all__ = ["core_table", "core_targets", "read_for_core"]

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def core_table(table: Table, schema: Schema) -> Any:
    """Return the core's view of the rows, which keeps the arrays alive."""
    if table.matrix is not None:
        return _core.Table.from_matrix(table.matrix)
    if table.columns is not None:
        counts = [-1 if values is None else len(values) for values in schema.categories]
        return _core.Table.from_columns(table.columns, counts)
    sparse = table.sparse
    if sparse.nnz >= 2**31:
        raise ValueError(f"X: expected fewer than 2**31 stored values, got {sparse.nnz}")
    return _core.Table.from_csc(
        sparse.data,
        np.ascontiguousarray(sparse.indices, dtype=np.int32),
        np.ascontiguousarray(sparse.indptr, dtype=np.int32),
        table.n_rows,
    )


def core_targets(y: Any, n_classes: Any, weights: Any) -> Any:
    """Return the core's view of targets, (n_rows, n_outputs), and weights."""
    integral = (
        weights is not None
        and bool(np.all(weights == np.floor(weights)))
        and float(weights.sum()) < 2**30  # so that products of two such sums are exact
    )
    return _core.Targets(np.ascontiguousarray(y.T), [int(k) for k in n_classes], weights, integral)


def read_for_core(estimator: Any, X: Any, schema: Schema) -> Any:
    """Read rows for a fitted ensemble, and check them against its schema."""
    check_is_fitted(estimator)
    if (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in _FLOATS
        and X.shape[1] == estimator.n_features_in_
        and X.shape[0] > 0
        and not schema.has_categories
        and schema.names is None
    ):
        # Only infinite values can be wrong here, and the core checks for them.
        return _core.Table.from_matrix(X, known_finite=False)
    return core_table(read_table(estimator, X, schema), schema)
