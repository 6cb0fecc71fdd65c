"""Whether a direction parts two classes but for rows on the border itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from spinney.linear_model.design import Design

__all__ = ["has_parting_direction"]

_MOST_NUMBERS = 5_000_000  # of the program


def has_parting_direction(design: Design, is_second: Any, fit_intercept: bool) -> bool | None:
    """Look for w with <w, x> >= 0 for the second class, <= 0 for the first, and not all zero.

    If there is one, the logistic loss falls for ever along it: without a penalty it has no minimum.

    Parameters
    ----------
    design : Design
        Rows and weights; rows without weight do not count.
    is_second : ndarray of bool
        Which rows are of the second class.
    fit_intercept : bool
        Whether planes need not go through zero.

    Returns
    -------
    bool or None
        None where there are too many numbers to find out.
    """
    if design.n_rows * design.n_features > _MOST_NUMBERS:
        return None
    rows = design.X.toarray() if design.is_sparse else np.asarray(design.X, dtype=np.float64)
    if fit_intercept:
        rows = rows - rows.mean(axis=0)
    lengths = np.abs(rows).max(axis=0, initial=0.0)
    rows = rows / np.where(lengths > 0, lengths, 1.0)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    signed = np.where(is_second, 1.0, -1.0)[:, np.newaxis] * rows
    if design.weights is not None:
        signed = signed[design.weights > 0]
    if len(signed) == 0:
        return False
    signed = np.unique(signed, axis=0)
    told = linprog(
        -signed.sum(axis=0),
        A_ub=sp.csr_array(-signed),
        b_ub=np.zeros(len(signed)),
        bounds=(-1, 1),
        method="highs",
    )
    return bool(told.status == 0 and -told.fun > 1e-6)
