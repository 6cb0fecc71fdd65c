"""Export of a fitted tree as a self-contained SVG diagram.

The tree grows from left to right, because text is wider than high: nodes stack closely in a column,
and 64 leaves fit on a page that scrolls vertically. A *card* shows a node. Its *strip* shows the
class fractions or the mean. A *band* is an edge; its width is the share of the rows that take it,
and its label is the condition of the branch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney.tree.export._plot import tidy_layout
from spinney.tree.export.describe import (
    ELLIPSIS,
    ReadableTree,
    checked_names,
    fit_text,
    format_short,
    named_tree,
    require_tree,
    text_width,
    validated,
)

__all__ = ["export_svg"]

INK, FAINT, RULE, PAPER = "#1c2128", "#4c545e", "#c3c9d1", "#ffffff"
FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
# The palette of Okabe and Ito, which is safe for the common kinds of colour blindness.
PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8a8f98"]
RAMP = ("#fdf3d0", "#9fd3c3", "#5aa9c6")  # regression, low to high; dark text is legible on all
HALO: dict[str, Any] = {"stroke": PAPER, "stroke_width": 3, "paint_order": "stroke"}

MARGIN, INSET = 16.0, 7.0
TITLE, SMALL = 12.0, 10.0  # font sizes
CARD_WIDTHS = (80.0, 176.0)
LABEL_WIDTH = 150.0
BAND = 12.0  # width of a band that all rows take
MAX_STRIPS = 3  # number of outputs drawn in a card
LEGEND_ITEMS = 24
MISSING_LEGEND = [("?", "missing values go here")]
# Characters that XML 1.0 forbids.
ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@validated(
    {
        "decision_tree": "no_validation",
        "feature_names": ["array-like", None],
        "class_names": ["array-like", None],
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "width": [Interval(Real, 0, None, closed="neither"), None],
        "out_file": [str, None, HasMethods("write"), HasMethods("__fspath__")],
        "show_missing": ["boolean", StrOptions({"auto"})],
    }
)
def export_svg(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = None,
    width: float | None = None,
    out_file: Any = None,
    show_missing: bool | str = "auto",
) -> str:
    """Draw a decision tree as an SVG diagram.

    Colours show the predicted class, more saturated for purer nodes, or the predicted number. The
    width of a band is the share of the training rows that take it. Names that do not fit are cut;
    the tooltip of a node shows them in full.

    Parameters
    ----------
    decision_tree : estimator
        The fitted decision tree to be drawn.

    feature_names : array-like of shape (n_features,), default=None
        Names of the features; `feature_names_in_` if None, or else "x[0]", "x[1]", ...

    class_names : array-like of shape (n_classes,), default=None
        Names of the classes in the order of `classes_`; None means the values of `classes_`.

    max_depth : int, default=None
        Largest depth drawn; nodes below are counted. None means no limit.

    width : float, default=None
        Width in pixels to which the diagram is scaled. If None, its natural width.

    out_file : str, path or file-like, default=None
        File to write the diagram to, in addition to returning it.

    show_missing : bool or "auto", default="auto"
        Whether to mark the bands that missing values take. "auto": only if some node sends them to
        the smaller child; by default they go to the larger one.

    Returns
    -------
    svg : str
        The diagram: one `<svg>` element without external references.

    Examples
    --------
    >>> from spinney.tree import DecisionTreeClassifier, export_svg
    >>> clf = DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"])
    >>> svg = export_svg(clf, feature_names=["temperature"])
    >>> svg[:4], "temperature" in svg
    ('<svg', True)
    """
    feature_names = checked_names(feature_names)
    class_names = checked_names(class_names)
    require_tree(decision_tree)
    tree = named_tree(decision_tree, feature_names, class_names)
    svg = _Diagram(tree, max_depth, tree.shows_missing(show_missing)).draw(width)
    if hasattr(out_file, "write"):
        out_file.write(svg)
    elif out_file is not None:
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(svg)
    return svg


class _ClassPaint:
    """Colours and strips of a classifier: one colour per class, stacked bars."""

    def __init__(self, tree: ReadableTree) -> None:
        self.tree = tree

    def colour(self, node: int) -> str:
        return _class_colour(int(np.argmax(self.tree.fractions(node))))

    def tint(self, node: int) -> str:
        # The majority class's share, scaled from a tie (0) to a pure node (1); mean over outputs.
        ties = 1 / np.maximum(2, self.tree.n_classes)
        tops = [self.tree.fractions(node, k).max() for k in range(self.tree.n_outputs)]
        purity = float(np.mean((tops - ties) / (1 - ties)))
        return _mixed(PAPER, self.colour(node), 0.04 + 0.4 * purity)

    def strip(self, node: int, output: int, *, x: float, y: float, w: float, h: float) -> str:
        fractions = self.tree.fractions(node, output)
        starts = x + w * np.concatenate(([0.0], np.cumsum(fractions)))
        return "".join(
            _rect(starts[code], y, w * share, h, _class_colour(code))
            for code, share in enumerate(fractions)
            if share > 0
        )

    def legend(self) -> list[tuple[str, str]]:
        items = []
        for output, names in enumerate(self.tree.class_names[:MAX_STRIPS]):
            if self.tree.n_outputs > 1:
                items.append(("", f"output {output}:"))
            items += [(_class_colour(i), n) for i, n in enumerate(names[:LEGEND_ITEMS])]
            if len(names) > LEGEND_ITEMS:
                items.append(("", f"{ELLIPSIS} (+{len(names) - LEGEND_ITEMS})"))
        return items


class _RegressionPaint:
    """Colours and strips of a regressor: positions on a colour ramp and on a scale."""

    def __init__(self, tree: ReadableTree) -> None:
        self.tree = tree
        self.lows = tree.value[:, :, 0].min(axis=0)
        self.highs = tree.value[:, :, 0].max(axis=0)
        # The impurity of squared error is the variance.
        squared = tree.criterion in ("squared_error", "friedman_mse") and tree.n_outputs == 1
        self.spread = np.sqrt(np.maximum(tree.impurity, 0)) if squared else None

    def _position(self, value: float, output: int) -> float:
        span = self.highs[output] - self.lows[output]
        return float(np.clip((value - self.lows[output]) / span, 0, 1)) if span > 0 else 0.5

    def colour(self, node: int) -> str:
        return _mixed(self.tint(node), "#1d5266", 0.3)

    def tint(self, node: int) -> str:
        return _ramp(self._position(self.tree.mean(node), 0))

    def strip(self, node: int, output: int, *, x: float, y: float, w: float, h: float) -> str:
        mean = self.tree.mean(node, output)
        parts = [_rect(x, y, w, h, PAPER, fill_opacity=0.65)]
        if self.spread is not None:
            low = x + w * self._position(mean - self.spread[node], output)
            high = x + w * self._position(mean + self.spread[node], output)
            parts.append(_rect(low, y + h / 4, high - low, h / 2, "#7d9aa6"))
        at = x + (w - 3) * self._position(mean, output)
        return "".join([*parts, _rect(at, y, 3, h, INK)])

    def legend(self) -> list[tuple[str, str]]:
        low, high = float(self.lows[0]), float(self.highs[0])
        steps = np.linspace(0, 1, 5) if high > low else [0.5]
        items = [(_ramp(t), format_short(low + t * (high - low))) for t in steps]
        if self.tree.n_outputs > 1:
            return [("", "output 0:"), *items]
        return items if self.spread is None else [*items, ("", "bar: mean ± standard deviation")]


@dataclass
class _Card:
    node: int
    depth: int
    hidden: int = 0  # number of nodes that this stub replaces; 0 for a real node
    children: list[int] = field(default_factory=list)
    band: float = 1.0  # width of the band to this card
    label: str = ""  # label of that band
    takes_missing: bool = False
    title: str = ""
    note: str = ""  # text below the title; "" in a leaf
    count: str = ""
    width: float = 0.0
    height: float = 20.0
    x: float = 0.0
    y: float = 0.0  # y of its centre


class _Diagram:
    def __init__(self, tree: ReadableTree, max_depth: int | None, missing: bool) -> None:
        self.tree, self.missing = tree, missing
        self.paint = _ClassPaint(tree) if tree.classifier else _RegressionPaint(tree)
        self.n_strips = min(tree.n_outputs, MAX_STRIPS)
        self.strip_height = 6.0 if self.n_strips == 1 else 4.0
        self.cards: list[_Card] = []
        self._create_cards(max_depth)
        self._set_positions()

    def _create_cards(self, max_depth: int | None) -> None:
        """Create a card for each visible node, and a stub for the nodes below `max_depth`."""
        tree, cards = self.tree, self.cards
        levels, n_below = tree.subtree_shapes()
        self.depth = int(levels[0]) - 1
        index: dict[int, int] = {}
        for node, depth, parent in tree.walk(max_depth):
            card = _Card(node, depth, count=f"{tree.n_node_samples[node]:,}")
            card.band = max(1.0, BAND * tree.n_node_samples[node] / tree.n_node_samples[0])
            card.title, leaf = tree.headline(node), tree.is_leaf(node)
            if not leaf:
                card.title, card.note = tree.title(node), card.title
            beside, note = text_width(card.count, SMALL) + 10, text_width(card.note, SMALL)
            need = max(text_width(card.title, TITLE) + beside * leaf, note + beside)
            card.width = float(np.clip(need + 2 * INSET + 1, *CARD_WIDTHS))
            card.height = 21 + self.n_strips * (self.strip_height + 2) + (0 if leaf else 13)
            if parent >= 0:
                branch = tree.children(parent).index(node)
                card.label = tree.short_branch_texts(parent, LABEL_WIDTH, SMALL)[branch]
                card.takes_missing = self.missing and tree.missing_branch(parent) == branch
                cards[index[parent]].children.append(len(cards))
            index[node] = len(cards)
            cards.append(card)
            if depth == max_depth and not leaf:
                card.children.append(len(cards))
                stub = _Card(node, depth + 1, hidden=int(n_below[node]) - 1)
                stub.title = f"{ELLIPSIS} {stub.hidden:,} more nodes"
                stub.width = text_width(stub.title, SMALL) + 2 * INSET
                cards.append(stub)

    def _set_positions(self) -> None:
        cards = self.cards
        n_columns = max(card.depth for card in cards) + 1
        widths, rooms = [0.0] * n_columns, [0.0] * n_columns
        for card in cards:
            widths[card.depth] = max(widths[card.depth], card.width)
            rooms[card.depth] = max(rooms[card.depth], text_width(card.label, SMALL) + 32)
        rooms[0] = MARGIN
        lefts = np.cumsum(rooms) + np.cumsum([0.0, *widths[:-1]])
        self.width = max(float(lefts[-1]) + widths[-1] + MARGIN, 360.0)
        self.header, top = self._header()
        # The label of a band needs space above or below it, even if its card is small.
        heights = [max(card.height, 24 + card.band) for card in cards]
        ys = tidy_layout([card.children for card in cards], heights, 5.0, 11.0)
        for card, y in zip(cards, ys, strict=True):
            card.x, card.y = float(lefts[card.depth]), top + y
            card.width = card.width if card.hidden else widths[card.depth]
        self.height = top + max(y + high / 2 for y, high in zip(ys, heights, strict=True)) + MARGIN

    def _header(self) -> tuple[str, float]:
        """Return the header above the tree and the y at which it ends."""
        tree, size = self.tree, SMALL + 1
        n_leaves = tree.n_leaves
        leaves = "1 leaf" if n_leaves == 1 else f"{n_leaves:,} leaves"
        rows = f"{tree.n_node_samples[0]:,} rows"
        facts = " · ".join((rows, leaves, f"depth {self.depth}", tree.criterion))
        x, y = MARGIN, MARGIN + 28
        parts = [_text(x, y - 18, facts, size, fill=FAINT)]
        for colour, name in self.paint.legend() + MISSING_LEGEND * self.missing:
            name = fit_text(name, 200, size)
            step = text_width(name, size) + (30 if colour else 16)
            if x > MARGIN and x + step > self.width - MARGIN:
                x, y = MARGIN, y + 17
            if colour == "?":
                parts.append(_missing_mark(x + 6, y - 4))
            elif colour:
                parts.append(_rect(x, y - 9, 11, 11, colour, stroke=RULE))
            parts.append(_text(x + (16 if colour else 0), y, name, size))
            x += step
        return "".join(parts), y + 14

    def draw(self, width: float | None) -> str:
        wide, high = round(self.width), round(self.height)
        scale = 1.0 if width is None else width / wide
        body = [_rect(0, 0, wide, high, PAPER, rx=8), self.header]
        body += [self._bands(card) for card in self.cards if card.children]
        body += [self._card(card) for card in self.cards]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide * scale:g}"'
            f' height="{high * scale:g}" viewBox="0 0 {wide} {high}" role="img"'
            f' aria-label="Decision tree" font-family="{FONT}">' + "\n".join(body) + "</svg>\n"
        )

    def _bands(self, card: _Card) -> str:
        """Draw the bands from a card to its children, side by side at the parent."""
        children = [self.cards[i] for i in card.children]
        start = card.y - sum(child.band for child in children) / 2
        parts, marks = [], []
        for child in children:
            x0, y0, x1, y1 = card.x + card.width, start + child.band / 2, child.x, child.y
            start, mid = start + child.band, (x0 + x1) / 2
            curve = f"M{x0:.1f} {y0:.1f}C{mid:.1f} {y0:.1f} {mid:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
            style: dict[str, Any] = {"stroke": FAINT, "stroke_dasharray": "2 3"}
            if not child.hidden:
                style = {"stroke": self.paint.colour(child.node), "stroke_opacity": 0.55}
            parts.append(_tag("path", d=curve, fill="none", stroke_width=child.band, **style))
            # The label is outside the fork: above the upper band, below the lower one.
            y = y1 - child.band / 2 - 4 if y1 <= card.y else y1 + child.band / 2 + 10
            parts.append(_text(x1 - 5, y, child.label, SMALL, text_anchor="end", **HALO))
            if child.takes_missing:
                outward = -4 if y1 <= card.y else 4
                marks.append(_missing_mark(x0 + 13, y0 + 0.1 * (y1 - y0) + outward))
        return "".join(parts + marks)

    def _card(self, card: _Card) -> str:
        x, y, w, h = card.x, card.y - card.height / 2, card.width, card.height
        inner = w - 2 * INSET
        if card.hidden:
            box = _rect(x, y, w, h, PAPER, rx=10, stroke=FAINT, stroke_dasharray="2 3")
            return box + _text(x + INSET, y + 13.5, card.title, SMALL, fill=FAINT)
        room = inner - text_width(card.count, SMALL) - 8
        title = fit_text(card.title, inner if card.note else room, TITLE)
        edge = RULE if card.note else self.paint.colour(card.node)
        low = y + h - 6 if card.note else y + 14
        parts = [
            _tag("title", _clean("\n".join(self.tree.details(card.node)))),
            _rect(x, y, w, h, self.paint.tint(card.node), rx=4, stroke=edge),
            _text(x + INSET, y + 14, title, TITLE, font_weight=600),
            _text(x + w - INSET, low, card.count, SMALL, text_anchor="end"),
        ]
        high = self.strip_height
        for output in range(self.n_strips):
            top = y + 19 + output * (high + 2)
            parts.append(self.paint.strip(card.node, output, x=x + INSET, y=top, w=inner, h=high))
        if card.note:
            parts.append(_text(x + INSET, low, fit_text(card.note, room, SMALL), SMALL))
        return _tag("g", "".join(parts))


def _class_colour(code: int) -> str:
    """Return the colour of a class; the palette repeats in darker, lighter shades."""
    colour, cycle = PALETTE[code % len(PALETTE)], code // len(PALETTE) % 3
    return colour if cycle == 0 else _mixed(colour, ("#000000", PAPER)[cycle - 1], 0.45)


def _ramp(position: float) -> str:
    half, rest = divmod(2 * position, 1) if position < 1 else (1.0, 1.0)
    return _mixed(RAMP[int(half)], RAMP[int(half) + 1], rest)


def _mixed(first: str, second: str, amount: float) -> str:
    pairs = ((int(first[i : i + 2], 16), int(second[i : i + 2], 16)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(a + (b - a) * amount):02x}" for a, b in pairs)


def _clean(text: str) -> str:
    return escape(ILLEGAL.sub(" ", text))


def _tag(name: str, content: str = "", **attributes: Any) -> str:
    pairs = (
        f' {key.replace("_", "-")}="{f"{value:.2f}" if isinstance(value, float) else value}"'
        for key, value in attributes.items()
    )
    return f"<{name}{''.join(pairs)}" + (f">{content}</{name}>" if content else "/>")


def _text(x: float, y: float, text: str, size: float, fill: str = INK, **style: Any) -> str:
    return _tag("text", _clean(text), x=x, y=y, font_size=size, fill=fill, **style)


def _rect(x: float, y: float, w: float, h: float, fill: str, **style: Any) -> str:
    return _tag("rect", x=x, y=y, width=w, height=h, fill=fill, **style)


def _missing_mark(x: float, y: float) -> str:
    circle = _tag("circle", cx=x, cy=y, r=6, fill=PAPER, stroke=INK)
    return circle + _text(x, y + 3.3, "?", 9, text_anchor="middle", font_weight=600)
