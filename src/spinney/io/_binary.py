"""Parquet and Arrow files, whole or in batches."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from spinney.io._source import Source

__all__ = ["read_batches", "read_binary", "read_schema"]

_TITLES = {"parquet": "Parquet", "arrow": "Arrow", "arrow stream": "Arrow"}


def read_binary(source: Source) -> pa.Table:
    """Read a whole file."""
    with _naming(source):
        if source.format == "parquet":
            # Imported late, as other formats do not need it.
            import pyarrow.parquet as pq

            with pq.ParquetFile(source.path) as file:
                return file.read()
        if _is_first_feather(source):
            # Imported late, as other formats do not need it.
            from pyarrow import feather

            with warnings.catch_warnings():  # pyarrow recommends to convert such files
                warnings.simplefilter("ignore", DeprecationWarning)
                return feather.read_table(source.path)
        with _open_arrow(source) as reader:
            table = reader.read_all()
            table.validate(full=True)  # pyarrow does not check offsets, which may be damaged
            return table


def read_schema(source: Source) -> pa.Schema:
    """Read only the names and types of the columns."""
    with _naming(source):
        if source.format == "parquet":
            # Imported late, as other formats do not need it.
            import pyarrow.parquet as pq

            return pq.read_schema(source.path)
        if _is_first_feather(source):
            return read_binary(source).schema
        with _open_arrow(source) as reader:
            return reader.schema


def read_batches(source: Source, rows: int, columns: list[str]) -> Iterator[Any]:
    """Yield batches of rows; `rows` is the size of those of a Parquet file."""
    with _naming(source):
        if source.format == "parquet":
            # Imported late, as other formats do not need it.
            import pyarrow.parquet as pq

            with pq.ParquetFile(source.path) as file:
                yield from file.iter_batches(batch_size=rows, columns=columns)
            return
        if _is_first_feather(source):
            yield from read_binary(source).select(columns).to_batches(max_chunksize=rows)
            return
        with _open_arrow(source) as reader:
            batches = (
                reader
                if source.format == "arrow stream"
                else (reader.get_batch(number) for number in range(reader.num_record_batches))
            )
            for batch in batches:
                chosen = batch.select(columns)
                chosen.validate(full=True)
                yield chosen


@contextmanager
def _open_arrow(source: Source) -> Iterator[Any]:
    with pa.memory_map(str(source.path)) as file:
        opener = pa.ipc.open_stream if source.format == "arrow stream" else pa.ipc.open_file
        with opener(file) as reader:
            yield reader


def _is_first_feather(source: Source) -> bool:
    with source.open() as stream:
        return stream.read(4) == b"FEA1"


@contextmanager
def _naming(source: Source) -> Iterator[None]:
    """Turn pyarrow's errors into a ValueError that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        title = _TITLES[source.format]
        raise ValueError(
            f"{source.name} is not a complete {title} file; is it cut off? ({reason})"
        ) from None
