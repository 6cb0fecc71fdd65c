"""The folds of a comparison, the same for all models."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.errors import ParameterError
from spinney.data.messages import Parameter
from spinney.data.notes import Note, NoteKind
from spinney.data.task import Task

__all__ = ["FoldKind", "Folds", "make_folds", "most_folds", "usual_folds"]

Rows = NDArray[np.intp]


class FoldKind(Enum):
    """How rows are assigned to folds; the value is what results print."""

    PLAIN = "folds"
    STRATIFIED = "stratified folds"
    GROUPED = "folds of whole groups"
    IN_TIME = "folds, each after its training rows"


@dataclass(frozen=True)
class Folds:
    """Training and test rows of each fold, and how they were assigned."""

    splits: list[tuple[Rows, Rows]]
    kind: FoldKind


def make_folds(
    y: NDArray[Any],
    task: Task,
    cv: Any,
    *,
    groups: NDArray[Any] | None,
    time: NDArray[Any] | None,
    random_state: int | None,
    notes: list[Note],
) -> Folds:
    """Return random folds, folds of whole groups, or folds in time order."""
    if groups is not None and time is not None:
        raise ParameterError(
            Parameter("groups"), " and ", Parameter("time"), " cannot be given together"
        )
    if not isinstance(cv, Integral):
        if groups is not None or time is not None:
            raise ParameterError(
                Parameter("cv"), f" must be a number of folds with groups or time, got {cv!r}"
            )
        return _given_folds(y, task, cv)
    n_folds = int(cv)
    if not 2 <= n_folds <= len(y):
        raise ParameterError(
            Parameter("cv"), f" must be between 2 and the number of rows ({len(y)}), got {cv}"
        )
    if time is not None:
        return _folds_in_time(y, time, n_folds)
    if groups is not None:
        return _folds_of_groups(y, task, groups, n_folds, random_state)
    return _random_folds(y, task, n_folds, random_state, notes)


def most_folds(y: NDArray[Any], task: Task) -> int:
    """Return the largest possible number of folds: the rows, or those of the largest class."""
    if task == "classification" and len(y):
        return int(np.unique(y, return_counts=True)[1].max())
    return len(y)


def usual_folds(y: NDArray[Any], task: Task, groups: Any = None, time: Any = None) -> int:
    """Return 10, or fewer if the rows, groups or different times are fewer."""
    most = most_folds(y, task)
    if groups is not None:
        most = min(len(y), len(np.unique(groups)))
    if time is not None:
        most = min(len(y), len(np.unique(time)) - 1)
    if most < 2:
        reason = f"{len(y)} row{'' if len(y) == 1 else 's'}"
        if groups is not None or time is not None:
            reason = "too few groups" if time is None else "too few different times"
        elif len(y) > 1:
            reason = f"each of the {len(y):,} rows has a class of its own"
        raise ValueError(f"too few rows for cross-validation: {reason}")
    return min(10, most)


def _given_folds(y: NDArray[Any], task: Task, cv: Any) -> Folds:
    # Imported late, for start-up time.
    from sklearn.model_selection import check_cv

    splits = _split(check_cv(cv, y, classifier=task == "classification"), y)
    if not splits:
        raise ParameterError(Parameter("cv"), " has no folds")
    return Folds(splits, FoldKind.PLAIN)


def _random_folds(
    y: NDArray[Any], task: Task, n_folds: int, random_state: int | None, notes: list[Note]
) -> Folds:
    # Imported late, for start-up time.
    from sklearn.model_selection import KFold, StratifiedKFold

    if task == "regression":
        splitter = KFold(n_folds, shuffle=True, random_state=random_state)
        return Folds(_split(splitter, y), FoldKind.PLAIN)
    _, counts = np.unique(y, return_counts=True)
    if counts.max() < n_folds:
        raise ParameterError(
            Parameter("cv", n_folds),
            f" folds need a class of {n_folds} rows or more; the largest class has {counts.max()}",
        )
    if counts.min() < n_folds:
        rows = f"{counts.min()} row{'' if counts.min() == 1 else 's'}"
        text = f"the rarest class has {rows}, fewer than the {n_folds} folds"
        notes.append(Note(text, kind=NoteKind.RARE_CLASSES))
    stratified = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return Folds(_split(stratified, y), FoldKind.STRATIFIED)


def _folds_of_groups(
    y: NDArray[Any], task: Task, groups: NDArray[Any], n_folds: int, random_state: int | None
) -> Folds:
    # Imported late, for start-up time.
    from sklearn.model_selection import GroupKFold, StratifiedGroupKFold

    _, numbers = np.unique(groups.astype(str) if groups.dtype == object else groups, False, True)
    n_groups = int(numbers.max()) + 1
    if n_groups < n_folds:
        raise ParameterError(
            Parameter("cv", n_folds), f" folds need as many groups; there are {n_groups}"
        )
    kind = StratifiedGroupKFold if task == "classification" else GroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=random_state)
    return Folds(_split(splitter, y, numbers), FoldKind.GROUPED)


def _folds_in_time(y: NDArray[Any], time: NDArray[Any], n_folds: int) -> Folds:
    """Return folds whose training rows are earlier; rows of the same time stay together."""
    moments, numbers = np.unique(time, return_inverse=True)
    if len(moments) < n_folds + 1:
        raise ParameterError(
            Parameter("cv", n_folds),
            f" folds in time need {n_folds + 1} different times; there are {len(moments)}",
        )
    rows_until = np.cumsum(np.bincount(numbers))
    # Split times so that the blocks have nearly equal numbers of rows, at least one time each.
    ends: list[int] = []
    for part in range(1, n_folds + 2):
        end = int(np.searchsorted(rows_until, len(y) * part / (n_folds + 1) - 0.5)) + 1
        last = len(moments) - (n_folds + 1 - part)
        ends.append(min(max(end, (ends[-1] if ends else 0) + 1), last))
    splits = [
        (np.flatnonzero(numbers < start), np.flatnonzero((numbers >= start) & (numbers < end)))
        for start, end in pairwise(ends)
    ]
    return Folds(splits, FoldKind.IN_TIME)


def _split(splitter: Any, y: NDArray[Any], groups: Any = None) -> list[tuple[Rows, Rows]]:
    with warnings.catch_warnings():
        # A note replaces this warning.
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = list(splitter.split(np.zeros((len(y), 1)), y, groups))
    return [(np.asarray(train), np.asarray(test)) for train, test in folds]
