"""Ensembles: bagging, forests, boosting, isolation, embedding, votes and stacks."""

from sklearn.ensemble import (
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)

from spinney.adaboost._adaboost_classifier import AdaBoostClassifier
from spinney.adaboost._adaboost_regressor import AdaBoostRegressor
from spinney.adaboost._anyboost_classifier import AnyBoostClassifier
from spinney.adaboost._anyboost_regressor import AnyBoostRegressor
from spinney.boosting._classifier import GradientBoostingClassifier
from spinney.boosting._hist import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from spinney.boosting._ranker import GradientBoostingRanker
from spinney.boosting._regressor import GradientBoostingRegressor
from spinney.ensemble._bagging import BaggingClassifier, BaggingRegressor
from spinney.ensemble._model_averaging import (
    BayesianModelAveragingClassifier,
    BayesianModelAveragingRegressor,
)
from spinney.forest._comparison_forest import (
    ComparisonForestClassifier,
    ComparisonForestRegressor,
)
from spinney.forest._embedding import RandomTreesEmbedding
from spinney.forest._estimators import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.forest._isolation import IsolationForest

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
