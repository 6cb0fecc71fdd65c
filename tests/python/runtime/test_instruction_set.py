"""The environment variable SPINNEY_ISA lowers the instruction set of the core."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from spinney import _core

LEVELS = ("baseline", "avx2", "avx512")
# Prints the instruction set and some bits of a fit.
SCRIPT = """
import hashlib
import numpy as np
from spinney import _core
from spinney.ensemble import GradientBoostingRegressor, RandomForestClassifier
from spinney.linear_model import Ridge
from spinney.neighbors import KNeighborsRegressor

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 7))
y = X[:, 0] + np.sin(X[:, 1])
bits = hashlib.sha256()
for model, target in (
    (GradientBoostingRegressor(n_estimators=5), y),
    (RandomForestClassifier(n_estimators=5, random_state=0), y > 0),
    (Ridge(), y),
    (KNeighborsRegressor(), y),
):
    bits.update(model.fit(X, target).predict(X).tobytes())
print(_core.instruction_set, bits.hexdigest())
"""


def run(script: str, level: str) -> subprocess.CompletedProcess[str]:
    """Run a script with a value of SPINNEY_ISA."""
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "SPINNEY_ISA": level},
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_level_gives_the_same_bits() -> None:
    best = _core.instruction_set
    assert best in LEVELS
    results = set()
    for level in LEVELS:
        done = run(SCRIPT, level)
        assert done.returncode == 0, done.stderr
        used, bits = done.stdout.split()
        assert used == min(level, best, key=LEVELS.index)
        results.add(bits)
    assert len(results) == 1


@pytest.mark.parametrize("value", ["sse9", "AVX2", " avx2"])
def test_unknown_value_is_an_error(value: str) -> None:
    done = run("import spinney._core", value)
    assert done.returncode != 0
    assert 'SPINNEY_ISA must be "baseline", "avx2" or "avx512"' in done.stderr
    assert f'got "{value}"' in done.stderr


def test_empty_value_changes_nothing() -> None:
    done = run("from spinney import _core; print(_core.instruction_set)", "")
    assert done.stdout.strip() in LEVELS
