"""Rows that a worker reads one partition at a time, to save memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table

__all__ = ["PartitionedRows", "PartitionedTable", "partitions_of_table"]


class PartitionedRows:
    """The X of a fit in partitions.

    Parameters
    ----------
    readers : sequence of callables
        Each returns the rows of a partition; it may be called several times.
    sizes : sequence of int
        Number of rows of each partition.
    in_memory : bool, default=False
        Whether all rows are in memory as numeric arrays, so that reading them costs nothing.
    """

    def __init__(
        self, readers: Sequence[Callable[[], Any]], sizes: Sequence[int], in_memory: bool = False
    ) -> None:
        self.partitions = [(read, n) for read, n in zip(readers, sizes, strict=True) if n]
        self.in_memory = in_memory

    def __len__(self) -> int:
        return sum(n for _, n in self.partitions)


@dataclass(frozen=True)
class PartitionedTable:
    """Partitioned rows as tables for the core.

    Parameters
    ----------
    rows : PartitionedRows
        The rows.
    read : callable
        Convert the X of a partition to a table.
    n_features : int
        Number of columns.
    """

    rows: PartitionedRows
    read: Callable[[Any], Table]
    n_features: int

    @property
    def n_rows(self) -> int:
        """Number of rows of all partitions."""
        return len(self.rows)

    def tables(self) -> Iterator[tuple[int, Table]]:
        """Yield the index of the first row of each partition, and its table."""
        first = 0
        for read, n_rows in self.rows.partitions:
            yield first, self.read(read())
            first += n_rows

    def readers(self, schema: Schema) -> Iterator[tuple[Callable[[], Any], slice]]:
        """Yield for each partition a function that reads it for the core, and its rows."""
        first = 0
        for read, n_rows in self.rows.partitions:
            yield partial(self._read_for_core, read, schema), slice(first, first + n_rows)
            first += n_rows

    def _read_for_core(self, read: Callable[[], Any], schema: Schema) -> Any:
        return core_table(self.read(read()), schema)


def partitions_of_table(table: Table | PartitionedTable) -> Iterator[tuple[int, Table]]:
    """Yield the partitions of a table, each with the index of its first row."""
    if isinstance(table, PartitionedTable):
        yield from table.tables()
    else:
        yield 0, table
