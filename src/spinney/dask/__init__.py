"""Estimators for rows on Dask: tables that are larger than memory or on several machines.

Dask itself is imported when an estimator is fitted; ``pip install 'spinney[dask]'`` installs it.
"""

from spinney.dask._boosting import (
    GradientBoostingClassifier,
    GradientBoostingRanker,
    GradientBoostingRegressor,
)
from spinney.dask._forests import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.dask._linear import LinearRegression, LogisticRegression, Ridge
from spinney.dask._neighbors import KNeighborsClassifier, KNeighborsRegressor

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "IsolationForest",
    "KNeighborsClassifier",
    "KNeighborsRegressor",
    "LinearRegression",
    "LogisticRegression",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Ridge",
]
