"""Numbers as people read them."""

from __future__ import annotations

__all__ = ["shown_error", "shown_size", "shown_time"]


def shown_error(value: float, measure: str, uncertainty: float | None = None) -> str:
    """Return an error: shares in per cent, others to four digits, with ± where that is known."""
    if measure == "error":
        spread = "" if uncertainty is None else f" ± {100 * uncertainty:.2f}"
        return f"{100 * value:.2f}{spread} %"
    return f"{value:.4g}" + ("" if uncertainty is None else f" ± {uncertainty:.2g}")


def shown_size(n_bytes: int) -> str:
    """Return a size of a file."""
    size = float(n_bytes)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{n_bytes} bytes"
        size /= 1000
    return f"{size:.3g} GB"


def shown_time(seconds: float) -> str:
    """Return a duration."""
    if seconds < 0.001:
        return "<0.001 s"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:,.0f} s"
