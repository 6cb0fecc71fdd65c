"""Shell completion of names; it must be fast, and prints no errors."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from spinney.cli._models import model_titles
from spinney.comparison.families import FAMILIES

_MOST_BYTES = 5_000_000  # size of a table for column completion: text files are read as a whole

__all__ = [
    "complete_column",
    "complete_dataset",
    "complete_family",
    "complete_measure",
    "complete_model",
]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Return names of models with their titles."""
    return [pair for pair in model_titles().items() if pair[0].startswith(incomplete)]


def complete_family(incomplete: str) -> list[tuple[str, str]]:
    """Return names of models of a comparison; after a comma, names for the next one."""
    before, comma, last = incomplete.rpartition(",")
    typed = set(before.split(","))
    return [
        (before + comma + family.name, family.title)
        for family in FAMILIES
        if family.name.startswith(last) and family.name not in typed
    ]


def complete_measure(incomplete: str) -> list[tuple[str, str]]:
    """Return names of metrics."""
    # Imported late, so that --help and completion start fast.
    from spinney.comparison.measure import MEASURES

    return [(m.name, m.title) for m in MEASURES if m.name.startswith(incomplete)]


def complete_column(incomplete: str) -> list[str]:
    """Return column names of DATA, if it was typed before and can be read."""
    # The parser stops at an option without a value, so the typed words are used instead.
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    for word in typed.split():
        if not Path(word).is_file() or Path(word).stat().st_size > _MOST_BYTES:
            continue
        with suppress(Exception):  # a model, or a table that cannot be read
            # Imported late, so that --help and completion start fast.
            from spinney.io import read_pieces

            block = next(iter(read_pieces(word, rows=1)))
            return [name for name in block.column_names if name.startswith(incomplete)]
    return []


def complete_dataset(incomplete: str) -> list[tuple[str, str]]:
    """Return names of the bundled data sets with their titles."""
    # Imported late, as this module completes names for `_datasets`.
    from spinney.cli._datasets import CATALOGUE

    return [(s.name, s.title) for s in CATALOGUE if s.name.startswith(incomplete)]
