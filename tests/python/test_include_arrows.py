"""Includes of the C++ core follow the arrows in ARCHITECTURE.md."""

from __future__ import annotations

import pytest

from include_arrows import CORE, find_violations, read_arrows, read_sources
from support.paths import ROOT

ARROWS = read_arrows((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))


def test_includes_follow_the_arrows() -> None:
    assert list(find_violations(read_sources(), ARROWS)) == []


def test_every_arrow_names_a_folder() -> None:
    assert set(ARROWS) == {path.name for path in CORE.iterdir() if path.is_dir()}


def test_models_and_prediction_do_not_include_training() -> None:
    training = {"tree", "ensemble", "boosting", "loss", "multiway"}
    assert not (ARROWS["forest"] | ARROWS["serving"]) & training


def test_arrows_are_transitive() -> None:
    arrows = read_arrows("- C++: a ← b, c; b ← d ← e;\n  a ← f. Text.\n")
    assert arrows["e"] == {"a", "b", "d", "e"}
    assert arrows["c"] == {"a", "c"}
    assert arrows["f"] == {"a", "f"}


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("a/x.h", '#include "spinney/b/y.h"', "a may not include b"),
        ("c/x.cpp", '#  include "spinney/b/y.h"', "c may not include b"),
        ("b/x.h", "#include <nanobind/nanobind.h>", "cannot include Python"),
        ("b/x.h", "#include <Python.h>", "cannot include Python"),
        ("new/x.h", "", "folder new has no arrow"),
    ],
)
def test_violations_are_found(file: str, line: str, reason: str) -> None:
    arrows = read_arrows("- C++: a ← b, c.")
    [(found, text)] = find_violations({file: f"#pragma once\n{line}\n"}, arrows)
    assert found == file
    assert reason in text


def test_allowed_includes_pass() -> None:
    arrows = read_arrows("- C++: a ← b.")
    text = '#include <vector>\n#include "spinney/a/y.h"\n#include "spinney/b/z.h"\n'
    assert list(find_violations({"b/x.h": text}, arrows)) == []


def test_missing_arrows_raise() -> None:
    with pytest.raises(ValueError, match=r"ARCHITECTURE\.md"):
        read_arrows("no arrows")
