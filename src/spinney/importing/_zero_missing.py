"""Conversion of splits that treat zeros as missing values to plain splits.

LightGBM with ``zero_as_missing`` sends values within 1e-35 of zero in the default direction. If
zero is already on that side of the threshold, or next to it, one split is equivalent. Otherwise,
three splits are needed, and the subtrees below them are duplicated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.importing._trees import SourceTree

__all__ = ["BELOW_ZERO", "ZERO", "without_zero_missing"]

ZERO = float(np.float32(1e-35))
BELOW_ZERO = float(np.nextafter(-ZERO, -np.inf))  # the largest number below this range
_MOST_NODES = 1 << 18


def without_zero_missing(tree: SourceTree, about_zero: Any, label: str) -> SourceTree:
    """Return an equivalent tree without splits that treat zeros as missing values.

    Parameters
    ----------
    tree : SourceTree
        The tree.
    about_zero : ndarray of bool
        Whether each node treats zeros as missing values.
    label : str
        The name of the tree in errors.

    Returns
    -------
    SourceTree
        A tree with threshold splits only and the same predictions.
    """
    # Source node, threshold, and the share of the node's rows and weight that this copy gets.
    written: list[tuple[int, float, float]] = []
    children: list[list[int]] = []
    # Nodes still to be written: source node, written parent, side (0 left, 1 right), share.
    stack: list[tuple[int, int, int, float]] = [(0, -1, 0, 1.0)]

    def write(node: int, threshold: float, share: float, parent: int, side: int) -> int:
        if len(written) >= _MOST_NODES:
            raise ValueError(
                f"{label}: expected at most {_MOST_NODES} nodes after converting zero_as_missing, "
                "got more"
            )
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
            raise ValueError(f"{label}: expected children after their parents, got others")
        splits = [(threshold, 0)]
        if about_zero[node]:
            splits = _plain_splits(threshold, bool(tree.missing_left[node]))
        copies = (len(splits) + 1) / 2  # the number of copies of each child
        for number, (limit, end) in enumerate(splits):
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


def _plain_splits(threshold: float, zero_left: bool) -> list[tuple[float, int]]:
    """Return ascending thresholds and the child (0 or 1) of values up to each.

    Values above the last threshold go to the right child.
    """
    if zero_left:
        if threshold >= -ZERO:
            return [(max(threshold, ZERO), 0)]
        return [(threshold, 0), (BELOW_ZERO, 1), (ZERO, 0)]
    if threshold <= ZERO:
        return [(min(threshold, BELOW_ZERO), 0)]
    return [(BELOW_ZERO, 0), (ZERO, 1), (threshold, 0)]
