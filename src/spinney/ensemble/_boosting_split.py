"""Rows to learn from and rows to watch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.utils.validation import check_consistent_length

__all__ = ["split_rows"]

Part = tuple[Any, Any]


def split_rows(
    n_rows: int,
    n_folds: int,
    fraction: float | int,
    classes: Any,
    groups: Any,
    time: Any,
    seed: int,
) -> list[Part]:
    """Divide rows, once or in folds.

    Parameters
    ----------
    n_rows : int
        How many there are.
    n_folds : int
        Folds, each of which is watched once; 1: one division.
    fraction : float or int
        Rows to watch of one division.
    classes : array of shape (n_rows,) or None
        Every part has about the same share of each.
    groups : array of shape (n_rows,) or None
        Rows of a group stay together.
    time : array of shape (n_rows,) or None
        The latest rows are watched, once.
    seed : int
        For the draw.

    Returns
    -------
    list of (ndarray of uint32, ndarray of uint32)
        Rows to learn from and rows to watch, ascending.
    """
    rows = np.arange(n_rows, dtype=np.uint32)
    for name, values in (("groups", groups), ("time", time)):
        if values is not None:
            check_consistent_length(rows, values)
            if np.ndim(values) != 1:
                raise ValueError(f"{name}: expected one value per row, got {np.ndim(values)} axes")
    if time is not None:
        if groups is not None:
            raise ValueError("groups, time: expected one of them, got both")
        return [_by_time(rows, np.asarray(time), fraction)]
    if classes is not None and np.bincount(classes.astype(np.intp)).min() < max(2, n_folds):
        classes = None
    if groups is not None:
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise ValueError(f"groups: expected at least 2 of them, got {n_groups}")
        if n_folds > 1:
            folds = GroupKFold(min(n_folds, n_groups), shuffle=True, random_state=seed)
            return [_sorted(rows, part) for part in folds.split(rows, groups=groups)]
        once = GroupShuffleSplit(1, test_size=fraction, random_state=seed)
        return [_sorted(rows, part) for part in once.split(rows, groups=groups)]
    if n_folds > 1:
        n_folds = min(n_folds, n_rows)
        kind = KFold if classes is None else StratifiedKFold
        folds = kind(n_folds, shuffle=True, random_state=seed)
        return [_sorted(rows, part) for part in folds.split(rows, classes)]
    learned, watched = train_test_split(
        rows, test_size=fraction, stratify=classes, random_state=seed
    )
    return [(np.sort(learned), np.sort(watched))]


def _sorted(rows: Any, part: Part) -> Part:
    return np.sort(rows[part[0]]), np.sort(rows[part[1]])


def _by_time(rows: Any, time: Any, fraction: float | int) -> Part:
    order = np.argsort(time, kind="stable")
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * len(rows)))
    # Rows of the same time are not divided.
    first = time[order[max(1, len(rows) - wanted)]]
    watched = time >= first
    if watched.all():
        raise ValueError("time: expected different values, so that some rows come before others")
    return rows[~watched], rows[watched]
