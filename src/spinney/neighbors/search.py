"""Base classes of the neighbours estimators: reading of rows, indexing and search."""

from __future__ import annotations

import warnings
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.metrics import DistanceMetric
from sklearn.neighbors import VALID_METRICS_SPARSE
from sklearn.neighbors._base import NeighborsBase, _check_precomputed
from sklearn.utils import check_X_y, get_tags
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney.data.sklearn_versions import validate_data
from spinney.data.strings import read_strings
from spinney.models.form import NotExpressible
from spinney.models.methods import ModelMethods
from spinney.neighbors._algorithm import choose_algorithm, intrinsic_dimension
from spinney.neighbors._gower import GowerIndex
from spinney.neighbors._index import TREES, Index, from_tree, make_index
from spinney.neighbors._metrics import (
    METRIC_NAMES,
    MIXED,
    estimate_params,
    violates_triangle_inequality,
)
from spinney.neighbors._strings import StringColumn, StringIndex
from spinney.neighbors._weights import WEIGHTS
from spinney.runtime.threads import effective_n_jobs

__all__ = [
    "KNeighborPredictor",
    "KNeighborSearch",
    "RadiusNeighborSearch",
    "extend_constraints",
    "flatten",
    "training_rows",
    "with_neighbors",
]


# Metrics that sum powers of differences, which overflow for huge values.
_POWER_SUMS = {"euclidean", "l2", "sqeuclidean", "minkowski", "p"}


def extend_constraints(constraints: dict[str, Any]) -> dict[str, Any]:
    """Add Spinney's algorithms, metrics and weights to parameter constraints."""
    out = dict(constraints)
    out["algorithm"] = [StrOptions({"auto", "ball_tree", "kd_tree", "brute", "hnsw"})]
    out["metric"] = [StrOptions(METRIC_NAMES), callable, DistanceMetric]
    if "weights" in constraints:
        out["weights"] = [StrOptions(WEIGHTS), callable, None]
    return out


class _Indexed(NeighborsBase):
    """Rows that scikit-learn's `_fit` treats as indexed.

    It then only checks the parameters and reads y.
    """

    def __init__(self, X: Any) -> None:
        self._fit_X = X
        self._tree = None
        self._fit_method = "brute"
        self.n_samples_fit_ = X.shape[0]


