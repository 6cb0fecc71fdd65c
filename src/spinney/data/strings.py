"""Conversion of rows that are strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["encode_strings", "read_strings"]


def read_strings(X: Any, *, required: bool) -> list[str] | None:
    """Return a sequence or one column of str as a list.

    If X is something else, return None, or raise a ValueError if strings are `required`.
    """
    if isinstance(X, str):
        raise ValueError("X: expected a sequence of strings, got one string")
    column = X
    if hasattr(X, "to_numpy") and (len(X.shape) == 1 or X.shape[1] == 1):
        column = X.to_numpy()
    if isinstance(column, np.ndarray):
        if column.ndim == 2 and column.shape[1] == 1:
            column = column[:, 0]
        found = column.tolist() if column.ndim == 1 and column.dtype.kind in "OUT" else None
    else:
        found = list(column) if isinstance(column, list | tuple) else None
    if not found or not (required or any(isinstance(value, str) for value in found)):
        found = None
    if found is None:
        if required:
            raise ValueError(
                "X: expected strings (a sequence, or one column), got "
                f"{type(X).__name__}{' of shape ' + str(X.shape) if hasattr(X, 'shape') else ''}"
            )
        return None
    for row, value in enumerate(found):
        if not isinstance(value, str):
            raise ValueError(f"X: expected strings, got {type(value).__name__} in row {row}")
    return found


def encode_strings(strings: list[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the concatenated code points, and the offsets of the strings in them."""
    text = "".join(strings).encode("utf-32-le", "surrogatepass")
    starts = np.zeros(len(strings) + 1, dtype=np.int64)
    np.cumsum([len(string) for string in strings], out=starts[1:])
    return np.frombuffer(text, dtype="<u4"), starts
