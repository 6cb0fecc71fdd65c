"""The text of a delimited file, and the detection of its encoding."""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter, Part
from spinney.data.notes import Note, NoteKind
from spinney.io._source import Source

__all__ = ["Text", "scan_text"]

_BLOCK = 1 << 20
_MARKS = [  # the longer ones first: the mark of UTF-32-LE starts with that of UTF-16-LE
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]
# Letters of Windows-1252, which mostly occur next to other letters, and its usual signs.
_LETTERS = frozenset(
    "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýŠšŽžŒœ".encode("cp1252")
)
_WINDOWS_1252 = _LETTERS | frozenset("€£§°±²³µ½¼¾“”‘’„–—…©®«»ºª¿¡·¢¥•™×\xa0".encode("cp1252"))


@dataclass(frozen=True)
class Text:
    """A file as text.

    Attributes
    ----------
    source : Source
    encoding : str
        Python's name of the encoding.
    n_quotes : int
        Number of double quotes.
    longest_line : int
        Length of the longest line, in bytes of UTF-8; lines of less than a megabyte after the
        first may be longer than that.
    note : Note or None
        A remark on an encoding that was detected, except UTF-8.
    """

    source: Source
    encoding: str
    n_quotes: int
    longest_line: int
    note: Note | None

    @contextmanager
    def open(self) -> Iterator[io.TextIOWrapper]:
        """Open as text, with unchanged line ends."""
        with self.source.open() as stream:
            raw = cast(Any, stream)
            encoding = "utf-8-sig" if self.encoding == "utf-8" else self.encoding
            with io.TextIOWrapper(raw, encoding=encoding, newline="") as text:
                yield text

    @contextmanager
    def open_utf8(self) -> Iterator[Any]:
        """Open as a stream of UTF-8 for pyarrow."""
        # Imported late, for start-up time.
        import pyarrow as pa

        with self.source.open() as stream:
            if self.encoding == "utf-8":
                yield stream
            else:
                yield pa.transcoding_input_stream(pa.PythonFile(stream), self.encoding, "utf-8")

    def head(self, size: int) -> tuple[str, bool]:
        """Return about `size` characters from the start, and whether that is all."""
        with self.open() as text:
            head = text.read(size)
            return head, not text.read(1)


def scan_text(source: Source, encoding: str | None) -> Text:
    """Read a file once: check every byte, and detect the encoding if it is None.

    UTF-16 and UTF-32 are detected by their byte order mark, UTF-8 by being valid. Another file is
    read as Windows-1252 if its non-ASCII bytes occur like letters and signs of that encoding.
    Otherwise a ValueError is raised.
    """
    if encoding is not None:
        try:
            name = codecs.lookup(encoding).name
        except LookupError:
            raise ValueError(
                f"encoding: expected one such as 'utf-8' or 'windows-1252', got {encoding!r}"
            ) from None
        return _scan(source, "utf-8" if name in ("utf-8-sig", "ascii") else name)
    with source.open() as stream:
        start = stream.read(4)
    for mark, name in _MARKS:
        if start.startswith(mark):
            return _scan(source, name, f"encoding {name.upper()}")
    try:
        return _scan(source, "utf-8")
    except _BrokenText as broken:
        if broken.incomplete or not _is_windows_1252(source):
            raise
    return _scan(source, "cp1252", "encoding Windows-1252, as it is not valid UTF-8")


class _BrokenText(ParameterError):
    """A file has bytes that are invalid in its encoding."""

    incomplete = False


def _scan(source: Source, encoding: str, found: str = "") -> Text:
    note = Note(found, kind=NoteKind.ENCODING) if found else None
    decoder = codecs.getincrementaldecoder(encoding)()
    n_lines, n_quotes, longest, line_so_far = 1, 0, 0, 0
    with source.open() as stream:
        block = stream.read(_BLOCK)
        while block:
            following = stream.read(_BLOCK)
            data = block
            is_plain = encoding in ("utf-8", "cp1252") and block.isascii()
            if not is_plain or decoder.getstate()[0]:
                try:
                    data = decoder.decode(block, final=not following).encode()
                except UnicodeDecodeError as error:
                    raise _broken(source, encoding, error, n_lines) from None
            if b"\0" in data:
                line = n_lines + data[: data.index(b"\0")].count(b"\n")
                raise ParameterError(
                    f"{source.name}: expected text, got a zero byte in line {line}; ",
                    *_explain_zeros(data),
                )
            n_lines += data.count(b"\n")
            n_quotes += data.count(b'"')
            end = data.find(b"\n")
            if end < 0:
                line_so_far += len(data)
            else:
                longest = max(longest, line_so_far + end)
                line_so_far = len(data) - data.rfind(b"\n")
            block = following
    return Text(source, encoding, n_quotes, max(longest, line_so_far), note)


def _explain_zeros(data: bytes) -> tuple[Part, ...]:
    """Return a hint for text with zero bytes; in UTF-16 every other byte is mostly zero."""
    start = data[: 1000 - len(data) % 2]
    for name, zeros, others in (("le", start[1::2], start[::2]), ("be", start[::2], start[1::2])):
        if zeros.count(0) > 0.8 * len(zeros) and others.count(0) < 0.2 * len(others):
            hint = "it seems to be UTF-16 without a mark: name it with "
            return hint, Parameter("encoding", f"utf-16-{name}")
    return ("is it a binary file, or text in another encoding?",)


def _broken(source: Source, encoding: str, error: UnicodeDecodeError, n_lines: int) -> _BrokenText:
    data = error.object
    line = n_lines + data[: error.start].count(b"\n")
    byte = " ".join(f"0x{value:02x}" for value in data[error.start : error.end])
    incomplete = _is_cut_off(data[error.start :], encoding)
    name = "UTF-8" if encoding == "utf-8" else encoding
    location = f"{source.name}, line {line}: broken {name} (byte {byte}); "
    if incomplete:
        broken = _BrokenText(location, "is the file cut off?")
        broken.incomplete = True
        return broken
    return _BrokenText(location, "name its encoding with ", Parameter("encoding"))


def _is_cut_off(data: bytes, encoding: str) -> bool:
    """Whether these bytes start a character that further bytes would complete."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(data, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _is_windows_1252(source: Source) -> bool:
    """Return whether non-ASCII bytes occur like letters and signs of Windows-1252."""
    runs = re.compile(rb"([^\x80-\xff]?)([\x80-\xff]+)(?=([^\x80-\xff]?))")
    beside, alone = 0, 0
    with source.open() as stream:
        while lines := stream.read(_BLOCK) + stream.readline():
            for before, run, after in runs.findall(lines):
                if not _WINDOWS_1252.issuperset(run) or len(run) > 4 or _is_utf8(run):
                    return False  # broken UTF-8 rather than something else
                if not _LETTERS.isdisjoint(run):
                    is_beside = before.isalpha() or after.isalpha()
                    beside += is_beside
                    alone += not is_beside
    return beside >= alone


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
