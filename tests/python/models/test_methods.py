"""Methods of every estimator: save, load, describe, compact."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import spinney
from spinney.ensemble import RandomForestClassifier
from spinney.models.methods import ModelMethods
from spinney.neighbors import HNSW
from spinney.tree import DecisionTreeClassifier, ExtraTreeClassifier

X = np.arange(12.0).reshape(6, 2)
y = np.array([0, 0, 1, 1, 0, 1])


def spinney_estimators() -> list[Any]:
    estimators = []
    for package in (
        *("calibration", "ensemble", "linear_model", "mixture", "neighbors"),
        *("preprocessing", "tree"),
    ):
        module = importlib.import_module(f"spinney.{package}")
        for name in module.__all__:
            kind = getattr(module, name)
            if inspect.isclass(kind) and issubclass(kind, BaseEstimator):
                estimators.append(kind)
    return [kind for kind in estimators if kind.__module__.startswith("spinney.")]


@pytest.mark.parametrize("kind", spinney_estimators(), ids=lambda kind: kind.__name__)
def test_every_estimator_has_the_methods(kind: type[Any], tmp_path: Path) -> None:
    assert issubclass(kind, ModelMethods)
    parameters = {"estimators": [("a", DecisionTreeClassifier())]}
    model = kind(**parameters) if "estimators" in inspect.signature(kind).parameters else kind()
    assert model.describe()["class"].endswith(f".{kind.__name__}")
    assert not hasattr(model, "compaction_")
    assert repr(clone(model)) == repr(model)
    if kind is HNSW:
        return  # an index has its own file format
    model.save(tmp_path / "model")
    loaded = kind.load(tmp_path / "model")
    assert type(loaded) is kind
    assert repr(loaded) == repr(model)
    assert spinney.describe(tmp_path / "model")["class"] == model.describe()["class"]


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
    assert facts["format_version"] == 1
    assert facts["changed"] == ["n_estimators", "random_state"]
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1  # the last byte belongs to an array, which is not read
    path.write_bytes(damaged)
    assert spinney.describe(path) == facts
    with pytest.raises(ValueError, match="damaged"):
        spinney.load(path)
