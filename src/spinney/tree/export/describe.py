"""Text of the nodes of a fitted tree: splits, branches, names and numbers.

All exporters (text, rules, Graphviz, matplotlib, SVG) read trees through `NamedTree`, and so agree
on these definitions.

split
    Numeric: ``x <= threshold`` goes left. Categorical: ``x in C`` goes left.
side
    The categories that go left, or right, at a categorical split. A side contains only *known*
    categories (those of the column in fit) that can reach the node. Categories that are absent
    from the node's training rows follow the larger child.
missing
    A missing value, or a category unseen in fit, follows `missing_go_to_left`. If the training
    rows of a node have no missing values, that is the larger child. Exporters therefore show the
    direction only if some node deviates from this default (`NamedTree.shows_missing`).
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils._param_validation import validate_params
from sklearn.utils.validation import check_array, check_is_fitted

LEAF = -1
ELLIPSIS = "…"

Function = TypeVar("Function", bound=Callable[..., Any])
Sides = tuple[tuple[int, ...], tuple[int, ...]]  # codes that go left, codes that go right


@dataclass(frozen=True)
class Region:
    """The values of one feature that are possible after the splits on a path."""

    feature: int
    low: float | None = None
    high: float | None = None
    codes: frozenset[int] | None = None  # for a categorical feature
    missing: bool = True

    def below(self, threshold: float, missing: bool) -> Region:
        """Return the region restricted to values up to a threshold."""
        high = threshold if self.high is None else min(self.high, threshold)
        return Region(self.feature, self.low, high, missing=missing)

    def above(self, threshold: float, missing: bool) -> Region:
        """Return the region restricted to values above a threshold."""
        low = threshold if self.low is None else max(self.low, threshold)
        return Region(self.feature, low, self.high, missing=missing)


# Regions, one for each feature split on along the way; for comparison trees, conditions.
Path = tuple[Any, ...]


def region_of(path: Path, feature: int) -> Region:
    """Return the region of a feature after the splits on a path."""
    return next((region for region in path if region.feature == feature), Region(feature))


def with_region(path: Path, new: Region) -> Path:
    """Return the path with the region of one feature replaced or appended."""
    if any(region.feature == new.feature for region in path):
        return tuple(new if region.feature == new.feature else region for region in path)
    return (*path, new)


class ReadableTree:
    """Interface between fitted trees and exporters: names, numbers and branches.

    Parameters
    ----------
    decision_tree : estimator
        A fitted tree estimator.
    feature_names : sequence, default=None
        Names of the features. None means `feature_names_in_`, or else "x[0]", "x[1]", ...
    class_names : sequence, default=None
        Names of the classes, for one output only. None means the values of `classes_`.
    nodes : object, default=None
        Object with the arrays of the nodes. None means the estimator's ``tree_``.
    criterion : str, default=None
        Name of the impurity. None means the estimator's ``criterion``.
    """

    def __init__(
        self,
        decision_tree: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
        *,
        nodes: Any = None,
        criterion: str | None = None,
    ) -> None:
        tree = decision_tree.tree_ if nodes is None else nodes
        self.tree = tree
        self.classifier: bool = is_classifier(decision_tree)
        self.criterion = criterion or criterion_name(decision_tree.criterion)
        self.n_outputs = int(tree.n_outputs)
        self.impurity: np.ndarray = np.asarray(tree.impurity)
        self.n_node_samples: np.ndarray = np.asarray(tree.n_node_samples)
        self.weighted_n_node_samples: np.ndarray = np.asarray(tree.weighted_n_node_samples)
        self.value: np.ndarray = np.asarray(tree.value)
        self.n_classes: np.ndarray = np.asarray(tree.n_classes)
        categories = getattr(decision_tree, "categories_", None)
        self.categories: list[Any] = (
            [None] * int(tree.n_features) if categories is None else list(categories)
        )
        if feature_names is None:
            feature_names = getattr(decision_tree, "feature_names_in_", None)
        if feature_names is None:
            feature_names = [f"x[{i}]" for i in range(int(tree.n_features))]
        elif len(feature_names) != int(tree.n_features):
            raise ValueError(
                f"Length of feature_names, {len(feature_names)} does not match number of"
                f" features, {int(tree.n_features)}"
            )
        self.feature_names = [str(name) for name in feature_names]
        self.classes: list[Any] = []
        self.class_names: list[list[str]] = []
        if self.classifier:
            classes = decision_tree.classes_
            self.classes = [classes] if self.n_outputs == 1 else list(classes)
            self.class_names = [[str(c) for c in output_classes] for output_classes in self.classes]
            if class_names is not None:
                if self.n_outputs != 1:
                    raise ValueError("class_names is not supported for several outputs.")
                require_class_names(class_names, decision_tree)
                self.class_names = [[str(name) for name in class_names]]

    # --------------------------------------------------------- methods that each kind overrides

    def children(self, node: int) -> list[int]:
        """Return the children of a node, in the order of its branches."""
        raise NotImplementedError

    def title(self, node: int) -> str:
        """Return a short name of the split of a node, such as its feature."""
        raise NotImplementedError

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        """Return the condition of each branch."""
        raise NotImplementedError

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        """Return the condition of each branch for a diagram, at most `room` wide.

        The title of the node is omitted. `size` is the font size.
        """
        raise NotImplementedError

    def missing_branch(self, node: int) -> int:
        """Return the branch that missing values take, or -1 if there is no such branch."""
        raise NotImplementedError

    def shows_missing(self, show_missing: bool | str) -> bool:
        """Resolve a `show_missing` of True, False or "auto"."""
        raise NotImplementedError

    def narrow_path(self, node: int, path: Path, branch: int) -> Path:
        """Return the path extended by a branch, merged into the region of its feature."""
        raise NotImplementedError

    def split_details(self, node: int) -> list[str]:
        """Return lines that describe the split of an internal node."""
        raise NotImplementedError

    # -------------------------------------------------------------------------- shared methods

    def is_leaf(self, node: int) -> bool:
        return not self.children(node)

    @property
    def n_nodes(self) -> int:
        return len(self.n_node_samples)

    @property
    def n_leaves(self) -> int:
        return sum(self.is_leaf(node) for node in range(self.n_nodes))

    def category_names(self, feature: int, codes: Iterable[int]) -> list[str]:
        values = self.categories[feature]
        return [
            format_category(values[code]) if code < len(values) else "missing" for code in codes
        ]

    def fractions(self, node: int, output: int = 0) -> np.ndarray:
        """Return the class fractions of one output."""
        values = self.value[node, output, : int(self.n_classes[output])]
        total = values.sum()
        return values / total if total > 0 else values

    def mean(self, node: int, output: int = 0) -> float:
        """Return the prediction for one output of a regression tree."""
        return float(self.value[node, output, 0])

    def prediction_names(self, node: int) -> list[str]:
        """Return the prediction for each output, as text."""
        outputs = range(self.n_outputs)
        if self.classifier:
            return [self.class_names[k][int(np.argmax(self.fractions(node, k)))] for k in outputs]
        return [format_short(self.mean(node, k)) for k in outputs]

    def headline(self, node: int) -> str:
        """Return the prediction; for a single-output classifier, with its class fraction."""
        text = ", ".join(self.prediction_names(node))
        if not self.classifier or self.n_outputs > 1:
            return text
        return f"{text} · {format_share(float(self.fractions(node).max()))}"

    def details(self, node: int) -> list[str]:
        """Return a full description of a node, one fact per line, names not cut."""
        lines = [f"node {node}"]
        if not self.is_leaf(node):
            first, *others = self.split_details(node)
            lines = [f"node {node}: {first}", *others]
        share = format_share(self.n_node_samples[node] / self.n_node_samples[0])
        lines.append(f"{self.n_node_samples[node]:,} rows ({share})")
        if np.isfinite(self.impurity[node]):
            lines.append(f"{self.criterion} {format_short(self.impurity[node])}")
        weight = self.weighted_n_node_samples[node]
        for output in range(self.n_outputs):
            prefix = f"output {output}, " if self.n_outputs > 1 else ""
            if not self.classifier:
                lines.append(f"{prefix}mean {format_short(self.mean(node, output))}")
                continue
            fractions = self.fractions(node, output)
            for code in np.argsort(-fractions, kind="stable")[:20]:
                if fractions[code] > 0:
                    name, count = self.class_names[output][code], fractions[code] * weight
                    share = format_share(fractions[code])
                    lines.append(f"{prefix}{name}: {share} ({format_short(count)})")
        return lines

    def walk(self, max_depth: int | None = None) -> Iterator[tuple[int, int, int]]:
        """Yield (node, depth, parent) in pre-order, left first, down to `max_depth`."""
        stack = [(0, 0, -1)]
        while stack:
            node, depth, parent = stack.pop()
            yield node, depth, parent
            if max_depth is None or depth < max_depth:
                stack += [(child, depth + 1, node) for child in reversed(self.children(node))]

    def subtree_shapes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of levels and nodes of the subtree rooted at each node."""
        levels = np.ones(self.n_nodes, dtype=np.intp)
        nodes = np.ones(self.n_nodes, dtype=np.intp)
        for node, _, parent in reversed(list(self.walk())):
            if parent >= 0:
                levels[parent] = max(levels[parent], levels[node] + 1)
                nodes[parent] += nodes[node]
        return levels, nodes


