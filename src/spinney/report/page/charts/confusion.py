"""The confusion matrix: true classes down, predicted classes across."""

from __future__ import annotations

from markupsafe import Markup

from spinney.report.evidence import ConfusionMatrix
from spinney.report.page.charts.svg import label, make_svg, plain, short, tag, width_of
from spinney.report.page.numbers import share

__all__ = ["MOST_CLASSES", "draw_confusion", "hardest_classes", "most_frequent_confusions"]

NUMBERED = 12  # classes up to which numbers are written into the cells
MOST_CLASSES = 48  # classes that are drawn; of more, those with the most errors
LABEL_ROOM = 96.0


def hardest_classes(confusion: ConfusionMatrix) -> ConfusionMatrix:
    """Return the rows and columns of the classes with the most errors."""
    n_classes = len(confusion.classes)
    if n_classes <= MOST_CLASSES:
        return confusion
    counts = confusion.counts
    wrong = [
        sum(counts[i]) + sum(row[i] for row in counts) - 2 * counts[i][i] for i in range(n_classes)
    ]
    kept = sorted(sorted(range(n_classes), key=lambda i: -wrong[i])[:MOST_CLASSES])
    return ConfusionMatrix(
        confusion.model,
        [confusion.classes[i] for i in kept],
        [[counts[i][j] for j in kept] for i in kept],
    )


def most_frequent_confusions(
    confusion: ConfusionMatrix, most: int
) -> list[tuple[str, str, int, float]]:
    """Return (true, predicted, rows, share of the true class), most frequent first."""
    found = []
    for i, row in enumerate(confusion.counts):
        for j, count in enumerate(row):
            if count > 0 and i != j:
                found.append((confusion.classes[i], confusion.classes[j], count, count / sum(row)))
    return sorted(found, key=lambda item: -item[2])[:most]


def draw_confusion(confusion: ConfusionMatrix) -> Markup | None:
    """Draw the matrix; darker cells have larger shares of their true class."""
    classes, n_classes = confusion.classes, len(confusion.classes)
    if n_classes == 0 or not any(any(row) for row in confusion.counts):
        return None
    numbered = n_classes <= NUMBERED
    cell = min(64.0, max(26.0, 280.0 / n_classes)) if numbered else 13.0
    size = 10.5 if numbered else 9.5
    names = [short(name, LABEL_ROOM, size) for name in classes]
    longest = max(width_of(name, size) for name in names)
    flat = longest <= cell - 4  # horizontal column names fit
    left, top = longest + 28, 22 + (12 if flat else longest)
    width, height = left + cell * n_classes + 6, top + cell * n_classes + 6
    parts = [
        label(left + cell * n_classes / 2, 10, "predicted", class_="axis-label",
              text_anchor="middle"),
        label(0, 0, "true", class_="axis-label", text_anchor="middle",
              transform=f"translate(10 {top + cell * n_classes / 2:.1f}) rotate(-90)"),
    ]  # fmt: skip
    for index, name in enumerate(classes):
        middle = top + (index + 0.5) * cell + size * 0.34
        parts.append(
            label(left - 6, middle, name, room=LABEL_ROOM, size=size, class_="tick",
                  text_anchor="end")
        )  # fmt: skip
        x = left + (index + 0.5) * cell
        anchor = "middle" if flat else "start"
        turn = None if flat else f"translate({x + size * 0.34:.2f} {top - 6:.2f}) rotate(-90)"
        where = (x, top - 6) if flat else (0.0, 0.0)
        parts.append(
            label(*where, name, room=LABEL_ROOM, size=size, class_="tick", text_anchor=anchor,
                  transform=turn)
        )  # fmt: skip
    side = cell * n_classes
    parts.append(tag("rect", x=left, y=top, width=side, height=side, class_="sheet"))
    for i, row in enumerate(confusion.counts):
        total = sum(row)
        for j, count in enumerate(row):
            if count > 0 or numbered:
                part = count / total if total else 0.0
                corner = (left + j * cell, top + i * cell)
                parts.append(_cell(confusion, (i, j), part, corner, cell, numbered=numbered))
    about = f"Confusion matrix of {plain(confusion.model)}, {n_classes} classes"
    return make_svg(width, height, about, *parts, class_="chart" if numbered else "chart natural")


def _cell(
    confusion: ConfusionMatrix,
    index: tuple[int, int],
    part: float,
    corner: tuple[float, float],
    cell: float,
    *,
    numbered: bool,
) -> Markup:
    (i, j), (x, y) = index, corner
    count = confusion.counts[i][j]
    title = (
        f"true {plain(confusion.classes[i])}, predicted {plain(confusion.classes[j])}: "
        f"{count:,} rows, {share(part)}"
    )
    # Without numbers, small shares must remain visible: the opacity is the square root.
    opacity = 0.0 if count == 0 else 0.08 + 0.92 * (part if numbered else part**0.5)
    box = tag(
        "rect",
        tag("title", title),
        x=x + 0.5,
        y=y + 0.5,
        width=cell - 1,
        height=cell - 1,
        class_="right" if i == j else "wrong",
        fill_opacity=round(opacity, 3),
    )
    if not numbered or count == 0:
        return box
    kind = "count on" if opacity > 0.55 else "count"
    text = label(x + cell / 2, y + cell / 2 + 3.6, _compact(count, cell - 2), class_=kind,
                 text_anchor="middle")  # fmt: skip
    return box + text


def _compact(count: int, room: float) -> str:
    """Write a count with as many digits as fit into the room."""
    written = [f"{count:,}"]
    for unit, letter in ((10**3, "k"), (10**6, "M"), (10**9, "G"), (10**12, "T")):
        if 0.9995 <= count / unit < 999.5:
            written += [f"{count / unit:.1f}{letter}", f"{count / unit:.0f}{letter}"]
    return next((text for text in written if width_of(text) <= room), written[-1])
