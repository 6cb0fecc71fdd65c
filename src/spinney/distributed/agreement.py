"""What workers with some rows each agree on before a fit: columns, labels and bins."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from spinney import _core
from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table, fit_table, read_table
from spinney.distributed.partitioned_rows import PartedRows, PartedTable, parts_of_table
from spinney.distributed.totals import Totals
from spinney.runtime.memory import release_memory

__all__ = [
    "agree_on_bins",
    "agree_on_columns",
    "agree_on_labels",
    "join_schemas",
    "narrow_targets",
    "read_part",
]

_SAMPLE_BYTES = 2**20  # of sampled values of all workers that travel at a time, about


def agree_on_columns(
    estimator: Any, X: Any, totals: Totals, categorical_features: Any
) -> tuple[Table, Schema]:
    """Read a part of the rows by the columns that all parts together have.

    Names and kinds of columns must be the same everywhere; categories are those of all parts. A
    part without rows takes what the others say.
    """
    own = []
    for read in _readers(X):
        schema = fit_table(estimator, read(), categorical_features=categorical_features)[1]
        own.append((schema, vars(estimator).get("feature_names_in_")))
    told = totals.gather([join_schemas(own)] if own else [])
    joined, names = join_schemas([one for part in told for one in part])
    estimator.n_features_in_ = joined.n_features
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = names
    return read_part(estimator, X, joined), joined


def _readers(X: Any) -> list[Any]:
    """Give a function for each part of the rows that has some."""
    if isinstance(X, PartedRows):
        return [read for read, _ in X.parts]
    return [lambda: X] if (X.shape[0] if hasattr(X, "shape") else len(X)) else []


def join_schemas(known: list[tuple[Schema, Any]]) -> tuple[Schema, Any]:
    """Join what parts of the rows say about their columns: a schema and names each."""
    if not known:
        raise ValueError("X: expected at least one row, got none at any worker")
    schemas = [one[0] for one in known]
    for other, its_names in known:
        same = (its_names is None) == (known[0][1] is None) and (
            its_names is None or list(its_names) == list(known[0][1])
        )
        if not same or other.n_features != schemas[0].n_features:
            raise ValueError(
                "X: expected the same columns in all parts, got "
                f"{_columns(schemas[0], known[0][1])} and {_columns(other, its_names)}"
            )
    categories = []
    for f in range(schemas[0].n_features):
        parts = [one.categories[f] for one in schemas]
        if len({part is None for part in parts}) > 1:
            name = f if known[0][1] is None else repr(known[0][1][f])
            raise ValueError(
                f"X: expected column {name} to hold numbers in all parts or categories in all, "
                "got both"
            )
        merged = None
        if parts[0] is not None:
            merged = np.unique(np.concatenate([part for part in parts if part is not None]))
        categories.append(merged)
    joined = Schema(schemas[0].names, tuple(categories))
    return joined, known[0][1]


def read_part(estimator: Any, X: Any, schema: Schema) -> Any:
    """Read rows that may be none."""
    if isinstance(X, PartedRows) and len(X):
        return PartedTable(X, partial(read_table, estimator, schema=schema), schema.n_features)
    if isinstance(X, PartedRows):
        X = np.empty((0, schema.n_features))
    if X.shape[0] if hasattr(X, "shape") else len(X):
        return read_table(estimator, X, schema)
    kinds = [np.float64 if values is None else np.int32 for values in schema.categories]
    return Table(0, schema.n_features, columns=[np.empty(0, dtype=kind) for kind in kinds])


def _columns(schema: Schema, names: Any) -> str:
    return f"{schema.n_features} columns" if names is None else str(list(names))


def agree_on_labels(labels: Any, totals: Totals) -> Any:
    """Find the distinct labels of all parts."""
    own = np.unique(labels) if len(labels) else None
    told = [one for one in totals.gather(own) if one is not None]
    if not told:
        raise ValueError("y: expected at least one row, got none at any worker")
    if len({one.dtype.kind in "OUS" for one in told}) > 1:
        raise ValueError("y: expected labels of one kind in all parts, got numbers and strings")
    return np.unique(np.concatenate(told))


def narrow_targets(targets: Any) -> Any:
    """Give targets in as few bytes as hold them: the core reads them as they are."""
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
    """Code a part of the rows by bins that all rows together have.

    The bins are those that one worker with all rows would find: cuts from the same sample of the
    rows that are learned from, in their order by worker, with their weights; categories by how
    often they occur. Of all sampled rows no worker ever has more than some columns and the weights,
    and of its own no copy once it codes.

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
    del sample  # memory is tightest now if there are few rows
    rows = rows if train_rows is None else np.asarray(train_rows)[rows]
    sampled_units = row_units = None
    if weights is not None:
        sampled_units = _agree_on_units(weights[rows], totals)
        if any(values is not None and len(values) > max_bins for values in schema.categories):
            row_units = _weight_units(weights, totals)
    known = _Sample(table, schema, rows, row_units)
    bins = _find_bins_together(known, n_sampled, max_bins, sampled_units, totals)
    matrix = _core.bin_given(bins, table.n_rows)
    for first, part in parts_of_table(table):
        matrix.write(core_table(part, schema), first, n_threads)
        del part  # before the next one is read
    if isinstance(table, PartedTable):
        release_memory()
    matrix.complete(totals.add(matrix.missing()))
    matrix.set_code_counts(totals.add(matrix.count_codes()))
    return matrix


