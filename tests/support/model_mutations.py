"""Invalid model files with valid checksums.

A mutation changes what an attacker could change: a number in an array, the length or type of an
array, a value or a reference in the nodes, or the name of a class. `mutants` yields such files.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from spinney.model_file.files import _checksum_of_tensors

__all__ = ["Contents", "mutants", "read_contents", "write_contents"]

_INTEGERS = (0, 1, -1, 2, 7, 255, 2**15, 2**31 - 1, -(2**31), 2**31, 2**32, 2**62, 2**63 - 1)
_FLOATS = (0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 2.0**31, 0.5)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 2**31, 2**63, 2**80, -(2**63), 1.5, 1e308, "", "x", [], {}),
    *({"float": "nan"}, {"float": "inf"}, {"ref": 0}, {"ref": 1}, "<U1000000000", "<U2147483647"),
    *("<f4", "<i4", "<i8", "|O", "|V8", "<M8[s]", "S99999999999", "F", [2**40], [-1], [0, 2**62]),
)


class Contents:
    """The parsed contents of a model file."""

    def __init__(
        self, header: dict[str, str], nodes: list[Any], tensors: dict[str, np.ndarray]
    ) -> None:
        self.header = header
        self.nodes = nodes
        self.tensors = tensors

    def copy(self) -> Contents:
        """Copy everything that mutations change."""
        return Contents(self.header, deepcopy(self.nodes), dict(self.tensors))


def read_contents(path: Path) -> Contents:
    """Read a file without any checks."""
    with safe_open(path, framework="numpy") as file:
        header = dict(file.metadata())
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    return Contents(header, json.loads(header["state"]), tensors)


def write_contents(contents: Contents, path: Path) -> None:
    """Write a file with valid checksums for any contents."""
    state = json.dumps(contents.nodes)
    sums = json.loads(contents.header["checksums"])
    sums["state"] = hashlib.sha256(state.encode()).hexdigest()
    tensors = {name: np.ascontiguousarray(array) for name, array in contents.tensors.items()}
    sums["arrays"] = _checksum_of_tensors(tensors)
    save_file(tensors, path, contents.header | {"state": state, "checksums": json.dumps(sums)})


def mutants(contents: Contents, n: int, rng: np.random.Generator) -> Iterator[tuple[str, Contents]]:
    """Yield mutated files, each with a description of the change."""
    for _ in range(n):
        changed = contents.copy()
        changes = [_mutate(changed, rng) for _ in range(1 if rng.random() < 0.8 else 3)]
        yield "; ".join(changes), changed


def _mutate(contents: Contents, rng: np.random.Generator) -> str:
    if contents.tensors and rng.random() < 0.55:
        return _mutate_tensor(contents, rng)
    return _mutate_nodes(contents, rng)


def _mutate_tensor(contents: Contents, rng: np.random.Generator) -> str:
    name = rng.choice(sorted(contents.tensors))
    old = contents.tensors[name]
    array = old.copy()
    choice = rng.random()
    if choice < 0.75 and array.size:
        flat = array.reshape(-1)
        for _ in range(int(rng.integers(1, 4))):
            at = int(rng.integers(array.size))
            flat[at] = _number_for(flat, at, rng)
            change = f"[{at}] = {flat[at]}"
    elif choice < 0.9:
        length = int(rng.choice([0, 1, max(array.size - 1, 0), array.size + 1, 2 * array.size]))
        array = np.resize(array, length) if array.size else np.zeros(length, array.dtype)
        change = f" of length {length}"
        if rng.random() < 0.7:
            _update_record(contents, name, array)
    else:
        dtype = str(rng.choice(["f4", "f8", "i4", "i8", "u1", "u4", "u8", "i1", "?"]))
        with np.errstate(invalid="ignore"):
            array = array.astype(dtype)
        change = f" as {dtype}"
        if rng.random() < 0.7:
            _update_record(contents, name, array)
    contents.tensors[name] = array
    return f"tensor {name} ({old.dtype}, {old.size}){change}"


def _update_record(contents: Contents, name: str, array: np.ndarray) -> None:
    """Update dtype and shape of an array in the nodes, to hide the change."""
    for node in contents.nodes:
        if not isinstance(node, dict):
            continue
        for record in (node, node.get("packed")):
            if isinstance(record, dict) and record.get("numbers") == name and "dtype" in record:
                shape = record["shape"]
                valid = isinstance(shape, list) and all(type(n) is int for n in shape)
                row_size = math.prod(shape[1:]) if valid else 1
                shape = shape if valid else []
                divisible = row_size > 0 and array.size % row_size == 0 and array.size > 0
                lengths = (
                    [array.size // row_size, *shape[1:]]
                    if divisible and row_size > 1
                    else [array.size]
                )
                record["shape"], record["dtype"] = lengths, array.dtype.str


def _number_for(flat: np.ndarray, at: int, rng: np.random.Generator) -> Any:
    kind = flat.dtype.kind
    choice = rng.random()
    if choice < 0.25:
        return flat[int(rng.integers(flat.size))]
    if kind == "f":
        return rng.choice(_FLOATS).astype(flat.dtype)
    if kind == "b":
        return not flat[at]
    if choice < 0.5:
        with np.errstate(over="ignore"):
            return flat[at] + flat.dtype.type(rng.choice([1, 2, 3]))
    return np.array(_INTEGERS[int(rng.integers(len(_INTEGERS)))]).astype(flat.dtype)


def _mutate_nodes(contents: Contents, rng: np.random.Generator) -> str:
    entries = list(_entries(contents.nodes))
    container, key = entries[int(rng.integers(len(entries)))]
    old = container[key]
    choice = rng.random()
    if choice < 0.1:
        del container[key]
        return f"{_short(old)} is removed"
    if choice < 0.35:
        other, other_key = entries[int(rng.integers(len(entries)))]
        container[key] = deepcopy(other[other_key])
    elif choice < 0.6 and isinstance(old, dict) and "ref" in old:
        container[key] = {"ref": int(rng.integers(len(contents.nodes)))}
    elif choice < 0.6 and type(old) in (int, float):
        container[key] = old + int(rng.choice([1, -1, 1000, -1000, 10**9]))
    else:
        container[key] = _VALUES[int(rng.integers(len(_VALUES)))]
    return f"{_short(old)} of {_short(container)} becomes {_short(container[key])}"


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the container and the key of every value in nested lists and dicts."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], list | dict):
            yield from _entries(value[key])


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."
