"""Arrays as safetensors can hold them: numbers as they are, text as bytes and lengths.

An array becomes a small record (plain JSON) and one or two *tensors*, arrays of the few types that
the container knows. The record has the dtype, and the memory order where it is Fortran's: products
of matrices may depend on it in the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_from_record", "dtype_called", "is_plain_array", "record_of_array"]

Record = dict[str, Any]
Store = Callable[[NDArray[Any]], str]  # keeps a tensor and returns its name

_MOST_AXES = 32
_NUMBERS = frozenset("?bhilqBHILQefd")  # type characters of what goes in as it is
_MISSING = -1  # length of a None among strings
# A text in an array takes the room of the widest. Wider ones than a file could need are refused:
# a few bytes must not ask for gigabytes.
_ROOM = 1 << 26  # bytes that any array of texts may take …
_GROWTH = 64  # … and how many times those that it takes in the file


def is_plain_array(array: NDArray[Any]) -> bool:
    """Whether an array's values are numbers, texts or times, and not objects of other kinds."""
    if array.dtype == object:
        return all(value is None or type(value) is str for value in array.flat)
    return array.dtype.char in _NUMBERS or array.dtype.kind in "cmMUS"


def record_of_array(array: NDArray[Any], store: Store) -> Record:
    """Describe an array for which `is_plain_array` holds."""
    record: Record = {"dtype": array.dtype.newbyteorder("=").str, "shape": list(array.shape)}
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        record["order"] = "F"
        array = array.T  # its values in the order in which they lie in memory
    values = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind in "USO":
        encoded = [_encode(value) for value in values]
        lengths = [_MISSING if code is None else len(code) for code in encoded]
        text = b"".join(code for code in encoded if code is not None)
        if not _fits(array.dtype, len(lengths), len(text)):
            longest = max(map(len, values.tolist()))
            record["dtype"] = np.dtype(f"{array.dtype.kind}{max(longest, 1)}").str
        record["text"] = store(np.frombuffer(text, dtype=np.uint8))
        record["lengths"] = store(np.array(lengths, dtype=np.int64))
        return record
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    record["numbers"] = store(values.view(_held_as(values.dtype)))
    return record


def array_from_record(record: Record, tensors: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Make the array again; a record that does not fit its tensors is a ValueError.

    Its tensors are taken out of `tensors`: two arrays with the same memory could change each other
    after one of them was checked.
    """
    dtype = dtype_called(record["dtype"])
    shape = tuple(int(length) for length in record["shape"])
    if len(shape) > _MOST_AXES or any(length < 0 for length in shape):
        raise ValueError(f"an array of shape {shape}")
    if dtype.kind in "USO":
        values = _decode(tensors.pop(record["text"]), tensors.pop(record["lengths"]), dtype)
    else:
        values = tensors.pop(record["numbers"])
        if values.dtype != _held_as(dtype):
            raise ValueError(f"an array of {dtype} kept as {values.dtype}")
        values = values.view(dtype) if dtype.kind in "cmM" else values
    order = record.get("order", "C")
    if order not in ("C", "F"):
        raise ValueError(f"an array in order {order!r}")
    return values.reshape(shape, order=order)


def dtype_called(name: Any) -> np.dtype[Any]:
    """Return a type of values: numbers, texts, times, or objects (which are texts and None)."""
    if type(name) is not str or "," in name:
        raise ValueError(f"no type of values: {name!r}")
    dtype = np.dtype(name)
    if not (dtype.char in _NUMBERS or dtype.kind in "mMUSO" or dtype.char in "FD"):
        raise ValueError(f"no type of values that a model file has: {name!r}")
    return dtype


def _held_as(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of the tensor that has the values of an array of numbers or times."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return np.dtype(np.int64) if dtype.kind in "mM" else dtype


def _encode(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")


def _decode(text: NDArray[Any], lengths: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if text.dtype != np.uint8 or lengths.dtype != np.int64 or (lengths < _MISSING).any():
        raise ValueError("texts are not kept as bytes and lengths")
    ends = np.cumsum(np.maximum(lengths, 0))
    if (ends[-1] if len(ends) else 0) != len(text):
        raise ValueError("the lengths of texts do not add up")
    if not _fits(dtype, len(lengths), len(text)):
        raise ValueError(f"{len(lengths)} texts as {dtype}, for which they are far too short")
    if dtype.kind != "O" and (lengths == _MISSING).any():
        raise ValueError(f"None among texts of {dtype}")
    raw = text.tobytes()
    values: list[Any] = []
    for end, length in zip(ends.tolist(), lengths.tolist(), strict=True):
        piece = None if length == _MISSING else raw[end - length : end]
        if piece is not None and dtype.kind != "S":
            values.append(piece.decode("utf-8", "surrogatepass"))
        else:
            values.append(piece)
    out = np.empty(len(values), dtype=dtype)
    out[:] = values
    if dtype.kind != "O" and out.tolist() != values:
        raise ValueError(f"texts that are longer than {dtype}")
    return out


def _fits(dtype: np.dtype[Any], n: int, n_bytes: int) -> bool:
    """Whether so many texts may take the room that their type asks for."""
    return dtype.itemsize * n <= max(_ROOM, _GROWTH * (8 * n + n_bytes))
