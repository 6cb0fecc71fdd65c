"""Decision trees: growing, pruning and reading them."""

from spinney.tree._c45 import C45Classifier
from spinney.tree._c45_rules import C45Rules
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
from spinney.tree._id3 import ID3Classifier
from spinney.tree._multiway_tree import MultiwayTree
from spinney.tree._partition import PartitionClassifier, PartitionRegressor
from spinney.tree._plot import plot_tree
from spinney.tree._plot_partition import plot_partition
from spinney.tree._quad_tree import QuadTree, QuadTreeClassifier, QuadTreeRegressor
from spinney.tree._quinlan import information_gain
from spinney.tree._svg import export_svg
from spinney.tree._tree import Tree

__all__ = [
    "C45Classifier",
    "C45Rules",
    "ComparisonTree",
    "ComparisonTreeClassifier",
    "ComparisonTreeRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ID3Classifier",
    "MultiwayTree",
    "PartitionClassifier",
    "PartitionRegressor",
    "QuadTree",
    "QuadTreeClassifier",
    "QuadTreeRegressor",
    "Rule",
    "Tree",
    "export_graphviz",
    "export_rules",
    "export_svg",
    "export_text",
    "information_gain",
    "plot_partition",
    "plot_tree",
]
