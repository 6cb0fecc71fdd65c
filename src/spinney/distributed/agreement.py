"""Columns, labels and bins that workers with some of the rows determine together."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spinney import _core
from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.distributed.partitioned_rows import (
    PartitionedRows,
    PartitionedTable,
    partitions_of_table,
)
from spinney.distributed.totals import Totals
from spinney.runtime.memory import release_memory

__all__ = [
    "agree_on_bins",
    "agree_on_columns",
    "agree_on_labels",
    "join_schemas",
    "narrow_targets",
    "read_own_rows",
]

_SAMPLE_BYTES = 2**20  # approximate size of the sampled values of all workers in one exchange


def agree_on_columns(
    estimator: Any, X: Any, totals: Totals, categorical_features: Any
) -> tuple[Table, Schema]:
    """Return this worker's rows, and the schema of the rows of all workers.

    Names and kinds of columns must be the same at all workers; the categories of a column are those
    of all workers. A worker without rows uses the schema of the others.
    """
    own = []
    for read in _readers(X):
        schema = fit_table(estimator, read(), categorical_features=categorical_features)[1]
        own.append((schema, vars(estimator).get("feature_names_in_")))
    gathered = totals.gather([join_schemas(own)] if own else [])
    joined, names = join_schemas([one for of_worker in gathered for one in of_worker])
    estimator.n_features_in_ = joined.n_features
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = names
    return read_own_rows(estimator, X, joined), joined


def _readers(X: Any) -> list[Any]:
    """Return a function for each partition that has rows."""
    if isinstance(X, PartitionedRows):
        return [read for read, _ in X.partitions]
    return [lambda: X] if _has_rows(X) else []


def _has_rows(X: Any) -> bool:
    return bool(X.shape[0] if hasattr(X, "shape") else len(X))


def join_schemas(known: list[tuple[Schema, Any]]) -> tuple[Schema, Any]:
    """Join the schemas of partitions; raise a ValueError if their columns differ.

    Parameters
    ----------
    known : list of (Schema, ndarray or None)
        The schema of each partition and its ``feature_names_in_``, None if it has no names.

    Returns
    -------
    (Schema, ndarray or None)
        The schema with the categories of all partitions, and the names.
    """
    if not known:
        raise ValueError("X: expected at least one row, got none at any worker")
    first, names = known[0]
    for other, other_names in known:
        same = (other_names is None) == (names is None) and (
            other_names is None or list(other_names) == list(names)
        )
        if not same or other.n_features != first.n_features:
            raise ValueError(
                "X: expected the same columns in all partitions, got "
                f"{_columns(first, names)} and {_columns(other, other_names)}"
            )
    categories = []
    for f in range(first.n_features):
        values = [schema.categories[f] for schema, _ in known]
        if len({one is None for one in values}) > 1:
            name = f if names is None else repr(names[f])
            raise ValueError(
                f"X: expected column {name} to be numeric in all partitions or categorical in all, "
                "got both"
            )
        merged = None
        if values[0] is not None:
            merged = np.unique(np.concatenate([one for one in values if one is not None]))
        categories.append(merged)
    return Schema(first.names, tuple(categories)), names


def read_own_rows(estimator: Any, X: Any, schema: Schema) -> Any:
    """Return this worker's rows as a table; it may have none."""
    if isinstance(X, PartitionedRows) and len(X):
        return PartitionedTable(X, partial(read_table, estimator, schema=schema), schema.n_features)
    if isinstance(X, PartitionedRows):
        X = np.empty((0, schema.n_features))
    if _has_rows(X):
        return read_table(estimator, X, schema)
    kinds = [np.float64 if values is None else np.int32 for values in schema.categories]
    return Table(0, schema.n_features, columns=[np.empty(0, dtype=kind) for kind in kinds])


def _columns(schema: Schema, names: Any) -> str:
    return f"{schema.n_features} columns" if names is None else str(list(names))


def agree_on_labels(labels: Any, totals: Totals) -> Any:
    """Return the distinct labels of all workers, ascending."""
    own = np.unique(labels) if len(labels) else None
    gathered = [one for one in totals.gather(own) if one is not None]
    if not gathered:
        raise ValueError("y: expected at least one row, got none at any worker")
    if len({one.dtype.kind in "OUS" for one in gathered}) > 1:
        raise ValueError("y: expected labels of one kind at all workers, got numbers and strings")
    return np.unique(np.concatenate(gathered))


