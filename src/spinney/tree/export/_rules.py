"""Export of a fitted tree as rules, one for each leaf."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney.tree.export.describe import (
    Path,
    ReadableTree,
    Region,
    checked_names,
    format_category,
    format_number,
    format_set,
    named_tree,
    require_tree,
    validated,
)
from spinney.tree.triplet._describe import ComparisonCondition

__all__ = ["CategoryCondition", "ComparisonCondition", "NumericCondition", "Rule", "export_rules"]

SET_LIMIT = 8  # number of categories listed in the text of a rule; further ones are counted


@dataclass(frozen=True)
class NumericCondition:
    """``low < x <= high``, where None means no limit.

    Attributes
    ----------
    feature, name : int, str
        The feature's index and name.
    low, high : float or None
        The interval's ends.
    missing : bool
        Whether the condition holds for a missing value.
    """

    feature: int
    name: str
    low: float | None
    high: float | None
    missing: bool
    decimals: int = field(default=3, repr=False)
    show_missing: bool = field(default=False, repr=False)

    def holds(self, value: Any) -> bool:
        """Return whether the condition holds for `value`."""
        if is_missing(value):
            return self.missing
        if isinstance(value, np.generic):
            value = value.item()  # comparing with a float32 would round the limit to float32
        return bool(
            (self.low is None or value > self.low) and (self.high is None or value <= self.high)
        )

    def __str__(self) -> str:
        low = None if self.low is None else format_number(self.low, self.decimals)
        high = None if self.high is None else format_number(self.high, self.decimals)
        # The split `x <= inf` separates present values from missing ones.
        if self.low == np.inf:
            return f"{self.name} is missing" if self.missing else f"{self.name} > inf"
        if self.high == np.inf:
            high = None
        if low is None and high is None:
            return f"{self.name} is anything" if self.missing else f"{self.name} is not missing"
        if low is None:
            text = f"{self.name} <= {high}"
        elif high is None:
            text = f"{self.name} > {low}"
        else:
            text = f"{low} < {self.name} <= {high}"
        return text + _or_missing(self)


@dataclass(frozen=True)
class CategoryCondition:
    """``x in {…}``.

    Attributes
    ----------
    feature, name : int, str
        The feature's index and name.
    categories : tuple
        The categories for which the condition holds.
    excluded : tuple
        All other categories that were known at fit.
    missing : bool
        Whether the condition holds for a missing value or a category that is in neither tuple.
    """

    feature: int
    name: str
    categories: tuple[Any, ...]
    excluded: tuple[Any, ...]
    missing: bool
    show_missing: bool = field(default=False, repr=False)

    def holds(self, value: Any) -> bool:
        """Return whether the condition holds for `value`."""
        if is_missing(value):
            return self.missing
        if value in self.categories:
            return True
        return self.missing and value not in self.excluded

    def __str__(self) -> str:
        if not self.categories and self.missing:
            return f"{self.name} is missing"
        if not self.excluded:
            return f"{self.name} is anything" if self.missing else f"{self.name} is not missing"
        by_excluded = len(self.excluded) < len(self.categories)
        values = self.excluded if by_excluded else self.categories
        listed = format_set([format_category(value) for value in values], SET_LIMIT)
        word = "not in" if by_excluded else "in"
        return f"{self.name} {word} {listed}" + _or_missing(self)


Condition = NumericCondition | CategoryCondition | ComparisonCondition


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or pandas' NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA has no truth value
        return True


@dataclass(frozen=True)
class Rule:
    """The conditions of one leaf and its prediction.

    Attributes
    ----------
    conditions : tuple of NumericCondition or CategoryCondition
        One for each feature split on along the path, in the order of the first split. Comparison
        trees have a ComparisonCondition for each split.
    prediction : object
        The class or the number that `predict` returns; a tuple for several outputs.
    label : str
        The prediction as text, with `class_names` if given.
    probability : float, tuple of float or None
        The predicted class's fraction of the leaf (one for each output); None for regression.
    value : tuple of tuple of float
        Class fractions or means, one tuple for each output.
    n_samples : int
        Number of training rows in the leaf.
    weight : float
        Total weight of these rows.
    impurity : float
        The leaf's impurity.
    node : int
        The leaf's index in `tree_`, as `apply` returns it.
    """

    conditions: tuple[Condition, ...]
    prediction: Any
    label: str
    probability: float | tuple[float, ...] | None
    value: tuple[tuple[float, ...], ...]
    n_samples: int
    weight: float
    impurity: float
    node: int

    def covers(self, row: Any) -> bool:
        """Return whether the rule covers a row.

        Parameters
        ----------
        row : mapping or sequence
            Values by feature name (a dict, a pandas Series) or in the order of the features; for
            a comparison tree, a row of any supported kind.

        Returns
        -------
        bool
            True for exactly one rule of a tree. No rule of a C4.5 tree covers a row with a missing
            value on its path. No rule of a partition covers a row in an empty cell.
        """
        named = hasattr(row, "keys")
        for condition in self.conditions:
            if isinstance(condition, ComparisonCondition):
                if not condition.holds_for(row):
                    return False
                continue
            key = condition.name if named and condition.name in row else condition.feature
            if not condition.holds(row[key]):
                return False
        return True

    def __str__(self) -> str:
        conditions = " AND ".join(map(str, self.conditions)) or "true"
        details = f"n={self.n_samples}"
        if isinstance(self.probability, tuple):
            details = f"p={', '.join(f'{p:.2f}' for p in self.probability)}, {details}"
        elif self.probability is not None:
            details = f"p={self.probability:.2f}, {details}"
        return f"IF {conditions} THEN {self.label} ({details})"


@validated(
    {
        "decision_tree": "no_validation",
        "feature_names": ["array-like", None],
        "class_names": ["array-like", None],
        "decimals": [Interval(Integral, 0, None, closed="left")],
        "max_rules": [Interval(Integral, 1, None, closed="left"), None],
        "order": [StrOptions({"leaf", "coverage"})],
        "show_missing": ["boolean", StrOptions({"auto"})],
    }
)
def export_rules(
    decision_tree: Any,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    decimals: int = 3,
    max_rules: int | None = None,
    order: str = "leaf",
    show_missing: bool | str = "auto",
) -> list[Rule]:
    """Export a decision tree as rules, one for each leaf.

    Several conditions on the same feature are merged into one.

    Parameters
    ----------
    decision_tree : estimator
        The fitted decision tree.

    feature_names : array-like of shape (n_features,), default=None
        Names of the features; `feature_names_in_` if None, or else "x[0]", "x[1]", ...

    class_names : array-like of shape (n_classes,), default=None
        Names of the classes in the order of `classes_`; None means the values of `classes_`.

    decimals : int, default=3
        Number of decimals in the text of the rules; the conditions keep all digits.

    max_rules : int, default=None
        Return only this many rules, those with the most training rows. None means no limit.

    order : {"leaf", "coverage"}, default="leaf"
        In the order of the leaves from left to right, or by decreasing number of training rows.

    show_missing : bool or "auto", default="auto"
        Whether the text shows "or missing" if a condition holds for missing values. "auto": only
        if some node sends them to the smaller child.

    Returns
    -------
    rules : list of Rule
        Exactly one covers any row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.tree import DecisionTreeClassifier, export_rules
    >>> iris = load_iris()
    >>> widths = iris.data[:, [1, 3]]
    >>> clf = DecisionTreeClassifier(max_depth=2).fit(widths, iris.target)
    >>> names = ["sepal width", "petal width"]
    >>> rules = export_rules(clf, feature_names=names, class_names=iris.target_names)
    >>> for rule in rules:
    ...     print(rule)
    IF petal width <= 0.8 THEN setosa (p=1.00, n=50)
    IF 0.8 < petal width <= 1.75 THEN versicolor (p=0.91, n=54)
    IF petal width > 1.75 THEN virginica (p=0.98, n=46)
    >>> rules[1].covers(widths[70]), rules[2].covers(widths[70])
    (False, True)
    """
    feature_names = checked_names(feature_names)
    class_names = checked_names(class_names)
    require_tree(decision_tree)
    tree = named_tree(decision_tree, feature_names, class_names)
    missing = tree.shows_missing(show_missing)
    leaves: list[tuple[int, Path]] = []
    stack: list[tuple[int, Path]] = [(0, ())]
    while stack:
        node, path = stack.pop()
        if tree.is_leaf(node):
            leaves.append((node, path))
        else:
            children = list(enumerate(tree.children(node)))
            stack += [(child, tree.narrow_path(node, path, b)) for b, child in reversed(children)]
    ranked = sorted(range(len(leaves)), key=lambda i: (-tree.n_node_samples[leaves[i][0]], i))
    kept = ranked[:max_rules]
    if order == "leaf":
        kept.sort()
    return [_rule(tree, *leaves[i], decimals, missing) for i in kept]


def _rule(tree: ReadableTree, node: int, path: Path, decimals: int, show_missing: bool) -> Rule:
    outputs = range(tree.n_outputs)
    predictions: list[Any]
    probabilities: list[float] | None = None
    if tree.classifier:
        fractions = [tree.fractions(node, k) for k in outputs]
        winners = [int(np.argmax(f)) for f in fractions]
        predictions = [tree.classes[k][winners[k]] for k in outputs]
        labels = [tree.class_names[k][winners[k]] for k in outputs]
        probabilities = [float(fractions[k][winners[k]]) for k in outputs]
        value = tuple(tuple(map(float, f)) for f in fractions)
    else:
        predictions = [tree.mean(node, k) for k in outputs]
        labels = [format_number(mean, decimals) for mean in predictions]
        value = tuple((mean,) for mean in predictions)
    single = tree.n_outputs == 1
    probability: float | tuple[float, ...] | None = None
    if probabilities is not None:
        probability = probabilities[0] if single else tuple(probabilities)
    return Rule(
        conditions=tuple(_condition(tree, region, decimals, show_missing) for region in path),
        prediction=predictions[0] if single else tuple(predictions),
        label=", ".join(labels),
        probability=probability,
        value=value,
        n_samples=int(tree.n_node_samples[node]),
        weight=float(tree.weighted_n_node_samples[node]),
        impurity=float(tree.impurity[node]),
        node=node,
    )


def _condition(tree: ReadableTree, region: Any, decimals: int, show_missing: bool) -> Condition:
    if not isinstance(region, Region):
        return cast(Condition, region)  # paths of comparison trees consist of conditions
    name = tree.feature_names[region.feature]
    if region.codes is None:
        return NumericCondition(
            feature=region.feature,
            name=name,
            low=region.low,
            high=region.high,
            missing=region.missing,
            decimals=decimals,
            show_missing=show_missing,
        )
    values = list(tree.categories[region.feature])
    return CategoryCondition(
        feature=region.feature,
        name=name,
        categories=tuple(value for code, value in enumerate(values) if code in region.codes),
        excluded=tuple(value for code, value in enumerate(values) if code not in region.codes),
        missing=region.missing,
        show_missing=show_missing,
    )


def _or_missing(condition: NumericCondition | CategoryCondition) -> str:
    return " or missing" if condition.missing and condition.show_missing else ""
