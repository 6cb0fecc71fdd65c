"""Settings and fixtures of all tests; in CI, Hypothesis draws the same examples."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

# Several test processes whose matrix products all use every core wait for each other most of the
# time. NumPy reads this when it is imported.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# Outside CI new examples may find new failures. CI must not fail by chance.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture
def sigint_handler() -> Iterator[None]:
    """Handle SIGINT as an interactive Python does, also in child processes.

    Background jobs and some CI runners ignore SIGINT, and child processes inherit that.
    """
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
