"""Compaction of forests: leaf values in fewer bits, with bounds of the changes.

Regression values are rounded to a grid for each tree and output, from the lowest to the highest
leaf. Class fractions (single output) are rounded to multiples of 1 / (2**bits - 1), and leaves with
equal fractions share one copy.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.models.packing import ARRAYS, Arrays, lengths_of, on_grid, pack

__all__ = ["compact_model"]

_BITS = (None, 8, 16)
_LARGEST_EXPONENT = 700  # larger arguments overflow in exp
_DISPLAY_ONLY = ("leaf_impurity", "inner_value", "inner_impurity")  # for plots and importances


def compact_model(model: Any, bits: int | None) -> Any:
    """Return a copy of a model with a compact forest; see `ModelMethods.compact`."""
    if bits not in _BITS or isinstance(bits, bool):
        raise ValueError(f"bits: expected 8, 16 or None, got {bits!r}")
    fitted = model.fitted_model()
    store = fitted.store
    arrays = store.core.state()
    before = sum(array.nbytes for array in arrays.values())
    n_trees = len(store)
    change, size = np.zeros(n_trees), np.ones(n_trees)  # class fractions are at most 1
    grid = np.empty((0, store.width, 2))
    if store.shape[1] and store.shape[2] == 1:
        change = _compact_fractions(arrays, store.width, bits)
    elif bits is not None:
        if store.shape[1]:
            raise ValueError(
                f"bits: expected None for a classifier with {store.shape[2]} outputs, got {bits}"
            )
        change, size, grid = _round_values(arrays, store.width, bits)
    if bits is not None:
        for name in _DISPLAY_ONLY:
            arrays[name] = arrays[name].astype(np.float32).astype(np.float64)
    prediction_change = fitted.largest_change(change, size) if change.any() else 0.0
    facts = {
        "bits": bits,
        "leaf_change": float(change.max(initial=0.0)),
        "prediction_change": prediction_change,
        "relative_change": _relative_change(fitted, prediction_change),
        "bytes_before": before,
        "bytes_after": sum(array.nbytes for array in pack(arrays, grid).values()),
    }
    smaller = store.with_arrays(arrays, grid, facts)
    out = copy.copy(model)
    out.replace_model(replace(fitted, store=smaller))
    return out


def _relative_change(fitted: Any, change: float | None) -> float | None:
    """Return the largest relative change of a prediction with a log link, else None."""
    if change is None or getattr(fitted, "link", None) != "exponential":
        return None
    if change == 0 or change > _LARGEST_EXPONENT:
        return None if change else 0.0
    # The second term is the rounding of both exponentials.
    return math.expm1(change) + 4 * float(np.finfo(np.float64).eps)


def _round_values(
    arrays: Arrays, width: int, bits: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Round values to grids; return the largest change and value per tree, and grids."""
    lengths = lengths_of(arrays["sizes"], "values")
    values = arrays["values"].reshape(-1, width)
    grid = np.zeros((len(lengths), width, 2))
    ends = np.cumsum(lengths // width)
    for tree, end in enumerate(ends):
        own = values[end - lengths[tree] // width : end]
        grid[tree, :, 0] = own.min(axis=0)
        # Halved before the subtraction to avoid overflow of the range.
        grid[tree, :, 1] = 2 * (own.max(axis=0) / 2 - own.min(axis=0) / 2) / (2**bits - 1)
    leaf_grid = np.repeat(grid, lengths // width, axis=0)
    low, step = leaf_grid[:, :, 0], leaf_grid[:, :, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        codes = np.where(step > 0, np.rint((values - low) / step), 0)
    rounded = on_grid(grid, arrays["sizes"], np.clip(codes, 0, 2**bits - 1).reshape(-1))
    if not np.isfinite(rounded).all():
        raise ValueError("compact: leaf values must be finite; got NaN or infinity")
    change = np.abs(rounded - arrays["values"]).reshape(-1, width).max(axis=1)
    size = np.abs(values).max(axis=1)
    arrays["values"] = rounded
    starts = ends - lengths // width
    return np.maximum.reduceat(change, starts), np.maximum.reduceat(size, starts), grid


def _compact_fractions(arrays: Arrays, width: int, bits: int | None) -> NDArray[np.float64]:
    """Round and deduplicate the fractions of mixed leaves; return the largest changes."""
    sizes = arrays["sizes"].reshape(-1, len(ARRAYS)).astype(np.int64)
    weights = ("leaf_weight", "leaf_weight_exact", "leaf_rows")
    names = ("leaf_class", *weights, "mixed_counts", "values")
    lengths = {name: lengths_of(arrays["sizes"], name) for name in names}
    at = dict.fromkeys(names, 0)
    change = np.zeros(len(sizes))
    new_values: list[Any] = []
    new_counts: list[Any] = []
    for tree in range(len(sizes)):
        own = {}
        for name in names:
            length = int(lengths[name][tree])
            own[name] = arrays[name][at[name] : at[name] + length]
            at[name] += length
        mixed = np.flatnonzero(own["leaf_class"] >= width)
        row = own["leaf_class"][mixed].astype(np.int64) - width
        fractions = own["values"].reshape(-1, width)[row] if len(own["values"]) else None
        if fractions is None:
            weight = next(own[name] for name in weights if len(own[name]))[mixed]
            counts = own["mixed_counts"].reshape(-1, width)[row].astype(np.float64)
            fractions = counts / weight[:, None].astype(np.float64)
        parts = fractions if bits is None else _round_fractions(fractions, 2**bits - 1)
        shared, index = np.unique(parts, axis=0, return_inverse=True)
        if bits is None and 2 * len(shared) >= len(row) and len(own["mixed_counts"]):
            new_counts.append(own["mixed_counts"])  # counts take half the memory of fractions
            new_values.append(own["values"])
        else:
            values = shared if bits is None else shared / shared.sum(axis=1, keepdims=True)
            own["leaf_class"][mixed] = (width + index.reshape(-1)).astype(np.uint32)
            change[tree] = np.abs(values[index.reshape(-1)] - fractions).max(initial=0.0)
            new_values.append(values.reshape(-1))
            new_counts.append(np.empty(0, dtype=np.float32))
    for name, blocks in (("values", new_values), ("mixed_counts", new_counts)):
        column = list(ARRAYS).index(name)
        sizes[:, column] = [len(block) for block in blocks]
        arrays[name] = np.concatenate([np.empty(0, dtype=arrays[name].dtype), *blocks])
    arrays["sizes"] = sizes.astype(np.uint64).reshape(-1)
    return change


def _round_fractions(fractions: NDArray[np.float64], whole: int) -> NDArray[np.float64]:
    """Round fractions to integers out of `whole`; each leaf keeps at least one."""
    parts: NDArray[np.float64] = np.rint(fractions * whole)
    none = np.flatnonzero(parts.sum(axis=1) == 0)
    parts[none, fractions[none].argmax(axis=1)] = 1
    return parts
