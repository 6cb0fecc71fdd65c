"""Files: tables (`read_table`, `read_pieces`, `decide_kinds`) and models (`save`, `load`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.io._model_file import load, read_about, save
    from spinney.io._stand_in_tables import ColumnKinds, decide_kinds, read_pieces, read_table

__all__ = [
    "ColumnKinds",
    "decide_kinds",
    "load",
    "read_about",
    "read_pieces",
    "read_table",
    "save",
]

_NAMES = {
    "ColumnKinds": "spinney.io._stand_in_tables",
    "decide_kinds": "spinney.io._stand_in_tables",
    "read_pieces": "spinney.io._stand_in_tables",
    "read_table": "spinney.io._stand_in_tables",
    "load": "spinney.io._model_file",
    "read_about": "spinney.io._model_file",
    "save": "spinney.io._model_file",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
