"""Tables in files: reading them, and deciding what their columns are."""

from __future__ import annotations

from spinney.io._column_kind import ColumnKind
from spinney.io._column_kinds import ColumnKinds, decide_kinds
from spinney.io._leakage import suspect_leakage
from spinney.io._table_file import TableFile, read_pieces, read_table

__all__ = [
    "ColumnKind",
    "ColumnKinds",
    "TableFile",
    "decide_kinds",
    "read_pieces",
    "read_table",
    "suspect_leakage",
]
