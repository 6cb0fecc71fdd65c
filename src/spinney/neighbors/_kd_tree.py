"""The k-d tree: exact neighbours in a few dimensions, or nearly exact ones in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_array

from spinney import _core
from spinney._threads import effective_n_jobs
from spinney.neighbors._kernels import DENSITY_KERNELS, kernel_values, log_normalisation

__all__ = ["KDTree"]

_POWERS = {
    "euclidean": 2.0,
    "l2": 2.0,
    "manhattan": 1.0,
    "cityblock": 1.0,
    "l1": 1.0,
    "chebyshev": np.inf,
    "infinity": np.inf,
}
_BLOCK = 1 << 22  # distances that are made at once


def check_points(X: Any, name: str, n_features: int | None = None) -> NDArray[np.float64]:
    """Return points as float64, row by row; of the given number of columns, if there is one."""
    points = check_array(X, dtype=np.float64, order="C", input_name=name)
    if n_features is not None and points.shape[1] != n_features:
        raise ValueError(f"{name}: expected {n_features} columns, got {points.shape[1]}")
    return np.asarray(points)


class KDTree:
    """A k-d tree, with the methods of scikit-learn's and the answers of a search of all rows.

    A node is cut along the widest side of its box, near the median. Rows that are all the same stay
    together, whatever their number.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows; finite numbers.
    leaf_size : int, default=32
        Rows of a leaf at most. It has no effect on what is found.
    metric : str, default="minkowski"
        "euclidean" ("l2"), "manhattan" ("cityblock", "l1"), "chebyshev" ("infinity"), or
        "minkowski" ("p") with the power `p`.
    p : float, default=2.0
        The power of "minkowski", at least 1; infinity is "chebyshev".
    n_jobs : int, default=None
        Threads; they do not change the result.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features)
        The rows.
    valid_metrics : list of str
        Names that `metric` may have.

    Notes
    -----
    Rows at the same distance come in the order of their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.neighbors import KDTree
    >>> X = np.random.default_rng(0).random((1000, 3))
    >>> distances, rows = KDTree(X).query(X[:2], k=3)
    >>> rows[:, 0].tolist(), distances[:, 0].tolist()
    ([0, 1], [0.0, 0.0])
    """

    valid_metrics = [*_POWERS, "minkowski", "p"]

    def __init__(
        self,
        X: Any,
        leaf_size: int = 32,
        metric: str = "minkowski",
        *,
        p: float = 2.0,
        n_jobs: int | None = None,
    ) -> None:
        self.data = check_points(X, "X")
        if leaf_size < 1:
            raise ValueError("leaf_size must be greater than or equal to 1")
        if metric not in self.valid_metrics:
            raise ValueError(
                f"metric: expected one of {', '.join(self.valid_metrics)} for a KDTree, got "
                f"{metric!r}"
            )
        power = _POWERS.get(metric, float(p))
        if not power >= 1:
            raise ValueError(f"p must be greater or equal to one for metric='minkowski', got {p}")
        self.leaf_size, self.metric, self.p, self.n_jobs = int(leaf_size), metric, power, n_jobs
        self._grow()

    def _grow(self) -> None:
        n_threads = effective_n_jobs(self.n_jobs)
        self._tree = _core.KdTree(self.data, self.p, self.leaf_size, n_threads)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_tree"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._grow()

    def __len__(self) -> int:
        return len(self.data)

    def query(
        self,
        X: Any,
        k: int = 1,
        return_distance: bool = True,
        dualtree: bool = False,
        breadth_first: bool = False,
        sort_results: bool = True,
        *,
        eps: float = 0.0,
        max_leaves: int | None = None,
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
        dualtree, breadth_first, sort_results : bool
            As in scikit-learn, which they are for: one search serves all, and results are sorted.
        eps : float, default=0.0
            The distance of each row found may exceed that of the true one by this share, which
            saves time.
        max_leaves : int, default=None
            Leaves that a query looks at, at most; 1 is the search without a way back. None: as many
            as it takes to be exact.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Ascending; only if `return_distance`. Infinite where `max_leaves` left too few rows.
        rows : ndarray of shape (n_queries, k)
            Numbers of the rows; of equal distances the smallest first.
        """
        queries = check_points(X, "X", self.data.shape[1])
        if not 1 <= k <= len(self.data):
            raise ValueError(
                "k must be less than or equal to the number of training points: expected 1 to "
                f"{len(self.data)}, got {k}"
            )
        if not eps >= 0:
            raise ValueError(f"eps: expected a number of at least 0, got {eps}")
        if max_leaves is not None and max_leaves < 1:
            raise ValueError(f"max_leaves: expected at least 1, got {max_leaves}")
        n_threads = effective_n_jobs(self.n_jobs)
        told = self._tree.query(queries, int(k), float(eps), int(max_leaves or 0), n_threads)
        distances, rows = (array.reshape(len(queries), int(k)) for array in told)
        return (distances, rows) if return_distance else rows

    def query_radius(
        self,
        X: Any,
        r: Any,
        return_distance: bool = False,
        count_only: bool = False,
        sort_results: bool = False,
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
        counts, rows, distances = self._tree.within(
            queries, radii, bool(count_only), bool(sort_results), effective_n_jobs(self.n_jobs)
        )
        if count_only:
            return counts
        ends = np.cumsum(counts)[:-1]
        if return_distance:
            return _as_objects(np.split(rows, ends)), _as_objects(np.split(distances, ends))
        return _as_objects(np.split(rows, ends))

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
            counts, _, distances = self._tree.within(
                queries, radii, False, False, effective_n_jobs(self.n_jobs)
            )
            of_query = np.repeat(np.arange(len(queries)), counts)
            values = kernel_values(kernel, distances / h)
            sums = np.bincount(of_query, values, len(queries)).astype(np.float64)
        log_norm = log_normalisation(kernel, float(h), self.data.shape[1])
        with np.errstate(divide="ignore"):
            logs = np.log(sums) + log_norm
        return np.asarray(logs if return_log else np.exp(logs))

    def _sum_everywhere(self, queries: Any, h: float, kernel: str) -> NDArray[np.float64]:
        names = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}
        name: Any = names.get(self.p, "minkowski")
        more = {"p": self.p} if name == "minkowski" else {}
        step = max(1, _BLOCK // len(self.data))
        sums = np.empty(len(queries))
        for start in range(0, len(queries), step):
            block = cdist(queries[start : start + step], self.data, name, **more)
            sums[start : start + step] = kernel_values(kernel, block / h).sum(axis=1)
        return sums

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


def _as_objects(parts: list[Any]) -> Any:
    out = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        out[i] = part
    return out
