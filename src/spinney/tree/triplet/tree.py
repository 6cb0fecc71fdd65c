"""Trees that ask which of two training rows a row is closer to.

What is grown and walked here never sees a distance, only answers of a `Closer`:
``closer(x, a, b)`` tells for arrays of row numbers whether x[i] is closer to a[i] than to b[i]. All
nodes of a level are worked on together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Closer", "ComparisonTree", "Targets", "grow_tree", "walk"]

Indices = NDArray[np.intp]
Closer = Callable[[Indices, Indices, Indices], NDArray[np.bool_]]

_N_RETRIES = 5  # pairs of pivots to try after one that leaves all rows on one side


@dataclass
class ComparisonTree:
    """The nodes of a tree, as parallel arrays indexed by node; node 0 is the root.

    Nodes are numbered level by level.

    Attributes
    ----------
    left, right : ndarray of intp
        Children, -1 at a leaf. Rows that are closer to `pivot_a` than to `pivot_b` go left, others
        right, those between the two as well.
    pivot_a, pivot_b : ndarray of intp
        Training rows, -1 at a leaf.
    value : ndarray of shape (node_count, n_values)
        Shares of the classes, or the mean.
    n_node_samples : ndarray of intp
        Training rows in the node; a row that was drawn several times counts once.
    weighted_n_node_samples : ndarray of float64
        Their weight.
    depth : ndarray of intp
        Comparisons on the way from the root.
    """

    left: Indices
    right: Indices
    pivot_a: Indices
    pivot_b: Indices
    value: NDArray[np.float64]
    n_node_samples: Indices
    weighted_n_node_samples: NDArray[np.float64]
    depth: Indices

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return len(self.left)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.left < 0))

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.depth.max())

    @classmethod
    def joined(cls, trees: Sequence[ComparisonTree]) -> tuple[ComparisonTree, Indices]:
        """Trees one after the other in the same arrays, and where each begins and the last ends."""
        starts = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])])
        shift = np.repeat(starts[:-1], np.diff(starts))
        arrays = {
            field.name: np.concatenate([getattr(tree, field.name) for tree in trees])
            for field in fields(cls)
        }
        for name in ("left", "right"):
            arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] + shift)
        return cls(**arrays), starts

    def part(self, first: int, last: int) -> ComparisonTree:
        """Take one tree out of several."""
        arrays = {field.name: getattr(self, field.name)[first:last] for field in fields(self)}
        for name in ("left", "right"):
            arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] - first)
        return ComparisonTree(**arrays)


@dataclass
class Targets:
    """What is learned: classes, or numbers.

    Attributes
    ----------
    codes : ndarray of intp
        Rank of each row's target; pivots differ in it.
    n_classes : int
        Number of classes; 0 if `numbers` are learned.
    numbers : ndarray of float64 or None
        The targets of a regression.
    """

    codes: Indices
    n_classes: int
    numbers: NDArray[np.float64] | None = None

    def values(
        self, rows: Indices, starts: Indices, weights: Any, totals: Any
    ) -> NDArray[np.float64]:
        """Shares or means of segments of rows."""
        n_nodes = len(starts) - 1
        sizes = np.diff(starts)
        if self.numbers is None:
            cells = np.repeat(np.arange(n_nodes) * self.n_classes, sizes) + self.codes[rows]
            sums = np.bincount(cells, weights, n_nodes * self.n_classes)
            return sums.reshape(n_nodes, self.n_classes) / totals[:, np.newaxis]
        # Relative to the first: the mean of equal numbers is that number, to the bit.
        numbers = self.numbers[rows]
        first = numbers[starts[:-1]]
        beyond = np.add.reduceat(weights * (numbers - np.repeat(first, sizes)), starts[:-1])
        return (first + beyond / totals)[:, np.newaxis]


def grow_tree(
    closer: Closer,
    targets: Targets,
    rows: Indices,
    weights: NDArray[np.float64],
    rng: np.random.Generator,
    leaf_size: int = 1,
    max_depth: int | None = None,
) -> tuple[ComparisonTree, int]:
    """Grow a tree and count the comparisons that it asked for.

    Parameters
    ----------
    closer : callable
        Answers about training rows.
    targets : Targets
        What is learned.
    rows : ndarray of intp
        The training rows to grow from. Their order decides what a draw stands for.
    weights : ndarray of float64
        Weights of all training rows, positive for `rows`. Pivots are drawn in proportion to them,
        so that a weight of two is as good as the row twice.
    rng : Generator
        Draws the pivots.
    leaf_size : int, default=1
        Rows of which a node is no longer divided.
    max_depth : int or None, default=None
        Levels at most.
    """
    # In a node rows are always in the order of their targets, since dividing keeps the order.
    rows = rows[np.argsort(targets.codes[rows], kind="stable")]
    # A power of two is exact, and keeps products of weights from over- and underflow.
    scaled = np.ldexp(weights, -int(np.frexp(weights[rows].max())[1]))
    starts = np.array([0, len(rows)])
    levels: list[ComparisonTree] = []
    n_nodes = n_comparisons = 0
    while len(starts) > 1:
        n_here = len(starts) - 1
        sizes = np.diff(starts)
        own_weights = weights[rows]
        totals = np.add.reduceat(own_weights, starts[:-1])
        nothing = np.full(n_here, -1, dtype=np.intp)
        level = ComparisonTree(
            left=nothing,
            right=nothing.copy(),
            pivot_a=nothing.copy(),
            pivot_b=nothing.copy(),
            value=targets.values(rows, starts, own_weights, totals),
            n_node_samples=sizes,
            weighted_n_node_samples=totals,
            depth=np.full(n_here, len(levels), dtype=np.intp),
        )
        levels.append(level)
        n_nodes += n_here
        mixed = targets.codes[rows[starts[:-1]]] != targets.codes[rows[starts[1:] - 1]]
        is_open = mixed & (sizes > leaf_size)
        if max_depth is not None and len(levels) > max_depth:
            is_open[:] = False
        nodes = np.flatnonzero(is_open)
        done: list[tuple[Any, ...]] = []
        for _ in range(1 + _N_RETRIES):
            rows, starts = _segments(rows, starts, is_open)
            if len(nodes) == 0:
                break
            a, b = _draw_pivots(rows, starts, targets.codes[rows], scaled[rows], rng)
            sizes = np.diff(starts)
            goes_left = closer(rows, np.repeat(a, sizes), np.repeat(b, sizes))
            n_comparisons += len(rows)
            n_left = np.add.reduceat(goes_left, starts[:-1], dtype=np.intp)
            divides = (n_left > 0) & (n_left < sizes)
            level.pivot_a[nodes[divides]] = a[divides]
            level.pivot_b[nodes[divides]] = b[divides]
            moved, cuts = _divide(rows, starts, goes_left, n_left)
            both = np.repeat(divides, 2)
            done.append((np.repeat(nodes[divides], 2), *_segments(moved, cuts, both)))
            is_open = ~divides
            nodes = nodes[is_open]
        rows, starts = _merge(done)
        parents = np.flatnonzero(level.pivot_a >= 0)
        level.left[parents] = n_nodes + 2 * np.arange(len(parents))
        level.right[parents] = level.left[parents] + 1
    # Children are already numbered in the tree, not in their level.
    arrays = {
        field.name: np.concatenate([getattr(level, field.name) for level in levels])
        for field in fields(ComparisonTree)
    }
    return ComparisonTree(**arrays), n_comparisons


def _segments(rows: Indices, starts: Indices, kept: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Leave out the rows of nodes that are not kept."""
    if kept.all():
        return rows, starts
    sizes = np.diff(starts)
    return rows[np.repeat(kept, sizes)], np.concatenate([[0], np.cumsum(sizes[kept])])


