"""The ``spinney`` command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from spinney import __version__
from spinney.cli._compare import compare_command
from spinney.cli._datasets import datasets
from spinney.cli._error_messages import discard_unwritten, print_error, replace_closed_streams
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


def _reporting_errors(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command print its errors in one line; typer reports wrong usage by itself."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()  # a closed pipe raises here, not when the interpreter exits
        except typer.Exit:
            raise
        except (Exception, KeyboardInterrupt) as error:
            raise typer.Exit(print_error(error)) from error

    return run


_COMMANDS: dict[str, Callable[..., None]] = {
    "compare": compare_command,
    "fit": fit,
    "predict": predict,
    "show": show,
    "datasets": datasets,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_reporting_errors(_command))


def main() -> None:
    """Run the command; status 0: success, 1: failure, 2: error that the user can correct."""
    replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without ± gets "?"
    try:
        app(prog_name="spinney")
    except OSError as error:  # typer prints the help outside of commands
        print_error(error)
        sys.exit(1)
    finally:
        discard_unwritten()
