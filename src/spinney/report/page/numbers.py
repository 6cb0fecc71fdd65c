"""Formatting of metrics, times, sizes, shares and values on the page."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from spinney.comparison.comparison import Comparison, Estimate
from spinney.report.page.charts.axis import short_exponent

__all__ = ["MeasureFormat", "measure_format", "seconds", "share", "size", "value"]


@dataclass(frozen=True)
class MeasureFormat:
    """The metric of the ranking, and how its values are formatted.

    Attributes
    ----------
    name : str
        The name, for sentences.
    heading : str
        The name with its unit, for headings.
    unit : str
        The text after a number, with a space.
    scale : float
        A factor for all values: 100 for per cent.
    decimals : int
        Digits after the decimal point: standard errors have two significant digits.
    greater_is_better : bool
    """

    name: str
    heading: str
    unit: str
    scale: float
    decimals: int
    greater_is_better: bool

    def number(self, number: float) -> str:
        """Format one value without its unit."""
        scaled = number * self.scale
        if not math.isfinite(scaled):
            return "–"
        if abs(scaled) >= 1e9:
            return short_exponent(f"{scaled:.4g}")
        return f"{scaled:,.{self.decimals}f}".replace("-", "−")

    def estimate(self, estimate: Estimate) -> str:
        """Format an estimate with its unit and its standard error, if it has one."""
        mean = f"{self.number(estimate.mean)}{self.unit}"
        return f"{mean} ± {self.number(estimate.se)}" if math.isfinite(estimate.se) else mean


def measure_format(comparison: Comparison) -> MeasureFormat:
    """Return the format for the metric of a comparison."""
    share_of_rows = comparison.metric == "error"
    scale = 100.0 if share_of_rows else 1.0
    estimates = [result.estimate for result in comparison.results if result.estimate]
    decimals = _decimals(scale * estimate.se for estimate in estimates)
    if decimals is None:
        # A single fold: four digits of the best score.
        best = scale * estimates[0].mean if estimates else 1.0
        decimals = _decimals([abs(best) / 100])
    name = {"error": "error", "rmse": "RMSE"}.get(comparison.metric, comparison.metric)
    return MeasureFormat(
        name,
        f"{name}, %" if share_of_rows else name,
        " %" if share_of_rows else "",
        scale,
        2 if decimals is None else decimals,
        comparison.greater_is_better,
    )


def _decimals(spreads: Iterable[float]) -> int | None:
    for spread in spreads:
        if math.isfinite(spread) and spread > 0:
            return min(6, max(0, 1 - math.floor(math.log10(spread))))
    return None


def seconds(number: float) -> str:
    """Format a time in milliseconds or seconds."""
    if not math.isfinite(number):
        return "–"
    if number < 0.001:
        return "< 1 ms"
    if number < 0.9995:
        return f"{1000 * number:.0f} ms"
    return f"{number:.1f} s" if number < 99.95 else f"{number:,.0f} s"


def size(n_bytes: int | None) -> str:
    """Format a number of bytes."""
    if n_bytes is None:
        return "–"
    number = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 999.5 or unit == "GB":
            return (
                f"{number:.0f} {unit}" if number >= 99.5 or unit == "B" else f"{number:.2g} {unit}"
            )
        number /= 1000
    return ""


def share(part: float, digits: int = 1) -> str:
    """Format a share in per cent; "0" and "100" only for exactly 0 and 1."""
    if not math.isfinite(part):
        return "–"
    least = 10.0**-digits
    percent = 100 * part
    if 0 < percent < least / 2:
        return f"< {least:g} %"
    if 100 - least / 2 < percent < 100:
        return f"> {100 - least:g} %"
    return f"{percent:.{digits}f} %"


def value(number: float | None) -> str:
    """Format a value of the table with about four digits."""
    if number is None or math.isnan(number):
        return "–"
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    magnitude = abs(number)
    if magnitude and not 1e-3 <= magnitude < 1e9:
        return short_exponent(f"{number:.3g}")
    if number == int(number) or magnitude >= 1e4:
        return f"{number:,.0f}".replace("-", "−")
    digits = 4 if magnitude < 1 else 3 - math.floor(math.log10(magnitude))
    written = f"{number:,.{digits}f}"
    if digits:
        written = written.rstrip("0").rstrip(".")
    return written.replace("-", "−")
