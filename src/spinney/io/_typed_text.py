"""Delimited text as typed columns, block by block.

Each block gets the form of its own values. Most columns have one to the end; where blocks differ,
and their values do not tell the texts any more (1.50 has become 1.5), the column is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spinney.io._delimited import DelimitedFile
from spinney.io._form import Form, Misfit, as_type, join, settle, trim

__all__ = ["read_typed", "settle_types", "typed_batches"]


def read_typed(
    files: list[DelimitedFile],
) -> tuple[dict[str, Form], dict[str, pa.ChunkedArray], list[int]]:
    """Read files of the same columns, with the types that fit all rows.

    Returns
    -------
    forms : dict of str to Form
    columns : dict of str to ChunkedArray
    starts : list of int
        The row with which each file starts, and the number of rows.
    """
    names = files[0].dialect.columns
    comma = all(file.comma for file in files)
    forms = dict.fromkeys(names, Form.EMPTY)
    blocks: dict[str, list[Any]] = {name: [] for name in names}
    starts = [0]
    for file in files:
        starts.append(starts[-1])
        for batch in file.batches(names):
            starts[-1] += batch.num_rows
            for name, texts in zip(names, batch.columns, strict=True):
                column = pa.chunked_array([texts])
                form, values = Form.TEXT, None
                if forms[name] is not Form.TEXT:
                    form, values = settle(column, comma=comma)
                    forms[name] = join(forms[name], form)
                if form is Form.TEXT:
                    values = as_type(column, pa.string())
                blocks[name].append(values)
    columns: dict[str, Any] = {}
    again: list[str] = []
    for name in names:
        values = blocks.pop(name)
        if len(values) == 1:  # as it is; a file of many columns has few rows
            columns[name] = values[0]
            continue
        parts = [_recast(part, forms[name]) for part in values]
        if any(part is None for part in parts):
            again.append(name)
        chunks = [chunk for part in parts if part is not None for chunk in part.chunks]
        columns[name] = pa.chunked_array(chunks, forms[name].type)
    if again:
        types = {name: forms[name].type for name in again}
        tables = list(typed_batches(files, again, types))
        for name in again:
            columns[name] = pa.concat_tables(tables)[name]
    return forms, columns, starts


def _recast(values: pa.ChunkedArray, form: Form) -> pa.ChunkedArray | None:
    """Turn a block's values into those of the whole column's form, or None if they are lost."""
    if values.type == form.type:
        return values
    if pa.types.is_null(values.type):
        return values.cast(form.type)
    if pa.types.is_string(values.type):  # digits that were kept as they are
        return as_type(values, form.type, comma=form is Form.COMMA)
    if pa.types.is_floating(form.type):
        return values.cast(form.type, safe=False)  # rounded as reading the text would
    return values.cast(form.type) if form is Form.MOMENT else None


def settle_types(files: list[DelimitedFile], names: list[str]) -> dict[str, pa.DataType]:
    """Find the types of columns from all rows, batch by batch."""
    forms = dict.fromkeys(names, Form.EMPTY)
    comma = all(file.comma for file in files)
    for file in files:
        for batch in file.batches(names):
            for name in names:
                if forms[name] is not Form.TEXT:
                    column = pa.chunked_array([batch.column(name)])
                    forms[name] = join(forms[name], settle(column, comma=comma)[0])
    return {name: form.type for name, form in forms.items()}


def typed_batches(
    files: list[DelimitedFile], names: list[str], types: dict[str, pa.DataType]
) -> Iterator[pa.Table]:
    as_is = any(pa.types.is_large_string(types[name]) for name in names)
    for file in files:
        start = 0
        for batch in file.batches(names, as_is=as_is):
            out = []
            for name in names:
                texts = batch.column(name)
                if as_is and not pa.types.is_large_string(types[name]):
                    texts = trim(texts)
                try:
                    out.append(_as_typed(texts, types[name], file.comma))
                except Misfit as misfit:
                    raise ValueError(
                        f"{file.name}, line {file.line_of(start + misfit.row)}, column {name!r}: "
                        f"expected {_words(types[name])}, got {misfit.text!r}"
                    ) from None
            yield pa.table(out, names=names)
            start += batch.num_rows


def _as_typed(texts: Any, type_: pa.DataType, comma: bool) -> Any:
    if pa.types.is_large_string(type_):
        return texts.cast(type_)
    if pa.types.is_null(type_):
        return pa.nulls(len(texts))
    return as_type(texts, type_, comma=comma)


def _words(type_: pa.DataType) -> str:
    """Say what values of a type are."""
    return {
        "bool": "true or false",
        "int64": "an integer",
        "double": "a number",
        "date32[day]": "a date (2024-12-31)",
        "time64[us]": "a time (23:59)",
    }.get(str(type_), "a date (2024-12-31 23:59)" if pa.types.is_timestamp(type_) else str(type_))
