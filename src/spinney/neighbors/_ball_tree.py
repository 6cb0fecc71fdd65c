"""Ball tree: exact nearest neighbours for any metric."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.neighbors._kernels import kernel_values
from spinney.neighbors._metrics import METRIC_POWERS
from spinney.neighbors._tree_index import TreeIndex, check_points

__all__ = ["BallTree"]


_OTHER_METRICS = (
    "haversine",
    "hamming",
    "canberra",
    "jaccard",
    "rogerstanimoto",
    "sokalmichener",
    "sokalsneath",
    "seuclidean",
    "mahalanobis",
)


class BallTree(TreeIndex):
    """Search exact nearest neighbours for any metric.

    The methods are those of scikit-learn's BallTree.

    A node stores a centre row and the radius of the ball that contains its rows. The distance must
    be a metric: symmetric, zero for equal rows only, and with the triangle inequality.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        The rows; all values must be finite.
    leaf_size : int, default=32
        Largest number of rows in a leaf. It affects the speed, not the result.
    metric : str or callable, default="minkowski"
        "euclidean" ("l2"), "manhattan" ("cityblock", "l1"), "chebyshev" ("infinity"), "minkowski"
        ("p") with the power `p` and optional weights `w` of the columns, "haversine" (columns are
        latitude and longitude in radians), "hamming" (fraction of unequal columns), "canberra",
        "seuclidean" with the variances `V`, or "mahalanobis" with the inverse covariance `VI` or
        the covariance `V` (default: the covariance of X). For boolean columns: "jaccard",
        "rogerstanimoto" ("sokalmichener") and "sokalsneath". A function of two rows must be a
        metric.
    n_jobs : int, default=None
        Number of threads; the result does not depend on it. A function is called by one thread.
    **metric_params
        Parameters of the metric.

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
    >>> from spinney.neighbors import BallTree
    >>> cities = np.radians([[52.5, 13.4], [48.9, 2.4], [51.5, -0.1]])  # Berlin, Paris, London
    >>> distances, rows = BallTree(cities, metric="haversine").query(cities[:1], k=2)
    >>> rows[0].tolist(), round(float(distances[0, 1]) * 6371 / 100)
    ([0, 1], 9)
    """

    valid_metrics = [*METRIC_POWERS, "minkowski", "p", *_OTHER_METRICS]

    def __init__(
        self,
        X: Any,
        leaf_size: int = 32,
        metric: Any = "minkowski",
        *,
        n_jobs: int | None = None,
        **metric_params: Any,
    ) -> None:
        self.data = check_points(X, "X")
        if leaf_size < 1:
            raise ValueError("leaf_size must be greater than or equal to 1")  # scikit-learn's text
        if not callable(metric) and metric not in self.valid_metrics:
            raise ValueError(
                f"metric: expected a function or one of {', '.join(self.valid_metrics)} for a "
                f"BallTree, got {metric!r}"
            )
        self.leaf_size, self.metric, self.n_jobs = int(leaf_size), metric, n_jobs
        self.metric_params = metric_params
        self._read_params()
        self._grow()

    def _read_params(self) -> None:
        """Convert the metric's parameters to a power, weights or a map to Euclidean space."""
        given = dict(self.metric_params)
        n_features = self.data.shape[1]
        self._p, self._w, self._map = 2.0, np.empty(0), None
        if isinstance(self.metric, str):
            self._p = METRIC_POWERS.get(self.metric, 2.0)
            if self.metric in ("minkowski", "p"):
                self._p = float(given.pop("p", 2.0))
                w = given.pop("w", None)
                self._w = np.empty(0) if w is None else np.asarray(w, dtype=np.float64)
                if (self._w < 0).any() or len(self._w) not in (0, n_features):
                    raise ValueError(f"w: expected {n_features} weights of at least 0, got {w}")
            elif self.metric == "seuclidean":
                V = given.pop("V", None)
                variances = self.data.var(axis=0, ddof=1) if V is None else np.asarray(V)
                self._w = 1.0 / variances
            elif self.metric == "mahalanobis":
                self._map = _euclidean_map(self.data, given.pop("V", None), given.pop("VI", None))
            elif self.metric == "haversine" and n_features != 2:
                raise ValueError(f"X: expected 2 columns for haversine, got {n_features}")
            given.pop("p", None)
        if not self._p >= 1:
            raise ValueError(
                f"p must be greater or equal to one for metric='minkowski', got {self._p}"
            )
        if callable(self.metric):
            self._function: Any = self.metric if not given else _WithParams(self.metric, given)
        elif given:
            raise ValueError(
                f"metric_params: the metric {self.metric!r} does not have the parameters "
                f"{sorted(given)}"
            )
        else:
            self._function = None

    def _grow(self) -> None:
        name = self.metric if isinstance(self.metric, str) else "function"
        if name in (*METRIC_POWERS, "p", "seuclidean", "mahalanobis"):
            name = "minkowski"  # with a power, with weights, or of mapped rows
        points = self._mapped(self.data)
        self._tree = _core.BallTree(
            points, name, self._p, self._w.tolist(), self._function, self.leaf_size
        )

    def _mapped(self, points: Any) -> NDArray[np.float64]:
        return points if self._map is None else np.ascontiguousarray(points @ self._map)

    def query(
        self,
        X: Any,
        k: int = 1,
        return_distance: bool = True,
        dualtree: bool = False,
        breadth_first: bool = False,
        *,
        sort_results: bool = True,
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
        queries = self._mapped(self._check_query(X, k))
        nearest = self._tree.query(queries, int(k), self._threads(n_jobs))
        distances, rows = (array.reshape(len(queries), int(k)) for array in nearest)
        return (distances, rows) if return_distance else rows

    def _within(self, queries: Any, radii: Any, sort: bool, n_threads: int) -> tuple[Any, ...]:
        return self._tree.within(self._mapped(queries), radii, bool(sort), n_threads)

    def _sum_over_all_rows(self, queries: Any, h: float, kernel: str) -> NDArray[np.float64]:
        unlimited = np.full(len(queries), np.inf)
        counts, _, distances = self._within(queries, unlimited, False, self._threads(None))
        values = kernel_values(kernel, distances / h)
        of_query = np.repeat(np.arange(len(queries)), counts)
        return np.bincount(of_query, values, len(queries)).astype(np.float64)


class _WithParams:
    """A metric function with fixed further arguments that can be pickled."""

    def __init__(self, function: Any, params: dict[str, Any]) -> None:
        self.function, self.params = function, params

    def __call__(self, a: Any, b: Any) -> float:
        return float(self.function(a, b, **self.params))


def _euclidean_map(X: Any, V: Any, VI: Any) -> NDArray[np.float64]:
    """Return a matrix A such that |xA − yA| is the Mahalanobis distance of x and y."""
    if VI is None:
        V = np.atleast_2d(np.cov(X.T)) if V is None else np.asarray(V, dtype=np.float64)
        VI = np.linalg.inv(V)
    VI = np.asarray(VI, dtype=np.float64)
    if VI.shape != (X.shape[1], X.shape[1]):
        raise ValueError(f"VI: expected the shape ({X.shape[1]}, {X.shape[1]}), got {VI.shape}")
    try:
        return np.linalg.cholesky((VI + VI.T) / 2)
    except np.linalg.LinAlgError:
        raise ValueError(
            "VI: expected a positive definite matrix; check V or VI, or remove collinear columns"
        ) from None
