"""Nearest neighbours among rows in partitions: each is searched, the nearest of all are kept."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from spinney import neighbors
from spinney.dask._linear import count_classes, encode_classes, merge_classes
from spinney.dask._model import (
    DaskModel,
    ProbabilitiesMixin,
    answer_block,
    bring,
    frame_answer,
)
from spinney.dask._rows import Part, as_collection, is_dask, is_path, need_dask, read_rows

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor"]

_NEEDS_ALL_ROWS = ("seuclidean", "mahalanobis")  # unless `metric_params` says what they measure by
_FOREIGN = ("precomputed", "gower", "edit")


@dataclass(frozen=True)
class _Shelf:
    """The index of a part, with the targets of its rows and the number of its first row."""

    search: Any
    y: Any
    first_row: int


class _Voter:
    """The estimator that votes on neighbors, and the Dask objects its answers are computed from.

    Dask's optimization of a graph drops the futures of persisted tasks. A lazy answer has this
    object in its graph, so the indexes of its fit stay on the workers as long as the answer.

    Parameters
    ----------
    model : estimator
        Local, with the attributes that predictions read.
    kept : tuple
        Indexes and queries. They stay with the client.
    """

    def __init__(self, model: Any, kept: tuple[Any, ...] = ()) -> None:
        self.model, self.kept = model, kept

    def __reduce__(self) -> Any:
        return _Voter, (self.model,)


class _DaskNeighbors(DaskModel[Any]):
    """What both share: fitting, and searches over all parts."""

    def _shelve(self, X: Any, y: Any) -> Any:
        self._validate_params()  # type: ignore[attr-defined]
        self._refuse()
        if y is None:
            raise ValueError(f"y: {type(self).__name__} requires targets, got None")
        rows = read_rows(X, y).keep()
        facts = rows.ask(_facts, type(self).__name__)
        filled = [i for i, one in enumerate(facts) if one[0]]
        if not filled:
            raise ValueError("X: expected at least one row, got none in any partition")
        rows = rows.take(filled)
        sizes = [facts[i][0] for i in filled]
        common = np.result_type(*[facts[i][1] for i in filled])
        if len({facts[i][2] for i in filled}) > 1:
            raise ValueError("y: expected the same number of columns in all partitions")
        rows = self._encode(rows, facts[filled[0]][2])
        params = {
            name: getattr(self, name)
            for name in ("n_neighbors", "algorithm", "leaf_size", "metric", "p", "metric_params")
        }
        search = neighbors.NearestNeighbors(**params, n_jobs=1)
        dask = need_dask()
        shelve = dask.delayed(_shelve_part, pure=False)
        firsts = np.cumsum([0, *sizes[:-1]])
        shelves = [
            shelve(part, search, int(first), common)
            for part, first in zip(rows.parts, firsts, strict=True)
        ]
        # Of the rows themselves only what the indexes hold stays.
        self._dask_shelves = list(dask.persist(*shelves))
        about = dask.delayed(_about, pure=False)
        told = dask.compute(about(self._dask_shelves[0]))[0]
        self.n_features_in_, self.effective_metric_, self.effective_metric_params_ = told
        vars(self).pop("feature_names_in_", None)
        if rows.names is not None and all(isinstance(name, str) for name in rows.names):
            self.feature_names_in_ = np.asarray(rows.names, dtype=object)
        self.n_samples_fit_ = int(sum(sizes))
        return self

    def _held_out_rows(self) -> Any:
        raise ValueError(
            f"{type(self).__name__}: of rows in partitions none are left out to tell errors from; "
            "to_local() brings all rows here and has intervals and sets"
        )

    def _held_on(self, calibration: Any) -> Any:
        return super()._held_on(bring(calibration))  # type: ignore[misc]

    def _encode(self, rows: Any, shape: tuple[int, ...]) -> Any:
        """Make targets what votes need; shape: of the targets of one row."""
        return rows

    def _refuse(self) -> None:
        metric, given = self.metric, self.metric_params or {}  # type: ignore[attr-defined]
        if self.algorithm == "hnsw":  # type: ignore[attr-defined]
            raise ValueError("algorithm='hnsw': expected an exact search for rows in partitions")
        if isinstance(metric, str) and metric in _FOREIGN:
            raise ValueError(f"metric={metric!r}: expected a metric of vectors for partitions")
        if isinstance(metric, str) and metric in _NEEDS_ALL_ROWS and not given:
            raise ValueError(
                f"metric={metric!r}: expected metric_params for rows in partitions, as nothing is "
                "estimated from all rows"
            )

    def to_local(self) -> Any:
        """Bring all rows here, and fit the local estimator to them.

        Returns
        -------
        estimator
            Of the class of the same name in `spinney.neighbors`.
        """
        self._check_shelves()
        dask = need_dask()
        content = dask.delayed(_content, pure=False)
        told = dask.compute(*[content(shelf) for shelf in self._dask_shelves])
        X, y = (np.concatenate([one[k] for one in told]) for k in (0, 1))
        if hasattr(self, "feature_names_in_"):
            import pandas as pd

            X = pd.DataFrame(X, columns=self.feature_names_in_)
        local = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        return local.fit(X, self._decode(y))

    def _check_shelves(self) -> None:
        """Refuse to answer where the workers that have the indexes are out of reach."""
        check_is_fitted(self)
        for shelf in self._dask_shelves:
            for value in dict(shelf.__dask_graph__()).values():
                if getattr(value, "status", "") in ("cancelled", "lost"):
                    raise RuntimeError(
                        f"{type(self).__name__}: the workers that hold its rows are out of reach; "
                        "expected the client of fit to be open (to_local() brings the rows here "
                        "as long as it is)"
                    )

    def _read_queries(self, X: Any) -> Any:
        """Make X a Dask collection whose columns are those of fit."""
        X = as_collection(X, 1, getattr(self, "feature_names_in_", None))
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
            The queries. None, the neighbours of the rows of fit among themselves, is refused.
        n_neighbors : int, default=None
            How many; None is the parameter of the estimator.
        return_distance : bool, default=True
            Whether distances are wanted, too.

        Returns
        -------
        neigh_dist : ndarray of shape (n_queries, n_neighbors)
            Distances, ascending; only with `return_distance`.
        neigh_ind : ndarray of shape (n_queries, n_neighbors)
            Numbers of rows, counted over all partitions of fit; of equally distant ones the smaller
            comes first.
        """
        self._check_shelves()
        if X is None:
            raise ValueError("X: expected queries for rows in partitions, got None")
        k = self.n_neighbors if n_neighbors is None else n_neighbors  # type: ignore[attr-defined]
        dask = need_dask()
        blocks = read_rows(self._read_queries(X)).parts
        told = dask.compute(*[self._nearest(block, int(k)) for block in blocks])
        told = [one for one in told if len(one[0])] or list(told[:1])
        distances, rows = (np.concatenate([one[i] for one in told]) for i in (0, 1))
        return (distances, rows) if return_distance else rows

    def _nearest(self, block: Any, k: int) -> Any:
        """Have all parts searched for the queries of a block."""
        if k > self.n_samples_fit_:
            raise ValueError(
                f"Expected n_neighbors <= n_samples_fit, but n_neighbors = {k}, n_samples_fit = "
                f"{self.n_samples_fit_}"
            )
        dask = need_dask()
        search, merge = dask.delayed(_search, pure=False), dask.delayed(_merge, pure=False)
        return merge([search(shelf, block, k) for shelf in self._dask_shelves], k)

    def _answer(self, method: str, X: Any) -> Any:
        self._check_shelves()
        dask = need_dask()
        is_here = not is_dask(X) and not is_path(X)
        X = self._read_queries(X)
        voter = self._local_class(**self.get_params(deep=False))  # type: ignore[attr-defined]
        for name in ("classes_", "outputs_2d_", "n_features_in_", "n_samples_fit_"):
            if name in vars(self):
                setattr(voter, name, getattr(self, name))
        voter._fit_method = "brute"
        kept = (tuple(self._dask_shelves), X)
        voter = dask.delayed(_Voter(voter, kept), pure=False, traverse=False)
        width, dtype = self._n_answers(method), self._answer_dtype(method)
        labels = self._labels(method)
        rows = read_rows(X, optimized=is_here or hasattr(X, "columns"))
        classes, names = self._answers_of(method), rows.names
        ask = dask.delayed(_vote if is_here or names is None else _vote_frame, pure=False)
        about = () if is_here or names is None else (labels, classes)
        shape = () if width is None else (width,)
        k = self.n_neighbors  # type: ignore[attr-defined]
        out = [
            ask(block, self._nearest(block, k), voter, method, shape, dtype, *about)
            for block in rows.parts
        ]
        if is_here:
            told = dask.compute(*out)
            return np.concatenate([np.asarray(one) for one in told])
        if not hasattr(X, "columns"):
            import dask.array as da

            blocks = [
                da.from_delayed(block, (n, *shape), dtype=dtype)
                for block, n in zip(out, X.chunks[0], strict=True)
            ]
            # Dask leaves out empty blocks, too, but keeps their tasks in the graph.
            return da.concatenate([one for one in blocks if one.shape[0] != 0] or blocks[:1])
        import dask.dataframe as dd

        empty, index = np.empty((0, *shape), dtype=dtype), X._meta.index
        meta = frame_answer(empty, index, method, labels, classes)
        return dd.from_delayed(out, meta=meta, divisions=X.divisions, verify_meta=False)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Score predictions as the local estimator does: accuracy, or R².

        Parameters
        ----------
        X : Dask array, Dask data frame, path of Parquet files, or rows in memory
            The rows.
        y : Dask array or series, array, or name of a column of X
            What is right.
        sample_weight : as y, default=None
            Weights of rows.

        Returns
        -------
        float
            The score.
        """
        from sklearn.base import is_classifier
        from sklearn.metrics import accuracy_score, r2_score

        part = read_rows(X, y, sample_weight).gather()
        measure = accuracy_score if is_classifier(self) else r2_score
        return float(measure(part.y, self.predict(part.X), sample_weight=part.weights))


def _facts(part: Part, name: str) -> tuple[int, Any, tuple[int, ...]]:
    """Number of rows, type of their values, shape of the targets of a row."""
    if part.n_rows:
        check_array(part.y, ensure_2d=False, dtype=None, input_name="y", estimator=name)
    kinds = list(part.X.dtypes) if hasattr(part.X, "dtypes") else [part.X.dtype]
    return part.n_rows, np.asarray(part.X).dtype if len(kinds) else float, part.y.shape[1:]


def _shelve_part(part: Part, search: Any, first_row: int, dtype: Any) -> _Shelf:
    from sklearn.base import clone

    X = np.asarray(part.X)
    search = clone(search).fit(X.astype(dtype, copy=False) if dtype.kind != "O" else X)
    return _Shelf(search, part.y, first_row)


def _about(shelf: _Shelf) -> tuple[Any, ...]:
    search = shelf.search
    return search.n_features_in_, search.effective_metric_, search.effective_metric_params_


def _content(shelf: _Shelf) -> tuple[Any, Any]:
    return shelf.search._fit_X, shelf.y


def _search(shelf: _Shelf, block: Part, k: int) -> tuple[Any, Any, Any]:
    """The nearest rows of one part, with their targets."""
    n = min(k, shelf.search.n_samples_fit_)
    if block.n_rows == 0:
        return np.empty((0, n)), np.empty((0, n), dtype=np.int64), shelf.y[:0].repeat(n, axis=0)
    distances, rows = shelf.search.kneighbors(np.asarray(block.X), n)
    return distances, rows + shelf.first_row, shelf.y[rows]


def _merge(told: list[tuple[Any, Any, Any]], k: int) -> tuple[Any, Any, Any]:
    """The nearest of all parts. They come in the order of their rows, and so do ties."""
    if len(told[0][0]) == 0:
        return np.empty((0, k)), np.empty((0, k), dtype=np.int64), told[0][2]
    distances, rows, targets = (np.concatenate([one[i] for one in told], axis=1) for i in range(3))
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    query = np.arange(len(order))[:, np.newaxis]
    return distances[query, order], rows[query, order], targets[query, order]


def _vote(
    block: Part, nearest: tuple[Any, Any, Any], voter: _Voter, method: str, shape: Any, dtype: Any
) -> Any:
    """Ask the local estimator, which is told the neighbours instead of looking for them."""
    distances, _, targets = nearest
    model = copy(voter.model)
    model._y = targets.reshape(distances.size, *targets.shape[2:])
    found = np.arange(distances.size).reshape(distances.shape)
    model.kneighbors = lambda X: (distances, found)
    return answer_block(block.X, getattr(model, method), shape, dtype)


def _vote_frame(block: Part, nearest: Any, voter: Any, method: str, *more: Any) -> Any:
    """Ask about a partition of a frame; the answer has its index."""
    *form, labels, classes = more
    out = _vote(block, nearest, voter, method, *form)
    return frame_answer(out, block.X.index, method, labels, classes)


class KNeighborsClassifier(  # type: ignore[misc]
    ProbabilitiesMixin, _DaskNeighbors, neighbors.KNeighborsClassifier
):
    """The class that most of the k nearest rows of all partitions have.

    Every partition becomes an index of its own, where it is; each is asked for the k nearest rows,
    and the k nearest of these are the answer, of equally distant rows the first: it is that of
    `spinney.neighbors.KNeighborsClassifier`, whose parameters this class has. Not on Dask: "hnsw",
    metrics of other things than vectors, several outputs.

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
        return self._shelve(X, y)  # type: ignore[no-any-return]

    def _encode(self, rows: Any, shape: tuple[int, ...]) -> Any:
        if shape:
            raise ValueError(f"y: expected one axis, got {len(shape) + 1}")
        self.classes_ = merge_classes(rows.ask(count_classes))[0]
        self.outputs_2d_ = False
        return rows.change(encode_classes, self.classes_, None).keep()

    def _decode(self, y: Any) -> Any:
        return self.classes_[y]


class KNeighborsRegressor(_DaskNeighbors, neighbors.KNeighborsRegressor):  # type: ignore[misc]
    """The mean of the targets of the k nearest rows of all partitions.

    As `spinney.dask.KNeighborsClassifier`, with the parameters of
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
        return self._shelve(X, y)  # type: ignore[no-any-return]

    def _encode(self, rows: Any, shape: tuple[int, ...]) -> Any:
        self._dask_width = int(shape[0]) if shape else None
        return rows

    def _n_answers(self, method: str, *more: Any) -> int | None:
        return self._dask_width
