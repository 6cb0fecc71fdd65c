"""Checks that a continued fit (``warm_start=True``) matches the previous one."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.data.table import Schema

__all__ = ["check_same_classes", "check_same_columns", "check_same_outputs"]


def check_same_columns(before: Schema, now: Schema) -> None:
    """Raise a ValueError if columns or categories differ from those of the last fit."""
    if len(before.categories) != len(now.categories) or any(
        (a is None) != (b is None) or (a is not None and b is not None and not np.array_equal(a, b))
        for a, b in zip(before.categories, now.categories, strict=True)
    ):
        raise ValueError(
            "warm_start: expected the columns and categories of the earlier fit; X has others. Set "
            "warm_start=False to fit from scratch"
        )


def check_same_outputs(before: Any, now: int) -> None:
    """Raise a ValueError if the number of outputs differs from that of the last fit."""
    if before != now:
        raise ValueError(
            f"warm_start expects as many outputs as in the earlier fit, {before}; y has {now}. Set "
            "warm_start=False to fit from scratch"
        )


def check_same_classes(before: Any, now: Any) -> None:
    """Raise a ValueError if the classes differ from those of the last fit.

    Parameters
    ----------
    before, now : ndarray or list of ndarray
        The classes of each output.
    """
    old, new = (classes if isinstance(classes, list) else [classes] for classes in (before, now))
    for a, b in zip(old, new, strict=True):
        if not np.array_equal(a, b):
            raise ValueError(
                f"warm_start expects the classes of the earlier fit, {a.tolist()}; y has "
                f"{b.tolist()}. Set warm_start=False to fit from scratch"
            )