class NamedTree(ReadableTree):
    """Reader of a binary tree of Spinney or scikit-learn."""

    def __init__(
        self,
        decision_tree: Any,
        feature_names: Sequence[Any] | None = None,
        class_names: Sequence[Any] | None = None,
    ) -> None:
        super().__init__(decision_tree, feature_names, class_names)
        tree = self.tree
        self.children_left: np.ndarray = np.asarray(tree.children_left)
        self.children_right: np.ndarray = np.asarray(tree.children_right)
        self.feature: np.ndarray = np.asarray(tree.feature)
        self.threshold: np.ndarray = np.asarray(tree.threshold)
        self.missing_left: np.ndarray = np.asarray(tree.missing_go_to_left).astype(bool)
        self._category_start: np.ndarray | None = getattr(tree, "category_start", None)
        self._sides: dict[int, Sides] | None = None

    def children(self, node: int) -> list[int]:
        if self.is_leaf(node):
            return []
        return [int(self.children_left[node]), int(self.children_right[node])]

    def title(self, node: int) -> str:
        return self.feature_name(node)

    def branch_texts(self, node: int, decimals: int, missing: bool) -> list[str]:
        name = self.feature_name(node)
        tests = self.tests(node, f"{self.threshold[node]:.{decimals}f}", greater="> ")
        texts = [f"{name} {test}" for test in tests]
        if missing:
            texts[self.missing_branch(node)] += " or missing"
        return texts

    def short_branch_texts(self, node: int, room: float, size: float) -> list[str]:
        return list(self.short_tests(node, room, size))

    def missing_branch(self, node: int) -> int:
        return 0 if self.missing_left[node] else 1

    def split_details(self, node: int) -> list[str]:
        left, right = self.tests(node, f"{self.threshold[node]:.12g}", limit=40)
        missing = f"missing or unknown: as {left if self.missing_left[node] else right}"
        return [f"{self.feature_name(node)} {left}?", missing]

    def narrow_path(self, node: int, path: Path, branch: int) -> Path:
        old = region_of(path, int(self.feature[node]))
        missing = old.missing and self.missing_branch(node) == branch
        if self.is_categorical(node):
            codes = frozenset(self.sides(node)[branch])  # a subset of the codes of the path above
            return with_region(path, Region(old.feature, codes=codes, missing=missing))
        threshold = float(self.threshold[node])
        narrow = old.below if branch == 0 else old.above
        return with_region(path, narrow(threshold, missing))

    def is_leaf(self, node: int) -> bool:
        return bool(self.children_left[node] == LEAF)

    def is_categorical(self, node: int) -> bool:
        return self._category_start is not None and bool(self._category_start[node] >= 0)

    def feature_name(self, node: int) -> str:
        return self.feature_names[int(self.feature[node])]

    def left_is_larger(self, node: int) -> bool:
        left, right = self.children_left[node], self.children_right[node]
        return bool(self.n_node_samples[left] > self.n_node_samples[right])

    def _compute_sides(self) -> dict[int, Sides]:
        """Compute the sides of each categorical node, from the root down."""
        all_sides: dict[int, Sides] = {}
        # For each node and each categorical feature split on above it: codes that can reach it.
        reach: dict[int, dict[int, frozenset[int]]] = {0: {}}
        for node, _, _ in self.walk():
            above = reach.pop(node)
            if self.is_leaf(node):
                continue
            children = int(self.children_left[node]), int(self.children_right[node])
            reach.update(dict.fromkeys(children, above))
            if self.is_categorical(node):
                feature = int(self.feature[node])
                known = above.get(feature, frozenset(range(len(self.categories[feature]))))
                left = known.intersection(map(int, self.tree.left_categories(node)))
                right = known.intersection(map(int, self.tree.right_categories(node))) - left
                if self.left_is_larger(node):
                    left = known - right
                else:
                    right = known - left
                all_sides[node] = tuple(sorted(left)), tuple(sorted(right))
                for child, codes in zip(children, (left, right), strict=True):
                    reach[child] = above | {feature: codes}
        return all_sides

    def sides(self, node: int) -> Sides:
        """Return the codes that go left and right at a categorical node."""
        if self._sides is None:
            self._sides = self._compute_sides()
        return self._sides[node]

    def tests(
        self, node: int, threshold: str, greater: str = ">", limit: int = 8
    ) -> tuple[str, str]:
        """Return the conditions on the feature for going left and right.

        A categorical split lists the shorter of its two sides. A numeric split shows `threshold`,
        which the caller has formatted.
        """
        if not self.is_categorical(node):
            return f"<= {threshold}", f"{greater} {threshold}"
        lefts, rights = self.sides(node)
        by_left = len(lefts) <= len(rights)
        codes = lefts if by_left else rights
        listed = format_set(self.category_names(int(self.feature[node]), codes), limit)
        left, right = f"in {listed}", f"not in {listed}"
        return (left, right) if by_left else (right, left)

    def short_tests(self, node: int, room: float, size: float) -> tuple[str, str]:
        """Return `tests` for a diagram, at most `room` wide, without the feature name."""
        if not self.is_categorical(node):
            threshold = format_short(self.threshold[node])
            # The split `x <= inf` separates present values from missing ones.
            return (
                ("present", "missing")
                if threshold == "inf"
                else (f"≤ {threshold}", f"> {threshold}")
            )
        feature = int(self.feature[node])
        left, right = (self.category_names(feature, codes) for codes in self.sides(node))
        return fit_set(left, right, room, size), fit_set(right, left, room, size)

    def shows_missing(self, show_missing: bool | str) -> bool:
        """Resolve a `show_missing` of True, False or "auto"."""
        if show_missing != "auto":
            return bool(show_missing)
        return any(
            self.missing_left[node] != self.left_is_larger(node)
            for node in range(len(self.children_left))
            if not self.is_leaf(node)
        )


