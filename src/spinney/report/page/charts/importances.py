"""Bar charts of permutation importances."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.evidence import ColumnImportances
from spinney.report.page.charts.dots import NamedDot, draw_dots
from spinney.report.page.charts.svg import drawable, plain
from spinney.report.page.numbers import value

__all__ = ["MOST_COLUMNS", "draw_importances"]

MOST_COLUMNS = 20


def draw_importances(
    importances: ColumnImportances, scale: float, axis_label: str
) -> Markup | None:
    """Draw a bar with a whisker of one standard error for the most important columns."""
    dots = []
    for column, mean, se in zip(
        importances.columns, importances.means, importances.ses, strict=True
    ):
        if not drawable(mean * scale):
            continue
        middle = mean * scale
        room = se * scale if drawable(se * scale) else 0.0
        title = f"{plain(column)}: {value(middle)}" + (f" ± {value(room)}" if room else "")
        dots.append(NamedDot(column, middle - room, middle, middle + room, title))
        if len(dots) == MOST_COLUMNS:
            break
    about = f"Importances of {plain(importances.model)}"
    return draw_dots(dots, axis_label, about, bars=True)
