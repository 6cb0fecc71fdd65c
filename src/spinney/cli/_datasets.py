"""``spinney datasets``: the bundled data sets, as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from spinney.cli._completion import complete_dataset
from spinney.cli._error_messages import UserError

__all__ = ["CATALOGUE", "Dataset", "datasets"]


@dataclass(frozen=True)
class Dataset:
    """A bundled table; `columns` is the number of columns without the target."""

    name: str
    title: str
    rows: int
    columns: int
    target: str
    task: str
    licence: str


CATALOGUE = (
    Dataset(
        "play_tennis",
        "Quinlan's fourteen days: the weather, and whether one plays",
        14,
        4,
        "play",
        "classification",
        "a published example, Quinlan 1986",
    ),
    Dataset(
        "play_tennis_numeric",
        "the same days with temperature and humidity as numbers",
        14,
        4,
        "play",
        "classification",
        "a published example, Quinlan 1993",
    ),
    Dataset(
        "spam",
        "57 numbers about each of 4,601 mails: is it spam?",
        4601,
        57,
        "class",
        "classification",
        "CC BY 4.0, Hopkins, Reeber, Forman and Suermondt",
    ),
)


def datasets(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The data set to write; without it, all data sets are listed.",
            show_default=False,
            autocompletion=complete_dataset,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Output file: .csv, .tsv (also .gz), .parquet, .arrow or .jsonl.",
            metavar="FILE",
            show_default="standard output, as CSV",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="List as JSON, or write one JSON object per row.")
    ] = False,
) -> None:
    """List the bundled data sets, or write one to a file."""
    if name is None:
        if output is not None:
            raise UserError("-o needs the name of a data set")
        _list(as_json)
        return
    by_name = {dataset.name: dataset for dataset in CATALOGUE}
    if name not in by_name:
        close = get_close_matches(name, by_name, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(by_name)}"
        raise UserError(f"no data set {name!r}; {hint}")
    # Imported late, so that --help and completion start fast.
    from spinney.cli._table_writer import open_writer

    with open_writer(output, as_json=as_json) as write:
        write(_TABLES[name]())


def _list(as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([asdict(dataset) for dataset in CATALOGUE], indent=2))
        return
    for dataset in CATALOGUE:
        size = f"{dataset.rows:,} rows × {dataset.columns} columns"
        typer.echo(f"{dataset.name}\n    {dataset.title}")
        typer.echo(f"    {size} · {dataset.task} of {dataset.target!r} · {dataset.licence}")
    typer.echo("Next: spinney datasets spam -o spam.csv")


def _spam() -> Any:
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa

    from spinney.datasets import load_spam

    spam = load_spam()
    columns = dict(zip(spam.feature_names, spam.data.T.copy(), strict=True))
    return pa.table({**columns, "class": pa.array(spam.target_names[spam.target].tolist())})


def _play_tennis(*, numeric: bool = False) -> Any:
    # Imported late, so that --help and completion start fast.
    import pyarrow as pa

    from spinney.datasets import load_play_tennis

    days = load_play_tennis(numeric=numeric)
    columns = {
        n: pa.array(c.tolist()) for n, c in zip(days.feature_names, days.data.T, strict=True)
    }
    return pa.table({**columns, "play": pa.array(days.target.tolist())})


_TABLES: dict[str, Callable[[], Any]] = {
    "play_tennis": _play_tennis,
    "play_tennis_numeric": lambda: _play_tennis(numeric=True),
    "spam": _spam,
}
