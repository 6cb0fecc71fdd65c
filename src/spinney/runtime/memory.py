"""Memory that a process keeps and does not use."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

__all__ = ["give_back_memory"]


def give_back_memory() -> None:
    """Give the system what allocators hold back for later: as much as partitions took to be read.

    Does nothing where the C library has no way to.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
