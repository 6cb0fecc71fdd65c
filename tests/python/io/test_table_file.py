"""Reading tables: formats, layout and types that are detected, and errors."""

from __future__ import annotations

import bz2
import csv
import datetime
import gzip
import io
import json
import lzma
import math
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from spinney.io import ColumnKinds, decide_kinds, read_pieces, read_table
from spinney.io._delimited import open_delimited
from spinney.io._dialect import DELIMITERS, MISSING
from spinney.io._source import find_sources
from spinney.io._text_form import TextForm, infer_form, join

SHOP = pa.table(
    {
        "age": pa.array([31, 45, None, 27], pa.int64()),
        "height": [1.75, 1.68, 1.8, None],
        "city": ["Bath", "York", "Ely", "Bath"],
    }
)


def write(folder: Path, content: bytes | str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def read_chunks(source: Any, **options: Any) -> list[pa.Table]:
    return list(read_pieces(source, **options))


def columns_of(path: Path, **options: Any) -> dict[str, list[Any]]:
    """Read a file whole and in chunks; check that both agree."""
    table = read_table(path, **options).frame
    joined = pa.concat_tables(read_chunks(path, rows=2, **options))
    assert joined.schema == table.schema
    assert joined.to_pydict() == table.to_pydict()
    return table.to_pydict()


# --- formats ------------------------------------------------------------------------------------


def as_csv(table: pa.Table) -> bytes:
    rows = zip(*table.to_pydict().values(), strict=True)
    lines = [",".join("" if v is None else str(v) for v in row) for row in rows]
    return ("\n".join([",".join(table.column_names), *lines]) + "\n").encode()


def zstd(data: bytes) -> bytes:
    return pa.Codec("zstd").compress(data, asbytes=True)


@pytest.mark.parametrize("compress", [bytes, gzip.compress, bz2.compress, lzma.compress, zstd])
@pytest.mark.parametrize("name", ["t.csv", "t", "t.csv.gz"])
def test_compressed_text_is_read_under_any_name(compress: Any, name: str, tmp_path: Path) -> None:
    path = write(tmp_path, compress(as_csv(SHOP)), name)
    assert columns_of(path) == SHOP.to_pydict()
    assert read_table(path).name == name
    assert read_table(path).columns == SHOP.column_names


@pytest.mark.filterwarnings("ignore:Feather V1")
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "feather", "feather 1"])
@pytest.mark.parametrize("suffix", ["", ".csv"])
def test_binary_formats_are_detected_by_their_first_bytes(
    kind: str, suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"t{suffix}"
    if kind == "parquet":
        pq.write_table(SHOP, path)
    elif kind in ("arrow", "stream"):
        opener = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with opener(path, SHOP.schema) as writer:
            writer.write_table(SHOP)
    else:
        feather.write_feather(SHOP, path, version=1 if kind == "feather 1" else 2)
    assert columns_of(path) == SHOP.to_pydict()
    assert [chunk.num_rows for chunk in read_chunks(path, rows=3)] == [3, 1]
    assert read_chunks(path, columns=["city", "age"])[0].equals(SHOP.select(["city", "age"]))


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_standard_input_is_read(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    if kind == "csv":
        path.write_bytes(as_csv(SHOP))
    elif kind == "parquet":
        pq.write_table(SHOP, path)
    else:
        feather.write_feather(SHOP, path)
    code = (
        "import os; from spinney.io import read_table; t = read_table('-');"
        "print(t.name, t.frame['city'].to_pylist(), t.frame.num_rows)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], input=path.read_bytes(), capture_output=True, check=True
    )
    expected = "standard input ['Bath', 'York', 'Ely', 'Bath'] 4"
    assert result.stdout.decode().strip() == expected


def test_chunks_of_standard_input_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(as_csv(SHOP))))
    assert pa.concat_tables(read_pieces("-", rows=1)).to_pydict() == SHOP.to_pydict()
    assert list(tmp_path.iterdir()) == []


# --- several files ------------------------------------------------------------------------------


