"""The registry has an entry for every public estimator, and states what tags declare."""

from __future__ import annotations

import inspect
from typing import Any

from sklearn.base import BaseEstimator

from spinney.data.sklearn_versions import SKLEARN_VERSION
from spinney.models.methods import ModelMethods
from support.contract import all_entries
from support.registry import CAPABILITIES, ENTRIES, NOT_COVERED, Entry, find_estimators


def is_excluded(kind: type[Any], module: str) -> bool:
    return kind.__name__ in NOT_COVERED or any(
        module == name or module.startswith(f"{name}.") for name in NOT_COVERED
    )


def classes_without_entry(found: dict[type[Any], str]) -> list[str]:
    """Return the classes without an entry."""
    covered = {entry.estimator_class for entry in ENTRIES}
    return [
        f"{module}.{kind.__name__}"
        for kind, module in found.items()
        if kind not in covered and not is_excluded(kind, module)
    ]


def test_every_public_estimator_has_an_entry() -> None:
    missing = classes_without_entry(find_estimators())
    assert not missing, f"add an Entry to tests/support/registry.py for {missing}"


def test_missing_entry_is_named() -> None:
    class Unknown(BaseEstimator):
        pass

    assert classes_without_entry({Unknown: "spinney.tree"}) == ["spinney.tree.Unknown"]
    assert classes_without_entry({Unknown: "spinney.dask"}) == []


def test_exceptions_are_needed() -> None:
    found = find_estimators()
    names = {kind.__name__ for kind in found} | set(found.values())
    assert NOT_COVERED.keys() <= names
    for reason in NOT_COVERED.values():
        assert reason


def test_no_entry_without_a_public_class() -> None:
    assert {entry.estimator_class for entry in ENTRIES} <= find_estimators().keys()


def test_names_are_unique() -> None:
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)


@all_entries()
def test_limits_have_reasons(entry: Entry) -> None:
    assert entry.limits.keys() <= CAPABILITIES.keys()
    for reason in [*entry.limits.values(), *entry.failed_checks.values()]:
        assert len(reason.split()) >= 2, reason


@all_entries()
def test_limits_agree_with_tags_and_signatures(entry: Entry) -> None:
    for capability, is_declared in entry.detected().items():
        if capability == "sparse" and not entry.is_own and SKLEARN_VERSION < (1, 7):
            continue  # scikit-learn 1.6 does not declare it
        has = entry.has(capability)
        assert has == is_declared or (entry.variant and not has), capability
    if not entry.has("sample_weight"):
        for capability in ("unit_weights", "repeated_rows", "dropped_rows", "scaled_weights"):
            assert not entry.has(capability), capability


@all_entries()
def test_common_methods(entry: Entry) -> None:
    assert issubclass(entry.estimator_class, ModelMethods) == entry.is_own
    assert inspect.getdoc(entry.estimator_class)
