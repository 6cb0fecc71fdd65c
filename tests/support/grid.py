"""Tests of all combinations of several parameters, with fewer of them in normal runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

__all__ = ["partial_grid"]


def partial_grid(one_in: int, **axes: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by the combinations of all values; most have the marker `long`.

    Normal runs have the combinations whose positions have a sum divisible by `one_in`. If an axis
    has `one_in` values, each combination of the other axes runs with exactly one of them.
    """

    def marks(positions: tuple[int, ...]) -> tuple[pytest.MarkDecorator, ...]:
        return () if sum(positions) % one_in == 0 else (pytest.mark.long,)

    all_positions = itertools.product(*(range(len(values)) for values in axes.values()))
    params = [
        pytest.param(
            *(values[at] for values, at in zip(axes.values(), positions, strict=True)),
            marks=marks(positions),
        )
        for positions in all_positions
    ]
    return pytest.mark.parametrize(
        tuple(axes), params, ids=lambda value: str(value) if isinstance(value, dict) else None
    )
