"""Trees as the ONNX operator TreeEnsemble."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from spinney.export._onnx_graph import ML, Graph, tensor_of
from spinney.models.form import Floats, TreeScores
from spinney.models.tree import Tree

__all__ = ["FIRST_CODE", "add_tree_scores"]

# Codes of categories begin with 1 in a graph: onnxruntime converts sets of small positive numbers
# to bit masks, and others to chains of comparisons, which are slow.
FIRST_CODE = 1

_AT_MOST, _MEMBER = 0, 6  # nodes_modes: x <= split, x in a set
_SUM = 1
_LARGEST = float(np.finfo(np.float64).max)


class _Arrays:
    """The concatenated arrays of all trees, separately for inner nodes and leaves."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.features: list[NDArray[np.int64]] = []
        self.splits: list[Floats] = []
        self.modes: list[NDArray[np.uint8]] = []
        self.children: list[list[NDArray[np.int64]]] = [[], []]  # of the true and false branches
        self.leads_to_leaf: list[list[NDArray[np.bool_]]] = [[], []]
        self.missing_true: list[NDArray[np.bool_]] = []
        self.members: list[float] = []
        self.n_inner = 0
        self.n_leaves = 0

    def add(self, tree: Tree) -> NDArray[np.intp]:
        """Add the splits of a tree, and return its leaves in the order of their numbers."""
        is_leaf = tree.children_left < 0
        leaves, inner = np.flatnonzero(is_leaf), np.flatnonzero(~is_leaf)
        self.roots.append(self.n_inner)
        if len(inner) == 0:
            # TreeEnsemble needs an inner node: a split with two equal leaves.
            leaves = np.zeros(2, dtype=np.intp)
            children = tuple(np.array([self.n_leaves + side]) for side in (0, 1))
            leaf, missing = np.array([True]), np.array([False])
            self._append(np.array([0]), np.zeros(1), np.array([_AT_MOST]), children, missing)
            for side in self.leads_to_leaf:
                side.append(leaf)
        else:
            sides = tree.children_left[inner], tree.children_right[inner]
            # Splits between missing and present values have infinite thresholds, which some
            # runtimes handle wrongly.
            splits = np.minimum(tree.threshold[inner], _LARGEST)
            modes = np.full(len(inner), _AT_MOST)
            for i in np.flatnonzero(tree.category_start[inner] >= 0):
                splits[i], modes[i] = self._set_split(tree.category_masks(int(inner[i]))[0])
            number = np.empty(tree.node_count, dtype=np.int64)
            number[leaves] = self.n_leaves + np.arange(len(leaves))
            number[inner] = self.n_inner + np.arange(len(inner))
            missing_left = tree.missing_go_to_left[inner] != 0
            children = (number[sides[0]], number[sides[1]])
            self._append(tree.feature[inner], splits, modes, children, missing_left)
            for side, child in zip(self.leads_to_leaf, sides, strict=True):
                side.append(is_leaf[child])
        self.n_inner += max(len(inner), 1)
        self.n_leaves += len(leaves)
        return leaves

    def _append(self, feature: Any, split: Any, mode: Any, children: Any, missing: Any) -> None:
        self.features.append(feature)
        self.splits.append(split)
        self.modes.append(mode)
        self.missing_true.append(missing)
        for side, child in zip(self.children, children, strict=True):
            side.append(child)

    def _set_split(self, goes_left: NDArray[np.bool_]) -> tuple[float, int]:
        """Add a set of categories, and return the split and the mode of its node.

        Sets are in the order of the nodes, which is pre-order with the true branch first, because
        some runtimes read them in this order. So the set always lists the left branch.
        """
        if goes_left.all() or not goes_left.any():  # only missing values may go to the other side
            return (_LARGEST if goes_left.all() else 0.0), _AT_MOST
        codes = np.flatnonzero(goes_left) + FIRST_CODE
        self.members += [*codes.astype(np.float64).tolist(), np.nan]
        return 0.0, _MEMBER

    def attributes(self) -> dict[str, Any]:
        """Return the splits as attributes of TreeEnsemble."""
        out = {
            "tree_roots": self.roots,
            "nodes_featureids": np.concatenate(self.features).tolist(),
            "nodes_splits": tensor_of(np.concatenate(self.splits)),
            "nodes_modes": tensor_of(np.concatenate(self.modes).astype(np.uint8)),
            "nodes_missing_value_tracks_true": _ints(self.missing_true),
        }
        for side, child, leaf in zip(
            ("true", "false"), self.children, self.leads_to_leaf, strict=True
        ):
            out[f"nodes_{side}nodeids"] = _ints(child)
            out[f"nodes_{side}leafs"] = _ints(leaf)
        if self.members:
            out["membership_values"] = tensor_of(np.array(self.members))
        return out


def _ints(arrays: list[Any]) -> list[int]:
    return np.concatenate(arrays).astype(np.int64).tolist()


