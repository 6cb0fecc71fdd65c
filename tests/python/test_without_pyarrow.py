"""Estimators, model files and comparisons of arrays work without pyarrow (and data frames)."""

from __future__ import annotations

import subprocess
import sys

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"pyarrow", "pandas", "polars"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
"""
LIBRARY = """
import tempfile
from pathlib import Path

import spinney
from spinney.ensemble import GradientBoostingClassifier, RandomForestClassifier
from spinney.linear_model import LogisticRegression
from spinney.neighbors import KNeighborsClassifier

X, y = spinney.datasets.load_spam(return_X_y=True, split="train")
X, y = X[::10], y[::10]
for model in (
    GradientBoostingClassifier(n_estimators=5),
    RandomForestClassifier(5),
    LogisticRegression(),
    KNeighborsClassifier(),
):
    expected = model.fit(X, y).predict(X)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.spinney")
        again = spinney.load(Path(folder) / "model.spinney")
    assert (again.predict(X) == expected).all()
result = spinney.compare(X, y, models=["decision_tree_pruned", "extra_trees"], cv=3)
print(result.n_folds, len(result.results))
"""
SHELL = """
import runpy

sys.argv = ["spinney", "compare", "table.csv"]
runpy.run_module("spinney", run_name="__main__")
"""


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCK + code], capture_output=True, text=True)


def test_library_works_without_pyarrow() -> None:
    run = _run(LIBRARY)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "3 2\n"


def test_shell_names_the_missing_library() -> None:
    run = _run(SHELL)
    assert run.returncode == 2
    assert run.stderr == "spinney: tables in files need pyarrow: pip install pyarrow\n"
