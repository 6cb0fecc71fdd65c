"""Random forests, extremely randomized trees, isolation forests and embeddings."""

from spinney.forest._comparison_forest import ComparisonForestClassifier, ComparisonForestRegressor
from spinney.forest._embedding import RandomTreesEmbedding
from spinney.forest._estimators import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.forest._isolation import IsolationForest

__all__ = [
    "ComparisonForestClassifier",
    "ComparisonForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
]
