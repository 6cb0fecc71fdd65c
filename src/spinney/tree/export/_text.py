"""Export of a fitted tree as indented text."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils._param_validation import Interval, StrOptions

from spinney.tree.export.describe import (
    ReadableTree,
    checked_names,
    default_feature_names,
    has_own_reader,
    named_tree,
    require_class_names,
    require_tree,
    validated,
)

__all__ = ["export_text"]


@validated(
    {
        "decision_tree": "no_validation",  # `require_tree` accepts any fitted tree
        "feature_names": ["array-like", None],
        "class_names": ["array-like", None],
        "max_depth": [Interval(Integral, 0, None, closed="left"), None],
        "spacing": [Interval(Integral, 1, None, closed="left")],
        "decimals": [Interval(Integral, 0, None, closed="left")],
        "show_weights": ["boolean"],
        "show_missing": ["boolean", StrOptions({"auto"})],
    }
)
def export_text(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = 10,
    spacing: int = 3,
    decimals: int = 2,
    show_weights: bool = False,
    show_missing: bool | str = False,
) -> str:
    """Build a text report showing the rules of a decision tree.

    Parameters
    ----------
    decision_tree : estimator
        The fitted decision tree to be exported.

    feature_names : array-like of shape (n_features,), default=None
        Names of the features. If None, generic names are used ("feature_0", "feature_1", ...);
        for a tree fitted with categorical columns, its `feature_names_in_` if available.

    class_names : array-like of shape (n_classes,), default=None
        Names of the classes in the order of `classes_`; None means the values of `classes_`.
        Not supported for several outputs.

    max_depth : int or None, default=10
        Only the first `max_depth` levels are exported; branches cut there are marked
        "truncated branch of depth ...". None means no limit.

    spacing : int, default=3
        Number of spaces between edges.

    decimals : int, default=2
        Number of decimal digits to display.

    show_weights : bool, default=False
        Whether to show the weighted number of rows of each class at each leaf.

    show_missing : bool or "auto", default=False
        Whether to write "or missing" at the branch that missing values (and categories unseen in
        fit) take. "auto" does so only if some node sends them to the smaller child; by default
        they go to the larger one.

    Returns
    -------
    report : str
        The text.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.tree import DecisionTreeClassifier, export_text
    >>> iris = load_iris()
    >>> widths = iris.data[:, [1, 3]]
    >>> clf = DecisionTreeClassifier(max_depth=2).fit(widths, iris.target)
    >>> print(export_text(clf, feature_names=["sepal width", "petal width"]))
    |--- petal width <= 0.80
    |   |--- class: 0
    |--- petal width >  0.80
    |   |--- petal width <= 1.75
    |   |   |--- class: 1
    |   |--- petal width >  1.75
    |   |   |--- class: 2
    <BLANKLINE>
    """
    feature_names = checked_names(feature_names)
    class_names = checked_names(class_names)
    require_tree(decision_tree)
    tree = (
        named_tree(decision_tree, feature_names, class_names)
        if has_own_reader(decision_tree)
        else _as_scikit_learn_names(decision_tree, feature_names, class_names)
    )
    levels, _ = tree.subtree_shapes()
    missing = tree.shows_missing(show_missing)

    lines: list[str] = []
    # (node, depth, header): the header is the line of the branch that leads to the node.
    stack: list[tuple[int, int, str | None]] = [(0, 1, None)]
    while stack:
        node, depth, header = stack.pop()
        if header is not None:
            lines.append(header)
        indent = ("|" + " " * spacing) * depth
        indent = indent[:-spacing] + "-" * spacing
        cut = max_depth is not None and depth > max_depth + 1
        if tree.is_leaf(node):
            lines.append(indent + _leaf_text(tree, node, decimals, show_weights))
        elif cut:
            lines.append(f"{indent} truncated branch of depth {levels[node]}")
        else:
            texts = tree.branch_texts(node, decimals, missing)
            branches = list(zip(tree.children(node), texts, strict=True))
            stack += [(child, depth + 1, f"{indent} {text}") for child, text in reversed(branches)]
    return "\n".join(lines) + "\n"


def _as_scikit_learn_names(
    decision_tree: Any, feature_names: Any, class_names: Any
) -> ReadableTree:
    """Return a binary tree with the names of scikit-learn's `export_text`."""
    if class_names is not None and is_classifier(decision_tree):
        require_class_names(class_names, decision_tree)
        if decision_tree.tree_.n_outputs != 1:
            class_names = None  # scikit-learn ignores class names for several outputs
    n_features = int(decision_tree.tree_.n_features)
    if feature_names is not None and len(feature_names) != n_features:
        raise ValueError(
            f"feature_names must contain {n_features} elements, got {len(feature_names)}"
        )
    feature_names = default_feature_names(decision_tree, feature_names)
    if feature_names is None:
        feature_names = [f"feature_{i}" for i in range(n_features)]
    return named_tree(decision_tree, feature_names, class_names)


def _leaf_text(tree: ReadableTree, node: int, decimals: int, show_weights: bool) -> str:
    value = tree.value[node][0] if tree.n_outputs == 1 else tree.value[node].T[0]
    if not tree.classifier:
        return f" value: [{', '.join(f'{v:.{decimals}f}' for v in value)}]"
    winner: Any = np.argmax(value)
    # For several outputs or a single class, the index is written, as in scikit-learn.
    if tree.n_outputs == 1 and tree.n_classes[0] != 1:
        winner = tree.class_names[0][winner]
    text = f" class: {winner}"
    if not show_weights:
        return text
    weights = value * tree.weighted_n_node_samples[node]
    return f" weights: [{', '.join(f'{v:.{decimals}f}' for v in weights)}]{text}"
