"""Rows in Dask partitions: blocks of X with the targets, weights and groups of their rows.

A `Part` is one partition that has been read and checked: plain arrays, or a pandas frame with its
columns in the order of the first partition. Estimators compute sums and other statistics partition
by partition, where the partitions are, and combine the results in the order of the partitions.
The number and the speed of the workers therefore do not change a result.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from spinney.dask._cluster import get_client_or_none, import_dask, workers_of

__all__ = [
    "DaskRows",
    "Part",
    "as_collection",
    "is_dask",
    "is_path",
    "join_partitions",
    "join_row_values",
    "read_rows",
]


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or a Dask data frame."""
    return type(X).__module__.split(".")[0] == "dask" and hasattr(X, "__dask_graph__")


def is_path(X: Any) -> bool:
    """Return whether X is a path of Parquet files, or a list of paths."""
    if isinstance(X, list) and X:
        return all(isinstance(path, str | os.PathLike) for path in X)
    return isinstance(X, str | os.PathLike)


@dataclass(frozen=True)
class Part:
    """One partition.

    Parameters
    ----------
    X : ndarray or pandas.DataFrame
        Its rows; there may be none.
    y, weights, group : ndarray or None
        Target, weight and group of each row.
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
class DaskRows:
    """All partitions.

    Parameters
    ----------
    parts : list of Delayed
        Each computes a `Part`.
    names : list or None
        Column names, if the partitions are frames.
    """

    parts: list[Any]
    names: list[Any] | None

    def compute(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a function on each partition, and return the results in their order."""
        dask = import_dask()
        call = dask.delayed(function, pure=False)
        return list(dask.compute(*[call(part, *arguments) for part in self.parts]))

    def map(self, function: Callable[..., Part], *arguments: Any) -> DaskRows:
        """Return rows whose partitions a function will compute from these."""
        call = import_dask().delayed(function, pure=False)
        return DaskRows([call(part, *arguments) for part in self.parts], self.names)

    def persist(self) -> DaskRows:
        """Start the computation of the partitions, and keep them on the workers."""
        return DaskRows(list(import_dask().persist(*self.parts)), self.names)

    def select(self, indices: Sequence[int]) -> DaskRows:
        """Return some of the partitions."""
        return DaskRows([self.parts[i] for i in indices], self.names)

    def gather(self) -> Part:
        """Compute all partitions and join them in this process."""
        return join_partitions(list(import_dask().compute(*self.parts)))


def read_rows(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    *,
    n_partitions: int = 0,
    optimized: bool = True,
) -> DaskRows:
    """Partition rows, or use the partitions that X has.

    Parameters
    ----------
    X : Dask array, Dask data frame, path of Parquet files, list of paths, or rows in memory
        The rows. Rows in memory are partitioned.
    y, sample_weight, group : Dask array or series, array, name of a column of X, or None
        Values of each row, in the same partitions as X. A named column is removed from X.
    n_partitions : int, default=0
        Number of partitions of rows in memory; 0 means the number of workers.
    optimized : bool, default=True
        Whether Dask optimizes the graph of X here. Must be False if X becomes part of a Dask
        array, which is optimized as a whole: a second optimization would assign the keys of the
        first to other tasks.

    Returns
    -------
    DaskRows
        Lazy partitions.
    """
    dask = import_dask()
    boundaries = _group_boundaries(X, group)
    X = as_collection(X, n_partitions=n_partitions, boundaries=boundaries)
    row_values = {"y": y, "sample_weight": sample_weight, "group": group}
    columns = list(X.columns) if hasattr(X, "columns") else None
    for name, given in row_values.items():
        if isinstance(given, str) and given not in (columns or ()):
            has = "no names" if columns is None else f"the columns {columns[:20]}"
            raise ValueError(f"{name}={given!r}: expected a column of X, which has {has}")
    removed = {given for given in row_values.values() if isinstance(given, str)}
    names = None if columns is None else [column for column in columns if column not in removed]
    n_columns = X.shape[1] if names is None else len(names)
    parts = _to_delayed(X, optimized)
    lengths = _lengths(X) if any(map(_is_in_memory, row_values.values())) else []
    values = [
        _partition_values(name, given, lengths)
        if _is_in_memory(given)
        else _delayed_values(name, given, X, len(parts))
        for name, given in row_values.items()
    ]
    # New keys for each call: graph optimization may rename or fuse the tasks below a key.
    check = dask.delayed(_check_partition, pure=False)
    checked = [
        check(
            part,
            *(of_partition[i] for of_partition in values),
            index=i,
            names=names,
            removed=sorted(removed),
            n_columns=int(n_columns),
        )
        for i, part in enumerate(parts)
    ]
    return DaskRows(checked, names)


