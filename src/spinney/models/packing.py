"""The arrays of a forest in as few bytes as hold them, for files of compact forests.

Nothing is lost here. Nodes are in pre-order, so that two bits tell a node's children; whole numbers
take the narrowest type; values that lie on a *grid* (`_compaction` puts them there) are its steps.
A grid has, for each tree and number of a leaf, the lowest value and the size of a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["ARRAYS", "Arrays", "lengths_of", "on_grid", "pack", "unpack"]

Arrays = dict[str, NDArray[Any]]

# What the core calls its arrays, in the order in which `sizes` has their lengths.
ARRAYS: dict[str, type[Any]] = {
    "nodes": np.uint32,
    "thresholds": np.float64,
    "leaf_rows": np.uint32,
    "leaf_weight": np.float32,
    "leaf_weight_exact": np.float64,
    "leaf_class": np.uint32,
    "mixed_counts": np.float32,
    "values": np.float64,
    "leaf_impurity": np.float64,
    "inner_value": np.float64,
    "inner_impurity": np.float64,
    "category_bits": np.uint32,
    "members": np.uint32,
    "member_start": np.uint32,
}
_NARROW = (np.uint8, np.uint16, np.uint32, np.float32)
_FLAGS = np.uint32(3 << 30)  # of a node's feature: missing to the left, and categorical


def lengths_of(sizes: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return the length of one of the arrays in each tree."""
    column = list(ARRAYS).index(name)
    lengths: NDArray[np.int64] = sizes.reshape(-1, len(ARRAYS))[:, column].astype(np.int64)
    return lengths


def on_grid(grid: NDArray[np.float64], sizes: NDArray[Any], codes: Any) -> NDArray[np.float64]:
    """Return the values that so many steps lead to."""
    low, step = _spread(grid, sizes)
    values: NDArray[np.float64] = low + step * codes
    return values


def pack(arrays: Arrays, grid: NDArray[np.float64]) -> Arrays:
    """Return arrays that take less room, from which `unpack` makes the same again."""
    out = {name: _narrowed(array) for name, array in arrays.items() if name != "sizes"}
    out["sizes"] = _narrowed(arrays["sizes"])
    if len(grid):
        low, step = _spread(grid, arrays["sizes"])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(step > 0, np.rint((arrays["values"] - low) / step), 0)
        if np.array_equal(on_grid(grid, arrays["sizes"], steps), arrays["values"]):
            out["values"] = _narrowed(steps)
            out["values_on_grid"] = np.ones(1, dtype=np.uint8)
    nodes = arrays["nodes"].reshape(-1, 4)
    leaf_bits = (nodes[:, 2] >> 31) | (nodes[:, 3] >> 31) << 1
    children = _children(leaf_bits, arrays["sizes"])
    if np.array_equal(children, nodes[:, 2:].view(np.int32)):
        feature = nodes[:, 1]
        if not len(feature) or int((feature & ~_FLAGS).max()) < 1 << 28:
            out["nodes"] = np.ascontiguousarray(nodes[:, 0])
            out["questions"] = _narrowed(feature << 4 | feature >> 30 << 2 | leaf_bits)
    return out


def unpack(packed: Arrays, grid: NDArray[np.float64]) -> Arrays:
    """Make the core's arrays again; what does not fit together is a ValueError."""
    sizes = packed["sizes"].astype(np.uint64)
    if sizes.ndim != 1 or len(sizes) % len(ARRAYS) or (sizes >= 1 << 31).any():
        raise ValueError("a packed forest whose arrays have no lengths")
    out: Arrays = {"sizes": sizes}
    for name, kind in ARRAYS.items():
        if packed[name].ndim != 1:
            raise ValueError(f"{name} of a packed forest in {packed[name].ndim} dimensions")
        out[name] = packed[name].astype(kind)
    if "values_on_grid" in packed:
        out["values"] = on_grid(grid, sizes, out["values"])
    if "questions" in packed:
        questions = packed["questions"].astype(np.uint32)
        nodes = np.empty((len(questions), 4), dtype=np.uint32)
        nodes[:, 0] = out["nodes"]
        nodes[:, 1] = questions >> 4 | (questions >> 2 & 3) << 30
        nodes[:, 2:] = _children(questions & 3, sizes).view(np.uint32)
        out["nodes"] = nodes.reshape(-1)
    return out


def _children(leaf_bits: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.int32]:
    n_nodes = lengths_of(sizes, "nodes").astype(np.uint64)
    children = _core.number_children(np.ascontiguousarray(leaf_bits, dtype=np.uint8), n_nodes)
    return children.reshape(-1, 2)


def _spread(grid: NDArray[np.float64], sizes: NDArray[Any]) -> tuple[Any, Any]:
    """Return the lowest value and the step of each of the values."""
    n_trees = len(sizes) // len(ARRAYS)
    if grid.ndim != 3 or grid.shape[0] != n_trees or grid.shape[1] < 1 or grid.shape[2] != 2:
        raise ValueError(f"a grid of shape {grid.shape} for {n_trees} trees")
    n_leaves, rest = np.divmod(lengths_of(sizes, "values"), grid.shape[1])
    if rest.any():
        raise ValueError("a grid of another width than the leaves have")
    of_leaves = np.repeat(grid, n_leaves, axis=0)
    return of_leaves[:, :, 0].reshape(-1), of_leaves[:, :, 1].reshape(-1)


def _narrowed(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the narrowest type that has all of its values, to the bit."""
    for kind in _NARROW:
        if np.dtype(kind).itemsize >= array.dtype.itemsize:
            break
        with np.errstate(all="ignore"):
            narrow = array.astype(kind)
            again = narrow.astype(array.dtype)
        if np.array_equal(again.view(np.uint8), array.view(np.uint8)):
            return narrow
    return array
