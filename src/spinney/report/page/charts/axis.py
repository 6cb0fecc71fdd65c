"""Axes of charts: coordinates of values, and ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from spinney.report.page.charts.svg import drawable

_SMALLEST_STEP = 1e-300  # smaller steps are subnormal and lose digits

__all__ = ["Axis", "number_text", "padded", "round_steps", "short_exponent"]

# Unit and its letter; the smallest maximum and the smallest gap between ticks to use it.
UNITS = (
    (1e12, "T", 1e12, 1e11),
    (1e9, "G", 1e9, 1e8),
    (1e6, "M", 1e6, 1e5),
    (1e3, "k", 1e4, 500.0),
)
LOG_SPAN = 8.0  # a ratio of maximum to minimum from which an axis is logarithmic


@dataclass(frozen=True)
class Axis:
    """A map of values from `low` to `high` to coordinates from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the coordinate of a value; values beyond an end get that end."""
        low, high, value = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, value = math.log(low), math.log(high), math.log(value)
        share = (value - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.end - self.start)

    def ticks(self, at_most: int) -> list[tuple[float, str]]:
        """Return round numbers on the axis with their labels."""
        if self.logarithmic:
            return _log_ticks(self.low, self.high, at_most)
        steps = round_steps(self.low, self.high, at_most)
        gap = steps[1] - steps[0] if len(steps) > 1 else max(abs(steps[0]), 1e-300)
        largest = max(abs(step) for step in steps)
        return [(step, number_text(step, gap, largest)) for step in steps]


def padded(
    values: Iterable[float], margin: float = 0.05, *, around_zero: bool = False
) -> tuple[float, float]:
    """Return the ends of an axis for the values with a margin; (0, 1) without values."""
    kept = [value for value in values if drawable(value)]
    if not kept:
        return 0.0, 1.0
    low, high = min(kept), max(kept)
    if around_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    # Wide enough for distinct floating-point numbers along the axis.
    least = max(abs(low), abs(high)) * 1e-9
    if high - low <= least:
        room = max(abs(low) * 0.05, least, 1e-290) if low else 1.0
        return low - room, high + room
    room = (high - low) * margin
    below = 0.0 if around_zero and low == 0 else room
    above = 0.0 if around_zero and high == 0 else room
    return low - below, high + above


def round_steps(low: float, high: float, at_most: int) -> list[float]:
    """Return multiples of 1, 2 or 5 times a power of ten from `low` to `high`."""
    span = high - low
    if not span / max(at_most, 1) > _SMALLEST_STEP or at_most < 2:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / at_most))
    for factor in (1, 2, 5, 10, 20, 50):
        step = factor * power
        if step <= 0 or not math.isfinite(step):
            return [low, high]
        # The tolerance keeps an end that rounding has moved.
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < at_most:
            return [number * step for number in range(first, last + 1)] or [low]
    return [low, high]


def _log_ticks(low: float, high: float, at_most: int) -> list[tuple[float, str]]:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [factor * 10.0**power for power in powers for factor in factors]
        values = [
            value for value in values if low <= value * (1 + 1e-9) and value <= high * 1.000001
        ]
        if len(values) <= at_most:
            break
    if len(values) > at_most:
        values = values[:: math.ceil(len(values) / at_most)]
    if len(values) < 2:
        values = [low, high]
    return [(value, number_text(value, value, value)) for value in values]


def number_text(value: float, gap: float, largest: float) -> str:
    """Format a tick with the digits that a `gap` needs, in the unit of the largest."""
    if abs(value) < gap * 1e-6:
        return "0"
    if largest >= 1e15 or (largest < 1e-3 and gap < 1e-4):
        digits = min(15, max(3, math.floor(math.log10(largest / gap)) + 2))
        return short_exponent(f"{value:.{digits}g}")
    for unit, letter, at_least, finest in UNITS:
        if largest >= at_least and gap >= finest:
            return f"{_decimal(value / unit, gap / unit)}{letter}"
    return _decimal(value, gap)


def _decimal(value: float, gap: float) -> str:
    decimals = min(9, max(0, math.ceil(-math.log10(gap) - 1e-9)))
    return f"{value:,.{decimals}f}".replace("-", "−")


def short_exponent(written: str) -> str:
    """Format 1e+06 as 1e6 and -1e-05 as −1e−5."""
    mantissa, mark, exponent = written.partition("e")
    return f"{mantissa}{mark}{int(exponent) if exponent else ''}".replace("-", "−")
