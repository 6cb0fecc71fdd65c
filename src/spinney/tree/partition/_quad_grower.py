"""Growth of quad trees, all nodes of a level at once.

A *round* processes all rows of all nodes that are split next. The *position* of a node is its index
in the round. The *slot* of a row has one bit per feature: whether x is above the centre. Counts by
position and slot give the children. Rows that reach a leaf are removed from later rounds.

Sometimes all rows of a node fall into one child. If the rows are equal, the node is a leaf.
Otherwise its box is halved until the rows separate. This uses only the bounding box of the rows, so
that a far outlier costs nodes but no passes over the rows. (With splits at points, another point is
used instead; see `_other_points`.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Skeleton", "grow"]

Array = NDArray[Any]
Floats = NDArray[np.float64]


@dataclass
class Skeleton:
    """The nodes of a quad tree; parents come before their children.

    Attributes
    ----------
    low, high : ndarray of shape (n_nodes, n_features)
        Boxes.
    center : ndarray of shape (n_nodes, n_features)
        Split points; NaN for leaves.
    parent, slot, depth, n_rows : ndarray of shape (n_nodes,)
        Parent (−1 for the root), slot among the parent's children, depth, and number of rows.
    """

    low: Floats
    high: Floats
    center: Floats
    parent: Array
    slot: Array
    depth: Array
    n_rows: Array


@dataclass
class _Nodes:
    """Nodes of one round, or new ones."""

    low: Floats
    high: Floats
    parent: Array
    slot: Array
    depth: Array
    n_rows: Array
    id: Array

    def take(self, which: Array) -> _Nodes:
        return _Nodes(**{name: value[which] for name, value in self.__dict__.items()})

    def children(self, positions: Array, slots: Array, center: Floats, n_rows: Array) -> _Nodes:
        """Create children in the given slots; their ids are not assigned yet."""
        above = (slots[:, np.newaxis] >> np.arange(self.low.shape[1])) & 1 == 1
        cut = center[positions]
        return _Nodes(
            low=np.where(above, cut, self.low[positions]),
            high=np.where(above, self.high[positions], cut),
            parent=self.id[positions],
            slot=slots,
            depth=self.depth[positions] + 1,
            n_rows=n_rows,
            id=np.full(len(positions), -1),
        )


def _join(parts: list[_Nodes]) -> _Nodes:
    return _Nodes(
        **{
            name: np.concatenate([getattr(part, name) for part in parts])
            for name in parts[0].__dict__
        }
    )


class _Grower:
    def __init__(self, X: Floats, leaf_capacity: int, max_depth: int | None, at_points: bool):
        self.n_rows, self.n_features = X.shape
        self.n_slots = 1 << self.n_features
        self.leaf_capacity = leaf_capacity
        self.max_depth = np.iinfo(np.intp).max if max_depth is None else max_depth
        self.at_points = at_points
        # Active rows: their values by feature, their indices, and the positions of their nodes.
        self.columns = [np.ascontiguousarray(column) for column in X.T]
        self.rows = np.arange(self.n_rows)
        self.positions = np.zeros(self.n_rows, dtype=np.intp)
        self.leaves = np.zeros(self.n_rows, dtype=np.intp)
        self.done: list[_Nodes] = []  # nodes with ids
        self.splits: list[tuple[Array, Floats]] = []  # (nodes, centres)
        self.n_nodes = 0

    def grow(self) -> tuple[Skeleton, Array]:
        root = _Nodes(
            low=np.array([[column.min() for column in self.columns]]),
            high=np.array([[column.max() for column in self.columns]]),
            parent=np.array([-1]),
            slot=np.array([-1]),
            depth=np.array([0]),
            n_rows=np.array([self.n_rows]),
            id=np.array([-1]),
        )
        self._assign_ids(root)
        nodes = root.take(self._is_split(root))
        while len(nodes.id):
            nodes = self._split_nodes(nodes)
        nodes = _join(self.done)
        center = np.full(nodes.low.shape, np.nan)
        for split, cut in self.splits:
            center[split] = cut
        skeleton = Skeleton(
            low=nodes.low,
            high=nodes.high,
            center=center,
            parent=nodes.parent,
            slot=nodes.slot,
            depth=nodes.depth,
            n_rows=nodes.n_rows,
        )
        return skeleton, self.leaves

    def _assign_ids(self, nodes: _Nodes) -> None:
        nodes.id = self.n_nodes + np.arange(len(nodes.id))
        self.n_nodes += len(nodes.id)
        self.done.append(nodes)

    def _is_split(self, nodes: _Nodes) -> Array:
        return (nodes.n_rows > self.leaf_capacity) & (nodes.depth < self.max_depth)

    def _split_nodes(self, nodes: _Nodes) -> _Nodes:
        """Split nodes and return those to split in the next round."""
        n, n_slots = len(nodes.id), self.n_slots
        center = self._first_points(n) if self.at_points else _middle(nodes)
        slots = self._slots(center, self.columns, self.positions)
        keys = self.positions * n_slots + slots
        counts = np.bincount(keys, minlength=n * n_slots).reshape(n, n_slots)
        # A node is stuck if one child would get all of its rows.
        stuck = np.flatnonzero(counts.max(axis=1) == nodes.n_rows)
        ended: list[_Nodes] = []  # nodes of the next round that have ids already
        separated = np.zeros(0, dtype=bool)  # whether each of these has distinct rows
        if len(stuck):
            stuck_position = np.full(n, -1)
            stuck_position[stuck] = np.arange(len(stuck))
            stuck_rows = np.flatnonzero(stuck_position[self.positions] >= 0)
            columns = [column[stuck_rows] for column in self.columns]
            positions = stuck_position[self.positions[stuck_rows]]
            if self.at_points:
                separated = self._other_points(center, stuck, columns, positions)
                keys[stuck_rows] = self.positions[stuck_rows] * n_slots + self._slots(
                    center[stuck], columns, positions
                )
                again = positions * n_slots + keys[stuck_rows] % n_slots
                counts[stuck] = np.bincount(again, minlength=len(stuck) * n_slots).reshape(
                    -1, n_slots
                )
                stuck = stuck[~separated]
                separated = separated[~separated]
                ended = [nodes.take(stuck)]
            else:
                shrunk, separated = self._shrink(nodes.take(stuck), columns, positions)
                ended = [shrunk]
            counts[stuck] = 0
        filled = np.flatnonzero(counts)
        positions, slots = np.divmod(filled, n_slots)
        children = nodes.children(positions, slots, center, counts.ravel()[filled])
        self._assign_ids(children)
        split = np.flatnonzero(counts.any(axis=1))
        self.splits.append((nodes.id[split], center[split]))
        next_nodes = _join([children, *ended])
        target = np.empty((n, n_slots), dtype=np.intp)
        target.ravel()[filled] = np.arange(len(filled))
        target[stuck] = len(filled) + np.arange(len(stuck))[:, np.newaxis]
        is_split = self._is_split(next_nodes)
        is_split[len(filled) :] &= separated
        self._move(target.ravel()[keys], next_nodes.id, is_split)
        return next_nodes.take(is_split)

    def _move(self, target: Array, ids: Array, is_split: Array) -> None:
        """Move the rows to the next nodes; remove the rows of leaves."""
        stays = is_split[target]
        in_leaf = ~stays
        self.leaves[self.rows[in_leaf]] = ids[target[in_leaf]]
        self.rows = self.rows[stays]
        self.positions = (np.cumsum(is_split) - 1)[target[stays]]
        self.columns = [column[stays] for column in self.columns]

    def _slots(self, center: Floats, columns: list[Floats], positions: Array) -> Array:
        slots = np.zeros(len(positions), dtype=np.intp)
        for j, column in enumerate(columns):
            above = column > np.ascontiguousarray(center[:, j])[positions]
            slots |= above.astype(np.intp) << j
        return slots

    # ------------------------------------------------------------------ midpoints

    def _shrink(
        self, nodes: _Nodes, columns: list[Floats], positions: Array
    ) -> tuple[_Nodes, Array]:
        """Halve boxes until their rows separate; return them and which have distinct rows."""
        n, d = nodes.low.shape
        least, most = np.full((n, d), np.inf), np.full((n, d), -np.inf)
        for j, column in enumerate(columns):
            np.minimum.at(least[:, j], positions, column)
            np.maximum.at(most[:, j], positions, column)
        distinct: Array = np.any(least < most, axis=1)
        # While all rows of a node are on the same side of the centre, its only child replaces it.
        # All such nodes are processed together.
        out = nodes
        active = np.flatnonzero(distinct)
        while len(active):
            some = out.take(active)
            center = _middle(some)
            above = most[active] > center
            alone = ((least[active] > center) == above).all(axis=1)
            alone &= some.depth < self.max_depth
            some, active = some.take(alone), active[alone]
            if not len(active):
                break
            center = center[alone]
            slots = (above[alone] << np.arange(d)).sum(axis=1)
            child = some.children(np.arange(len(slots)), slots, center, some.n_rows)
            self._assign_ids(child)
            self.splits.append((some.id, center))
            for name, value in child.__dict__.items():
                getattr(out, name)[active] = value
        return out, distinct

    # ------------------------------------------------------------------ points

    def _first_points(self, n_nodes: int) -> Floats:
        first = np.empty(n_nodes, dtype=np.intp)
        # For repeated indices NumPy keeps the last value, so reversed order keeps the first row.
        first[self.positions[::-1]] = np.arange(len(self.positions))[::-1]
        return np.stack([column[first] for column in self.columns], axis=1)

    def _other_points(
        self, center: Floats, stuck: Array, columns: list[Floats], positions: Array
    ) -> Array:
        """Choose another split point if no row is above the first one in any feature.

        The first row then separates nothing. The first row that differs from it does, because it
        is lower in some feature. Update `center` in place and return which nodes have such a row.
        """
        differs = np.zeros(len(positions), dtype=bool)
        for j, column in enumerate(columns):
            differs |= column != center[stuck, j][positions]
        others = np.flatnonzero(differs)
        first = np.full(len(stuck), -1)
        first[positions[others][::-1]] = others[::-1]
        separated = first >= 0
        for j, column in enumerate(columns):
            center[stuck[separated], j] = column[first[separated]]
        return separated


def _middle(nodes: _Nodes) -> Floats:
    """Return the centres of boxes: low <= centre < high, unless low equals high."""
    low, high = nodes.low, nodes.high
    with np.errstate(over="ignore"):
        middle = low + (high - low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    # Between neighbouring floats the centre may be rounded up to `high`, which separates nothing.
    return np.where(middle < high, middle, low)


def grow(
    X: Floats, leaf_capacity: int, max_depth: int | None, at_points: bool
) -> tuple[Skeleton, Array]:
    """Grow the nodes of a quad tree; return them and the leaf of each row.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows, in the order in which they are inserted.
    leaf_capacity : int
        A node with more rows is split, unless its rows are all equal.
    max_depth : int or None
        Largest depth of a node; None means no limit.
    at_points : bool
        Whether to split a node at its first row instead of the centre of its box.

    Returns
    -------
    skeleton : Skeleton
        The nodes.
    leaves : ndarray of shape (n_rows,)
        The leaf of each row.
    """
    return _Grower(X, leaf_capacity, max_depth, at_points).grow()
