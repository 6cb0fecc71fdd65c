"""Profiles of the columns of a table: missing values, ranges, frequencies, histograms."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.data.task import Task
from spinney.inspection.table_view import TableView
from spinney.report.evidence import ColumnProfile, Histogram, TargetProfile

if TYPE_CHECKING:
    from spinney.io import ColumnKind, ColumnKinds

__all__ = ["histogram_of", "profile_columns", "profile_target"]

_BINS = 24
_MOST_FREQUENT = 8


def histogram_of(values: NDArray[Any], bins: int = _BINS) -> Histogram | None:
    """Count finite values in bins of equal width; None if there are none."""
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(high - low):  # a range beyond float64
        return None
    whole = bool(np.all(values == np.rint(values))) and high - low < bins
    edges: Any = np.arange(low - 0.5, high + 1.0) if whole and high > low else bins
    try:
        counts, edges = np.histogram(values, bins=edges)
    except ValueError:  # the range is too narrow for bins of positive width
        return None
    if not (np.diff(edges) > 0).all():  # NumPy 2.0 raises no error
        return None
    return Histogram([float(edge) for edge in edges], [int(count) for count in counts])


def profile_target(y: NDArray[Any], task: Task, name: str) -> TargetProfile:
    """Describe the column to predict."""
    if task == "classification":
        classes, counts = np.unique(y, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return TargetProfile(
            name,
            task,
            classes=[str(label) for label in classes[order]],
            counts=[int(count) for count in counts[order]],
        )
    return TargetProfile(
        name,
        task,
        histogram=histogram_of(y),
        low=float(y.min()),
        mean=float(y.mean()),
        high=float(y.max()),
        spread=float(y.std()),
    )


def profile_columns(
    X: Any, kinds: ColumnKinds | None = None, frame: Any = None
) -> list[ColumnProfile]:
    """Describe the columns of X; with `kinds` and `frame`, also the unused columns."""
    view = TableView(X)
    known = {column.name: column for column in kinds.columns} if kinds is not None else {}
    seen = {name: _profile(view, j, known.get(name)) for j, name in enumerate(view.names)}
    if kinds is None:
        return list(seen.values())
    return [seen.get(column.name) or _unused_column(column, frame) for column in kinds.columns]


def _profile(view: TableView, j: int, kind: ColumnKind | None) -> ColumnProfile:
    missing = len(view.missing_rows(j))
    reason, flags = (kind.reason, list(kind.flags)) if kind is not None else ("", [])
    if view.is_category(j):
        levels = view.levels(j)
        order = np.argsort(-levels.counts, kind="stable")[:_MOST_FREQUENT]
        return ColumnProfile(
            view.names[j],
            kind.kind if kind is not None else "category",
            True,
            missing=missing,
            distinct=len(levels.labels),
            common=[(levels.labels[level], int(levels.counts[level])) for level in order],
            reason=reason,
            flags=flags,
        )
    numbers = view.numbers(j)
    present = numbers[~np.isnan(numbers)]
    finite = present[np.isfinite(present)]
    return ColumnProfile(
        view.names[j],
        kind.kind if kind is not None else "number",
        True,
        missing=missing,
        distinct=len(np.unique(present)),
        low=float(finite.min()) if len(finite) else None,
        mean=float(finite.mean()) if len(finite) else None,
        high=float(finite.max()) if len(finite) else None,
        histogram=histogram_of(present),
        reason=reason,
        flags=flags,
        has_times_of_day=kind is not None and kind.has_times_of_day,
    )


def _unused_column(column: ColumnKind, frame: Any) -> ColumnProfile:
    missing = distinct = 0
    if frame is not None:
        # Imported here, as pyarrow is needed only for tables from files.
        import pyarrow as pa
        import pyarrow.compute as pc

        values = frame[column.name]
        missing = values.null_count
        with suppress(pa.ArrowNotImplementedError):  # for example lists
            distinct = pc.count_distinct(values, mode="only_valid").as_py()
    return ColumnProfile(
        column.name,
        column.kind,
        False,
        reason=column.reason,
        flags=list(column.flags),
        missing=int(missing),
        distinct=int(distinct),
    )
