"""What the trees of neighbours share: checks of what comes in, radii, densities."""

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
    """Return points as float64, row by row; of the given number of columns, if there is one."""
    # No queries are a question that can be answered; no rows are not.
    fewest = 1 if n_features is None else 0
    points = check_array(X, dtype=np.float64, order="C", input_name=name, ensure_min_samples=fewest)
    if n_features is not None and points.shape[1] != n_features:
        raise ValueError(f"{name}: expected {n_features} columns, got {points.shape[1]}")
    return np.asarray(points)


def as_objects(parts: list[Any]) -> Any:
    out = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        out[i] = part
    return out


class TreeIndex(ABC):
    """Base class of the trees; not to be used directly."""

    data: NDArray[np.float64]
    leaf_size: int
    n_jobs: int | None

    @abstractmethod
    def _grow(self) -> None:
        """Make the tree of the core, `_tree`."""

    @abstractmethod
    def _within(self, queries: Any, radii: Any, sort: bool, n_threads: int) -> tuple[Any, ...]:
        """Numbers of rows within radii, the rows one after another, and their distances."""

    def _count(self, queries: Any, radii: Any, n_threads: int) -> NDArray[np.int64]:
        """Numbers of rows within radii."""
        counts: NDArray[np.int64] = self._within(queries, radii, False, n_threads)[0]
        return counts

    def _threads(self, n_jobs: int | None) -> int:
        """Return the threads of a search, given its parameter `n_jobs`."""
        return effective_n_jobs(self.n_jobs if n_jobs is None else n_jobs)

    @abstractmethod
    def _sum_everywhere(self, queries: Any, h: float, kernel: str) -> NDArray[np.float64]:
        """Sums of a kernel without end over all rows."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tree"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # A file may hold anything, and a tree of NaN, or of leaves without rows, has no end.
        self.data = check_points(self.data, "data")
        if type(self.leaf_size) is not int or self.leaf_size < 1:
            raise ValueError(f"leaf_size: expected a whole number from 1, got {self.leaf_size!r}")
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
            Threads of this search; None means the `n_jobs` of the index. They do not change the
            result.

        Returns
        -------
        rows : ndarray of object of shape (n_queries,), or of int if `count_only`
            Numbers of the rows of each query.
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
                f"r: expected a number or one for each of {len(queries)} queries, got an array of "
                f"shape {radii.shape}"
            )
        if np.isnan(radii).any():
            raise ValueError("r: expected numbers, got NaN")
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
        breadth_first: bool = True,
        return_log: bool = False,
    ) -> NDArray[np.float64]:
        """Estimate a density by kernels around the rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            Where to estimate it.
        h : float
            Bandwidth.
        kernel : str, default="gaussian"
            "gaussian", "tophat", "epanechnikov", "exponential", "linear" or "cosine".
        atol, rtol, breadth_first
            As in scikit-learn, which they are for: sums are exact here.
        return_log : bool, default=False
            Whether to return logarithms.

        Returns
        -------
        ndarray of shape (n_queries,)
            Sums of kernels, each of which integrates to one.
        """
        queries = check_points(X, "X", self.data.shape[1])
        if kernel not in DENSITY_KERNELS:
            raise ValueError(
                f"kernel: expected one of {', '.join(DENSITY_KERNELS)}, got {kernel!r}"
            )
        if not h > 0:
            raise ValueError(f"h: expected a positive bandwidth, got {h}")
        if kernel in ("gaussian", "exponential"):
            sums = self._sum_everywhere(queries, float(h), kernel)
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
        """Count pairs of a row of X and a row of the tree within each distance.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
            The rows to pair with.
        r : float or array-like
            Distances.
        dualtree : bool
            As in scikit-learn, which it is for.

        Returns
        -------
        ndarray of int
            One count for each distance.
        """
        queries = check_points(X, "X", self.data.shape[1])
        radii = np.atleast_1d(np.asarray(r, dtype=np.float64))
        told = [
            int(self.query_radius(queries, one, count_only=True).sum()) for one in radii.ravel()
        ]
        return np.array(told, dtype=np.int64).reshape(radii.shape)
