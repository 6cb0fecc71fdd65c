"""Files of HNSW indexes: arrays and JSON in the safetensors format, without code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from spinney.io.atomic_write import write_whole

__all__ = ["read_index", "write_index"]

_FORMAT = "spinney.hnsw"
_VERSION = 1
_ARRAY_TYPES = {
    "vectors": np.float32,
    "links": np.uint32,
    "post_slots": np.uint32,
    "post_levels": np.uint8,
    "post_links": np.uint32,
    "deleted": np.uint8,
    "code_offsets": np.float32,
    "ids": np.int64,
}
_SCALARS = ("code_scale", "top", "ground")


def write_index(path: Path, state: dict[str, Any], metadata: dict[str, Any]) -> None:
    """Write the state of a graph and its metadata to a file, atomically."""
    # Imported here because `spinney.model_file` is a higher layer.
    from spinney.model_file.container import container_chunks

    arrays = {name: state[name] for name in _ARRAY_TYPES if name in state}
    arrays["ids"] = metadata["ids"]
    values = {name: value for name, value in metadata.items() if name != "ids"}
    values.update({name: state[name] for name in _SCALARS})
    head = {"format": _FORMAT, "version": str(_VERSION), "values": json.dumps(values)}
    write_whole(path, container_chunks(head, arrays))


def read_index(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the graph and its metadata; check the types of both."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            head = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: expected a complete safetensors file ({error})") from error
    if head.get("format") != _FORMAT:
        raise ValueError(f"{path}: expected an HNSW index, got the format {head.get('format')!r}")
    if head.get("version") != str(_VERSION):
        raise ValueError(f"{path}: expected version {_VERSION}, got {head.get('version')!r}")
    if set(arrays) != set(_ARRAY_TYPES):
        raise ValueError(
            f"{path}: expected the arrays {', '.join(sorted(_ARRAY_TYPES))}, got "
            f"{', '.join(sorted(arrays))}"
        )
    for name, dtype in _ARRAY_TYPES.items():
        array = arrays[name]
        if array.dtype != dtype or array.ndim != 1:
            raise ValueError(
                f"{path}: expected one dimension of {np.dtype(dtype)} for the array {name!r}, got "
                f"{array.ndim} of {array.dtype}"
            )
    try:
        metadata = json.loads(head.get("values", ""))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: expected values in JSON ({error})") from error
    if not isinstance(metadata, dict) or not set(_SCALARS) <= set(metadata):
        raise ValueError(f"{path}: expected the values {', '.join(_SCALARS)}, but some are missing")
    metadata["ids"] = arrays.pop("ids")
    state: dict[str, Any] = {**arrays, **{name: metadata.pop(name) for name in _SCALARS}}
    return state, metadata
