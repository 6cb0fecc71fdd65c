"""Read a table from a file, with whichever library is installed."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spinney.cli._errors import UserError, unknown_column

__all__ = ["Table", "read_table"]

# What stands for a missing value in a text file, whichever library reads it.
_MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]


@dataclass(frozen=True)
class Table:
    """A table that was read.

    Attributes
    ----------
    name : str
        What to call it.
    columns : list of str
        The column names.
    content : data frame or dict of arrays
        A data frame of the library that read it; a dictionary when none is installed.
    """

    name: str
    columns: list[str]
    content: Any

    def column(self, name: str) -> Any:
        """Return one column, as a series or an array."""
        if name not in self.columns:
            raise unknown_column(name, self.columns, self.name)
        if isinstance(self.content, dict):
            return self.content[name]
        import narwhals.stable.v2 as nw

        return nw.from_native(self.content, eager_only=True)[name].to_native()

    def without(self, names: list[str]) -> tuple[Any, Any]:
        """Return the other columns, and what to pass for them as ``categorical_features``."""
        for name in names:
            if name not in self.columns:
                raise unknown_column(name, self.columns, self.name)
        kept = [name for name in self.columns if name not in names]
        if not kept:
            raise UserError(f"{self.name} has no column left to learn from")
        if not isinstance(self.content, dict):
            import narwhals.stable.v2 as nw

            return nw.from_native(self.content, eager_only=True).select(kept).to_native(), (
                "from_dtype"
            )
        arrays = [self.content[name] for name in kept]
        # Arrays have one dtype for all columns, so the text columns must be pointed out.
        text = [number for number, array in enumerate(arrays) if array.dtype == object]
        return np.column_stack(arrays), text or "from_dtype"


def read_table(path: Path) -> Table:
    """Read CSV, TSV (also gzipped), Parquet, Arrow or Feather, told by the file's extension."""
    if not path.exists():
        raise UserError(f"no such file: {path}")
    if path.is_dir():
        raise UserError(f"{path} is a folder; name a file in it")
    extension = (path.suffixes[-2:] if path.suffix.lower() == ".gz" else path.suffixes[-1:]) or [""]
    reader = _READERS.get("".join(extension).lower())
    if reader is None:
        raise UserError(f"cannot tell what {path} is; these are read: {', '.join(_READERS)}")
    try:
        content = reader(path)
        columns = _columns(content)
    except UserError:
        raise
    except Exception as error:  # each library has its own errors for a file it cannot read
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise UserError(f"cannot read {path}: {reason}") from error
    table = Table(path.name, columns, content)
    if not columns or not _n_rows(content):
        raise UserError(f"{path} has no rows")
    return table


def _columns(content: Any) -> list[str]:
    if isinstance(content, dict):
        return list(content)
    import narwhals.stable.v2 as nw

    return list(nw.from_native(content, eager_only=True).columns)


def _n_rows(content: Any) -> int:
    return len(next(iter(content.values()))) if isinstance(content, dict) else int(content.shape[0])


def _read_delimited(path: Path) -> Any:
    separator = _separator(path)
    if find_spec("pandas"):
        import pandas as pd

        return pd.read_csv(
            path, sep=separator, na_values=_MISSING, keep_default_na=False, low_memory=False
        )
    if find_spec("polars"):
        import polars as pl

        # A column's type is settled by all its rows: the first ones may be an exception.
        return pl.read_csv(
            path, separator=separator, null_values=_MISSING, infer_schema_length=None
        )
    return _read_delimited_plainly(path, separator)


def _separator(path: Path) -> str:
    """Tell the separator by the first line; ``.csv`` is also the name of files with semicolons."""
    with _open_text(path) as file:
        first = file.readline()
    if not first.strip():
        raise UserError(f"{path} has no rows")
    if ".tsv" in path.suffixes[-2:]:
        return "\t"
    return max(",;\t|", key=first.count)  # the comma if there is none of them


def _read_delimited_plainly(path: Path, separator: str) -> dict[str, NDArray[Any]]:
    """Read with the standard library: numbers as numbers, other columns as objects."""
    with _open_text(path) as file:
        names, *rows = csv.reader(file, delimiter=separator)
    rows = [row for row in rows if row]  # an empty line is no row
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise ValueError(f"line {number} has {len(row)} fields, the first line {len(names)}")
    if len(set(names)) != len(names):
        raise ValueError("two columns have the same name")
    columns = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: _as_array(list(values)) for name, values in zip(names, columns, strict=True)}


def _as_array(texts: list[str]) -> NDArray[Any]:
    missing = set(_MISSING)
    for kind in (np.int64, np.float64):
        try:
            # An empty text is no integer: a column with missing values goes on to float64.
            return np.array(
                [np.nan if kind is np.float64 and t in missing else kind(t) for t in texts], kind
            )
        except (ValueError, OverflowError):
            continue
    return np.array([None if text in missing else text for text in texts], dtype=object)


def _open_text(path: Path) -> IO[str]:
    opener: Callable[..., IO[str]] = gzip.open if path.suffix.lower() == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", newline="")


def _read_parquet(path: Path) -> Any:
    if find_spec("polars"):
        import polars as pl

        return pl.read_parquet(path)
    if find_spec("pyarrow"):
        import pyarrow.parquet as pq

        return pq.read_table(path)
    raise UserError(f"reading {path} needs polars or pyarrow: pip install pyarrow")


def _read_arrow(path: Path) -> Any:
    with path.open("rb") as file:
        is_file_format = file.read(6) == b"ARROW1"  # otherwise it is the stream format
    if find_spec("polars"):
        import polars as pl

        return pl.read_ipc(path) if is_file_format else pl.read_ipc_stream(path)
    if find_spec("pyarrow"):
        from pyarrow import ipc

        reader = ipc.open_file(path) if is_file_format else ipc.open_stream(path)
        with reader:
            return reader.read_all()
    raise UserError(f"reading {path} needs polars or pyarrow: pip install pyarrow")


_READERS: dict[str, Callable[[Path], Any]] = {
    ".csv": _read_delimited,
    ".csv.gz": _read_delimited,
    ".tsv": _read_delimited,
    ".tsv.gz": _read_delimited,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
