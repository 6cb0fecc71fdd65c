"""Sparse matrices: the outputs of the dense matrix, or a clear error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from support.contract import (
    assert_close,
    assert_same,
    entries_with,
    entries_without,
    fit,
    make_queries,
    make_table,
    make_target,
    outputs,
)
from support.registry import Entry


def with_zeros(X: Any) -> Any:
    """Return a copy in which about half of the cells are zero."""
    return np.where(np.abs(X) < 0.7, 0.0, X)


@entries_with("sparse")
def test_sparse_equals_dense(entry: Entry) -> None:
    X, _ = make_table(entry)
    X, queries = with_zeros(X), with_zeros(make_queries())
    y = make_target(entry, X)
    compare = assert_same if entry.has("sparse_bits") else assert_close
    expected = outputs(fit(entry.create(), X, y), queries)
    for form in (sp.csr_matrix, sp.csc_array, sp.coo_array):
        sparse = fit(entry.create(), form(X), y)
        compare(outputs(sparse, form(queries)), expected)
        compare(outputs(sparse, queries), expected)


@entries_with("sparse")
def test_sparse_input_is_not_changed(entry: Entry) -> None:
    X, _ = make_table(entry)
    sparse = sp.csr_array(with_zeros(X))
    kept = sparse.copy()
    for part in (sparse.data, sparse.indices, sparse.indptr):
        part.flags.writeable = False
    outputs(fit(entry.create(), sparse, make_target(entry, X)), sparse)
    np.testing.assert_array_equal(sparse.toarray(), kept.toarray())


@entries_without("sparse")
def test_sparse_rows_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(TypeError, match=r"(?i)sparse"):
        fit(entry.create(), sp.csr_array(X), y)
