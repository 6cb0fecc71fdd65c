"""Pickles, copies and model files: the same outputs to the bit."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

import spinney
from spinney.neighbors import HNSW
from support.contract import (
    all_entries,
    assert_same,
    entries_with,
    entries_without,
    fit,
    make_queries,
    make_table,
    outputs,
)
from support.registry import Entry


@all_entries()
def test_pickles_and_copies(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, y)
    expected = outputs(model, make_queries())
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert type(again) is type(model)
        assert repr(again) == repr(model)
        assert_same(outputs(again, make_queries()), expected)
        assert_same(outputs(fit(again, X, y), make_queries()), expected)
    unfitted = entry.create()
    assert repr(pickle.loads(pickle.dumps(unfitted))) == repr(unfitted)


@entries_with("model_file")
def test_model_files(entry: Entry, tmp_path: Path) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, y)
    outputs(model, X)  # values that are cached by predictions must not prevent saving
    spinney.save(model, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert_same(outputs(again, make_queries()), outputs(model, make_queries()))
    assert vars(pickle.loads(pickle.dumps(again))).keys() == (
        vars(pickle.loads(pickle.dumps(model))).keys()
    )
    assert spinney.describe(tmp_path / "model")["class"].endswith(entry.estimator_class.__name__)


@entries_with("model_file")
def test_model_files_of_unfitted_estimators(entry: Entry, tmp_path: Path) -> None:
    if entry.estimator_class is HNSW:
        pytest.skip("an index has a file format of its own")
    model = entry.create()
    spinney.save(model, tmp_path / "model")
    again = spinney.load(tmp_path / "model")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    if entry.is_own:
        assert repr(entry.estimator_class.load(tmp_path / "model")) == repr(model)
        assert not hasattr(again, "compaction_")
        assert model.describe()["class"].endswith(entry.estimator_class.__name__)


@entries_without("model_file")
def test_unsupported_model_files_raise(entry: Entry, tmp_path: Path) -> None:
    X, y = make_table(entry)
    with pytest.raises((TypeError, ValueError)):
        spinney.save(fit(entry.create(), X, y), tmp_path / "model")
    assert not (tmp_path / "model").exists()
