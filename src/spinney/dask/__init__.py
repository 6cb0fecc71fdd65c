"""The same models with rows on Dask: larger than memory, or spread over many machines.

Dask itself is not loaded before an estimator is fitted; ``pip install 'spinney[dask]'`` has it.
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
