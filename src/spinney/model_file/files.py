"""Model files: a fitted model as arrays and JSON in the safetensors format.

The header of the file has five strings: ``format`` ("spinney.model"), ``version``, ``about``
(metadata of the model and its fit, readable without the rest), ``state`` (the nodes, see
`_description`) and ``checksums``. The body has the arrays. `VERSION` increases when older versions
of Spinney cannot read new files. Files of all released versions stay readable.
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

VERSION = 2
_FORMAT = "spinney.model"
_MOST_JSON = 45_000_000  # the header may have 100 MB, and escaped quotation marks take two bytes


def save(
    model: Any, path: str | os.PathLike[str], *, training: Mapping[str, Any] | None = None
) -> None:
    """Write a model to a file.

    The file contains only data: reading it runs no code from the file. It is written to a
    temporary file and then moved, so that `path` is the old file or the new one at any moment.

    Parameters
    ----------
    model : estimator
        A Spinney estimator, fitted or not, or a scikit-learn estimator (pipeline, scaler, vote)
        around some. Parts that are not data, such as a function as a parameter, raise a TypeError
        with their location in the model.
    path : str or path
        The file; an existing one is replaced. A device or a named pipe is written to.
    training : dict or None, default=None
        Facts about the fit to store with the model, such as the name of the table: JSON values
        and NumPy's numbers. `read_about` returns them as ``["training"]``.

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
    """Write a model as `save` does, and return the size of the file in bytes."""
    # Imported here for start-up time.
    from spinney.io.atomic_write import write_whole
    from spinney.model_file.container import container_chunks

    return write_whole(path, container_chunks(*_contents(model, training)))


def model_to_bytes(model: Any, *, training: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes that `save` would write, for a pipe."""
    # Imported here for start-up time.
    from spinney.model_file.container import container_chunks

    return b"".join(container_chunks(*_contents(model, training)))


def load(path: str | os.PathLike[str], *, mmap: bool | Literal["auto"] = "auto") -> Any:
    """Read a model from a file that `save` wrote.

    Only data is read, and only Spinney's classes and some of scikit-learn's are created from it.
    A file from an untrusted source can be wrong, but it cannot run code.

    Parameters
    ----------
    path : str or path
        The file.
    mmap : bool or "auto", default="auto"
        Whether the model's arrays stay in the file and are mapped into memory: processes that load
        the same file then share one copy of its forests. A mapped file may be replaced (`save`
        does) or deleted at any time, but must not be modified or truncated while a model uses it.
        "auto" maps files of 4 MiB and more, except on Windows, where a mapped file could not be
        replaced. Changes of the arrays stay in the process; the file never changes.

    Returns
    -------
    estimator
        The model, with the same parameters, attributes and predictions to the bit.

    Raises
    ------
    OSError
        The file cannot be read.
    ValueError
        It is not a model file, it is damaged, or a later version of Spinney wrote it.

    See Also
    --------
    save : Write a model.
    describe : Describe the contents of a file.
    """
    # Imported here for start-up time.
    from spinney.model_file._rebuilding import rebuild
    from spinney.model_file.container import read_container

    if not (isinstance(mmap, bool | np.bool_) or mmap == "auto"):
        raise ValueError(f"mmap: expected True, False or 'auto', got {mmap!r}")
    path = os.fsdecode(path)
    header, tensors = read_container(path, "auto" if mmap == "auto" else bool(mmap))
    _check_version(header, path)
    _about(header, path)  # not used, but its checksum is checked, too
    checksums = _json(header, "checksums", path)
    written = str(checksums.get("arrays"))
    check = _checksum_of_tensors if written.startswith("crc32:") else _digest_of_tensors
    if check(tensors) != written:
        raise ValueError(f"{path}: damaged (the checksum of the arrays does not match)")
    nodes = _json(header, "state", path)
    try:
        model = rebuild(nodes, tensors)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: damaged ({error})") from error
    if not hasattr(type(model), "get_params"):  # `save` requires the same
        raise ValueError(f"{path}: damaged (a {type(model).__name__}, which is not a model)")
    return model


def read_about(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the metadata of a model file, without the model.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        ``class``, ``parameters`` (as strings), ``changed`` (names of the parameters that are not
        at their defaults), ``features``, ``classes``, ``versions``, ``written`` and ``training``.
    """
    # Imported here for start-up time.
    from spinney.model_file.container import read_header

    path = os.fsdecode(path)
    header, _ = read_header(path)
    _check_version(header, path)
    return _about(header, path)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe the contents of a model file, without loading its arrays.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    dict
        The result of `spinney.io.read_about`, and ``format_version``, ``n_bytes`` (of the file)
        and ``array_bytes`` (of the arrays in it). ``compaction`` has the changes by `compact`, or
        None.

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
    # Imported here for start-up time.
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
    # Imported here for start-up time.
    from spinney.model_file._description import describe_state
    from spinney.model_file.about import about_model

    if not hasattr(model, "get_params") or isinstance(model, type):
        label = (
            f"the class {model.__name__}"
            if isinstance(model, type)
            else f"a {type(model).__name__}"
        )
        raise TypeError(f"model: expected an estimator, got {label}")
    if type(model).__module__.startswith("spinney.dask."):
        model = model.to_local()  # files contain no Dask estimators
    description = describe_state(model)
    about = json.dumps(about_model(model, training), allow_nan=False)
    state = json.dumps(description.nodes, allow_nan=False, separators=(",", ":"))
    if len(about) + len(state) > _MOST_JSON:
        size = f"{(len(about) + len(state)) / 1e6:,.0f} MB"
        raise ValueError(
            f"{type(model).__name__} has too many parts for a model file: {size} of JSON, "
            f"expected at most {_MOST_JSON / 1e6:.0f} MB"
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
        raise ValueError(f"{path}: a safetensors file, but not a Spinney model")
    version = header.get("version", "")
    if version not in map(str, range(1, VERSION + 1)):
        # Imported here for start-up time.
        from spinney import __version__

        raise ValueError(
            f"{path}: format version {version[:20] or 'missing'}; "
            f"Spinney {__version__} reads versions up to {VERSION}"
        )


def _about(header: Mapping[str, str], path: str | os.PathLike[str]) -> dict[str, Any]:
    about = _json(header, "about", path)
    if not isinstance(about, dict) or type(about.get("class")) is not str:
        raise ValueError(f"{path}: damaged (about: the class is missing)")
    return about


def _json(header: Mapping[str, str], part: str, path: str | os.PathLike[str]) -> Any:
    """Read a string of the header as JSON, and verify its checksum, if it has one."""
    text = header.get(part, "")
    try:
        if part != "checksums" and _checksum(text) != _json(header, "checksums", path).get(part):
            raise ValueError("the checksum does not match")
        return json.loads(text)
    except (AttributeError, RecursionError, ValueError) as error:
        raise ValueError(f"{path}: damaged ({part}: {error})") from error


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _checksum_of_tensors(tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return the CRC-32 of the arrays: fast, as it takes most of the time of loading."""
    # Imported here for start-up time.
    from spinney import _core
    from spinney.runtime.threads import effective_n_jobs

    n_threads = effective_n_jobs(None)
    total = 0
    for title, numbers in _bytes_of(tensors):
        total = _core.crc32(zlib.crc32(title, total), numbers, n_threads)
    return f"crc32:{total:08x}"


def _digest_of_tensors(tensors: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of the arrays, which the first files of version 1 have."""
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
