"""Atomic writes: a file is written completely or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replaced_file", "write_whole"]


def write_whole(path: Path, chunks: Iterable[bytes | memoryview]) -> int:
    """Write chunks of bytes to a file by `replaced_file`, and return the total size."""
    n_bytes = 0
    with replaced_file(path, flush=False) as temporary:
        try:
            with temporary.open("wb") as stream:
                for chunk in chunks:
                    n_bytes += stream.write(chunk)
                stream.flush()
                if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    # Use the handle that wrote: the system reports write errors only to it.
                    os.fsync(stream.fileno())
        except OSError as error:
            raise _with_path(error, path) from error
    return n_bytes


@contextmanager
def replaced_file(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Yield the path of an empty temporary file, and move it to `path` at the end.

    After an error `path` is unchanged. Special files (devices, named pipes) are written directly.
    A link stays a link: its target is replaced. Without `flush`, the caller must flush the file to
    disk.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        yield path  # not its real path: /dev/fd/63, a pipe of the shell, has none
        return
    target = Path(os.path.realpath(path))
    try:
        # A name may have 255 bytes, and a character four.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")
    except OSError as error:
        raise _with_path(error, path) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        if flush:
            _flush_file(temporary)
        os.chmod(temporary, _usual_mode(target))  # mkstemp allows only its owner to read it
        os.replace(temporary, target)
        _flush_folder(target.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _with_path(error: OSError, path: Path) -> OSError:
    return type(error)(error.errno, f"cannot write to {path}: {error.strerror}")


def _usual_mode(target: Path) -> int:
    """Return the permissions of the replaced file, or the default ones of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush_file(path: Path) -> None:
    """Flush a file to disk, or raise an OSError."""
    with path.open("rb+") as file:  # some systems flush only files opened for writing
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    """Flush the names in a folder to disk, if the system supports it."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # some systems cannot open folders
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
