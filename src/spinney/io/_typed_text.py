"""Delimited text as typed columns, block by block.

Each block is parsed by the form of its own values. Most columns have the same form in all blocks.
If not, and the parsed values have lost the texts (1.50 has become 1.5), the column is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from spinney.io._delimited import DelimitedFile
from spinney.io._text_form import (
    Misfit,
    TextForm,
    as_type,
    date_order,
    dated,
    infer_form,
    join,
    trim,
)

__all__ = ["read_typed", "settle_types", "typed_batches"]


def read_typed(
    files: list[DelimitedFile],
) -> tuple[dict[str, TextForm], dict[str, pa.ChunkedArray], list[int]]:
    """Read files of the same columns, with the types that fit all rows.

    Returns
    -------
    forms : dict of str to TextForm
    columns : dict of str to ChunkedArray
    starts : list of int
        The row with which each file starts, and the number of rows.
    """
    names = files[0].dialect.columns
    comma = all(file.comma for file in files)
    forms = dict.fromkeys(names, TextForm.EMPTY)
    blocks: dict[str, list[Any]] = {name: [] for name in names}
    starts = [0]
    for file in files:
        starts.append(starts[-1])
        for batch in file.batches(names):
            starts[-1] += batch.num_rows
            for name, texts in zip(names, batch.columns, strict=True):
                column = pa.chunked_array([texts])
                form, values = TextForm.TEXT, None
                if forms[name] is not TextForm.TEXT:
                    form, values = infer_form(column, comma=comma)
                    forms[name] = join(forms[name], form)
                if form is TextForm.TEXT:
                    values = as_type(column, pa.string())
                blocks[name].append(values)
    columns: dict[str, Any] = {}
    to_reread: list[str] = []
    for name in names:
        values = blocks.pop(name)
        if len(values) == 1:  # a shortcut: files with very many columns have one block
            columns[name] = values[0]
            continue
        parts = [_recast(part, forms[name]) for part in values]
        if any(part is None for part in parts):
            to_reread.append(name)
        chunks = [chunk for part in parts if part is not None for chunk in part.chunks]
        columns[name] = pa.chunked_array(chunks, forms[name].type)
    if to_reread:
        fields = {name: _field(name, forms[name]) for name in to_reread}
        tables = list(typed_batches(files, to_reread, fields))
        for name in to_reread:
            columns[name] = pa.concat_tables(tables)[name]
    return forms, columns, starts


def _recast(values: pa.ChunkedArray, form: TextForm) -> pa.ChunkedArray | None:
    """Convert a block's values to the column's form, or None if their texts are lost."""
    if values.type == form.type:
        return values
    if pa.types.is_null(values.type):
        return values.cast(form.type)
    if pa.types.is_string(values.type):  # codes and large integers are kept as text
        return as_type(values, form.type, comma=form is TextForm.COMMA, order=form.order)
    if pa.types.is_floating(form.type):
        return values.cast(form.type, safe=False)  # rounds like parsing the text
    return values.cast(form.type) if form in (TextForm.MOMENT, TextForm.YEAR_FIRST) else None


def _field(name: str, form: TextForm) -> pa.Field:
    return dated(name, form.type, form.order)


def settle_types(files: list[DelimitedFile], names: list[str]) -> dict[str, pa.Field]:
    """Infer the types of columns from all rows, batch by batch; return fields by name."""
    forms = dict.fromkeys(names, TextForm.EMPTY)
    comma = all(file.comma for file in files)
    for file in files:
        for batch in file.batches(names):
            for name in names:
                if forms[name] is not TextForm.TEXT:
                    column = pa.chunked_array([batch.column(name)])
                    forms[name] = join(forms[name], infer_form(column, comma=comma)[0])
    return {name: _field(name, form) for name, form in forms.items()}


def typed_batches(
    files: list[DelimitedFile], names: list[str], fields: dict[str, pa.Field]
) -> Iterator[pa.Table]:
    """Yield tables of columns, parsed by their fields; large strings stay text."""
    as_is = any(pa.types.is_large_string(fields[name].type) for name in names)
    for file in files:
        start = 0
        for batch in file.batches(names, as_is=as_is):
            out = []
            for name in names:
                texts, field = batch.column(name), fields[name]
                if as_is and not pa.types.is_large_string(field.type):
                    texts = trim(texts)
                try:
                    out.append(_as_typed(texts, field, file.comma))
                except Misfit as misfit:
                    raise ValueError(
                        f"{file.name}, line {file.line_of(start + misfit.row)}, column {name!r}: "
                        f"expected {_words(field)}, got {misfit.text!r}"
                    ) from None
            yield pa.table(out, names=names)
            start += batch.num_rows


def _as_typed(texts: Any, field: pa.Field, comma: bool) -> Any:
    if pa.types.is_large_string(field.type):
        return texts.cast(field.type)
    if pa.types.is_null(field.type):
        return pa.nulls(len(texts))
    return as_type(texts, field.type, comma=comma, order=date_order(field))


def _words(field: pa.Field) -> str:
    """Return the description of a field's values for messages."""
    order, type_ = date_order(field), field.type
    if order:
        example = {"day": "31/12/2024", "month": "12/31/2024", "year": "2024/12/31"}[order]
        return f"a date ({example}, {order} first)"
    return {
        "bool": "true or false",
        "int64": "an integer",
        "double": "a number",
        "date32[day]": "a date (2024-12-31)",
        "time64[us]": "a time (23:59)",
    }.get(str(type_), "a date (2024-12-31 23:59)" if pa.types.is_timestamp(type_) else str(type_))
