"""k-d tree: exact or approximate nearest neighbours in few dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from spinney import _core
from spinney.neighbors._kernels import kernel_values
from spinney.neighbors._metrics import METRIC_POWERS
from spinney.neighbors._tree_index import TreeIndex, check_points
from spinney.runtime.threads import effective_n_jobs

__all__ = ["KDTree"]


_BLOCK_SIZE = 1 << 22  # distances that are in memory at a time


class KDTree(TreeIndex):
    """Search exact nearest neighbours in few dimensions.

    The methods are those of scikit-learn's KDTree.

    A node is split near the median along the widest side of its bounding box. A node whose rows are
    all equal is not split.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows; all values must be finite.
    leaf_size : int, default=32
        Largest number of rows in a leaf. It affects the speed, not the result.
    metric : str, default="minkowski"
        "euclidean" ("l2"), "manhattan" ("cityblock", "l1"), "chebyshev" ("infinity"), or
        "minkowski" ("p") with the power `p`.
    p : float, default=2.0
        Power of "minkowski", at least 1; infinity is "chebyshev".
    n_jobs : int, default=None
        Number of threads; the result does not depend on it.

    Attributes
    ----------
    data : ndarray of shape (n_rows, n_features)
        The rows.
    valid_metrics : list of str
        Names of the supported metrics.

    Notes
    -----
    Rows with equal distances are sorted by their numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.neighbors import KDTree
    >>> X = np.random.default_rng(0).random((1000, 3))
    >>> distances, rows = KDTree(X).query(X[:2], k=3)
    >>> rows[:, 0].tolist(), distances[:, 0].tolist()
    ([0, 1], [0.0, 0.0])
    """

    valid_metrics = [*METRIC_POWERS, "minkowski", "p"]

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
            raise ValueError("leaf_size must be greater than or equal to 1")  # scikit-learn's text
        if metric not in self.valid_metrics:
            raise ValueError(
                f"metric: expected one of {', '.join(self.valid_metrics)} for a KDTree, got "
                f"{metric!r}"
            )
        power = METRIC_POWERS.get(metric, float(p))
        if not power >= 1:
            raise ValueError(f"p must be greater or equal to one for metric='minkowski', got {p}")
        self.leaf_size, self.metric, self.p, self.n_jobs = int(leaf_size), metric, power, n_jobs
        self._grow()

    def _grow(self) -> None:
        n_threads = effective_n_jobs(self.n_jobs)
        self._tree = _core.KdTree(self.data, self.p, self.leaf_size, n_threads)

    def query(
        self,
        X: Any,
        k: int = 1,
        return_distance: bool = True,
        dualtree: bool = False,
        breadth_first: bool = False,
        *,
        sort_results: bool = True,
        eps: float = 0.0,
        max_leaves: int | None = None,
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
        dualtree, breadth_first, sort_results : bool
            No effect; for compatibility with scikit-learn. Results are always sorted.
        eps : float, default=0.0
            Relative error of the distances: the distance of the i-th returned row is at most
            ``1 + eps`` times that of the i-th nearest row. Larger values take less time.
        max_leaves : int, default=None
            Largest number of leaves that a query searches; 1 is a search without backtracking.
            None: the search is exact.
        n_jobs : int or None, default=None
            Number of threads; None means the `n_jobs` of the index. The result does not depend on
            it.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Distances, ascending; only if `return_distance`. Missing neighbours, possible with
            `max_leaves`, have infinite distance.
        rows : ndarray of shape (n_queries, k)
            Row numbers; if distances are equal, the smallest number is first.
        """
        queries = self._check_query(X, k)
        if not eps >= 0:
            raise ValueError(f"eps: expected a number of at least 0, got {eps}")
        if max_leaves is not None and max_leaves < 1:
            raise ValueError(f"max_leaves: expected at least 1, got {max_leaves}")
        n_threads = self._threads(n_jobs)
        nearest = self._tree.query(queries, int(k), float(eps), int(max_leaves or 0), n_threads)
        distances, rows = (array.reshape(len(queries), int(k)) for array in nearest)
        return (distances, rows) if return_distance else rows

    def _within(self, queries: Any, radii: Any, sort: bool, n_threads: int) -> tuple[Any, ...]:
        return self._tree.within(queries, radii, bool(sort), n_threads)

    def _count(self, queries: Any, radii: Any, n_threads: int) -> NDArray[np.int64]:
        return self._tree.count_within(queries, radii, n_threads)

    def _sum_over_all_rows(self, queries: Any, h: float, kernel: str) -> NDArray[np.float64]:
        names = {1.0: "cityblock", 2.0: "euclidean", np.inf: "chebyshev"}
        name: Any = names.get(self.p, "minkowski")
        params = {"p": self.p} if name == "minkowski" else {}
        step = max(1, _BLOCK_SIZE // len(self.data))
        sums = np.empty(len(queries))
        for start in range(0, len(queries), step):
            block = cdist(queries[start : start + step], self.data, name, **params)
            sums[start : start + step] = kernel_values(kernel, block / h).sum(axis=1)
        return sums
