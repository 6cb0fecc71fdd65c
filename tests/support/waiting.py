"""Wait for a condition that another thread or process makes true."""

from __future__ import annotations

import time
from collections.abc import Callable

# Far more than any test needs, so that a busy machine fails no test.
LIMIT = 120  # seconds


def wait_until(condition: Callable[[], object], description: str, limit: float = LIMIT) -> None:
    """Return when the condition is true; raise AssertionError after `limit` seconds."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"after {limit} s: {description}")
        time.sleep(0.02)
