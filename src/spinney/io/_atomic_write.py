"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["replaced_file"]


@contextmanager
def replaced_file(path: Path) -> Iterator[Path]:
    """Give the path of an empty file beside `path` to write to, and move it there at the end.

    Where something fails in between, `path` is as it was. What is no plain file (a device, a named
    pipe) is written to directly. A link stays a link: the file behind it is replaced.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file in it")
    if target.exists() and not target.is_file():
        yield target
        return
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise type(error)(error.errno, f"cannot write to {path}: {error.strerror}") from error
    os.close(handle)
    beside = Path(name)
    try:
        yield beside
        os.chmod(beside, _usual_mode(target))  # so far it is a file that nobody else may read
        _flush(beside)
        os.replace(beside, target)
        _flush(target.parent)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _usual_mode(target: Path) -> int:
    """Return the permissions of the file that is replaced, or those of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _flush(path: Path) -> None:
    """Have the system write a file, or the names in a folder, to the disk."""
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
