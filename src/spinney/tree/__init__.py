"""Decision trees: growing, pruning and reading them."""

from spinney.tree._classes import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from spinney.tree._comparison_classes import ComparisonTreeClassifier, ComparisonTreeRegressor
from spinney.tree._comparison_tree import ComparisonTree
from spinney.tree._export_graphviz import export_graphviz
from spinney.tree._export_rules import Rule, export_rules
from spinney.tree._export_text import export_text
from spinney.tree._plot import plot_tree
from spinney.tree._svg import export_svg
from spinney.tree._tree import Tree

__all__ = [
    "ComparisonTree",
    "ComparisonTreeClassifier",
    "ComparisonTreeRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "Rule",
    "Tree",
    "export_graphviz",
    "export_rules",
    "export_svg",
    "export_text",
    "plot_tree",
]
