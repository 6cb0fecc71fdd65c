"""Ensembles: bagging, forests, boosting, isolation, embedding, votes and stacks."""

from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)

from spinney.ensemble._adaboost_classifier import AdaBoostClassifier
from spinney.ensemble._adaboost_regressor import AdaBoostRegressor
from spinney.ensemble._anyboost_classifier import AnyBoostClassifier
from spinney.ensemble._anyboost_regressor import AnyBoostRegressor
from spinney.ensemble._bagging import BaggingClassifier, BaggingRegressor
from spinney.ensemble._boosting_classifier import GradientBoostingClassifier
from spinney.ensemble._boosting_ranker import GradientBoostingRanker
from spinney.ensemble._boosting_regressor import GradientBoostingRegressor
from spinney.ensemble._classes import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.ensemble._comparison_forest import (
    ComparisonForestClassifier,
    ComparisonForestRegressor,
)
from spinney.ensemble._embedding import RandomTreesEmbedding
from spinney.ensemble._hist_boosting import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from spinney.ensemble._isolation import IsolationForest
from spinney.ensemble._model_averaging import (
    BayesianModelAveragingClassifier,
    BayesianModelAveragingRegressor,
)

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "AnyBoostClassifier",
    "AnyBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "BayesianModelAveragingClassifier",
    "BayesianModelAveragingRegressor",
    "ComparisonForestClassifier",
    "ComparisonForestRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "IsolationForest",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RandomTreesEmbedding",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
]
