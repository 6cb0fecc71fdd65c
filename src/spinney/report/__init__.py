"""HTML reports on comparisons, and the names of `spinney.comparison` in older code.

- `spinney.compare` cross-validates the learners.
- `spinney.comparison.families` lists the learners.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spinney.comparison.comparison import Comparison, ModelResult
    from spinney.comparison.families import FAMILIES, Family

__all__ = ["FAMILIES", "Comparison", "Family", "ModelResult"]

_NAMES = {
    "FAMILIES": "spinney.comparison.families",
    "Family": "spinney.comparison.families",
    "Comparison": "spinney.comparison.comparison",
    "ModelResult": "spinney.comparison.comparison",
}


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
