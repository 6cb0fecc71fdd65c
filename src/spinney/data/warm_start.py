"""Checks of what a continued fit (``warm_start=True``) must have in common with the earlier one."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.data.table import Schema

__all__ = ["check_same_classes", "check_same_columns", "check_same_outputs"]


def check_same_columns(before: Schema, now: Schema) -> None:
    """Refuse to go on with columns of other kinds than the trees grown so far know."""
    if len(before.categories) != len(now.categories) or any(
        (a is None) != (b is None) or (a is not None and b is not None and not np.array_equal(a, b))
        for a, b in zip(before.categories, now.categories, strict=True)
    ):
        raise ValueError(
            "warm_start goes on with the same columns and categories; X has others than in the "
            "fit before"
        )


def check_same_outputs(before: Any, now: int) -> None:
    """Refuse to go on with another number of outputs than that of the earlier fit."""
    if before != now:
        raise ValueError(
            f"warm_start expects as many outputs as in the earlier fit, {before}; y has {now}. Set "
            "warm_start=False to start anew"
        )


def check_same_classes(before: Any, now: Any) -> None:
    """Refuse to go on with other classes than those of the earlier fit.

    Parameters
    ----------
    before, now : ndarray or list of ndarray
        The classes, of each output.
    """
    known, found = (of if isinstance(of, list) else [of] for of in (before, now))
    for a, b in zip(known, found, strict=True):
        if not np.array_equal(a, b):
            raise ValueError(
                f"warm_start expects the classes of the earlier fit, {a.tolist()}; y has "
                f"{b.tolist()}. Set warm_start=False to start anew"
            )
