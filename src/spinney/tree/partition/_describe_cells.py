"""Readers of quad trees and fixed partitions for the exporters."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spinney.tree.export.describe import (
    Path,
    ReadableTree,
    Region,
    fit_text,
    format_number,
    format_short,
    region_of,
    with_region,
)

__all__ = ["NamedPartition", "NamedQuadTree"]


class BoxTree(ReadableTree):
    """A tree whose branches are boxes: intervals of some features."""

    def boxes(self, node: int) -> list[list[tuple[int, float, float]]]:
        """Return the intervals (feature, low, high) of each branch; ends may be infinite."""
        raise NotImplementedError

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        return [
            " and ".join(
                interval_text(
                    self.feature_names[f], low, high, lambda v: format_number(v, decimals)
                )
                for f, low, high in box
            )
            or "everywhere"
            for box in self.boxes(node)
        ]

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        return [
            fit_text(
                ", ".join(
                    interval_text("", low, high, format_short).strip().replace("<=", "≤")
                    for _, low, high in box
                )
                or "everywhere",
                room,
                size,
            )
            for box in self.boxes(node)
        ]

    def missing_branch(self, node: int) -> int:
        return -1

    def shows_missing(self, show_missing: bool | str) -> bool:
        return False

    def split_details(self, node: int) -> list[str]:
        return [f"{self.title(node)}?", *self.branch_texts(node, 6, False)[:40]]

    def narrow_path(self, node: int, path: Path, branch: int) -> Path:
        for f, low, high in self.boxes(node)[branch]:
            region = region_of(path, f)
            if low > -np.inf:
                region = region.above(low, False)
            if high < np.inf:
                region = region.below(high, False)
            path = with_region(path, Region(f, region.low, region.high, missing=False))
        return path


def interval_text(name: str, low: float, high: float, write: Any) -> str:
    """Return the condition that a feature lies in (low, high]."""
    if low == -np.inf and high == np.inf:
        return f"{name} is anything"
    if low == -np.inf:
        return f"{name} <= {write(high)}"
    if high == np.inf:
        return f"{name} > {write(low)}"
    return f"{write(low)} < {name} <= {write(high)}" if name else f"{write(low)} to {write(high)}"


class NamedQuadTree(BoxTree):
    """Reader of a quad tree.

    `QuadTree` has no nodes for boxes without rows. Here such a box is a leaf with the values of its
    parent.
    """

    def __init__(
        self,
        model: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        tree = model.tree_
        self._children: list[list[int]] = []
        parents: list[int] = []  # parents of the boxes without rows
        for children, leaf in zip(tree.children.tolist(), tree.is_leaf.tolist(), strict=True):
            if leaf:
                self._children.append([])
                continue
            own = []
            for child in children:
                if child < 0:
                    child = tree.n_nodes + len(parents)
                    parents.append(len(self._children))
                own.append(child)
            self._children.append(own)
        self._children += [[] for _ in parents]
        value = np.concatenate([tree.value, tree.value[parents]])
        nothing = np.zeros(len(parents))
        nodes = SimpleNamespace(
            n_outputs=1,
            n_features=model.n_features_in_,
            n_classes=np.array([value.shape[1]]),
            impurity=np.concatenate([tree.impurity, nothing]),
            n_node_samples=np.concatenate([tree.n_node_samples, nothing.astype(int)]),
            weighted_n_node_samples=np.concatenate([tree.weighted_n_node_samples, nothing]),
            value=value[:, np.newaxis, :],
        )
        criterion = "gini" if is_classifier(model) else "squared_error"
        super().__init__(model, feature_names, class_names, nodes=nodes, criterion=criterion)
        self._center = tree.center

    def children(self, node: int) -> list[int]:
        return self._children[node]

    def title(self, node: int) -> str:
        names = fit_text(", ".join(self.feature_names), 160, 11)
        at = ", ".join(format_short(float(v)) for v in self._center[node])
        return f"{names} at {at}"

    def boxes(self, node: int) -> list[list[tuple[int, float, float]]]:
        center = self._center[node]
        return [
            [
                (f, float(at), np.inf) if branch >> f & 1 else (f, -np.inf, float(at))
                for f, at in enumerate(center)
            ]
            for branch in range(len(self._children[node]))
        ]


class NamedPartition(BoxTree):
    """Reader of a fixed partition: a tree of depth 1, one branch per occupied cell."""

    def __init__(
        self,
        model: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        values = np.asarray(model.cell_values_).reshape(model.n_cells_, -1)
        weights = model.cell_weights_
        whole = (weights[:, np.newaxis] * values).sum(axis=0) / weights.sum()
        value = np.vstack([whole, values])
        classifier = is_classifier(model)
        impurity = 1 - np.square(value).sum(axis=1) if classifier else np.full(len(value), np.nan)
        nodes = SimpleNamespace(
            n_outputs=1,
            n_features=model.n_features_in_,
            n_classes=np.array([value.shape[1]]),
            impurity=impurity,
            n_node_samples=np.concatenate([[model.cell_counts_.sum()], model.cell_counts_]),
            weighted_n_node_samples=np.concatenate([[weights.sum()], weights]),
            value=value[:, np.newaxis, :],
        )
        criterion = "gini" if classifier else "mean"
        super().__init__(model, feature_names, class_names, nodes=nodes, criterion=criterion)
        self._edges, self._cells = model.edges_, model.cells_

    def children(self, node: int) -> list[int]:
        return list(range(1, len(self._cells) + 1)) if node == 0 else []

    def title(self, node: int) -> str:
        return "cell"

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        if self._edges is None:
            return [f"cell = {label}" for label in self._cells.tolist()]
        return super().branch_texts(node, decimals, missing)

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        if self._edges is None:
            return [fit_text(str(label), room, size) for label in self._cells.tolist()]
        return super().short_branch_texts(node, room, size)

    def boxes(self, node: int) -> list[list[tuple[int, float, float]]]:
        if self._edges is None:
            raise TypeError(
                "export_rules: expected a partition with a grid, got one whose `cells` is a "
                "callable; its labels cannot be written as conditions"
            )
        ends = [np.concatenate([[-np.inf], edges, [np.inf]]) for edges in self._edges]
        return [
            [
                (f, float(ends[f][index]), float(ends[f][index + 1]))
                for f, index in enumerate(cell)
                if len(self._edges[f]) > 0
            ]
            for cell in self._cells.tolist()
        ]
