"""Sample weights: repeated rows, dropped rows, scales, and invalid weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.contract import (
    assert_close,
    assert_same,
    entries_with,
    entries_without,
    fit,
    make_table,
    outputs,
)
from support.registry import Entry


def integer_weights(n_rows: int) -> Any:
    """Return weights from 1 to 3."""
    return np.random.default_rng(5).integers(1, 4, n_rows).astype(float)


def differ(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Return whether outputs differ by more than rounding."""
    try:
        assert_close(found, expected)
    except AssertionError:
        return True
    return False


def outputs_with_repeated_rows(entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the outputs of a weighted fit, and of a fit to repeated rows."""
    X, y = make_table(entry)
    weights = integer_weights(len(X))
    times = weights.astype(int)
    repeated = None if y is None else y.repeat(times)
    weighted = fit(entry.create(), X, y, weights)
    expected = fit(entry.create(), X.repeat(times, axis=0), repeated)
    return outputs(weighted, X), outputs(expected, X)


def outputs_with_dropped_rows(entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the outputs of a fit with weights of zero, and of a fit to the other rows."""
    X, y = make_table(entry)
    kept = np.random.default_rng(6).random(len(X)) < 0.7
    moved = np.where(kept[:, None], X, X + 3)
    zero = fit(entry.create(), moved, y, kept.astype(float))
    rest = fit(entry.create(), X[kept], None if y is None else y[kept])
    return outputs(zero, X[kept]), outputs(rest, X[kept])


def outputs_with_scaled_weights(entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the outputs of fits whose weights differ by a factor of 16."""
    X, y = make_table(entry)
    weights = np.random.default_rng(7).uniform(0.5, 1.5, len(X))
    small = fit(entry.create(), X, y, weights)
    large = fit(entry.create(), X, y, weights * 16)
    return outputs(large, X), outputs(small, X)


def outputs_with_unit_weights(entry: Entry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the outputs of a fit with weights of one, and of a fit without weights."""
    X, y = make_table(entry)
    weighted, plain = fit(entry.create(), X, y, np.ones(len(X))), fit(entry.create(), X, y)
    return outputs(weighted, X), outputs(plain, X)


@entries_with("repeated_rows")
def test_integer_weights_equal_repeated_rows(entry: Entry) -> None:
    assert_close(*outputs_with_repeated_rows(entry))


@entries_with("dropped_rows")
def test_zero_weights_drop_rows(entry: Entry) -> None:
    assert_close(*outputs_with_dropped_rows(entry))


@entries_with("scaled_weights")
def test_scale_of_weights_does_not_matter(entry: Entry) -> None:
    assert_close(*outputs_with_scaled_weights(entry))


COMPARISONS = {
    "repeated_rows": outputs_with_repeated_rows,
    "dropped_rows": outputs_with_dropped_rows,
    "scaled_weights": outputs_with_scaled_weights,
    "unit_weights": outputs_with_unit_weights,
}


@entries_with("sample_weight")
def test_limits_of_weights_are_needed(entry: Entry) -> None:
    for capability in COMPARISONS.keys() & entry.limits.keys():
        try:
            found, expected = COMPARISONS[capability](entry)
        except ValueError as error:
            assert "weight" in str(error)  # noqa: PT017
        else:
            assert differ(found, expected), capability


@entries_with("unit_weights")
def test_unit_weights_change_nothing(entry: Entry) -> None:
    assert_close(*outputs_with_unit_weights(entry))


@entries_with("sample_weight")
def test_weights_may_be_lists_and_series(entry: Entry) -> None:
    import pandas as pd

    X, y = make_table(entry)
    weights = integer_weights(len(X))
    expected = outputs(fit(entry.create(), X, y, weights), X)
    for other in (weights.tolist(), pd.Series(weights), weights.astype(int), weights[::-1][::-1]):
        assert_same(outputs(fit(entry.create(), X, y, other), X), expected)


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
@entries_with("sample_weight")
def test_invalid_weights_raise(entry: Entry, value: float) -> None:
    X, y = make_table(entry)
    weights = np.ones(len(X))
    weights[3] = value
    with pytest.raises(ValueError, match=r"(?i)weight"):
        fit(entry.create(), X, y, weights)


@entries_with("sample_weight")
def test_weights_of_wrong_shape_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    for weights in (np.ones(len(X) - 1), np.ones((len(X), 2))):
        with pytest.raises(ValueError, match=r"(?i)weight|inconsistent"):
            fit(entry.create(), X, y, weights)


@entries_with("sample_weight")
def test_weights_that_are_all_zero_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises(ValueError, match=r"(?i)weight"):
        fit(entry.create(), X, y, np.zeros(len(X)))


@entries_without("sample_weight")
def test_unsupported_weights_raise(entry: Entry) -> None:
    X, y = make_table(entry)
    with pytest.raises((TypeError, ValueError), match=r"sample_weight|metadata routing"):
        fit(entry.create(), X, y, np.ones(len(X)))
