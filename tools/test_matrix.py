"""Run the tests with the oldest and newest supported versions of Python and the dependencies.

    python tools/test_matrix.py [--contract] [--wheels DIST | --built FOLDER] [ENVIRONMENT ...]

Environments: oldest (Python 3.11 and the lower bounds in pyproject.toml), 3.11, 3.12, 3.13 (the
newest versions of all dependencies); all by default. Each run creates new ones. Spinney is built
from the source; ``--wheels`` installs it from a folder of wheels instead, and ``--built`` copies an
installed package. ``--contract`` runs only `tests/python/contract`.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from interpreters import find_python

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = {"oldest": "3.11", "3.11": "3.11", "3.12": "3.12", "3.13": "3.13"}
# The test extra contains tools, and these libraries, which Spinney supports.
TESTED_OPTIONAL = ("pandas", "polars", "matplotlib")


def lower_bounds() -> list[str]:
    """Return constraints that pin each dependency to the oldest supported version."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extra = [
        line
        for line in project["optional-dependencies"]["test"]
        if line.startswith(TESTED_OPTIONAL)
    ]
    return [line.replace(">=", "==") for line in (*project["dependencies"], *extra)]


def install(python: Path, name: str, options: argparse.Namespace) -> None:
    """Install Spinney, its dependencies and the test tools into an environment."""
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    pinned = lower_bounds() if name == "oldest" else []
    subprocess.run([*pip, *needed, *pinned], check=True)
    if options.built:
        packages = next((python.parents[1] / "lib").glob("python*")) / "site-packages"
        folders = list(options.built.glob("spinney*"))
        if not folders:
            raise SystemExit(f"{options.built} contains no package named spinney")
        for folder in folders:
            shutil.copytree(folder, packages / folder.name)
    elif options.wheels:
        source = ["--no-index", "--find-links", options.wheels, "spinney"]
        subprocess.run([*pip, "--no-deps", *source], check=True)
    else:
        subprocess.run([*pip, "--no-deps", ROOT], check=True)


def show(python: Path) -> str:
    """Return the versions that are compared, on one line."""
    listed = subprocess.check_output([python, "-m", "pip", "list", "--format=freeze"], text=True)
    names = "numpy|scipy|scikit-learn|pandas|polars|pyarrow|narwhals"
    return " ".join(re.findall(rf"^(?:{names})==.*$", listed, re.MULTILINE))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("environments", nargs="*", metavar="ENVIRONMENT", default=[])
    parser.add_argument("--contract", action="store_true")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheels", type=Path, help="a folder of wheels")
    source.add_argument("--built", type=Path, help="a folder with the installed package")
    options = parser.parse_args()
    if unknown := set(options.environments) - set(PYTHONS):
        parser.error(f"unknown environments: {', '.join(sorted(unknown))}")
    tests = "tests/python/contract" if options.contract else "tests/python"
    failed, skipped = [], []
    for name in options.environments or PYTHONS:
        base = find_python(PYTHONS[name])
        if base is None:
            skipped.append(name)
            print(f"{name}: skipped, Python {PYTHONS[name]} is not installed", flush=True)
            continue
        folder = ROOT / "build" / "matrix" / name
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([base, "-m", "venv", folder], check=True)
        python = folder / "bin" / "python"
        install(python, name, options)
        print(f"{name}: Python {PYTHONS[name]}, {show(python)}", flush=True)
        run = subprocess.run([python, "-m", "pytest", tests], cwd=ROOT, check=False)
        if run.returncode != 0:
            failed.append(name)
    for title, names in (("failed", failed), ("skipped", skipped)):
        if names:
            print(f"{title}: {', '.join(names)}")
    # An environment that was asked for by its name must have run.
    return int(bool(failed or set(skipped) & set(options.environments)))


if __name__ == "__main__":
    sys.exit(main())
