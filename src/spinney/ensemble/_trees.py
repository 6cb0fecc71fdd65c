"""The trees of a forest as estimators, made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

__all__ = ["LazyTrees"]


class LazyTrees(Sequence[Any]):
    """A sequence of estimators of which each is made at its first use, and kept.

    Parameters
    ----------
    n_trees : int
        How many there are.
    make : callable
        ``make(i)`` returns the i-th.
    """

    def __init__(self, n_trees: int, make: Callable[[int], Any]) -> None:
        self._n_trees = n_trees
        self._make = make
        self._made: dict[int, Any] = {}

    def __len__(self) -> int:
        return self._n_trees

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._n_trees))]
        i = range(self._n_trees)[index]  # negative and out of range as for a list
        if i not in self._made:
            self._made[i] = self._make(i)
        return self._made[i]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self._n_trees))

    def __repr__(self) -> str:
        return f"<{self._n_trees} trees>"
