"""Growth and prediction of comparison trees.

A split tests which of two training rows, the pivots, a row is closer to. This module never uses
distances, only a `Closer`: for arrays of row indices, ``closer(x, a, b)`` returns whether x[i] is
closer to a[i] than to b[i]. All nodes of a level are processed together.
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

_N_RETRIES = 5  # further pairs of pivots to draw if a pair sends all rows to one side


@dataclass
class ComparisonTree:
    """The nodes of a tree, as parallel arrays indexed by node; node 0 is the root.

    Nodes are numbered level by level.

    Attributes
    ----------
    left, right : ndarray of intp
        Children, -1 at a leaf. Rows that are closer to `pivot_a` than to `pivot_b` go left; other
        rows, including ties, go right.
    pivot_a, pivot_b : ndarray of intp
        Training rows, -1 at a leaf.
    value : ndarray of shape (node_count, n_values)
        Shares of the classes, or the mean.
    n_node_samples : ndarray of intp
        Number of training rows in the node; a row drawn several times counts once.
    weighted_n_node_samples : ndarray of float64
        Total weight of these rows.
    depth : ndarray of intp
        Number of comparisons on the path from the root.
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
        """Concatenate trees; return them with the start of each and the end of the last."""
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
        """Return one of several concatenated trees, the nodes from `first` to `last`."""
        arrays = {field.name: getattr(self, field.name)[first:last] for field in fields(self)}
        for name in ("left", "right"):
            arrays[name] = np.where(arrays[name] < 0, -1, arrays[name] - first)
        return ComparisonTree(**arrays)


@dataclass
class Targets:
    """Targets of a classification or a regression.

    Attributes
    ----------
    codes : ndarray of intp
        Rank of each row's target; the pivots of a node have different codes.
    n_classes : int
        Number of classes; 0 for a regression.
    numbers : ndarray of float64 or None
        The targets of a regression.
    """

    codes: Indices
    n_classes: int
    numbers: NDArray[np.float64] | None = None

    def values(
        self, rows: Indices, starts: Indices, weights: Any, totals: Any
    ) -> NDArray[np.float64]:
        """Return the class shares, or the means, of segments of rows."""
        n_nodes = len(starts) - 1
        sizes = np.diff(starts)
        if self.numbers is None:
            cells = np.repeat(np.arange(n_nodes) * self.n_classes, sizes) + self.codes[rows]
            sums = np.bincount(cells, weights, n_nodes * self.n_classes)
            return sums.reshape(n_nodes, self.n_classes) / totals[:, np.newaxis]
        # Sums are relative to the first target, so the mean of equal targets is exact.
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
    *,
    leaf_size: int = 1,
    max_depth: int | None = None,
) -> tuple[ComparisonTree, int]:
    """Grow a tree; return it with the number of comparisons.

    Parameters
    ----------
    closer : callable
        Comparison function for training rows.
    targets : Targets
        The targets of all training rows.
    rows : ndarray of intp
        The training rows to grow from. For a given seed, the tree depends on their order.
    weights : ndarray of float64
        Weights of all training rows, positive for `rows`. Pivots are drawn in proportion to them,
        so a weight of 2 equals repeating the row.
    rng : Generator
        Generator for the draws of pivots.
    leaf_size : int, default=1
        A node with at most this many rows is a leaf.
    max_depth : int or None, default=None
        Largest depth; None means no limit.
    """
    # The rows of a node are always sorted by target, because splits keep their order.
    rows = rows[np.argsort(targets.codes[rows], kind="stable")]
    # Scaling by a power of two is exact and prevents over- and underflow of products of weights.
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
            is_split = (n_left > 0) & (n_left < sizes)
            level.pivot_a[nodes[is_split]] = a[is_split]
            level.pivot_b[nodes[is_split]] = b[is_split]
            moved, cuts = _partition(rows, starts, goes_left, n_left)
            both = np.repeat(is_split, 2)
            done.append((np.repeat(nodes[is_split], 2), *_segments(moved, cuts, both)))
            is_open = ~is_split
            nodes = nodes[is_open]
        rows, starts = _merge(done)
        parents = np.flatnonzero(level.pivot_a >= 0)
        level.left[parents] = n_nodes + 2 * np.arange(len(parents))
        level.right[parents] = level.left[parents] + 1
    # Child indices already refer to the whole tree, so the levels are simply concatenated.
    arrays = {
        field.name: np.concatenate([getattr(level, field.name) for level in levels])
        for field in fields(ComparisonTree)
    }
    return ComparisonTree(**arrays), n_comparisons


def _segments(rows: Indices, starts: Indices, kept: NDArray[np.bool_]) -> tuple[Indices, Indices]:
    """Return the rows and starts of the nodes that are kept."""
    if kept.all():
        return rows, starts
    sizes = np.diff(starts)
    return rows[np.repeat(kept, sizes)], np.concatenate([[0], np.cumsum(sizes[kept])])


def _partition(
    rows: Indices, starts: Indices, goes_left: NDArray[np.bool_], n_left: Indices
) -> tuple[Indices, Indices]:
    """Stably partition the rows of each node: rows that go left come first."""
    sizes = np.diff(starts)
    # Left rows take positions from the start of the node, right rows follow the left ones.
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
    """Merge the children from several draws, in the order of their parents."""
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
    """Draw two rows with different targets in each node.

    The probability of a pair is proportional to the product of its weights. The first row is drawn
    with its weight times the weight of its possible partners, the second among these. The rows of
    a node with the same target are contiguous: a block.
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

    # Clipped, because sums of non-integer weights have rounding errors.
    draws = rng.random((2, len(first)))
    goal = pairs[first] + draws[0] * (pairs[last] - pairs[first])
    a = np.clip(np.searchsorted(pairs, goal, side="right") - 1, first, last - 1)
    block = np.searchsorted(blocks, a, side="right") - 1
    begin, end = blocks[block], blocks[block + 1]
    goal = draws[1] * others[block]
    before = sums[begin] - sums[first]
    is_before = ((goal < before) & (begin > first)) | (end == last)
    goal = np.where(is_before, sums[first] + goal, sums[end] + (goal - before))
    b = np.clip(
        np.searchsorted(sums, goal, side="right") - 1,
        np.where(is_before, first, end),
        np.where(is_before, begin, last) - 1,
    )
    return rows[a], rows[b]


def walk(closer: Closer, nodes: ComparisonTree, roots: Indices, n_rows: int) -> Indices:
    """Return the leaf of rows 0 … n_rows-1 for each root, (n_roots, n_rows).

    The number of comparisons of a row is the depth of its leaf.
    """
    node = np.repeat(roots, n_rows)
    active = np.flatnonzero(nodes.left[node] >= 0)
    while len(active):
        here = node[active]
        goes_left = closer(active % n_rows, nodes.pivot_a[here], nodes.pivot_b[here])
        node[active] = np.where(goes_left, nodes.left[here], nodes.right[here])
        active = active[nodes.left[node[active]] >= 0]
    return node.reshape(len(roots), n_rows)
