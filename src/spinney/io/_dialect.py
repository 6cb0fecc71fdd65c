"""The dialect of a delimited file: delimiter, header and column names."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from dataclasses import dataclass

from spinney.data.messages import Parameter
from spinney.data.notes import Note, NoteKind

__all__ = ["DELIMITERS", "MISSING", "Dialect", "find_dialect"]

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar", " ": "space"}

# Names of delimiters that are awkward to type in a shell.
_NAMED = {name: sign for sign, name in DELIMITERS.items()} | {r"\t": "\t"}

# Markers of missing values.
MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "NULL", "null"]

_MAX_LINES = 200
_NUMBER = re.compile(r"\s*[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?\s*")


@dataclass(frozen=True)
class Dialect:
    """The dialect of a delimited file.

    Attributes
    ----------
    delimiter : str
    columns : list of str
        Unique names, none of them empty.
    has_header : bool
    n_skipped : int
        Lines to skip before the rows: the header, and empty ones before it.
    notes : list of Note
        Remarks on the detection.
    renamed : dict of str to str
        Columns whose name in the header is that of an earlier one, or empty: new and old names.
    """

    delimiter: str
    columns: list[str]
    has_header: bool
    n_skipped: int
    notes: list[Note]
    renamed: dict[str, str]


def find_dialect(
    head: str, name: str, delimiter: str | None, is_tsv: bool, header: bool | None = None
) -> Dialect:
    """Detect the dialect from the first lines.

    Parameters
    ----------
    head : str
        Whole lines from the start of the file.
    name : str
        The file, for messages.
    delimiter : str or None
        The delimiter or its name, or None to detect it.
    is_tsv : bool
        Whether the file has the extension .tsv: tabs are preferred then.
    header : bool or None
        Whether the first line is a header, or None to detect it.
    """
    notes: list[Note] = []
    if delimiter is None:
        delimiter = _find_delimiter(head, is_tsv)
        if delimiter != "," and delimiter in head:
            text = f"delimiter {delimiter!r} ({DELIMITERS[delimiter]})"
            notes.append(Note(text, kind=NoteKind.DELIMITER))
    delimiter = _NAMED.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n' or ord(delimiter) > 127:
        raise ValueError(
            f"delimiter: expected one ASCII character, or one of {', '.join(DELIMITERS.values())}; "
            f"got {delimiter!r}"
        )
    try:
        records = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        n_empty, first = next(((n, record) for n, record in enumerate(records) if record), (0, []))
    except csv.Error as error:
        raise ValueError(f"{name}: cannot read the first line: {error}") from None
    if not first:
        raise ValueError(f"{name} has no rows")
    has_header = not _is_data(first) if header is None else header
    numbers = [field.strip() for field in first if _NUMBER.fullmatch(field)]
    if header is None and has_header and 0 < len(numbers) < len(first):
        notes.append(
            Note(
                f"the first line is read as a header, but has numbers such as {numbers[0]}; "
                "if it is a row, set ",
                Parameter("header", False),
                kind=NoteKind.HEADER,
            )
        )
    columns, renamed = _make_unique([field.strip() if has_header else "" for field in first])
    if not has_header:
        text = f"no header line: columns are named {columns[0]} to {columns[-1]}"
        notes.append(Note(text, kind=NoteKind.HEADER))
    elif renamed:
        shown = ", ".join(list(renamed)[:5]) + (", …" if len(renamed) > 5 else "")
        text = f"columns without a unique name are called {shown}"
        notes.append(Note(text, kind=NoteKind.COLUMN_NAMES))
    skipped = n_empty + 1 if has_header else 0
    return Dialect(delimiter, columns, has_header, skipped, notes, renamed)


def _find_delimiter(head: str, is_tsv: bool) -> str:
    """Return the delimiter that gives most lines as many fields as the header.

    Ties are broken by the number of fields. If no delimiter splits the header, the file has one
    column, and a delimiter that does not occur is returned.
    """
    if is_tsv and "\t" in head:
        return "\t"
    best, best_score = "", (0.0, 0)
    for delimiter in DELIMITERS:
        counts = _count_fields(head, delimiter)
        if counts and counts[0] > 1:
            # A header may lack a name. Its delimiter is accepted with a small penalty, so that
            # the error names the line with another number of fields.
            common, _ = Counter(counts).most_common(1)[0]
            share = sum(count == counts[0] for count in counts) / len(counts)
            usual = sum(count == common for count in counts) / len(counts)
            score = (round(max(share, usual - 0.01), 2), counts[0] if delimiter != " " else 1)
            if score > best_score:
                best, best_score = delimiter, score
    if best:
        return best
    counts = _count_fields(head, ",")
    if len(counts) > 1 and min(counts[1:]) > 1:  # only the header lacks commas
        return ","
    return next((delimiter for delimiter in DELIMITERS if delimiter not in head), "\x1f")


def _count_fields(head: str, delimiter: str) -> list[int]:
    """Count the fields of the first non-empty lines; quoted text is one field."""
    if delimiter not in head:
        return []
    if '"' in head:
        start = rf"(?:(?<=^)|(?<=[\r\n{re.escape(delimiter)}]))"
        head = re.sub(start + r'"(?:[^"]|"")*"', "Q", head)
    lines = [line for line in re.split(r"\r\n|\r|\n", head) if line.strip(" ")]
    if delimiter == " ":
        lines = [line.strip(" ") for line in lines]
    return [line.count(delimiter) + 1 for line in lines[:_MAX_LINES]]


def _is_data(fields: list[str]) -> bool:
    """Return whether a line is numeric, but not 0, 1, 2, … (default column names)."""
    if not all(_NUMBER.fullmatch(field) for field in fields):
        return False
    return len(fields) < 3 or fields != [str(number) for number in range(len(fields))]


def _make_unique(names: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return unique names, none empty, and the old names of the renamed columns."""
    used = set(names)
    seen: set[str] = set()
    out: list[str] = []
    renamed: dict[str, str] = {}
    for position, name in enumerate(names, start=1):
        if not name or name in seen:
            stem, number = (name, 2) if name else (f"c{position}", 1)
            unique = stem if not name and stem not in used else f"{stem}_{number}"
            while unique in used:
                number += 1
                unique = f"{stem}_{number}"
            used.add(unique)
            renamed[unique] = name
            name = unique
        seen.add(name)
        out.append(name)
    return out, renamed
