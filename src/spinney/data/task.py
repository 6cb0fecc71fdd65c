"""The two tasks of supervised learning. Imports nothing, so that the shell starts quickly."""

from __future__ import annotations

from typing import Literal

__all__ = ["Task"]

Task = Literal["classification", "regression"]