def test_pattern_sorts_files_and_matches_columns_by_name(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n3,z\n", "part-2.csv")
    write(tmp_path, "b,a\nx,1\ny,2.5\n", "part-1.csv")
    table = read_table(tmp_path / "part-*.csv")
    assert table.frame.to_pydict() == {"b": ["x", "y", "z"], "a": [1.0, 2.5, 3.0]}
    assert table.name == "part-*.csv"
    assert columns_of(tmp_path / "part-*.csv") == table.frame.to_pydict()
    paths = [tmp_path / "part-2.csv", tmp_path / "part-1.csv"]
    assert read_table(paths).frame["a"].to_pylist() == [3.0, 1.0, 2.5]
    assert read_table(paths).name == "part-2.csv and 1 more"


def test_types_of_several_text_files_use_all_rows(tmp_path: Path) -> None:
    write(tmp_path, "a\n1\n2\n", "1.csv")
    write(tmp_path, "a\n007\n", "2.csv")
    assert columns_of(tmp_path / "?.csv") == {"a": ["1", "2", "007"]}


def test_parquet_integers_become_floats_if_one_file_has_floats(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": ["x", "y"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": ["z"], "a": [0.5]}), tmp_path / "2.parquet")
    assert columns_of(tmp_path / "*.parquet") == {"a": [1.0, 2.0, 0.5], "b": ["x", "y", "z"]}
    pq.write_table(pa.table({"b": [1.5], "a": [0.5]}), tmp_path / "3.parquet")
    with pytest.raises(ValueError, match=r"3\.parquet, column 'b': expected string as in .*1\.par"):
        read_table(tmp_path / "*.parquet")


