"""``spinney show``: the contents of a model file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from spinney.cli._model_path import model_path, summary_of_fit

__all__ = ["show"]

# Classes without readable contents: rows, means, matrices.
_NO_CONTENTS = ("Neighbors", "Local", "Mixture", "Dummy", "PlugIn")
_USED = ("number", "category", "date")  # kinds of columns that models use
_MOST_NAMES = 6  # listed columns per kind


def show(
    model: Annotated[
        Path,
        typer.Argument(
            help="A file that spinney fit wrote; - is the standard input.", show_default=False
        ),
    ],
    depth: Annotated[
        int, typer.Option(help="Number of levels of a tree to show.", metavar="N", min=1)
    ] = 4,
    top: Annotated[
        int, typer.Option(help="Number of columns or rules to show.", metavar="N", min=1)
    ] = 15,
    brief: Annotated[bool, typer.Option("--brief", help="Show only the head of the file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show a model file: the model, its training data and its contents."""
    # Imported late, so that --help and completion start fast.
    from spinney.io import describe

    with model_path(model) as path:
        about = describe(path)
        contents, uncertainty = ({}, None) if brief else _contents(path, about, depth, top)
    size = about["n_bytes"]
    if as_json:
        facts = {"file": str(model), "bytes": size, **about, "contents": contents}
        facts["certainty"] = uncertainty  # this key is public; language: allow
        typer.echo(json.dumps(facts, indent=2))
        return
    # Imported late, so that --help and completion start fast.
    from spinney.cli._model_contents import contents_as_lines

    lines = _head(about, model, size, uncertainty)
    body = contents_as_lines(contents)
    typer.echo("\n".join([*lines, *(["", *body] if body else [])]))


def _contents(
    path: Path, about: dict[str, Any], depth: int, top: int
) -> tuple[dict[str, Any], str | None]:
    """Return the contents of the model and the method of its intervals or sets."""
    if about["n_features"] is None:
        return {}, None
    # Imported late, so that --help and completion start fast.
    from spinney.cli._model_contents import model_contents, uncertainty_method
    from spinney.io import load

    kind = str(about["class"]).rpartition(".")[2]
    model = load(path)
    if any(part in kind for part in _NO_CONTENTS):
        return {}, uncertainty_method(model)
    return model_contents(model, depth=depth, top=top), uncertainty_method(model)


def _head(about: dict[str, Any], path: Path, size: int, uncertainty: str | None) -> list[str]:
    # Imported late, so that --help and completion start fast.
    from spinney.comparison.number_format import shown_size

    training = summary_of_fit(about)
    name = f"{training['model']}: " if training else ""
    lines = [f"{name}{about['class']}"]
    changed = ", ".join(f"{key}={about['parameters'][key]}" for key in about["changed"])
    lines.append(f"  parameters: {changed or 'the defaults'}")
    lines += _fitted_on(training) if training else [*_shape(about), *_own_facts(about)]
    if about["classes"] is not None:
        shown = ", ".join(about["classes"][:10])
        more = about["n_classes"] - 10
        lines.append(f"  classes: {shown}" + (f", … ({more:,} more)" if more > 0 else ""))
    if uncertainty is not None:
        lines.append(f"  {uncertainty}")
    libraries = ", ".join(f"{library} {version}" for library, version in about["versions"].items())
    lines.append(f"  written: {about['written']} by {libraries}")
    lines.append(f"  file: {path}, {shown_size(size)}")
    columns = training.get("kinds", {}).get("columns", [])
    if columns:
        lines += ["", "columns by kind", *_columns(columns)]
    return lines


def _shape(about: dict[str, Any]) -> list[str]:
    if about["n_features"] is None:
        return ["  not fitted"]
    return [f"  fitted on {about['n_features']:,} columns"]


def _own_facts(about: dict[str, Any]) -> list[str]:
    """Return the facts that `spinney.save` has stored with the model."""
    facts = about["training"] or {}
    texts = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in facts.items()
    }
    return [f"  {key}: {text}" for key, text in texts.items()]


def _fitted_on(training: dict[str, Any]) -> list[str]:
    # Imported late, so that --help and completion start fast.
    from spinney.comparison.number_format import shown_time

    lines = [
        f"  fitted on: {training['data']}, {training['rows']:,} rows × "
        f"{training['columns']:,} columns, in {shown_time(training['seconds'])}, "
        f"seed {training['seed']}",
        f"  target: {training['target']} ({training['task']})",
    ]
    scores = training["scores"]
    measure = scores["measure"]
    scores_shown = [f"{measure} {_number(scores['training'], measure)} in training"]
    if "cross_validation" in scores:
        folds = scores["cross_validation"]
        spread = folds["standard_error"]
        scores_shown.append(f"{_number(folds['mean'], measure, spread)} cross-validated")
    lines.append(f"  {', '.join(scores_shown)}")
    lines += [f"  note: {note}" for note in training.get("notes", [])]
    return lines


def _number(value: float | None, measure: str, spread: float | None = None) -> str:
    # Imported late, so that --help and completion start fast.
    from spinney.comparison.number_format import shown_error

    return "unknown" if value is None else shown_error(value, measure, spread)


def _columns(columns: list[dict[str, Any]]) -> list[str]:
    """List the used columns by kind, and the unused ones with reasons."""
    lines = []
    for kind in _USED:
        names = [column["name"] for column in columns if column["kind"] == kind]
        if names:
            shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
            lines.append(f"  {kind} ({len(names):,}): {shown}")
    unused = [column for column in columns if column["kind"] not in _USED]
    lines += [
        f"  unused: {column['name']} ({column['kind']}: {column['reason']})"
        for column in unused[:_MOST_NAMES]
    ]
    more = len(unused) - _MOST_NAMES
    return [*lines, *([f"  unused: {more:,} more (--json lists all)"] if more > 0 else [])]
