"""The k-d tree: exact neighbours in a few dimensions, or nearly exact ones in less time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from spinney import _core
from spinney.neighbors._kernels import kernel_values
from spinney.neighbors._tree_index import TreeIndex, check_points
from spinney.runtime.threads import effective_n_jobs

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


class KDTree(TreeIndex):
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
        dualtree, breadth_first, sort_results : bool
            As in scikit-learn, which they are for: one search serves all, and results are sorted.
        eps : float, default=0.0
            The distance of each row found may exceed that of the true one by this share, which
            saves time.
        max_leaves : int, default=None
            Leaves that a query looks at, at most; 1 is the search without a way back. None: as many
            as it takes to be exact.
        n_jobs : int or None, default=None
            Threads of this search; None means the `n_jobs` of the index. They do not change the
            result.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Ascending; only if `return_distance`. Infinite where `max_leaves` left too few rows.
        rows : ndarray of shape (n_queries, k)
            Numbers of the rows; of equal distances the smallest first.
        """
        queries = self._check_query(X, k)
        if not eps >= 0:
            raise ValueError(f"eps: expected a number of at least 0, got {eps}")
        if max_leaves is not None and max_leaves < 1:
            raise ValueError(f"max_leaves: expected at least 1, got {max_leaves}")
        n_threads = self._threads(n_jobs)
        told = self._tree.query(queries, int(k), float(eps), int(max_leaves or 0), n_threads)
        distances, rows = (array.reshape(len(queries), int(k)) for array in told)
        return (distances, rows) if return_distance else rows

    def _within(self, queries: Any, radii: Any, sort: bool, n_threads: int) -> tuple[Any, ...]:
        return self._tree.within(queries, radii, bool(sort), n_threads)

    def _count(self, queries: Any, radii: Any, n_threads: int) -> NDArray[np.int64]:
        return self._tree.count_within(queries, radii, n_threads)

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
