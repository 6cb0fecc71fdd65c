"""Lossless packing of the arrays of a forest, for files of compact forests.

Nodes are in pre-order, so two bits per node determine its children. Integers use the narrowest
type. Values on a *grid* (see `spinney.models.compaction`) are stored as integer steps. A grid has,
for each tree and each value of a leaf, the lowest value and the step size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney import _core

__all__ = ["ARRAYS", "SPLITS", "Arrays", "lengths_of", "on_grid", "pack", "unpack"]

Arrays = dict[str, NDArray[Any]]

# Names of the core's arrays, in the order of their lengths in `sizes`.
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
SPLITS = "questions"  # language: allow (a name in model files: feature and kinds of children)
_NARROW = (np.uint8, np.uint16, np.uint32, np.float32)
_FLAGS = np.uint32(3 << 30)  # bits in a node's feature: missing goes left, and categorical


def lengths_of(sizes: NDArray[Any], name: str) -> NDArray[np.int64]:
    """Return the length of an array in each tree."""
    column = list(ARRAYS).index(name)
    lengths: NDArray[np.int64] = sizes.reshape(-1, len(ARRAYS))[:, column].astype(np.int64)
    return lengths


def on_grid(grid: NDArray[np.float64], sizes: NDArray[Any], codes: Any) -> NDArray[np.float64]:
    """Return the values at the given numbers of steps: low + step * codes."""
    low, step = _grid_of_values(grid, sizes)
    values: NDArray[np.float64] = low + step * codes
    return values


def pack(arrays: Arrays, grid: NDArray[np.float64]) -> Arrays:
    """Return smaller arrays, from which `unpack` restores the same values."""
    out = {name: _narrowest(array) for name, array in arrays.items() if name != "sizes"}
    out["sizes"] = _narrowest(arrays["sizes"])
    if len(grid):
        low, step = _grid_of_values(grid, arrays["sizes"])
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(step > 0, np.rint((arrays["values"] - low) / step), 0)
        if np.array_equal(on_grid(grid, arrays["sizes"], steps), arrays["values"]):
            out["values"] = _narrowest(steps)
            out["values_on_grid"] = np.ones(1, dtype=np.uint8)
    nodes = arrays["nodes"].reshape(-1, 4)
    leaf_bits = (nodes[:, 2] >> 31) | (nodes[:, 3] >> 31) << 1
    children = _children(leaf_bits, arrays["sizes"])
    if np.array_equal(children, nodes[:, 2:].view(np.int32)):
        feature = nodes[:, 1]
        if not len(feature) or int((feature & ~_FLAGS).max()) < 1 << 28:
            out["nodes"] = np.ascontiguousarray(nodes[:, 0])
            out[SPLITS] = _narrowest(feature << 4 | feature >> 30 << 2 | leaf_bits)
    return out


def unpack(packed: Arrays, grid: NDArray[np.float64]) -> Arrays:
    """Restore the core's arrays; raise ValueError if they are inconsistent."""
    sizes = packed["sizes"].astype(np.uint64)
    if sizes.ndim != 1 or len(sizes) % len(ARRAYS) or (sizes >= 1 << 31).any():
        raise ValueError(
            f"packed forest: sizes must have {len(ARRAYS)} lengths below 2**31 per tree, got an "
            f"array of shape {sizes.shape}"
        )
    out: Arrays = {"sizes": sizes}
    for name, kind in ARRAYS.items():
        if packed[name].ndim != 1:
            raise ValueError(
                f"packed forest: {name} must have 1 dimension, got {packed[name].ndim}"
            )
        out[name] = packed[name].astype(kind)
    if "values_on_grid" in packed:
        out["values"] = on_grid(grid, sizes, out["values"])
    if SPLITS in packed:
        features = packed[SPLITS].astype(np.uint32)
        nodes = np.empty((len(features), 4), dtype=np.uint32)
        nodes[:, 0] = out["nodes"]
        nodes[:, 1] = features >> 4 | (features >> 2 & 3) << 30
        nodes[:, 2:] = _children(features & 3, sizes).view(np.uint32)
        out["nodes"] = nodes.reshape(-1)
    return out


def _children(leaf_bits: NDArray[Any], sizes: NDArray[Any]) -> NDArray[np.int32]:
    n_nodes = lengths_of(sizes, "nodes").astype(np.uint64)
    children = _core.number_children(np.ascontiguousarray(leaf_bits, dtype=np.uint8), n_nodes)
    return children.reshape(-1, 2)


def _grid_of_values(grid: NDArray[np.float64], sizes: NDArray[Any]) -> tuple[Any, Any]:
    """Return the lowest value and the step size of the grid of each value."""
    n_trees = len(sizes) // len(ARRAYS)
    if grid.ndim != 3 or grid.shape[0] != n_trees or grid.shape[1] < 1 or grid.shape[2] != 2:
        raise ValueError(
            f"packed forest: grid must have shape ({n_trees}, n_values, 2), got {grid.shape}"
        )
    n_leaves, rest = np.divmod(lengths_of(sizes, "values"), grid.shape[1])
    if rest.any():
        raise ValueError(
            f"packed forest: grid has {grid.shape[1]} values per leaf, which does not divide the "
            "number of leaf values"
        )
    leaf_grid = np.repeat(grid, n_leaves, axis=0)
    return leaf_grid[:, :, 0].reshape(-1), leaf_grid[:, :, 1].reshape(-1)


def _narrowest(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in the narrowest type that represents its values exactly."""
    for kind in _NARROW:
        if np.dtype(kind).itemsize >= array.dtype.itemsize:
            break
        with np.errstate(all="ignore"):
            narrow = array.astype(kind)
            again = narrow.astype(array.dtype)
        if np.array_equal(again.view(np.uint8), array.view(np.uint8)):
            return narrow
    return array
