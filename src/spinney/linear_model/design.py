"""Rows of a linear model, dense or sparse, with the passes of the core over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils.validation import assert_all_finite

from spinney import _core
from spinney.models.row_products import as_csr, csr_arrays

__all__ = ["Design", "Floats"]

Floats = NDArray[np.float64]

_NO_WEIGHTS = np.empty(0)
_BLOCK = 1 << 20  # number of values in a block of rows
_SAMPLE = 1024  # number of rows whose mean is the centre


class Design:
    """Rows with weights, and the passes over them.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
        The rows: float64 or float32 with any strides, not necessarily finite.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows; None means 1.
    n_threads : int
        Number of threads; it does not change the result.
    """

    def __init__(self, X: Any, weights: Any = None, n_threads: int = 1) -> None:
        self.is_sparse = sp.issparse(X)
        if self.is_sparse:
            X = as_csr(X)
        self.X = X
        self.n_rows, self.n_features = X.shape
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.n_threads = n_threads

    def take_columns(self, columns: Any) -> Design:
        """Return a design of some of the columns."""
        return Design(self.X[:, columns], self.weights, self.n_threads)

    def centre(self) -> Floats:
        """Return the mean of a sample of the rows; zero for sparse rows."""
        if self.is_sparse:
            return np.zeros(self.n_features)
        with np.errstate(over="ignore", invalid="ignore"):
            step = max(1, self.n_rows // _SAMPLE)
            sample = self.X[::step]
            if self.weights is not None:  # rows of weight zero may be far away
                sample = sample[self.weights[::step] > 0]
            centre = sample.mean(axis=0, dtype=np.float64) if len(sample) else np.zeros(1)
        return np.broadcast_to(np.where(np.isfinite(centre), centre, 0.0), self.n_features)

    @property
    def total(self) -> float:
        """Sum of the weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @property
    def least_weight(self) -> float:
        """The smallest positive weight."""
        return 1.0 if self.weights is None else float(self.weights[self.weights > 0].min())

    def average(self, Y: Floats) -> Floats:
        """Return the weighted means of targets."""
        return np.asarray(np.average(Y, axis=0, weights=self.weights))

    def farthest(self, columns: Any, points: Floats) -> Floats:
        """Return the largest absolute difference of each of some columns from a point."""
        values = self.take_columns(columns).X
        values = values.toarray() if self.is_sparse else values
        if self.weights is not None:
            values = values[self.weights > 0]
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(values - points).max(axis=0, initial=0.0))

    def squares(self, centre: Floats) -> Floats:
        """Return sums of squares of the columns about a centre (zero for sparse rows)."""
        weights = np.ones(self.n_rows) if self.weights is None else self.weights
        if self.is_sparse:
            squares = np.repeat(weights, np.diff(self.X.indptr)) * np.square(self.X.data)
            return np.asarray(
                np.bincount(self.X.indices, squares, minlength=self.n_features), dtype=np.float64
            )
        sums = np.zeros(self.n_features)
        step = max(1, _BLOCK // max(1, self.n_features))
        for first in range(0, self.n_rows, step):
            block = slice(first, first + step)
            sums += weights[block] @ np.square(self.X[block] - centre)
        return sums

    def triangle(self, Y: Floats, means: Floats, target_means: Floats, lengths: Floats) -> Floats:
        """Return a triangular matrix with the moments of (X, Y), by QR of blocks.

        The means are subtracted from the columns; those of X are divided by their lengths.
        """
        d, m = self.n_features, Y.shape[1]
        step = max(2 * (d + m), _BLOCK // (d + m))
        triangle = np.empty((0, d + m))
        for first in range(0, self.n_rows, step):
            within = slice(first, first + step)
            block = np.empty((min(step, self.n_rows - first), d + m))
            rows = self.X[within]
            block[:, :d] = rows.toarray() if self.is_sparse else rows
            block[:, :d] -= means
            block[:, :d] /= lengths
            block[:, d:] = Y[within] - target_means
            if self.weights is not None:
                block *= np.sqrt(self.weights[within])[:, np.newaxis]
            triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
        return triangle

    def check_finite(self, estimator: Any) -> None:
        """Raise scikit-learn's error if X has a value that is not finite."""
        values = self.X.data if self.is_sparse else self.X
        with np.errstate(invalid="ignore"):  # scikit-learn sums the values, which may overflow
            assert_all_finite(values, estimator_name=type(estimator).__name__, input_name="X")

    def moments(self, Y: Any, centre: Floats) -> Floats:
        """Return the sum of w u uᵀ over rows, where u = (x, y, 1) and x, y are centred."""
        Y = np.ascontiguousarray(Y, dtype=np.float64)
        weights = _NO_WEIGHTS if self.weights is None else self.weights
        if not self.is_sparse:
            sums = _core.sum_moments(self.X, Y, weights, centre, self.n_threads)
        elif centre[: self.n_features].any():
            return self._sum_dense_blocks(Y, centre)
        else:
            Y = Y - centre[self.n_features :]
            sums = _core.sum_sparse_moments(
                *csr_arrays(self.X), self.n_features, Y, weights, self.n_threads
            )
        width = self.n_features + Y.shape[1] + 1
        return np.asarray(sums).reshape(width, width)

    def _sum_dense_blocks(self, Y: Floats, centre: Floats) -> Floats:
        """Return moments of sparse rows about a centre that is not zero."""
        width = self.n_features + Y.shape[1] + 1
        sums = np.zeros((width, width))
        step = max(256, _BLOCK // max(1, self.n_features))
        for first in range(0, self.n_rows, step):
            within = slice(first, first + step)
            weights = None if self.weights is None else self.weights[within]
            block = Design(self.X[within].toarray(), weights, self.n_threads)
            sums += block.moments(Y[within], centre)
        return sums

    def binary(
        self, targets: Floats, coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Return the logistic loss, its gradient and, if `second`, its second derivatives."""
        weights = _NO_WEIGHTS if self.weights is None else self.weights
        result: Any
        if self.is_sparse:
            result = _core.measure_sparse_binary(
                *csr_arrays(self.X), self.n_features, targets, weights, coefficients, second,
                self.n_threads,
            )  # fmt: skip
        else:
            result = _core.measure_binary(
                self.X, centre, targets, weights, coefficients, second, self.n_threads
            )
        loss, gradient, hessian = result
        return loss, gradient, hessian.reshape(len(gradient), -1) if second else hessian

    def multinomial(
        self, labels: NDArray[np.int32], coefficients: Floats, centre: Floats, second: bool
    ) -> tuple[float, Floats, Floats]:
        """Return the multinomial loss and its derivatives, as `binary` does.

        Coefficients and gradient have shape (n_classes, n_features + 1).
        """
        weights = _NO_WEIGHTS if self.weights is None else self.weights
        coefficients = np.ascontiguousarray(coefficients)
        if self.is_sparse:
            loss, gradient, hessian = _core.measure_sparse_multinomial(
                *csr_arrays(self.X), self.n_features, labels, weights, coefficients, self.n_threads
            )
            if second:
                hessian = self._sparse_curvature(coefficients)
        else:
            loss, gradient, hessian = _core.measure_multinomial(
                self.X, centre, labels, weights, coefficients, second, self.n_threads
            )
        gradient = gradient.reshape(coefficients.shape)
        return loss, gradient, hessian.reshape(gradient.size, -1) if second else hessian

    def _sparse_curvature(self, coefficients: Floats) -> Floats:
        """Return second derivatives of the multinomial loss of sparse rows."""
        X = sp.hstack([self.X, np.ones((self.n_rows, 1))], format="csr", dtype=np.float64)
        probabilities = softmax(np.asarray(X @ coefficients.T), axis=1)
        n_classes, width = coefficients.shape
        out = np.empty((n_classes, width, n_classes, width))
        for a in range(n_classes):
            for b in range(a + 1):
                # 1 - p as the sum of the others keeps its digits if p is nearly 1.
                others = (
                    np.delete(probabilities, a, axis=1).sum(axis=1)
                    if a == b
                    else -probabilities[:, b]
                )
                curvature = probabilities[:, a] * others
                if self.weights is not None:
                    curvature *= self.weights
                out[a, :, b] = (X.T @ (X * curvature[:, np.newaxis])).toarray()
                out[b, :, a] = out[a, :, b].T
        return out
