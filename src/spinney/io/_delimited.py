"""Delimited text files such as CSV, read by pyarrow with every field as text."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from spinney.io._dialect import MISSING, Dialect, find_dialect
from spinney.io._source import Source
from spinney.io._text import Text, scan_text

__all__ = ["DelimitedFile", "open_delimited"]

_HEAD = 1 << 18
_BLOCK = 1 << 22
_BYTES_PER_COLUMN = 4096  # with smaller blocks the cost per column dominates
_MAX_BLOCK = 1 << 30


@dataclass(frozen=True)
class DelimitedFile:
    """A file with its encoding and dialect."""

    text: Text
    dialect: Dialect

    @property
    def name(self) -> str:
        """The name of the file in messages."""
        return self.text.source.name

    @property
    def comma(self) -> bool:
        """Whether a comma can be a decimal separator."""
        return self.dialect.delimiter != ","

    def batches(
        self, columns: list[str] | None = None, *, as_is: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of rows, every field as text; a batch is one block of the file.

        With `as_is`, markers of missing values such as "NA" stay text.
        """
        with self._reader(columns, as_is) as reader:
            yield from reader

    @contextmanager
    def _reader(self, columns: list[str] | None, as_is: bool) -> Iterator[Any]:
        names = self.dialect.columns
        bad_rows: list[Any] = []
        block = max(_BLOCK, _BYTES_PER_COLUMN * len(names), 2 * self.text.longest_line)

        def refuse(row: Any) -> str:
            bad_rows.append(row)
            return "error"

        try:
            with self.text.open_utf8() as stream:
                yield pacsv.open_csv(
                    stream,
                    read_options=pacsv.ReadOptions(
                        column_names=names,
                        skip_rows_after_names=self.dialect.n_skipped,
                        block_size=min(block, _MAX_BLOCK),
                    ),
                    parse_options=pacsv.ParseOptions(
                        delimiter=self.dialect.delimiter,
                        newlines_in_values=self.text.n_quotes > 0,
                        invalid_row_handler=refuse,
                    ),
                    convert_options=pacsv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        # None means all, which is faster than a long list.
                        include_columns=None if columns == names else columns,
                        null_values=[] if as_is else MISSING,
                        strings_can_be_null=not as_is,
                        check_utf8=False,  # `scan_text` has checked it
                    ),
                )
        except pa.ArrowInvalid as error:
            raise self._bad_row(bad_rows, error) from None

    def _bad_row(self, bad_rows: list[Any], error: Exception) -> ValueError:
        """Return an error that names the first invalid line and what is wrong with it."""
        expected = len(self.dialect.columns)
        source = "in the header" if self.dialect.has_header else "in the first line"
        records = self._records()
        for line, fields in records:
            if len(fields) != expected:
                is_cut = len(fields) < expected and next(records, None) is None
                hint = "; is the file cut off?" if is_cut else ""
                return ValueError(
                    f"{self.name}, line {line}: expected {_fields(expected)} as {source}, "
                    f"got {len(fields)}{hint}"
                )
        if bad_rows:
            row = bad_rows[0]
            text = row.text if len(row.text) <= 40 else row.text[:40] + "…"
            return ValueError(
                f"{self.name}: expected {_fields(expected)} as {source}, "
                f"got {row.actual_columns} in {text!r}"
            )
        if "straddling" in str(error):
            return ValueError(f"{self.name}: a row is longer than a block; is a quote not closed?")
        return ValueError(f"cannot read {self.name}: {str(error).splitlines()[0]}")

    def line_of(self, row: int) -> int:
        """Return the line in which a row starts, counted from one."""
        record_number = row + self.dialect.has_header
        for number, (line, _) in enumerate(self._records()):
            if number == record_number:
                return line
        raise IndexError(f"{self.name} has no row {row}")

    def check_quotes(self) -> None:
        """Raise a ValueError if the file ends within quotes.

        pyarrow would read the rest of such a file as one field.
        """
        if self.text.n_quotes % 2 == 0:
            return
        line = 0
        try:
            for start, _ in self._records(strict=True):
                line = start
        except csv.Error as error:
            if "unexpected end" in str(error):  # other errors are stray quotes, part of the text
                raise ValueError(
                    f"{self.name}: a quote that is opened after line {line} is never closed; "
                    "is the file cut off?"
                ) from None

    def _records(self, strict: bool = False) -> Iterator[tuple[int, list[str]]]:
        """Yield the first line number and the fields of each record that is not empty."""
        limit = csv.field_size_limit(sys.maxsize)
        try:
            with self.text.open() as text:
                reader = csv.reader(text, delimiter=self.dialect.delimiter, strict=strict)
                start = 1
                for fields in reader:
                    if fields:
                        yield start, fields
                    start = reader.line_num + 1
        finally:
            csv.field_size_limit(limit)


def open_delimited(
    source: Source, delimiter: str | None, encoding: str | None, header: bool | None = None
) -> DelimitedFile:
    """Detect the encoding and the dialect of a file."""
    text = scan_text(source, encoding)
    head, complete = text.head(max(_HEAD, 4 * text.longest_line))
    if not complete and "\n" in head:
        head = head[: head.rindex("\n") + 1]
    suffixes = [suffix.lower() for suffix in source.path.suffixes[-2:]]
    dialect = find_dialect(head, source.name, delimiter, ".tsv" in suffixes, header)
    file = DelimitedFile(text, dialect)
    file.check_quotes()
    return file


def _fields(count: int) -> str:
    return f"{count:,} field{'s' if count != 1 else ''}"