def test_parquet_categories_of_several_files_are_joined(tmp_path: Path) -> None:
    coded = pa.array(["x", "y"]).dictionary_encode()
    small = coded.cast(pa.dictionary(pa.int8(), pa.string()))
    pq.write_table(pa.table({"a": small}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": coded}), tmp_path / "2.parquet")
    assert columns_of(tmp_path / "*.parquet") == {"a": ["x", "y", "x", "y"]}
    assert pa.types.is_dictionary(read_table(tmp_path / "*.parquet").frame["a"].type)
    pq.write_table(pa.table({"a": ["z"]}), tmp_path / "3.parquet")
    assert columns_of(tmp_path / "*.parquet") == {"a": ["x", "y", "x", "y", "z"]}


def test_files_with_different_columns_or_formats_raise(tmp_path: Path) -> None:
    write(tmp_path, "a,b\n1,2\n", "1.csv")
    write(tmp_path, "a,c\n1,2\n", "2.csv")
    for read in (read_table, read_chunks):
        with pytest.raises(ValueError, match=r"2\.csv: expected the columns of .*1\.csv.*'b'"):
            read(tmp_path / "?.csv")
    pq.write_table(SHOP, tmp_path / "3.csv")
    with pytest.raises(ValueError, match=r"one format, got delimited \(.*1.csv\) and parquet"):
        read_table([tmp_path / "1.csv", tmp_path / "3.csv"])


# --- layout of text -----------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", DELIMITERS)
def test_delimiter_is_detected(delimiter: str, tmp_path: Path) -> None:
    text = as_csv(SHOP).decode().replace(",", delimiter)
    table = read_table(write(tmp_path, text))
    assert table.frame.to_pydict() == SHOP.to_pydict()
    expected = [] if delimiter == "," else [f"delimiter {delimiter!r} ({DELIMITERS[delimiter]})"]
    assert table.notes == expected


def test_quoted_delimiters_do_not_count(tmp_path: Path) -> None:
    text = 'name;n\n"a, b, c";1\n"d, e; f";2\n"g, h\n, i, j, k";3\n'
    assert columns_of(write(tmp_path, text)) == {
        "name": ["a, b, c", "d, e; f", "g, h\n, i, j, k"],
        "n": [1, 2, 3],
    }


def test_one_column_is_read(tmp_path: Path) -> None:
    assert columns_of(write(tmp_path, "a\n1\n2\n")) == {"a": [1, 2]}
    names = "name\nSmith, John\nDoe\nRoe, Jane; Dr\n"
    assert columns_of(write(tmp_path, names)) == {"name": ["Smith, John", "Doe", "Roe, Jane; Dr"]}


def test_tsv_suffix_prefers_tabs(tmp_path: Path) -> None:
    text = "a, b, c\td\n1\t2\n"
    assert read_table(write(tmp_path, text, "t.tsv")).columns == ["a, b, c", "d"]
    assert read_table(write(tmp_path, "a,b\n1,2\n", "t.tsv")).columns == ["a", "b"]


def test_header_option(tmp_path: Path) -> None:
    path = tmp_path / "iris"
    path.write_text("5.1,3.5,setosa\n4.9,3.0,other\n")
    table = read_table(path)
    assert table.columns == ["5.1", "3.5", "setosa"]
    assert "has numbers such as 5.1; if it is a row, set header=False" in table.notes[0]
    table = read_table(path, header=False)
    assert table.columns == ["c1", "c2", "c3"]
    assert table.frame.num_rows == 2
    assert next(iter(read_pieces(path, header=False))).equals(table.frame)
    path.write_text("1,2\n3,4\n")
    assert read_table(path, header=True).columns == ["1", "2"]


def test_delimiter_option(tmp_path: Path) -> None:
    path = write(tmp_path, "a:b\n1:2\n")
    assert read_table(path, delimiter=":").frame.to_pydict() == {"a": [1], "b": [2]}
    tabs = tmp_path / "tabs"
    tabs.write_text("a,x\tb\n1\t2\n")
    for name in ("\t", r"\t", "tab"):
        assert read_table(tabs, delimiter=name).columns == ["a,x", "b"]
    with pytest.raises(ValueError, match=r"one ASCII character, or one of comma, .*got '::'"):
        read_table(path, delimiter="::")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_and_empty_lines_are_read(end: str, tmp_path: Path) -> None:
    for start in ([], [""], ["", ""]):
        text = end.join([*start, "a,b", "1,2", "", "3,4"])
        assert columns_of(write(tmp_path, text)) == {"a": [1, 3], "b": [2, 4]}
    quoted = end.join(["", f'"a{end}a",b', "1,2", "3,4"])
    assert columns_of(write(tmp_path, quoted)) == {f"a{end}a": [1, 3], "b": [2, 4]}


def test_missing_header_is_detected(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "1,2.5\n3,4\n"))
    assert table.frame.to_pydict() == {"c1": [1, 3], "c2": [2.5, 4.0]}
    assert table.notes == ["no header line: columns are named c1 to c2"]
    # Data frames without column names number their columns.
    assert read_table(write(tmp_path, "0,1,2\n5,6,7\n")).columns == ["0", "1", "2"]
    assert read_table(write(tmp_path, ",0,1\n0,6,7\n")).columns == ["c1", "0", "1"]


def test_duplicate_names_become_unique(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, "a,a, ,a_2,a,c3\n1,2,3,4,5,6\n"))
    assert table.columns == ["a", "a_3", "c3_1", "a_2", "a_4", "c3"]
    assert table.notes == ["columns without a unique name are called a_3, c3_1, a_4"]


# --- types --------------------------------------------------------------------------------------


