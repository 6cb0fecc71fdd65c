"""Writes the pages of the API reference: one for each public module, with all that it exports.

So a new estimator is on the site as soon as it is in its module's ``__all__``. The pages go to
docs/api, which is not kept in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import spinney

# Of every estimator, from scikit-learn: the same everywhere, and told there.
_COMMON = re.compile(r"^(set_\w+_request|get_metadata_routing|get_params|set_params)$")


def write_pages(app: Any, config: Any) -> None:
    """Write docs/api/index.rst and a page for each module."""
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    modules = []
    functions = []
    for name in sorted(spinney.__all__):
        value = getattr(spinney, name)
        if inspect.ismodule(value):
            modules.append(name)
            _write(folder / f"spinney.{name}.rst", _module_page(f"spinney.{name}"))
        elif callable(value):
            functions.append(name)
    _write(folder / "index.rst", _index_page(modules, functions))


def _index_page(modules: list[str], functions: list[str]) -> str:
    rows = "\n".join(f"   spinney.{name}" for name in modules)
    table = "\n".join(
        f"   * - :doc:`spinney.{name}`\n     - {_first_line(getattr(spinney, name))}"
        for name in modules
    )
    return (
        f"{_title('API reference')}\n"
        "Modules, classes, parameters and attributes are named as scikit-learn names them.\n\n"
        f".. list-table::\n   :widths: 30 70\n\n{table}\n\n"
        f".. toctree::\n   :hidden:\n\n{rows}\n\n"
        "Functions of the package itself\n"
        "-------------------------------\n\n"
        f".. currentmodule:: spinney\n\n{_autosummary(functions)}"
    )


def _module_page(module: str) -> str:
    source = importlib.import_module(module)
    groups: dict[str, list[str]] = {"Classes": [], "Functions": [], "Data": [], "Foreign": []}
    for name in sorted(source.__all__):
        value = getattr(source, name)
        if getattr(value, "__module__", module).startswith("sklearn"):
            groups["Foreign"].append(name)
        elif inspect.isclass(value):
            groups["Classes"].append(name)
        elif callable(value):
            groups["Functions"].append(name)
        else:
            groups["Data"].append(name)
    page = f"{_title(module)}\n.. automodule:: {module}\n   :no-members:\n\n"
    page += f".. currentmodule:: {module}\n\n"
    for kind in ("Classes", "Functions"):
        if groups[kind]:
            page += f"{kind}\n{'-' * len(kind)}\n\n{_autosummary(groups[kind])}\n"
    if groups["Data"]:
        page += "Data\n----\n\n"
        page += "\n".join(f".. autodata:: {name}\n   :no-value:\n" for name in groups["Data"])
    if groups["Foreign"]:
        names = ", ".join(f"``{name}``" for name in groups["Foreign"])
        page += f"\nFrom scikit-learn, as they are: {names}.\n"
    return page


def _autosummary(names: list[str]) -> str:
    rows = "\n".join(f"   {name}" for name in names)
    return f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{rows}\n"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n"


def _first_line(module: Any) -> str:
    return (inspect.getdoc(module) or "").split("\n\n")[0].replace("\n", " ")


def _write(path: Path, text: str) -> None:
    """Write a page unless it is there already, so that a second build reads nothing again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def skip_common(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn gives to every estimator."""
    return True if _COMMON.match(name) else None


def tidy_docstring(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Say where inherited methods are told, and make types that numpydoc takes as they stand."""
    origin = getattr(obj, "fget", obj)  # of a property its function
    if str(getattr(origin, "__module__", "")).startswith("sklearn"):
        lines[:] = [f"As scikit-learn's ``{origin.__qualname__}``."]
    for number, line in enumerate(lines):
        name, colon, kind = line.partition(" : ")
        if colon and re.fullmatch(r"[\w*, ]+", name):
            # A name that ends in an underscore would be a reference.
            lines[number] = name + colon + re.sub(r"(?<=\w)_(?!\w)", r"\\_", kind)


def setup(app: Any) -> dict[str, Any]:
    """Register with Sphinx; pages must be there before it looks for pages."""
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip_common)
    app.connect("autodoc-process-docstring", tidy_docstring, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
