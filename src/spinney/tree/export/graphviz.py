"""Export of a fitted tree to DOT, with scikit-learn's text and colours.

For numeric trees the output equals that of scikit-learn 1.9. `plot_tree` uses the same labels and
colours (`NodeLabels`, `NodeColours`).
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from io import StringIO
from numbers import Integral
from typing import Any, NamedTuple, cast

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from spinney.tree.export.describe import (
    NamedTree,
    checked_names,
    default_feature_names,
    require_binary,
    require_tree,
    validated,
)

__all__ = ["export_graphviz"]


class Marks(NamedTuple):
    """The characters that differ between plain, HTML and matplotlib labels."""

    number: str
    open_index: str
    close_index: str
    less_equal: str
    new_line: str


PLAIN_MARKS = Marks("#", "[", "]", "<=", "\\n")
HTML_MARKS = Marks("&#35;", "<SUB>", "</SUB>", "&le;", "<br/>")
LINE_MARKS = Marks("#", "[", "]", "<=", "\n")


class NodeLabels:
    """The text of a node, in scikit-learn's format."""

    def __init__(
        self,
        tree: NamedTree,
        marks: Marks,
        *,
        feature_names: Sequence[str] | None,
        class_names: Sequence[str] | bool | None,
        label: str,
        impurity: bool,
        node_ids: bool,
        proportion: bool,
        precision: int | None,
    ) -> None:
        self.tree = tree
        self.marks = marks
        self.feature_names = feature_names
        self.class_names = None if class_names is False else class_names
        self.label = label
        self.impurity = impurity
        self.node_ids = node_ids
        self.proportion = proportion
        self.precision = precision

    def __call__(self, node: int) -> str:
        tree = self.tree
        labelled = self.label == "all" or (self.label == "root" and node == 0)
        lines = []
        if self.node_ids:
            lines.append(f"{'node ' if labelled else ''}{self.marks.number}{node}")
        if not tree.is_leaf(node):
            lines.append(self._split(node))
        if self.impurity:
            prefix = f"{tree.criterion} = " if labelled else ""
            lines.append(prefix + str(round(tree.impurity[node], self.precision)))
        lines.append(("samples = " if labelled else "") + self._samples(node))
        lines.append(("value = " if labelled else "") + self._value(node))
        if self.class_names is not None and tree.n_classes[0] != 1 and tree.n_outputs == 1:
            lines.append(("class = " if labelled else "") + self._class(node))
        return self.marks.new_line.join(lines)

    def _split(self, node: int) -> str:
        tree, marks = self.tree, self.marks
        feature = tree.feature[node]
        if self.feature_names is not None:
            name = self._escaped(self.feature_names[feature])
        else:
            name = f"x{marks.open_index}{feature}{marks.close_index}"
        if tree.is_categorical(node):
            return f"{name} {self._escaped_text(tree.tests(node, '', limit=4)[0])}"
        return f"{name} {marks.less_equal} {round(tree.threshold[node], self.precision)}"

    def _samples(self, node: int) -> str:
        count = self.tree.n_node_samples
        if self.proportion:
            return f"{round(100.0 * count[node] / float(count[0]), 1)}%"
        return str(count[node])

    def _value(self, node: int) -> str:
        tree = self.tree
        value = tree.value[node][0, :] if tree.n_outputs == 1 else tree.value[node]
        regression = tree.n_classes[0] == 1
        if not self.proportion and not regression:
            value = value * tree.weighted_n_node_samples[node]
        if not regression and not self.proportion and np.all(np.equal(np.mod(value, 1), 0)):
            shown = value.astype(int)
        else:
            shown = np.around(value, cast(int, self.precision))
        text = str(shown.astype("S32")).replace("b'", "'").replace("' '", ", ").replace("'", "")
        if regression and tree.n_outputs == 1:
            text = text.replace("[", "").replace("]", "")
        return text.replace("\n ", self.marks.new_line)

    def _class(self, node: int) -> str:
        winner = int(np.argmax(self.tree.value[node][0, :]))
        if self.class_names is True:
            return f"y{self.marks.open_index}{winner}{self.marks.close_index}"
        assert not isinstance(self.class_names, bool)
        assert self.class_names is not None
        return self._escaped(self.class_names[winner])

    def _escaped(self, name: Any) -> str:
        """Escape the name of a feature or class as scikit-learn does: double quotes only."""
        return str(name) if self.marks is LINE_MARKS else str(name).replace('"', r"\"")

    def _escaped_text(self, text: str) -> str:
        if self.marks is LINE_MARKS:
            return text
        if self.marks is HTML_MARKS:
            return html.escape(text, quote=False)
        return text.replace("\\", "\\\\").replace('"', r"\"")


