"""Arrays in the form of safetensors: numbers unchanged, text as bytes and lengths.

An array becomes a small record (plain JSON) and one or two *tensors*: arrays of the few types that
the container supports. The record has the dtype, and the memory order if it is Fortran's, because
the last bit of matrix products may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["array_from_record", "dtype_by_name", "is_plain_array", "record_of_array"]

Record = dict[str, Any]
Store = Callable[[NDArray[Any]], str]  # keeps a tensor and returns its name

_MOST_AXES = 32
_NUMBERS = frozenset(
    "?bhilqBHILQefd"
)  # type characters of numeric dtypes that are stored unchanged
_MISSING = -1  # length of a None among strings
# NumPy pads all strings of an array to the width of its dtype. A damaged file of a few bytes must
# not allocate gigabytes, so that an array of strings may take at most _ROOM bytes, or _GROWTH times
# its size in the file.
_ROOM = 1 << 26
_GROWTH = 64


def is_plain_array(array: NDArray[Any]) -> bool:
    """Return whether an array has only numbers, strings, times and None."""
    if array.dtype == object:
        return all(value is None or type(value) is str for value in array.flat)
    return array.dtype.char in _NUMBERS or array.dtype.kind in "cmMUS"


def record_of_array(array: NDArray[Any], store: Store) -> Record:
    """Store the tensors of an array (see `is_plain_array`), and return its record."""
    record: Record = {"dtype": array.dtype.newbyteorder("=").str, "shape": list(array.shape)}
    if array.ndim > 1 and array.flags.f_contiguous and not array.flags.c_contiguous:
        record["order"] = "F"
        array = array.T  # the values in memory order
    values = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind in "USO":
        encoded = [_encode(value) for value in values]
        lengths = [_MISSING if data is None else len(data) for data in encoded]
        text = b"".join(data for data in encoded if data is not None)
        if not _fits(array.dtype, len(lengths), len(text)):
            longest = max(map(len, values.tolist()))
            record["dtype"] = np.dtype(f"{array.dtype.kind}{max(longest, 1)}").str
        record["text"] = store(np.frombuffer(text, dtype=np.uint8))
        record["lengths"] = store(np.array(lengths, dtype=np.int64))
        return record
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    record["numbers"] = store(values.view(_stored_dtype(values.dtype)))
    return record


def array_from_record(record: Record, tensors: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array of a record; raise a ValueError if its tensors do not match.

    The tensors are removed from `tensors`, so that no two arrays share memory. Otherwise a change
    of one array could invalidate another one that was already checked.
    """
    dtype = dtype_by_name(record["dtype"])
    shape = tuple(int(length) for length in record["shape"])
    if len(shape) > _MOST_AXES or any(length < 0 for length in shape):
        raise ValueError(f"invalid array of shape {shape}")
    if dtype.kind in "USO":
        values = _decode(tensors.pop(record["text"]), tensors.pop(record["lengths"]), dtype)
    else:
        values = tensors.pop(record["numbers"])
        if values.dtype != _stored_dtype(dtype):
            raise ValueError(f"an array of {dtype} is stored as {values.dtype}")
        values = values.view(dtype) if dtype.kind in "cmM" else values
    order = record.get("order", "C")
    if order not in ("C", "F"):
        raise ValueError(f"expected an array in order 'C' or 'F', got {order!r}")
    return values.reshape(shape, order=order)


def dtype_by_name(name: Any) -> np.dtype[Any]:
    """Return a numeric dtype, or one of strings, times, or objects (strings and None)."""
    if type(name) is not str or "," in name:
        raise ValueError(f"invalid dtype {name!r}")
    dtype = np.dtype(name)
    is_supported = dtype.char in _NUMBERS or dtype.kind in "mMUSO" or dtype.char in "FD"
    if not is_supported or dtype.itemsize < 0:  # sizes overflow in NumPy 2.0
        raise ValueError(f"unsupported dtype {name!r}")
    return dtype


def _stored_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the tensor for a numeric array or an array of times."""
    if dtype.kind == "c":
        return np.dtype(f"f{dtype.itemsize // 2}")
    return np.dtype(np.int64) if dtype.kind in "mM" else dtype


def _encode(value: Any) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode("utf-8", "surrogatepass")


def _decode(text: NDArray[Any], lengths: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    if text.dtype != np.uint8 or lengths.dtype != np.int64 or (lengths < _MISSING).any():
        raise ValueError("strings must be stored as bytes and lengths")
    ends = np.cumsum(np.maximum(lengths, 0))
    if (ends[-1] if len(ends) else 0) != len(text):
        raise ValueError("the lengths of strings do not add up to the number of bytes")
    if not _fits(dtype, len(lengths), len(text)):
        raise ValueError(f"{len(lengths)} strings are far too short for {dtype}")
    if dtype.kind != "O" and (lengths == _MISSING).any():
        raise ValueError(f"None among strings of {dtype}")
    raw = text.tobytes()
    values: list[Any] = []
    for end, length in zip(ends.tolist(), lengths.tolist(), strict=True):
        encoded = None if length == _MISSING else raw[end - length : end]
        if encoded is not None and dtype.kind != "S":
            values.append(encoded.decode("utf-8", "surrogatepass"))
        else:
            values.append(encoded)
    out = np.empty(len(values), dtype=dtype)
    out[:] = values
    if dtype.kind != "O" and out.tolist() != values:
        raise ValueError(f"strings are longer than {dtype}")
    return out


def _fits(dtype: np.dtype[Any], n: int, n_bytes: int) -> bool:
    """Return whether an array of `n` strings of this dtype is small enough."""
    return dtype.itemsize * n <= max(_ROOM, _GROWTH * (8 * n + n_bytes))