def as_collection(
    X: Any, *, n_partitions: int = 0, known_columns: Any = None, boundaries: Any = None
) -> Any:
    """Convert X to a Dask array of blocks of entire rows, or to a Dask data frame.

    Parameters
    ----------
    X : object
        The rows in any accepted form.
    n_partitions : int, default=0
        Number of partitions of rows in memory; 0 means the number of workers.
    known_columns : sequence of str or None, default=None
        Columns that a fitted model uses. Other columns of a file, such as the target, are omitted.
    boundaries : ndarray of int or None, default=None
        Indices of the rows in memory that may start a partition; None allows all.
    """
    import_dask()
    if is_path(X):
        import dask.dataframe as dd  # optional dependency

        paths = [os.fspath(path) for path in X] if isinstance(X, list) else os.fspath(X)
        frame = dd.read_parquet(paths)
        has_more = known_columns is not None and set(known_columns) < set(frame.columns)
        return frame[list(known_columns)] if has_more else frame
    # Methods of xarray and of Dask bags. Dask arrays have one, too, but need no conversion.
    for method in ("to_dask_dataframe", "to_dataframe"):
        if hasattr(X, method) and not hasattr(X, "columns") and not hasattr(X, "chunks"):
            _check_dask_type(X)
            X = getattr(X, method)()
            break
    if not is_dask(X) and is_dask(getattr(X, "data", None)):
        X = X.data
    if not is_dask(X):
        return _partition_in_memory(X, n_partitions or _n_workers(), boundaries)
    _check_dask_type(X)
    if hasattr(X, "columns"):
        return X
    if getattr(X, "ndim", 0) != 2:
        raise ValueError(f"X: expected rows and columns, got {getattr(X, 'ndim', 0)} axes")
    return X.rechunk({1: -1}) if X.numblocks[1] > 1 else X


def _check_dask_type(X: Any) -> None:
    """Raise an error if X is a Dask object but not a table."""
    from dask.delayed import Delayed  # optional dependency

    # Before any hasattr: a Delayed claims to have every attribute.
    if isinstance(X, Delayed):
        raise TypeError(
            "X: expected a Dask array or a Dask data frame, got a Delayed; convert it with "
            "dask.dataframe.from_delayed or dask.array.from_delayed"
        )
    if hasattr(X, "to_frame") and X.ndim == 1:
        raise ValueError("X: expected rows and columns, got a Dask series; pass X.to_frame()")


def _group_boundaries(X: Any, group: Any) -> Any:
    """Return the rows that may start a partition if groups stay together."""
    if group is None or is_dask(X) or is_path(X) or is_dask(group):
        return None
    if isinstance(group, str):
        if group not in getattr(X, "columns", getattr(X, "column_names", ())):
            return None
        group = X[group]
    group = np.asarray(group)
    return np.flatnonzero(group[1:] != group[:-1]) + 1


def _partition_ends(boundaries: Any, n_rows: int, n_partitions: int) -> Any:
    """Return the ends of about equal partitions that end at boundaries."""
    boundaries = np.append(boundaries[boundaries < n_rows], n_rows)
    equal_ends = np.linspace(0, n_rows, n_partitions + 1)[1:]
    return np.unique(boundaries[np.searchsorted(boundaries, equal_ends)])