class NodeColours:
    """The fill colour of a node.

    It shows the majority class, the value of a regression, or the purity for several outputs.
    """

    def __init__(self, tree: NamedTree) -> None:
        self.tree = tree
        self.palette = _hues(int(tree.n_classes[0]))
        self.bounds: tuple[float, float] | None = None
        if tree.n_outputs != 1:
            self.bounds = (-np.max(tree.impurity), -np.min(tree.impurity))
        elif tree.n_classes[0] == 1 and len(np.unique(tree.value)) != 1:
            self.bounds = (np.min(tree.value), np.max(tree.value))

    def __call__(self, node: int) -> str:
        tree = self.tree
        if self.bounds is None:
            value = tree.value[node][0, :]
            colour = self.palette[int(np.argmax(value))]
            second, first = sorted(value)[-2:] if len(value) > 1 else (0.0, 0.0)
            alpha = (first - second) / (1 - second)
        else:
            low, high = self.bounds
            number = tree.value[node][0, 0] if tree.n_outputs == 1 else -tree.impurity[node]
            colour = self.palette[0]
            alpha = (number - low) / (high - low) if high > low else 0.0
        mixed = (int(round(alpha * c + (1 - alpha) * 255, 0)) for c in colour)
        return "#{:02x}{:02x}{:02x}".format(*mixed)


def _hues(n: int) -> list[tuple[int, int, int]]:
    """Return `n` colours, equally spaced on the colour circle, as in scikit-learn."""
    saturation, brightness = 0.75, 0.9
    chroma = saturation * brightness
    shift = brightness - chroma
    colours = []
    for hue in np.arange(25, 385, 360.0 / n).astype(int):
        sector = hue / 60.0
        x = chroma * (1 - abs((sector % 2) - 1))
        c = chroma
        rgb = [(c, x, 0.0), (x, c, 0.0), (0.0, c, x), (0.0, x, c), (x, 0.0, c), (c, 0.0, x)]
        r, g, b = (rgb + rgb[:1])[int(sector)]
        colours.append((int(255 * (r + shift)), int(255 * (g + shift)), int(255 * (b + shift))))
    return colours


