"""Contents of model files, and class names of other libraries' objects."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["kind_of", "read_bytes"]


def read_bytes(model: Any) -> bytes | None:
    """Return the contents of the file at a path, or None if `model` is not a path."""
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    return None


def kind_of(model: Any, package: str) -> set[str]:
    """Return the names of the object's classes that a package defines."""
    return {c.__name__ for c in type(model).__mro__ if c.__module__.split(".")[0] == package}
