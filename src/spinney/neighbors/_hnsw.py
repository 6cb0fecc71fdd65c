"""HNSW: an approximate index of nearest neighbours."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.data.sklearn_versions import validate_data
from spinney.models.methods import ModelMethods
from spinney.neighbors._hnsw_file import read_index, write_index
from spinney.neighbors._hnsw_tuning import find_ef
from spinney.runtime.threads import effective_n_jobs

__all__ = ["HNSW"]

_HNSW_METRICS = ("euclidean", "cosine", "inner_product")
_DEFAULT_EF = 64
_MAX_HELD_OUT = 500  # rows that are added to the graph after it was tuned on them
_MIN_HELD_OUT = 20  # with fewer rows the recall is uncertain, and the search is exact instead

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
Filter = NDArray[np.bool_] | Callable[[Ids], Any]


class HNSW(ModelMethods, BaseEstimator):
    """Search approximate nearest neighbours in a graph.

    The index is a hierarchical navigable small world graph (Malkov and Yashunin, 2018). Each vector
    has links to vectors that are close to it but far from each other. A query starts in the
    sparsest layer and moves to closer vectors, layer by layer. In the bottom layer, which has all
    vectors, it keeps the `ef` closest vectors found so far. A larger `ef` finds more of the true
    neighbours and takes longer. The graph does not depend on the number of threads.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}, default="euclidean"
        The distance. Cosine distance is one minus the cosine; a row of zeros has distance one to
        all rows. The distance of "inner_product" is the negative inner product.
    M : int, default=16
        Number of links of a new vector in each layer, from 2 to 1024. In the bottom layer a vector
        has at most twice as many links.
    ef_construction : int, default=200
        Number of candidates from which the links of a new vector are selected.
    ef_search : int or None, default=None
        Default `ef` of queries. None means 64, or the value that reaches `target_recall`.
    target_recall : float or None, default=None
        Fraction of the true ten nearest neighbours that queries should find, such as 0.95. `fit`
        then selects the smallest `ef` that finds them, with held-out rows as queries.
    codes : {"uint8"} or None, default=None
        "uint8" also stores each vector as bytes. Searches use the bytes, and the distances of the
        best candidates are computed again from the vectors. This is faster and takes a quarter
        more memory. Only for Euclidean and cosine distance.
    random_state : int, RandomState instance or None, default=0
        Controls the vectors in the upper layers, and the held-out rows.
    n_jobs : int or None, default=None
        Number of threads; None means the value of `spinney.set_num_threads`. The result does not
        depend on it.

    Attributes
    ----------
    ef_search_ : int
        Default `ef` of queries.
    recall_ : float or None
        Recall of the last tuning, on queries outside the graph.
    recall_k_ : int or None
        Number of neighbours of each query in that tuning.
    ids_ : ndarray of shape (n_vectors,)
        Ids of the vectors, in no particular order.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    Several threads may search at once. `fit`, `add`, `delete` and `tune` must not run at the same
    time as other methods.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.neighbors import HNSW
    >>> X = np.random.default_rng(0).normal(size=(1000, 8)).astype(np.float32)
    >>> index = HNSW().fit(X)
    >>> distances, ids = index.query(X[:2], k=3)
    >>> ids[:, 0].tolist(), distances[:, 0].tolist()
    ([0, 1], [0.0, 0.0])
    """

    _index: _core.Hnsw
    _ids: NDArray[Any]  # by slot, the core's number of a vector
    _lookup: tuple[Ids, Ids] | None  # sorted ids and their slots
    ef_search_: int
    recall_: float | None
    recall_k_: int | None

    def __init__(
        self,
        metric: str = "euclidean",
        *,
        M: int = 16,
        ef_construction: int = 200,
        ef_search: int | None = None,
        target_recall: float | None = None,
        codes: str | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.metric = metric
        self.M = M
        self.ef_construction = ef_construction
        self.ef_search = ef_search
        self.target_recall = target_recall
        self.codes = codes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> HNSW:
        """Build the graph of the rows of X, with the ids 0, 1, 2, …

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The vectors, which are stored as float32.
        y : None
            Not used.

        Returns
        -------
        HNSW
            This index.
        """
        self._check_parameters()
        rows = self._read(X, reset=True)
        rng = check_random_state(self.random_state)
        self._seed = int(rng.randint(np.iinfo(np.int32).max))
        self._start()
        n_rows = len(rows)
        self._index.reserve(n_rows)
        n_held_out = min(_MAX_HELD_OUT, n_rows // 10)
        if self.target_recall is None or n_held_out < _MIN_HELD_OUT:
            self._insert(rows, np.arange(n_rows))
            if self.target_recall is not None:
                self._set_ef(n_rows, 1.0, min(10, n_rows))
        else:
            held_out, train = _hold_out_rows(n_rows, n_held_out, self._seed)
            self._insert(rows[train], train)
            self._tune(rows[held_out], min(10, len(train)), float(self.target_recall))
            self._insert(rows[held_out], held_out)
        self._ids = self._ids[self._index.reorder()]
        return self

    def add(self, X: Any, ids: Any = None) -> HNSW:
        """Add vectors to the index.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The vectors.
        ids : array of int or None, default=None
            A new id for each row. None means consecutive ids after the largest id so far.

        Returns
        -------
        HNSW
            This index.
        """
        is_new = not hasattr(self, "_index")
        if is_new:
            self._check_parameters()
        rows = self._read(X, reset=is_new)
        if is_new:
            rng = check_random_state(self.random_state)
            self._seed = int(rng.randint(np.iinfo(np.int32).max))
            self._start()
        if ids is None:
            self._insert(rows, np.arange(self._next_id, self._next_id + len(rows)))
            return self
        new_ids = _as_ids(ids)
        if len(new_ids) != len(rows):
            raise ValueError(
                f"ids: expected {len(rows)} ids, one for each row of X, got {len(new_ids)}"
            )
        if len(np.unique(new_ids)) != len(new_ids):
            raise ValueError("ids: expected distinct ids, got an id of several rows")
        is_used = self._slots_of(new_ids) >= 0
        if is_used.any():
            raise ValueError(
                f"ids: expected new ids, but {new_ids[is_used][0]} is in use; delete it first"
            )
        self._insert(rows, new_ids)
        return self

    def query(
        self,
        X: Any,
        k: int = 5,
        *,
        ef: int | None = None,
        filter: Filter | None = None,
        return_distance: bool = True,
        n_jobs: int | None = None,
    ) -> Any:
        """Find the nearest neighbours of each row of X.

        Parameters
        ----------
        X : array of shape (n_queries, n_features)
            The queries.
        k : int, default=5
            Number of neighbours of each query.
        ef : int or None, default=None
            Number of candidates of a search, at least k; more candidates find more of the true
            neighbours. None means `ef_search_`. The search is exact if `ef` is the number of
            vectors.
        filter : array of bool, function or None, default=None
            The vectors that may be returned: those with a true ``filter[id]``, or a true value in
            ``filter(ids)``, which gets an array of all ids. If few vectors pass the filter, the
            search is exact.
        return_distance : bool, default=True
            Whether to return distances as well.
        n_jobs : int or None, default=None
            Number of threads; None means the `n_jobs` of the index. The result does not depend on
            it.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Distances, ascending; only if `return_distance`. They end with infinite distances if
            fewer than k vectors pass the filter.
        ids : ndarray of shape (n_queries, k)
            Ids of the neighbours; -1 for missing neighbours.
        """
        check_is_fitted(self, "_index")
        rows = self._read(X, reset=False, min_rows=0)
        k = _at_least_one("k", k)
        if k > len(self):
            raise ValueError(f"k must be at most the number of vectors, {len(self)}, got {k}")
        ef = self.ef_search_ if ef is None else _at_least_one("ef", ef)
        allowed = None if filter is None else self._allowed(filter)
        n_threads = effective_n_jobs(self.n_jobs if n_jobs is None else n_jobs)
        distances, slots = self._search(rows, k, ef, allowed, n_threads)
        missing = slots == np.iinfo(np.uint32).max
        slots[missing] = 0
        ids = self._ids[slots].astype(np.int64)
        ids[missing] = -1
        return (distances, ids) if return_distance else ids

    def delete(self, ids: Any) -> HNSW:
        """Delete vectors: they are no longer returned by queries.

        They remain in the graph as nodes that searches pass through.

        Parameters
        ----------
        ids : int or array of int
            Ids of the vectors.

        Returns
        -------
        HNSW
            This index.
        """
        check_is_fitted(self, "_index")
        ids = _as_ids(np.atleast_1d(ids))
        deleted = self._slots_of(ids)
        if (deleted < 0).any():
            raise ValueError(
                f"ids: expected ids of the index, but it has no vector {ids[deleted < 0][0]}"
            )
        self._index.erase(np.ascontiguousarray(deleted, dtype=np.uint32))
        assert self._lookup is not None
        known, slots = self._lookup
        slots[np.searchsorted(known, ids)] = -1
        return self

    def tune(self, X_queries: Any = None, k: int = 10, target_recall: float = 0.95) -> HNSW:
        """Set `ef_search_` to the smallest value that reaches a recall.

        The recall is the fraction of the true k nearest neighbours that the index finds. Queries
        must not be vectors of the index: those have links to their neighbours, so their recall is
        too high.

        Parameters
        ----------
        X_queries : array of shape (n_queries, n_features) or None, default=None
            Some hundreds of representative queries. None builds a second graph without a sample of
            the vectors, which are then the queries; this takes as long as `fit`.
        k : int, default=10
            Number of neighbours of each query.
        target_recall : float, default=0.95
            The recall to reach, above 0 and at most 1.

        Returns
        -------
        HNSW
            This index.
        """
        check_is_fitted(self, "_index")
        target = _as_recall(target_recall)
        n_vectors = len(self)
        k = _at_least_one("k", k)
        if k > n_vectors:
            raise ValueError(f"k must be at most the number of vectors, {n_vectors}, got {k}")
        if X_queries is not None:
            self._tune(self._read(X_queries, reset=False), k, target)
            return self
        n_held_out = min(_MAX_HELD_OUT, n_vectors // 10)
        if n_held_out < _MIN_HELD_OUT or k > n_vectors - n_held_out:
            self._set_ef(n_vectors, 1.0, k)
            return self
        state = self._index.state()
        rows = state["vectors"].reshape(-1, self.n_features_in_)
        if self._index.n_deleted > 0:
            rows = rows[state["deleted"] == 0]
        held_out, train = _hold_out_rows(n_vectors, n_held_out, self._seed)
        second = self._new_index()
        second.add(np.ascontiguousarray(rows[train]), effective_n_jobs(self.n_jobs))
        self._tune(rows[held_out], k, target, second)
        return self

    def save(self, path: str | Path) -> None:  # type: ignore[override]
        """Save the index to a file in the safetensors format.

        Parameters
        ----------
        path : str or Path
            The file; an existing file is replaced after the new one is complete.
        """
        check_is_fitted(self, "_index")
        write_index(Path(os.fsdecode(path)), self._index.state(), self._metadata())

    @classmethod
    def load(cls, path: str | Path) -> HNSW:  # type: ignore[override]
        """Load an index from a file that `save` wrote.

        The contents are checked: an incomplete or damaged file raises a ValueError.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        HNSW
            The index.
        """
        state, metadata = read_index(Path(os.fsdecode(path)))
        index = cls()
        try:
            index._restore(state, metadata)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"{path}: expected an HNSW index, got missing or wrong values ({error})"
            ) from error
        return index

    @property
    def ids_(self) -> Ids:
        """Ids of the vectors, in no particular order."""
        check_is_fitted(self, "_index")
        if self._index.n_deleted == 0:
            return self._ids.astype(np.int64)
        return self._ids[self._index.deleted() == 0].astype(np.int64)

    @property
    def n_bytes_(self) -> int:
        """Memory of the vectors, codes, links and ids, in bytes."""
        check_is_fitted(self, "_index")
        return int(self._index.n_bytes) + int(self._ids.nbytes)

    def __len__(self) -> int:
        return len(self._index) - int(self._index.n_deleted) if hasattr(self, "_index") else 0

    def __bool__(self) -> bool:
        # An empty index is still an index.
        return True

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = str(super().__repr__(N_CHAR_MAX))
        if not hasattr(self, "_index"):
            return text
        facts = f"{len(self)} vectors, ef_search_={self.ef_search_}"
        if self.recall_ is not None:
            facts += f", recall_={self.recall_:.3f} at k={self.recall_k_}"
        return f"{text}  # {facts}"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_index")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_index" in state:
            state["_index"] = state["_index"].state()
            state["_lookup"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = state.pop("_index", None)
        super().__setstate__(state)
        if arrays is not None:
            self._index = self._index_of(arrays)

    def _check_parameters(self) -> None:
        if self.metric not in _HNSW_METRICS:
            raise ValueError(
                f"metric must be one of {', '.join(_HNSW_METRICS)}, got {self.metric!r}"
            )
        if self.codes not in (None, "uint8"):
            raise ValueError(f"codes must be None or 'uint8', got {self.codes!r}")
        if self.codes is not None and self.metric == "inner_product":
            raise ValueError(
                "codes='uint8' requires metric='euclidean' or 'cosine', got 'inner_product'"
            )
        if not 2 <= _at_least_one("M", self.M) <= 1024:
            raise ValueError(f"M must be between 2 and 1024, got {self.M}")
        _at_least_one("ef_construction", self.ef_construction)
        if self.ef_search is not None:
            _at_least_one("ef_search", self.ef_search)
        if self.target_recall is not None:
            _as_recall(self.target_recall)

    def _read(self, X: Any, *, reset: bool, min_rows: int = 1) -> Vectors:
        rows: Vectors = validate_data(
            self, X, reset=reset, dtype=np.float32, order="C", ensure_min_samples=min_rows
        )
        # Sums of squared differences must be finite in float32.
        bound = np.sqrt(np.finfo(np.float32).max / (4.0 * rows.shape[1]))
        if self.metric != "cosine" and rows.size and max(rows.max(), -rows.min()) > bound:
            raise ValueError(
                f"X has values beyond {bound:.1e}, whose distances overflow float32; scale the "
                "columns"
            )
        return np.ascontiguousarray(rows)

    def _options(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "M": int(self.M),
            "ef_construction": int(self.ef_construction),
            "has_codes": self.codes is not None,
            "seed": self._seed,
        }

    def _new_index(self) -> _core.Hnsw:
        return _core.Hnsw(self.n_features_in_, **self._options())

    def _index_of(self, arrays: dict[str, Any]) -> _core.Hnsw:
        return _core.Hnsw.from_state(self.n_features_in_, **self._options(), **arrays)

    def _start(self) -> None:
        """Create an empty index."""
        self._index = self._new_index()
        self._ids = np.empty(0, dtype=np.int32)
        self._lookup = None
        self._next_id = 0
        self.ef_search_ = _DEFAULT_EF if self.ef_search is None else int(self.ef_search)
        self.recall_ = None
        self.recall_k_ = None

    def _insert(self, rows: Vectors, ids: Ids) -> None:
        before = len(self._index)
        try:
            self._index.add(np.ascontiguousarray(rows), effective_n_jobs(self.n_jobs))
        finally:
            # An interrupt may leave only some of the rows in the index.
            self._append_ids(ids[: len(self._index) - before])

    def _append_ids(self, ids: Ids) -> None:
        self._ids = np.concatenate([self._ids, _narrow_ids(ids)])
        self._lookup = None
        if len(ids):
            self._next_id = max(self._next_id, int(ids.max()) + 1)

    def _search(
        self, rows: Vectors, k: int, ef: int, allowed: Any, n_threads: int
    ) -> tuple[Vectors, NDArray[np.uint32]]:
        distances = np.empty((len(rows), k), dtype=np.float32)
        slots = np.empty((len(rows), k), dtype=np.uint32)
        self._index.search(
            rows,
            k=k,
            ef=ef,
            allowed=allowed,
            exact=False,
            n_threads=n_threads,
            distances=distances,
            slots=slots,
        )
        return distances, slots

    def _tune(
        self, queries: Vectors, k: int, target: float, index: _core.Hnsw | None = None
    ) -> None:
        found = find_ef(
            self._index if index is None else index,
            np.ascontiguousarray(queries),
            k,
            target,
            effective_n_jobs(self.n_jobs),
        )
        self._set_ef(*found, k)

    def _set_ef(self, ef: int, recall: float, k: int) -> None:
        self.ef_search_, self.recall_, self.recall_k_ = int(ef), float(recall), int(k)

    def _slots_of(self, ids: Ids) -> Ids:
        """Return the slot of each id; -1 for unknown and deleted ids."""
        if self._lookup is None:
            slots = np.arange(len(self._ids))
            if self._index.n_deleted > 0:
                slots = slots[self._index.deleted() == 0]
            slots = slots[np.argsort(self._ids[slots], kind="stable")]
            self._lookup = self._ids[slots].astype(np.int64), slots
        known, slots = self._lookup
        if len(known) == 0:
            return np.full(len(ids), -1)
        at = np.minimum(np.searchsorted(known, ids), len(known) - 1)
        return np.where(known[at] == ids, slots[at], -1)

    def _allowed(self, filter: Filter) -> NDArray[np.uint8]:
        """Return for each slot whether its vector passes a filter."""
        ids = self._ids.astype(np.int64)
        if callable(filter):
            passes = np.asarray(filter(ids))
            if passes.shape != ids.shape:
                raise ValueError(
                    f"filter: expected a function that returns an array of shape {ids.shape}, one "
                    f"value for each id, got shape {passes.shape}"
                )
        else:
            mask = np.asarray(filter)
            if mask.ndim != 1 or mask.dtype != np.bool_:
                raise ValueError(
                    "filter: expected a function or a one-dimensional array of bool, got "
                    f"{mask.ndim} dimensions of {mask.dtype}"
                )
            if len(ids) and (ids.min() < 0 or ids.max() >= len(mask)):
                raise ValueError(
                    f"filter: expected an entry for each id from {ids.min()} to {ids.max()}, got "
                    f"{len(mask)} entries"
                )
            passes = mask[ids]
        return np.ascontiguousarray(passes.astype(np.bool_).view(np.uint8))

    def _metadata(self) -> dict[str, Any]:
        """Return the content of a file besides the graph."""
        return {
            "parameters": {
                "metric": self.metric,
                "M": int(self.M),
                "ef_construction": int(self.ef_construction),
                "ef_search": None if self.ef_search is None else int(self.ef_search),
                "target_recall": None if self.target_recall is None else float(self.target_recall),
                "codes": self.codes,
            },
            "n_features": int(self.n_features_in_),
            "seed": self._seed,
            "next_id": self._next_id,
            "ef_search": self.ef_search_,
            "recall": self.recall_,
            "recall_k": self.recall_k_,
            "ids": self._ids.astype(np.int64),
        }

    def _restore(self, state: dict[str, Any], metadata: dict[str, Any]) -> None:
        """Set all attributes from the content of a file, after checks."""
        self.set_params(**metadata["parameters"])
        self._check_parameters()
        self.n_features_in_ = _at_least_one("n_features", metadata["n_features"])
        self._seed = int(metadata["seed"])
        index = self._index_of(state)
        self._start()
        ids = _as_ids(metadata["ids"])
        if len(ids) != len(index):
            raise ValueError(f"expected {len(index)} ids, got {len(ids)}")
        self._index = index
        self._ids = _narrow_ids(ids)
        live = self._ids if index.n_deleted == 0 else self._ids[state["deleted"] == 0]
        if len(np.unique(live)) != len(live):
            raise ValueError("expected distinct ids, got duplicates")
        self._next_id = max(int(metadata["next_id"]), int(ids.max()) + 1 if len(ids) else 0)
        self.ef_search_ = _at_least_one("ef_search", metadata["ef_search"])
        recall, recall_k = metadata["recall"], metadata["recall_k"]
        self.recall_ = None if recall is None else float(recall)
        self.recall_k_ = None if recall_k is None else int(recall_k)


def _hold_out_rows(n_rows: int, n_held_out: int, seed: int) -> tuple[Ids, Ids]:
    """Return a sorted random sample of the rows, and the other rows."""
    is_held_out = np.zeros(n_rows, dtype=bool)
    is_held_out[np.random.default_rng(seed).choice(n_rows, n_held_out, replace=False)] = True
    return np.flatnonzero(is_held_out), np.flatnonzero(~is_held_out)


def _as_ids(ids: Any) -> Ids:
    array = np.asarray(ids)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"ids: expected a one-dimensional array of integers, got {array.ndim} dimensions of "
            f"{array.dtype}"
        )
    return array.astype(np.int64)


def _narrow_ids(ids: Ids) -> NDArray[Any]:
    """Convert ids to 32 bits, for half the memory, if all of them fit."""
    bounds = np.iinfo(np.int32)
    small = len(ids) == 0 or (ids.min() >= bounds.min and ids.max() <= bounds.max)
    return ids.astype(np.int32) if small else ids


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be at least 1, got {value}")
    return int(value)


def _as_recall(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) <= 1:
        raise ValueError(f"target_recall must be above 0 and at most 1, got {value!r}")
    return float(value)