def narrow_targets(targets: Any) -> Any:
    """Return targets as uint8 or float32 if that is exact, to save memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        for kind in (np.uint8, np.float32):
            narrow = targets.astype(kind)
            if np.array_equal(narrow, targets):
                return narrow
    return targets


def agree_on_bins(
    table: Any,
    schema: Schema,
    *,
    max_bins: int,
    train_rows: Any,
    weights: Any,
    totals: Totals,
    n_threads: int,
) -> Any:
    """Return this worker's rows as codes of bins that are the same at all workers.

    The bins equal those that one worker with all rows would find. Numeric bin edges come from the
    same weighted sample of the training rows, which are ordered by the workers' ranks. Bins of
    categories follow from their frequencies.

    To save memory, a worker has only some columns of the sampled rows at a time, and frees its own
    sample before it codes its rows.

    Parameters
    ----------
    table : Table or PartitionedTable
        The rows of this worker.
    schema : Schema
        Columns and categories of all rows.
    max_bins : int
        Largest number of bins of a column.
    train_rows : ndarray of int or None
        Training rows, which determine the bins; None: all.
    weights : ndarray of shape (n_rows,) or None
        Weights of the rows.
    totals : Totals
        All-reduces.
    n_threads : int
        Number of threads.

    Returns
    -------
    _core.BinnedMatrix
        The codes.
    """
    n_train = table.n_rows if train_rows is None else len(train_rows)
    rank = 0 if totals.exchange is None else totals.exchange.rank
    sizes = totals.gather(n_train)
    sample = _core.sample_rows(sum(sizes))  # ascending
    n_sampled, n_before = len(sample), sum(sizes[:rank])
    own = slice(*np.searchsorted(sample, [n_before, n_before + n_train]))
    rows = sample[own].astype(np.int64) - n_before
    del sample  # with few rows, memory use is highest in the next steps
    rows = rows if train_rows is None else np.asarray(train_rows)[rows]
    sampled_units = row_units = None
    if weights is not None:
        sampled_units = _agree_on_units(weights[rows], totals)
        if any(values is not None and len(values) > max_bins for values in schema.categories):
            row_units = _weight_units(weights, totals)
    own_sample = _Sample(table, schema, rows, row_units)
    bins = _find_bins_together(own_sample, n_sampled, max_bins, sampled_units, totals)
    matrix = _core.bin_given(bins, table.n_rows)
    for first, partition in partitions_of_table(table):
        matrix.write(core_table(partition, schema), first, n_threads)
        del partition  # free its memory before the next one is read
    if isinstance(table, PartitionedTable):
        release_memory()
    matrix.complete(totals.add(matrix.missing()))
    matrix.set_code_counts(totals.add(matrix.count_codes()))
    return matrix


class _Sample:
    """Data of this worker that determine the bins of each column.

    A numeric column has the values of the sampled rows, a categorical one the number of rows of
    each category. If the rows are in memory, a few columns are read at a time, so that the sample
    needs no more memory than the codes.

    Parameters
    ----------
    table : Table or PartitionedTable
        The rows of this worker.
    schema : Schema
        Columns and categories.
    rows : ndarray of int
        Indices of the sampled rows.
    units : ndarray of uint64 or None
        Integer weights of the table's rows, for the frequencies of categories; None: 1 each.
    """

    def __init__(
        self, table: Table | PartitionedTable, schema: Schema, rows: Any, units: Any = None
    ) -> None:
        self._table, self._schema, self._rows, self._units = table, schema, rows, units
        self.n_columns = schema.n_features
        self._read: dict[int, Any] = {}
        self._step = self.n_columns
        if not isinstance(table, PartitionedTable) or table.rows.in_memory:
            n_bytes = 2 * table.n_rows * self.n_columns
            self._step = max(1, n_bytes // (8 * max(1, len(rows))))

    def take(self, f: int) -> Any:
        """Return and free the data of a column; columns must be taken in ascending order."""
        if f not in self._read:
            last = min(f + self._step, self.n_columns)
            self._read = _read_sample(
                self._table, self._schema, self._rows, self._units, range(f, last)
            )
        data = self._read.pop(f)
        return _join(data) if isinstance(data, list) else data


def _weight_units(weights: Any, totals: Totals) -> Any:
    """Return weights as integers of one scale at all workers, or None if all are 0."""
    largest = float(totals.largest(weights.max(initial=0.0))[0])
    n_all = totals.count(len(weights))
    return _core.weight_units(weights, largest, n_all) if 0 < largest < np.inf else None


def _agree_on_units(weights: Any, totals: Totals) -> Any:
    """Return the weights of the sampled rows of all workers as integers, by rank."""
    units = _weight_units(weights, totals)
    return None if units is None else np.concatenate(totals.gather(units))


def _read_sample(
    table: Table | PartitionedTable, schema: Schema, rows: Any, units: Any, columns: range
) -> dict[int, Any]:
    """Return the sampled values of each column by partition, or its category counts."""
    found: dict[int, Any] = {}
    for f in columns:
        categories = schema.categories[f]
        found[f] = [] if categories is None else np.zeros(len(categories), np.int64)
    for first, partition in partitions_of_table(table):
        here = rows[(rows >= first) & (rows < first + partition.n_rows)] - first
        # In a row-major matrix, all these columns are read in one pass over the rows.
        matrix = None
        if partition.matrix is not None:
            some = partition.matrix[:, columns.start : columns.stop]
            matrix = np.ascontiguousarray(some[here].T)
        for f, of_column in found.items():
            if isinstance(of_column, list):
                of_column.append(
                    _column_of(partition, f)[here] if matrix is None else matrix[f - columns.start]
                )
            else:
                codes = _column_of(partition, f)
                known = codes >= 0
                if units is None:
                    of_column += np.bincount(codes[known], minlength=len(of_column))
                else:
                    here_units = units[first : first + partition.n_rows].astype(np.int64)
                    np.add.at(of_column, codes[known], here_units[known])
    return found


def _find_bins_together(
    sample: _Sample, n_sampled: int, max_bins: int, units: Any, totals: Totals
) -> list[tuple[bool, Any]]:
    """Return the bins of all columns; each worker finds those of some columns.

    Samples of a few columns are exchanged at a time. A worker keeps only the columns whose bins it
    finds, until each worker has one.
    """
    rank, size = 0, 1
    if totals.exchange is not None:
        rank, size = totals.exchange.rank, totals.exchange.size
    step = max(1, _SAMPLE_BYTES // (8 * max(1, n_sampled)))
    bins: list[tuple[bool, Any]] = []
    for begin in range(0, sample.n_columns, max(step, size)):
        block = range(begin, min(begin + max(step, size), sample.n_columns))
        mine: dict[int, list[Any]] = {}
        for first in range(block.start, block.stop, step):
            some = range(first, min(first + step, block.stop))
            samples = totals.gather([sample.take(f) for f in some])
            mine |= {f: [one[f - first] for one in samples] for f in some if f % size == rank}
            del samples
        found = {f: _find_bins(mine.pop(f), max_bins, units) for f in list(mine)}
        of_block = {f: one for of_worker in totals.gather(found) for f, one in of_worker.items()}
        bins += [of_block[f] for f in block]
    return bins


def _join(blocks: list[Any]) -> Any:
    """Concatenate the values of a column, as float32 if that is exact."""
    values = np.concatenate(blocks) if blocks else np.empty(0, dtype=np.float32)
    if values.dtype == np.float32:
        return values
    values = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if ((narrow == values) | np.isnan(values)).all() else values


def _find_bins(samples: list[Any], max_bins: int, units: Any) -> tuple[bool, Any]:
    """Return whether a column is categorical, and its bins."""
    if samples[0].dtype.kind == "i":
        counts = np.sum(samples, axis=0).astype(np.uint64)
        return True, _core.bin_categories(counts, max_bins)
    return False, _core.find_cuts(np.concatenate(samples), max_bins, units)


def _column_of(table: Table, f: int) -> Any:
    if table.columns is not None:
        return table.columns[f]
    if table.matrix is not None:
        return table.matrix[:, f]
    return table.sparse[:, [f]].toarray()[:, 0]
