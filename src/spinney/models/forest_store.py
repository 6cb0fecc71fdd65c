"""Storage of the trees of an ensemble in the core."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.models.packing import Arrays, pack, unpack
from spinney.models.tree import Tree
from spinney.runtime.threads import effective_n_jobs

__all__ = ["ForestStore"]


class ForestStore:
    """The trees of a forest in the core, with support for pickle.

    Parameters
    ----------
    criterion : str
        Name of the split criterion.
    n_classes : sequence of int
        Number of classes of each output; empty for regression.
    n_outputs : int
        Number of columns of y.
    inner_values : bool
        Whether to store values of inner nodes, if they cannot be computed from the leaves.
    n_categories : sequence of int
        Number of categories of each feature, 0 for a numeric one.
    """

    def __init__(
        self,
        criterion: str,
        n_classes: Any,
        n_outputs: int,
        inner_values: bool,
        n_categories: Any,
    ) -> None:
        self.shape = (
            criterion,
            [int(k) for k in n_classes],
            int(n_outputs),
            bool(inner_values),
            [int(k) for k in n_categories],
        )
        self.core = _core.Forest(*self.shape)
        self.grid: NDArray[np.float64] | None = None  # grid of the leaf values if compact
        self.compaction: dict[str, Any] | None = None  # effects of the compaction, see `compact`

    def __len__(self) -> int:
        return len(self.core)

    @property
    def width(self) -> int:
        """Number of values per leaf."""
        return self.shape[2] * max(self.shape[1], default=1)

    @property
    def nbytes(self) -> int:
        """Memory of the trees in bytes."""
        return int(self.core.nbytes)

    def tree(self, index: int) -> Tree:
        """Return a tree as parallel arrays."""
        _, n_classes, n_outputs, _, n_categories = self.shape
        return Tree.from_arrays(
            self.core.expand(index),
            n_features=len(n_categories),
            n_classes=n_classes or np.ones(n_outputs, dtype=np.intp),
            n_categories=n_categories,
        )

    def part(self, first: int, last: int) -> ForestStore:
        """Return a copy of the trees [first, last)."""
        copied = ForestStore(*self.shape)
        copied.core = self.core.part(first, last)
        return copied

    def extend(self, more: ForestStore) -> None:
        """Append copies of the trees of another store."""
        self.core.extend(more.core)

    def __getstate__(self) -> dict[str, Any]:
        arrays = self.core.state()
        if self.grid is None:
            return {"shape": self.shape, "arrays": arrays}
        # If trees were added or removed after compaction, the grid no longer matches.
        grid = self.grid if len(self.grid) == len(self) else self.grid[:0]
        return {
            "shape": self.shape,
            "packed": pack(arrays, grid),
            "grid": grid,
            "compaction": self.compaction,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shape = tuple(state["shape"])  # type: ignore[assignment]
        self.core = _core.Forest(*self.shape)
        self.grid = state.get("grid")
        self.compaction = state.get("compaction")
        arrays = state["arrays"] if self.grid is None else unpack(state["packed"], self.grid)
        self._fill(arrays)

    def with_arrays(
        self, arrays: Arrays, grid: NDArray[np.float64], compaction: dict[str, Any]
    ) -> ForestStore:
        """Return a compact store of the same shape with other arrays."""
        out = ForestStore(*self.shape)
        out.grid, out.compaction = grid, compaction
        out._fill(arrays)
        return out

    def _fill(self, arrays: Arrays) -> None:
        """Let the core use the arrays without a copy; they become read-only."""
        kept = {}
        for name, array in arrays.items():
            # The core needs native byte order.
            kept[name] = np.require(array, array.dtype.newbyteorder("="), ["C", "A"])
            kept[name].flags.writeable = False
        self.core.restore(kept, effective_n_jobs(None))
