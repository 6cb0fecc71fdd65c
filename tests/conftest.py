"""What all tests share: in CI, examples that are drawn are the same each time."""

from __future__ import annotations

import os

from hypothesis import settings

# Elsewhere they are drawn anew, and now and then find something: CI shall not fail by chance.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
