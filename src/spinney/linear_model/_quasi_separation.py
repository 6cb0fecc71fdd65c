"""Test for separable classes: completely, or except for rows on the boundary."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from spinney.linear_model.design import Design

__all__ = ["is_separable"]

_MOST_VALUES = 5_000_000  # largest size of the linear program


def is_separable(design: Design, labels: Any, fit_intercept: bool) -> bool | None:
    """Return whether some direction lowers losses of rows, and raises none.

    With a vector W_c for each class c, such a direction has <W_y - W_c, x> >= 0 for every row x of
    class y and every other class c, and not all of these are zero. If there is one, the logistic
    loss without a penalty has no minimum. Two classes need only one vector, W_1 - W_0.

    Parameters
    ----------
    design : Design
        Rows and weights; rows of weight zero are ignored.
    labels : ndarray of int or bool
        Class codes.
    fit_intercept : bool
        Whether the hyperplanes may have an intercept.

    Returns
    -------
    bool or None
        None if the linear program would be too large.
    """
    labels = np.asarray(labels, dtype=np.intp)
    n_classes = int(labels.max(initial=1)) + 1
    n_pairs = 1 if n_classes == 2 else 2 * (n_classes - 1)
    if design.n_rows * design.n_features * n_pairs > _MOST_VALUES:
        return None
    rows = design.X.toarray() if design.is_sparse else np.asarray(design.X, dtype=np.float64)
    if fit_intercept:
        rows = rows - rows.mean(axis=0)
    lengths = np.abs(rows).max(axis=0, initial=0.0)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    if design.weights is not None:
        rows, labels = rows[design.weights > 0], labels[design.weights > 0]
    if len(rows) == 0:
        return False
    if n_classes == 2:
        signed = np.where(labels == 1, 1.0, -1.0)[:, np.newaxis] * rows
        margins = sp.csr_array(np.unique(signed, axis=0))
    else:
        margins = _margins(rows, labels, n_classes)
    found = linprog(
        -margins.sum(axis=0),
        A_ub=-margins,
        b_ub=np.zeros(margins.shape[0]),
        bounds=(-1, 1),
        method="highs",
    )
    return bool(found.status == 0 and -found.fun > 1e-6)


def _margins(rows: Any, labels: Any, n_classes: int) -> Any:
    """Return the matrix that maps the vectors W of all classes to the margins of rows."""
    blocks = []
    for c in range(n_classes):
        class_rows = np.unique(rows[labels == c], axis=0)
        for other in range(n_classes):
            if other != c and len(class_rows):
                pair = np.zeros((1, n_classes))
                pair[0, c], pair[0, other] = 1.0, -1.0
                blocks.append(sp.kron(sp.csr_array(pair), class_rows, format="csr"))
    return sp.vstack(blocks, format="csr")
