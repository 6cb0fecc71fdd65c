"""How a report writes numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from spinney.comparison.comparison import Comparison, Estimate
from spinney.report.page.charts.axis import short_exponent

__all__ = ["Measure", "measure_of", "seconds", "share", "size", "value"]


@dataclass(frozen=True)
class Measure:
    """What models are ranked by, and how it is written.

    Attributes
    ----------
    name : str
        A word for sentences.
    words : str
        The name with its unit, for headings.
    unit : str
        What follows a number.
    scale : float
        What numbers are multiplied with before they are written.
    decimals : int
        Digits after the point, so that standard errors have two.
    greater_is_better : bool
    """

    name: str
    words: str
    unit: str
    scale: float
    decimals: int
    greater_is_better: bool

    def number(self, number: float) -> str:
        """Write one number, without its unit."""
        scaled = number * self.scale
        if not math.isfinite(scaled):
            return "–"
        if abs(scaled) >= 1e9:
            return short_exponent(f"{scaled:.4g}")
        return f"{scaled:,.{self.decimals}f}".replace("-", "−")

    def estimate(self, estimate: Estimate) -> str:
        """Write a number with its unit and its standard error, where it has one."""
        mean = f"{self.number(estimate.mean)}{self.unit}"
        return f"{mean} ± {self.number(estimate.se)}" if math.isfinite(estimate.se) else mean


def measure_of(comparison: Comparison) -> Measure:
    """Return how the numbers of a comparison are written."""
    share_of_rows = comparison.metric == "error"
    scale = 100.0 if share_of_rows else 1.0
    estimates = [result.estimate for result in comparison.results if result.estimate]
    decimals = _decimals(scale * estimate.se for estimate in estimates)
    if decimals is None:
        # A single fold: four digits of the best.
        best = scale * estimates[0].mean if estimates else 1.0
        decimals = _decimals([abs(best) / 100])
    name = {"error": "error", "rmse": "RMSE"}.get(comparison.metric, comparison.metric)
    return Measure(
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
    """Write a time in its own unit."""
    if not math.isfinite(number):
        return "–"
    if number < 0.001:
        return "< 1 ms"
    if number < 0.9995:
        return f"{1000 * number:.0f} ms"
    return f"{number:.1f} s" if number < 99.95 else f"{number:,.0f} s"


def size(n_bytes: int | None) -> str:
    """Write a number of bytes."""
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
    """Write a share in per cent; 0 and 100 only where it is."""
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
    """Write a number of the table with about four digits."""
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