@validated(
    {
        "decision_tree": "no_validation",
        "out_file": [str, None, HasMethods("write")],
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "feature_names": ["array-like", None],
        "class_names": ["array-like", "boolean", None],
        "label": [StrOptions({"all", "root", "none"})],
        "filled": ["boolean"],
        "leaves_parallel": ["boolean"],
        "impurity": ["boolean"],
        "node_ids": ["boolean"],
        "proportion": ["boolean"],
        "rotate": ["boolean"],
        "rounded": ["boolean"],
        "special_characters": ["boolean"],
        "precision": [Interval(Integral, 0, None, closed="left"), None],
        "fontname": [str],
    }
)
def export_graphviz(
    decision_tree: Any,
    out_file: Any = None,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    leaves_parallel: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,
    rotate: bool = False,
    rounded: bool = False,
    special_characters: bool = False,
    precision: int | None = 3,
    fontname: str = "helvetica",
) -> str | None:
    r"""Export a decision tree in DOT format.

    Parameters
    ----------
    decision_tree : estimator
        The fitted decision tree to be exported.

    out_file : file-like or str, default=None
        Handle or name of the output file. If None, the result is returned as a string.

    max_depth : int, default=None
        The maximum depth of the representation; None means no limit.

    feature_names : array-like of shape (n_features,), default=None
        Names of the features. If None, generic names are used ("x[0]", "x[1]", ...); for a tree
        fitted with categorical columns, its `feature_names_in_` if available.

    class_names : array-like of shape (n_classes,) or bool, default=None
        Names of the classes in the order of `classes_`; True shows "y[0]", "y[1]", ...
        Not used for several outputs.

    label : {"all", "root", "none"}, default="all"
        At which nodes to label the numbers ("samples = ", "value = ").

    filled : bool, default=False
        Whether to colour the nodes by majority class, value, or purity (several outputs).

    leaves_parallel : bool, default=False
        Whether to draw all leaves at the bottom.

    impurity : bool, default=True
        Whether to show the impurity.

    node_ids : bool, default=False
        Whether to show the index of each node.

    proportion : bool, default=False
        Whether to show fractions instead of counts.

    rotate : bool, default=False
        Whether to draw from left to right rather than top-down.

    rounded : bool, default=False
        Whether to round the corners of the boxes.

    special_characters : bool, default=False
        Whether to use characters such as "≤" (HTML labels), which PostScript may lack.

    precision : int, default=3
        Number of decimals of impurity, threshold and value.

    fontname : str, default="helvetica"
        Name of the font.

    Returns
    -------
    dot_data : str or None
        The tree in DOT format if `out_file` is None.

    Examples
    --------
    >>> from spinney.tree import DecisionTreeClassifier, export_graphviz
    >>> clf = DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    >>> print(export_graphviz(clf, impurity=False))
    digraph Tree {
    node [shape=box, fontname="helvetica"] ;
    edge [fontname="helvetica"] ;
    0 [label="x[0] <= 0.5\nsamples = 2\nvalue = [1, 1]"] ;
    1 [label="samples = 1\nvalue = [1, 0]"] ;
    0 -> 1 [labeldistance=2.5, labelangle=45, headlabel="True"] ;
    2 [label="samples = 1\nvalue = [0, 1]"] ;
    0 -> 2 [labeldistance=2.5, labelangle=-45, headlabel="False"] ;
    }
    """
    if feature_names is not None and any(not isinstance(name, str) for name in feature_names):
        raise ValueError("All feature names must be strings.")
    feature_names = checked_names(feature_names)
    class_names = checked_names(class_names)
    require_tree(decision_tree)
    require_binary(decision_tree, "export_graphviz")
    feature_names = default_feature_names(decision_tree, feature_names)
    tree = NamedTree(decision_tree, feature_names)
    labels = NodeLabels(
        tree,
        HTML_MARKS if special_characters else PLAIN_MARKS,
        feature_names=feature_names,
        class_names=class_names,
        label=label,
        impurity=impurity,
        node_ids=node_ids,
        proportion=proportion,
        precision=precision,
    )
    colours = NodeColours(tree) if filled else None
    out = StringIO()
    style = [name for name, enabled in (("filled", filled), ("rounded", rounded)) if enabled]
    box = f', style="{", ".join(style)}", color="black"' if style else ""
    out.write(f'digraph Tree {{\nnode [shape=box{box}, fontname="{fontname}"] ;\n')
    if leaves_parallel:
        out.write("graph [ranksep=equally, splines=polyline] ;\n")
    out.write(f'edge [fontname="{fontname}"] ;\n')
    if rotate:
        out.write("rankdir=LR ;\n")

    quotes = "<>" if special_characters else '""'
    ranks: dict[str, list[str]] = {"leaves": []}
    for node, depth, parent in tree.walk(None if max_depth is None else max_depth + 1):
        cut = max_depth is not None and depth > max_depth
        rank = "leaves" if cut or tree.is_leaf(node) else str(depth)
        ranks.setdefault(rank, []).append(str(node))
        text = '"(...)"' if cut else quotes[0] + labels(node) + quotes[1]
        out.write(f"{node} [label={text}")
        if colours is not None:
            out.write(f', fillcolor="{"#C0C0C0" if cut else colours(node)}"')
        out.write("] ;\n")
        if parent >= 0:
            out.write(f"{parent} -> {node}")
            if parent == 0 and not cut:
                is_left = node == tree.children_left[0]
                angle = 45 if is_left != rotate else -45
                out.write(f' [labeldistance=2.5, labelangle={angle}, headlabel="{is_left}"]')
            out.write(" ;\n")
    if leaves_parallel:
        for rank in sorted(ranks):
            out.write("{rank=same ; " + "; ".join(ranks[rank]) + "} ;\n")
    out.write("}")

    if out_file is None:
        return out.getvalue()
    if isinstance(out_file, str):
        with open(out_file, "w", encoding="utf-8") as file:
            file.write(out.getvalue())
    else:
        out_file.write(out.getvalue())
    return None
