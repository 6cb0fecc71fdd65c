"""The ``spinney`` command: what it reads, prints and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import spinney
from spinney.cli import main
from spinney.report.families import FAMILIES

RNG = np.random.default_rng(0)
AGE = RNG.integers(18, 80, size=60)
CITY = RNG.choice(["Bath", "York", "Ely"], size=60)
BOUGHT = np.where((AGE > 50) ^ (CITY == "Ely"), "yes", "no")


class Output(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Output]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command in this process, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["spinney", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capsys.readouterr()
        return Output(int(end.value.code or 0), captured.out, captured.err)

    return call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write a CSV with a number with gaps, a text column and a target."""
    ages = [str(age) if row % 7 else "" for row, age in enumerate(AGE)]
    rows = [",".join(row) for row in zip(ages, CITY, BOUGHT, strict=True)]
    path = tmp_path / "shop.csv"
    path.write_text("\n".join(["age,city,bought", *rows]) + "\n", encoding="utf-8")
    return path


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"spinney {spinney.__version__}\n"
    assert "compare" in run("--help").out
    assert "decision_tree_pruned" in run("compare", "--help").out


def test_bundled_spam(run: Run) -> None:
    result = run("compare", "--cv", 2, "--models", "baseline,decision_tree")
    assert result.code == 0
    assert result.err == ""  # no bar where there is no terminal
    assert "4,601 rows × 57 columns · 2 stratified folds" in result.out
    assert "* decision_tree" in result.out
    assert "spinney compare DATA.csv --target COLUMN" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_csv(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "bought", "--cv", 3)
    assert result.code == 0
    assert "60 rows × 2 columns" in result.out
    assert "failed" not in result.out
    assert "* " in result.out
    assert "random_forest" in result.out
    assert "--task regression" in result.out


def test_json(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "bought", "--cv", 3, "--json", "--jobs", 1)
    content = json.loads(result.out)
    assert content["data"] == "shop.csv: bought"
    assert content["best"] in {result["name"] for result in content["results"]} - {"baseline"}
    expected = [family for family in FAMILIES if "classification" in family.tasks]
    assert len(content["results"]) == len(expected)


def test_regression_and_drop(run: Run, shop: Path) -> None:
    result = run("compare", shop, "--target", "age", "--drop", "city", "--task", "regression")
    assert result.code == 0
    assert "51 rows × 1 column " in result.out
    assert "RMSE" in result.out
    assert "left out 9 rows without a value of 'age'" in result.out


@pytest.mark.parametrize("extension", ["parquet", "arrow", "feather", "stream.arrow"])
def test_binary_formats(run: Run, tmp_path: Path, extension: str) -> None:
    table = pa.table({"age": AGE, "city": pa.array(CITY).dictionary_encode(), "bought": BOUGHT})
    path = tmp_path / f"shop.{extension}"
    if extension == "parquet":
        pq.write_table(table, path)
    else:
        opener = pa.ipc.new_stream if extension == "stream.arrow" else pa.ipc.new_file
        with opener(path, table.schema) as writer:
            writer.write_table(table)
    result = run("compare", path, "--target", "bought", "--cv", 3)
    assert result.code == 0
    assert "60 rows × 2 columns" in result.out
    assert "failed" not in result.out


def test_errors_are_one_line(run: Run, shop: Path, tmp_path: Path) -> None:
    def file(name: str, content: str) -> Path:
        (tmp_path / name).write_text(content, encoding="utf-8")
        return tmp_path / name

    target = ("--target", "bought")
    cases: list[tuple[list[object], str]] = [
        (["nowhere.csv", *target], "no such file: nowhere.csv"),
        ([tmp_path, *target], "is a folder"),
        ([file("t.xlsx", "PK\x03\x04"), *target], "is a zip archive"),
        ([file("t.parquet", "no Parquet"), *target], "is no Parquet file"),
        ([file("empty.csv", ""), *target], "is empty"),
        ([file("header.csv", "age,bought\n"), *target], "has no rows"),
        ([file("gone.csv", "age,bought\n1,\n2,NA\n"), *target], "'bought' has no value in any row"),
        ([file("only.csv", "bought\nyes\nno\n"), *target], "no column is left to learn from"),
        ([file("one.csv", "age,bought\n1,yes\n2,yes\n"), *target], "one class only"),
        ([shop], "say which column to predict: --target COL; shop.csv has: age, city, bought"),
        ([shop, "--target", "Bougt"], "no column 'Bougt' in shop.csv; did you mean 'bought'?"),
        ([shop, "--target", "q"], "no column 'q' in shop.csv; it has: age, city, bought"),
        ([shop, *target, "--drop", "town"], "no column 'town'"),
        ([shop, *target, "--drop", "bought"], "cannot be both"),
        ([shop, *target, "--models", "forest"], "models has no 'forest'"),
        ([shop, *target, "--jobs", 0], "n_jobs must be"),
        ([shop, *target, "--cv", 1], "cv must be between 2"),
        ([shop, *target, "--task", "regression"], "'bought' must hold numbers"),
        (["--target", "bought"], "--target and --drop are about DATA"),
    ]
    for arguments, message in cases:
        code, out, err = run("compare", *arguments)
        assert code == 2, arguments
        assert out == "", arguments
        assert err.startswith("spinney: "), arguments
        assert message in err, arguments
        assert err.count("\n") == 1, arguments


def test_module_and_exit_status(tmp_path: Path) -> None:
    """``python -m spinney`` in a process of its own, without a traceback."""
    command = [sys.executable, "-m", "spinney", "compare", str(tmp_path / "none.csv")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == f"spinney: no such file: {tmp_path / 'none.csv'}\n"