def has_own_reader(decision_tree: Any) -> bool:
    """Return whether an estimator defines its own reader for its tree."""
    return hasattr(type(decision_tree), "_readable_tree")


def named_tree(
    decision_tree: Any, feature_names: Any = None, class_names: Any = None
) -> ReadableTree:
    """Return the reader of a fitted tree of any kind, with feature and class names."""
    if not has_own_reader(decision_tree):
        return NamedTree(decision_tree, feature_names, class_names)
    return cast(ReadableTree, decision_tree._readable_tree(feature_names, class_names))


def require_binary(decision_tree: Any, writer: str) -> None:
    """Raise TypeError if an exporter of binary trees gets another kind of tree."""
    if has_own_reader(decision_tree):
        raise TypeError(
            f"{writer}: expected a tree whose nodes split on one column each, got "
            f"{type(decision_tree).__name__}; use export_text, export_rules or export_svg"
        )


def validated(constraints: dict[str, Any]) -> Callable[[Function], Function]:
    """Return a decorator that checks parameters of a function with scikit-learn."""
    check = validate_params(constraints, prefer_skip_nested_validation=True)
    return cast(Callable[[Function], Function], check)


def require_tree(decision_tree: Any) -> None:
    """Raise unless `decision_tree` is a fitted tree estimator."""
    check_is_fitted(decision_tree)
    if not hasattr(decision_tree, "tree_") and not has_own_reader(decision_tree):
        raise TypeError(
            "The 'decision_tree' parameter must be a fitted decision tree (an estimator with"
            f" `tree_`). Got {decision_tree!r} instead."
        )