class NeighborSearch(ModelMethods):
    """Mixin that replaces the indexes of a scikit-learn estimator.

    It precedes the class of scikit-learn in the list of bases.
    """

    algorithm: str
    metric: Any
    metric_params: dict[str, Any] | None
    n_neighbors: int | None
    radius: float | None
    leaf_size: int
    n_jobs: int | None
    # Set by scikit-learn's `_fit`.
    effective_metric_: Any
    effective_metric_params_: dict[str, Any]
    n_samples_fit_: int
    _fit_X: Any
    _fit_method: str

    # ------------------------------------------------------------------------------------ fit

    def _fit(self, X: Any, y: Any = None) -> Any:
        self._index: Index | None = None
        self.__dict__.pop("_held_out", None)  # of an earlier fit
        if isinstance(X, (*TREES, NeighborsBase)):
            return self._fit_on_index(X, y)
        if self._has_name(*MIXED):
            self._check_brute()
            index = GowerIndex(self, X, **self._gower_params())
            y = self._read_target(index.n_rows, y)
            super()._fit(_Indexed(index.rows), y)  # type: ignore[misc]
            self._index = index
            return self
        strings = self._strings_of(X)
        if strings is not None:
            self._check_brute()
            self.n_features_in_ = 1
            y = self._read_target(strings.shape[0], y)
            super()._fit(_Indexed(strings), y)  # type: ignore[misc]
            self._index = StringIndex(strings, self.metric, self.metric_params or {})
            return self
        X, y = self._read_vectors(X, y)
        if self._has_name("precomputed"):
            X = _check_precomputed(X)
            if X.shape[0] != X.shape[1]:
                raise ValueError(
                    "Precomputed matrix must be square. "
                    f"Input is a {X.shape[0]}x{X.shape[1]} matrix."
                )
        super()._fit(_Indexed(X), y)  # type: ignore[misc]
        self._index_vectors(X)
        return self

    def _fit_on_index(self, X: Any, y: Any) -> Any:
        """Fit on a tree, or on the index of another estimator."""
        if isinstance(X, TREES):
            name, rows, index = from_tree(X)
            super()._fit(_Indexed(rows), y)  # type: ignore[misc]
            self._fit_method, self._index = name, index
            return self
        super()._fit(X, y)  # type: ignore[misc]
        if isinstance(X, NeighborSearch):
            self._index = X._index
        else:
            self._index_vectors(X._fit_X)
        return self

    def _read_vectors(self, X: Any, y: Any) -> tuple[Any, Any]:
        tags = get_tags(self)
        finite: Any = "allow-nan" if tags.input_tags.allow_nan else True
        options = {"accept_sparse": "csr", "order": "C", "ensure_all_finite": finite}
        if tags.target_tags.required:
            numeric = is_regressor(self)
            return validate_data(self, X, y, multi_output=True, y_numeric=numeric, **options)
        return validate_data(self, X, **options), None

    def _read_target(self, n_rows: int, y: Any) -> Any:
        """Check y with scikit-learn, which cannot read these rows."""
        if not get_tags(self).target_tags.required:
            return None
        rows, numeric = np.zeros((n_rows, 1)), is_regressor(self)
        return check_X_y(rows, y, multi_output=True, y_numeric=numeric, estimator=self)[1]

    def _strings_of(self, X: Any) -> StringColumn | None:
        """Return the rows if they are strings and the metric supports strings."""
        is_required = self._has_name("edit")
        if not (is_required or self._has_name("hamming") or callable(self.metric)):
            return None
        if not is_required and (sp.issparse(X) or getattr(X, "ndim", 2) > 2):
            return None
        strings = read_strings(X, required=is_required)
        return None if strings is None else StringColumn(strings)

    def _index_vectors(self, X: Any) -> None:
        """Estimate the metric's parameters, select the algorithm and build the index."""
        metric = self.effective_metric_
        params = estimate_params(metric, self.effective_metric_params_, X)
        self.effective_metric_params_ = params
        if sp.issparse(X):
            if self.algorithm not in ("auto", "brute"):
                warnings.warn("cannot use tree with sparse input: using brute force", stacklevel=4)
            is_named = isinstance(metric, str)
            if is_named and metric not in VALID_METRICS_SPARSE["brute"]:
                raise ValueError(
                    f"Metric '{metric}' not valid for sparse input. Use "
                    "sorted(sklearn.neighbors.VALID_METRICS_SPARSE['brute']) to get valid options. "
                    "Metric can also be a callable function."
                )
            if self._has_name("precomputed"):
                return  # a sparse graph, which scikit-learn searches
            self._index = make_index("brute", X.copy(), metric, params, self.leaf_size)
            return
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = choose_algorithm(
                X.shape[0],
                X.shape[1],
                metric,
                params,
                n_neighbors=self.n_neighbors,
                leaf_size=self.leaf_size,
                dimension=intrinsic_dimension(X),
            )
        if algorithm == "ball_tree" and violates_triangle_inequality(metric):
            warnings.warn(
                f"metric={metric!r} violates the triangle inequality, so a ball tree would miss "
                "neighbours: using brute force",
                stacklevel=4,
            )
            algorithm = "brute"
        self._check_minkowski(algorithm)
        self._index = make_index(algorithm, X, metric, params, self.leaf_size)
        self._fit_method = algorithm

    def _check_minkowski(self, algorithm: str) -> None:
        """Check the power and the weights of the Minkowski distance, like scikit-learn."""
        if self.effective_metric_ != "minkowski":
            return
        if self.effective_metric_params_["p"] < 1 and algorithm == "brute":
            warnings.warn(
                "Mind that for 0 < p < 1, Minkowski metrics are not distance metrics. Continuing "
                "the execution with `algorithm='brute'`.",
                stacklevel=5,
            )
        elif self.effective_metric_params_["p"] < 1:
            raise ValueError(
                f'algorithm="{algorithm}" does not support 0 < p < 1 for the Minkowski metric. To '
                'resolve this problem either set p >= 1 or algorithm="brute".'
            )
        elif algorithm == "kd_tree" and self.effective_metric_params_.get("w") is not None:
            raise ValueError(
                "algorithm='kd_tree' is not valid for metric='minkowski' with a weight parameter "
                "'w': try algorithm='ball_tree' or algorithm='brute' instead."
            )

    def _check_algorithm_metric(self) -> None:
        is_spinney_metric = self._has_name(*MIXED, "edit", "kernel")
        if self._has_name("kernel"):
            self._check_brute()
        # GraphIndex checks the metric of algorithm="hnsw".
        if not is_spinney_metric and self.algorithm != "hnsw":
            super()._check_algorithm_metric()  # type: ignore[misc]

    def _check_brute(self) -> None:
        if self.algorithm not in ("auto", "brute"):
            raise ValueError(
                f"algorithm: expected 'auto' or 'brute' for metric={self.metric!r} and these rows, "
                f"got {self.algorithm!r}"
            )

    def _gower_params(self) -> dict[str, Any]:
        """Return the parameters of Gower's distance, after a check of their names."""
        params = self.metric_params or {}
        known = {"weights", "scale", "categorical_features"}
        if set(params) - known:
            raise ValueError(
                f"metric_params: expected keys from {sorted(known)} for metric='gower', got "
                f"{sorted(set(params) - known)}"
            )
        return params

    def _has_name(self, *names: str) -> bool:
        return isinstance(self.metric, str) and self.metric in names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        if self._has_name(*MIXED):
            tags.input_tags.allow_nan = True
            tags.input_tags.categorical = True
            tags.input_tags.sparse = False
        if self._has_name("edit"):
            tags.input_tags.string = True
            tags.input_tags.sparse = False
        return tags

    # --------------------------------------------------------------------------------- search

    def _read_queries(self, X: Any) -> Any:
        """Check queries, and convert them to the form of the index."""
        if isinstance(self._index, GowerIndex):
            return self._index.read(self, X)
        if isinstance(self._index, StringIndex):
            return StringColumn(read_strings(X, required=True) or [])
        if self._has_name("precomputed"):
            distances = _check_precomputed(X)
            if distances.shape[1] != self.n_samples_fit_:
                raise ValueError(
                    f"X: expected distances to {self.n_samples_fit_} rows with "
                    f"metric='precomputed', got {distances.shape[1]}"
                )
            return distances
        finite: Any = "allow-nan" if get_tags(self).input_tags.allow_nan else True
        X = validate_data(
            self, X, accept_sparse="csr", order="C", ensure_all_finite=finite, reset=False
        )
        if sp.issparse(X) and self._fit_method != "brute":
            raise ValueError(
                f"{self._fit_method} does not work with sparse matrices. Densify the data, or set "
                "algorithm='brute'"
            )
        return X

    def _is_graph(self, X: Any) -> bool:
        """Return whether the queries or the training rows are a sparse graph of distances."""
        return self._index is None or (self._has_name("precomputed") and sp.issparse(X))


