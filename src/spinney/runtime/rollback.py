"""Restore an estimator when a continued fit fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["all_or_nothing"]


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Leave an estimator that goes on from an earlier fit as it was if this one fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        if estimator.warm_start and "_store" in before:
            vars(estimator).clear()
            vars(estimator).update(before)
        raise
