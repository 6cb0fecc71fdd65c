"""Collect the tests with each optional dependency blocked in turn.

    python tests/collect_without_optional.py

A package is optional if only extras other than ``[test]`` list it. A test module that imports an
optional package must skip itself without it, before any other use; otherwise its collection fails.
Packages that neither the tests nor the library mention are blocked together in one collection.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Import names that are not the name of the distribution with underscores.
IMPORT_NAMES = {"faiss-cpu": "faiss", "xgboost-cpu": "xgboost"}

COLLECT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
import pytest

sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"]))
"""


def distribution(requirement: str) -> str:
    """Return the name in a requirement such as "dask[array]>=2024.8"."""
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()  # type: ignore[index]


def optional_imports() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    required = {distribution(line) for line in (*project["dependencies"], *extras["test"])}
    listed = {distribution(line) for lines in extras.values() for line in lines}
    return sorted(IMPORT_NAMES.get(name, name.replace("-", "_")) for name in listed - required)


def groups_of(names: list[str]) -> list[list[str]]:
    """Return one group for each package that code mentions, and one for the others."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files if path != Path(__file__))
    used = [name for name in names if re.search(rf"\b{name}\b", text)]
    return [*([name] for name in used), sorted(set(names) - set(used))]


def collect(names: list[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COLLECT.format(names=names)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> int:
    groups = groups_of(optional_imports())
    failed = False
    with ThreadPoolExecutor(2) as pool:
        for names, run in zip(groups, pool.map(collect, groups), strict=True):
            result = "collected" if run.returncode == 0 else "FAILED"
            print(f"{', '.join(names)}: {result}", flush=True)
            if run.returncode != 0:
                failed = True
                print(run.stdout[-4000:], run.stderr[-2000:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
