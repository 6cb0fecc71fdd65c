"""A stand-in for reading tables, to be replaced by the real readers with the same interface."""

from __future__ import annotations

import glob
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["ColumnKind", "ColumnKinds", "TableFile", "decide_kinds", "read_pieces", "read_table"]

_MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]
_KINDS = ("number", "category", "date", "text", "identifier", "constant", "dropped")


@dataclass(frozen=True)
class TableFile:
    name: str
    columns: list[str]
    frame: Any
    notes: list[str]


@dataclass(frozen=True)
class ColumnKind:
    name: str
    kind: str
    reason: str
    flags: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class ColumnKinds:
    columns: list[ColumnKind]

    @property
    def used(self) -> list[str]:
        return [c.name for c in self.columns if c.kind in ("number", "category", "date")]

    def prepare(self, frame: Any) -> Any:
        import pyarrow as pa

        arrays = []
        by_name = {c.name: c.kind for c in self.columns}
        for name in self.used:
            if name not in frame.column_names:
                raise ValueError(f"column {name!r} is missing")
            column = frame[name]
            try:
                if by_name[name] == "category":
                    arrays.append(column.cast(pa.string()))
                elif pa.types.is_integer(column.type):
                    arrays.append(column)
                else:
                    arrays.append(column.cast(pa.float64()))
            except pa.ArrowInvalid as error:
                raise ValueError(f"column {name!r}: expected {by_name[name]}: {error}") from error
        return pa.table(dict(zip(self.used, arrays, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        return {"columns": [vars(column) for column in self.columns]}

    @classmethod
    def from_dict(cls, d: dict[str, Any]) -> ColumnKinds:
        return cls([ColumnKind(**column) for column in d["columns"]])


def read_table(
    source: Any, *, delimiter: str | None = None, encoding: str | None = None
) -> TableFile:
    import pyarrow as pa

    paths = _paths(source)
    frame = pa.concat_tables(
        list(read_pieces(source, delimiter=delimiter)), promote_options="permissive"
    )
    if not frame.num_rows:
        raise ValueError(f"{paths[0]} has no rows")
    return TableFile(Path(str(paths[0])).name, frame.column_names, frame, [])


def read_pieces(
    source: Any,
    *,
    rows: int = 65_536,
    columns: list[str] | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    for path in _paths(source):
        if str(path) != "-" and not Path(path).exists():
            raise FileNotFoundError(f"no such file: {path}")
        if str(path).endswith(".parquet"):
            batches: Any = pyarrow.parquet.ParquetFile(path).iter_batches(rows, columns=columns)
        else:
            options = pyarrow.csv.ConvertOptions(
                null_values=_MISSING, strings_can_be_null=True, include_columns=columns
            )
            try:
                batches = pyarrow.csv.open_csv(
                    sys.stdin.buffer if str(path) == "-" else path,
                    convert_options=options,
                    parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter or ","),
                )
            except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
                raise ValueError(f"{path}: {error}") from error
        for batch in batches:
            table = pa.Table.from_batches([batch])
            for start in range(0, table.num_rows, rows):
                yield table.slice(start, rows)


def _paths(source: Any) -> list[Any]:
    if isinstance(source, list | tuple):
        return [path for one in source for path in _paths(one)]
    found = sorted(glob.glob(str(source)))
    return found or [source]


def decide_kinds(
    frame: Any, target: str | None, *, overrule: dict[str, str] | None = None, y: Any = None
) -> ColumnKinds:
    import pyarrow as pa

    kinds = []
    for name in frame.column_names:
        if name == target:
            continue
        kind = (overrule or {}).get(name)
        if kind is not None and kind not in _KINDS:
            raise ValueError(f"kind of {name!r} must be one of {', '.join(_KINDS)}, got {kind!r}")
        reason = "as asked"
        if kind is None:
            is_text = pa.types.is_string(frame[name].type)
            kind, reason = ("category", "text") if is_text else ("number", "numbers")
        kinds.append(ColumnKind(name, kind, reason))
    return ColumnKinds(kinds)
