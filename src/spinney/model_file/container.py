"""The safetensors container: a header of JSON, followed by arrays.

The arrays are views of the file's bytes, not copies. A large file is memory-mapped: the system
reads a page at its first access, and processes that map the same file share it. The header is
checked against the size of the file before use.
"""

from __future__ import annotations

import json
import math
import mmap
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Container", "Mapped", "container_chunks", "read_container", "read_header"]

Mapped = bool | Literal["auto"]

_LARGE = 1 << 22  # smallest file to map with mapped="auto", in bytes
_LONGEST_HEADER = 100_000_000  # the limit of safetensors' own reader
_MOST_AXES = 32
# In the order of writing: arrays with the widest values come first, so that all are aligned.
_DTYPES: dict[str, np.dtype[Any]] = {
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F16": np.dtype("<f2"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
_WORD = 8  # alignment of the body, in bytes


class Container(NamedTuple):
    """The contents of a file: strings of the header, and arrays by name."""

    texts: dict[str, str]
    tensors: dict[str, NDArray[Any]]


class _Extent(NamedTuple):
    """Type, shape and byte range of an array in the body."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    end: int


def container_chunks(
    texts: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]
) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a container in chunks.

    They equal the output of safetensors' own writer. That writer would copy all arrays in memory,
    or overwrite the target path in place.
    """
    dtypes = list(_DTYPES.values())
    order = sorted(tensors, key=lambda name: (dtypes.index(_on_disk(tensors[name].dtype)), name))
    header: dict[str, Any] = {"__metadata__": dict(texts)}
    start = 0
    for name in order:
        tensor = tensors[name]
        header[name] = {
            "dtype": list(_DTYPES)[dtypes.index(_on_disk(tensor.dtype))],
            "shape": list(tensor.shape),
            "data_offsets": [start, start + tensor.nbytes],
        }
        start += tensor.nbytes
    written = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    written += b" " * (-len(written) % _WORD)
    if len(written) > _LONGEST_HEADER:
        raise ValueError(f"{len(tensors)} arrays are too many for a model file")
    yield len(written).to_bytes(8, "little") + written
    for name in order:
        values = np.ascontiguousarray(tensors[name], _on_disk(tensors[name].dtype))
        yield values.reshape(-1).view(np.uint8).data


def read_header(path: str | os.PathLike[str]) -> tuple[dict[str, str], int]:
    """Return the header's strings, and the total size of the arrays in bytes."""
    with _open(path) as file:
        texts, extents, _ = _header(file, path)
    return texts, sum(extent.end - extent.start for extent in extents.values())


def read_container(path: str | os.PathLike[str], mapped: Mapped) -> Container:
    """Read a file, or map it into memory (`mapped`: True, False or "auto" by size)."""
    with _open(path) as file:
        texts, extents, body = _header(file, path)
        size = os.fstat(file.fileno()).st_size
        if mapped is True or (mapped == "auto" and size >= _LARGE and os.name != "nt"):
            # Copy-on-write: writing to an array changes only this process's memory, not the file.
            memory: Any = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        else:
            memory = np.empty(size - body, dtype=np.uint8)
            file.seek(body)
            if file.readinto(memory) != len(memory):
                raise ValueError(
                    f"{path}: not a model file, or incomplete (it became shorter while reading)"
                )
            body = 0
    return Container(
        texts, {name: _array(memory, body, extent) for name, extent in extents.items()}
    )


def _open(path: str | os.PathLike[str]) -> Any:
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}")
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not Path(path).is_file():
        raise OSError(f"{path} is not a regular file; expected one that can be read repeatedly")
    return open(path, "rb", buffering=0)


def _on_disk(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")


def _array(memory: Any, body: int, extent: _Extent) -> NDArray[Any]:
    array = np.frombuffer(
        memory, extent.dtype, math.prod(extent.shape), body + extent.start
    ).reshape(extent.shape)
    return array if array.flags.aligned else array.copy()


def _header(
    file: Any, path: str | os.PathLike[str]
) -> tuple[dict[str, str], dict[str, _Extent], int]:
    """Return the strings, the extents of the arrays, and the start of the body."""
    try:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ValueError("the header is longer than the file")
        header = json.loads(file.read(length).decode())
        if type(header) is not dict:
            raise ValueError("the header is not a JSON object")
        texts = header.pop("__metadata__", {})
        if type(texts) is not dict or not all(type(text) is str for text in texts.values()):
            raise ValueError("the __metadata__ values must be strings")
        extents = {name: _extent(record) for name, record in header.items()}
        _check_order(extents, size - 8 - length)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: not a model file, or incomplete ({error})") from error
    return texts, extents, 8 + length


def _extent(record: Any) -> _Extent:
    if record["dtype"] not in _DTYPES:
        raise ValueError(f"unsupported dtype {record['dtype']}")
    dtype = _DTYPES[record["dtype"]]
    shape, (start, end) = record["shape"], record["data_offsets"]
    if len(shape) > _MOST_AXES or any(type(n) is not int or n < 0 for n in (*shape, start, end)):
        raise ValueError("shapes and offsets must be integers >= 0")
    if math.prod(shape) * dtype.itemsize != end - start:
        raise ValueError("the offsets of an array do not match its shape")
    return _Extent(dtype, tuple(shape), start, end)


def _check_order(extents: Mapping[str, _Extent], size: int) -> None:
    """Raise a ValueError if arrays overlap or leave unused bytes."""
    end = 0
    for extent in sorted(extents.values(), key=lambda extent: (extent.start, extent.end)):
        if extent.start != end:
            raise ValueError("arrays overlap or leave unused bytes")
        end = extent.end
    if end != size:
        raise ValueError("the file does not end with the last array")
