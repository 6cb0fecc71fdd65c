"""An approximate index of nearest neighbours."""

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
from sklearn.utils.validation import check_is_fitted, validate_data

from spinney import _core
from spinney.models.methods import ModelMethods
from spinney.neighbors._hnsw_file import read_index, write_index
from spinney.neighbors._hnsw_tuning import find_ef
from spinney.runtime.threads import effective_n_jobs

__all__ = ["HNSW"]

_METRICS = ("euclidean", "cosine", "inner_product")
_DEFAULT_EF = 64
_MOST_HELD_OUT = 500  # rows that wait outside the graph until it is tuned
_FEWEST_HELD_OUT = 20  # fewer say little about the recall: search exactly instead

Vectors = NDArray[np.float32]
Ids = NDArray[np.int64]
Filter = NDArray[np.bool_] | Callable[[Ids], Any]


class HNSW(ModelMethods, BaseEstimator):
    """An approximate index of nearest neighbours: a graph that queries walk through.

    Every vector is linked to some that are close to it but far from each other (a hierarchical
    navigable small world graph, Malkov and Yashunin, 2018). A query starts at the top of a few
    sparse layers and goes on to whatever is closer; on the ground it keeps the `ef` closest
    vectors it has met. A larger `ef` finds more of the true neighbours and takes longer. The graph
    is the same for any number of threads.

    Parameters
    ----------
    metric : {"euclidean", "cosine", "inner_product"}, default="euclidean"
        Distance. Cosine distance is one minus the cosine; a row of zeros is at distance one from
        everything. Of inner products the largest come first, as distances with a minus sign.
    M : int, default=16
        Links that a new vector gets on each layer; on the ground it may end up with twice as many.
    ef_construction : int, default=200
        Candidates among which links are chosen.
    ef_search : int or None, default=None
        The `ef` of queries that do not say. None means 64, or what `target_recall` asks for.
    target_recall : float or None, default=None
        Share of the true ten nearest neighbours that queries should find, such as 0.95. `fit` then
        looks for the smallest `ef` that finds them, for rows that it has kept out of the graph.
    codes : {"uint8"} or None, default=None
        "uint8" keeps a copy of each vector in bytes, walks by these and measures the best again.
        Faster, for a quarter more memory; for Euclidean and cosine distance.
    random_state : int, RandomState instance or None, default=0
        Decides which vectors stand on upper layers, and which wait outside the graph.
    n_jobs : int or None, default=None
        Threads; they do not change the result. None means the value of
        `spinney.set_num_threads`.

    Attributes
    ----------
    ef_search_ : int
        The `ef` of queries that do not say.
    recall_ : float or None
        Recall that the last tuning reached on queries outside the graph.
    recall_k_ : int or None
        Neighbours asked for in that tuning.
    ids_ : ndarray of shape (n_vectors,)
        Ids of the vectors, in no particular order.
    n_features_in_ : int
        Columns.

    Notes
    -----
    Searches may run on several threads at once. What changes the index must run alone.

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
    _ids: NDArray[Any]  # by slot, the number that the core gives a vector
    _lookup: tuple[Ids, Ids] | None  # ids in their order, and their slots
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
        """Build the graph of the rows of X; their ids are 0, 1, 2, …

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Numbers, which are kept as float32.
        y : None
            Not used.

        Returns
        -------
        HNSW
            The index itself.
        """
        self._check_parameters()
        rows = self._read(X, reset=True)
        rng = check_random_state(self.random_state)
        self._seed = int(rng.randint(np.iinfo(np.int32).max))
        self._start()
        n_rows = len(rows)
        self._index.reserve(n_rows)
        held_out = min(_MOST_HELD_OUT, n_rows // 10)
        if self.target_recall is None or held_out < _FEWEST_HELD_OUT:
            self._insert(rows, np.arange(n_rows))
            if self.target_recall is not None:
                self._set_ef(n_rows, 1.0, min(10, n_rows))
        else:
            outside, inside = _divide(n_rows, held_out, self._seed)
            self._insert(rows[inside], inside)
            self._tune(rows[outside], min(10, len(inside)), float(self.target_recall))
            self._insert(rows[outside], outside)
        self._ids = self._ids[self._index.reorder()]
        return self

    def add(self, X: Any, ids: Any = None) -> HNSW:
        """Add vectors to the index.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Numbers.
        ids : array of int or None, default=None
            An id for each row, none of which is in use. None goes on from the largest so far.

        Returns
        -------
        HNSW
            The index itself.
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
        named = _as_ids(ids)
        if len(named) != len(rows):
            raise ValueError(f"ids: expected {len(rows)}, one for each row of X, got {len(named)}")
        if len(np.unique(named)) != len(named):
            raise ValueError("ids: the same id was given to several rows")
        taken = self._places_of(named) >= 0
        if taken.any():
            raise ValueError(f"ids: {named[taken][0]} is in use already")
        self._insert(rows, named)
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
            Numbers.
        k : int, default=5
            Neighbours of each row.
        ef : int or None, default=None
            Candidates that a walk keeps: more find more of the true neighbours. None means
            `ef_search_`; less than k means k. With as many as there are vectors the search is
            exact.
        filter : array of bool, function or None, default=None
            Which vectors may be an answer: ``filter[id]`` says so, or ``filter(ids)`` for an array
            of all ids. Where it leaves few, all of them are measured instead of walking.
        return_distance : bool, default=True
            Whether distances are returned too.
        n_jobs : int or None, default=None
            Threads of this search; None means the `n_jobs` of the index. They do not change the
            result.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Distances, ascending; only if `return_distance`. Infinite where `filter` leaves fewer
            than k vectors.
        ids : ndarray of shape (n_queries, k)
            Ids of the neighbours; -1 where there are none.
        """
        check_is_fitted(self, "_index")
        rows = self._read(X, reset=False, fewest=0)
        wanted = _at_least_one("k", k)
        if wanted > len(self):
            raise ValueError(f"k must be at most the number of vectors, {len(self)}, got {wanted}")
        width = self.ef_search_ if ef is None else _at_least_one("ef", ef)
        allowed = None if filter is None else self._allowed(filter)
        n_threads = effective_n_jobs(self.n_jobs if n_jobs is None else n_jobs)
        distances, slots = self._search(rows, wanted, width, allowed, n_threads)
        missing = slots == np.iinfo(np.uint32).max
        slots[missing] = 0
        ids = self._ids[slots].astype(np.int64)
        ids[missing] = -1
        return (distances, ids) if return_distance else ids

    def delete(self, ids: Any) -> HNSW:
        """Take vectors out: they are never an answer again.

        They stay in the graph, as places that walks pass through.

        Parameters
        ----------
        ids : int or array of int
            Their ids.

        Returns
        -------
        HNSW
            The index itself.
        """
        check_is_fitted(self, "_index")
        named = _as_ids(np.atleast_1d(ids))
        places = self._places_of(named)
        if (places < 0).any():
            raise ValueError(f"ids: there is no vector {named[places < 0][0]}")
        self._index.erase(np.ascontiguousarray(places, dtype=np.uint32))
        assert self._lookup is not None
        known, slots = self._lookup
        slots[np.searchsorted(known, named)] = -1
        return self

    def tune(self, X_queries: Any = None, k: int = 10, target_recall: float = 0.95) -> HNSW:
        """Set `ef_search_` to the smallest that reaches a recall.

        The recall is the share of the true k nearest neighbours (found by measuring all) that the
        index finds. Queries must not be vectors of the index: those are linked to their neighbours
        and are found too easily.

        Parameters
        ----------
        X_queries : array of shape (n_queries, n_features) or None, default=None
            Queries like those to come; some hundreds. None keeps a sample of the vectors out of a
            second graph of the others, which takes as long as `fit` did.
        k : int, default=10
            Neighbours asked for.
        target_recall : float, default=0.95
            Recall to reach.

        Returns
        -------
        HNSW
            The index itself.
        """
        check_is_fitted(self, "_index")
        target = _as_recall(target_recall)
        n_vectors = len(self)
        wanted = _at_least_one("k", k)
        if wanted > n_vectors:
            raise ValueError(f"k must be at most the number of vectors, {n_vectors}, got {wanted}")
        if X_queries is not None:
            self._tune(self._read(X_queries, reset=False), wanted, target)
            return self
        held_out = min(_MOST_HELD_OUT, n_vectors // 10)
        if held_out < _FEWEST_HELD_OUT or wanted > n_vectors - held_out:
            self._set_ef(n_vectors, 1.0, wanted)
            return self
        state = self._index.state()
        rows = state["vectors"].reshape(-1, self.n_features_in_)
        if self._index.n_deleted > 0:
            rows = rows[state["deleted"] == 0]
        outside, inside = _divide(n_vectors, held_out, self._seed)
        others = self._new_index()
        others.add(np.ascontiguousarray(rows[inside]), effective_n_jobs(self.n_jobs))
        self._tune(rows[outside], wanted, target, others)
        return self

    def save(self, path: str | Path) -> None:  # type: ignore[override]
        """Write the index to a file: arrays and JSON, in the safetensors format.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced when all is written.
        """
        check_is_fitted(self, "_index")
        write_index(Path(os.fsdecode(path)), self._index.state(), self._kept())

    @classmethod
    def load(cls, path: str | Path) -> HNSW:  # type: ignore[override]
        """Read an index that `save` has written.

        Sizes and numbers are checked before they are used: a file that was cut off or changed
        raises a ValueError.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        HNSW
            The index.
        """
        state, kept = read_index(Path(os.fsdecode(path)))
        index = cls()
        try:
            index._restore(state, kept)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: not an index of this version ({error})") from error
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
        """Memory of vectors, bytes, links and ids."""
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
        if self.metric not in _METRICS:
            raise ValueError(f"metric must be one of {', '.join(_METRICS)}, got {self.metric!r}")
        if self.codes not in (None, "uint8"):
            raise ValueError(f"codes must be None or 'uint8', got {self.codes!r}")
        if self.codes is not None and self.metric == "inner_product":
            raise ValueError("codes='uint8' serves euclidean and cosine distance only")
        if not 2 <= _at_least_one("M", self.M) <= 1024:
            raise ValueError(f"M must be in 2 … 1024, got {self.M}")
        _at_least_one("ef_construction", self.ef_construction)
        if self.ef_search is not None:
            _at_least_one("ef_search", self.ef_search)
        if self.target_recall is not None:
            _as_recall(self.target_recall)

    def _read(self, X: Any, *, reset: bool, fewest: int = 1) -> Vectors:
        rows: Vectors = validate_data(
            self, X, reset=reset, dtype=np.float32, order="C", ensure_min_samples=fewest
        )
        # Squares of differences, and their sums, must be float32 too.
        bound = np.sqrt(np.finfo(np.float32).max / (4.0 * rows.shape[1]))
        if self.metric != "cosine" and rows.size and max(rows.max(), -rows.min()) > bound:
            raise ValueError(f"X has values beyond {bound:.1e}: too large to measure in float32")
        return np.ascontiguousarray(rows)

    def _options(self) -> dict[str, Any]:
        return {
            "metric": self.metric,
            "n_links": int(self.M),
            "ef_construction": int(self.ef_construction),
            "has_codes": self.codes is not None,
            "seed": self._seed,
        }

    def _new_index(self) -> _core.Hnsw:
        return _core.Hnsw(self.n_features_in_, **self._options())

    def _index_of(self, arrays: dict[str, Any]) -> _core.Hnsw:
        return _core.Hnsw.from_state(self.n_features_in_, **self._options(), **arrays)

    def _start(self) -> None:
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
            # All of them, unless somebody interrupted.
            self._name(ids[: len(self._index) - before])

    def _name(self, ids: Ids) -> None:
        self._ids = np.concatenate([self._ids, _compact(ids)])
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

    def _places_of(self, ids: Ids) -> Ids:
        # The slot of each id, or -1. Deleted ids are none.
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

    def _allowed(self, which: Filter) -> NDArray[np.uint8]:
        ids = self._ids.astype(np.int64)
        if callable(which):
            answer = np.asarray(which(ids))
            if answer.shape != ids.shape:
                raise ValueError(
                    f"filter: expected {len(ids)} answers, one for each id, got {answer.shape}"
                )
        else:
            mask = np.asarray(which)
            if mask.ndim != 1 or mask.dtype != np.bool_:
                raise ValueError("filter must be an array of bool with one dimension, or callable")
            if len(ids) and (ids.min() < 0 or ids.max() >= len(mask)):
                raise ValueError(
                    f"filter has {len(mask)} entries, but ids run from {ids.min()} to {ids.max()}"
                )
            answer = mask[ids]
        return np.ascontiguousarray(answer.astype(np.bool_).view(np.uint8))

    def _kept(self) -> dict[str, Any]:
        # What the file has beside the graph.
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

    def _restore(self, state: dict[str, Any], kept: dict[str, Any]) -> None:
        self.set_params(**kept["parameters"])
        self._check_parameters()
        self.n_features_in_ = _at_least_one("n_features", kept["n_features"])
        self._seed = int(kept["seed"])
        index = self._index_of(state)
        self._start()
        ids = _as_ids(kept["ids"])
        if len(ids) != len(index):
            raise ValueError(f"expected {len(index)} ids, got {len(ids)}")
        self._index = index
        self._ids = _compact(ids)
        live = self._ids if index.n_deleted == 0 else self._ids[state["deleted"] == 0]
        if len(np.unique(live)) != len(live):
            raise ValueError("an id occurs twice")
        self._next_id = max(int(kept["next_id"]), int(ids.max()) + 1 if len(ids) else 0)
        self.ef_search_ = _at_least_one("ef_search", kept["ef_search"])
        recall, recall_k = kept["recall"], kept["recall_k"]
        self.recall_ = None if recall is None else float(recall)
        self.recall_k_ = None if recall_k is None else int(recall_k)


def _divide(n_rows: int, n_outside: int, seed: int) -> tuple[Ids, Ids]:
    # Rows kept out of a graph and the others, both in their order.
    outside = np.zeros(n_rows, dtype=bool)
    outside[np.random.default_rng(seed).choice(n_rows, n_outside, replace=False)] = True
    return np.flatnonzero(outside), np.flatnonzero(~outside)


def _as_ids(ids: Any) -> Ids:
    array = np.asarray(ids)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError("ids must be integers, in an array with one dimension")
    return array.astype(np.int64)


def _compact(ids: Ids) -> NDArray[Any]:
    # Half the memory where ids are small, as they mostly are.
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
