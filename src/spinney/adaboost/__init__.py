"""AdaBoost and AnyBoost: boosting of any learner."""

from spinney.adaboost._adaboost_classifier import AdaBoostClassifier
from spinney.adaboost._adaboost_regressor import AdaBoostRegressor
from spinney.adaboost._anyboost_classifier import AnyBoostClassifier
from spinney.adaboost._anyboost_regressor import AnyBoostRegressor

__all__ = ["AdaBoostClassifier", "AdaBoostRegressor", "AnyBoostClassifier", "AnyBoostRegressor"]
