"""Layout of the nodes of a tree, and plots of trees with matplotlib.

`export_svg` uses the same layout (`tidy_layout`).
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from spinney.tree.export.describe import (
    NamedTree,
    checked_names,
    default_feature_names,
    require_binary,
    require_tree,
    validated,
)
from spinney.tree.export.graphviz import LINE_MARKS, NodeColours, NodeLabels

__all__ = ["plot_tree", "tidy_layout"]


def tidy_layout(
    children: Sequence[Sequence[int]],
    sizes: Sequence[float],
    sibling_gap: float = 0.0,
    cousin_gap: float = 0.0,
) -> list[float]:
    """Return the position of each node, perpendicular to the direction of growth.

    A parent is centred between its first and last child. Subtrees are as close as the minimum
    distances allow on every level (the Reingold-Tilford layout, with node sizes).

    Parameters
    ----------
    children : sequence of sequences of int
        The children of each node, in order. A node comes before its children; node 0 is the root.
    sizes : sequence of float
        Size of each node.
    sibling_gap, cousin_gap : float, default=0.0
        Distance between children of the same node, and between other neighbours on a level.

    Returns
    -------
    centres : list of float
        The centre of each node; the lowest edge is at zero.

    Examples
    --------
    >>> tidy_layout([[1, 2], [3, 4], [], [], []], [1.0] * 5)
    [1.5, 1.0, 2.0, 0.5, 1.5]
    """
    n_nodes = len(children)
    shift = [0.0] * n_nodes  # offset of a node from its parent
    # The outline of each finished subtree, relative to its root: the lowest and highest edge of
    # each level, deepest level first. Lists are merged in place to keep the cost linear.
    outline: list[list[list[float]]] = [[] for _ in range(n_nodes)]
    for node in reversed(range(n_nodes)):
        own = [-sizes[node] / 2, sizes[node] / 2]
        if not children[node]:
            outline[node] = [own]
            continue
        merged = outline[children[node][0]]
        outline[children[node][0]] = []
        offsets = [0.0]
        for child in children[node][1:]:
            other = outline[child]
            outline[child] = []
            common = min(len(merged), len(other))
            offset = max(
                merged[-1 - level][1]
                - other[-1 - level][0]
                + (cousin_gap if level else sibling_gap)
                for level in range(common)
            )
            offsets.append(offset)
            merged = _merge_outlines(merged, other, offset)
        middle = (offsets[0] + offsets[-1]) / 2
        for child, offset in zip(children[node], offsets, strict=True):
            shift[child] = offset - middle
        for edges in merged:
            edges[0] -= middle
            edges[1] -= middle
        merged.append(own)
        outline[node] = merged
    centres = [0.0] * n_nodes
    centres[0] = -min(edges[0] for edges in outline[0])
    for node in range(n_nodes):
        for child in children[node]:
            centres[child] = centres[node] + shift[child]
    return centres


def _merge_outlines(
    first: list[list[float]], second: list[list[float]], offset: float
) -> list[list[float]]:
    """Return the outline of two subtrees; the second is shifted by `offset`."""
    for edges in second:
        edges[0] += offset
        edges[1] += offset
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    for level in range(1, len(shorter) + 1):
        longer[-level] = [first[-level][0], second[-level][1]]
    return longer


@validated(
    {
        "decision_tree": "no_validation",
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "feature_names": ["array-like", None],
        "class_names": ["array-like", "boolean", None],
        "label": [StrOptions({"all", "root", "none"})],
        "filled": ["boolean"],
        "impurity": ["boolean"],
        "node_ids": ["boolean"],
        "proportion": ["boolean"],
        "rounded": ["boolean"],
        "precision": [Interval(Integral, 0, None, closed="left"), None],
        "ax": "no_validation",
        "fontsize": [Interval(Integral, 0, None, closed="left"), None],
    }
)
def plot_tree(
    decision_tree: Any,
    *,
    max_depth: int | None = None,
    feature_names: Any = None,
    class_names: Any = None,
    label: str = "all",
    filled: bool = False,
    impurity: bool = True,
    node_ids: bool = False,
    proportion: bool = False,
    rounded: bool = False,
    precision: int | None = 3,
    ax: Any = None,
    fontsize: int | None = None,
) -> list[Any]:
    """Plot a decision tree with matplotlib.

    Use the ``figsize`` or ``dpi`` arguments of ``plt.figure`` to control the size. `export_svg`
    draws a diagram that stays readable for larger trees.

    Parameters
    ----------
    decision_tree : estimator
        The fitted decision tree to be plotted.

    max_depth : int, default=None
        The maximum depth of the representation; None means no limit.

    feature_names : array-like of str, default=None
        Names of the features. If None, generic names are used ("x[0]", "x[1]", ...); for a tree
        fitted with categorical columns, its `feature_names_in_` if available.

    class_names : array-like of str or True, default=None
        Names of the classes in the order of `classes_`; True shows "y[0]", "y[1]", ...
        Not used for several outputs.

    label : {"all", "root", "none"}, default="all"
        At which nodes to label the numbers ("samples = ", "value = ").

    filled : bool, default=False
        Whether to colour the nodes by majority class, value, or purity (several outputs).

    impurity : bool, default=True
        Whether to show the impurity.

    node_ids : bool, default=False
        Whether to show the index of each node.

    proportion : bool, default=False
        Whether to show fractions instead of counts.

    rounded : bool, default=False
        Whether to round the corners of the boxes.

    precision : int, default=3
        Number of decimals of impurity, threshold and value.

    ax : matplotlib axes, default=None
        Axes to plot to, the current ones if None. Any previous content is cleared.

    fontsize : int, default=None
        Size of the text. If None, as large as fits.

    Returns
    -------
    annotations : list of artists
        The annotation boxes that make up the tree.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("agg")
    >>> from spinney.tree import DecisionTreeClassifier, plot_tree
    >>> clf = DecisionTreeClassifier().fit([[0], [1]], [0, 1])
    >>> [box.get_text() for box in plot_tree(clf, impurity=False, label="none")]
    ['x[0] <= 0.5\\n2\\n[1, 1]', '1\\n[1, 0]', 'True  ', '1\\n[0, 1]', '  False']
    """
    feature_names = checked_names(feature_names)
    class_names = checked_names(class_names)
    require_tree(decision_tree)
    require_binary(decision_tree, "plot_tree")
    # Imported here because matplotlib is an optional dependency.
    import matplotlib.pyplot as plt
    from matplotlib.text import Annotation

    feature_names = default_feature_names(decision_tree, feature_names)
    tree = NamedTree(decision_tree, feature_names)
    labels = NodeLabels(
        tree,
        LINE_MARKS,
        feature_names=feature_names,
        class_names=class_names,
        label=label,
        impurity=impurity,
        node_ids=node_ids,
        proportion=proportion,
        precision=precision,
    )
    colours = NodeColours(tree) if filled else None
    if ax is None:
        ax = plt.gca()
    ax.clear()
    ax.set_axis_off()

    shown = list(tree.walk(None if max_depth is None else max_depth + 1))
    index = {node: i for i, (node, _, _) in enumerate(shown)}
    children: list[list[int]] = [[] for _ in shown]
    for i, (_, _, parent) in enumerate(shown):
        if parent >= 0:
            children[index[parent]].append(i)
    across = tidy_layout(children, [1.0] * len(shown))
    n_across = max(across) + 0.5
    n_levels = max(depth for _, depth, _ in shown) + 1
    # Positions as fractions of the axes: left to right, and from the top down.
    positions = [
        (x / n_across, (n_levels - depth - 0.5) / n_levels)
        for x, (_, depth, _) in zip(across, shown, strict=True)
    ]
    for i, (node, depth, parent) in enumerate(shown):
        common: dict[str, Any] = {"zorder": 100 - 10 * depth, "xycoords": "axes fraction"}
        if fontsize is not None:
            common["fontsize"] = fontsize
        cut = max_depth is not None and depth > max_depth
        own = ax.get_facecolor() if colours is None or cut else colours(node)
        boxed: dict[str, Any] = {
            "ha": "center",
            "va": "center",
            "bbox": {"fc": "grey" if cut else own} | ({"boxstyle": "round"} if rounded else {}),
            "arrowprops": {"arrowstyle": "<-", "edgecolor": plt.rcParams["text.color"]},
        }
        text = "\n  (...)  \n" if cut else labels(node)
        if parent < 0:
            ax.annotate(text, positions[i], **boxed, **common)
            continue
        above = positions[index[parent]]
        ax.annotate(text, above, positions[i], **boxed, **common)
        if parent == 0 and not cut:
            halfway = ((above[0] + positions[i][0]) / 2, (above[1] + positions[i][1]) / 2)
            if node == tree.children_left[0]:
                ax.annotate("True  ", halfway, ha="right", **common)
            else:
                ax.annotate("  False", halfway, ha="left", **common)

    annotations = [artist for artist in ax.get_children() if isinstance(artist, Annotation)]
    canvas = ax.figure.canvas  # SVG and PDF canvases, and the base class, have no renderer
    renderer = canvas.get_renderer() if hasattr(canvas, "get_renderer") else None
    renderer = ax.figure._get_renderer() if renderer is None else renderer
    for annotation in annotations:
        annotation.update_bbox_position_size(renderer)
    if fontsize is None:
        boxes = [patch.get_window_extent() for a in annotations if (patch := a.get_bbox_patch())]
        room = ax.get_window_extent()
        size = annotations[0].get_fontsize() * min(
            room.width / n_across / max(box.width for box in boxes),
            room.height / n_levels / max(box.height for box in boxes),
        )
        for annotation in annotations:
            annotation.set_fontsize(size)
    return annotations
