"""The ``spinney`` command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from spinney import __version__
from spinney.cli._compare import compare
from spinney.cli._datasets import datasets
from spinney.cli._errors import end_quietly, replace_closed_streams, tell
from spinney.cli._fit import fit
from spinney.cli._predict import predict
from spinney.cli._show import show

__all__ = ["app", "main"]


app = typer.Typer(
    name="spinney",
    help="Classical supervised learning, fast.",
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


def _telling(command: Callable[..., None]) -> Callable[..., None]:
    """Have a command say in one line what goes wrong; typer itself tells about wrong usage."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()  # a reader that has gone is noticed here, not at the very end
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(tell(error)) from error

    return run


for _command in (compare, fit, predict, show, datasets):
    app.command()(_telling(_command))


def main() -> None:
    """Run the command: status 0 is fine, 1 a failure, 2 something for the user to mend."""
    replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± shows a question mark
    try:
        app(prog_name="spinney")
    except OSError as error:  # the help, which typer prints by itself, cannot be written
        tell(error)
        sys.exit(1)
    finally:
        end_quietly()
