"""Restore an estimator when a continued fit fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["all_or_nothing"]


@contextmanager
def all_or_nothing(estimator: Any, trees: str = "_model") -> Iterator[None]:
    """Restore the attributes of an estimator if a fit with warm_start fails.

    The estimator must have the attribute `trees` after a fit.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        if estimator.warm_start and trees in before:
            vars(estimator).clear()
            vars(estimator).update(before)
        raise
