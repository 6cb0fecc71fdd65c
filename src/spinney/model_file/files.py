"""Model files: a fitted model as arrays and JSON in the safetensors format, nothing that is run.

The header of the file has four texts: ``format`` ("spinney.model"), ``about`` (what the model is
and what it was fitted on, readable without the rest), ``state`` (the nodes, see `_description`) and
``checksums``. The body has the arrays. `VERSION` goes up when older versions of Spinney could no
longer read what is written; every version that was ever released stays readable.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["VERSION", "describe", "load", "model_to_bytes", "read_about", "save", "write_model"]

VERSION = 1
_FORMAT = "spinney.model"
_MOST_JSON = 45_000_000  # the header may have 100 MB, in which every quotation mark takes two bytes


def save(
    model: Any, path: str | os.PathLike[str], *, training: Mapping[str, Any] | None = None
) -> None:
    """Write a model to a file.

    The file has data alone: reading it runs no code that came with it. It is written beside its
    place and then moved there, so that `path` has the old file or the new one at any moment.

    Parameters
    ----------
    model : estimator
        An estimator of Spinney's, fitted or not, or one of scikit-learn's own (a pipeline, a
        scaler, a vote) around them. What cannot be data, such as a function as a parameter, is a
        TypeError that says where it is.
    path : str or path
        The file; an existing one is replaced. A device or a named pipe is written to.
    training : dict or None, default=None
        Facts about the fit to keep beside the model, such as the name of the table: anything that
        JSON can say, and NumPy's numbers. `read_about` returns them as ``["training"]``.

    See Also
    --------
    load : Read it again.

    Examples
    --------
    >>> import tempfile, pathlib, spinney
    >>> from spinney.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spinney.save(tree, pathlib.Path(folder) / "tree.spinney")
    ...     again = spinney.load(pathlib.Path(folder) / "tree.spinney")
    >>> again.predict([[0.9]]).tolist()
    ['yes']
    """
    write_model(model, Path(os.fsdecode(path)), training)


def write_model(model: Any, path: Path, training: Mapping[str, Any] | None) -> int:
    """Write a model as `save` does, and return how many bytes it takes."""
    from spinney.io.atomic_write import write_whole
    from spinney.model_file.container import container_pieces

    return write_whole(path, container_pieces(*_contents(model, training)))


def model_to_bytes(model: Any, *, training: Mapping[str, Any] | None = None) -> bytes:
    """Return what `save` would write, for a pipe."""
    from spinney.model_file.container import container_pieces

    return b"".join(container_pieces(*_contents(model, training)))


def load(path: str | os.PathLike[str], *, mmap: bool | Literal["auto"] = "auto") -> Any:
    """Read a model from a file that `save` wrote.

    Only data is read, and only classes of Spinney's and some of scikit-learn's are made of it: a
    file from elsewhere can be wrong, but it cannot run code.

    Parameters
    ----------
    path : str or path
        The file.
    mmap : bool or "auto", default="auto"
        Whether the model's arrays stay in the file and are mapped into memory: processes that load
        the same file then share one copy of its forests. A mapped file may be replaced (`save`
        does) or deleted at any time, but must not be written into or cut off while a model uses
        it. "auto" maps files of 4 MiB and more, except on Windows, where a mapped file could not
        be replaced. Memory that is written to is the process's own; the file never changes.

    Returns
    -------
    estimator
        The model, with the same parameters, attributes and predictions to the bit.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is no model file, it is damaged, or a later version of Spinney wrote it.

    See Also
    --------
    save : Write a model.
    describe : Say what is in a file.
    """
    from spinney.model_file._rebuilding import rebuild
    from spinney.model_file.container import read_container

    if not (isinstance(mmap, bool | np.bool_) or mmap == "auto"):
        raise ValueError(f"mmap: expected True, False or 'auto', got {mmap!r}")
    path = os.fsdecode(path)
    header, tensors = read_container(path, "auto" if mmap == "auto" else bool(mmap))
    _check_version(header, path)
    _about(header, path)  # damage is told wherever it is
    checksums = _json(header, "checksums", path)
    written = str(checksums.get("arrays"))
    check = _checksum_of_tensors if written.startswith("crc32:") else _digest_of_tensors
    if check(tensors) != written:
        raise ValueError(f"{path}: damaged (the arrays are not those that were written)")
    nodes = _json(header, "state", path)
    try:
        model = rebuild(nodes, tensors)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    if not hasattr(type(model), "get_params"):  # as `save` asks of what it writes
        raise ValueError(f"{path}: damaged (a {type(model).__name__}, which is no model)")
    return model


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read what a model file says about its model, and nothing else of it.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        ``class``, ``parameters`` (as texts), ``changed`` (names of those that are not the
        defaults), ``features``, ``classes``, ``versions``, ``written`` and ``training``.
    """
    from spinney.model_file.container import read_header

    path = os.fsdecode(path)
    header, _ = read_header(path)
    _check_version(header, path)
    return _about(header, path)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Say what is in a model file, without loading its arrays.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        What `spinney.io.read_about` returns, and ``format_version``, ``n_bytes`` (of the file)
        and ``array_bytes`` (of the arrays in it). ``compaction`` says what
        `compact` has changed, None if nothing.

    Examples
    --------
    >>> import tempfile, pathlib, spinney
    >>> from spinney.tree import DecisionTreeClassifier
    >>> tree = DecisionTreeClassifier(max_depth=2).fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     spinney.save(tree, pathlib.Path(folder) / "tree.spinney")
    ...     facts = spinney.describe(pathlib.Path(folder) / "tree.spinney")
    >>> facts["class"], facts["changed"], facts["classes"]
    ('spinney.tree.DecisionTreeClassifier', ['max_depth'], ['no', 'yes'])
    """
    from spinney.model_file.container import read_header

    path = os.fsdecode(path)
    header, array_bytes = read_header(path)
    _check_version(header, path)
    about = _about(header, path)
    return {
        **about,
        "compaction": about.get("compaction"),
        "format_version": int(header["version"]),
        "n_bytes": Path(path).stat().st_size,
        "array_bytes": array_bytes,
    }


def _contents(
    model: Any, training: Mapping[str, Any] | None
) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    from spinney.model_file._description import describe as describe_state
    from spinney.model_file.about import about_model

    if not hasattr(model, "get_params") or isinstance(model, type):
        what = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else f"a {type(model).__name__}"
        )
        raise TypeError(f"model: expected an estimator, got {what}")
    if type(model).__module__.startswith("spinney.dask."):
        model = model.to_local()  # a file knows nothing of Dask
    description = describe_state(model)
    about = json.dumps(about_model(model, training), allow_nan=False)
    state = json.dumps(description.nodes, allow_nan=False, separators=(",", ":"))
    if len(about) + len(state) > _MOST_JSON:
        size = f"{(len(about) + len(state)) / 1e6:,.0f} MB"
        raise ValueError(
            f"{type(model).__name__} has too many parts for a file: {size} of JSON, "
            f"and safetensors takes {_MOST_JSON / 1e6:.0f} MB"
        )
    checksums = {
        "about": _checksum(about),
        "state": _checksum(state),
        "arrays": _checksum_of_tensors(description.tensors),
    }
    header = {
        "format": _FORMAT,
        "version": str(VERSION),
        "about": about,
        "state": state,
        "checksums": json.dumps(checksums),
    }
    return header, description.tensors


def _check_version(header: Mapping[str, str], path: str | os.PathLike[str]) -> None:
    if header.get("format") != _FORMAT:
        raise ValueError(f"{path}: a safetensors file, but not a model of Spinney's")
    version = header.get("version", "")
    if version not in map(str, range(1, VERSION + 1)):
        from spinney import __version__

        raise ValueError(
            f"{path}: format version {version[:20] or 'missing'}; "
            f"Spinney {__version__} reads versions up to {VERSION}"
        )


def _about(header: Mapping[str, str], path: str | os.PathLike[str]) -> dict[str, Any]:
    about = _json(header, "about", path)
    if not isinstance(about, dict) or type(about.get("class")) is not str:
        raise ValueError(f"{path}: damaged (about: it names no class)")
    return about


def _json(header: Mapping[str, str], part: str, path: str | os.PathLike[str]) -> Any:
    """Read one text of the header as JSON, by its checksum (which has none itself)."""
    text = header.get(part, "")
    try:
        if part != "checksums" and _checksum(text) != _json(header, "checksums", path).get(part):
            raise ValueError("it is not what was written")
        return json.loads(text)
    except (AttributeError, RecursionError, ValueError) as error:
        raise ValueError(f"{path}: damaged ({part}: {error})") from error


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _checksum_of_tensors(tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return a sum that tells damage; a fast one, for it is most of what loading takes."""
    from spinney import _core
    from spinney.runtime.threads import effective_n_jobs

    n_threads = effective_n_jobs(None)
    total = 0
    for title, numbers in _bytes_of(tensors):
        total = _core.crc32(zlib.crc32(title, total), numbers, n_threads)
    return f"crc32:{total:08x}"


def _digest_of_tensors(tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return what the first files of version 1 have in its place."""
    total = hashlib.sha256()
    for title, numbers in _bytes_of(tensors):
        total.update(title)
        total.update(numbers.data)
    return total.hexdigest()


def _bytes_of(tensors: Mapping[str, NDArray[Any]]) -> Iterator[tuple[bytes, NDArray[np.uint8]]]:
    for name in sorted(tensors):
        tensor = tensors[name]
        title = f"{name} {tensor.dtype.str} {tensor.shape}\n".encode()
        yield title, np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)
