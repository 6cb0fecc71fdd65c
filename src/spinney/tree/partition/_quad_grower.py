"""Grows quad trees, all nodes of a level at once.

A *round* looks at all rows of all nodes that are to be split. The node's *place* in the round and
one bit a feature (is x above the centre?) make a row's *slot*; counting slots gives the children.
Rows that arrive in a leaf drop out.

A node whose rows all fall into one child has to be looked at again. Either its rows are all the
same, and it is a leaf. Or its box is large for its rows: then it is halved, by the corners of its
rows alone, until the rows part, so that a far outlier costs nodes but no passes over the rows. (A
node that is split at a point instead takes another point, see `_other_points`.)
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
    """Nodes, each after its parent.

    Attributes
    ----------
    low, high : ndarray of shape (n_nodes, n_features)
        Boxes.
    center : ndarray of shape (n_nodes, n_features)
        Where nodes are split; NaN for leaves.
    parent, slot, depth, n_rows : ndarray of shape (n_nodes,)
        The parent (−1 for the root), which of its children a node is, and so on.
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

    def children(self, places: Array, slots: Array, center: Floats, n_rows: Array) -> _Nodes:
        """Make a child in each of some slots, still without a number."""
        above = (slots[:, np.newaxis] >> np.arange(self.low.shape[1])) & 1 == 1
        cut = center[places]
        return _Nodes(
            low=np.where(above, cut, self.low[places]),
            high=np.where(above, self.high[places], cut),
            parent=self.id[places],
            slot=slots,
            depth=self.depth[places] + 1,
            n_rows=n_rows,
            id=np.full(len(places), -1),
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
        self.fan = 1 << self.n_features
        self.leaf_capacity = leaf_capacity
        self.max_depth = np.iinfo(np.intp).max if max_depth is None else max_depth
        self.at_points = at_points
        # Rows under way: their values by feature, their numbers, their nodes' places in the round.
        self.columns = [np.ascontiguousarray(column) for column in X.T]
        self.rows = np.arange(self.n_rows)
        self.places = np.zeros(self.n_rows, dtype=np.intp)
        self.leaves = np.zeros(self.n_rows, dtype=np.intp)
        self.done: list[_Nodes] = []  # nodes with numbers
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
        self._number(root)
        nodes = root.take(self._is_split(root))
        while len(nodes.id):
            nodes = self._round(nodes)
        nodes = _join(self.done)
        center = np.full(nodes.low.shape, np.nan)
        for split, cut in self.splits:
            center[split] = cut
        return (
            Skeleton(
                nodes.low, nodes.high, center, nodes.parent, nodes.slot, nodes.depth, nodes.n_rows
            ),
            self.leaves,
        )

    def _number(self, nodes: _Nodes) -> None:
        nodes.id = self.n_nodes + np.arange(len(nodes.id))
        self.n_nodes += len(nodes.id)
        self.done.append(nodes)

    def _is_split(self, nodes: _Nodes) -> Array:
        return (nodes.n_rows > self.leaf_capacity) & (nodes.depth < self.max_depth)

    def _round(self, nodes: _Nodes) -> _Nodes:
        """Split nodes; return those that are next."""
        n, fan = len(nodes.id), self.fan
        center = self._first_points(n) if self.at_points else _middle(nodes)
        slots = self._slots(center, self.columns, self.places)
        keys = self.places * fan + slots
        counts = np.bincount(keys, minlength=n * fan).reshape(n, fan)
        # A node has one child if that child has all of its rows.
        stuck = np.flatnonzero(counts.max(axis=1) == nodes.n_rows)
        ended: list[_Nodes] = []  # nodes that follow and have their numbers already
        parted = np.zeros(0, dtype=bool)  # of those: whether they have different rows
        if len(stuck):
            mine = np.full(n, -1)
            mine[stuck] = np.arange(len(stuck))
            of_stuck = np.flatnonzero(mine[self.places] >= 0)
            columns = [column[of_stuck] for column in self.columns]
            places = mine[self.places[of_stuck]]
            if self.at_points:
                parted = self._other_points(center, stuck, columns, places)
                keys[of_stuck] = self.places[of_stuck] * fan + self._slots(
                    center[stuck], columns, places
                )
                again = places * fan + keys[of_stuck] % fan
                counts[stuck] = np.bincount(again, minlength=len(stuck) * fan).reshape(-1, fan)
                stuck = stuck[~parted]
                parted = parted[~parted]
                ended = [nodes.take(stuck)]
            else:
                shrunk, parted = self._shrink(nodes.take(stuck), columns, places)
                ended = [shrunk]
            counts[stuck] = 0
        filled = np.flatnonzero(counts)
        places, slots = np.divmod(filled, fan)
        born = nodes.children(places, slots, center, counts.ravel()[filled])
        self._number(born)
        split = np.flatnonzero(counts.any(axis=1))
        self.splits.append((nodes.id[split], center[split]))
        following = _join([born, *ended])
        target = np.empty((n, fan), dtype=np.intp)
        target.ravel()[filled] = np.arange(len(filled))
        target[stuck] = len(filled) + np.arange(len(stuck))[:, np.newaxis]
        go_on = self._is_split(following)
        go_on[len(filled) :] &= parted
        self._move(target.ravel()[keys], following.id, go_on)
        return following.take(go_on)

    def _move(self, target: Array, ids: Array, go_on: Array) -> None:
        """Send the rows to the next nodes; those of leaves are through."""
        stays = go_on[target]
        through = ~stays
        self.leaves[self.rows[through]] = ids[target[through]]
        self.rows = self.rows[stays]
        self.places = (np.cumsum(go_on) - 1)[target[stays]]
        self.columns = [column[stays] for column in self.columns]

    def _slots(self, center: Floats, columns: list[Floats], places: Array) -> Array:
        slots = np.zeros(len(places), dtype=np.intp)
        for j, column in enumerate(columns):
            above = column > np.ascontiguousarray(center[:, j])[places]
            slots |= above.astype(np.intp) << j
        return slots

    # ------------------------------------------------------------------ midpoints

    def _shrink(self, nodes: _Nodes, columns: list[Floats], places: Array) -> tuple[_Nodes, Array]:
        """Halve boxes until the rows part. Tells which do: not those whose rows are the same."""
        n, d = nodes.low.shape
        least, most = np.full((n, d), np.inf), np.full((n, d), -np.inf)
        for j, column in enumerate(columns):
            np.minimum.at(least[:, j], places, column)
            np.maximum.at(most[:, j], places, column)
        parts: Array = np.any(least < most, axis=1)
        # The box of a node shrinks with its rows on the same side of the centre, all of them at
        # once: the node is replaced by its only child, and that one by its own.
        out = nodes
        under_way = np.flatnonzero(parts)
        while len(under_way):
            some = out.take(under_way)
            center = _middle(some)
            above = most[under_way] > center
            alone = ((least[under_way] > center) == above).all(axis=1)
            alone &= some.depth < self.max_depth
            some, under_way = some.take(alone), under_way[alone]
            if not len(under_way):
                break
            center = center[alone]
            slots = (above[alone] << np.arange(d)).sum(axis=1)
            child = some.children(np.arange(len(slots)), slots, center, some.n_rows)
            self._number(child)
            self.splits.append((some.id, center))
            for name, value in child.__dict__.items():
                getattr(out, name)[under_way] = value
        return out, parts

    # ------------------------------------------------------------------ points

    def _first_points(self, n_nodes: int) -> Floats:
        first = np.empty(n_nodes, dtype=np.intp)
        # Of several values for one place the last one stays.
        first[self.places[::-1]] = np.arange(len(self.places))[::-1]
        return np.stack([column[first] for column in self.columns], axis=1)

    def _other_points(
        self, center: Floats, stuck: Array, columns: list[Floats], places: Array
    ) -> Array:
        """Split at another point where no row is above the first one in any feature.

        It parts nothing. The first point that is not equal to it does: it is below it somewhere.
        Sets new centres and returns where there are any.
        """
        differs = np.zeros(len(places), dtype=bool)
        for j, column in enumerate(columns):
            differs |= column != center[stuck, j][places]
        others = np.flatnonzero(differs)
        first = np.full(len(stuck), -1)
        first[places[others][::-1]] = others[::-1]
        parted = first >= 0
        for j, column in enumerate(columns):
            center[stuck[parted], j] = column[first[parted]]
        return parted


def _middle(nodes: _Nodes) -> Floats:
    """Middles of boxes: at least the low end, and below the high one if they differ."""
    low, high = nodes.low, nodes.high
    with np.errstate(over="ignore"):
        middle = low + (high - low) / 2
    middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    # Between neighbouring floats the middle may be rounded up, which would part nothing.
    return np.where(middle < high, middle, low)


def grow(
    X: Floats, leaf_capacity: int, max_depth: int | None, at_points: bool
) -> tuple[Skeleton, Array]:
    """Grow the nodes of a quad tree, and return each row's leaf with them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The rows, in the order in which they are inserted.
    leaf_capacity : int
        A node with more rows is split, unless they are all the same.
    max_depth : int or None
        The depth that no node exceeds.
    at_points : bool
        Whether a node is split at its first point rather than in the middle of its box.

    Returns
    -------
    skeleton : Skeleton
        The nodes.
    leaves : ndarray of shape (n_rows,)
        The leaf of each row.
    """
    return _Grower(X, leaf_capacity, max_depth, at_points).grow()
