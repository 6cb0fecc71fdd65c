"""Plot of a decision tree, in the style of the other plots."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from sklearn.utils.validation import check_is_fitted

from spinney.plot._style import GREY, fills, note, shortened, styled
from spinney.tree import plot_tree
from spinney.tree.export.describe import NamedTree, require_binary, require_tree
from spinney.tree.export.graphviz import NodeColours

__all__ = ["tree"]


_MOST_CLASSES = 8  # with more classes, nodes have no counts
_LARGEST = 9.0  # maximum font size in points
_AIR = 0.8  # maximum size of a box relative to the distance of its neighbours


def tree(
    model: Any,
    *,
    max_depth: int | None = 3,
    feature_names: Any = None,
    class_names: Any = None,
    ax: Any = None,
) -> Any:
    """Draw a decision tree: the split, size and prediction of each node.

    `spinney.tree.plot_tree` has more options, `spinney.tree.export_svg` draws trees of any kind and
    size.

    Parameters
    ----------
    model : fitted decision tree
        A `DecisionTree*` or `ExtraTree*`, or one tree of a forest's ``estimators_``.
    max_depth : int or None, default=3
        The number of levels of splits that are shown; None shows all.
    feature_names : array-like of str, default=None
        Names of the columns; None: those of the frame that the tree was fitted to.
    class_names : array-like of str, default=None
        Names of the classes, in their order; None: the classes themselves.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure. Earlier content is cleared.

    Returns
    -------
    matplotlib Axes
        The axes.

    Examples
    --------
    >>> from spinney import plot
    >>> from spinney.tree import DecisionTreeClassifier
    >>> axes = plot.tree(DecisionTreeClassifier().fit([[0], [1]], ["no", "yes"]))
    >>> axes.texts[0].get_text().split("\\n")[0]
    'x[0] <= 0.5'
    """
    check_is_fitted(model)
    require_tree(model)
    require_binary(model, "plot.tree")
    depth = model.get_depth() if hasattr(model, "get_depth") else 0
    shown = depth if max_depth is None else min(depth, max_depth)
    if feature_names is None:
        feature_names = getattr(model, "feature_names_in_", None)
    if feature_names is not None:
        feature_names = [shortened(name, 22) for name in feature_names]
    if class_names is None and getattr(model, "n_outputs_", 1) == 1:
        classes = getattr(model, "classes_", None)
        class_names = None if classes is None else [shortened(label) for label in classes]
    # One more level than splits are shown: it has placeholders for omitted subtrees.
    levels = shown + (depth > shown)
    width = min(1.0 + 1.5 * min(2**levels, model.get_n_leaves()), 24.0)
    ax = styled(ax, (width, 1.0 + 1.25 * levels), grid="none")
    drawn = plot_tree(
        model,
        max_depth=max_depth,
        feature_names=feature_names,
        class_names=class_names,
        filled=True,
        rounded=True,
        impurity=False,
        ax=ax,
    )
    boxes = [box for box in drawn if box.get_bbox_patch() is not None]
    named = NamedTree(model)
    if named.n_classes[0] > _MOST_CLASSES:  # a longer list of counts would be unreadable
        for box in boxes:
            box.set_text(re.sub(r"value = \[[^]]*\]\n", "", box.get_text()))
    _fit(ax, drawn, boxes)
    colours = NodeColours(named)
    hues = fills(len(colours.palette)) if colours.bounds is None else ["#8fb6dc"]
    colours.palette = [(int(h[1:3], 16), int(h[3:5], 16), int(h[5:7], 16)) for h in hues]
    for box, (node, level, _) in zip(boxes, named.walk(levels), strict=True):
        fill = colours(node) if level <= shown else "#eeeeee"
        box.get_bbox_patch().set(facecolor=fill, edgecolor=GREY, linewidth=0.8)
        box.set_color("#333333")
        if box.arrow_patch is not None:
            box.arrow_patch.set(edgecolor=GREY, linewidth=0.8)
    if depth > shown:
        note(ax, f"{shown} of {depth} levels of splits")
    return ax


def _fit(ax: Any, texts: list[Any], boxes: list[Any]) -> None:
    """Set the largest font size with which boxes do not overlap."""
    renderer = ax.figure._get_renderer()
    room = ax.get_window_extent()
    levels: dict[float, list[tuple[float, float]]] = {}  # height: positions and widths of boxes
    tallest = 0.0
    for box in boxes:
        box.set_fontsize(_LARGEST)
        box.update_bbox_position_size(renderer)
        size = box.get_bbox_patch().get_window_extent(renderer)
        across, up = box.xyann
        levels.setdefault(round(up, 6), []).append((across * room.width, size.width))
        tallest = max(tallest, size.height)
    share = 1.0
    if len(levels) > 1:
        share = min(share, _AIR * room.height / len(levels) / tallest)
    for level in levels.values():
        for (position, width), (next_position, next_width) in pairwise(sorted(level)):
            share = min(share, _AIR * (next_position - position) / (width / 2 + next_width / 2))
        for position, width in level:
            share = min(share, min(position, room.width - position) / (width / 2))
    for text in texts:
        text.set_fontsize(_LARGEST * share)
