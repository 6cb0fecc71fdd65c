"""Products of rows and coefficients, each independent of the other rows.

Products of whole matrices (BLAS) add in an order that depends on the number of rows and on their
layout in memory. The same row would then have different products in different tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from spinney import _core

__all__ = ["as_csr", "csr_arrays", "multiply_rows"]

Floats = NDArray[np.float64]

_NO_CENTER = np.empty(0)


def as_csr(X: Any) -> Any:
    """Return a sparse matrix as a float64 CSR array with sorted, unique indices."""
    X = sp.csr_array(X, dtype=np.float64)
    X.check_format(full_check=True)  # the core does not check indices of columns
    if not X.has_canonical_format:
        X = X.copy()  # it may share memory with the caller's matrix
        X.sum_duplicates()
    return X


def csr_arrays(X: Any) -> tuple[Any, Any, Any]:
    """Return values, column indices and row starts of a CSR array for the core."""
    index = X.indices.dtype if X.indices.dtype == np.int64 else np.int32
    return (
        np.ascontiguousarray(X.data, dtype=np.float64),
        np.ascontiguousarray(X.indices, dtype=index),
        np.ascontiguousarray(X.indptr, dtype=index),
    )


def multiply_rows(
    X: Any, coef: Floats, *, center: Floats | None = None, n_threads: int = 1
) -> Floats:
    """Return ``(X - center) @ coef.T``.

    A product depends only on the values of its row: neither on the other rows, the layout in memory
    nor the number of threads. It is the same for a dense and a sparse row.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features)
        The rows. Dense rows are float64 or float32 with any strides; they are not copied. Sparse
        rows come from `as_csr`.
    coef : ndarray of shape (n_outputs, n_features)
        Coefficients.
    center : ndarray of shape (n_features,) or None
        Subtracted from dense rows; must be None for sparse rows.
    n_threads : int
        Number of threads.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs)
        The products.
    """
    coef = np.ascontiguousarray(coef, dtype=np.float64)
    out = np.empty((X.shape[0], len(coef)))
    if sp.issparse(X):
        assert center is None
        _core.multiply_sparse_rows(*csr_arrays(X), coef, n_threads, out)
        return out
    center = _NO_CENTER if center is None else np.ascontiguousarray(center, dtype=np.float64)
    _core.multiply_rows(X, coef, center, n_threads, out)
    return out
