"""The nearest rows by looking at all of them."""

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

_NAMES = {
    "l2": "euclidean",
    "manhattan": "cityblock",
    "l1": "cityblock",
    "infinity": "chebyshev",
    "p": "minkowski",
}
_ROUNDING = 2.0**-24  # of single precision
_QUERIES = 2048  # at once, with _ROWS rows: large enough for BLAS, and for the cache
_ROWS = 2048
_SAMPLE = 4096  # rows that tell where the centre is
_BLOCK = 1 << 22  # distances that are made at once


class BruteForce:
    """A search of all rows, exact, at the speed of matrix products.

    Euclidean distances come from products in single precision first, about the centre of the rows.
    What may be among the nearest, given how far such products can be off, is then measured in
    double precision, coordinate by coordinate: nothing is lost where points are close together and
    far from the origin.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows; finite numbers.
    leaf_size : int, default=32
        As the trees have it; of no use here.
    metric : str or callable, default="minkowski"
        A name that SciPy's ``cdist`` or the trees know, or a function of two rows.
    n_jobs : int, default=None
        Threads; they do not change the result.
    **metric_params
        What the metric needs, such as ``p`` or ``VI``.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features)
        The rows.

    Notes
    -----
    Rows at the same distance come in the order of their numbers.

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
        # Single precision stays as it is: half the memory, and distances are none the worse.
        self.data = check_array(X, dtype=(np.float64, np.float32), order="C", input_name="X")
        self.leaf_size, self.n_jobs = leaf_size, n_jobs
        self.metric: Any = _NAMES.get(metric, metric) if isinstance(metric, str) else metric
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
        n_rows, n_features = self.data.shape
        # Any point near the middle will do: the mean of some rows, where there are many.
        step = max(1, n_rows // _SAMPLE)
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
        # Where single precision cannot hold the lengths, products are of no use.
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
            Where to look from.
        k : int, default=1
            How many rows.
        return_distance : bool, default=True
            Whether to return distances as well.
        sort_results : bool, default=True
            As in scikit-learn; results are always sorted.
        n_jobs : int or None, default=None
            Threads of this search; None means the `n_jobs` of the index. They do not change the
            result.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Ascending; only if `return_distance`.
        rows : ndarray of shape (n_queries, k)
            Numbers of the rows; of equal distances the smallest first.
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
                for start in range(0, len(queries), _QUERIES):
                    part = slice(start, start + _QUERIES)
                    distances[part], rows[part] = self._by_products(queries[part], k, n_threads)
        else:
            step = max(1, _BLOCK // len(self.data))
            for start in range(0, len(queries), step):
                part = slice(start, start + step)
                distances[part], rows[part] = _nearest(self._distances(queries[part]), k)
        return (distances, rows) if return_distance else rows

    def _by_products(self, queries: Any, k: int, n_threads: int) -> tuple[Any, Any]:
        n_rows, d = self.data.shape
        centred = queries - self._centre
        lengths = np.sqrt(np.einsum("ij,ij->i", centred, centred))
        # Both factors are rounded, d products added up, and half the square rounded.
        error = _ROUNDING * self._longest * ((d + 4) * lengths + self._longest)
        error = np.where(lengths < 1e15, error, np.inf).astype(np.float32)
        selection = _core.BruteSelection(k, error)
        with np.errstate(over="ignore"):
            rounded = centred.astype(np.float32)
        room = np.empty((len(queries), min(_ROWS, n_rows)), dtype=np.float32)
        for first in range(0, n_rows, _ROWS):
            part = slice(first, first + _ROWS)
            block = self._centred[part]
            whole = len(block) == room.shape[1]
            products = np.matmul(rounded, block.T, out=room if whole else None)
            selection.look(products, self._half_norms[part], first, n_threads)
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
        """Find all rows within a distance.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Where to look from.
        r : float or array-like of shape (n_queries,)
            The distance, the same for all or one for each.
        return_distance : bool, default=False
            Whether to return distances as well.
        count_only : bool, default=False
            Return numbers of rows only.
        sort_results : bool, default=False
            Whether the nearest come first; else they come by their numbers.
        n_jobs : int or None, default=None
            As in the trees; this search uses one thread.

        Returns
        -------
        rows : ndarray of object of shape (n_queries,), or of int if `count_only`
            Numbers of the rows of each query.
        distances : ndarray of object of shape (n_queries,)
            Their distances; only if `return_distance`.
        """
        queries = check_points(X, "X", self.data.shape[1])
        radii = np.broadcast_to(np.asarray(r, dtype=np.float64), len(queries))
        found, told, counts = [], [], []
        step = max(1, _BLOCK // len(self.data))
        for start in range(0, len(queries), step):
            block = self._distances(queries[start : start + step])
            for distances, radius in zip(block, radii[start : start + step], strict=True):
                rows = np.flatnonzero(distances <= radius)
                counts.append(len(rows))
                if sort_results:
                    rows = rows[np.argsort(distances[rows], kind="stable")]
                found.append(rows)
                told.append(distances[rows])
        if count_only:
            return np.array(counts, dtype=np.int64)
        if return_distance:
            return as_objects(found), as_objects(told)
        return as_objects(found)


def _nearest(distances: Any, k: int) -> tuple[Any, Any]:
    """The k smallest of each row of a matrix; of equal ones those that come first."""
    n = distances.shape[1]
    if k < n:
        kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
        # All that may be among them, ties included, in their order; the rest as far as can be.
        distances = np.where(distances <= kth, distances, np.inf)
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows
