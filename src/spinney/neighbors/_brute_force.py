"""Brute force: exact nearest neighbours from the distances to all rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_array
from threadpoolctl import threadpool_limits

from spinney import _core
from spinney.data.distances import measure_pairs
from spinney.neighbors._tree_index import as_objects, check_points
from spinney.runtime.threads import effective_n_jobs

__all__ = ["BruteForce"]

_CANONICAL_NAMES = {
    "l2": "euclidean",
    "manhattan": "cityblock",
    "l1": "cityblock",
    "infinity": "chebyshev",
    "p": "minkowski",
}
_ROUNDING = 2.0**-24  # relative rounding error of single precision
# Queries and rows of a block of products: large enough for BLAS, small enough for the cache.
_QUERY_BLOCK = 2048
_ROW_BLOCK = 2048
_CENTRE_SAMPLE = 4096  # rows whose mean is the centre
_BLOCK_SIZE = 1 << 22  # distances that are in memory at a time


class BruteForce:
    """Search exact nearest neighbours among all rows, with fast matrix products.

    For Euclidean distance, single-precision products of the centred rows first select candidates:
    all rows that may be among the nearest, given a bound of the rounding error. The distances of
    the candidates are then computed in double precision, from differences of coordinates. So the
    result is exact even if points are close together and far from the origin.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows; finite numbers.
    leaf_size : int, default=32
        No effect; for compatibility with the trees.
    metric : str or callable, default="minkowski"
        A metric of SciPy's ``cdist`` or of the trees, or a function of two rows.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.
    **metric_params
        Parameters of the metric, such as ``p`` or ``VI``.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features)
        The rows.

    Notes
    -----
    Rows with equal distances are sorted by their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.neighbors import BruteForce
    >>> X = np.random.default_rng(0).random((1000, 30)) + 1e8
    >>> distances, rows = BruteForce(X).query(X[:2], k=3)
    >>> rows[:, 0].tolist()
    [0, 1]
    """

    def __init__(
        self,
        X: Any,
        leaf_size: int = 32,
        metric: Any = "minkowski",
        *,
        n_jobs: int | None = None,
        **metric_params: Any,
    ) -> None:
        # Rows in single precision take half the memory, and their distances are exact, too.
        self.data = check_array(X, dtype=(np.float64, np.float32), order="C", input_name="X")
        self.leaf_size, self.n_jobs = leaf_size, n_jobs
        self.metric: Any = (
            _CANONICAL_NAMES.get(metric, metric) if isinstance(metric, str) else metric
        )
        self.metric_params = dict(metric_params)
        if self.metric == "minkowski":
            p = float(self.metric_params.get("p", 2.0))
            if "w" not in self.metric_params and p in (1.0, 2.0, np.inf):
                names = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}
                self.metric = names[p]
                self.metric_params.pop("p", None)
        if self.metric == "euclidean":
            self._prepare()

    def _prepare(self) -> None:
        """Center the rows, and compute half of their squared lengths."""
        n_rows, n_features = self.data.shape
        # Any point near the middle suffices, so large tables use the mean of a sample.
        step = max(1, n_rows // _CENTRE_SAMPLE)
        self._centre = self.data[::step].mean(axis=0, dtype=np.float64)
        self._centred = np.empty((n_rows, n_features), dtype=np.float32)
        self._half_norms = np.empty(n_rows, dtype=np.float32)
        largest = _core.centre_rows(
            self.data,
            self._centre,
            effective_n_jobs(self.n_jobs),
            self._centred,
            self._half_norms,
        )
        self._longest = float(np.sqrt(2 * largest))
        # Products need lengths that single precision can represent.
        self._fits = 1e-15 < self._longest < 1e15

    def __len__(self) -> int:
        return len(self.data)

    def query(
        self,
        X: Any,
        k: int = 1,
        return_distance: bool = True,
        sort_results: bool = True,
        *,
        n_jobs: int | None = None,
    ) -> Any:
        """Find the nearest rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The queries.
        k : int, default=1
            Number of neighbours.
        return_distance : bool, default=True
            Whether to return distances as well.
        sort_results : bool, default=True
            No effect; for compatibility with scikit-learn. Results are always sorted.
        n_jobs : int or None, default=None
            Number of threads; None means the `n_jobs` of the index. The result does not depend on
            it.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Distances, ascending; only if `return_distance`.
        rows : ndarray of shape (n_queries, k)
            Row numbers; if distances are equal, the smallest number is first.
        """
        queries = check_points(X, "X", self.data.shape[1])
        if not 1 <= k <= len(self.data):
            raise ValueError(
                "k must be less than or equal to the number of training points: expected 1 to "
                f"{len(self.data)}, got {k}"
            )
        n_threads = effective_n_jobs(self.n_jobs if n_jobs is None else n_jobs)
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        if self.metric == "euclidean" and self._fits:
            with threadpool_limits(limits=n_threads, user_api="blas"):
                for start in range(0, len(queries), _QUERY_BLOCK):
                    block = slice(start, start + _QUERY_BLOCK)
                    distances[block], rows[block] = self._by_products(queries[block], k, n_threads)
        else:
            step = max(1, _BLOCK_SIZE // len(self.data))
            for start in range(0, len(queries), step):
                block = slice(start, start + step)
                distances[block], rows[block] = _nearest(self._distances(queries[block]), k)
        return (distances, rows) if return_distance else rows

    def _by_products(self, queries: Any, k: int, n_threads: int) -> tuple[Any, Any]:
        """Find neighbours in Euclidean distance; matrix products select the candidates."""
        n_rows, d = self.data.shape
        centred = queries - self._centre
        lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        # Bound of the rounding errors of both factors, of the sum of d products and of half the
        # squared length.
        error = _ROUNDING * self._longest * ((d + 4) * lengths + self._longest)
        error = np.where(lengths < 1e15, error, np.inf).astype(np.float32)
        selection = _core.BruteSelection(k, error)
        with np.errstate(over="ignore"):
            rounded = centred.astype(np.float32)
        buffer = np.empty((len(queries), min(_ROW_BLOCK, n_rows)), dtype=np.float32)
        for first in range(0, n_rows, _ROW_BLOCK):
            block = slice(first, first + _ROW_BLOCK)
            rows_of_block = self._centred[block]
            is_full = len(rows_of_block) == buffer.shape[1]
            products = np.matmul(rounded, rows_of_block.T, out=buffer if is_full else None)
            selection.add_block(products, self._half_norms[block], first, n_threads)
        distances, rows = selection.finish(self.data, queries, k, n_threads)
        return distances.reshape(-1, k), rows.reshape(-1, k)

    def _distances(self, queries: Any) -> Any:
        if isinstance(self.metric, str):
            return measure_pairs(queries, self.data, self.metric, self.metric_params)
        return cdist(queries, self.data, self.metric, **self.metric_params)

    def query_radius(
        self,
        X: Any,
        r: Any,
        return_distance: bool = False,
        count_only: bool = False,
        sort_results: bool = False,
        *,
        n_jobs: int | None = None,
    ) -> Any:
        """Find all rows within a radius, the boundary included.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The queries.
        r : float or array-like of shape (n_queries,)
            The radius, or one radius for each query.
        return_distance : bool, default=False
            Whether to return distances as well.
        count_only : bool, default=False
            Whether to return only the counts of the rows.
        sort_results : bool, default=False
            Whether rows are sorted by distance; otherwise they are sorted by number.
        n_jobs : int or None, default=None
            No effect: this search uses one thread.

        Returns
        -------
        rows : ndarray of object of shape (n_queries,), or of int if `count_only`
            Row numbers for each query, or their counts.
        distances : ndarray of object of shape (n_queries,)
            Their distances; only if `return_distance`.
        """
        queries = check_points(X, "X", self.data.shape[1])
        radii = np.broadcast_to(np.asarray(r, dtype=np.float64), len(queries))
        found, found_distances, counts = [], [], []
        step = max(1, _BLOCK_SIZE // len(self.data))
        for start in range(0, len(queries), step):
            block = self._distances(queries[start : start + step])
            for distances, radius in zip(block, radii[start : start + step], strict=True):
                rows = np.flatnonzero(distances <= radius)
                counts.append(len(rows))
                if sort_results:
                    rows = rows[np.argsort(distances[rows], kind="stable")]
                found.append(rows)
                found_distances.append(distances[rows])
        if count_only:
            return np.array(counts, dtype=np.int64)
        if return_distance:
            return as_objects(found), as_objects(found_distances)
        return as_objects(found)


def _nearest(distances: Any, k: int) -> tuple[Any, Any]:
    """Return the k smallest values of each row, sorted, and their columns.

    If values are equal, the first column is selected.
    """
    n = distances.shape[1]
    if k < n:
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
        # Ties with the k-th value keep their order in the stable sort.
        distances = np.where(distances <= kth, distances, np.inf)
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows
