"""Release of memory that allocators keep but do not use."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress

__all__ = ["release_memory"]


def release_memory() -> None:
    """Return unused memory of the allocators to the system.

    After a partition is read, this can be as much as its size. Without support by the C library
    only Arrow's memory is returned.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
