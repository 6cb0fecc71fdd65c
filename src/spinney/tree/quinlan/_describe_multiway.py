"""Reader of ID3 and C4.5 trees for the exporters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spinney.tree.export.describe import (
    Path,
    ReadableTree,
    Region,
    fit_text,
    format_number,
    format_set,
    format_short,
    region_of,
    with_region,
)

__all__ = ["NamedMultiwayTree"]


class NamedMultiwayTree(ReadableTree):
    """Reader of a tree of ID3 or C4.5.

    With C4.5, a row with a missing value takes all branches with fractional weights.
    """

    def __init__(
        self,
        decision_tree: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(decision_tree, feature_names, class_names)
        self.feature: np.ndarray = self.tree.feature
        self.threshold: np.ndarray = self.tree.threshold

    def children(self, node: int) -> list[int]:
        return [int(child) for child in self.tree.children_of(node)]

    def title(self, node: int) -> str:
        return self.feature_names[int(self.feature[node])]

    def _names(self, node: int) -> list[list[str]]:
        """Return the categories of each branch."""
        feature = int(self.feature[node])
        return [self.category_names(feature, codes) for codes in self.tree.codes_of_branches(node)]

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        name = self.title(node)
        if self.tree.is_categorical(node):
            return [
                f"{name} = {names[0]}" if len(names) == 1 else f"{name} in {format_set(names, 8)}"
                for names in self._names(node)
            ]
        threshold = format_number(self.threshold[node], decimals)
        return [f"{name} <= {threshold}", f"{name} >  {threshold}"]

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        if self.tree.is_categorical(node):
            return [fit_text(", ".join(names), room, size) for names in self._names(node)]
        threshold = format_short(self.threshold[node])
        return [f"≤ {threshold}", f"> {threshold}"]

    def missing_branch(self, node: int) -> int:
        return -1

    def shows_missing(self, show_missing: bool | str) -> bool:
        return False

    def split_details(self, node: int) -> list[str]:
        if not self.tree.is_categorical(node):
            return [f"{self.title(node)} <= {self.threshold[node]:.12g}?"]
        shares = self.tree.shares[self.tree.child_start[node] : self.tree.child_start[node + 1]]
        lines = [
            f"{', '.join(names)}: {share:.0%}"
            for names, share in zip(self._names(node), shares, strict=True)
        ]
        return [f"{self.title(node)}?", *lines[:40]]

    def narrow_path(self, node: int, path: Path, branch: int) -> Path:
        old = region_of(path, int(self.feature[node]))
        if not self.tree.is_categorical(node):
            narrow = old.below if branch == 0 else old.above
            return with_region(path, narrow(float(self.threshold[node]), False))
        n_known = len(self.categories[old.feature])  # the code of missing, if it is a category
        codes = self.tree.codes_of_branches(node)[branch]
        known = frozenset(code for code in codes if code < n_known)
        return with_region(path, Region(old.feature, codes=known, missing=n_known in codes))