def _divide(
    rows: Indices, starts: Indices, goes_left: NDArray[np.bool_], n_left: Indices
) -> tuple[Indices, Indices]:
    """Put the rows that go left first in each node; order is kept on both sides."""
    sizes = np.diff(starts)
    # Left rows take places from the start, right rows from the first cut on.
    before = np.cumsum(goes_left)
    lefts_before_node = np.concatenate([[0], np.cumsum(n_left)[:-1]])
    to_left = before - 1 + np.repeat(starts[:-1] - lefts_before_node, sizes)
    to_right = np.arange(len(rows)) - before + np.repeat(lefts_before_node + n_left, sizes)
    moved = np.empty_like(rows)
    moved[np.where(goes_left, to_left, to_right)] = rows
    cuts = np.empty(2 * len(sizes) + 1, dtype=np.intp)
    cuts[::2] = starts
    cuts[1::2] = starts[:-1] + n_left
    return moved, cuts


def _merge(done: list[tuple[Any, ...]]) -> tuple[Indices, Indices]:
    """Put the children that came out of several draws into the order of their parents."""
    done = [part for part in done if len(part[0])]
    if len(done) == 1:
        return done[0][1], done[0][2]
    if not done:
        return np.empty(0, dtype=np.intp), np.zeros(1, dtype=np.intp)
    parents = np.concatenate([part[0] for part in done])
    sizes = np.concatenate([np.diff(part[2]) for part in done])
    rows = np.concatenate([part[1] for part in done])
    order = np.argsort(parents, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    rows = rows[np.argsort(np.repeat(rank, sizes), kind="stable")]
    return rows, np.concatenate([[0], np.cumsum(sizes[order])])


def _draw_pivots(
    rows: Indices,
    starts: Indices,
    codes: Indices,
    weights: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[Indices, Indices]:
    """Draw two rows of different targets in each node, every pair in proportion to its weights.

    The first is drawn in proportion to its weight times the weight of the rows it may be paired
    with, the second among these. In a node rows of the same target lie side by side, in a block.
    """
    first, last = starts[:-1], starts[1:]
    changes = codes[1:] != codes[:-1]
    changes[starts[1:-1] - 1] = True
    blocks = np.concatenate([[0], np.flatnonzero(changes) + 1, [len(rows)]])
    sums = np.concatenate([[0.0], np.cumsum(weights)])
    node_weight = sums[last] - sums[first]
    block_node = np.repeat(np.arange(len(first)), np.diff(np.searchsorted(blocks, starts)))
    others = node_weight[block_node] - (sums[blocks[1:]] - sums[blocks[:-1]])
    pairs = np.concatenate([[0.0], np.cumsum(weights * np.repeat(others, np.diff(blocks)))])

    # Clipped: where weights are no integers, sums may be off in the last digit.
    draws = rng.random((2, len(first)))
    aim = pairs[first] + draws[0] * (pairs[last] - pairs[first])
    a = np.clip(np.searchsorted(pairs, aim, side="right") - 1, first, last - 1)
    block = np.searchsorted(blocks, a, side="right") - 1
    begin, end = blocks[block], blocks[block + 1]
    aim = draws[1] * others[block]
    before = sums[begin] - sums[first]
    is_before = ((aim < before) & (begin > first)) | (end == last)
    aim = np.where(is_before, sums[first] + aim, sums[end] + (aim - before))
    b = np.clip(
        np.searchsorted(sums, aim, side="right") - 1,
        np.where(is_before, first, end),
        np.where(is_before, begin, last) - 1,
    )
    return rows[a], rows[b]


def walk(closer: Closer, nodes: ComparisonTree, roots: Indices, n_rows: int) -> Indices:
    """Find the leaves that rows 0 … n_rows-1 reach from each root, (n_roots, n_rows).

    The depth of a leaf is the number of comparisons that its rows asked for.
    """
    node = np.repeat(roots, n_rows)
    active = np.flatnonzero(nodes.left[node] >= 0)
    while len(active):
        here = node[active]
        goes_left = closer(active % n_rows, nodes.pivot_a[here], nodes.pivot_b[here])
        node[active] = np.where(goes_left, nodes.left[here], nodes.right[here])
        active = active[nodes.left[node[active]] >= 0]
    return node.reshape(len(roots), n_rows)
