"""Ensembles: bagging, forests, isolation, embedding."""

from spinney.ensemble._bagging import BaggingClassifier, BaggingRegressor
from spinney.ensemble._classes import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.ensemble._embedding import RandomTreesEmbedding
from spinney.ensemble._isolation import IsolationForest

__all__ = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
]
