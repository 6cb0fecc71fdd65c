"""What the shell offers to complete; it must be quick, and silent where it does not know."""

from __future__ import annotations

from contextlib import suppress

import typer

__all__ = ["complete_column", "complete_dataset", "complete_model"]


def complete_model(incomplete: str) -> list[tuple[str, str]]:
    """Names of models, with a few words about each."""
    from spinney.cli._models import model_titles

    return [pair for pair in model_titles().items() if pair[0].startswith(incomplete)]


def complete_column(ctx: typer.Context, incomplete: str) -> list[str]:
    """Names of the columns of DATA, if it was typed before and is a file."""
    data = ctx.params.get("data")
    first = data[0] if isinstance(data, list | tuple) and data else data
    if not first or str(first) == "-":
        return []
    with suppress(Exception):  # a file that cannot be read has no columns to offer
        from spinney.io import read_pieces

        piece = next(iter(read_pieces(str(first), rows=1)))
        return [name for name in piece.column_names if name.startswith(incomplete)]
    return []


def complete_dataset(incomplete: str) -> list[tuple[str, str]]:
    """Names of the bundled data sets."""
    from spinney.cli._datasets import CATALOGUE

    return [(s.name, s.title) for s in CATALOGUE if s.name.startswith(incomplete)]
