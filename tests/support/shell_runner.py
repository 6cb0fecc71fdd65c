"""A table of customers, and functions to run ``spinney`` on it."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

RNG = np.random.default_rng(0)
N = 200
SHOP = pd.DataFrame(
    {
        "id": np.arange(N) + 1000,
        "age": np.where(np.arange(N) % 7, RNG.integers(18, 80, N), np.nan),
        "income": RNG.normal(30_000, 9_000, N).round(2),
        "city": RNG.choice(["Bath", "York", "Ely"], N),
    }
)
SHOP["bought"] = np.where((SHOP.age > 50) ^ (SHOP.city == "Ely"), "yes", "no")
SHOP["spent"] = (SHOP.income / 100 + RNG.normal(size=N)).round(3)


class Output(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Output]


def in_shell(command: str, folder: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a shell command in which ``spinney`` is the package under test."""
    alias = f'spinney() {{ "{sys.executable}" -m spinney "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", alias + command], cwd=folder, capture_output=True, text=True, **options
    )


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))
