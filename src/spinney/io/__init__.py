"""Files: tables (`read_table`, `decide_kinds`) and models (`save`, `load`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.io._column_kinds import ColumnKinds, decide_kinds
    from spinney.io._leakage import suspect_leakage
    from spinney.io._training_table import TrainingTable, read_training_table
    from spinney.io.column_kind import ColumnKind
    from spinney.io.table_file import TableFile, read_pieces, read_table
    from spinney.model_file.files import describe, load, read_about, save

__all__ = [
    "ColumnKind",
    "ColumnKinds",
    "TableFile",
    "TrainingTable",
    "decide_kinds",
    "describe",
    "load",
    "read_about",
    "read_pieces",
    "read_table",
    "read_training_table",
    "save",
    "suspect_leakage",
]

# Imported on first use: models do not need Arrow, and tables do not need safetensors.
_NAMES = {
    "ColumnKind": "spinney.io.column_kind",
    "ColumnKinds": "spinney.io._column_kinds",
    "TableFile": "spinney.io.table_file",
    "TrainingTable": "spinney.io._training_table",
    "decide_kinds": "spinney.io._column_kinds",
    "describe": "spinney.model_file.files",
    "load": "spinney.model_file.files",
    "read_about": "spinney.model_file.files",
    "read_pieces": "spinney.io.table_file",
    "read_table": "spinney.io.table_file",
    "read_training_table": "spinney.io._training_table",
    "save": "spinney.model_file.files",
    "suspect_leakage": "spinney.io._leakage",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
