"""Check the includes of the C++ core against the arrows in ARCHITECTURE.md.

    python tests/include_arrows.py

The line "- C++: common ← table ← forest; …" lists the arrows: a folder may include the folders to
its left, and what these may include. The check fails on any other include of a folder of the core,
on includes of Python, nanobind or the bindings, and on folders without an arrow.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "cpp" / "spinney"

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^">]+)[">]', re.MULTILINE)
_PYTHON = re.compile(r"^(?:Python\.h|nanobind/|pybind11/|numpy/|.*bindings)")


def read_arrows(text: str) -> dict[str, set[str]]:
    """Return the folders that each folder may include, from the text of ARCHITECTURE.md."""
    line = re.search(r"^- C\+\+: ([^.]*←[^.]*)\.", text, re.MULTILINE)
    if line is None:
        raise ValueError('ARCHITECTURE.md has no line "- C++: … ← …."')
    direct: dict[str, set[str]] = {}
    for chain in line[1].split(";"):
        groups = [[name.strip() for name in group.split(",")] for group in chain.split("←")]
        for name in groups[0]:
            direct.setdefault(name, set())
        for left, right in pairwise(groups):
            for name in right:
                direct.setdefault(name, set()).update(left)
    return {name: _closure(name, direct) for name in direct}


def _closure(name: str, direct: Mapping[str, set[str]]) -> set[str]:
    """Return a folder and all folders that it may include, also indirectly."""
    reached, waiting = {name}, [name]
    while waiting:
        new = direct[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def find_violations(
    sources: Mapping[str, str], arrows: Mapping[str, set[str]]
) -> Iterator[tuple[str, str]]:
    """Yield (file, reason) for each include that no arrow allows.

    Parameters
    ----------
    sources : mapping
        Text of each file by its path below ``cpp/spinney``, such as ``"tree/grower.h"``.
    arrows : mapping
        Folders that each folder may include.
    """
    for file, text in sources.items():
        folder = file.split("/")[0]
        if folder not in arrows:
            yield file, f"folder {folder} has no arrow in ARCHITECTURE.md"
            continue
        for included in _INCLUDE.findall(text):
            if _PYTHON.match(included):
                yield file, f"includes {included}; the core cannot include Python"
            elif included.startswith("spinney/"):
                other = included.split("/")[1]
                if other not in arrows[folder]:
                    yield file, f"includes {included}; {folder} may not include {other}"


def read_sources(folder: Path = CORE) -> dict[str, str]:
    """Read all headers and sources below a folder."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".h", ".cpp"))
    return {file.relative_to(folder).as_posix(): file.read_text(encoding="utf-8") for file in files}


def main() -> int:
    """Print the violations; return 1 if there are any."""
    arrows = read_arrows((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    violations = list(find_violations(read_sources(), arrows))
    for file, reason in violations:
        print(f"cpp/spinney/{file}: {reason}")
    return int(bool(violations))


if __name__ == "__main__":
    sys.exit(main())
