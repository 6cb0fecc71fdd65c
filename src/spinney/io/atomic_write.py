"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replaced_file", "write_whole"]


def write_whole(path: Path, pieces: Iterable[bytes | memoryview]) -> int:
    """Write bytes to a file by `replaced_file`, and return how many there were."""
    n_bytes = 0
    with replaced_file(path, flush=False) as place:
        try:
            with place.open("wb") as stream:
                for piece in pieces:
                    n_bytes += stream.write(piece)
                stream.flush()
                if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    # By the handle that wrote: the system tells others less of what went wrong.
                    os.fsync(stream.fileno())
        except OSError as error:
            raise _with_path(error, path) from error
    return n_bytes


@contextmanager
def replaced_file(path: Path, *, flush: bool = True) -> Iterator[Path]:
    """Give the path of an empty file beside `path` to write to, and move it there at the end.

    Where something fails in between, `path` is as it was. What is no plain file (a device, a named
    pipe) is written to directly. A link stays a link: the file behind it is replaced. Without
    `flush`, whoever writes sees to it that all is on the disk.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        yield path  # not what it resolves to: a pipe of the shell's, /dev/fd/63, has no other path
        return
    target = Path(os.path.realpath(path))
    try:
        # A name may have 255 bytes, and a letter of it four.
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:50]}.")
    except OSError as error:
        raise _with_path(error, path) from error
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        if flush:
            _flush_file(beside)
        os.chmod(beside, _usual_mode(target))  # so far it is a file that nobody else may read
        os.replace(beside, target)
        _flush_folder(target.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _with_path(error: OSError, path: Path) -> OSError:
    return type(error)(error.errno, f"cannot write to {path}: {error.strerror}")


def _usual_mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush_file(path: Path) -> None:
    """Have the system write a file to the disk; that it cannot is an error."""
    with path.open("rb+") as file:  # some systems flush only what could be written to
        os.fsync(file.fileno())


def _flush_folder(path: Path) -> None:
    """Have the system write the names in a folder to the disk, where it does that."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:  # folders cannot be opened everywhere
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
