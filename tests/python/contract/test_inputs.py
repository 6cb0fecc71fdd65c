"""Arrays as input: missing and infinite values, shapes, memory layouts, numeric dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

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
)
from support.layouts import LAYOUTS, lay_out
from support.registry import Entry


def with_value(X: Any, value: float) -> Any:
    """Return a copy with a value in some cells."""
    X = X.copy()
    X[::7, 1] = value
    return X


@entries_with("missing_values")
def test_missing_values(entry: Entry) -> None:
    X, y = make_table(entry)
    model = fit(entry.create(), with_value(X, np.nan), y)
    queries = make_queries()
    queries[:, 1] = np.nan
    for name, output in outputs(model, queries).items():
        assert len(output) == len(queries)
        if output.dtype.kind == "f":
            assert np.isfinite(output).all(), name


@entries_without("missing_values")
def test_missing_values_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match="NaN"):
        fit(entry.create(), with_value(X, np.nan), y)
    model = fit(entry.create(), X, y)
    with pytest.raises(ValueError, match="NaN"):
        outputs(model, with_value(X, np.nan))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@entries_with("refuses_infinity")
def test_infinite_values_raise(entry: Entry, value: float) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match=r"(?i)infin"):
        fit(entry.create(), with_value(X, value), y)
    model = fit(entry.create(), X, y)
    with pytest.raises(ValueError, match=r"(?i)infin"):
        outputs(model, with_value(X, value))


@entries_without("refuses_infinity")
def test_infinite_values_are_accepted(entry: Entry) -> None:
    X, y = make_table(entry)
    for value in (np.inf, -np.inf):
        model = fit(entry.create(), with_value(X, value), y)
        for output in outputs(model, with_value(X, value)).values():
            assert len(output) == len(X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@all_entries(ANY_TARGET)
def test_targets_that_are_not_finite_raise(entry: Entry, value: float) -> None:
    X, y = make_table(entry)
    if y.dtype.kind == "U":
        y = np.unique(y, return_inverse=True)[1]
    y = y.astype(float)
    y[3] = value
    with pytest.raises(ValueError, match=r"(?i)NaN|infin|continuous|label"):
        fit(entry.create(), X, y)


@all_entries()
def test_empty_tables_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match=r"0 sample|minimum of|at least|empty|no rows"):
        fit(entry.create(), X[:0], None if y is None else y[:0])
    with pytest.raises(ValueError, match=r"0 feature|minimum of|at least|empty|no columns"):
        fit(entry.create(), X[:, :0], y)


@all_entries()
def test_wrong_shapes_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match=r"(?i)2D|dimension|shape|Reshape"):
        fit(entry.create(), X[:, 0], y)
    if y is not None:
        with pytest.raises(ValueError, match=r"(?i)inconsistent|rows|length|number of"):
            fit(entry.create(), X, y[:-1])
        with pytest.raises((TypeError, ValueError)):
            fit(entry.create(), X, None)
    model = fit(entry.create(), X, y)
    for rows in (X[:, :2], np.column_stack([X, X])):
        with pytest.raises(ValueError, match=r"features|columns"):
            outputs(model, rows)
    with pytest.raises(ValueError, match=r"(?i)2D|dimension|shape|Reshape"):
        outputs(model, X[0])


@all_entries()
def test_layouts_in_memory(entry: Entry) -> None:
    X, y = make_table(entry)
    compare = assert_same if entry.has("layout_bits") else assert_close
    plain = fit(entry.create(), X, y)
    expected = outputs(plain, X)
    for layout in LAYOUTS:
        other = lay_out(X, layout)
        compare(outputs(plain, other), expected)
        compare(outputs(fit(entry.create(), other, y), X), expected)


@pytest.mark.parametrize("writeable", [True, False])
@all_entries()
def test_inputs_are_not_changed(entry: Entry, writeable: bool) -> None:
    X, y = make_table(entry)
    inputs = [X, y, np.ones(len(X)) if entry.has("sample_weight") else None]
    copies = [None if one is None else one.copy() for one in inputs]
    for one in inputs:
        if one is not None:
            one.flags.writeable = writeable
    outputs(fit(entry.create(), *inputs), X)
    for one, copy in zip(inputs, copies, strict=True):
        if one is not None:
            np.testing.assert_array_equal(one, copy)


@all_entries()
def test_lists_and_integers(entry: Entry) -> None:
    X, y = make_table(entry)
    X = np.round(3 * X)
    expected = outputs(fit(entry.create(), X, y), X)
    compare = assert_same if entry.has("layout_bits") else assert_close
    for other in (X.tolist(), X.astype(np.int64), X.astype(np.int16), X.astype(object)):
        compare(outputs(fit(entry.create(), other, y), other), expected)


@all_entries()
def test_single_precision(entry: Entry) -> None:
    X, y = make_table(entry)
    X = X.astype(np.float32)
    expected = outputs(fit(entry.create(), X.astype(float), y), X.astype(float))
    found = outputs(fit(entry.create(), X, y), X)
    if entry.has("float32_bits"):
        assert_same(found, expected)
    else:
        assert_close(found, expected, rtol=1e-3, atol=1e-3)


@all_entries()
def test_boolean_features(entry: Entry) -> None:
    X, y = make_table(entry)
    X = X > 0
    found = outputs(fit(entry.create(), X, y), X)
    assert_close(found, outputs(fit(entry.create(), X.astype(float), y), X.astype(float)))


@entries_with("multi_output", ANY_TARGET)
def test_several_outputs(entry: Entry) -> None:
    X, y = make_table(entry)
    both = np.column_stack([y, y[::-1]])
    model = fit(entry.create(), X, both)
    assert model.predict(X).shape == both.shape


@entries_without("multi_output", ANY_TARGET)
def test_several_outputs_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises((TypeError, ValueError, NotImplementedError)):
        fit(entry.create(), X, np.column_stack([y, y[::-1]]))
