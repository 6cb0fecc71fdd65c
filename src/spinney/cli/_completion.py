"""What the shell offers to complete; it must be quick, and silent where it does not know."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_MOST_BYTES = 5_000_000  # of a table whose columns are offered: text is read whole

__all__ = [
    "complete_column",
    "complete_dataset",
    "complete_family",
    "complete_measure",
    "complete_model",
]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Names of models, with a few words about each."""
    from spinney.cli._models import model_titles

    return [pair for pair in model_titles().items() if pair[0].startswith(incomplete)]


def complete_family(incomplete: str) -> list[tuple[str, str]]:
    """Names of models of a comparison; after a comma the next one."""
    from spinney.comparison.families import FAMILIES

    before, comma, last = incomplete.rpartition(",")
    typed = set(before.split(","))
    return [
        (before + comma + family.name, family.title)
        for family in FAMILIES
        if family.name.startswith(last) and family.name not in typed
    ]


def complete_measure(incomplete: str) -> list[tuple[str, str]]:
    """Names of what models are ranked by."""
    from spinney.comparison.measure import MEASURES

    return [(m.name, m.title) for m in MEASURES if m.name.startswith(incomplete)]


def complete_column(incomplete: str) -> list[str]:
    """Names of the columns of DATA, if it was typed before and can be read."""
    # Parsing gives up at an option without a value, so the words are taken as they were typed.
    typed = os.environ.get("_TYPER_COMPLETE_ARGS") or os.environ.get("COMP_WORDS") or ""
    for word in typed.split():
        if not Path(word).is_file() or Path(word).stat().st_size > _MOST_BYTES:
            continue
        with suppress(Exception):  # a model, or a table that cannot be read
            from spinney.io import read_pieces

            piece = next(iter(read_pieces(word, rows=1)))
            return [name for name in piece.column_names if name.startswith(incomplete)]
    return []


def complete_dataset(incomplete: str) -> list[tuple[str, str]]:
    """Names of the bundled data sets."""
    from spinney.cli._datasets import CATALOGUE

    return [(s.name, s.title) for s in CATALOGUE if s.name.startswith(incomplete)]
