"""The safetensors container: a header of JSON, then arrays one after another.

It is read in place: the arrays view the file's bytes and are no copies of them. Of a large file the
bytes are *mapped*: the system reads a page when it is first looked at, and processes that map the
same file share it. Nothing in the header is believed before it is checked against the size of the
file.
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

__all__ = ["Container", "Mapped", "container_pieces", "read_container", "read_header"]

Mapped = bool | Literal["auto"]

_LARGE = 1 << 22  # bytes of a file from which on it is mapped
_LONGEST_HEADER = 100_000_000  # as in safetensors' own reader
_MOST_AXES = 32
_DTYPES: dict[
    str, np.dtype[Any]
] = {  # those with the widest values are written first, so that all are aligned
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
_WORD = 8  # the body begins at a multiple of so many bytes


class Container(NamedTuple):
    """What a file holds: texts, and arrays by name."""

    texts: dict[str, str]
    tensors: dict[str, NDArray[Any]]


class _Place(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int  # in the body
    end: int


def container_pieces(
    texts: Mapping[str, str], tensors: Mapping[str, NDArray[Any]]
) -> Iterator[bytes | memoryview]:
    """Give the bytes of a container piece by piece, in the order of safetensors' own writer.

    That one would hold them all a second time, or replace whatever is at the path it writes to.
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
        raise ValueError(f"{len(tensors)} arrays are too many for a file")
    yield len(written).to_bytes(8, "little") + written
    for name in order:
        values = np.ascontiguousarray(tensors[name], _on_disk(tensors[name].dtype))
        yield values.reshape(-1).view(np.uint8).data


def read_header(path: str | os.PathLike[str]) -> tuple[dict[str, str], int]:
    """Read the texts of a file, and how many bytes its arrays take."""
    with _open(path) as file:
        texts, places, _ = _header(file, path)
    return texts, sum(place.end - place.start for place in places.values())


def read_container(path: str | os.PathLike[str], mapped: Mapped) -> Container:
    """Read a file, or map it; `mapped` is whether to."""
    with _open(path) as file:
        texts, places, body = _header(file, path)
        size = os.fstat(file.fileno()).st_size
        if mapped is True or (mapped == "auto" and size >= _LARGE and os.name != "nt"):
            # Private: whoever writes to an array gets a page of its own, and the file stays.
            memory: Any = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
        else:
            memory = np.empty(size - body, dtype=np.uint8)
            file.seek(body)
            if file.readinto(memory) != len(memory):
                raise ValueError(f"{path}: no model file, or not all of one (it became shorter)")
            body = 0
    return Container(texts, {name: _array(memory, body, place) for name, place in places.items()})


def _open(path: str | os.PathLike[str]) -> Any:
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no file {path}")
    if Path(path).is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if not Path(path).is_file():
        raise OSError(f"{path} is not a file that can be read more than once")
    return open(path, "rb", buffering=0)


def _on_disk(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return dtype.newbyteorder("<")


def _array(memory: Any, body: int, place: _Place) -> NDArray[Any]:
    array = np.frombuffer(memory, place.dtype, math.prod(place.shape), body + place.start).reshape(
        place.shape
    )
    return array if array.flags.aligned else array.copy()


def _header(
    file: Any, path: str | os.PathLike[str]
) -> tuple[dict[str, str], dict[str, _Place], int]:
    """Return the texts, the places of arrays, and where the body begins."""
    try:
        size = os.fstat(file.fileno()).st_size
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, _LONGEST_HEADER):
            raise ValueError("its header does not fit in it")
        header = json.loads(file.read(length).decode())
        if type(header) is not dict:
            raise ValueError("its header is no list of arrays")
        texts = header.pop("__metadata__", {})
        if type(texts) is not dict or not all(type(text) is str for text in texts.values()):
            raise ValueError("its texts are no texts")
        places = {name: _place(record) for name, record in header.items()}
        _check_order(places, size - 8 - length)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: no model file, or not all of one ({error})") from error
    return texts, places, 8 + length


def _place(record: Any) -> _Place:
    if record["dtype"] not in _DTYPES:
        raise ValueError(f"arrays of {record['dtype']}, which no model has")
    dtype = _DTYPES[record["dtype"]]
    shape, (start, end) = record["shape"], record["data_offsets"]
    if len(shape) > _MOST_AXES or any(type(n) is not int or n < 0 for n in (*shape, start, end)):
        raise ValueError("a shape or place that is no whole number")
    if math.prod(shape) * dtype.itemsize != end - start:
        raise ValueError("an array that does not fit its place")
    return _Place(dtype, tuple(shape), start, end)


def _check_order(places: Mapping[str, _Place], size: int) -> None:
    """Refuse arrays that share bytes, and bytes of no array."""
    at = 0
    for place in sorted(places.values(), key=lambda place: (place.start, place.end)):
        if place.start != at:
            raise ValueError("arrays that do not follow each other")
        at = place.end
    if at != size:
        raise ValueError("it ends elsewhere than its arrays")
