"""Data frames of every library, their column names, and categorical columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from spinney import ensemble
from spinney.data.sklearn_versions import SKLEARN_VERSION
from support.contract import (
    ANY_TARGET,
    all_entries,
    assert_close,
    assert_same,
    entries_with,
    entries_without,
    fit,
    make_queries,
    make_table,
    outputs,
    own_entries,
)
from support.frames import FRAMES, by_arrow, by_polars, by_record_batch
from support.registry import Entry

NAMES = ["width", "height", "depth"]
# The estimators that use scikit-learn's `cross_val_predict`.
CROSS_VALIDATED = [
    ensemble.BayesianModelAveragingClassifier,
    ensemble.BayesianModelAveragingRegressor,
    ensemble.StackingClassifier,
    ensemble.StackingRegressor,
]
# The estimators whose rows scikit-learn validates.
FITTED_BY_SKLEARN = ["BaggingClassifier-neighbors", "LinearRegression-positive", "Perceptron"]


def columns_of(X: Any) -> dict[str, Any]:
    return dict(zip(NAMES, np.ascontiguousarray(X.T), strict=True))


def compare_frames(entry: Entry, frames: list[Any]) -> None:
    X, y = make_table(entry)
    queries = make_queries()
    expected = outputs(fit(entry.create(), X, y), queries)
    for frame in frames:
        model = fit(entry.create(), frame(columns_of(X)), y)
        assert model.feature_names_in_.tolist() == NAMES, frame
        assert model.n_features_in_ == 3
        assert_close(outputs(model, frame(columns_of(queries))), expected)


@all_entries()
def test_frames_equal_arrays(entry: Entry) -> None:
    frames = [frame for frame in FRAMES if frame is not by_record_batch]
    if SKLEARN_VERSION < (1, 7) and entry.estimator_class in CROSS_VALIDATED:
        frames.remove(by_arrow)  # scikit-learn 1.6 does not select rows of Arrow tables
    without_names = SKLEARN_VERSION < (1, 9) and not hasattr(pl.DataFrame, "__dataframe__")
    if without_names and (entry.name in FITTED_BY_SKLEARN or not entry.is_own):
        frames.remove(by_polars)  # scikit-learn 1.8 does not read the names of Polars 2
    compare_frames(entry, frames)


@entries_with("record_batches")
def test_record_batches(entry: Entry) -> None:
    compare_frames(entry, [by_record_batch])


@entries_without("record_batches")
def test_record_batches_without_names(entry: Entry) -> None:
    X, y = make_table(entry)
    batch = by_record_batch(columns_of(X))
    try:
        model = fit(entry.create(), batch, y)
        found = outputs(model, batch)
    except (TypeError, ValueError):
        return
    if SKLEARN_VERSION >= (1, 9):
        assert not hasattr(model, "feature_names_in_")
    else:  # by the interchange protocol
        assert getattr(model, "feature_names_in_", np.array(NAMES)).tolist() == NAMES
    assert_close(found, outputs(fit(entry.create(), X, y), X))


@all_entries()
def test_other_names_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    table = pd.DataFrame(X, columns=NAMES)
    model = fit(entry.create(), table, y)
    for other in (table.rename(columns={"width": "length"}), table[NAMES[::-1]]):
        with pytest.raises(ValueError, match="feature names"):
            outputs(model, other)


@own_entries()  # scikit-learn's classes keep the names of an earlier fit
def test_array_has_no_feature_names(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), pd.DataFrame(X, columns=NAMES), y)
    assert not hasattr(fit(model, X, y), "feature_names_in_")


@all_entries(ANY_TARGET)
def test_targets_of_every_library(entry: Entry) -> None:
    X, y = make_table(entry)
    expected = outputs(fit(entry.create(), X, y), X)
    for target in (y.tolist(), pd.Series(y), pl.Series(y), pa.array(y), y.astype(object)):
        found = outputs(fit(entry.create(), X, target), X)
        assert found.keys() == expected.keys()
        for name, output in expected.items():
            np.testing.assert_array_equal(found[name], output, err_msg=name)
            assert (found[name].dtype.kind == "f") == (output.dtype.kind == "f")


def mixed_table(entry: Entry) -> tuple[Any, Any]:
    """Return a frame with a column of strings, and a target."""
    X, y = make_table(entry)
    table = pd.DataFrame({"width": X[:, 0], "height": X[:, 1]})
    table["city"] = np.where(X[:, 2] > 0, "Bath", "York")
    return table, y


@entries_with("categories")
def test_categories(entry: Entry) -> None:
    table, y = mixed_table(entry)
    model = fit(entry.create(), table, y)
    assert model.feature_names_in_.tolist() == ["width", "height", "city"]
    expected = outputs(model, table)
    as_category = table.assign(city=table["city"].astype("category"))
    assert_same(outputs(fit(entry.create(), as_category, y), as_category), expected)
    assert_same(outputs(fit(entry.create(), pl.from_pandas(table), y), table), expected)


@entries_with("categories")
def test_unseen_categories(entry: Entry) -> None:
    table, y = mixed_table(entry)
    model = fit(entry.create(), table, y)
    unseen = table.assign(city=["Bath", "Ely"] * (len(table) // 2))
    for output in outputs(model, unseen).values():
        assert len(output) == len(table)
        if output.dtype.kind == "f":
            assert np.isfinite(output).all()


@entries_without("categories")
def test_categories_raise(entry: Entry) -> None:
    table, y = mixed_table(entry)
    with pytest.raises(
        (TypeError, ValueError), match=r"(?i)city|could not convert|numeric|categor"
    ):
        fit(entry.create(), table, y)
