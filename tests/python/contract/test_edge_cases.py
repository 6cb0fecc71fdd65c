"""Edge cases: one row, one class, constant columns, wide tables, huge and tiny values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from support.contract import (
    ANY_CLASSES,
    all_entries,
    entries_with,
    entries_without,
    fit,
    make_queries,
    make_table,
    make_target,
    outputs,
)
from support.registry import Entry


def assert_finite(found: dict[str, Any]) -> None:
    for name, output in found.items():
        if output.dtype.kind == "f":
            assert np.isfinite(output).all(), name


def one_row(entry: Entry) -> tuple[Any, Any]:
    X, y = make_table(entry)
    return X[:1], None if y is None else y[:1]


@entries_with("one_row")
def test_one_row(entry: Entry) -> None:
    X, y = one_row(entry)
    model = fit(entry.create(), X, y)
    assert_finite(outputs(model, X))
    if entry.target in ANY_CLASSES:
        assert model.predict(X)[0] == y[0]
    elif entry.target == "numbers" and entry.has("constant_target"):
        assert model.predict(X)[0] == pytest.approx(y[0])


@entries_without("one_row")
def test_one_row_raises(entry: Entry) -> None:
    X, y = one_row(entry)
    with pytest.raises(ValueError, match=r"(?i)sample|row|class|fold|split|neighbor|vector"):
        outputs(fit(entry.create(), X, y), X)


@entries_with("one_class", ANY_CLASSES)
def test_one_class(entry: Entry) -> None:
    X, _ = make_table(entry)
    model = fit(entry.create(), X, np.full(len(X), "only"))
    assert model.classes_.tolist() == ["only"]
    assert (model.predict(make_queries()) == "only").all()
    if hasattr(model, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(make_queries()), np.ones((20, 1)))


@entries_without("one_class")
def test_one_class_raises(entry: Entry) -> None:
    X, _ = make_table(entry)
    with pytest.raises(ValueError, match="class"):
        fit(entry.create(), X, np.full(len(X), "only"))


@entries_with("constant_target", ("numbers",))
def test_constant_target(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), X, np.full(len(y), 2.5))
    np.testing.assert_allclose(model.predict(make_queries()), 2.5, rtol=1e-9)


@all_entries()
def test_constant_columns(entry: Entry) -> None:
    X, y = make_table(entry)
    X[:, 1] = 7.0
    queries = make_queries()
    queries[:, 1] = 7.0
    assert_finite(outputs(fit(entry.create(), X, y), queries))


@all_entries()
def test_repeated_columns(entry: Entry) -> None:
    X, y = make_table(entry)
    X, queries = X[:, [0, 1, 0]], make_queries()[:, [0, 1, 0]]
    assert_finite(outputs(fit(entry.create(), X, y), queries))


@all_entries()
def test_one_column(entry: Entry) -> None:
    X, y = make_table(entry)
    assert_finite(outputs(fit(entry.create(), X[:, :1], y), make_queries()[:, :1]))


@all_entries()
def test_more_columns_than_rows(entry: Entry) -> None:
    X = np.random.default_rng(3).normal(size=(9, 10))
    y = make_target(entry, X)
    try:
        found = outputs(fit(entry.create(), X, y), X)
    except ValueError as error:
        assert re.search("row|sample|class|fold|member", str(error))  # noqa: PT017
        return
    assert_finite(found)


def outputs_for_scaled_columns(entry: Entry, power: int) -> dict[str, Any]:
    """Return the outputs for columns that are multiplied by a power of two."""
    X, y = make_table(entry)
    return outputs(fit(entry.create(), np.ldexp(X, power), y), np.ldexp(make_queries(), power))


@entries_with("huge_values")
def test_huge_values(entry: Entry) -> None:
    assert_finite(outputs_for_scaled_columns(entry, 996))


@entries_with("tiny_values")
def test_tiny_values(entry: Entry) -> None:
    assert_finite(outputs_for_scaled_columns(entry, -996))


@all_entries()
def test_limits_of_sizes_are_needed(entry: Entry) -> None:
    for capability, power in (("huge_values", 996), ("tiny_values", -996)):
        if entry.has(capability):
            continue
        try:
            found = outputs_for_scaled_columns(entry, power)
        except ValueError as error:
            assert re.search("X|covariance", str(error))  # noqa: PT017
        else:
            floats = [output for output in found.values() if output.dtype.kind == "f"]
            assert not all(np.isfinite(output).all() for output in floats)
