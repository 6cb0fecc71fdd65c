"""Rows that a worker reads a part at a time, so that all of them are never there at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table

__all__ = ["PartedRows", "PartedTable", "parts_of_table"]


class PartedRows:
    """The X of a fit in parts.

    Parameters
    ----------
    readers : sequence of callables
        Each gives the rows of a part, as often as it is asked.
    sizes : sequence of int
        Number of rows of each.
    are_here : bool, default=False
        Whether all rows are in memory, as numbers that need not be changed: reading costs nothing.
    """

    def __init__(
        self, readers: Sequence[Callable[[], Any]], sizes: Sequence[int], are_here: bool = False
    ) -> None:
        self.parts = [(read, n) for read, n in zip(readers, sizes, strict=True) if n]
        self.are_here = are_here

    def __len__(self) -> int:
        return sum(n for _, n in self.parts)


@dataclass(frozen=True)
class PartedTable:
    """The same as tables for the core.

    Parameters
    ----------
    rows : PartedRows
        The rows.
    read : callable
        Makes a table of the X of a part.
    n_features : int
        Columns.
    """

    rows: PartedRows
    read: Callable[[Any], Table]
    n_features: int

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return len(self.rows)

    def tables(self) -> Iterator[tuple[int, Table]]:
        """Read one part after the other, each with the number of its first row."""
        first = 0
        for read, n_rows in self.rows.parts:
            yield first, self.read(read())
            first += n_rows

    def readers(self, schema: Schema) -> Iterator[tuple[Callable[[], Any], slice]]:
        """Give functions that read a part for the core, and its place."""
        first = 0
        for read, n_rows in self.rows.parts:
            place = slice(first, first + n_rows)
            yield partial(self._read_for_core, read, schema), place
            first += n_rows

    def _read_for_core(self, read: Callable[[], Any], schema: Schema) -> Any:
        return core_table(self.read(read()), schema)


def parts_of_table(table: Table | PartedTable) -> Iterator[tuple[int, Table]]:
    """Give the parts of a table that may be in parts."""
    if isinstance(table, PartedTable):
        yield from table.tables()
    else:
        yield 0, table
