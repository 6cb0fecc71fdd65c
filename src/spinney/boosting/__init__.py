"""Gradient boosting of trees."""

from spinney.boosting._classifier import GradientBoostingClassifier
from spinney.boosting._hist import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from spinney.boosting._ranker import GradientBoostingRanker
from spinney.boosting._regressor import GradientBoostingRegressor

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
]
