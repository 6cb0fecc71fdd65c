"""The layout of the package: private names, sizes of folders, and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.paths import ROOT

PACKAGE = ROOT / "src" / "spinney"
FILES = sorted(PACKAGE.rglob("*.py"))
MAX_FILES = 24


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path) for path in FILES}


def package_of(module: str) -> str:
    """Return the package directly below `spinney`, or the module itself."""
    return ".".join(module.split(".")[:2])


def private_imports(module: str, tree: ast.Module) -> Iterator[str]:
    """Yield imports of private modules or names of another package."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("spinney"):
            continue
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            if full in {"spinney._core", "spinney.__version__"}:
                continue
            owner = package_of(full if full in MODULES else str(node.module))
            is_private = any(part.startswith("_") for part in full.split("."))
            if is_private and owner not in ("spinney", package_of(module)) and module != "spinney":
                yield f"line {node.lineno}: {full}"


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_imports_of_private_names_of_other_packages(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(private_imports(module_name(path), tree)) == []


def test_private_imports_are_found() -> None:
    text = "from spinney.tree._prune import node_risk\nfrom spinney.tree.base import _hidden\n"
    assert len(list(private_imports("spinney.plot._tree", ast.parse(text)))) == 2
    assert list(private_imports("spinney.tree._prune", ast.parse(text))) == []


def own_private_names(tree: ast.Module) -> set[str]:
    """Return private methods, fields and attributes of self in a module."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(ast.unparse(node.target))
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
            names.add(node.attr)
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


def private_accesses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the line and name of private attributes of objects other than self and cls."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute):
            continue
        if not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        is_super = ast.unparse(node.value).startswith("super(")
        if not is_own and not is_super and node.attr != "_core":
            yield node.lineno, node.attr


# Attributes of other libraries, and of objects of unknown class that share their schema.
FOREIGN_ATTRIBUTES = {
    "_get_param_names": "scikit-learn",
    "_validate_params": "scikit-learn",
    "_meta": "Dask",
    "_broker": "distributed",
    "_get_renderer": "matplotlib",
}
FOREIGN_MODELS = {"spinney.importing._sklearn", "spinney.importing._sklearn_trees"}


@pytest.fixture(scope="module")
def private_names() -> dict[str, set[str]]:
    """Private names of objects by package."""
    names: dict[str, set[str]] = {}
    for path in FILES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names.setdefault(package_of(module_name(path)), set()).update(own_private_names(tree))
    # The schema of estimators is set by `set_schema` and read by `schema_of`.
    names["spinney.data"].add("_schema")
    return names


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_private_attributes_are_used_in_their_package(
    path: Path, private_names: dict[str, set[str]]
) -> None:
    module = module_name(path)
    known = private_names[package_of(module)] | set(FOREIGN_ATTRIBUTES)
    known |= {"_checkpoint_trees", "_checkpoint_rows"}  # set on estimators that are being fitted
    if module not in FOREIGN_MODELS:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert [use for use in private_accesses(tree) if use[1] not in known] == []


def test_private_attributes_are_found() -> None:
    tree = ast.parse("def f(self):\n    self._x = model._y\n    return super()._z, tree._size()\n")
    assert list(private_accesses(tree)) == [(2, "_y"), (3, "_size")]
    assert own_private_names(tree) == {"_x"}


def test_folders_are_small() -> None:
    for folder in {path.parent for path in FILES}:
        files = [path.name for path in folder.glob("*.py")]
        assert len(files) <= MAX_FILES, folder


def tuple_splats(tree: ast.Module) -> list[int]:
    """Return the lines of calls such as f(*(a, b), c), which hide the parameters."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple) for a in node.args)
    ]


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_no_calls_with_unpacked_tuple_literals(path: Path) -> None:
    assert tuple_splats(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_unpacked_tuple_literals_are_found() -> None:
    assert tuple_splats(ast.parse("f(*(a, b), c)\nf(*arguments)\nf(*[a])\n")) == [1]


def long_signatures(tree: ast.Module) -> list[str]:
    """Return functions with more than five positional parameters."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            if len([name for name in names if name not in ("self", "cls")]) > 5:
                found.append(node.name)
    return found


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_at_most_five_positional_parameters(path: Path) -> None:
    assert long_signatures(ast.parse(path.read_text(encoding="utf-8"))) == []


def test_long_signatures_are_found() -> None:
    text = "def f(a, b, c, d, e, g): ...\ndef h(self, a, b, c, d, e, *, g): ...\n"
    assert long_signatures(ast.parse(text)) == ["f"]


def unexplained_imports(text: str) -> list[int]:
    """Return the lines of imports in functions without a comment that gives the reason.

    The comment is on the line, or above it; one comment holds for adjacent imports.
    """
    lines = text.split("\n")
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        imports = [n for n in ast.walk(function) if isinstance(n, ast.Import | ast.ImportFrom)]
        previous_end, explained = -2, False
        for node in sorted(imports, key=lambda node: node.lineno):
            end = node.end_lineno or node.lineno
            above = next((line for line in reversed(lines[: node.lineno - 1]) if line.strip()), "")
            own = any("#" in line for line in lines[node.lineno - 1 : end])
            between = lines[max(previous_end, 0) : node.lineno - 1]
            adjacent = explained and not any(line.strip() for line in between)
            explained = own or above.strip().startswith("#") or adjacent
            previous_end = end
            if not explained:
                found.append(node.lineno)
    return sorted(set(found))


@pytest.mark.parametrize("path", FILES, ids=module_name)
def test_imports_in_functions_have_a_reason(path: Path) -> None:
    assert unexplained_imports(path.read_text(encoding="utf-8")) == []


def test_unexplained_imports_are_found() -> None:
    text = "def f():\n    import a  # optional\n    import b\n    x = 1\n    import c\n"
    assert unexplained_imports(text) == [5]
