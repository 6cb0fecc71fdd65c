"""Base class of the trees: checks, radius queries and density estimates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_array

from spinney.neighbors._kernels import DENSITY_KERNELS, kernel_values, log_normalisation
from spinney.runtime.threads import effective_n_jobs

__all__ = ["TreeIndex", "as_objects", "check_points"]


def check_points(X: Any, name: str, n_features: int | None = None) -> NDArray[np.float64]:
    """Return points as a contiguous float64 array, after checks."""
    # An index needs a row, but there may be zero queries.
    fewest = 1 if n_features is None else 0
    points = check_array(X, dtype=np.float64, order="C", input_name=name, ensure_min_samples=fewest)
    if n_features is not None and points.shape[1] != n_features:
        raise ValueError(f"{name}: expected {n_features} columns, got {points.shape[1]}")
    return np.asarray(points)


def as_objects(arrays: list[Any]) -> Any:
    """Return a one-dimensional object array whose items are the arrays."""
    out = np.empty(len(arrays), dtype=object)
    for i, array in enumerate(arrays):
        out[i] = array
    return out


class TreeIndex(ABC):
    """Base class of the trees."""

    data: NDArray[np.float64]
    leaf_size: int
    n_jobs: int | None

    @abstractmethod
    def _grow(self) -> None:
        """Build the core's tree, `_tree`."""

    @abstractmethod
    def _within(self, queries: Any, radii: Any, sort: bool, n_threads: int) -> tuple[Any, ...]:
        """Return counts of the rows within radii, the rows and their distances."""

    def _count(self, queries: Any, radii: Any, n_threads: int) -> NDArray[np.int64]:
        """Return the counts of the rows within radii."""
        counts: NDArray[np.int64] = self._within(queries, radii, False, n_threads)[0]
        return counts

    def _threads(self, n_jobs: int | None) -> int:
        """Return the number of threads of a search, given its parameter `n_jobs`."""
        return effective_n_jobs(self.n_jobs if n_jobs is None else n_jobs)

    @abstractmethod
    def _sum_over_all_rows(self, queries: Any, h: float, kernel: str) -> NDArray[np.float64]:
        """Return sums over all rows of a kernel that is positive everywhere."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tree"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # A damaged file may contain any values. The core would not terminate on NaN or on empty
        # leaves.
        self.data = check_points(self.data, "data")
        if type(self.leaf_size) is not int or self.leaf_size < 1:
            raise ValueError(f"leaf_size: expected an integer >= 1, got {self.leaf_size!r}")
        self._grow()

    def __len__(self) -> int:
        return len(self.data)

    def _check_query(self, X: Any, k: int) -> NDArray[np.float64]:
        queries = check_points(X, "X", self.data.shape[1])
        if not 1 <= k <= len(self.data):
            raise ValueError(
                "k must be less than or equal to the number of training points: expected 1 to "
                f"{len(self.data)}, got {k}"
            )
        return queries

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
            Number of threads; None means the `n_jobs` of the index. The result does not depend on
            it.

        Returns
        -------
        rows : ndarray of object of shape (n_queries,), or of int if `count_only`
            Row numbers for each query, or their counts.
        distances : ndarray of object of shape (n_queries,)
            Their distances; only if `return_distance`.
        """
        queries = check_points(X, "X", self.data.shape[1])
        if count_only and return_distance:
            raise ValueError("count_only and return_distance cannot both be true")
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True")
        radii = np.asarray(r, dtype=np.float64)
        if radii.ndim > 1 or (radii.ndim == 1 and len(radii) != len(queries)):
            raise ValueError(
                f"r: expected a number or an array of shape ({len(queries)},), one radius for each "
                f"query, got shape {radii.shape}"
            )
        if np.isnan(radii).any():
            raise ValueError("r: expected radii without NaN, got NaN")
        radii = np.ascontiguousarray(np.broadcast_to(radii, len(queries)))
        if count_only:
            return self._count(queries, radii, self._threads(n_jobs))
        counts, rows, distances = self._within(queries, radii, sort_results, self._threads(n_jobs))
        ends = np.cumsum(counts)
        found = as_objects(np.split(rows, ends)[:-1])
        if return_distance:
            return found, as_objects(np.split(distances, ends)[:-1])
        return found

    def kernel_density(
        self,
        X: Any,
        h: float,
        kernel: str = "gaussian",
        atol: float = 0,
        rtol: float = 1e-8,
        *,
        breadth_first: bool = True,
        return_log: bool = False,
    ) -> NDArray[np.float64]:
        """Return kernel density estimates at the queries.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The queries.
        h : float
            Bandwidth.
        kernel : str, default="gaussian"
            "gaussian", "tophat", "epanechnikov", "exponential", "linear" or "cosine".
        atol, rtol, breadth_first
            No effect; for compatibility with scikit-learn. The sums are exact.
        return_log : bool, default=False
            Whether to return logarithms of the densities.

        Returns
        -------
        ndarray of shape (n_queries,)
            For each query, the sum of the rows' kernels, each of which integrates to one.
        """
        queries = check_points(X, "X", self.data.shape[1])
        if kernel not in DENSITY_KERNELS:
            raise ValueError(
                f"kernel: expected one of {', '.join(DENSITY_KERNELS)}, got {kernel!r}"
            )
        if not h > 0:
            raise ValueError(f"h: expected a positive bandwidth, got {h}")
        if kernel in ("gaussian", "exponential"):
            sums = self._sum_over_all_rows(queries, float(h), kernel)
        else:
            radii = np.full(len(queries), float(h))
            counts, _, distances = self._within(queries, radii, False, self._threads(None))
            of_query = np.repeat(np.arange(len(queries)), counts)
            values = kernel_values(kernel, distances / h)
            sums = np.bincount(of_query, values, len(queries)).astype(np.float64)
        log_norm = log_normalisation(kernel, float(h), self.data.shape[1])
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + log_norm
        return np.asarray(logs if return_log else np.exp(logs))

    def two_point_correlation(self, X: Any, r: Any, dualtree: bool = False) -> NDArray[np.int64]:
        """Count the pairs of a query and a row of the tree within each distance.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The queries.
        r : float or array-like
            Distances.
        dualtree : bool
            No effect; for compatibility with scikit-learn.

        Returns
        -------
        ndarray of int
            A count for each distance.
        """
        queries = check_points(X, "X", self.data.shape[1])
        radii = np.atleast_1d(np.asarray(r, dtype=np.float64))
        counts = [
            int(self.query_radius(queries, radius, count_only=True).sum())
            for radius in radii.ravel()
        ]
        return np.array(counts, dtype=np.int64).reshape(radii.shape)
