"""ROC and precision–recall charts with several curves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from spinney.report.evidence import Curve
from spinney.report.page.charts.frame import make_frame
from spinney.report.page.charts.svg import drawable, make_svg, polyline, thin_out

__all__ = ["KEYED", "draw_curves", "order_curves"]

WIDTH, HEIGHT = 340.0, 310.0
KEYED = 6  # distinguishable colours and dashes


def order_curves(curves: Sequence[Curve]) -> list[Curve]:
    """Return the curves in the order of the legend: of many, smallest area first."""
    if len(curves) <= KEYED:
        return list(curves)
    return sorted(curves, key=lambda curve: curve.area if math.isfinite(curve.area) else -1.0)


def draw_curves(curves: Sequence[Curve], *, precision: bool) -> Markup | None:
    """Draw curves in this order; from the seventh on, as a thin grey background."""
    labels = ("recall", "precision") if precision else ("false positive rate", "true positive rate")
    frame = make_frame((WIDTH, HEIGHT), (0.0, 1.0), (0.0, 1.0), *labels)
    drawn: list[Markup] = []
    for number, curve in enumerate(curves, 1):
        pairs = [
            (frame.x.at(x), frame.y.at(y))
            for x, y in zip(curve.x, curve.y, strict=True)
            if drawable(x) and drawable(y)
        ]
        if len(pairs) > 1:
            kind, step = (f"line s{number}", 0.7) if number <= KEYED else ("line other", 2.0)
            drawn.append(polyline(thin_out(pairs, step), class_=kind))
    if not drawn:
        return None
    floors = {round(curve.floor, 4) for curve in curves if drawable(curve.floor)}
    guide: list[Markup] = []
    if not precision:
        guide = [polyline([(frame.x.start, frame.y.start), (frame.x.end, frame.y.end)],
                          class_="guide")]  # fmt: skip
    elif len(floors) == 1:
        height = frame.y.at(floors.pop())
        guide = [polyline([(frame.x.start, height), (frame.x.end, height)], class_="guide")]
    about = "Precision over recall" if precision else "ROC curves"
    # The first curve lies on top of the others.
    return make_svg(WIDTH, HEIGHT, about, frame.drawn, *guide, *reversed(drawn))
