"""Rows of the tables about the data: classes of the target, and columns."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from spinney.report.evidence import ColumnProfile, TargetProfile, date_writer
from spinney.report.page import numbers
from spinney.report.page.charts.sparkline import draw_share, draw_sparkline
from spinney.report.page.charts.svg import plain, short

__all__ = ["ClassRow", "ColumnRow", "class_rows", "column_row"]


@dataclass(frozen=True)
class ClassRow:
    """The formatted cells of a class of the target."""

    name: str
    count: str
    part: str
    bar: Markup


@dataclass(frozen=True)
class ColumnRow:
    """The formatted cells of a column."""

    name: str
    kind: str
    used: bool
    shape: Markup | None
    values: str
    distinct: str
    missing: str
    flags: list[str]
    reason: str


def class_rows(target: TargetProfile) -> list[ClassRow]:
    """Return one row per class, most frequent first."""
    total, most = sum(target.counts) or 1, max(target.counts, default=0) or 1
    rows = []
    for name, count in zip(target.classes, target.counts, strict=True):
        part = numbers.share(count / total)
        bar = draw_share(count / most, f"{plain(name)}: {part}")
        rows.append(ClassRow(plain(name), f"{count:,}", part, bar))
    return rows


def column_row(column: ColumnProfile, n_rows: int) -> ColumnRow:
    """Return the cells of one column."""
    name = plain(column.name)
    shape, values = None, ""
    if column.histogram is not None:
        shape = draw_sparkline(column.histogram.counts, f"Histogram of {name}")
    elif column.common:
        counts = [count for _, count in column.common]
        shape = draw_sparkline(counts, f"Most frequent values of {name}", categories=True)
    if column.low is not None and column.high is not None:
        write = date_writer(column) or numbers.value
        values = f"{write(column.low)} … {write(column.high)}"
        if column.mean is not None:
            values += f", mean {write(column.mean)}"
    elif column.common:
        values = ", ".join(short(text, 110) for text, _ in column.common[:3])
        if column.distinct > 3:
            values += ", …"
    missing = f"{column.missing:,}" if column.missing else ""
    if missing and n_rows:
        missing += f" ({numbers.share(column.missing / n_rows, 0)})"
    flags = [plain(flag) for flag in column.flags]
    reason = plain(column.reason) if column.reason else ""
    return ColumnRow(
        name, plain(column.kind), column.used, shape, values,
        f"{column.distinct:,}" if column.distinct or column.used else "", missing, flags, reason,
    )  # fmt: skip
