"""Values and arrays are rebuilt unchanged from their description."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spinney
from spinney.model_file._description import describe_state
from spinney.model_file._rebuilding import rebuild
from spinney.tree import DecisionTreeClassifier
from support.saved_models import CLASSES, X

_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary(max_size=8)
    | st.complex_numbers()
    | st.sampled_from([np.float32(1.5), np.int8(-3), np.str_("é"), np.bool_(True), np.float64])
    | st.sampled_from(
        [np.datetime64("2020-01-01"), np.datetime64("NaT", "s"), np.timedelta64(-3, "ms")]
    )
    | st.sampled_from([np.dtype("<U5"), slice(1, None, 2), range(3, 9, 2), -0.0])
)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


def _round_trip_of_value(value: Any) -> Any:
    """Describe a value, convert the description to JSON and back, and rebuild it."""
    description = describe_state([value])  # a list, as inline values need a node
    return rebuild(json.loads(json.dumps(description.nodes)), description.tensors)[0]


@settings(max_examples=200, deadline=None)
@given(_VALUES)
def test_values_are_rebuilt_unchanged(value: Any) -> None:
    # `repr` distinguishes True from 1 and -0.0 from 0.0.
    assert repr(_round_trip_of_value(value)) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.5),
        np.empty((0, 4)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(12, dtype=np.int16).reshape(3, 4)[::2, ::-1],
        np.arange(3, dtype=">i4"),
        np.array(["", "Zürich", "x" * 30]),
        np.array([b"ab", b""]),
        np.array([["a", None], ["long text", "𝄞"]], dtype=object),
        np.array([1, "a", 2.5, (1, 2)], dtype=object),
        np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.array([1 + 2j, np.nan]),
        np.array([True, False]),
        np.array([np.nan, -0.0, np.inf, 5e-324], dtype=np.float64),
        np.array([65504, 1e-7], dtype=np.float16),
    ],
    ids=lambda array: f"{array.dtype}",
)
def test_arrays_are_rebuilt_unchanged(array: np.ndarray) -> None:
    rebuilt = _round_trip_of_value(array)
    assert rebuilt.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(rebuilt, array)
    assert np.array_equal(np.signbit(rebuilt), np.signbit(array)) if array.dtype == float else True
    if array.ndim > 1:
        assert rebuilt.flags.f_contiguous == array.flags.f_contiguous
    assert rebuilt.flags.writeable


@pytest.mark.parametrize(
    "values",
    [
        [str(number) for number in range(100)],
        [number / 7 for number in range(100)] + [float("nan"), -0.0],
        list(range(-100, 100)),
        [2**63, *range(100)],
        [True, *range(100)],
        [None, *map(str, range(100))],
    ],
)
@pytest.mark.parametrize("kind", [list, tuple, frozenset])
def test_long_lists_are_rebuilt_unchanged(values: list[Any], kind: type[Any]) -> None:
    expected = kind(values)
    rebuilt = _round_trip_of_value(expected)
    assert type(rebuilt) is kind
    assert sorted(map(repr, rebuilt)) == sorted(map(repr, expected))
    assert kind is frozenset or repr(rebuilt) == repr(expected)


def test_too_many_nodes_raise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinney.model_file.files._MOST_JSON", 1000)
    with pytest.raises(ValueError, match="too many parts"):
        spinney.save(DecisionTreeClassifier().fit(X, CLASSES), tmp_path / "m")


def test_shared_arrays_stay_shared() -> None:
    array = np.arange(1000.0)
    first, second, third = _round_trip_of_value([array, array, [array]])
    assert first is second is third[0]
    description = describe_state([array, [array]])
    assert len(description.tensors) == 1
