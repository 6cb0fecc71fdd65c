"""The comparison of hashes from several builds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.paths import ROOT


def compare(*arguments: str | Path) -> tuple[int, str]:
    """Return the exit status and the output of tests/compare_bits.py."""
    command = [sys.executable, str(ROOT / "tests" / "compare_bits.py"), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout


def test_equal_outputs(tmp_path: Path) -> None:
    one = tmp_path / "one"
    one.write_text("tree gini 1f\nforest 2a\n", encoding="utf-8")
    assert compare(one, one) == (0, "2 hashes agree in 2 outputs\n")


def test_programs_with_variables(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text('#!/bin/sh\necho "tree gini $HASH"\n', encoding="utf-8")
    program.chmod(0o755)
    assert compare(f"HASH=1f {program}", f"HASH=1f {program}")[0] == 0
    status, text = compare(f"HASH=1f {program}", f"HASH=20 {program}")
    assert status == 1
    assert text == f"tree gini: expected 1f; HASH=20 {program}: 20\n"


def test_missing_and_failed_fits(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("tree gini 1f\nforest error: no rows\n", encoding="utf-8")
    two.write_text("tree gini 1f\nknn 5\n", encoding="utf-8")
    status, text = compare(one, two)
    assert status == 1
    assert text == f"forest: error: no rows\nknn: expected missing; {two}: 5\n"


def test_no_hashes(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("", encoding="utf-8")
    assert compare(empty)[0] == 1
