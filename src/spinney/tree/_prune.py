"""Pruning: the nested sequence of subtrees, and how to choose among them.

Nothing here refits what can be derived. A nested sequence is one number per node, the alpha from
which on the node is a leaf; the validation error of every subtree in the sequence follows from one
pass of the validation rows down the full tree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core
from spinney.tree._tree import Tree

__all__ = ["link_alphas", "node_risk", "path_losses", "reduced_error_leaves", "row_losses"]

Floats = NDArray[np.float64]


def node_risk(tree: Tree, by: str) -> Floats:
    """Risk of each node on the training rows if it were a leaf, as a share of all weight."""
    share = tree.weighted_n_node_samples / tree.weighted_n_node_samples[0]
    if by == "impurity":
        return share * tree.impurity
    wrong = 1.0 - tree.value.max(axis=2)
    risk: Floats = share * wrong.mean(axis=1)
    return risk


def link_alphas(tree: Tree, by: str) -> tuple[Floats, Floats, Floats]:
    """Weakest-link pruning: the alphas, the risk of each subtree, and each node's own alpha."""
    alphas, risks, node_alpha = _core.weakest_links(
        tree.children_left, tree.children_right, node_risk(tree, by)
    )
    return alphas, risks, node_alpha


def row_losses(tree: Tree, rows: Any, nodes: Any, y: Any, loss: str) -> Floats:
    """Loss of predicting row ``rows[i]`` by node ``nodes[i]``; y has one column per output."""
    if loss == "error":
        predicted = tree.value.argmax(axis=2)
        return np.mean(predicted[nodes] != y[rows], axis=1)
    predicted = tree.value[:, :, 0][nodes]
    target = y[rows]
    if loss == "absolute_error":
        return np.mean(np.abs(target - predicted), axis=1)
    if loss == "poisson":
        # Half the deviance; a target of zero contributes only the prediction.
        ratio = np.where(target > 0, target / predicted, 1.0)
        return np.mean(target * np.log(ratio) - target + predicted, axis=1)
    return np.mean((target - predicted) ** 2, axis=1)


def path_losses(
    tree: Tree, path: Any, y: Any, weight: Floats, node_alpha: Floats, loss: str
) -> tuple[Floats, Floats]:
    """Validation loss of every subtree of the nested sequence.

    Parameters
    ----------
    tree : Tree
        The full tree.
    path : csr_matrix
        Decision paths of the validation rows.
    y, weight : ndarray
        Their targets (codes of classes, or numbers; one column per output) and weights.
    node_alpha : ndarray
        The alpha from which on each node is a leaf.
    loss : str
        As `row_losses` takes it.

    Returns
    -------
    alphas, losses : ndarray
        ``losses[i]`` is the total loss for any alpha in ``[alphas[i], alphas[i+1])``.
    """
    rows = np.repeat(np.arange(path.shape[0]), np.diff(path.indptr))
    nodes = path.indices
    at_node = row_losses(tree, rows, nodes, y, loss) * weight[rows]
    last = np.zeros(len(nodes), dtype=bool)
    last[path.indptr[1:] - 1] = True
    full = at_node[last].sum()
    # When a node becomes a leaf its rows' losses change from those of the next node on their way.
    # Along a way alphas fall, so the changes telescope.
    inner = np.flatnonzero(~last)
    change = np.bincount(
        nodes[inner], weights=at_node[inner] - at_node[inner + 1], minlength=tree.node_count
    )
    internal = np.flatnonzero(tree.children_left >= 0)
    order = internal[np.argsort(node_alpha[internal], kind="stable")]
    alphas = np.concatenate([[0.0], node_alpha[order]])
    losses = np.concatenate([[full], full + np.cumsum(change[order])])
    # Nodes of the same alpha become leaves together: only the last of them counts.
    keep = np.append(alphas[1:] != alphas[:-1], True)
    return alphas[keep], losses[keep]


def reduced_error_leaves(tree: Tree, path: Any, y: Any, weight: Floats, loss: str) -> Any:
    """Return which nodes reduced-error pruning makes leaves.

    From the bottom up, a node becomes a leaf where that does not raise the loss on the validation
    rows. A node that no validation row reaches becomes one, as nothing speaks for its subtree.
    """
    rows = np.repeat(np.arange(path.shape[0]), np.diff(path.indptr))
    losses = row_losses(tree, rows, path.indices, y, loss) * weight[rows]
    as_leaf = np.bincount(path.indices, weights=losses, minlength=tree.node_count)
    best = as_leaf.copy()
    is_leaf = tree.children_left < 0
    slack = 1e-12 * max(1.0, float(as_leaf[0]))  # sums in another order may differ by rounding
    for node in _bottom_up(tree):
        below = best[tree.children_left[node]] + best[tree.children_right[node]]
        if as_leaf[node] <= below + slack:
            is_leaf[node] = True
        else:
            best[node] = below
    return is_leaf


def _bottom_up(tree: Tree) -> Any:
    """Give the internal nodes, children before their parents."""
    depths = tree.compute_node_depths()
    internal = np.flatnonzero(tree.children_left >= 0)
    return internal[np.argsort(-depths[internal], kind="stable")]
