"""Nearest neighbours of rows in partitions: search each partition, then merge the results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from spinney import neighbors
from spinney.dask._cluster import import_dask
from spinney.dask._linear import count_classes, encode_partition_classes, merge_classes
from spinney.dask._model import (
    DaskModel,
    OutputForm,
    ProbabilitiesMixin,
    gather_calibration,
    predict_block,
    to_pandas,
)
from spinney.dask._rows import DaskRows, Part, as_collection, is_dask, is_path, read_rows
from spinney.neighbors.search import training_rows, with_neighbors

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor"]

_METRICS_OF_ALL_ROWS = ("seuclidean", "mahalanobis")  # unless `metric_params` has their statistics
_METRICS_OF_NO_VECTORS = ("precomputed", "gower", "edit")


@dataclass(frozen=True)
class _PartitionIndex:
    """The index of a partition, its targets and the number of its first row."""

    search: Any
    y: Any
    first_row: int


@dataclass(frozen=True)
class _Summary:
    """Size and types of a partition."""

    n_rows: int
    dtype: Any
    target_shape: tuple[int, ...]  # of the target of one row


class _Voter:
    """The estimator that votes, and the Dask objects that its predictions need.

    Dask's optimization of a graph drops the futures of persisted tasks. A lazy prediction has this
    object in its graph, so the indexes of its fit stay on the workers as long as the prediction.

    Parameters
    ----------
    model : estimator
        Local, with the attributes that predictions read.
    kept : tuple
        Indexes and queries. They are not sent to the workers.
    """

    def __init__(self, model: Any, kept: tuple[Any, ...] = ()) -> None:
        self.model, self.kept = model, kept

    def __reduce__(self) -> Any:
        return _Voter, (self.model,)


class _DaskNeighbors(DaskModel[Any]):
    """The base class of both estimators: fitting, and searches of all partitions."""

    _dask_shelves: list[Any]  # Delayed: the index of each partition

    def _fit_indexes(self, X: Any, y: Any) -> Any:
        """Build an index of each partition, on its worker."""
        self._validate_params()  # type: ignore[attr-defined]
        self._check_supported()
        if y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        rows = read_rows(X, y).persist()
        summaries = rows.compute(_summarize, type(self).__name__)
        filled = [i for i, part in enumerate(summaries) if part.n_rows]
        if not filled:
            raise ValueError("X: expected at least one row, got none in any partition")
        rows, summaries = rows.select(filled), [summaries[i] for i in filled]
        if len({part.target_shape for part in summaries}) > 1:
            raise ValueError("y: expected the same number of columns in all partitions")
        rows = self._encode(rows, summaries[0].target_shape)
        # Only the rows inside the indexes stay in memory.
        self._dask_shelves = self._build_indexes(rows, summaries)
        dask = import_dask()
        features = dask.delayed(_index_features, pure=False)(self._dask_shelves[0])
        found = dask.compute(features)[0]
        self.n_features_in_, self.effective_metric_, self.effective_metric_params_ = found
        vars(self).pop("feature_names_in_", None)
        if rows.names is not None and all(isinstance(name, str) for name in rows.names):
            self.feature_names_in_ = np.asarray(rows.names, dtype=object)
        self.n_samples_fit_ = sum(part.n_rows for part in summaries)
        return self

    def _build_indexes(self, rows: DaskRows, summaries: list[_Summary]) -> list[Any]:
        dtype = np.result_type(*[part.dtype for part in summaries])
        first_rows = np.cumsum([0, *[part.n_rows for part in summaries[:-1]]])
        params = {
            name: getattr(self, name)
            for name in ("n_neighbors", "algorithm", "leaf_size", "metric", "p", "metric_params")
        }
        search = neighbors.NearestNeighbors(**params, n_jobs=1)
        dask = import_dask()
        build = dask.delayed(_index_partition, pure=False)
        indexes = [
            build(part, search, int(first), dtype)
            for part, first in zip(rows.parts, first_rows, strict=True)
        ]
        return list(dask.persist(*indexes))

    def _held_out_rows(self) -> Any:
        raise ValueError(
            f"{type(self).__name__}: fits on partitions hold out no rows to estimate their errors "
            "from; to_local() gathers all rows and has intervals and prediction sets"
        )

    def _held_on(self, calibration: Any) -> Any:
        return super()._held_on(gather_calibration(calibration))  # type: ignore[misc]

    def _encode(self, rows: DaskRows, shape: tuple[int, ...]) -> DaskRows:
        """Prepare the targets for voting; `shape` is that of the target of one row."""
        return rows

    def _check_supported(self) -> None:
        """Refuse parameters that do not work with partitions."""
        metric, given = self.metric, self.metric_params or {}  # type: ignore[attr-defined]
        if self.algorithm == "hnsw":  # type: ignore[attr-defined]
            raise ValueError("algorithm='hnsw': expected an exact search for rows in partitions")
        if isinstance(metric, str) and metric in _METRICS_OF_NO_VECTORS:
            raise ValueError(f"metric={metric!r}: expected a metric of vectors for partitions")
        if isinstance(metric, str) and metric in _METRICS_OF_ALL_ROWS and not given:
            raise ValueError(
                f"metric={metric!r}: expected metric_params for rows in partitions, because "
                "statistics of all rows are not computed"
            )

    def to_local(self) -> Any:
        """Gather all rows in this process, and fit the local estimator to them.

        Returns
        -------
        estimator
            An instance of the class with the same name in `spinney.neighbors`.
        """
        self._check_indexes()
        dask = import_dask()
        content = dask.delayed(_index_content, pure=False)
        contents = dask.compute(*[content(index) for index in self._dask_shelves])
        X, y = (np.concatenate([of_part[k] for of_part in contents]) for k in (0, 1))
        if hasattr(self, "feature_names_in_"):
            import pandas as pd  # optional dependency

            X = pd.DataFrame(X, columns=self.feature_names_in_)
        local = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        return local.fit(X, self._decode(y))

    def _check_indexes(self) -> None:
        """Raise an error if the workers that hold the indexes cannot be reached."""
        check_is_fitted(self)
        for index in self._dask_shelves:
            for value in dict(index.__dask_graph__()).values():
                if getattr(value, "status", "") in ("cancelled", "lost"):
                    raise RuntimeError(
                        f"{type(self).__name__}: the workers that hold its rows cannot be reached; "
                        "expected the client of fit to be open (to_local() gathers the rows while "
                        "it is)"
                    )

    def _read_queries(self, X: Any) -> Any:
        """Convert X to a Dask collection with the columns of fit."""
        known = getattr(self, "feature_names_in_", None)
        X = as_collection(X, n_partitions=1, known_columns=known)
        shape = (1, X.shape[1])
        _check_feature_names(
            self, X._meta if hasattr(X, "columns") else np.empty(shape), reset=False
        )
        return X

    def _decode(self, y: Any) -> Any:
        return y

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find the nearest rows of all partitions for each query.

        Parameters
        ----------
        X : Dask array, Dask data frame, or rows in memory
            The queries. None, for the neighbours of the training rows themselves, is refused.
        n_neighbors : int, default=None
            Number of neighbours; None means the parameter of the estimator.
        return_distance : bool, default=True
            Whether to return distances, too.

        Returns
        -------
        neigh_dist : ndarray of shape (n_queries, n_neighbors)
            Distances, ascending; only with `return_distance`.
        neigh_ind : ndarray of shape (n_queries, n_neighbors)
            Numbers of rows, counted over all partitions of fit. Equally distant rows are in
            ascending order.
        """
        self._check_indexes()
        if X is None:
            raise ValueError("X: expected queries for rows in partitions, got None")
        k = self.n_neighbors if n_neighbors is None else n_neighbors  # type: ignore[attr-defined]
        blocks = read_rows(self._read_queries(X)).parts
        nearest = import_dask().compute(*[self._nearest(block, int(k)) for block in blocks])
        nearest = [of_block for of_block in nearest if len(of_block[0])] or list(nearest[:1])
        distances, rows = (np.concatenate([of_block[i] for of_block in nearest]) for i in (0, 1))
        return (distances, rows) if return_distance else rows

    def _nearest(self, block: Any, k: int) -> Any:
        """Return a Delayed: the nearest rows of all partitions for a block of queries."""
        if k > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_}"
            )
        dask = import_dask()
        search = dask.delayed(_search_partition, pure=False)
        merge = dask.delayed(_merge_nearest, pure=False)
        return merge([search(index, block, k) for index in self._dask_shelves], k)

    def _call_local(self, method: str, X: Any) -> Any:
        self._check_indexes()
        in_memory = not is_dask(X) and not is_path(X)
        X = self._read_queries(X)
        voter = self._delayed_voter(X)
        form = self._output_form(method)
        rows = read_rows(X, optimized=in_memory or hasattr(X, "columns"))
        vote = _vote if in_memory or rows.names is None else _vote_frame
        vote_later = import_dask().delayed(vote, pure=False)
        k = self.n_neighbors  # type: ignore[attr-defined]
        blocks = [vote_later(block, self._nearest(block, k), voter, form) for block in rows.parts]
        if in_memory:
            return np.concatenate([np.asarray(block) for block in import_dask().compute(*blocks)])
        return _lazy_collection(X, blocks, form)

    def _delayed_voter(self, X: Any) -> Any:
        """Return a Delayed of the voter for the queries X."""
        model = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        for name in ("classes_", "outputs_2d_", "n_features_in_", "n_samples_fit_"):
            if name in vars(self):
                setattr(model, name, getattr(self, name))
        voter = _Voter(model, kept=(tuple(self._dask_shelves), X))
        return import_dask().delayed(voter, pure=False, traverse=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions as the local estimator does: accuracy, or R².

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            True targets or classes.
        sample_weight : like y, default=None
            Weights of rows.

        Returns
        -------
        float
            The score.
        """
        part = read_rows(X, y, sample_weight).gather()
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(part.y, self.predict(part.X), sample_weight=part.weights))


def _lazy_collection(X: Any, blocks: list[Any], form: OutputForm) -> Any:
    """Return the Dask collection of delayed predictions for the partitions of X."""
    if not hasattr(X, "columns"):
        import dask.array as da  # optional dependency

        arrays = [
            da.from_delayed(block, (n, *form.shape), dtype=form.dtype)
            for block, n in zip(blocks, X.chunks[0], strict=True)
        ]
        # Dask omits empty blocks, too, but keeps their tasks in the graph.
        return da.concatenate([array for array in arrays if array.shape[0] != 0] or arrays[:1])
    import dask.dataframe as dd  # optional dependency

    meta = to_pandas(np.empty((0, *form.shape), dtype=form.dtype), X._meta.index, form)
    return dd.from_delayed(blocks, meta=meta, divisions=X.divisions, verify_meta=False)


def _summarize(part: Part, name: str) -> _Summary:
    if part.n_rows:
        check_array(part.y, ensure_2d=False, dtype=None, input_name="y", estimator=name)
    dtypes = list(part.X.dtypes) if hasattr(part.X, "dtypes") else [part.X.dtype]
    dtype = np.asarray(part.X).dtype if len(dtypes) else float
    return _Summary(part.n_rows, dtype, part.y.shape[1:])


def _index_partition(part: Part, search: Any, first_row: int, dtype: Any) -> _PartitionIndex:
    X = np.asarray(part.X)
    search = clone(search).fit(X.astype(dtype, copy=False) if dtype.kind != "O" else X)
    return _PartitionIndex(search, part.y, first_row)


def _index_features(index: _PartitionIndex) -> tuple[Any, ...]:
    """Return the number of features, the metric and its parameters."""
    search = index.search
    return search.n_features_in_, search.effective_metric_, search.effective_metric_params_


def _index_content(index: _PartitionIndex) -> tuple[Any, Any]:
    """Return X and y of the partition."""
    return training_rows(index.search), index.y


def _search_partition(index: _PartitionIndex, block: Part, k: int) -> tuple[Any, Any, Any]:
    """Return distances, row numbers and targets of the nearest rows of one partition."""
    n = min(k, index.search.n_samples_fit_)
    if block.n_rows == 0:
        return np.empty((0, n)), np.empty((0, n), dtype=np.int64), index.y[:0].repeat(n, axis=0)
    distances, rows = index.search.kneighbors(np.asarray(block.X), n)
    return distances, rows + index.first_row, index.y[rows]


def _merge_nearest(nearest: list[tuple[Any, Any, Any]], k: int) -> tuple[Any, Any, Any]:
    """Return the nearest rows of all partitions; ties keep the order of the rows."""
    if len(nearest[0][0]) == 0:
        return np.empty((0, k)), np.empty((0, k), dtype=np.int64), nearest[0][2]
    distances, rows, targets = (
        np.concatenate([of_part[i] for of_part in nearest], axis=1) for i in range(3)
    )
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    query = np.arange(len(order))[:, np.newaxis]
    return distances[query, order], rows[query, order], targets[query, order]


def _vote(block: Part, nearest: tuple[Any, Any, Any], voter: _Voter, form: OutputForm) -> Any:
    """Predict with the local estimator from the given neighbours, without a search."""
    distances, _, targets = nearest
    model = with_neighbors(voter.model, distances, targets)
    return predict_block(block.X, getattr(model, form.method), form)


def _vote_frame(block: Part, nearest: Any, voter: _Voter, form: OutputForm) -> Any:
    """Predict for a partition of a frame, and keep its index."""
    return to_pandas(_vote(block, nearest, voter, form), block.X.index, form)


class KNeighborsClassifier(  # type: ignore[misc]
    ProbabilitiesMixin, _DaskNeighbors, neighbors.KNeighborsClassifier
):
    """Classification by the majority of the k nearest rows of all partitions.

    Each partition is indexed on its worker. A search finds the k nearest rows of each index and
    keeps the k nearest of these; among equally distant rows, the first. Predictions are therefore
    those of `spinney.neighbors.KNeighborsClassifier`, whose parameters this class has. Not
    available on Dask: "hnsw", metrics of objects other than vectors, several outputs.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from spinney.dask import KNeighborsClassifier
    >>> X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))
    >>> model = KNeighborsClassifier(3).fit(X, np.array([0, 0, 1, 1]))
    >>> model.predict(X).compute()
    array([0, 0, 1, 1])
    """

    _local_class = neighbors.KNeighborsClassifier

    def fit(self, X: Any, y: Any) -> KNeighborsClassifier:
        """Index the rows of each partition.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Classes. A partition may lack some of them.

        Returns
        -------
        KNeighborsClassifier
            The estimator.
        """
        return self._fit_indexes(X, y)  # type: ignore[no-any-return]

    def _encode(self, rows: DaskRows, shape: tuple[int, ...]) -> DaskRows:
        if shape:
            raise ValueError(f"y: expected one axis, got {len(shape) + 1}")
        self.classes_ = merge_classes(rows.compute(count_classes))[0]
        self.outputs_2d_ = False
        return rows.map(encode_partition_classes, self.classes_, None).persist()

    def _decode(self, y: Any) -> Any:
        return self.classes_[y]


class KNeighborsRegressor(_DaskNeighbors, neighbors.KNeighborsRegressor):  # type: ignore[misc]
    """Regression by the mean target of the k nearest rows of all partitions.

    The search is that of `spinney.dask.KNeighborsClassifier`; the parameters are those of
    `spinney.neighbors.KNeighborsRegressor`.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from spinney.dask import KNeighborsRegressor
    >>> X = da.from_array(np.arange(4.0)[:, None], chunks=(2, 1))
    >>> model = KNeighborsRegressor(2).fit(X, np.array([0.0, 0.0, 1.0, 1.0]))
    >>> model.predict(np.array([[1.5]]))
    array([0.5])
    """

    _local_class = neighbors.KNeighborsRegressor

    def fit(self, X: Any, y: Any) -> KNeighborsRegressor:
        """Index the rows of each partition.

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            Targets.

        Returns
        -------
        KNeighborsRegressor
            The estimator.
        """
        return self._fit_indexes(X, y)  # type: ignore[no-any-return]

    def _encode(self, rows: DaskRows, shape: tuple[int, ...]) -> DaskRows:
        self._dask_width = int(shape[0]) if shape else None
        return rows

    def _output_shape(self, method: str, *arguments: Any) -> tuple[int, ...]:
        return () if self._dask_width is None else (self._dask_width,)
