"""The charts of a report: correct coordinates, for any values."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney.comparison.comparison import Comparison, Estimate, ModelResult
from spinney.report.evidence import (
    CalibrationCurve,
    ColumnImportances,
    ConfusionMatrix,
    Curve,
    DependenceCurve,
    Histogram,
    LearningCurve,
    ResidualSummary,
)
from spinney.report.page import numbers
from spinney.report.page.charts.axis import Axis, padded, round_steps
from spinney.report.page.charts.calibration import draw_calibration
from spinney.report.page.charts.confusion import (
    MOST_CLASSES,
    draw_confusion,
    hardest_classes,
    most_frequent_confusions,
)
from spinney.report.page.charts.curves import draw_curves, order_curves
from spinney.report.page.charts.dependence import draw_dependence, prediction_ends
from spinney.report.page.charts.importances import MOST_COLUMNS, draw_importances
from spinney.report.page.charts.learning import draw_learning_curves, last_steps, spread
from spinney.report.page.charts.residuals import draw_histogram, draw_predicted
from spinney.report.page.charts.sparkline import draw_sparkline, draw_whisker
from spinney.report.page.charts.svg import plain, short, tag, thin_out, width_of
from spinney.report.page.numbers import MeasureFormat, measure_format
from spinney.report.page.ranking import make_ranking

ERROR = MeasureFormat("error", "error, %", " %", 100.0, 2, False)
ANY = st.floats(allow_nan=True, allow_infinity=True)
FINITE = st.floats(-1e300, 1e300)


def coordinates(
    drawing: object, tag_name: str, class_: str, *names: str
) -> list[tuple[float, ...]]:
    """Return attributes of the elements of a kind, as numbers."""
    found = []
    for element in re.findall(rf"<{tag_name}\b[^>]*>", str(drawing)):
        attributes = dict(re.findall(r'([\w-]+)="([^"]*)"', element))
        if class_ in attributes.get("class", "").split():
            found.append(tuple(float(attributes[name]) for name in names))
    return found


# Axes


@given(FINITE, FINITE, st.integers(2, 9))
def test_steps_are_round_and_inside(a: float, b: float, at_most: int) -> None:
    low, high = padded([a, b])
    assert low < high
    steps = round_steps(low, high, at_most)
    assert 1 <= len(steps) <= max(at_most, 2)
    room = (high - low) * 1e-6
    assert all(low - room <= step <= high + room for step in steps)
    assert all(x < y for x, y in itertools.pairwise(steps))


@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_are_written_apart(low: float, span: float) -> None:
    axis = Axis(*padded([low, low + span]), 0.0, 100.0)
    texts = [text for _, text in axis.ticks(6)]
    # If the span is much smaller than the values, float64 has not enough digits.
    if span > 1e-6 * abs(low):
        assert len(set(texts)) == len(texts)


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0.0, 1.0, ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (48e3, 110e3, ["60k", "80k", "100k"]),
        (0.0, 5e6, ["0", "1M", "2M", "3M", "4M", "5M"]),
        (0.0, 9999.0, ["0", "2,000", "4,000", "6,000", "8,000"]),
        (-3.0, 3.0, ["−2", "0", "2"]),
        (1e-7, 5e-7, ["1e−7", "2e−7", "3e−7", "4e−7", "5e−7"]),
    ],
)
def test_ticks(low: float, high: float, texts: list[str]) -> None:
    assert [text for _, text in Axis(low, high, 0.0, 1.0).ticks(6)] == texts


def test_logarithmic_axis() -> None:
    axis = Axis(10.0, 1000.0, 0.0, 100.0, logarithmic=True)
    assert axis.at(100.0) == pytest.approx(50.0)
    assert [value for value, _ in axis.ticks(7)] == [10, 20, 50, 100, 200, 500, 1000]
    assert [value for value, _ in axis.ticks(3)] == [10, 100, 1000]


@given(st.lists(ANY), st.floats(0, 1))
def test_padded_contains_all_drawable_values(values: list[float], margin: float) -> None:
    low, high = padded(values, margin)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert low < high
    kept = [value for value in values if math.isfinite(value) and abs(value) <= 1e300]
    assert all(low <= value <= high for value in kept)


@given(st.lists(st.floats(22, 220), min_size=1, max_size=6))
def test_names_do_not_overlap(heights: list[float]) -> None:
    found = spread(heights, 13.0)
    assert all(b - a >= 13 - 1e-9 for a, b in itertools.pairwise(sorted(found)))
    assert max(found) <= 220 + 1e-9
    # They keep their order.
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    assert [found[i] for i in order] == sorted(found)


# Texts


@given(st.text(max_size=200), st.floats(20, 200))
def test_shortened_text_fits_its_room(text: str, room: float) -> None:
    found = short(text, room)
    assert found
    assert width_of(found) <= room + 1e-9
    assert "\n" not in found


@given(st.text(st.characters()))
def test_plain_can_be_encoded(text: str) -> None:
    found = plain(text)
    assert found
    found.encode("utf-8")
    assert found == " ".join(found.split())
    assert plain(found) == found


def test_tags_escape() -> None:
    written = tag("text", "<b>", tag("title", '"&'), x=1.0, class_='"><script>')
    assert str(written) == (
        '<text x="1" class="&#34;&gt;&lt;script&gt;">&lt;b&gt;<title>&#34;&amp;</title></text>'
    )
    with pytest.raises(ValueError, match="finite"):
        tag("circle", cx=math.nan)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (4510.2, "4,510"),
        (0.0, "0"),
        (-0.5, "−0.5"),
        (0.12345, "0.1235"),
        (12.3456, "12.35"),
        (100.0, "100"),
        (1e12, "1e12"),
        (-2.5e-7, "−2.5e−7"),
        (math.nan, "–"),
        (None, "–"),
        (math.inf, "∞"),
    ],
)
def test_value(number: float | None, text: str) -> None:
    assert numbers.value(number) == text


def test_shares_seconds_and_sizes() -> None:
    assert [numbers.share(x) for x in (0, 1, 0.5, 0.0001, 0.99999)] == [
        "0.0 %", "100.0 %", "50.0 %", "< 0.1 %", "> 99.9 %",
    ]  # fmt: skip
    assert [numbers.seconds(x) for x in (0.0001, 0.5, 0.9996, 3.14, 1234, math.nan)] == [
        "< 1 ms", "500 ms", "1.0 s", "3.1 s", "1,234 s", "–",
    ]  # fmt: skip
    assert [numbers.size(x) for x in (None, 0, 999, 1000, 43_210, 1_234_567, 5 * 10**12)] == [
        "–", "0 B", "999 B", "1 kB", "43 kB", "1.2 MB", "5000 GB",
    ]  # fmt: skip


# Coordinates in the charts


def comparison_of(means: list[float], *, greater: bool = False) -> Comparison:
    results = [
        ModelResult(f"m{index}", "", Estimate(mean, 0.001, (mean,)))
        for index, mean in enumerate(means)
    ]
    metric = "accuracy" if greater else "error"
    return Comparison("classification", metric, greater, 10, 2, 10, True, results, [])


def test_ranking_is_drawn_to_scale() -> None:
    comparison = comparison_of([0.04, 0.05, 0.06, 0.08])
    ranking = make_ranking(comparison, measure_format(comparison))
    xs = [coordinates(row.whisker, "circle", "point", "cx")[0][0] for row in ranking.rows]
    assert (xs[1] - xs[0]) * 4 == pytest.approx(xs[3] - xs[0], abs=0.1)
    assert [row.kind for row in ranking.rows] == ["best", "rest", "rest", "rest"]
    assert not ranking.has_arrows


@pytest.mark.parametrize("greater", [False, True])
def test_far_models_get_an_arrow(greater: bool) -> None:
    means = [0.04, 0.05, 0.06, 0.08, 0.9]
    if greater:
        means = [1 - mean for mean in means]
    comparison = comparison_of(means, greater=greater)
    ranking = make_ranking(comparison, measure_format(comparison))
    assert ranking.has_arrows
    arrows = ["beyond" in str(row.whisker) for row in ranking.rows]
    assert arrows == [False, False, False, False, True]
    tip = float(re.search(r'd="M([\d.]+) ', str(ranking.rows[-1].whisker))[1])  # type: ignore[index]
    assert (tip < 100) == greater


def test_whisker_is_one_standard_error() -> None:
    axis = Axis(0.0, 10.0, 0.0, 100.0)
    drawing = str(draw_whisker(axis, 5.0, 1.0, "", best=True))
    assert 'd="M40 11L60 11"' in drawing
    assert "whisker" not in str(draw_whisker(axis, 5.0, 0.0, "", best=True))


def test_histogram_is_drawn_to_scale() -> None:
    drawing = draw_histogram(Histogram([0.0, 1.0, 2.0, 4.0], [10, 0, 5]), "x")
    (x0, width0, height0), (x2, width2, height2) = coordinates(
        drawing, "rect", "bar", "x", "width", "height"
    )
    assert height0 == pytest.approx(2 * height2, abs=0.05)
    assert width2 + 1 == pytest.approx(2 * (width0 + 1), abs=0.05)
    assert x2 - x0 == pytest.approx(2 * (width0 + 1), abs=0.05)


def test_importances_are_drawn_to_scale() -> None:
    means = [0.4, 0.2, 0.1, 0.0, -0.1]
    importances = ColumnImportances("m", "error", list("abcde"), means, [0.01] * 5)
    drawing = draw_importances(importances, 100.0, "worse by")
    widths = [width for (width,) in coordinates(drawing, "rect", "bar", "width")]
    assert widths == pytest.approx(
        [4 * widths[2], 2 * widths[2], widths[2], 0.5, widths[2]], abs=0.1
    )
    many = ColumnImportances("m", "error", [str(i) for i in range(99)], [1.0] * 99, [0.1] * 99)
    assert len(coordinates(draw_importances(many, 1.0, ""), "rect", "bar", "x")) == MOST_COLUMNS


def test_good_calibration_lies_on_the_diagonal() -> None:
    shares = [0.1, 0.3, 0.5, 0.9]
    drawing = str(draw_calibration(CalibrationCurve("m", "p", shares, shares, [5] * 4, 0.0)))
    guide = re.search(r'd="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)" class="guide"', drawing)
    assert guide
    x0, y0, x1, y1 = (float(number) for number in guide.groups())
    for share, (x, y) in zip(
        shares, coordinates(drawing, "circle", "dot", "cx", "cy"), strict=True
    ):
        assert x == pytest.approx(x0 + share * (x1 - x0), abs=0.02)
        assert y == pytest.approx(y0 + share * (y1 - y0), abs=0.02)


def test_predicted_against_actual() -> None:
    numbers_of_rows = [1.0, 2.0, 3.0]
    residuals = ResidualSummary(
        "m", numbers_of_rows, numbers_of_rows, Histogram([0, 1], [3]), 0, 0, 0
    )
    drawing = str(draw_predicted(residuals))
    dots = [(float(x), float(y)) for x, y in re.findall(r"M([\d.]+) ([\d.]+)h0", drawing)]
    assert len(dots) == 3
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert (x1 - x0, y1 - y0) == pytest.approx((x2 - x1, y2 - y1), abs=0.03)
    assert x0 < x2
    assert y0 > y2


def test_learning_curves() -> None:
    curves = [
        LearningCurve("a", [10, 100, 1000], [0.3, 0.2, 0.1], [0.01, 0.01, math.nan]),
        LearningCurve("b", [10, 100], [0.3, math.nan], [0.0, 0.0]),
    ]
    drawing = draw_learning_curves(curves, ERROR)
    a = coordinates(drawing, "circle", "s1", "cx", "cy")
    assert a[1][0] - a[0][0] == pytest.approx(a[2][0] - a[1][0], abs=0.02)  # logarithmic
    assert a[1][1] - a[0][1] == pytest.approx(a[2][1] - a[1][1], abs=0.02)
    assert coordinates(drawing, "circle", "s2", "cx", "cy") == [a[0]]
    assert last_steps(curves, ERROR) == [("a", "100 → 1,000", "−10.00")]
    assert draw_learning_curves([], ERROR) is None


def test_most_frequent_confusions() -> None:
    confusion = ConfusionMatrix("m", ["a", "b", "c"], [[8, 2, 0], [5, 15, 0], [1, 0, 0]])
    assert most_frequent_confusions(confusion, 2) == [("b", "a", 5, 0.25), ("a", "b", 2, 0.2)]
    assert most_frequent_confusions(confusion, 9)[2] == ("c", "a", 1, 1.0)
    assert str(draw_confusion(confusion)).count("<rect") == 10  # nine cells on a sheet


def test_counts_fit_into_their_cells() -> None:
    counts = [[10 ** (i + j) - 1 for j in range(7)] for i in range(7)]
    drawing = str(draw_confusion(ConfusionMatrix("m", list("abcdefg"), counts)))
    found = re.findall(r'class="count[^>]*>([^<]+)<', drawing)
    assert found[:6] == ["9", "99", "999", "9,999", "99,999", "1.0M"]
    assert all(width_of(text) <= 38 for text in found)


def test_hardest_classes_of_many() -> None:
    n_classes = MOST_CLASSES + 20
    counts = [[0] * n_classes for _ in range(n_classes)]
    for code in range(n_classes):
        counts[code][code] = 50
    hard = [3, 5, 60, 67]
    for a, b in itertools.permutations(hard, 2):
        counts[a][b] = 4
    part = hardest_classes(ConfusionMatrix("m", [str(i) for i in range(n_classes)], counts))
    assert len(part.classes) == MOST_CLASSES
    assert {str(i) for i in hard} <= set(part.classes)
    where = [part.classes.index(str(i)) for i in hard]
    assert part.counts[where[0]][where[1]] == 4
    assert part.classes == sorted(part.classes, key=int)


def test_many_curves_start_with_the_smallest_area() -> None:
    curves = [Curve("m", str(i), [0, 1], [0, 1], 0.9 - 0.01 * i, 0.5) for i in range(10)]
    ordered = order_curves(curves)
    assert [curve.about for curve in ordered[:3]] == ["9", "8", "7"]
    assert str(draw_curves(ordered, precision=False)).count("line other") == 4
    assert order_curves(curves[:4]) == curves[:4]


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), min_size=1))
def test_thinned_out_points_stay_close(points: list[tuple[float, float]]) -> None:
    kept = thin_out(points, 0.7)
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    # Every dropped point lies less than a step from one that was kept.
    assert all(min(math.dist(point, other) for other in kept) < 0.7 + 1e-9 for point in points)


def test_categories_are_dots_and_numbers_lines() -> None:
    rows: list[Any] = [[0.1, 0.5], [0.0, 0.4], [0.2, 0.6], [0.5, 0.5]]
    named = DependenceCurve("m", "c", "p", ["a", "b"], *rows)
    numeric = DependenceCurve("m", "c", "p", [1.0, 2.0], *rows)
    ends = prediction_ends([named, numeric])
    assert "line s1" not in str(draw_dependence(named, ends))
    assert "line s1" in str(draw_dependence(numeric, ends))
    assert str(draw_dependence(numeric, ends)).count('class="rug"') == 2


def test_sparkline_is_drawn_to_scale() -> None:
    bars = re.findall(r"M([\d.]+) 22v-([\d.]+)h", str(draw_sparkline([10, 5, 0, 20], "")))
    assert [(float(x), float(height)) for x, height in bars] == [(0, 10.5), (24, 5.25), (72, 21)]
    assert draw_sparkline([0, 0], "") is None
    assert draw_sparkline([], "") is None


# No chart fails for any values, and all coordinates are finite (`tag` raises otherwise).

LISTS = st.integers(0, 6).flatmap(lambda n: st.tuples(*[st.lists(ANY, min_size=n, max_size=n)] * 5))


@settings(max_examples=100, deadline=None)
@given(LISTS, st.lists(st.integers(-5, 10**12), min_size=6, max_size=6))
def test_extreme_values_are_drawn(lists: tuple[list[float], ...], whole: list[int]) -> None:
    a, b, c, d, e = lists
    n = len(a)
    counts = whole[:n]
    curve = LearningCurve("m", counts, a, b)
    draw_learning_curves([curve, curve], ERROR)
    last_steps([curve], ERROR)
    draw_calibration(CalibrationCurve("m", "p", a, b, counts, 0.1))
    draw_curves([Curve("m", "c", a, b, 0.5, 0.5)], precision=True)
    draw_predicted(ResidualSummary("m", a, b, Histogram([], []), 0.0, 0.0, 0.0))
    draw_histogram(Histogram([*a, 1.0], counts), "x", zero=True)
    draw_sparkline(counts, "x")
    draw_importances(ColumnImportances("m", "r", [str(i) for i in range(n)], a, b), 100.0, "w")
    named = DependenceCurve("m", "c", "p", [str(i) for i in range(n)], a, b, c, d)
    numeric = DependenceCurve("m", "c", "p", e, a, b, c, d)
    ends = prediction_ends([named, numeric])
    draw_dependence(named, ends)
    draw_dependence(numeric, ends)
    results = [
        ModelResult("m", "t", Estimate(x, y, (x,)), p_value=z, size=k)
        for x, y, z, k in zip(a, b, c, counts, strict=True)
    ]
    comparison = Comparison("regression", "rmse", False, 1, 1, 2, False, results, [])
    make_ranking(comparison, measure_format(comparison))


def test_steps_of_the_smallest_numbers() -> None:
    assert round_steps(0.0, 5e-324, 7) == [0.0]
    assert round_steps(0.0, 1e-290, 5)[-1] <= 1e-290