class KNeighborSearch(NeighborSearch):
    """Search for the k nearest rows."""

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest training rows of each query.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, default=None
            The queries, in the same form as the training rows; with ``metric="precomputed"``, the
            distances to these. None finds the neighbours of each training row, without the row
            itself.
        n_neighbors : int, default=None
            Number of neighbours; None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return distances as well.

        Returns
        -------
        neigh_dist : ndarray of shape (n_queries, n_neighbors)
            Distances, ascending; only with `return_distance`.
        neigh_ind : ndarray of shape (n_queries, n_neighbors)
            Numbers of training rows; if distances are equal, the smallest number is first.
        """
        check_is_fitted(self)
        if n_neighbors is not None and n_neighbors <= 0:
            raise ValueError(f"Expected n_neighbors > 0. Got {n_neighbors}")
        if n_neighbors is not None and not isinstance(n_neighbors, Integral):
            raise TypeError(
                f"n_neighbors does not take {type(n_neighbors)} value, enter integer value"
            )
        if self._is_graph(X):  # scikit-learn searches it
            return super().kneighbors(X, n_neighbors, return_distance)  # type: ignore[misc]
        assert self._index is not None
        k: Any = self.n_neighbors if n_neighbors is None else n_neighbors
        queries = self._fit_X if X is None else self._read_queries(X)
        n_rows, n_queries = self.n_samples_fit_, queries.shape[0]
        if k > n_rows - (X is None):
            sign = "<" if X is None else "<="
            raise ValueError(
                f"Expected n_neighbors {sign} n_samples_fit, but n_neighbors = {k}, "
                f"n_samples_fit = {n_rows}, n_samples = {n_queries}"
            )
        n_threads = effective_n_jobs(self.n_jobs)
        if X is not None:
            distances, rows = self._index.query(queries, int(k), n_threads)
        else:
            distances, rows = self._index.query(queries, int(k) + 1, n_threads)
            is_other = rows != np.arange(n_queries)[:, None]
            # A row with k + 1 duplicates may not be in its own result; the last one is dropped.
            is_other[is_other.all(axis=1), -1] = False
            distances = distances[is_other].reshape(n_queries, k)
            rows = rows[is_other].reshape(n_queries, k)
        return (distances, rows) if return_distance else rows


class KNeighborPredictor(KNeighborSearch):
    """Base class of the predictors from the k nearest rows."""

    n_neighbors: int
    weights: Any

    def _finite_neighbors(self, X: Any) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return distances and rows of the neighbours; raise an error if distances overflow."""
        distances, rows = self.kneighbors(X)
        metric = vars(self).get("effective_metric_")  # absent in the predictors of spinney.dask
        if isinstance(metric, str) and metric in _POWER_SUMS and np.isinf(distances).any():
            # Rows at infinite distance are tied, so the selection among them would be arbitrary.
            raise ValueError(
                "X: expected finite distances of the nearest rows, but powers of the values "
                "overflow; scale the columns or remove outliers"
            )
        return distances, rows

    def _expressible_rows(self) -> NDArray[np.float64]:
        """Return the dense training rows; raise `NotExpressible` for other models.

        The expressible models are exact, with Euclidean distance and simple weights.
        """
        check_is_fitted(self)
        if self.effective_metric_ not in ("euclidean", "l2"):
            raise NotExpressible(f"its metric is {self.effective_metric_!r}, expected 'euclidean'")
        if self.weights not in (None, "uniform", "distance"):
            raise NotExpressible(f"weights={self.weights!r}, expected 'uniform' or 'distance'")
        if self._fit_method == "hnsw":
            raise NotExpressible("algorithm='hnsw' is approximate, expected an exact algorithm")
        rows = self._fit_X
        rows = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
        if self.n_neighbors > rows.shape[0]:
            raise NotExpressible(
                f"n_neighbors={self.n_neighbors} is more than the {rows.shape[0]} training rows"
            )
        return np.asarray(rows, dtype=np.float64)


