"""Triplet comparisons for vectors, distance matrices, strings and oracles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.data.distances import measure_pairs
from spinney.data.sklearn_versions import validate_data
from spinney.data.strings import encode_strings, read_strings
from spinney.tree.triplet.tree import Closer, Indices

__all__ = ["METRICS", "ComparableRows", "read_comparable_rows"]

_KERNELS = {"euclidean", "manhattan", "chebyshev", "cosine"}
_SAME_ORDER = {"cityblock": "manhattan", "sqeuclidean": "euclidean"}  # same results of comparisons
_OTHERS = {
    "braycurtis",
    "canberra",
    "correlation",
    "dice",
    "hamming",
    "jaccard",
    "jensenshannon",
    "mahalanobis",
    "minkowski",
    "rogerstanimoto",
    "russellrao",
    "seuclidean",
    "sokalsneath",
    "yule",
}
_STRINGS = {"edit", "hamming"}

# Allowed names of the parameter `metric`.
METRICS = {"auto", "precomputed", "oracle", *_KERNELS, *_SAME_ORDER, *_OTHERS, *_STRINGS}

Metric = Callable[[Any, Any], float]


class ComparableRows(ABC):
    """Rows that can be compared with pivots of the same kind."""

    n_rows: int

    @abstractmethod
    def closer(self, pivots: Any, n_threads: int) -> Closer:
        """Return the comparison function; x are indices of these rows, a and b of pivots."""

    @abstractmethod
    def take(self, rows: Indices) -> Any:
        """Return some of the rows, for use as pivots."""

    @abstractmethod
    def read(self, estimator: Any, X: Any) -> Any:
        """Validate and convert rows of the same kind for prediction."""

    def name(self, index: int, row: int) -> str:
        """Return the name of row `index`, which had index `row` in training."""
        return f"row {row}"

    def order(self) -> Indices:
        """Return an order of the rows that is independent of the input, if possible."""
        return np.arange(self.n_rows)


def read_comparable_rows(estimator: Any, X: Any) -> ComparableRows:
    """Validate and convert training rows; `metric` and `oracle` determine the kind."""
    metric, oracle = estimator.metric, estimator.oracle
    if metric == "auto" and oracle is not None:
        metric = "oracle"
    if metric == "oracle":
        if oracle is None:
            raise ValueError("oracle: expected a callable with metric='oracle', got None")
        return ObjectRows(_as_objects(X), oracle)
    if oracle is not None:
        raise ValueError(f"oracle: expected None with metric={metric!r}, got {oracle!r}")
    if metric == "precomputed":
        matrix = validate_data(estimator, X, dtype=np.float64)
        if matrix.shape[0] != matrix.shape[1]:
            raise ValueError(
                "X: expected a square matrix of distances with metric='precomputed', got shape "
                f"{matrix.shape}"
            )
        return MatrixRows(matrix)
    strings = read_strings(X, required=metric == "edit")
    if strings is not None:
        if metric == "auto":
            metric = "edit"
        if not callable(metric) and metric not in _STRINGS:
            raise ValueError(
                "metric: expected 'edit', 'hamming' or a callable, as X has strings, got "
                f"{metric!r}"
            )
        return StringRows(strings, metric)
    values = validate_data(estimator, X, dtype=np.float64, order="C")
    if metric == "auto":
        metric = "euclidean"
    return VectorRows(values, metric if callable(metric) else _SAME_ORDER.get(metric, metric))


# ------------------------------------------------------------------------------------ vectors


class VectorRows(ComparableRows):
    """Numeric rows; the metric is a core kernel, another name in `_OTHERS`, or a callable."""

    def __init__(
        self, values: NDArray[np.float64], metric: str | Metric, options: Any = None
    ) -> None:
        self.metric = metric
        self.n_rows = len(values)
        # Options of the metric come from the training rows and are reused for prediction.
        self.options = _metric_options(values, metric) if options is None else options
        self.values = _unit(values) if metric == "cosine" else values

    def order(self) -> Indices:
        first = self.values[:, 0]
        order = np.argsort(first, kind="stable")
        if (np.diff(first[order]) > 0).all():
            return order
        return np.lexsort(self.values.T[::-1])

    def take(self, rows: Indices) -> VectorRows:
        return _copy(self, values=self.values[rows], n_rows=len(rows))

    def read(self, estimator: Any, X: Any) -> VectorRows:
        values = validate_data(estimator, X, dtype=np.float64, order="C", reset=False)
        return VectorRows(values, self.metric, self.options)

    def closer(self, pivots: VectorRows, n_threads: int) -> Closer:
        if callable(self.metric):
            return _closer_by_callable(self.values, pivots.values, self.metric)
        if self.metric not in _KERNELS:
            return self._closer_by_distances(pivots)
        metric = self.metric

        def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
            out = np.empty(len(x), dtype=np.bool_)
            _core.closer_vectors(metric, self.values, pivots.values, x, a, b, n_threads, out)
            return out

        return closer

    def _closer_by_distances(self, pivots: VectorRows) -> Closer:
        name = str(self.metric)

        def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
            # One call of cdist for all rows with the same pivots.
            order = np.lexsort((b, a))
            changes = (np.diff(a[order]) != 0) | (np.diff(b[order]) != 0)
            cuts = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(x)]])
            out = np.empty(len(x), dtype=np.bool_)
            for first, last in pairwise(cuts):
                group = order[first:last]
                pair = pivots.values[[a[group[0]], b[group[0]]]]
                distances = measure_pairs(self.values[x[group]], pair, name, self.options)
                out[group] = distances[:, 0] < distances[:, 1]
            return out

        return closer


def _metric_options(values: NDArray[np.float64], metric: str | Metric) -> dict[str, Any]:
    """Return options that cdist would otherwise compute from the data of each call."""
    if metric == "seuclidean":
        variance = values.var(axis=0, ddof=min(1, len(values) - 1))
        return {"V": np.where(variance > 0, variance, 1.0)}
    if metric == "mahalanobis" and len(values) > 1:
        return {"VI": np.linalg.pinv(np.atleast_2d(np.cov(values, rowvar=False)))}
    if metric == "mahalanobis":
        return {"VI": np.eye(values.shape[1])}
    return {}


def _unit(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale rows to unit length without overflow or underflow; zero rows stay zero."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    scaled = values / np.where(largest > 0, largest, 1.0)
    length = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    return scaled / np.where(length > 0, length, 1.0)


def _closer_by_callable(rows: Any, pivots: Any, metric: Metric) -> Closer:
    def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
        triplets = zip(x.tolist(), a.tolist(), b.tolist(), strict=True)
        results = (metric(rows[i], pivots[j]) < metric(rows[i], pivots[k]) for i, j, k in triplets)
        return np.fromiter(results, dtype=np.bool_, count=len(x))

    return closer


# ------------------------------------------------------------------------------------ matrices


class MatrixRows(ComparableRows):
    """Precomputed distances; row i of the matrix has those to all training rows."""

    def __init__(self, matrix: Any) -> None:
        self.matrix = matrix
        self.columns: Any = None
        self.n_rows = len(matrix)

    def take(self, rows: Indices) -> MatrixRows:
        return _copy(self, matrix=None, columns=rows, n_rows=len(rows))

    def read(self, estimator: Any, X: Any) -> MatrixRows:
        return MatrixRows(validate_data(estimator, X, dtype=np.float64, reset=False))

    def closer(self, pivots: MatrixRows, n_threads: int) -> Closer:
        matrix, columns = self.matrix, pivots.columns

        def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
            if columns is not None:
                a, b = columns[a], columns[b]
            return np.asarray(matrix[x, a] < matrix[x, b])

        return closer


# ------------------------------------------------------------------------------------- strings


class StringRows(ComparableRows):
    """Strings; the metric is "edit", "hamming" or a callable."""

    def __init__(self, strings: list[str], metric: str | Metric) -> None:
        self.strings = strings
        self.metric = metric
        self.n_rows = len(strings)

    def name(self, index: int, row: int) -> str:
        return repr(self.strings[index])

    def order(self) -> Indices:
        return np.array(sorted(range(self.n_rows), key=self.strings.__getitem__), dtype=np.intp)

    def take(self, rows: Indices) -> StringRows:
        return StringRows([self.strings[i] for i in rows.tolist()], self.metric)

    def read(self, estimator: Any, X: Any) -> StringRows:
        strings = read_strings(X, required=True)
        assert strings is not None
        return StringRows(strings, self.metric)

    def encoded(self) -> Any:
        """Return the strings in the core's format."""
        return _core.Strings(*encode_strings(self.strings))

    def closer(self, pivots: StringRows, n_threads: int) -> Closer:
        if callable(self.metric):
            return _closer_by_callable(self.strings, pivots.strings, self.metric)
        metric = self.metric
        rows, others = self.encoded(), pivots.encoded()

        def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
            out = np.empty(len(x), dtype=np.bool_)
            _core.closer_strings(metric, rows, others, x, a, b, n_threads, out)
            return out

        return closer


