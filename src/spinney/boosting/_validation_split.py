"""Rows to learn from and rows to watch."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_consistent_length

from spinney.distributed.totals import Totals, row_keys

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
    """Split rows into training and validation rows, once or in folds.

    The split depends on the seed and the numbers of the rows in the whole table, so all workers
    together split their rows as one worker with all rows does.

    Parameters
    ----------
    n_rows : int
        How many there are, of this worker.
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
    if as_sklearn and numbers is None and groups is None and n_folds == 1:
        learned, watched = train_test_split(
            rows, test_size=fraction, stratify=classes, random_state=seed
        )
        return [(np.sort(learned), np.sort(watched))]
    place = rows.astype(np.uint64) if numbers is None else numbers
    what = "rows"
    of_row: Any = slice(None)
    if groups is not None:  # a group goes by its first row
        what, classes = "groups", None
        _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
        place = place[first]
        n_groups = totals.count(len(first))
        if n_groups < 2:
            raise ValueError(f"groups: expected at least 2 of them, got {n_groups}")
    keys = row_keys(seed, place)
    classes = np.zeros(len(keys), np.intp) if classes is None else classes
    if n_folds > 1:
        fold, n_folds = _fold_numbers(keys, classes, n_folds, totals)
    else:  # only the first fold is a validation set
        fold = _draw(keys, classes, fraction, totals, what)
    fold = fold[of_row]
    return [(rows[fold != k], rows[fold == k]) for k in range(n_folds)]


def _fold_numbers(keys: Any, classes: Any, n_folds: int, totals: Totals) -> tuple[Any, int]:
    """Assign each row to a fold, and return how many folds there are: no more than rows.

    Folds differ by one row at most, in all and in each class. In each class the rows with the
    smallest keys go to the first fold, the next ones to the second, and so on.
    """
    counts = _class_counts(classes, totals)
    n = int(counts.sum())
    n_folds = min(n_folds, n)
    if n_folds < 2:
        raise ValueError(f"n_folds: expected at least 2 rows to split into folds, got {n}")
    # Rows in the order of their classes are dealt to the folds in turn: of the first `end` rows
    # the fold k has ceil((end - k) / n_folds).
    ends = np.cumsum(counts)[:, np.newaxis]
    dealt = -((np.arange(n_folds) - ends) // n_folds)
    sizes = np.diff(dealt, axis=0, prepend=0)
    return _blocks(keys, classes, sizes, totals), n_folds


def _draw(keys: Any, classes: Any, fraction: float | int, totals: Totals, what: str) -> Any:
    """Assign the rows (or groups) with the smallest keys to 0, of each class its share."""
    counts = _class_counts(classes, totals)
    n = int(counts.sum())
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * n))
    if not 0 < wanted < n:
        raise ValueError(
            f"validation_fraction={fraction}: expected to leave {what} to learn from and {what} to "
            f"watch, but there are {n} {what}"
        )
    shares = wanted * counts / n
    of_class = np.floor(shares).astype(np.int64)
    # What rounding left over goes to the classes that it took most from.
    first = np.argsort(of_class - shares, kind="stable")
    of_class[first[: wanted - int(of_class.sum())]] += 1
    return _blocks(keys, classes, np.stack([of_class, counts - of_class], axis=1), totals)


def _class_counts(classes: Any, totals: Totals) -> Any:
    n_classes = int(totals.largest(classes.max(initial=0))[0]) + 1
    return totals.add(np.bincount(classes, minlength=n_classes))


def _blocks(keys: Any, classes: Any, sizes: Any, totals: Totals) -> Any:
    """Cut the rows of each class, in the order of their keys, into blocks of these sizes.

    Parameters
    ----------
    keys : ndarray of uint64
        Different for all rows of all workers.
    classes : ndarray of int
        Class of each row.
    sizes : ndarray of shape (n_classes, n_blocks)
        Numbers of rows, of all workers.

    Returns
    -------
    ndarray of int
        Block of each row.
    """
    ordered = [np.sort(keys[classes == k]) for k in range(len(sizes))]
    limits = totals.key_limits(ordered, np.cumsum(sizes, axis=1)[:, :-1])
    block = np.empty(len(keys), dtype=np.intp)
    for k, of_class in enumerate(limits):
        own = classes == k
        block[own] = np.searchsorted(of_class, keys[own], side="right")
    return block


def _by_time(rows: Any, time: Any, fraction: float | int) -> Part:
    order = np.argsort(time, kind="stable")
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * len(rows)))
    # Rows of the same time are not divided.
    first = time[order[max(1, len(rows) - wanted)]]
    watched = time >= first
    if watched.all():
        raise ValueError("time: expected different values, so that some rows come before others")
    return rows[~watched], rows[watched]
