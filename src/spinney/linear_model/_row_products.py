"""Predictions of linear models that depend on their own row alone, to the bit.

Products of whole matrices (BLAS) add in an order that depends on the number of rows and on their
layout in memory, so that one row alone would differ from the same row among others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from spinney.linear_model.design import Design, Floats
from spinney.runtime.threads import effective_n_jobs

__all__ = ["RowwiseDecision", "RowwisePredictions", "apply_line"]


def apply_line(
    X: Any, coef: Any, intercept: Any, n_jobs: int | None = None, centre: Floats | None = None
) -> Any:
    """Return ``X @ coef.T + intercept``; less a centre first, where X is dense.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        The rows.
    coef : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients.
    intercept : float or ndarray of shape (n_outputs,)
        Intercepts.
    n_jobs : int or None
        Number of threads.
    centre : ndarray of shape (n_features,) or None
        What is subtracted from dense rows.

    Returns
    -------
    ndarray of shape (n_rows,) or (n_rows, n_outputs)
        In single precision if X and the coefficients are.
    """
    dtype = np.result_type(X.dtype, coef.dtype, np.float32)
    if not sp.issparse(X):
        X = np.asarray(X, dtype=np.float32 if X.dtype.type is np.float32 else np.float64)
    design = Design(X, n_threads=effective_n_jobs(n_jobs))
    out = design.multiply(np.atleast_2d(coef), centre) + intercept
    return (out[:, 0] if coef.ndim == 1 else out).astype(dtype, copy=False)


class RowwisePredictions:
    """Stands before a linear regressor of scikit-learn among the bases."""

    coef_: Any
    intercept_: Any

    def _decision_function(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=["csr", "csc", "coo"], reset=False)
        return apply_line(X, self.coef_, self.intercept_, getattr(self, "n_jobs", None))


class RowwiseDecision:
    """Stands before a linear classifier of scikit-learn among the bases."""

    coef_: Any
    intercept_: Any

    def decision_function(self, X: Any) -> Any:
        """Compute the signed distance of each row to the hyperplane, times the normal's length.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            Scores; of two classes that of the second.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", reset=False)
        coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_  # `sparsify`
        scores = apply_line(X, coef, self.intercept_, getattr(self, "n_jobs", None))
        return scores.ravel() if scores.ndim > 1 and scores.shape[1] == 1 else scores
