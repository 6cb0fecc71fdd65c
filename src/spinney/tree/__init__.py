"""Decision trees: growing, pruning and reading them."""

from spinney.models.tree import Tree
from spinney.tree._estimators import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from spinney.tree.export._plot import plot_tree
from spinney.tree.export._rules import Rule, export_rules
from spinney.tree.export._svg import export_svg
from spinney.tree.export._text import export_text
from spinney.tree.export.graphviz import export_graphviz
from spinney.tree.partition._partition import PartitionClassifier, PartitionRegressor
from spinney.tree.partition._plot_partition import plot_partition
from spinney.tree.partition._quad_tree import QuadTree, QuadTreeClassifier, QuadTreeRegressor
from spinney.tree.quinlan._c45 import C45Classifier
from spinney.tree.quinlan._c45_rules import C45Rules
from spinney.tree.quinlan._id3 import ID3Classifier
from spinney.tree.quinlan._multiway_tree import MultiwayTree
from spinney.tree.quinlan._quinlan import information_gain
from spinney.tree.triplet._estimators import ComparisonTreeClassifier, ComparisonTreeRegressor
from spinney.tree.triplet.tree import ComparisonTree

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
