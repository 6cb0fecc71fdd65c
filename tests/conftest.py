"""What all tests share: in CI, examples that are drawn are the same each time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Elsewhere they are drawn anew, and now and then find something: CI shall not fail by chance.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")


@pytest.fixture
def sigint_handler() -> Iterator[None]:
    """Handle SIGINT as an interactive Python does, here and in child processes.

    Background jobs and some CI runners start with SIGINT ignored, and child processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
