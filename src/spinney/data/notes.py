"""Notes for the reader of a result: strings that carry their kind."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Self

from spinney.data.messages import Parameter, Part, join_parts

__all__ = ["Note", "NoteKind"]


class NoteKind(Enum):
    """The subject of a note; code compares this, never the text."""

    COLUMN_NAMES = "column names"
    CONSTANT_OR_MISSING = "constant or missing"
    COUNTS_ROWS = "counts rows"
    DELIMITER = "delimiter"
    ENCODING = "encoding"
    ENDED_EARLY = "ended early"
    FORMAT = "format"
    HEADER = "header"
    INFINITE_VALUES = "infinite values"
    LEAK = "leak"
    LIKE_IDENTIFIER = "like an identifier"
    MANY_CATEGORIES = "many categories"
    MEASURE = "measure"
    MISSING_TARGET = "missing target"
    MIXED_VALUES = "mixed values"
    NO_ERROR = "no error"
    RARE_CLASSES = "rare classes"
    SAMPLED_ROWS = "sampled rows"
    STRAY_VALUES = "stray values"
    UNDEFINED_FOLDS = "undefined folds"
    WRITTEN_NUMBERS = "written numbers"


class Note(str):
    """A remark on data or a result: a string with a kind and possibly a column.

    Parameters
    ----------
    *parts : str or Parameter
        The text; the shell spells parameters as its options.
    kind : NoteKind
        The subject of the note.
    column : str or None, default=None
        The column that the note is about.

    Examples
    --------
    >>> note = Note("one value only, and missing", kind=NoteKind.CONSTANT_OR_MISSING)
    >>> note, note.kind.name
    ('one value only, and missing', 'CONSTANT_OR_MISSING')
    """

    __slots__ = ("column", "kind", "parts")

    parts: tuple[Part, ...]
    kind: NoteKind
    column: str | None

    def __new__(cls, *parts: Part, kind: NoteKind, column: str | None = None) -> Self:
        """Join the parts to a string."""
        note = super().__new__(cls, join_parts(parts))
        note.parts, note.kind, note.column = parts, kind, column
        return note

    def render(self, spell: Callable[[Parameter], str]) -> str:
        """Return the text with parameters as `spell` writes them."""
        return join_parts(self.parts, spell)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy the parts, the kind and the column."""
        return _make_note, (self.parts, self.kind, self.column)


def _make_note(parts: tuple[Part, ...], kind: NoteKind, column: str | None) -> Note:
    return Note(*parts, kind=kind, column=column)