def require_class_names(class_names: Sequence[Any], classifier: Any) -> None:
    """Raise unless there is exactly one name for each class."""
    if len(class_names) != len(classifier.classes_):
        raise ValueError(
            "When `class_names` is an array, it should contain as many items as"
            f" `decision_tree.classes_`. Got {len(class_names)} while the tree was fitted with"
            f" {len(classifier.classes_)} classes."
        )


def checked_names(names: Any) -> Any:
    """Return `feature_names` or `class_names` as an array, checked by scikit-learn."""
    if names is None or isinstance(names, bool):
        return names
    return check_array(names, ensure_2d=False, dtype=None, ensure_min_samples=0)


def default_feature_names(decision_tree: Any, feature_names: Any) -> Any:
    """Return `feature_names`, or the fitted names of a tree with categories.

    scikit-learn has no such trees. For numeric ones its exporters ignore `feature_names_in_`, and
    so do Spinney's exporters of the same name.
    """
    categories = getattr(decision_tree, "categories_", None)
    if feature_names is None and any(values is not None for values in categories or ()):
        return getattr(decision_tree, "feature_names_in_", None)
    return feature_names


def criterion_name(criterion: Any) -> str:
    """Return the name of a criterion, which may be a scikit-learn object."""
    if isinstance(criterion, str):
        return criterion
    return "squared_error" if type(criterion).__name__.endswith("MSE") else "impurity"


