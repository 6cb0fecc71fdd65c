"""Rows of the ranking, each with its score and a whisker."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from markupsafe import Markup

from spinney.comparison.comparison import Comparison, ModelResult
from spinney.report.page import numbers
from spinney.report.page.charts.axis import Axis, padded
from spinney.report.page.charts.frame import fitting_ticks
from spinney.report.page.charts.sparkline import INSET, WHISKER_WIDTH, draw_whisker
from spinney.report.page.charts.svg import drawable, label, make_svg, plain
from spinney.report.page.numbers import MeasureFormat
from spinney.report.page.summary import best_of

__all__ = ["Ranking", "RankingRow", "make_ranking"]

TICK = 12.0  # font size above the whiskers
FAR = 4.0  # a model this many times farther behind than the median gets an arrow


@dataclass(frozen=True)
class RankingRow:
    """The formatted cells of a model; `reason` explains a missing score."""

    name: str
    title: str
    kind: str  # "best", "tied", "rest", "failed" or "skipped"
    score: str = ""
    whisker: Markup | None = None
    behind: str = ""
    p_value: str = ""
    r2: str = ""
    fit: str = ""
    predict: str = ""
    size: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Ranking:
    """Rows, the axis above the whiskers, and which columns are not empty."""

    rows: list[RankingRow]
    axis: Markup | None
    grid: str  # CSS backgrounds: grid lines through all rows
    has_scores: bool
    has_whiskers: bool
    has_behind: bool
    has_r2: bool
    has_size: bool
    has_arrows: bool


def make_ranking(comparison: Comparison, measure: MeasureFormat) -> Ranking:
    """Return one row per result, best first."""
    best = best_of(comparison)
    means = [r.estimate.mean * measure.scale for r in comparison.results if r.estimate]
    means = [mean for mean in means if drawable(mean)]
    axis = _axis(comparison, measure) if means else None
    rows = [_row(result, best, measure, axis) for result in comparison.results]
    ticks = fitting_ticks(axis, WHISKER_WIDTH, TICK) if axis else []
    head = None
    if axis:
        marks = [
            label(axis.at(v), 12, t, class_="tick", size=TICK, text_anchor="middle")
            for v, t in ticks
        ]
        head = make_svg(WHISKER_WIDTH, 16.0, f"Axis of {measure.heading}", *marks, class_="spark")
    line = "linear-gradient(var(--rule),var(--rule))"
    return Ranking(
        rows,
        head,
        ",".join(f"{line} {axis.at(v):.1f}px 0/1px 100% no-repeat" for v, _ in ticks)
        if axis
        else "none",
        any(row.score for row in rows),
        any("±" in row.score for row in rows),
        any(row.behind for row in rows),
        comparison.metric != "r2" and any(row.r2 for row in rows),
        any(result.size is not None for result in comparison.results),
        axis is not None and any(not axis.low <= mean <= axis.high for mean in means),
    )


def _axis(comparison: Comparison, measure: MeasureFormat) -> Axis:
    """Return an axis for the good models; much worse models are beyond its end."""
    scored = [
        (result.estimate.mean * measure.scale, result.estimate.se * measure.scale)
        for result in comparison.results
        if result.estimate and drawable(result.estimate.mean * measure.scale)
    ]
    best = scored[0][0]
    behind = sorted(abs(mean - best) for mean, _ in scored[1:])
    limit = FAR * statistics.median(behind) if behind else 0.0
    near = [(mean, se) for mean, se in scored if abs(mean - best) <= limit] or scored
    ends = [
        end
        for mean, se in near
        for end in ((mean - se, mean + se) if drawable(mean + se) else (mean,))
    ]
    return Axis(*padded(ends), INSET, WHISKER_WIDTH - INSET)


def _row(
    result: ModelResult, best: ModelResult | None, measure: MeasureFormat, axis: Axis | None
) -> RankingRow:
    name, title = plain(result.name), plain(result.title) if result.title else ""
    if title.lower().replace(" ", "_") == name.lower():
        title = ""
    if result.estimate is None:
        kind = "skipped" if result.skipped and not result.failure else "failed"
        reason = result.failure or result.skipped or "not measured"
        return RankingRow(name, title, kind, reason=plain(reason))
    estimate = result.estimate
    kind = "best" if result is best else "tied" if result.tied else "rest"
    score = f"{measure.number(estimate.mean)}"
    if math.isfinite(estimate.mean) and math.isfinite(estimate.se):
        score += f" ± {measure.number(estimate.se)}"
    whisker = None
    if axis and drawable(estimate.mean * measure.scale):
        se = estimate.se * measure.scale
        whisker = draw_whisker(
            axis,
            estimate.mean * measure.scale,
            se if drawable(se) else 0.0,
            f"{name}: {score}",
            best=result is best,
        )
    return RankingRow(
        name,
        title,
        kind,
        score,
        whisker,
        _behind(result, measure),
        _p_value(result.p_value),
        f"{result.r2.mean:.3f}".replace("-", "−") if result.r2 else "",
        numbers.seconds(result.fit_seconds),
        numbers.seconds(result.predict_seconds),
        numbers.size(result.size),
        plain(result.skipped) if result.skipped else "",
    )


def _behind(result: ModelResult, measure: MeasureFormat) -> str:
    return measure.number(result.behind.mean) if result.behind else ""


def _p_value(p_value: float | None) -> str:
    if p_value is None or not math.isfinite(p_value):
        return ""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