APRIL_3 = datetime.datetime(2024, 4, 3)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-2", "+3"], [1, -2, 3]),
        (["1", "2.5", "1e3", ".5", "+1."], [1.0, 2.5, 1000.0, 0.5, 1.0]),
        (["true", "False", "TRUE"], [True, False, True]),
        (["2024-02-29", "1969-12-31"], [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]),
        (
            ["2024-02-29", "2024-01-01T10:30"],
            [datetime.datetime(2024, 2, 29), datetime.datetime(2024, 1, 1, 10, 30)],
        ),
        (
            ["2024-01-01 10:30:00+01:00", "2024-01-01 09:30:00Z"],
            [datetime.datetime(2024, 1, 1, 9, 30, tzinfo=datetime.UTC)] * 2,
        ),
        (["10:30", "23:59:59.5"], [datetime.time(10, 30), datetime.time(23, 59, 59, 500000)]),
        (["02134", "10001"], ["02134", "10001"]),  # codes keep their leading zero
        (["0x10", "12"], ["0x10", "12"]),
        (["0", "-0", "10"], [0, 0, 10]),
        (["2024-02-30", "2024-01-01"], ["2024-02-30", "2024-01-01"]),
        (
            ["31/12/2024", "1/2/2024 9:05"],
            [datetime.datetime(2024, 12, 31), datetime.datetime(2024, 2, 1, 9, 5)],
        ),
        (
            ["12/31/2024", "01/02/2024"],
            [datetime.datetime(2024, 12, 31), datetime.datetime(2024, 1, 2)],
        ),
        (["3.4.2024", "01.02.2024 10:30"], [APRIL_3, datetime.datetime(2024, 2, 1, 10, 30)]),
        (["2024/04/03", "2024-4-3 00:00"], [APRIL_3, APRIL_3]),
        (["04/03/2024", "1/2/2024"], ["04/03/2024", "1/2/2024"]),  # day or month first?
        (["31/12/2024", "12/31/2024"], ["31/12/2024", "12/31/2024"]),
        (["30.02.2024", "01.01.2024"], ["30.02.2024", "01.01.2024"]),
        (["01.13.2024", "01.01.2024"], ["01.13.2024", "01.01.2024"]),
        (["12-34-5678", "1.2.3"], ["12-34-5678", "1.2.3"]),
        (["9223372036854775807"], [2**63 - 1]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["1", "2", "abc"], ["1", "2", "abc"]),
        ([" 1", "2 "], [1, 2]),
        ([" Bath", "Bath ", " ?"], ["Bath", "Bath", None]),
        (["true", "1"], ["true", "1"]),
        (["1_000"], ["1_000"]),
    ],
)
def test_types_are_detected(texts: list[str], expected: list[Any], tmp_path: Path) -> None:
    path = write(tmp_path, "\n".join(["v,w", *(f"{text},x" for text in texts)]))
    values = columns_of(path)["v"]
    assert values == expected
    assert list(map(type, values)) == list(map(type, expected))


def test_order_of_dates_is_noted_and_stored(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "a,b,c,d\n31/12/2024,12/31/2024,1/2/2024,2024-01-31\n1/2/2024,1/2/2024,3/4/2024,\n",
    )
    table = read_table(path)
    assert table.notes == [
        "dates with the day before the month in 'a'",
        "dates with the month before the day in 'b'",
        "ambiguous order of day and month, kept as text, in 'c'",
    ]
    kinds = decide_kinds(table.frame, overrule={"c": "category"})
    kinds = ColumnKinds.from_dict(json.loads(json.dumps(kinds.to_dict())))
    assert [column.order for column in kinds.columns] == ["day", "month", "", ""]
    with pytest.raises(ValueError, match="day, month or year first, got 'week'"):
        ColumnKinds.from_dict(
            {"target": None, "columns": [asdict(kinds.columns[0]) | {"order": "week"}]}
        )
    days = [kinds.prepare(table.frame)[name].to_pylist() for name in "ab"]
    assert days == [[20088, 19754], [20088, 19724]]  # 1 February, 2 January
    # Ambiguous dates of other files and tables are read in the stored order.
    path = write(
        tmp_path, "a,b,c,d\n3/4/2024,3/4/2024,x,2024-01-01\n2024-04-03,4.3.2024,x,\n", "new.csv"
    )
    (chunk,) = read_pieces(path, schema=kinds.schema)
    assert [value.month for value in chunk["a"].to_pylist()] == [4, 4]
    assert [value.month for value in chunk["b"].to_pylist()] == [3, 4]
    texts = pa.table({name: ["3/4/2024"] for name in "abc"} | {"d": ["2024-01-01"]})
    assert kinds.prepare(texts)["a"].to_pylist() == [19816]
    path = write(tmp_path, "a,b,c,d\n13/4/2024,13/4/2024,x,2024-01-01\n", "bad.csv")
    with pytest.raises(
        ValueError, match=r"line 2, column 'b': expected a date \(12/31/2024, month"
    ):
        list(read_pieces(path, schema=kinds.schema))


