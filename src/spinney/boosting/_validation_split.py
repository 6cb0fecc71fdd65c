"""Splits of the rows into training and validation rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_consistent_length

from spinney.boosting._fit_plan import Fold
from spinney.distributed.totals import Totals, row_keys

__all__ = ["split_rows"]


def split_rows(
    numbers: Any,
    *,
    n_folds: int,
    fraction: float | int,
    classes: Any = None,
    groups: Any = None,
    time: Any = None,
    seed: int,
    totals: Totals | None = None,
    as_sklearn: bool = False,
) -> list[Fold]:
    """Split rows into training and validation rows, once or in folds.

    The split depends on the seed and on the row numbers in the whole table. Several workers
    therefore split their rows as one worker with all rows does.

    Parameters
    ----------
    numbers : ndarray of uint64
        Numbers of this worker's rows in the whole table.
    n_folds : int
        Number of folds; 1 means one split by `fraction`.
    fraction : float or int
        Share or number of validation rows of one split.
    classes : array of shape (n_rows,) or None
        The split is stratified by these.
    groups : array of shape (n_rows,) or None
        Rows of a group stay together.
    time : array of shape (n_rows,) or None
        The latest rows are the validation rows of one split.
    seed : int
        Seed of the random order.
    totals : Totals or None
        All-reduces; None: this worker has all rows.
    as_sklearn : bool
        Whether to draw the same rows as scikit-learn; this worker must have all rows.

    Returns
    -------
    list of Fold
        Training and validation rows of each fold, ascending.
    """
    numbers = np.asarray(numbers, dtype=np.uint64)
    rows = np.arange(len(numbers), dtype=np.uint32)
    for name, values in (("groups", groups), ("time", time)):
        if values is not None:
            check_consistent_length(rows, values)
            if np.ndim(values) != 1:
                raise ValueError(f"{name}: expected one value per row, got {np.ndim(values)} axes")
    if time is not None:
        if groups is not None:
            raise ValueError("groups, time: expected one of them, got both")
        return [_split_by_time(rows, np.asarray(time), fraction)]
    totals = Totals() if totals is None else totals
    if classes is not None:
        classes = classes.astype(np.intp)
        n_classes = int(totals.largest(classes.max(initial=0))[0]) + 1
        counts = totals.add(np.bincount(classes, minlength=n_classes))
        if counts[counts > 0].min() < max(2, n_folds):
            classes = None
    if as_sklearn and groups is None and n_folds == 1:
        train, validation = train_test_split(
            rows, test_size=fraction, stratify=classes, random_state=seed
        )
        return [Fold(np.sort(train), np.sort(validation))]
    units = "rows"
    unit_of_row: Any = slice(None)
    if groups is not None:
        # Groups are split instead of rows. The number of a group is that of its first row.
        units, classes = "groups", None
        _, first, unit_of_row = np.unique(groups, return_index=True, return_inverse=True)
        numbers = numbers[first]
        n_groups = totals.count(len(first))
        if n_groups < 2:
            raise ValueError(f"groups: expected at least 2 of them, got {n_groups}")
    keys = row_keys(seed, numbers)
    classes = np.zeros(len(keys), np.intp) if classes is None else classes
    if n_folds > 1:
        fold, n_folds = _fold_numbers(keys, classes, n_folds, totals)
    else:  # block 0 is the validation set
        fold = _draw(keys, classes, fraction, totals, units)
    fold = fold[unit_of_row]
    return [Fold(rows[fold != k], rows[fold == k]) for k in range(n_folds)]


def _fold_numbers(keys: Any, classes: Any, n_folds: int, totals: Totals) -> tuple[Any, int]:
    """Return the fold of each row, and the number of folds.

    There are at most as many folds as rows. Their sizes differ by at most one row, in total and in
    each class. In each class, the rows with the smallest keys are in the first fold, the next ones
    in the second, and so on.
    """
    counts = _class_counts(classes, totals)
    n = int(counts.sum())
    n_folds = min(n_folds, n)
    if n_folds < 2:
        raise ValueError(f"n_folds: expected at least 2 rows to split into folds, got {n}")
    # Assign the rows, sorted by class, to the folds round-robin. Fold k then has
    # ceil((end - k) / n_folds) of the first `end` rows.
    ends = np.cumsum(counts)[:, np.newaxis]
    assigned = -((np.arange(n_folds) - ends) // n_folds)
    sizes = np.diff(assigned, axis=0, prepend=0)
    return _blocks(keys, classes, sizes, totals), n_folds


def _draw(keys: Any, classes: Any, fraction: float | int, totals: Totals, units: str) -> Any:
    """Return the block of each row: 0 for the smallest keys of each class, else 1."""
    counts = _class_counts(classes, totals)
    n = int(counts.sum())
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * n))
    if not 0 < wanted < n:
        raise ValueError(
            f"validation_fraction={fraction}: expected a split with training and validation "
            f"{units}, got {n} {units}"
        )
    shares = wanted * counts / n
    sizes = np.floor(shares).astype(np.int64)
    # Rounding down leaves some rows over; the classes with the largest remainders get them.
    first = np.argsort(sizes - shares, kind="stable")
    sizes[first[: wanted - int(sizes.sum())]] += 1
    return _blocks(keys, classes, np.stack([sizes, counts - sizes], axis=1), totals)


def _class_counts(classes: Any, totals: Totals) -> Any:
    n_classes = int(totals.largest(classes.max(initial=0))[0]) + 1
    return totals.add(np.bincount(classes, minlength=n_classes))


def _blocks(keys: Any, classes: Any, sizes: Any, totals: Totals) -> Any:
    """Split the rows of each class, sorted by key, into blocks of given sizes.

    Parameters
    ----------
    keys : ndarray of uint64
        Keys, distinct over the rows of all workers.
    classes : ndarray of int
        Class of each row.
    sizes : ndarray of shape (n_classes, n_blocks)
        Numbers of rows over all workers.

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


def _split_by_time(rows: Any, time: Any, fraction: float | int) -> Fold:
    order = np.argsort(time, kind="stable")
    wanted = fraction if isinstance(fraction, int) else int(np.ceil(fraction * len(rows)))
    # Rows of the same time stay together.
    first = time[order[max(1, len(rows) - wanted)]]
    is_validation = time >= first
    if is_validation.all():
        raise ValueError("time: expected at least two distinct values, got one")
    return Fold(rows[~is_validation], rows[is_validation])