class RadiusNeighborSearch(NeighborSearch):
    """Search for all rows within a radius."""

    def radius_neighbors(
        self,
        X: Any = None,
        radius: Any = None,
        return_distance: bool = True,
        sort_results: bool = False,
    ) -> Any:
        """Find all training rows within a radius of each query, boundary included.

        Parameters
        ----------
        X : array, sparse matrix, frame or strings, default=None
            The queries, as in `kneighbors`. None finds the neighbours of each training row, without
            the row itself.
        radius : float or array-like of shape (n_queries,), default=None
            Largest distance of a neighbour; None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return distances as well.
        sort_results : bool, default=False
            Whether rows are sorted by distance, then by number; requires `return_distance`.

        Returns
        -------
        neigh_dist : ndarray of shape (n_queries,) of arrays
            Distances; only with `return_distance`.
        neigh_ind : ndarray of shape (n_queries,) of arrays
            Numbers of training rows.
        """
        check_is_fitted(self)
        if sort_results and not return_distance:
            raise ValueError("return_distance must be True if sort_results is True.")
        if self._is_graph(X):
            return super().radius_neighbors(  # type: ignore[misc]
                X, radius, return_distance, sort_results
            )
        assert self._index is not None
        queries = self._fit_X if X is None else self._read_queries(X)
        radius = self.radius if radius is None else radius
        n_threads = effective_n_jobs(self.n_jobs)
        distances, rows = self._index.query_radius(queries, radius, n_threads, sort_results)
        if X is None:
            for i, found in enumerate(rows):
                is_other = found != i
                rows[i], distances[i] = found[is_other], distances[i][is_other]
        return (distances, rows) if return_distance else rows


def flatten(rows: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the concatenated neighbours of all queries, and the query of each."""
    counts = np.fromiter(map(len, rows), dtype=np.intp, count=len(rows))
    flat = np.concatenate([np.empty(0, dtype=np.intp), *rows])
    return flat, np.repeat(np.arange(len(rows)), counts)


def training_rows(search: Any) -> Any:
    """Return the rows that a fitted `NearestNeighbors` or neighbour model searches."""
    return search._fit_X


def with_neighbors(model: Any, distances: NDArray[Any], targets: NDArray[Any]) -> Any:
    """Return a copy of an estimator that predicts from given neighbours, without a search.

    Parameters
    ----------
    model : KNeighborsClassifier or KNeighborsRegressor
        The estimator, with the public attributes of a fit.
    distances : ndarray of shape (n_queries, n_neighbors)
        Distances of the neighbours of each query.
    targets : ndarray of shape (n_queries, n_neighbors, ...)
        Targets of the neighbours; class codes for a classifier.
    """
    model = copy(model)
    rows = np.arange(distances.size).reshape(distances.shape)
    model._fit_method = "brute"
    model._y = targets.reshape(distances.size, *targets.shape[2:])
    model.kneighbors = lambda X: (distances, rows)
    return model