def test_order_of_dates_uses_all_rows(tmp_path: Path) -> None:
    """The decisive date comes after several blocks, never, or is contradictory."""
    count = 200_000
    lines = "".join(f"1/{row % 12 + 1}/2024,2/3/2024,4/5/2024,2024-01-01\n" for row in range(count))
    last = "13/1/2024,1/13/2024,1/1/2024,2024/1/2\n"
    path = write(tmp_path, f"a,b,c,d\n{lines}{last}")
    frame = read_table(path).frame
    assert [str(type_) for type_ in frame.schema.types] == [
        *["timestamp[us]"] * 2,
        "string",
        "timestamp[us]",
    ]
    first_and_last = [[frame[name][row].as_py() for row in (0, count)] for name in "abd"]
    assert [[(value.month, value.day) for value in dates] for dates in first_and_last] == [
        [(1, 1), (1, 13)],
        [(2, 3), (1, 13)],
        [(1, 1), (1, 2)],
    ]
    assert {batch.schema for batch in read_chunks(path)} == {frame.schema}


@pytest.mark.parametrize("marker", MISSING)
def test_missing_markers_are_read_as_missing(marker: str, tmp_path: Path) -> None:
    path = write(tmp_path, f'a,b,c\n1,x,{marker}\n{marker},"{marker}",{marker}\n')
    assert columns_of(path) == {"a": [1, None], "b": ["x", None], "c": [None, None]}


def test_types_use_all_rows(tmp_path: Path) -> None:
    """The deviating value comes after several blocks."""
    count = 600_000
    lines = "".join(f"{row},{row}\n" for row in range(count))
    path = write(tmp_path, f"a,b\n{lines}1.5,x\n")
    table = read_table(path)
    assert table.frame.schema.types == [pa.float64(), pa.string()]
    assert table.frame["a"].to_pylist() == [*map(float, range(count)), 1.5]
    assert table.frame["b"].to_pylist() == [*map(str, range(count)), "x"]
    note = f"column 'b': 1 value is not numeric, first 'x' at line {count + 2}"
    assert table.notes == [note]
    batches = read_chunks(path, columns=["a"])
    assert {batch.schema.types[0] for batch in batches} == {pa.float64()}
    assert {batch.num_rows for batch in batches[:-1]} == {65_536}


def test_decimal_comma_is_detected(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b;c\n1,5;1;1,5\n-2;2;x\n,25;3;2\n")
    assert columns_of(path) == {"a": [1.5, -2.0, 0.25], "b": [1, 2, 3], "c": ["1,5", "x", "2"]}
    assert read_table(path).notes[-1] == "decimal comma in 'a'"
    # A column cannot have both a decimal comma and a decimal point.
    assert columns_of(write(tmp_path, "a;b\n1,5;1\n2.5;2\n"))["a"] == ["1,5", "2.5"]


def test_stray_values_are_noted_with_their_line(tmp_path: Path) -> None:
    numbers = "".join(f'{row},"two\nlines"\n' for row in range(20))
    path = write(tmp_path, f"x,y\n{numbers}\nabc,z\ndef,z\n")
    note = "column 'x': 2 values are not numeric, first 'abc' at line 43"
    assert read_table(path).notes == [note]


# --- encodings ----------------------------------------------------------------------------------

TOWNS = "größe,ort\n1,Köln\n2,München\n3,Saarbrücken\n"


@pytest.mark.parametrize(
    ("encoding", "note"),
    [
        ("utf-8", []),
        ("utf-8-sig", []),
        ("utf-16", ["encoding UTF-16"]),
        ("utf-32", ["encoding UTF-32"]),
        ("cp1252", ["encoding Windows-1252, as it is not valid UTF-8"]),
    ],
)
def test_encodings_are_detected(encoding: str, note: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, TOWNS.encode(encoding))
    assert columns_of(path) == {"größe": [1, 2, 3], "ort": ["Köln", "München", "Saarbrücken"]}
    assert read_table(path).notes == note


def test_encoding_option(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\nжук,1\n".encode("cp1251"))
    assert columns_of(path, encoding="cp1251") == {"a": ["жук"], "b": [1]}
    with pytest.raises(ValueError, match="broken UTF-8"):
        read_table(path)
    with pytest.raises(ValueError, match=r"encoding: expected one such as 'utf-8'.*got 'nonsense'"):
        read_table(path, encoding="nonsense")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,x\n2,\xff\n", r"line 3: broken UTF-8 \(byte 0xff\); name its encoding"),
        (b"a,b\n1,\xc3(\n", r"line 2: broken UTF-8 \(byte 0xc3\)"),
        ("a,b\n1,é\n2,é".encode()[:-1], r"line 3: broken UTF-8 .*is the file cut off\?"),
        # Valid umlauts elsewhere show that the file is UTF-8, but broken.
        ("a,b\n1,München\n".encode() + b"2,M\xfcnchen\n", r"line 3: broken UTF-8 \(byte 0xfc\)"),
        (b"a,b\n1,x\n2,\0\n", r"expected text, got a zero byte in line 3"),
        ("a,b\n1,x\n".encode("utf-16-le"), r"UTF-16 without a mark: .* encoding='utf-16-le'"),
        ("a,b\n1,x\n".encode("utf-16-be"), r"UTF-16 without a mark: .* encoding='utf-16-be'"),
    ],
)
def test_broken_text_raises(content: bytes, message: str, tmp_path: Path) -> None:
    for read in (read_table, read_chunks):
        with pytest.raises(ValueError, match=message):
            read(write(tmp_path, content))