class _Sample:
    """What the bins of each column depend on.

    Numbers: the values of some rows. Categories: in how many of all rows each is. Rows that are in
    memory are read a few columns at a time, so that their sample is never larger than their codes.

    Parameters
    ----------
    table : Table or PartedTable
        The rows of this worker.
    schema : Schema
        Their columns.
    rows : ndarray of int
        Which ones are looked at.
    units : ndarray of uint64 or None
        How often each row of the table counts for its categories; None: once.
    """

    def __init__(
        self, table: Table | PartedTable, schema: Schema, rows: Any, units: Any = None
    ) -> None:
        self._table, self._schema, self._rows, self._units = table, schema, rows, units
        self.n_columns = schema.n_features
        self._read: dict[int, Any] = {}
        self._step = self.n_columns
        if not isinstance(table, PartedTable) or table.rows.are_here:
            room = 2 * table.n_rows * self.n_columns
            self._step = max(1, room // (8 * max(1, len(rows))))

    def take(self, f: int) -> Any:
        """Give what is known of a column, once; columns are asked for in their order."""
        if f not in self._read:
            last = min(f + self._step, self.n_columns)
            self._read = _read_sample(
                self._table, self._schema, self._rows, self._units, range(f, last)
            )
        told = self._read.pop(f)
        return _join(told) if isinstance(told, list) else told


def _weight_units(weights: Any, totals: Totals) -> Any:
    """Make integers of weights by the scale of all workers' weights; None if none is positive."""
    largest = float(totals.largest(weights.max(initial=0.0))[0])
    n_all = totals.count(len(weights))
    return _core.weight_units(weights, largest, n_all) if 0 < largest < np.inf else None


def _agree_on_units(weights: Any, totals: Totals) -> Any:
    """Gather the weights of the sampled rows of all workers as integers, by rank."""
    units = _weight_units(weights, totals)
    return None if units is None else np.concatenate(totals.gather(units))


def _read_sample(
    table: Table | PartedTable, schema: Schema, rows: Any, units: Any, columns: range
) -> dict[int, Any]:
    """Read some columns: values part by part, or numbers of rows by category."""
    told: dict[int, Any] = {}
    for f in columns:
        categories = schema.categories[f]
        told[f] = [] if categories is None else np.zeros(len(categories), np.int64)
    for first, part in parts_of_table(table):
        here = rows[(rows >= first) & (rows < first + part.n_rows)] - first
        # Rows that lie side by side are read once for all these columns.
        matrix = None
        if part.matrix is not None:
            some = part.matrix[:, columns.start : columns.stop]
            matrix = np.ascontiguousarray(some[here].T)
        for f, of_column in told.items():
            if isinstance(of_column, list):
                of_column.append(
                    _column_of(part, f)[here] if matrix is None else matrix[f - columns.start]
                )
            else:
                codes = _column_of(part, f)
                known = codes >= 0
                if units is None:
                    of_column += np.bincount(codes[known], minlength=len(of_column))
                else:
                    here_units = units[first : first + part.n_rows].astype(np.int64)
                    np.add.at(of_column, codes[known], here_units[known])
    return told


def _find_bins_together(
    sample: _Sample, n_sampled: int, max_bins: int, units: Any, totals: Totals
) -> list[tuple[bool, Any]]:
    """Find the bins of all columns, every worker those of some.

    Columns travel a few at a time, and each worker keeps those that it finds the bins of, until
    all have one.
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
            parts = totals.gather([sample.take(f) for f in some])
            mine |= {f: [part[f - first] for part in parts] for f in some if f % size == rank}
            del parts
        found = {f: _find_bins(mine.pop(f), max_bins, units) for f in list(mine)}
        everywhere = {f: one for part in totals.gather(found) for f, one in part.items()}
        bins += [everywhere[f] for f in block]
    return bins


def _join(pieces: list[Any]) -> Any:
    """Put values of a column together, in four bytes each where that loses nothing."""
    values = np.concatenate(pieces) if pieces else np.empty(0, dtype=np.float32)
    if values.dtype == np.float32:
        return values
    values = values.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32)
    return narrow if ((narrow == values) | np.isnan(values)).all() else values


def _find_bins(parts: list[Any], max_bins: int, units: Any) -> tuple[bool, Any]:
    """Find the bins of a column from the samples of all workers."""
    if parts[0].dtype.kind == "i":
        counts = np.sum(parts, axis=0).astype(np.uint64)
        return True, _core.bin_categories(counts, max_bins)
    return False, _core.find_cuts(np.concatenate(parts), max_bins, units)


def _column_of(table: Table, f: int) -> Any:
    if table.columns is not None:
        return table.columns[f]
    if table.matrix is not None:
        return table.matrix[:, f]
    return table.sparse[:, [f]].toarray()[:, 0]
