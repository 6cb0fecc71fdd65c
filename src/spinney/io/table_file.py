"""Tables in files, read as a whole or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from spinney.data.notes import Note, NoteKind
from spinney.io._binary import read_batches, read_binary, read_schema
from spinney.io._delimited import DelimitedFile, open_delimited
from spinney.io._source import Source, find_sources
from spinney.io._text_form import NUMBER, TextForm, dated
from spinney.io._typed_text import read_typed, settle_types, typed_batches

__all__ = ["TableFile", "read_pieces", "read_table", "unknown_column"]

# If at least this share of a text column is numeric, the other values are noted.
_MOSTLY = 0.9
# Notes on columns that could have been parsed in another way.
_NOTED = {
    TextForm.COMMA: "decimal comma",
    TextForm.DAY_FIRST: "dates with the day before the month",
    TextForm.MONTH_FIRST: "dates with the month before the day",
    TextForm.EITHER_FIRST: "ambiguous order of day and month, kept as text,",
}


@dataclass(frozen=True)
class TableFile:
    """A table that was read.

    Attributes
    ----------
    name : str
        A short name, for titles.
    columns : list of str
        The column names.
    frame : pyarrow.Table
        The content.
    notes : list of str
        Remarks on the files, such as "delimiter ';' (semicolon)".
    renamed : dict of str to str
        Columns that got a unique name, with their name in the header.
    """

    name: str
    columns: list[str]
    frame: pa.Table
    notes: list[str]
    renamed: dict[str, str] = field(default_factory=dict)
    _location: Callable[[int], str] | None = field(default=None, repr=False, compare=False)

    def location_of(self, row: int) -> str:
        """Return the line (of a text file) or the number of a row, counted from 0."""
        return f"row {row + 1:,}" if self._location is None else self._location(row)


def read_table(
    source: Any,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> TableFile:
    """Read a table from CSV, Parquet, Arrow or Feather.

    The format is detected from the first bytes of a file. Text may be compressed (gzip, bz2, xz,
    zstd). Its delimiter, encoding and header are detected, and the types of its columns are
    inferred from all rows.

    Parameters
    ----------
    source : str, path or list of these
        A path, a pattern such as ``part-*.csv``, several of them, or "-" for standard input.
        Several files must have the same columns, in any order.
    delimiter : str, optional
        The delimiter of a text file: a character, or "comma", "semicolon", "tab", "bar" or
        "space"; detected by default.
    encoding : str, optional
        The encoding of a text file; detected by default.
    header : bool, optional
        Whether the first line of a text file has the names of the columns; without a header they
        are called c1, c2, …. By default the first line is a header unless all its fields are
        numbers.

    Returns
    -------
    TableFile

    Raises
    ------
    OSError
        If a file cannot be read.
    ValueError
        If the contents of a file are invalid; the message names file and line.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from spinney.io import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "shop.csv"
    ...     _ = path.write_text("age;height;city\\n31;1,75;Bath\\n45;1,68;?\\n")
    ...     table = read_table(path)
    >>> table.frame.schema.types
    [DataType(int64), DataType(double), DataType(string)]
    >>> table.frame["city"].null_count
    1
    >>> table.notes
    ["delimiter ';' (semicolon)", "decimal comma in 'height'"]
    """
    found = find_sources(source)
    renamed: dict[str, str] = {}
    if found.files[0].format == "delimited":
        files = [open_delimited(file, delimiter, encoding, header) for file in found.files]
        frame, notes, location = _read_delimited(files)
        renamed = files[0].dialect.renamed
    else:
        frame, notes, location = _read_binary(found.files), [], None
    if not frame.num_columns or not frame.num_rows:
        raise ValueError(f"{found.files[0].name} has no rows")
    return TableFile(found.title, list(frame.column_names), frame, notes, renamed, location)


def read_pieces(
    source: Any,
    *,
    rows: int = 65_536,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Iterator[pa.Table]:
    """Read a table in chunks, with memory that does not grow with the file.

    Parameters
    ----------
    source : str, path or list of these
        As for `read_table`.
    rows : int, default=65536
        The number of rows of each chunk; the last may have fewer.
    columns : list of str, optional
        The columns to read, in this order; all by default.
    schema : pyarrow.Schema, optional
        Types of columns of text files, such as `ColumnKinds.schema`. A value that is not of its
        column's type is an error; texts of type large_string are not changed. The types of
        columns without a field are inferred from all rows, so that the file is read twice.
    delimiter, encoding, header : optional
        As for `read_table`.

    Yields
    ------
    pyarrow.Table
    """
    if rows < 1:
        raise ValueError(f"rows: expected at least 1, got {rows}")
    found = find_sources(source)
    if found.files[0].format == "delimited":
        files = [open_delimited(file, delimiter, encoding, header) for file in found.files]
        names = files[0].dialect.columns
        _check_same([(file.name, file.dialect.columns) for file in files])
        wanted = _wanted(columns, names, files[0].name)
        fields = {} if schema is None else {field.name: field for field in schema}
        unknown = [name for name in wanted if name not in fields]
        fields |= settle_types(files, unknown) if unknown else {}
        batches = typed_batches(files, wanted, fields)
    else:
        schemas = [(file.name, read_schema(file)) for file in found.files]
        _check_same([(name, one.names) for name, one in schemas])
        wanted = _wanted(columns, schemas[0][1].names, found.files[0].name)
        kinds = _promoted([(name, one.empty_table()) for name, one in schemas]).schema
        types = {name: kinds.field(name).type for name in wanted}
        batches = (
            pa.Table.from_batches([batch]).cast(pa.schema(list(types.items())))
            for file in found.files
            for batch in read_batches(file, rows, wanted)
        )
    return _resize(batches, rows)


def unknown_column(name: str, columns: Sequence[str], where: str) -> ValueError:
    """Return the error for an unknown column, with similar names as suggestions."""
    by_lower_case = {column.lower(): column for column in columns}
    close = get_close_matches(name.lower(), by_lower_case, n=3)
    if close:
        meant = " or ".join(repr(by_lower_case[match]) for match in close)
        return ValueError(f"no column {name!r} in {where}; did you mean {meant}?")
    shown = ", ".join(columns[:10]) + (", …" if len(columns) > 10 else "")
    return ValueError(f"no column {name!r} in {where}; it has: {shown}")


def _read_delimited(
    files: list[DelimitedFile],
) -> tuple[pa.Table, list[str], Callable[[int], str]]:
    _check_same([(file.name, file.dialect.columns) for file in files])
    notes = [note for file in files for note in [file.text.note, *file.dialect.notes] if note]
    forms, columns, starts = read_typed(files)

    def location(row: int) -> str:
        number = next(k for k, start in enumerate(starts[1:]) if row < start)
        line = f"line {files[number].line_of(row - starts[number])}"
        return line + (f" of {files[number].name}" if len(files) > 1 else "")

    for name, values in columns.items():
        if forms[name] is TextForm.TEXT and (stray := _find_stray(values)) is not None:
            count, row = stray
            are = "values are not numeric" if count > 1 else "value is not numeric"
            first = f"first {values[row].as_py()!r} at {location(row)}"
            text = f"column {name!r}: {count:,} {are}, {first}"
            notes.append(Note(text, kind=NoteKind.STRAY_VALUES, column=name))
    for form, remark in _NOTED.items():
        names = [repr(name) for name in columns if forms[name] is form]
        shown = ", ".join(names[:10]) + (", …" if len(names) > 10 else "")
        notes += [Note(f"{remark} in {shown}", kind=NoteKind.FORMAT)] if names else []
    schema = [dated(name, forms[name].type, forms[name].order) for name in columns]
    frame = pa.table(list(columns.values()), schema=pa.schema(schema))
    return frame, list(dict.fromkeys(notes)), location


def _find_stray(texts: pa.ChunkedArray) -> tuple[int, int] | None:
    """Return the count and the first row of stray texts in a mostly numeric column."""
    present = len(texts) - texts.null_count
    if _share(texts.slice(0, 1000)) < _MOSTLY / 2 or _share(texts) < _MOSTLY:
        return None
    others = pc.fill_null(pc.invert(pc.match_substring_regex(texts, NUMBER)), False)
    count = pc.sum(others).as_py()
    return (count, pc.index(others, True).as_py()) if 0 < count < present else None


def _share(texts: pa.ChunkedArray) -> float:
    return pc.mean(pc.cast(pc.match_substring_regex(texts, NUMBER), pa.int8())).as_py() or 0.0


def _read_binary(files: list[Source]) -> pa.Table:
    tables = [(file.name, read_binary(file)) for file in files]
    _check_same([(name, table.column_names) for name, table in tables])
    return _promoted(tables)


def _promoted(tables: list[tuple[str, pa.Table]]) -> pa.Table:
    """Concatenate tables; integers become floats if one file has floats."""
    (first, frame), *others = tables
    names = frame.column_names
    for name, table in others:
        table = table.select(names)
        coded = [
            _is_coded(one) != _is_coded(two)
            for one, two in zip(frame.columns, table.columns, strict=True)
        ]
        if any(coded):  # categories in one file and text in another: use text
            frame, table = _decoded(frame, coded), _decoded(table, coded)
        try:
            frame = pa.concat_tables([frame, table], promote_options="permissive")
        except pa.ArrowException:
            for column in names:
                one, other = frame.schema.field(column).type, table.schema.field(column).type
                try:
                    pa.unify_schemas(
                        [pa.schema([(column, one)]), pa.schema([(column, other)])],
                        promote_options="permissive",
                    )
                except pa.ArrowException:
                    raise ValueError(
                        f"{name}, column {column!r}: expected {one} as in {first}, got {other}"
                    ) from None
            raise  # pragma: no cover
    return frame


def _is_coded(column: pa.ChunkedArray) -> bool:
    return bool(pa.types.is_dictionary(column.type))


def _decoded(table: pa.Table, which: list[bool]) -> pa.Table:
    columns = [
        column.cast(column.type.value_type) if wanted and _is_coded(column) else column
        for column, wanted in zip(table.columns, which, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _check_same(files: list[tuple[str, list[str]]]) -> None:
    """Raise a ValueError for duplicate columns, and if files differ in their columns."""
    (first, names), *others = files
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{first}: expected distinct column names, got {twice!r} twice")
    for name, columns in others:
        if set(columns) != set(names) or len(columns) != len(names):
            lacks = [column for column in names if column not in columns]
            more = [column for column in columns if column not in names]
            what = f"it lacks {lacks[0]!r}" if lacks else f"it has also {(more or columns)[0]!r}"
            raise ValueError(f"{name}: expected the columns of {first}; {what}")


def _wanted(columns: Sequence[str] | None, names: list[str], where: str) -> list[str]:
    known = set(names)
    for name in columns or []:
        if name not in known:
            raise unknown_column(name, names, where)
    return list(names if columns is None else columns)


def _resize(batches: Iterator[Any], rows: int) -> Iterator[pa.Table]:
    """Yield tables of `rows` rows, made of batches of any size."""
    waiting: list[pa.Table] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.concat_tables(waiting)
            yield table.slice(0, rows)
            waiting, count = [table.slice(rows)], count - rows
    if count:
        yield pa.concat_tables(waiting)