def test_broken_text_late_in_a_file_raises(tmp_path: Path) -> None:
    content = b"a,b\n" + "1,é\n".encode() * 500_000 + b"2,\xff\n"
    with pytest.raises(ValueError, match="line 500002: broken UTF-8"):
        read_table(write(tmp_path, content))


# --- bad files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n4,5\n", "line 3: expected 2 fields as in the header, got 1$"),
        ("a,b\n1,2\n3,4,5\n", "line 3: expected 2 fields as in the header, got 3$"),
        ("a,b\n1,2\n3\n", r"line 3: .*got 1; is the file cut off\?"),
        ('a,b\n\n"x\ny",2\n\n"z\n",3,4\n5,6\n', "line 6: expected 2 fields .* got 3$"),
        ("1,2\n3\n4,5\n", "line 2: expected 2 fields as in the first line, got 1$"),
        ('a,b\n1,2\n3,"x\n4,5\n', r"quote that is opened after line 2 is never closed.*cut off\?"),
        ("a\n1,2\n3,4\n", "line 2: expected 1 field as in the header, got 2$"),
        ("a,b\n", "has no rows"),
        ("\n\n", "has no rows"),
        ("", "is empty"),
    ],
)
def test_invalid_rows_raise_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(path)
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stray_quote_is_text(tmp_path: Path) -> None:
    assert columns_of(write(tmp_path, 'a,b\n5" pipe,1\n')) == {"a": ['5" pipe'], "b": [1]}


