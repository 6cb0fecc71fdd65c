"""The ``spinney`` command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spinney import __version__
from spinney.cli._compare import compare
from spinney.cli._errors import UserError

__all__ = ["app", "main"]

app = typer.Typer(
    name="spinney",
    help="Classical supervised learning, fast.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"spinney {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Classical supervised learning, fast."""


app.command()(compare)


def main() -> None:
    """Run the command; what the user can mend is told in one line, with exit status 2."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± shows a question mark
    try:
        app(prog_name="spinney")
    except UserError as error:
        typer.echo(f"spinney: {error}", err=True)
        sys.exit(2)
