"""Models that come as files, and what their libraries' objects are called."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

__all__ = ["kind_of", "read_bytes"]


def read_bytes(model: Any) -> bytes | None:
    """Contents of the file that a path names; None for anything that is not a path."""
    if isinstance(model, (str, os.PathLike)):
        return Path(model).read_bytes()
    return None


def kind_of(model: Any, package: str) -> set[str]:
    """Names of a class and its bases that a package defines; libraries need not be there."""
    return {c.__name__ for c in type(model).__mro__ if c.__module__.split(".")[0] == package}