def test_truncated_files_raise(tmp_path: Path) -> None:
    whole_path = tmp_path / "whole"
    for name, write_file in [
        ("t.parquet", pq.write_table),
        ("t.feather", feather.write_feather),
        ("t.csv.gz", lambda table, path: path.write_bytes(gzip.compress(as_csv(table)))),
    ]:
        write_file(SHOP, whole_path)
        data = whole_path.read_bytes()
        path = write(tmp_path, data[: len(data) * 2 // 3], name)
        for read in (read_table, read_chunks):
            with pytest.raises(ValueError, match=rf"{name}.*cut off\?"):
                read(path)


def test_paths_that_are_not_tables_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no such file: .*none\.csv"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(FileNotFoundError, match=r"no file matches .*none"):
        read_table(tmp_path / "none*.csv")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(ValueError, match="zip archive or an Excel workbook"):
        read_table(write(tmp_path, b"PK\x03\x04 and more", "t.xlsx"))
    with pytest.raises(ValueError, match="is not a Parquet file: it starts with b'text'"):
        read_table(write(tmp_path, "text", "t.parquet"))
    with pytest.raises(ValueError, match="at least one file"):
        read_table([])
    pq.write_table(SHOP.slice(0, 0), tmp_path / "no.parquet")
    with pytest.raises(ValueError, match=r"has no rows"):
        read_table(tmp_path / "no.parquet")


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(position=st.floats(0, 1, exclude_max=True), byte=st.integers(0, 255))
def test_damaged_binary_files_never_crash(
    kind: str, position: float, byte: int, tmp_path: Path
) -> None:
    path = tmp_path / f"t.{kind}"
    if kind == "arrow":
        feather.write_feather(SHOP, path, compression="uncompressed")
    else:
        pq.write_table(SHOP, path)
    data = bytearray(path.read_bytes())
    data[int(position * len(data))] = byte
    path.write_bytes(data)
    with suppress(ValueError, OSError):
        assert read_table(path).name == path.name


# --- chunks -------------------------------------------------------------------------------------


def test_chunks_with_a_schema(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b,c\n1,"two\nlines",007\n\n2.5,x,8\n')
    schema = pa.schema({"a": pa.float64(), "c": pa.string()})
    (chunk,) = read_chunks(path, columns=["c", "a"], schema=schema)
    assert chunk.to_pydict() == {"c": ["007", "8"], "a": [1.0, 2.5]}
    with pytest.raises(ValueError, match=r"t\.csv, line 5, column 'b': expected a number, got 'x'"):
        read_chunks(
            write(tmp_path, 'a,b\n"x\ny",1\n\n2,x\n'), schema=pa.schema({"b": pa.float64()})
        )
    with pytest.raises(ValueError, match=r"no column 'aa' in .*t\.csv; did you mean 'a'\?"):
        read_chunks(path, columns=["aa"])
    with pytest.raises(ValueError, match="rows: expected at least 1, got 0"):
        read_chunks(path, rows=0)


# --- round trips --------------------------------------------------------------------------------

_INTEGERS = st.integers(-(2**63), 2**63 - 1).map(str)
_REALS = st.floats(allow_nan=False, allow_infinity=False).map(repr)
_DATES = st.dates().map(str)
_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)


def _reference_types(texts: list[str]) -> list[Any]:
    """Reference implementation of `infer_form` in plain Python."""
    stripped = [text.strip(" \t\n\v\f\r\xa0") for text in texts]
    values = [None if text in MISSING else text for text in stripped]
    present = [value for value in values if value is not None]
    are_integers = all(re.fullmatch(r"[-+]?[0-9]+", value) for value in present)
    if are_integers and any(re.match(r"[-+]?0[0-9]", value) for value in present):
        return values  # codes
    for read in (int, float, datetime.date.fromisoformat):
        try:
            return [None if value is None else read(value) for value in values]  # type: ignore
        except ValueError:
            assert present
    return values


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    columns=st.integers(1, 8).flatmap(
        lambda n: st.lists(
            st.one_of(
                *[
                    st.lists(values | st.just("") | st.just("NA"), min_size=n, max_size=n)
                    for values in (_INTEGERS, _REALS, _DATES, _TEXTS)
                ]
            ),
            min_size=2,
            max_size=4,
        )
    ),
    delimiter=st.sampled_from(list(DELIMITERS)[:4]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_written_tables_are_read_back(
    columns: list[list[str]],
    delimiter: str,
    quoting: Any,
    end: str,
    encoding: str,
    tmp_path: Path,
) -> None:
    for column in columns:
        normalized = {text.strip().lower().lstrip("+-") for text in column}
        # Python parses more words and other digits as numbers.
        assume(normalized.isdisjoint({"nan", "inf", "infinity", "true", "false"}))
        assume(all(text.isascii() or not text.strip()[:1].isdigit() for text in column))
        assume(not any("_" in text for text in column))
        # Python 3.11 leaves a lone carriage return unquoted; it would end the line.
        assume(quoting == csv.QUOTE_ALL or not any("\r" in text for text in column))
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter=delimiter, quoting=quoting, lineterminator=end)
    names = [f"column{number}" for number in range(len(columns))]
    writer.writerows([names, *zip(*columns, strict=True)])
    path = write(tmp_path, buffer.getvalue().encode(encoding))
    read = columns_of(path)
    for name, column in zip(names, columns, strict=True):
        assert read[name] == _reference_types(column)


_WRITTEN_DATES = [
    *("1/2/2024", "13/2/2024", "2/13/2024", "30/2/2024", "0/1/2024", "1/2/2024 9:00", "1-2-2024"),
    *("1.2.2024", "1.13.2024", "1/2/2024 25:00", "2024/1/2", "2024-1-2 9:00", "2024-01-02", "?"),
]


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(
        st.sampled_from(["1", "-7", "007", "1.5", "1e5", "1,5", ",5", "+3", "x", "true", " 2", "?"])
        | st.sampled_from(["2024-01-01", "2024-01-01 10:00", "2024-01-01T10:00Z", "10:00", "\xa0"])
        | st.sampled_from(["9" * 25, "0x1f"])
        | _TEXTS,
        min_size=1,
        max_size=12,
    )
    | st.lists(st.sampled_from(_WRITTEN_DATES), min_size=1, max_size=12),
    cut=st.integers(0, 12),
    comma=st.booleans(),
)
def test_form_of_a_column_is_the_join_of_the_forms_of_its_blocks(
    texts: list[str], cut: int, comma: bool
) -> None:
    column = pa.chunked_array([pa.array([None if t in MISSING else t for t in texts])])
    column = column.cast(pa.string())
    form, values = infer_form(column, comma=comma)
    forms = [
        infer_form(block, comma=comma)[0] for block in (column.slice(0, cut), column.slice(cut))
    ]
    assert join(*forms) is form
    assert join(forms[1], forms[0]) is form
    assert values.type == form.type
    assert len(values) == len(texts)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=st.lists(
        st.sampled_from(["1", "-7", "1.50", "1e5", "+3", "?", "", "2"])
        | st.sampled_from(["007", "9" * 25, "x", "true", "2024-01-01", "2024-01-01 10:00", "1,5"]),
        min_size=10,
        max_size=40,
    )
    | st.lists(st.sampled_from(["2024-01-01", "2024-01-01 10:00", ""]), min_size=10, max_size=40)
    | st.lists(st.sampled_from(["5", "007", "9" * 25, "1.50"]), min_size=10, max_size=40)
    | st.lists(st.sampled_from(_WRITTEN_DATES), min_size=10, max_size=40)
    | st.lists(st.sampled_from(["1/2/2024", "11/12/2024", "13/12/2024 9:00", ""]), min_size=10),
)
def test_blocks_do_not_change_the_result(texts: list[str], tmp_path: Path) -> None:
    """If the form differs between blocks, the columns are the same as with one block."""
    texts = sorted(texts, key=len)  # so that blocks differ
    path = write(tmp_path, "\n".join(["v;w", *(f"{text};{'x' * 50}" for text in texts)]))
    expected = read_table(path).frame
    with (
        patch("spinney.io._delimited._BLOCK", 200),
        patch("spinney.io._delimited._BYTES_PER_COLUMN", 1),
    ):
        table = read_table(path).frame
        assert len(list(open_delimited(find_sources(path).files[0], None, None).batches())) > 2
        assert columns_of(path) == expected.to_pydict()
    assert table.schema == expected.schema
    assert table.to_pydict() == expected.to_pydict()


def test_join_of_forms_is_idempotent_commutative_and_associative() -> None:
    for one in TextForm:
        assert join(one, one) is one
        for two in TextForm:
            assert join(one, two) is join(two, one)
            for three in TextForm:
                assert join(join(one, two), three) is join(one, join(two, three))


def test_floats_are_read_exactly(tmp_path: Path) -> None:
    values = [0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0, math.pi * 1e-200]
    path = write(tmp_path, "\n".join(["x,y", *(f"{value!r},1" for value in values)]))
    assert columns_of(path)["x"] == values
