"""Tables in files: reading them, and deciding what their columns are."""

from __future__ import annotations

from spinney.io._table_file import TableFile, read_pieces, read_table

__all__ = ["TableFile", "read_pieces", "read_table"]