# ------------------------------------------------------------------------------------- oracles


class ObjectRows(ComparableRows):
    """Objects of any kind, which only the oracle can compare."""

    def __init__(self, objects: NDArray[Any], oracle: Callable[..., Any]) -> None:
        self.objects = objects
        self.oracle = oracle
        self.n_rows = len(objects)

    def take(self, rows: Indices) -> ObjectRows:
        return ObjectRows(self.objects[rows], self.oracle)

    def read(self, estimator: Any, X: Any) -> ObjectRows:
        return ObjectRows(_as_objects(X), self.oracle)

    def closer(self, pivots: ObjectRows, n_threads: int) -> Closer:
        def closer(x: Indices, a: Indices, b: Indices) -> NDArray[np.bool_]:
            results = np.asarray(self.oracle(self.objects[x], pivots.objects[a], pivots.objects[b]))
            if results.shape != x.shape or results.dtype.kind not in "biu":
                raise ValueError(
                    f"oracle: expected an array of {len(x)} booleans or integers, got shape "
                    f"{results.shape} and dtype {results.dtype}"
                )
            return results.astype(np.bool_)

        return closer


def _as_objects(X: Any) -> NDArray[Any]:
    """Return X as an array whose items (or rows) are the objects."""
    if hasattr(X, "to_numpy"):
        X = X.to_numpy()
    if not isinstance(X, np.ndarray):
        items = list(X)
        X = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):
            X[i] = item
    if X.ndim == 0 or len(X) == 0:
        raise ValueError("X: expected at least one object, got none")
    return X


def _copy(rows: Any, **changes: Any) -> Any:
    other = object.__new__(type(rows))
    vars(other).update(vars(rows))
    vars(other).update(changes)
    return other
