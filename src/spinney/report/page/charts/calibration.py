"""Calibration: observed share against predicted probability."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.evidence import CalibrationCurve
from spinney.report.page.charts.frame import make_frame
from spinney.report.page.charts.svg import drawable, make_svg, plain, polyline, tag
from spinney.report.page.numbers import share

__all__ = ["draw_calibration"]

WIDTH, HEIGHT = 276.0, 256.0


def draw_calibration(calibration: CalibrationCurve, number: int = 1) -> Markup | None:
    """Draw a dot for each bin; dots on the diagonal are calibrated probabilities."""
    bins = zip(calibration.predicted, calibration.observed, calibration.counts, strict=True)
    kept = sorted((p, o, n) for p, o, n in bins if drawable(p) and drawable(o) and n > 0)
    if not kept:
        return None
    frame = make_frame(
        (WIDTH, HEIGHT), (0.0, 1.0), (0.0, 1.0), "predicted probability", "observed share"
    )
    diagonal = [(frame.x.start, frame.y.start), (frame.x.end, frame.y.end)]
    parts = [polyline(diagonal, class_="guide")]
    points = [(frame.x.at(p), frame.y.at(o)) for p, o, _ in kept]
    if len(points) > 1:
        parts.append(polyline(points, class_=f"line s{number}"))
    most = max(n for _, _, n in kept)
    for (x, y), (predicted, observed, n) in zip(points, kept, strict=True):
        title = f"predicted {share(predicted)}, observed {share(observed)}, {n:,} rows"
        radius = 2.0 + 2.5 * (n / most) ** 0.5
        parts.append(
            tag("circle", tag("title", title), cx=x, cy=y, r=radius, class_=f"dot s{number}")
        )
    about = f"Calibration of {plain(calibration.model)}: mean distance {share(calibration.error)}"
    return make_svg(WIDTH, HEIGHT, about, frame.drawn, *parts)
