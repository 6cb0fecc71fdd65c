"""The C++ core does not call functions whose last bits depend on the C library."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.paths import ROOT

FILES = sorted(path for name in ("cpp", "bindings") for path in (ROOT / name).rglob("*.*"))
# std::sqrt, std::fabs, std::floor, std::ldexp and the like are exact.
INEXACT = re.compile(
    r"\bstd::(exp2?|expm1|log(1p|2|10)?|pow|cbrt|hypot|fma|a?(sin|cos|tan)h?|atan2|erfc?|[lt]gamma"
    r"|[a-z]+_distribution)f?l?\b|\blong double\b"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_call_depends_on_the_c_library(path: Path) -> None:
    assert INEXACT.search(path.read_text(encoding="utf-8")) is None


def test_inexact_calls_are_found() -> None:
    for call in (
        "std::exp(",
        "std::log1p(",
        "std::pow(",
        "std::asin(",
        "std::expf(",
        "long double x",
    ):
        assert INEXACT.search(call), call
    for call in ("common::exp(", "std::sqrt(", "std::fabs(", "std::floor(", "std::ldexp("):
        assert not INEXACT.search(call), call
