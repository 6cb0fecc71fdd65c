"""Rows as Dask keeps them: partitions of X, with the targets and weights that belong to them.

A *part* is one partition, read and checked: plain arrays, or a pandas frame with its columns in the
order of the first. Whatever a learner asks of all rows it asks part by part, where they are, and
adds up the answers in the order of the parts: so neither the number of workers nor their speed has
a say in the result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

__all__ = [
    "Part",
    "Rows",
    "as_collection",
    "is_dask",
    "is_path",
    "join_beside",
    "join_parts",
    "leave_pool",
    "need_dask",
    "read_rows",
    "within_task",
    "workers_of",
]


def need_dask() -> Any:
    """Import Dask, or say how to get it."""
    try:
        import dask
    except ImportError as error:  # pragma: no cover - where it is not installed
        raise ImportError("spinney.dask needs Dask: pip install 'spinney[dask]'") from error
    return dask


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or a Dask data frame."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def is_path(X: Any) -> bool:
    """Whether X is a path of Parquet files, or a list of such."""
    if isinstance(X, list) and X:
        return all(isinstance(one, str | os.PathLike) for one in X)
    return isinstance(X, str | os.PathLike)


@dataclass(frozen=True)
class Part:
    """One partition.

    Parameters
    ----------
    X : ndarray or pandas.DataFrame
        Its rows; there may be none.
    y, weights, group : ndarray or None
        What belongs to them.
    """

    X: Any
    y: Any = None
    weights: Any = None
    group: Any = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])


@dataclass(frozen=True)
class Rows:
    """All partitions.

    Parameters
    ----------
    parts : list of Delayed
        Each will be a `Part`.
    names : list or None
        Names of the columns of frames.
    """

    parts: list[Any]
    names: list[Any] | None

    def ask(self, question: Callable[..., Any], *more: Any) -> list[Any]:
        """Call a function with each part where it is, and give the answers in their order."""
        dask = need_dask()
        ask = dask.delayed(question, pure=False)
        return list(dask.compute(*[ask(part, *more) for part in self.parts]))

    def change(self, change: Callable[..., Part], *more: Any) -> Rows:
        """Give the same rows with every part changed by a function."""
        dask = need_dask()
        change = dask.delayed(change, pure=False)
        return Rows([change(part, *more) for part in self.parts], self.names)

    def keep(self) -> Rows:
        """Have the workers keep the parts, for several questions."""
        return Rows(list(need_dask().persist(*self.parts)), self.names)

    def take(self, which: Sequence[int]) -> Rows:
        """Give some of the parts."""
        return Rows([self.parts[i] for i in which], self.names)

    def gather(self) -> Part:
        """Bring all rows here."""
        return join_parts(list(need_dask().compute(*self.parts)))


def read_rows(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    *,
    n_parts: int = 0,
    optimized: bool = True,
) -> Rows:
    """Divide rows into partitions, or take those that there are.

    Parameters
    ----------
    X : Dask array, Dask data frame, path of Parquet files or list of such, or other rows
        The rows. What is in memory is divided.
    y, sample_weight, group : Dask array or series, array, name of a column of X, or None
        What belongs to them; partitions as those of X. A column that is named is not in X then.
    n_parts : int
        Into how many parts to divide what is in memory; 0: as many as there are workers.
    optimized : bool
        Whether Dask optimizes the graph of X. False where X becomes part of a Dask array, which
        is optimized as a whole: a second pass gives other tasks the keys of the first.

    Returns
    -------
    Rows
        Nothing is computed yet.
    """
    dask = need_dask()
    X = as_collection(X, n_parts, borders=_group_borders(X, group))
    beside = {"y": y, "sample_weight": sample_weight, "group": group}
    columns = list(X.columns) if hasattr(X, "columns") else None
    for name, given in beside.items():
        if isinstance(given, str) and given not in (columns or ()):
            has = "no names" if columns is None else f"the columns {columns[:20]}"
            raise ValueError(f"{name}={given!r}: expected a column of X, which has {has}")
    taken = {given for given in beside.values() if isinstance(given, str)}
    names = None if columns is None else [column for column in columns if column not in taken]
    n_columns = X.shape[1] if names is None else len(names)
    parts = _delayed(X, optimized)
    lengths: list[Any] = [None]
    others = [_beside(name, given, X, len(parts), lengths) for name, given in beside.items()]
    # Keys of their own for each call: graph optimization may rename or fuse what lies below a key.
    make = dask.delayed(_make_part, pure=False)
    made = [
        make(part, *(other[i] for other in others), i, names, sorted(taken), int(n_columns))
        for i, part in enumerate(parts)
    ]
    return Rows(made, names)


def as_collection(X: Any, n_parts: int = 0, known: Any = None, borders: Any = None) -> Any:
    """Make X a Dask array of blocks of whole rows, or a Dask data frame.

    Parameters
    ----------
    X : object
        What was given as rows.
    n_parts : int
        Into how many parts to divide what is in memory; 0: as many as there are workers.
    known : sequence of str or None
        Columns that a model knows: of a file that has more, its target for one, they are taken.
    borders : ndarray of int, or None
        Numbers of rows before which what is in memory may be divided; None: all.
    """
    need_dask()
    if is_path(X):
        import dask.dataframe as dd

        paths = [os.fspath(one) for one in X] if isinstance(X, list) else os.fspath(X)
        frame = dd.read_parquet(paths)
        has_more = known is not None and set(known) < set(frame.columns)
        return frame[list(known)] if has_more else frame
    # What xarray and Dask's bags turn into; Dask's arrays would turn, too, but need not.
    for turn in ("to_dask_dataframe", "to_dataframe"):
        if hasattr(X, turn) and not hasattr(X, "columns") and not hasattr(X, "chunks"):
            _refuse_odd(X)
            X = getattr(X, turn)()
            break
    if not is_dask(X) and is_dask(getattr(X, "data", None)):
        X = X.data
    if not is_dask(X):
        return _divide(X, n_parts, borders)
    _refuse_odd(X)
    if hasattr(X, "columns"):
        return X
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(f"X: expected rows and columns, got {getattr(X, 'ndim', 0)} axes")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _refuse_odd(X: Any) -> None:
    """Name what is Dask's but no table. A Delayed says that it has any attribute."""
    from dask.delayed import Delayed

    if isinstance(X, Delayed):
        raise TypeError(
            "X: expected a Dask array or a Dask data frame, got a Delayed; "
            "dask.dataframe.from_delayed and dask.array.from_delayed make one of it"
        )
    if hasattr(X, "to_frame") and X.ndim == 1:
        raise ValueError("X: expected rows and columns, got a Dask series; X.to_frame() has both")


