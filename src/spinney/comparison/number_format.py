"""Formatting of errors, sizes, durations and dates."""

from __future__ import annotations

from datetime import datetime, timedelta

__all__ = ["shown_error", "shown_moment", "shown_size", "shown_time"]


def shown_error(value: float, measure: str, uncertainty: float | None = None) -> str:
    """Format an error in per cent or with four digits, with its standard error if known."""
    if measure == "error":
        spread = "" if uncertainty is None else f" ± {100 * uncertainty:.2f}"
        return f"{100 * value:.2f}{spread} %"
    return f"{value:.4g}" + ("" if uncertainty is None else f" ± {uncertainty:.2g}")


def shown_size(n_bytes: int) -> str:
    """Format the size of a file."""
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{n_bytes} bytes"
        size /= 1000
    return f"{size:.3g} GB"


def shown_time(seconds: float) -> str:
    """Format a duration."""
    if seconds < 0.001:
        return "<0.001 s"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"


def shown_moment(days: float, *, of_day: bool = False) -> str:
    """Format days since 1970-01-01 as a date, with the time unless it is midnight.

    Examples
    --------
    >>> shown_moment(19723.0), shown_moment(19723.5), shown_moment(0.25, of_day=True)
    ('2024-01-01', '2024-01-01 12:00', '06:00')
    """
    if not -719_162 <= days < 2_932_896:  # the years 1 to 9999
        return f"{days:g} days"
    moment = datetime(1970, 1, 1) + timedelta(minutes=round(days * 1440))
    if of_day:
        return moment.strftime("%H:%M")
    return moment.isoformat(" ", "minutes").removesuffix(" 00:00")
