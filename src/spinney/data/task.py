"""The two tasks of supervised learning; imports nothing, for start-up time."""

from __future__ import annotations

from typing import Literal

__all__ = ["Task"]

Task = Literal["classification", "regression"]