def format_number(value: float, decimals: int) -> str:
    """Format `value` with at most `decimals` decimals; small values stay nonzero.

    >>> [format_number(x, 3) for x in (30.5, 2.0, 0.00001234, 12345678.9)]
    ['30.5', '2', '1.23e-05', '1.23457e+07']
    """
    value = float(value)
    size = abs(value)
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if size >= 1e7:
        return f"{value:.{decimals + 3}g}"
    if size < min(1.0, 10.0 ** (1 - decimals)):
        return f"{value:.{max(1, decimals)}g}"
    text = f"{value:.{decimals}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def format_short(value: float) -> str:
    """Format `value` with about four digits, for a diagram."""
    size = abs(value)
    if 1e-4 <= size < 1:
        return f"{value:.3g}"
    return format_number(value, 3 if size < 10 else 2 if size < 100 else 1)


def format_share(share: float) -> str:
    """Format a percentage; 0% and 100% appear only if they are exact."""
    percent = f"{100 * share:.0f}"
    if percent == "0" and share > 0:
        return "<1%"
    if percent == "100" and share < 1:
        return ">99%"
    return f"{percent}%"


def format_category(value: Any) -> str:
    """Format a category; integral floats lose their `.0`."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def format_set(names: Sequence[str], limit: int) -> str:
    """Format names as ``{blue, red}``; names beyond `limit` are counted.

    >>> format_set(["a", "b", "c", "d"], 2)
    '{a, b, … (+2)}'
    """
    if len(names) <= limit:
        return "{" + ", ".join(names) + "}"
    return "{" + ", ".join(names[:limit]) + f", {ELLIPSIS} (+{len(names) - limit})}}"


def text_width(text: str, size: float) -> float:
    """Estimate the width of a text in Helvetica; no font metrics are available."""
    width = 0.0
    for char in text:
        if char in "iljtfrI.,:;'|!()[]{} ":
            width += 0.33
        elif char in "mwMW@%…":
            width += 0.9
        elif unicodedata.east_asian_width(char) in "WF":
            width += 1.05
        else:
            width += 0.7 if char.isupper() else 0.57
    return width * size


def fit_text(text: str, room: float, size: float) -> str:
    """Return the text, cut with an ellipsis if it is wider than `room`."""
    if text_width(text, size) <= room:
        return text
    while text and text_width(text + ELLIPSIS, size) > room:
        text = text[:-1]
    return text.rstrip() + ELLIPSIS


def fit_set(names: Sequence[str], others: Sequence[str], room: float, size: float) -> str:
    """Return the names, or "not" and the others, or as many names as fit."""
    if not names:
        return "missing"  # no known category takes this branch
    for text in (", ".join(names), "not " + ", ".join(others)):
        if text_width(text, size) <= room:
            return text
    for n_shown in range(min(len(names), 12), 0, -1):
        more = f", {ELLIPSIS} (+{len(names) - n_shown})" if len(names) > n_shown else ""
        text = ", ".join(names[:n_shown])
        if text_width(text + more, size) <= room:
            return text + more
    return fit_text(text, room - text_width(more, size), size) + more
