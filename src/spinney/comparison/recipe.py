"""Code and settings that reproduce a comparison."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spinney import __version__
from spinney.comparison.comparison import Comparison
from spinney.runtime.versions import installed_versions

__all__ = ["Origin", "recipe", "settings"]

_LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow")


@dataclass(frozen=True)
class Origin:
    """The source of the table.

    Attributes
    ----------
    title : str
        The name of the table.
    target : str
        The name of the target.
    load : list of str
        Lines of Python that create ``X`` and ``y``.
    arguments : dict
        Further arguments of `spinney.compare`, as Python expressions, such as groups.
    command : str
        The shell command, or "".
    """

    title: str
    target: str = "y"
    load: tuple[str, ...] = ("X, y = …  # the table and the column to predict",)
    arguments: tuple[tuple[str, str], ...] = ()
    command: str = ""


def recipe(comparison: Comparison, origin: Origin) -> str:
    """Return Python code that reproduces the comparison."""
    compared = comparison.compared
    arguments: dict[str, Any] = {"task": repr(comparison.task)}
    ran = [r.name for r in comparison.results if not r.skipped]
    arguments["models"] = repr(ran) if _some_are_skipped(comparison) else None
    arguments["cv"] = repr(comparison.n_folds_requested or comparison.n_folds)
    if comparison.n_folds_requested:
        arguments["max_folds"] = repr(comparison.n_folds)
    if compared is not None and compared.rows is not None:
        arguments["max_rows"] = repr(len(compared.rows))
    if comparison.metric not in ("error", "rmse"):  # a callable is handled below
        arguments["scoring"] = repr(comparison.metric)
    arguments |= compared.given if compared is not None else {}
    arguments.update(origin.arguments)
    if compared is not None:
        arguments["random_state"] = repr(compared.random_state)
    written = ", ".join(f"{name}={value}" for name, value in arguments.items() if value)
    lines = ["import spinney", *origin.load, f"result = spinney.compare(X, y, {written})"]
    best = comparison.best
    if best is not None:
        lines.append(f"model = result.fit({best.name!r})  # on all rows")
    return "\n".join(lines)


def _some_are_skipped(comparison: Comparison) -> bool:
    # Imported late, for start-up time.
    from spinney.comparison.families import select_families

    ran = {r.name for r in comparison.results if not r.skipped}
    return ran != {family.name for family in select_families(None, comparison.task)}


def settings(comparison: Comparison, origin: Origin) -> dict[str, str]:
    """Return folds, seed, threads and versions, in the order to show them."""
    # Imported late, for start-up time.
    from spinney.runtime.threads import get_num_threads

    found = {}
    if origin.command:
        found["command"] = origin.command
    found["table"] = f"{origin.title} · {comparison.summary}"
    found["measure"] = comparison.metric_title
    if comparison.compared is not None:
        found["seed"] = str(comparison.compared.random_state)
    found["threads"] = str(get_num_threads())
    found["written"] = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    found["spinney"] = __version__
    found["Python"] = platform.python_version()
    found.update(installed_versions(_LIBRARIES))
    found["machine"] = f"{platform.system()} {platform.machine()}"
    return found
