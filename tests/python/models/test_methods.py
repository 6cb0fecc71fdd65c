"""Methods of every estimator: save, load, describe, compact."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import spinney
from spinney.ensemble import RandomForestClassifier
from spinney.tree import DecisionTreeClassifier, ExtraTreeClassifier

X = np.arange(12.0).reshape(6, 2)
y = np.array([0, 0, 1, 1, 0, 1])


def test_load_of_another_class_raises(tmp_path: Path) -> None:
    path = tmp_path / "model"
    ExtraTreeClassifier(random_state=0).fit(X, y).save(path)
    with pytest.raises(ValueError, match=r"expected a RandomForestClassifier, got a spinney\.tree"):
        RandomForestClassifier.load(path)
    # A subclass can be loaded by its base class, like with isinstance.
    assert type(DecisionTreeClassifier.load(path)) is ExtraTreeClassifier


def test_describe_reads_no_arrays(tmp_path: Path) -> None:
    path = tmp_path / "model"
    RandomForestClassifier(3, random_state=0).fit(X, y).save(path)
    facts = spinney.describe(path)
    assert facts["n_bytes"] == path.stat().st_size > facts["array_bytes"] > 0
    assert facts["n_features"] == 2
    assert facts["format_version"] == 2
    assert facts["changed"] == ["n_estimators", "random_state"]
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1  # the last byte belongs to an array, which is not read
    path.write_bytes(damaged)
    assert spinney.describe(path) == facts
    with pytest.raises(ValueError, match="damaged"):
        spinney.load(path)
