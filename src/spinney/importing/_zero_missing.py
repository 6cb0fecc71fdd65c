"""Zeros that stand for missing values, told apart by questions of their own.

LightGBM with ``zero_as_missing`` sends what lies within 1e-35 of zero where missing values go. If
the threshold already has zero on that side, or lies next to zero, one question says the same; if
not, three do, and what follows them has to be there twice.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.importing._trees import SourceTree

__all__ = ["BELOW_ZERO", "ZERO", "without_zero_missing"]

ZERO = float(np.float32(1e-35))
BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))  # the last number before them
_MOST_NODES = 1 << 18


def without_zero_missing(tree: SourceTree, about_zero: Any, label: str) -> SourceTree:
    """Write out what such questions mean.

    Parameters
    ----------
    tree : SourceTree
        The tree.
    about_zero : ndarray of bool
        Nodes whose missing values are zeros as well.
    label : str
        What an error calls the tree.

    Returns
    -------
    SourceTree
        The same answers by thresholds alone.
    """
    # Source node, threshold, and which share of what is known about its rows is in this copy.
    written: list[tuple[int, float, float]] = []
    children: list[list[int]] = []
    # What is still to be written, and which child of which written node it is.
    stack: list[tuple[int, int, int, float]] = [(0, -1, 0, 1.0)]

    def write(node: int, threshold: float, share: float, parent: int, side: int) -> int:
        if len(written) >= _MOST_NODES:
            raise ValueError(f"{label}: zero_as_missing makes more than {_MOST_NODES} nodes of it")
        if parent >= 0:
            children[parent][side] = len(written)
        written.append((node, threshold, share))
        children.append([-1, -1])
        return len(written) - 1

    while stack:
        node, parent, side, share = stack.pop()
        threshold = float(tree.threshold[node])
        ends = (int(tree.left[node]), int(tree.right[node]))
        if ends[0] < 0:
            write(node, threshold, share, parent, side)
            continue
        if not all(node < end < len(tree.left) for end in ends):
            raise ValueError(f"{label}: expected children after their parents")
        questions = [(threshold, 0)]
        if about_zero[node]:
            questions = _questions(threshold, bool(tree.missing_left[node]))
        copies = (len(questions) + 1) / 2  # of each end
        for number, (limit, end) in enumerate(questions):
            parent = write(node, limit, share if number == 0 else 0.0, parent, side)
            side = 1
            stack.append((ends[end], parent, 0, share / copies))
        stack.append((ends[1], parent, 1, share / copies))
    nodes = np.array([node for node, _, _ in written])
    shares = np.array([share for _, _, share in written])
    return SourceTree(
        np.array([left for left, _ in children]),
        np.array([right for _, right in children]),
        tree.feature[nodes],
        np.array([threshold for _, threshold, _ in written]),
        tree.missing_left[nodes],
        tree.value[nodes],
        tree.weight[nodes] * shares,
        np.ceil(tree.n_rows[nodes] * shares).astype(np.int64),
        tree.gain[nodes] * shares,
        {
            at: tree.left_categories[node]
            for at, node in enumerate(nodes.tolist())
            if node in tree.left_categories
        },
    )


def _questions(threshold: float, zero_left: bool) -> list[tuple[float, int]]:
    """Thresholds in ascending order, and which end what is up to each comes to (0: the left one).

    What is beyond the last comes to the right end.
    """
    if zero_left:
        if threshold >= -ZERO:
            return [(max(threshold, ZERO), 0)]
        return [(threshold, 0), (BELOW_ZERO, 1), (ZERO, 0)]
    if threshold <= ZERO:
        return [(min(threshold, BELOW_ZERO), 0)]
    return [(BELOW_ZERO, 0), (ZERO, 1), (threshold, 0)]