def _partition_in_memory(X: Any, n_partitions: int, boundaries: Any) -> Any:
    """Convert rows in memory to a Dask collection."""
    if type(X) is not np.ndarray and nw.dependencies.is_into_dataframe(X):
        import dask.dataframe as dd  # optional dependency

        frame = _as_pandas(X)
        if boundaries is not None:
            ends = _partition_ends(boundaries, len(frame), n_partitions)
            blocks = [frame.iloc[a:b] for a, b in pairwise([0, *ends])]
            return dd.from_map(_identity, blocks, meta=frame.iloc[:0])
        n_partitions = max(1, min(n_partitions, len(frame)))
        return dd.from_pandas(frame, npartitions=n_partitions, sort=False)
    import dask.array as da  # optional dependency

    if hasattr(X, "toarray"):  # sparse
        raise TypeError(
            f"X: expected dense rows for partitions, got {type(X).__name__} of shape {X.shape}; "
            "pass X.toarray()"
        )
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X: expected rows and columns, got {X.ndim} axes")
    if boundaries is not None:
        sizes = np.diff(_partition_ends(boundaries, len(X), n_partitions), prepend=0)
        return da.from_array(X, chunks=(tuple(map(int, sizes)), X.shape[1]))
    n_rows = max(1, -(-len(X) // max(1, n_partitions)))
    return da.from_array(X, chunks=(n_rows, X.shape[1]))


def _identity(block: Any) -> Any:
    return block


def _as_pandas(X: Any) -> Any:
    """Convert any frame to pandas, and keep the kinds of its columns.

    Booleans with missing values would become objects, which are read as categories.
    """
    import pandas as pd  # optional dependency

    frame = nw.from_native(X, eager_only=True)
    plain = frame.to_pandas()
    if isinstance(X, pd.DataFrame):
        return plain
    for name, kind in frame.schema.items():
        if kind == nw.Boolean and plain[name].dtype == object:
            plain[name] = plain[name].astype("boolean")
    return plain


def _n_workers() -> int:
    """Return the number of workers, or of processors if there is no cluster."""
    client = get_client_or_none()
    return max(1, len(workers_of(client))) if client is not None else os.cpu_count() or 1


def _to_delayed(collection: Any, optimized: bool = True) -> list[Any]:
    parts = collection.to_delayed(optimize_graph=optimized)
    return list(parts.ravel()) if isinstance(parts, np.ndarray) else list(parts)


def _is_in_memory(values: Any) -> bool:
    """Return whether y, weights or groups are an array in memory or one number."""
    return not (values is None or isinstance(values, str) or is_dask(values))


def _partition_values(name: str, values: Any, lengths: list[int]) -> list[Any]:
    """Partition an array in memory like X, whose partitions have these lengths."""
    n_rows = sum(lengths)
    values = values.to_numpy() if hasattr(values, "to_numpy") else np.asarray(values)
    if values.ndim == 0 and name == "sample_weight":  # one number is the weight of all rows
        values = np.full(n_rows, values)
    if values.ndim == 0:
        raise ValueError(f"{name}: expected {n_rows} rows as in X, got {values}")
    if len(values) != n_rows:
        raise ValueError(f"{name}: expected {n_rows} rows as in X, got {len(values)}")
    ends = np.cumsum([0, *lengths])
    blocks = [values[a:b] for a, b in pairwise(ends)]
    return [import_dask().delayed(block, pure=False, traverse=False) for block in blocks]


def _delayed_values(name: str, values: Any, X: Any, n_partitions: int) -> list[Any]:
    """Return what each partition of X reads its y, weights or groups from."""
    if values is None or isinstance(values, str):  # a column comes with its partition
        return [values] * n_partitions
    import dask.array as da  # optional dependency

    if isinstance(values, da.Array):
        if values.ndim == 2 and values.numblocks[1] > 1:
            values = values.rechunk({1: -1})
        has_sizes = (
            isinstance(X, da.Array) and not np.isnan([*X.chunks[0], *values.chunks[0]]).any()
        )
        if has_sizes:
            if values.shape[0] != X.shape[0]:
                raise ValueError(
                    f"{name}: expected {X.shape[0]} rows as in X, got {values.shape[0]}"
                )
            values = values.rechunk({0: X.chunks[0]})
    parts = _to_delayed(values)
    if len(parts) != n_partitions:
        raise ValueError(
            f"{name}: expected {n_partitions} partitions, as X has, got {len(parts)}; rechunk or "
            "repartition one of them"
        )
    return parts


def _lengths(X: Any) -> list[int]:
    """Return the number of rows of each partition, and compute it if necessary."""
    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return [int(n) for n in X.chunks[0]]
    dask = import_dask()
    count = dask.delayed(len, pure=False)
    return [int(n) for n in dask.compute(*[count(part) for part in _to_delayed(X)])]


def _check_partition(
    X: Any,
    y: Any,
    weights: Any,
    group: Any,
    *,
    index: int,
    names: Any,
    removed: list[str],
    n_columns: int,
) -> Part:
    """Check one partition, and separate y, weights and groups from the columns of X."""
    frame = X
    if names is not None:
        if sorted(map(str, X.columns)) != sorted(map(str, [*names, *removed])):
            raise ValueError(
                f"X: expected the columns {[*names, *removed]} in partition {index}, got "
                f"{list(X.columns)}"
            )
        X = X[names] if list(X.columns) != names else X
    elif getattr(X, "ndim", 0) != 2 or X.shape[1] != n_columns:
        raise ValueError(
            f"X: expected {n_columns} columns in partition {index}, got the shape {np.shape(X)}"
        )
    row_values: list[Any] = []
    for name, given in (("y", y), ("sample_weight", weights), ("group", group)):
        if given is None:
            row_values.append(None)
            continue
        given = frame[given] if isinstance(given, str) else given
        values = given.to_numpy() if hasattr(given, "to_numpy") else np.asarray(given)
        if len(values) != X.shape[0]:
            raise ValueError(
                f"{name}: expected {X.shape[0]} rows in partition {index}, as X has, got "
                f"{len(values)}"
            )
        if name == "y" and values.dtype == object and _has_missing(values):
            raise ValueError(
                f"Input y contains NaN: expected a label in each row, got none in "
                f"some rows of partition {index}"
            )
        row_values.append(values)
    return Part(X, *row_values)


def _has_missing(values: Any) -> bool:
    import pandas as pd  # optional dependency

    return bool(pd.isna(values).any())


def join_partitions(parts: Sequence[Part]) -> Part:
    """Concatenate partitions; categories are merged by name."""
    if not parts:
        raise ValueError("parts: expected at least one, got none")
    filled = _nonempty(parts)
    if len(filled) == 1:
        return filled[0]
    row_values = [join_row_values(name, filled) for name in ("y", "weights", "group")]
    return Part(_join_tables([part.X for part in filled]), *row_values)


def _nonempty(parts: Sequence[Part]) -> list[Part]:
    """Return the partitions that have rows; the first one if none has."""
    return [part for part in parts if part.n_rows] or list(parts[:1])


def join_row_values(name: str, parts: Sequence[Part]) -> Any:
    """Concatenate "y", "weights" or "group" of partitions."""
    values = [getattr(part, name) for part in _nonempty(parts)]
    if values[0] is None or len(values) == 1:
        return values[0]
    if len({array.dtype.kind in "OUS" for array in values}) > 1:
        raise ValueError(f"{name}: expected one kind of values in all partitions, got several")
    return np.concatenate(values)


def _join_tables(tables: Sequence[Any]) -> Any:
    if not hasattr(tables[0], "columns"):
        return np.concatenate(tables)
    import pandas as pd  # optional dependency

    columns = {}
    for name in tables[0].columns:
        blocks = [frame[name] for frame in tables]
        kinds = {_is_text(block) for block in blocks if not block.isna().all()}
        if len(kinds) > 1:
            raise ValueError(
                f"X: expected column {name!r} to hold numbers in all partitions or categories in "
                "all, got both"
            )
        if all(isinstance(block.dtype, pd.CategoricalDtype) for block in blocks):
            joined = pd.api.types.union_categoricals([block.cat.as_unordered() for block in blocks])
            columns[name] = pd.Series(joined)
        elif any(isinstance(block.dtype, pd.CategoricalDtype) for block in blocks):
            values = np.concatenate([block.to_numpy(dtype=object) for block in blocks])
            columns[name] = pd.Series(pd.Categorical(values))
        else:
            columns[name] = pd.concat(blocks, ignore_index=True)
    return pd.DataFrame(columns, copy=False)


def _is_text(column: Any) -> bool:
    """Return whether a pandas column holds categories or strings."""
    import pandas as pd  # optional dependency

    kind = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return True
    return (
        bool(pd.api.types.is_string_dtype(kind))
        if kind.kind != "O"
        else any(isinstance(value, str) for value in column)
    )
