"""Only one module compares versions of scikit-learn, and only with supported versions."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
import sklearn

import spinney
from spinney.data import sklearn_versions
from support.paths import ROOT

SOURCE = Path(spinney.__file__).parent
VERSIONS = SOURCE / "data" / "sklearn_versions.py"
NAMES = {"SKLEARN_VERSION", "sklearn.__version__"}


def lowest_version(package: str) -> tuple[int, ...]:
    """Return the lowest supported version of a dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bounds = [re.fullmatch(r"([\w-]+)>=([\d.]+)", text) for text in project["dependencies"]]
    found = {bound[1]: bound[2] for bound in bounds if bound is not None}
    return tuple(int(part) for part in found[package].split("."))


def uses_of_version(text: str) -> list[int]:
    """Return the lines that read the version of scikit-learn."""
    tree = ast.parse(text)
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute | ast.alias)
        and (node.name if isinstance(node, ast.alias) else ast.unparse(node)) in NAMES
    ]


def compared_versions(text: str) -> list[tuple[int, ...]]:
    """Return the versions that the version of scikit-learn is compared with."""
    compared = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare)]
    return [
        ast.literal_eval(node.comparators[0])
        for node in compared
        if ast.unparse(node.left) == "SKLEARN_VERSION"
    ]


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.stem)
def test_one_module_reads_the_version_of_scikit_learn(path: Path) -> None:
    if path != VERSIONS:
        assert uses_of_version(path.read_text(encoding="utf-8")) == []


def test_no_branch_is_for_an_unsupported_version() -> None:
    compared = compared_versions(VERSIONS.read_text(encoding="utf-8"))
    assert compared
    assert min(compared) > lowest_version("scikit-learn")


def test_uses_and_comparisons_are_found() -> None:
    text = "from a import SKLEARN_VERSION\nif SKLEARN_VERSION < (1, 8): pass\nsklearn.__version__\n"
    assert sorted(uses_of_version(text)) == [1, 2, 3]
    assert compared_versions(text) == [(1, 8)]


def test_version_of_scikit_learn() -> None:
    major, minor = sklearn_versions.SKLEARN_VERSION
    assert sklearn.__version__.startswith(f"{major}.{minor}")
    assert (major, minor) >= lowest_version("scikit-learn")
