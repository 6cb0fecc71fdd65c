"""A reader of Universal Binary JSON, the default format of XGBoost's model files."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

__all__ = ["read_ubjson"]

_NUMBERS = {b"i": "b", b"U": "B", b"I": "h", b"l": "i", b"L": "q", b"d": "f", b"D": "d"}
_DEEPEST = 100  # maximum nesting; limits the recursion for malformed files


def read_ubjson(content: bytes) -> Any:
    """Parse a UBJSON document.

    Parameters
    ----------
    content : bytes
        The content of the file.

    Returns
    -------
    dict, list, str, number, bool or None
        The document; typed numeric arrays are NumPy arrays.
    """
    reader = _Reader(content)
    try:
        return reader.value(reader.take(1), 0)
    except (struct.error, UnicodeDecodeError, KeyError):
        raise ValueError("model: expected UBJSON, got a truncated file or another format") from None


class _Reader:
    """A recursive-descent parser over the bytes of a document."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def take(self, n: int) -> bytes:
        if n < 0 or self.at + n > len(self.content):
            raise struct.error
        self.at += n
        return self.content[self.at - n : self.at]

    def next_is(self, mark: bytes) -> bool:
        found = self.content[self.at : self.at + 1] == mark
        self.at += found
        return found

    def number(self, mark: bytes) -> Any:
        form = ">" + _NUMBERS[mark]
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self) -> str:
        return self.take(int(self.number(self.take(1)))).decode()

    def value(self, mark: bytes, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"model: expected UBJSON of at most {_DEEPEST} levels, got more")
        if mark in _NUMBERS:
            return self.number(mark)
        if mark == b"[":
            return self.array(depth)
        if mark == b"{":
            return self.object(depth)
        if mark in b"SH":
            return self.text()
        if mark == b"C":
            return self.take(1).decode()
        return {b"Z": None, b"T": True, b"F": False}[mark]

    def header(self) -> tuple[bytes | None, int | None]:
        """Return the type and number of a container's values, or None where it has none."""
        kind = self.take(1) if self.next_is(b"$") else None
        count = int(self.number(self.take(1))) if self.next_is(b"#") else None
        if kind is not None and count is None:
            raise struct.error
        return kind, count

    def array(self, depth: int) -> Any:
        kind, count = self.header()
        if kind in _NUMBERS and kind is not None and count is not None:
            dtype = np.dtype(">" + _NUMBERS[kind])
            values = np.frombuffer(self.take(count * dtype.itemsize), dtype=dtype)
            return values.astype(dtype.newbyteorder("="))
        if count is not None:
            if count > len(self.content):  # every value has at least one byte
                raise struct.error
            return [self.value(kind or self.take(1), depth + 1) for _ in range(count)]
        out = []
        while not self.next_is(b"]"):
            out.append(self.value(self.take(1), depth + 1))
        return out

    def object(self, depth: int) -> dict[str, Any]:
        kind, count = self.header()
        out: dict[str, Any] = {}
        while len(out) < count if count is not None else not self.next_is(b"}"):
            before = self.at
            key = self.text()
            out[key] = self.value(kind or self.take(1), depth + 1)
            if self.at == before:
                raise struct.error
        return out