def _group_borders(X: Any, group: Any) -> Any:
    """Where rows in memory may be divided: the rows of a group stay together."""
    if group is None or is_dask(X) or is_path(X) or is_dask(group):
        return None
    if isinstance(group, str):
        if group not in getattr(X, "columns", getattr(X, "column_names", ())):
            return None
        group = X[group]
    group = np.asarray(group)
    return np.flatnonzero(group[1:] != group[:-1]) + 1


def _ends_at(borders: Any, n_rows: int, n_parts: int) -> Any:
    """Divide rows into about equal parts that end at borders."""
    borders = np.append(borders[borders < n_rows], n_rows)
    wanted = np.linspace(0, n_rows, n_parts + 1)[1:]
    return np.unique(borders[np.searchsorted(borders, wanted)])


def _divide(X: Any, n_parts: int, borders: Any) -> Any:
    """Divide rows that are in memory."""
    import narwhals.stable.v2 as nw

    n_parts = n_parts or _n_workers()
    if type(X) is not np.ndarray and nw.dependencies.is_into_dataframe(X):
        import dask.dataframe as dd

        frame = _as_pandas(X)
        if borders is not None:
            ends = _ends_at(borders, len(frame), n_parts)
            pieces = [frame.iloc[a:b] for a, b in pairwise([0, *ends])]
            return dd.from_map(_itself, pieces, meta=frame.iloc[:0])
        return dd.from_pandas(frame, npartitions=max(1, min(n_parts, len(frame))), sort=False)
    import dask.array as da

    if hasattr(X, "toarray"):  # sparse
        raise TypeError(
            f"X: expected dense rows for partitions, got {type(X).__name__} of shape {X.shape}; "
            "X.toarray() is dense"
        )
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X: expected rows and columns, got {X.ndim} axes")
    if borders is not None:
        sizes = np.diff(_ends_at(borders, len(X), n_parts), prepend=0)
        return da.from_array(X, chunks=(tuple(map(int, sizes)), X.shape[1]))
    rows = max(1, -(-len(X) // max(1, n_parts)))
    return da.from_array(X, chunks=(rows, X.shape[1]))


def _itself(piece: Any) -> Any:
    return piece


def _as_pandas(X: Any) -> Any:
    """Make a frame one of pandas whose columns are of the kinds that they were.

    Booleans with missing values would become objects, which are read as categories.
    """
    import narwhals.stable.v2 as nw
    import pandas as pd

    frame = nw.from_native(X, eager_only=True)
    plain = frame.to_pandas()
    if isinstance(X, pd.DataFrame):
        return plain
    for name, kind in frame.schema.items():
        if kind == nw.Boolean and plain[name].dtype == object:
            plain[name] = plain[name].astype("boolean")
    return plain


def _n_workers() -> int:
    """Workers of the cluster in use, or processors where there is none."""
    try:
        from distributed import get_client

        return max(1, len(workers_of(get_client())))
    except (ImportError, ValueError):
        return os.cpu_count() or 1


def workers_of(client: Any) -> dict[str, Any]:
    """Give what the scheduler knows about each worker, by address.

    A client asks by itself now and then, and then for no workers at all; that answer may come
    between ours and our reading of it, which is why they are counted.
    """
    while True:
        info = client.scheduler_info(n_workers=-1)
        workers: dict[str, Any] = info["workers"]
        is_whole = len(workers) == info.get("n_workers", len(workers))  # older versions tell all
        if is_whole or client.status != "running":  # of a lost scheduler no better answer comes
            return workers


def within_task() -> bool:
    """Whether this is called by a task of a Dask worker."""
    try:
        from distributed import get_worker

        get_worker()
    except (ImportError, ValueError):
        return False
    return True


def leave_pool() -> None:
    """Leave the pool of the worker's threads if this is a task: those it waits for need them."""
    if within_task():
        from distributed import secede

        with suppress(KeyError):  # it has left already
            secede()


def _delayed(collection: Any, optimized: bool = True) -> list[Any]:
    parts = collection.to_delayed(optimize_graph=optimized)
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _beside(name: str, given: Any, X: Any, n_parts: int, lengths: list[Any]) -> list[Any]:
    """Give the partitions of what lies beside X."""
    if given is None or isinstance(given, str):  # a column comes with its partition
        return [given] * n_parts
    if not is_dask(given):
        import dask.array as da

        if lengths[0] is None:
            lengths[0] = _lengths(X)
        given = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
        if given.ndim == 0 and name == "sample_weight":  # one number is the weight of all rows
            given = np.full(sum(lengths[0]), given)
        if given.ndim == 0:
            raise ValueError(f"{name}: expected {sum(lengths[0])} rows as in X, got {given}")
        if len(given) != sum(lengths[0]):
            raise ValueError(f"{name}: expected {sum(lengths[0])} rows as in X, got {len(given)}")
        ends = np.cumsum([0, *lengths[0]])
        pieces = [given[a:b] for a, b in pairwise(ends)]
        return [need_dask().delayed(piece, pure=False, traverse=False) for piece in pieces]
    import dask.array as da

    if isinstance(given, da.Array):
        if given.ndim == 2 and given.numblocks[1] > 1:
            given = given.rechunk({1: -1})
        known = isinstance(X, da.Array) and not np.isnan([*X.chunks[0], *given.chunks[0]]).any()
        if known:
            if given.shape[0] != X.shape[0]:
                raise ValueError(
                    f"{name}: expected {X.shape[0]} rows as in X, got {given.shape[0]}"
                )
            given = given.rechunk({0: X.chunks[0]})
    parts = _delayed(given)
    if len(parts) != n_parts:
        raise ValueError(
            f"{name}: expected {n_parts} partitions, as X has, got {len(parts)}; rechunk or "
            "repartition one of them"
        )
    return parts


def _lengths(X: Any) -> list[int]:
    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return [int(n) for n in X.chunks[0]]
    dask = need_dask()
    count = dask.delayed(len, pure=False)
    return [int(n) for n in dask.compute(*[count(part) for part in _delayed(X)])]


def _make_part(
    X: Any,
    y: Any,
    weights: Any,
    group: Any,
    number: int,
    names: Any,
    taken: list[str],
    n_columns: int,
) -> Part:
    """Check what one partition has, and take the columns that are no part of X out of it."""
    frame = X
    if names is not None:
        if sorted(map(str, X.columns)) != sorted(map(str, [*names, *taken])):
            raise ValueError(
                f"X: expected the columns {[*names, *taken]} in partition {number}, got "
                f"{list(X.columns)}"
            )
        X = X[names] if list(X.columns) != names else X
    elif getattr(X, "ndim", 0) != 2 or X.shape[1] != n_columns:
        raise ValueError(
            f"X: expected {n_columns} columns in partition {number}, got the shape {np.shape(X)}"
        )
    beside: list[Any] = []
    for name, given in (("y", y), ("sample_weight", weights), ("group", group)):
        if given is None:
            beside.append(None)
            continue
        given = frame[given] if isinstance(given, str) else given
        values = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
        if len(values) != X.shape[0]:
            raise ValueError(
                f"{name}: expected {X.shape[0]} rows in partition {number}, as X has, got "
                f"{len(values)}"
            )
        if name == "y" and values.dtype == object and _has_missing(values):
            raise ValueError(
                f"Input y contains NaN: expected a label in each row, got none in "
                f"some rows of partition {number}"
            )
        beside.append(values)
    return Part(X, *beside)


def _has_missing(values: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(values).any())


def join_parts(parts: Sequence[Part]) -> Part:
    """Put parts one after the other; categories are those of all parts, by their names."""
    if not parts:
        raise ValueError("parts: expected at least one, got none")
    filled = _filled(parts)
    if len(filled) == 1:
        return filled[0]
    beside = [join_beside(name, filled) for name in ("y", "weights", "group")]
    return Part(_join_rows([part.X for part in filled]), *beside)


def _filled(parts: Sequence[Part]) -> list[Part]:
    return [part for part in parts if part.n_rows] or list(parts[:1])


def join_beside(name: str, parts: Sequence[Part]) -> Any:
    """Put what lies beside the rows of parts one after the other: y, weights or group."""
    values = [getattr(part, name) for part in _filled(parts)]
    if values[0] is None or len(values) == 1:
        return values[0]
    if len({one.dtype.kind in "OUS" for one in values}) > 1:
        raise ValueError(f"{name}: expected one kind of values in all partitions, got several")
    return np.concatenate(values)


def _join_rows(rows: Sequence[Any]) -> Any:
    if not hasattr(rows[0], "columns"):
        return np.concatenate(rows)
    import pandas as pd

    columns = {}
    for name in rows[0].columns:
        pieces = [frame[name] for frame in rows]
        texts = {_is_text(piece) for piece in pieces if not piece.isna().all()}
        if len(texts) > 1:
            raise ValueError(
                f"X: expected column {name!r} to hold numbers in all partitions or categories in "
                "all, got both"
            )
        if all(isinstance(piece.dtype, pd.CategoricalDtype) for piece in pieces):
            joined = pd.api.types.union_categoricals([piece.cat.as_unordered() for piece in pieces])
            columns[name] = pd.Series(joined)
        elif any(isinstance(piece.dtype, pd.CategoricalDtype) for piece in pieces):
            values = np.concatenate([piece.to_numpy(dtype=object) for piece in pieces])
            columns[name] = pd.Series(pd.Categorical(values))
        else:
            columns[name] = pd.concat(pieces, ignore_index=True)
    return pd.DataFrame(columns, copy=False)


def _is_text(column: Any) -> bool:
    """Whether a column of pandas holds categories: by its type, or strings."""
    import pandas as pd

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return True
    return (
        bool(pd.api.types.is_string_dtype(kind))
        if kind.kind != "O"
        else any(isinstance(value, str) for value in column)
    )
