"""Nearest neighbours: indexes that find them, and estimators that learn from them."""

from spinney.neighbors._ball_tree import BallTree
from spinney.neighbors._brute_force import BruteForce
from spinney.neighbors._kd_tree import KDTree
from spinney.neighbors._local import LocalClassifier, LocalRegression

__all__ = ["BallTree", "BruteForce", "KDTree", "LocalClassifier", "LocalRegression"]
