"""Reader of comparison trees for the exporters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spinney.tree.export.describe import Path, ReadableTree, fit_text

__all__ = ["ComparisonCondition", "NamedComparisonTree"]


@dataclass(frozen=True)
class ComparisonCondition:
    """A row is closer to one training row than to another.

    Attributes
    ----------
    near, far : int
        Indices of the training rows.
    near_name, far_name : str
        Names of these rows in the text.
    strict : bool
        Whether the condition fails for a row at the same distance from both.
    """

    near: int
    far: int
    near_name: str
    far_name: str
    strict: bool
    model: Any = field(repr=False, compare=False)

    def holds_for(self, row: Any) -> bool:
        """Return whether the condition holds for a row."""
        if self.strict:
            return bool(self.model.is_closer([row], self.near, self.far)[0])
        return not bool(self.model.is_closer([row], self.far, self.near)[0])

    def __str__(self) -> str:
        return f"closer to {self.near_name} than to {self.far_name}"


class NamedComparisonTree(ReadableTree):
    """Reader of a comparison tree; strings name themselves, other rows have indices."""

    def __init__(
        self,
        model: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        tree = model.tree_
        self._model, self._tree = model, tree
        classifier = is_classifier(model)
        impurity = 1 - np.square(tree.value).sum(axis=1)
        nodes = SimpleNamespace(
            n_outputs=1,
            n_features=0,
            n_classes=np.array([tree.value.shape[1]]),
            impurity=impurity if classifier else np.full(tree.node_count, np.nan),
            n_node_samples=tree.n_node_samples,
            weighted_n_node_samples=tree.weighted_n_node_samples,
            value=tree.value[:, np.newaxis, :],
        )
        criterion = "gini" if classifier else "mean"
        super().__init__(model, [], class_names, nodes=nodes, criterion=criterion)

    def _pivots(self, node: int) -> tuple[str, str]:
        a, b = int(self._tree.pivot_a[node]), int(self._tree.pivot_b[node])
        return self._model.pivot_name(a), self._model.pivot_name(b)

    def children(self, node: int) -> list[int]:
        if self._tree.left[node] < 0:
            return []
        return [int(self._tree.left[node]), int(self._tree.right[node])]

    def title(self, node: int) -> str:
        return "closer to"

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        a, b = self._pivots(node)
        return [f"closer to {a} than to {b}", f"closer to {b} than to {a}"]

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        return [fit_text(name, room, size) for name in self._pivots(node)]

    def missing_branch(self, node: int) -> int:
        return -1

    def shows_missing(self, show_missing: bool | str) -> bool:
        return False

    def split_details(self, node: int) -> list[str]:
        a, b = self._pivots(node)
        return [f"closer to {a} than to {b}?"]

    def narrow_path(self, node: int, path: Path, branch: int) -> Path:
        a, b = int(self._tree.pivot_a[node]), int(self._tree.pivot_b[node])
        near, far = (a, b) if branch == 0 else (b, a)
        condition = ComparisonCondition(
            near=near,
            far=far,
            near_name=self._model.pivot_name(near),
            far_name=self._model.pivot_name(far),
            strict=branch == 0,
            model=self._model,
        )
        return (*path, condition)
