"""Nearest neighbours: indexes, searches, classification and regression."""

from spinney.neighbors._algorithm import choose_algorithm
from spinney.neighbors._ball_tree import BallTree
from spinney.neighbors._brute_force import BruteForce
from spinney.neighbors._classifiers import KNeighborsClassifier, RadiusNeighborsClassifier
from spinney.neighbors._hnsw import HNSW
from spinney.neighbors._kd_tree import KDTree
from spinney.neighbors._local import LocalClassifier, LocalRegression
from spinney.neighbors._nearest import NearestNeighbors
from spinney.neighbors._regressors import KNeighborsRegressor, RadiusNeighborsRegressor
from spinney.neighbors._transformers import KNeighborsTransformer, RadiusNeighborsTransformer

__all__ = [
    "HNSW",
    "BallTree",
    "BruteForce",
    "KDTree",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "KNeighborsTransformer",
    "LocalClassifier",
    "LocalRegression",
    "NearestNeighbors",
    "RadiusNeighborsClassifier",
    "RadiusNeighborsRegressor",
    "RadiusNeighborsTransformer",
    "choose_algorithm",
]
