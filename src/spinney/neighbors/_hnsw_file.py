"""Files of HNSW indexes: arrays and JSON in the safetensors format, nothing that is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["read_index", "write_index"]

_FORMAT = "spinney.hnsw"
_VERSION = 1
_ARRAYS = {
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


def write_index(path: Path, state: dict[str, Any], kept: dict[str, Any]) -> None:
    """Write to a file beside `path` and move it there: no reader ever sees half of it."""
    from spinney.io.atomic_write import write_whole
    from spinney.model_file.container import container_chunks

    arrays = {name: state[name] for name in _ARRAYS if name in state}
    arrays["ids"] = kept["ids"]
    values = {name: value for name, value in kept.items() if name != "ids"}
    values.update({name: state[name] for name in _SCALARS})
    head = {"format": _FORMAT, "version": str(_VERSION), "values": json.dumps(values)}
    write_whole(path, container_chunks(head, arrays))


def read_index(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state of the graph and what was kept beside it; types are as they should be."""
    from safetensors import SafetensorError, safe_open

    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            head = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(f"{path}: not a complete safetensors file ({error})") from error
    if head.get("format") != _FORMAT:
        raise ValueError(f"{path}: not an HNSW index")
    if head.get("version") != str(_VERSION):
        raise ValueError(f"{path}: version {head.get('version')} is not known, only {_VERSION} is")
    if set(arrays) != set(_ARRAYS):
        raise ValueError(f"{path}: expected the arrays {', '.join(sorted(_ARRAYS))}")
    for name, dtype in _ARRAYS.items():
        if arrays[name].dtype != dtype or arrays[name].ndim != 1:
            raise ValueError(f"{path}: {name} is not one row of {np.dtype(dtype)}")
    try:
        kept = json.loads(head.get("values", ""))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}: its values are no JSON ({error})") from error
    if not isinstance(kept, dict) or not set(_SCALARS) <= set(kept):
        raise ValueError(f"{path}: values are missing")
    kept["ids"] = arrays.pop("ids")
    state: dict[str, Any] = {**arrays, **{name: kept.pop(name) for name in _SCALARS}}
    return state, kept
