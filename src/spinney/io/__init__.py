"""Files: models (`save`, `load`)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.io._model_file import load, read_about, save

__all__ = ["load", "read_about", "save"]

_NAMES = {
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
