"""The same models with rows on Dask: larger than one machine's memory, or spread over many machines.

Dask itself is not loaded before an estimator is fitted; ``pip install 'spinney[dask]'`` has it.
"""

from spinney.dask._boosting import (
    GradientBoostingClassifier,
    GradientBoostingRanker,
    GradientBoostingRegressor,
)
from spinney.dask._linear import LinearRegression, LogisticRegression, Ridge

__all__ = [
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
    "GradientBoostingRegressor",
    "LinearRegression",
    "LogisticRegression",
    "Ridge",
]