def add_tree_scores(graph: Graph, rows: str, scores: TreeScores, sums_to: float | None) -> str:
    """Add the sums of trees, (n_rows, n_scores).

    Parameters
    ----------
    graph : Graph
        The graph.
    rows : str
        A matrix in double precision.
    scores : TreeScores
        The trees.
    sums_to : float or None
        The sum of two scores of a row, if it is constant: then only one score is calculated.
    """
    scores = _without_constants(scores)
    arrays = _Arrays()
    leaves = [arrays.add(tree) for tree in scores.trees]
    values = [v[leaf] for v, leaf in zip(scores.values, leaves, strict=True)]
    n_scores = len(scores.start)
    of_tree = np.repeat(np.arange(len(leaves)), [len(leaf) for leaf in leaves])
    if all(target is not None for target in scores.adds_to) or n_scores == 1:
        targets = np.array([target or 0 for target in scores.adds_to])[of_tree]
        total = _ensemble(
            graph,
            rows,
            arrays,
            targets,
            weights=np.concatenate(values)[:, 0],
            n_targets=n_scores,
        )
        if scores.start.any():
            total = graph.add("Add", total, graph.constant(scores.start))
        return total
    if n_scores == 2 and sums_to is not None:
        of_second = np.concatenate(values)[:, 1]
        zeros = np.zeros_like(of_tree)
        second = _ensemble(graph, rows, arrays, zeros, weights=of_second, n_targets=1)
        if scores.start[1]:
            second = graph.add("Add", second, graph.number(float(scores.start[1])))
        first = graph.add("Sub", graph.number(sums_to), second)
        return graph.add("Concat", first, second, axis=1)
    # A leaf of TreeEnsemble has one value: here its number, which indexes tables of leaf values.
    numbers = np.arange(arrays.n_leaves, dtype=np.float64)
    reached = _ensemble(graph, rows, arrays, of_tree, weights=numbers, n_targets=len(leaves))
    reached = graph.add("Cast", reached, to=TensorProto.INT64)
    columns = []
    for k, start in enumerate(scores.start):
        table = graph.constant(np.concatenate(values)[:, k])
        total = graph.sum(graph.add("Gather", table, reached), keepdims=1)
        columns.append(graph.add("Add", total, graph.number(float(start))) if start else total)
    return graph.add("Concat", *columns, axis=1)


def _without_constants(scores: TreeScores) -> TreeScores:
    """Replace trees with one leaf by initial scores; at least one tree is kept.

    onnxruntime 1.23 and 1.24 calculate wrong sums if such trees are mixed with others.
    """
    start = scores.start.copy()
    kept: list[int] = []
    for t, (tree, target) in enumerate(zip(scores.trees, scores.adds_to, strict=True)):
        if tree.node_count > 1 or (t == len(scores.trees) - 1 and not kept):
            kept.append(t)
        elif target is None:
            start += scores.values[t][0]
        else:
            start[target] += scores.values[t][0, 0]
    return TreeScores(
        [scores.trees[t] for t in kept],
        [scores.values[t] for t in kept],
        [scores.adds_to[t] for t in kept],
        start,
    )


def _ensemble(
    graph: Graph, rows: str, arrays: _Arrays, targets: Any, *, weights: Floats, n_targets: int
) -> str:
    """Add a TreeEnsemble whose leaves add `weights` to `targets`."""
    attributes = arrays.attributes()
    order = _renumber_leaves(attributes)
    return graph.add(
        "TreeEnsemble",
        rows,
        domain=ML,
        aggregate_function=_SUM,
        n_targets=n_targets,
        leaf_targetids=targets[order].tolist(),
        leaf_weights=tensor_of(weights[order]),
        **attributes,
    )


def _renumber_leaves(attributes: dict[str, Any]) -> NDArray[np.int64]:
    """Renumber leaves with the number of their sibling; return the new order.

    onnxruntime 1.21 to 1.23 treat a node as a leaf if both children have the same number, even if
    one child is a leaf and the other is not.
    """
    true, false = (np.array(attributes[f"nodes_{side}nodeids"]) for side in ("true", "false"))
    leaf_true, leaf_false = (
        np.array(attributes[f"nodes_{side}leafs"], dtype=bool) for side in ("true", "false")
    )
    n_leaves = int(leaf_true.sum() + leaf_false.sum())
    beside = np.full(n_leaves, -1)
    beside[true[leaf_true & ~leaf_false]] = false[leaf_true & ~leaf_false]
    beside[false[leaf_false & ~leaf_true]] = true[leaf_false & ~leaf_true]
    order = np.arange(n_leaves)  # the leaf of each number
    for at in np.flatnonzero(beside == order).tolist():
        if beside[order[at]] != at:
            continue  # already swapped
        for other in ((at + step) % n_leaves for step in range(1, n_leaves)):
            if beside[order[other]] != at and beside[order[at]] != other:
                order[[at, other]] = order[[other, at]]
                break
    number = np.argsort(order)
    attributes["nodes_truenodeids"] = np.where(leaf_true, number[true * leaf_true], true).tolist()
    attributes["nodes_falsenodeids"] = np.where(
        leaf_false, number[false * leaf_false], false
    ).tolist()
    return order
