"""Brute-force search for nearest strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.data.strings import encode_strings
from spinney.neighbors._index import BlockIndex

__all__ = ["StringColumn", "StringIndex"]


class StringColumn:
    """One column of strings that has a shape and slices like an array."""

    def __init__(self, strings: list[str]) -> None:
        self.strings = strings
        self.shape = (len(strings), 1)

    def __getitem__(self, rows: slice) -> StringColumn:
        return StringColumn(self.strings[rows])

    def encoded(self) -> _core.Strings:
        """Return the core's strings."""
        return _core.Strings(*encode_strings(self.strings))


class StringIndex(BlockIndex):
    """Brute force with "edit" or "hamming" distance or a function of two strings."""

    def __init__(self, rows: StringColumn, metric: Any, params: dict[str, Any]) -> None:
        self.rows = rows
        self.n_rows = rows.shape[0]
        self.metric = metric
        self.params = params
        self._encoded: Any = None  # created on demand: pickles cannot contain it

    def measure(self, X: StringColumn, n_threads: int) -> NDArray[np.float64]:
        out = np.empty((X.shape[0], self.n_rows))
        if callable(self.metric):
            for distances, x in zip(out, X.strings, strict=True):
                distances[:] = [self.metric(x, row, **self.params) for row in self.rows.strings]
            return out
        if self._encoded is None:
            self._encoded = self.rows.encoded()
        _core.string_distances(self.metric, X.encoded(), self._encoded, n_threads, out)
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_encoded": None}
