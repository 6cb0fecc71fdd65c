"""Neighbours: searches, votes and means, graphs, for vectors, strings and mixed tables."""

from spinney.neighbors._algorithm import choose_algorithm
from spinney.neighbors._classifiers import KNeighborsClassifier, RadiusNeighborsClassifier
from spinney.neighbors._nearest import NearestNeighbors
from spinney.neighbors._regressors import KNeighborsRegressor, RadiusNeighborsRegressor
from spinney.neighbors._transformers import KNeighborsTransformer, RadiusNeighborsTransformer

__all__ = [
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "choose_algorithm",
]
