"""The report of versions and the single source of the version number."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pytest

import spinney
from spinney import _core
from spinney.runtime.versions import installed_versions
from support.paths import ROOT


def test_show_versions_prints_what_a_bug_report_needs(capsys: pytest.CaptureFixture[str]) -> None:
    spinney.show_versions()
    rows = dict(re.findall(r"^  (\S+(?: \S+)*) +(.+)$", capsys.readouterr().out, re.MULTILINE))
    assert rows["spinney"].startswith(spinney.__version__)
    assert rows["numpy"] == np.__version__
    assert rows["instruction set"] == _core.instruction_set
    assert rows["threads"] == str(spinney.get_num_threads())
    assert {"Python", "system", "processor", "CPUs", "scipy", "scikit-learn"} <= set(rows)


def test_libraries_that_are_not_installed_are_left_out() -> None:
    assert installed_versions(["no-such-library", "numpy"]) == {"numpy": np.__version__}


def test_the_version_number_has_one_source() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["scikit-build"]["metadata"]["version"]["input"] == (
        "src/spinney/__init__.py"
    )
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert not re.search(r"^project\([^)]*\bVERSION\b", cmake, re.MULTILINE)
