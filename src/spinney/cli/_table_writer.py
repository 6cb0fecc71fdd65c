"""Writing of tables in blocks: CSV, Parquet, Arrow or lines of JSON."""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from spinney.cli._error_messages import UserError

__all__ = ["check_output", "is_text", "open_writer"]

Write = Callable[[Any], None]  # its argument is a pyarrow.Table
_ARROW = (".arrow", ".feather")
_TEXT = {".csv": ",", ".tsv": "\t"}
_KNOWN = (*_TEXT, *(f"{ending}.gz" for ending in _TEXT), ".parquet", *_ARROW, ".jsonl")


def check_output(out: Path | None) -> str:
    """Return the ending of the output file, which sets the format; "" is standard output."""
    if out is None or str(out) == "-":
        return ""
    endings = [ending.lower() for ending in out.suffixes[-2:]]
    ending = "".join(endings) if endings[-1:] == [".gz"] else "".join(endings[-1:])
    if ending not in _KNOWN:
        raise UserError(f"-o {out}: unknown ending; expected one of {', '.join(_KNOWN)}")
    return ending


def is_text(ending: str) -> bool:
    """Return whether the format is text, without types."""
    return ending.removesuffix(".gz") in ("", *_TEXT)


@contextmanager
def open_writer(out: Path | None, *, as_json: bool = False) -> Iterator[Write]:
    """Yield a function that appends tables to a file or the standard output.

    All tables need the columns of the first one. The file is created only when all is written.
    """
    # Imported late, so that --help and completion start fast.
    from spinney.io.atomic_write import replaced_file

    ending = check_output(out)
    with ExitStack() as stack:
        if out is None or not ending:
            sys.stdout.flush()
            sink = getattr(sys.stdout, "buffer", None) or _TextSink()
            yield _lines_of_json(sink) if as_json else _delimited(sink, ",")
            sink.flush()
            return
        path = stack.enter_context(replaced_file(out))
        if ending == ".parquet" or ending in _ARROW:
            writer = stack.enter_context(_ColumnarFile(path, ending))
            yield writer.write
            return
        # Imported late, so that --help and completion start fast.
        import pyarrow as pa

        compression = "gzip" if ending.endswith(".gz") else None
        stream = stack.enter_context(pa.output_stream(str(path), compression=compression))
        delimiter = _TEXT.get(ending.removesuffix(".gz"))
        yield _lines_of_json(stream) if delimiter is None else _delimited(stream, delimiter)


def _delimited(sink: Any, delimiter: str) -> Write:
    is_first = True

    def write(table: Any) -> None:
        nonlocal is_first
        if is_first:
            line = io.StringIO()
            csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
            sink.write(line.getvalue().encode())
            is_first = False
        for batch in table.combine_chunks().to_batches():
            sink.write(_lines(batch, delimiter))

    return write


def _lines(batch: Any, delimiter: str) -> bytes:
    """Return rows as text with quotes only where needed; Arrow's writer quotes all text."""
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batch.num_rows:
        return b""
    cells = [_cells(column, delimiter) for column in batch.columns]
    separator = pa.scalar(delimiter, pa.large_string())
    line = pc.binary_join_element_wise(*cells, separator, null_handling="replace")
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(line)], pa.int64()), line)
    return bytes(pc.binary_join(whole, pa.scalar("\n", pa.large_string()))[0].as_buffer()) + b"\n"


def _cells(column: Any, delimiter: str) -> Any:
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        text = column.cast(pa.large_string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UserError(
            f"a column of {column.type} cannot be written as text; write .parquet or .arrow"
        ) from error
    if pa.types.is_timestamp(column.type):  # without a time of 00:00:00 and zero fractions
        text = pc.replace_substring_regex(text, r"( 00:00:00)?\.0+$", "")
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return text
    special = pc.match_substring_regex(text, f'["\r\n{delimiter}]')
    doubled = pc.replace_substring(text, '"', '""')
    quote = pa.scalar('"', pa.large_string())
    empty = pa.scalar("", pa.large_string())
    quoted = pc.binary_join_element_wise(quote, doubled, quote, empty)
    return pc.if_else(special, quoted, text)


def _lines_of_json(sink: Any) -> Write:
    def write(table: Any) -> None:
        rows = [{name: _json_value(row[name]) for name in row} for row in table.to_pylist()]
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
        sink.write("".join(f"{line}\n" for line in lines).encode())

    return write


def _json_value(value: Any) -> Any:
    """Return None for NaN and infinities, which JSON does not have."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _ColumnarFile:
    """A Parquet or Arrow file, opened with the schema of the first table."""

    def __init__(self, path: Path, ending: str) -> None:
        self._path, self._ending = path, ending
        self._writer: Any = None

    def __enter__(self) -> _ColumnarFile:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, table: Any) -> None:
        # Imported late, so that --help and completion start fast.
        import pyarrow as pa
        import pyarrow.parquet

        if self._writer is None:
            is_parquet = self._ending == ".parquet"
            start = pyarrow.parquet.ParquetWriter if is_parquet else pa.ipc.new_file
            self._writer, self._schema = start(str(self._path), table.schema), table.schema
        try:
            self._writer.write_table(table.cast(self._schema))
        except pa.ArrowInvalid as error:
            raise UserError(f"a column has different types in different blocks: {error}") from error


class _TextSink:
    """A binary sink for a standard output that accepts only text, as in notebooks."""

    def write(self, data: bytes) -> None:
        sys.stdout.write(data.decode())

    def flush(self) -> None:
        sys.stdout.flush()
