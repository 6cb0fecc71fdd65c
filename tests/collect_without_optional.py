"""Collect the tests with each optional dependency blocked in turn.

    python tests/collect_without_optional.py

A package is optional if only extras other than ``[test]`` list it. A test module that imports one
must skip without it, from the first import on. Collection is cheap and fails where this is not so.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Where the name of the import is not the name of the distribution with underscores.
IMPORT_NAMES = {"faiss-cpu": "faiss", "xgboost-cpu": "xgboost"}

COLLECT = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {name!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
import pytest

sys.exit(pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"]))
"""


def distribution(requirement: str) -> str:
    """Return the distribution that a requirement such as "dask[array]>=2024.8" names."""
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()  # type: ignore[index]


def optional_imports() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    always = {distribution(line) for line in (*project["dependencies"], *extras["test"])}
    listed = {distribution(line) for lines in extras.values() for line in lines}
    return sorted(IMPORT_NAMES.get(name, name.replace("-", "_")) for name in listed - always)


def collect(name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COLLECT.format(name=name)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def main() -> int:
    names = optional_imports()
    failed = False
    with ThreadPoolExecutor(2) as pool:
        for name, run in zip(names, pool.map(collect, names), strict=True):
            print(f"{name}: {'collected' if run.returncode == 0 else 'FAILED'}", flush=True)
            if run.returncode != 0:
                failed = True
                print(run.stdout[-4000:], run.stderr[-2000:])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
