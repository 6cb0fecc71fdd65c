"""Measure how much each library installs and how long it takes to import.

    python benchmarks/install.py [--spinney REQUIREMENT] [--repeats 7]

Each library gets a new environment. Size counts everything that pip installs for it. Import times
are of a new process, best of several, the libraries in turns, minus the time of an empty process;
the second one also imports a boosting classifier.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).resolve().parents[1]
# Name, requirement, packages to remove again, module, import of a boosting classifier.
LIBRARIES = (
    ("spinney", None, (), "spinney", "from spinney.ensemble import GradientBoostingClassifier"),
    (
        "spinney, pyarrow removed",
        None,
        ("pyarrow",),
        "spinney",
        "from spinney.ensemble import GradientBoostingClassifier",
    ),
    (
        "scikit-learn",
        "scikit-learn",
        (),
        "sklearn",
        "from sklearn.ensemble import HistGradientBoostingClassifier",
    ),
    (
        "LightGBM with scikit-learn",
        "lightgbm scikit-learn",
        (),
        "lightgbm",
        "from lightgbm import LGBMClassifier",
    ),
    (
        "XGBoost (CPU) with scikit-learn",
        "xgboost-cpu scikit-learn",
        (),
        "xgboost",
        "from xgboost import XGBClassifier",
    ),
    ("XGBoost", "xgboost", (), "xgboost", "from xgboost import XGBClassifier"),
    ("CatBoost", "catboost", (), "catboost", "from catboost import CatBoostClassifier"),
)


def packages_of(python: Path) -> Path:
    """Return the folder of installed packages."""
    return next((python.parents[1] / "lib").glob("python*")) / "site-packages"


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder, without compiled Python code."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")
    return sum(file.stat().st_size for file in files)


def seconds(python: Path, code: str) -> float:
    start = perf_counter()
    subprocess.run([python, "-c", code], check=True, capture_output=True)
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spinney", default=str(ROOT), help="what pip installs, such as a wheel")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        rows = []
        for name, requirement, removed, module, boosting in LIBRARIES:
            folder = Path(temporary) / name.replace(" ", "-")
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            python = folder / "bin" / "python"
            before = size_of(packages_of(python))
            pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
            needed = (requirement or options.spinney).split()
            subprocess.run([*pip, "install", *needed], check=True)
            for package in removed:
                subprocess.run([*pip, "uninstall", "-y", package], check=True)
            size = size_of(packages_of(python)) - before
            own = packages_of(python) / module
            rows.append((name, python, size, size_of(own), f"import {module}", boosting))
            for code in ("", f"import {module}", boosting):
                seconds(python, code)  # compiles the modules
        best: dict[tuple[str, str], float] = {}
        for _ in range(options.repeats):
            for name, python, _, _, module, boosting in rows:
                for code in ("", module, boosting):
                    key = (name, code)
                    best[key] = min(best.get(key, float("inf")), seconds(python, code))
    print(f"best of {options.repeats:<26}{'all MB':>8}{'own MB':>8}{'import s':>10}{'class s':>9}")
    for name, _, size, own, module, boosting in rows:
        empty = best[name, ""]
        first, second = best[name, module] - empty, best[name, boosting] - empty
        print(f"{name:<34}{size / 1e6:>8.0f}{own / 1e6:>8.1f}{first:>10.3f}{second:>9.3f}")


if __name__ == "__main__":
    main()
