"""Fixtures for tests of the shell command."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from spinney.cli import main
from support.shell_runner import SHOP, Output, Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Run the command in this process, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Output:
        monkeypatch.setattr(sys, "argv", ["spinney", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        captured = capfdbinary.readouterr()
        return Output(int(end.value.code or 0), captured.out.decode(), captured.err.decode())

    return call


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.csv"
    SHOP.to_csv(path, index=False)
    return path


@pytest.fixture
def tree(run: Run, shop: Path) -> Path:
    """Write a model file with a tree that predicts the column `bought`."""
    out = shop.parent / "tree.spinney"
    drop = ("--drop", "id", "--drop", "spent")
    ended = run("fit", shop, "--target", "bought", "--model", "decision_tree", *drop, "-o", out)
    assert ended.code == 0, ended.err
    return out
