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

from spinney.ensemble._totals import Totals, row_keys

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
    numbers: Any = None,
    totals: Totals | None = None,
    as_sklearn: bool = False,
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
    numbers : ndarray of uint64 or None
        Numbers of the rows in the whole table, where other workers have some; None: all are here.
    totals : Totals or None
        What the workers know together.
    as_sklearn : bool
        Draw the rows that scikit-learn draws. It needs all of them here.

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
    totals = Totals() if totals is None else totals
    if classes is not None:
        classes = classes.astype(np.intp)
        n_classes = int(totals.largest(classes.max(initial=0))[0]) + 1
        of_class = totals.add(np.bincount(classes, minlength=n_classes))
        if of_class[of_class > 0].min() < max(2, n_folds):
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
    if as_sklearn and numbers is None:
        learned, watched = train_test_split(
            rows, test_size=fraction, stratify=classes, random_state=seed
        )
        return [(np.sort(learned), np.sort(watched))]
    keys = row_keys(seed, rows.astype(np.uint64) if numbers is None else numbers)
    watched = _draw(
        keys, np.zeros(n_rows, np.intp) if classes is None else classes, fraction, totals
    )
    return [(rows[~watched], rows[watched])]


def _draw(keys: Any, classes: Any, fraction: float | int, totals: Totals) -> Any:
    """Mark the rows with the smallest keys, of each class its share."""
    n_classes = int(totals.largest(classes.max(initial=0))[0]) + 1
    counts = totals.add(np.bincount(classes, minlength=n_classes))
    n = int(counts.sum())
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * n))
    if not 0 < wanted < n:
        raise ValueError(
            f"validation_fraction={fraction}: expected to leave rows to learn from and rows to "
            f"watch, but there are {n} rows"
        )
    shares = wanted * counts / n
    of_class = np.floor(shares).astype(np.int64)
    # What rounding left over goes to the classes that it took most from.
    first = np.argsort(of_class - shares, kind="stable")
    of_class[first[: wanted - int(of_class.sum())]] += 1
    marked = np.zeros(len(keys), dtype=bool)
    for k in np.flatnonzero(of_class):
        own = classes == k
        last = totals.smallest_keys(keys[own], None, int(of_class[k]))[0]
        marked |= own & (keys <= np.uint64(last))
    return marked


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
