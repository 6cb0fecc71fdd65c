"""Sources of tables: the files of a path, a pattern, a list or standard input."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, Literal, cast

__all__ = ["Format", "Source", "Sources", "find_sources"]

Format = Literal["delimited", "parquet", "arrow", "arrow stream"]

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_FORMATS: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",  # the first version of Feather
    b"\xff\xff\xff\xff": "arrow stream",
}
_BY_NAME = {".parquet": "Parquet", ".arrow": "Arrow", ".feather": "Feather", ".ipc": "Arrow"}


@dataclass(frozen=True)
class Source:
    """One file.

    Attributes
    ----------
    name : str
        The name in messages.
    path : Path
        The file itself, or the copy of standard input.
    packing : {"", "gzip", "bz2", "xz", "zstd"}
        The compression.
    format : {"delimited", "parquet", "arrow", "arrow stream"}
        The format of the contents.
    copy : file or None
        The copy of standard input. It is deleted with the last reference to it.
    """

    name: str
    path: Path
    packing: str
    format: Format
    copy: IO[bytes] | None = None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the decompressed bytes; errors of decompression name the file."""
        try:
            with _open(self.path, self.packing) as stream:
                yield stream
        except EOFError:
            raise ValueError(
                f"{self.name}: the {self.packing} data end too early; {_CUT}"
            ) from None
        except (zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.name}: broken {self.packing} data ({error})") from None


_CUT = "is the file cut off?"


@dataclass(frozen=True)
class Sources:
    """The files of one table, all of one format, and a short name for titles."""

    title: str
    files: list[Source]


def find_sources(source: Any) -> Sources:
    """Find the files that `source` names.

    Parameters
    ----------
    source : str, path or list of these
        A path, a pattern such as ``part-*.csv`` (its files in sorted order), or several; "-" is
        standard input.
    """
    several = isinstance(source, (list, tuple))
    given = [os.fspath(item) for item in (source if several else [source])]
    if not given:
        raise ValueError("source: expected at least one file, got an empty list")
    files = [file for item in given for file in _expand(item)]
    formats = {file.format: file for file in files}
    if len(formats) > 1:
        one, other = list(formats.values())[:2]
        raise ValueError(
            f"expected files of one format, got {one.format} ({one.name}) "
            f"and {other.format} ({other.name})"
        )
    title = files[0].path.name if given[0] != "-" else files[0].name
    if not several and len(files) > 1:
        title = Path(given[0]).name
    elif len(files) > 1:
        title += f" and {len(files) - 1} more"
    return Sources(title, files)


def _expand(item: str) -> list[Source]:
    """Return the files of a path, a pattern or "-"."""
    if item == "-":
        copy = _keep_standard_input()
        return [replace(_recognise("standard input", Path(copy.name)), copy=copy)]
    path = Path(item).expanduser()
    if path.is_dir():
        raise IsADirectoryError(
            f"{item} is a folder; name a file in it, or a pattern: {path}/*.csv"
        )
    if path.exists():
        return [_recognise(item, path)]
    if not glob.has_magic(item):
        raise FileNotFoundError(f"no such file: {item}")
    found = sorted(name for name in glob.glob(str(path), recursive=True) if Path(name).is_file())
    if not found:
        raise FileNotFoundError(f"no file matches {item}")
    return [_recognise(name, Path(name)) for name in found]


def _keep_standard_input() -> IO[bytes]:
    """Copy standard input to disk, as Parquet needs seeking and text is read twice."""
    copy = tempfile.NamedTemporaryFile(prefix="spinney-")  # noqa: SIM115 (its Source keeps it)
    shutil.copyfileobj(getattr(sys.stdin, "buffer", sys.stdin), copy, 1 << 20)
    copy.flush()
    return copy


def _recognise(name: str, path: Path) -> Source:
    """Detect compression and format from the first bytes, and compare the extension."""
    try:
        with path.open("rb") as file:
            start = file.read(8)
    except OSError as error:
        raise type(error)(f"cannot read {name}: {error.strerror}") from None
    if not start:
        raise ValueError(f"{name} is empty")
    packing = next((kind for magic, kind in _PACKED.items() if start.startswith(magic)), "")
    if packing:
        with Source(name, path, packing, "delimited").open() as stream:
            start = stream.read(8)
        if not start:
            raise ValueError(f"{name} is empty")
    format_: Format = "delimited"
    for magic, kind in _FORMATS.items():
        if start.startswith(magic):
            format_ = kind
    if packing and format_ != "delimited":
        raise ValueError(
            f"{name}: expected an uncompressed {format_} file, got one packed by {packing}; "
            "decompress it"
        )
    if start.startswith(b"PK\x03\x04"):
        raise ValueError(
            f"{name} is a zip archive or an Excel workbook; expected CSV, Parquet or Arrow: "
            "unpack it, or save the sheet as CSV"
        )
    expected = _BY_NAME.get(path.suffix.lower())
    if expected is not None and format_ == "delimited":
        raise ValueError(f"{name} is not a {expected} file: it starts with {start!r}")
    return Source(name, path, packing, format_)


@contextmanager
def _open(path: Path, packing: str) -> Iterator[BinaryIO]:
    if packing == "zstd":
        # Imported late, as other formats do not need it.
        import pyarrow as pa

        try:
            with pa.CompressedInputStream(str(path), "zstd") as stream:
                yield stream
        except pa.ArrowInvalid as error:
            raise zlib.error(str(error)) from None
        return
    opener: Any = {"gzip": gzip.open, "bz2": bz2.open, "xz": lzma.open, "": open}[packing]
    with opener(path, "rb") as stream:
        yield cast(BinaryIO, stream)
