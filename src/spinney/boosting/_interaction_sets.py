"""Interaction constraints: columns that may be split on in the same branch."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

__all__ = ["interaction_sets"]


def interaction_sets(given: Any, n: int) -> list[list[int]]:
    """Return the sets of columns that `interaction_cst` allows in the same branch."""
    if given is None:
        return []
    if given == "no_interactions":
        return [[f] for f in range(n)]
    if given == "pairwise":
        return [[f, g] for f in range(n) for g in range(f + 1, n)] or [[0]]
    sets = []
    for columns in given:
        if isinstance(columns, str) or not np.iterable(columns):
            raise ValueError(
                "Interaction constraints must be a sequence of tuples or lists, "
                f"got interaction_cst={given!r}"
            )
        if not all(isinstance(f, Integral) and 0 <= int(f) < n for f in columns):
            raise ValueError(
                "Interaction constraints must consist of integer indices in "
                f"[0, n_features - 1] = [0, {n - 1}], specifying the position of features, "
                f"got: {columns!r}"
            )
        sets.append(sorted({int(f) for f in columns}))
    rest = sorted(set(range(n)) - {f for columns in sets for f in columns})
    return [*sets, rest] if rest else sets
