"""Values of the parameters that are "auto", by the size of the data.

The values were chosen by `benchmarks/defaults.py`, on many tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Settings", "resolve_settings"]

_PLAIN: dict[str, Any] = {
    "growth": "best_first",
    "learning_rate": 0.1,
    "n_estimators": 100,
    "max_leaf_nodes": 31,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "subsample": 1.0,
    "max_features": 1.0,
    "n_iter_no_change": 10,
    "n_folds": 1,
}
_FEW_ROWS = 50  # with fewer rows, none is held out for validation
_SMALL_TABLE = 3000  # with fewer rows, randomness of the trees helps
# In small tables with more columns than this, bins take most of the time, and fewer suffice.
_MANY_COLUMNS = 2000
_BINS_OF_MANY_COLUMNS = 64


@dataclass(frozen=True)
class Settings:
    """Parameters of a fit without "auto".

    Parameters
    ----------
    growth : str
        "best_first", "level_wise" or "oblivious".
    learning_rate, subsample, max_features, l2_regularization : float
        See `GradientBoostingRegressor`.
    n_estimators, min_samples_leaf, n_iter_no_change, n_folds : int
        See `GradientBoostingRegressor`.
    max_leaf_nodes, max_bins : int or None
        See `GradientBoostingRegressor`.
    """

    growth: str
    learning_rate: float
    n_estimators: int
    max_leaf_nodes: int | None
    min_samples_leaf: int
    l2_regularization: float
    subsample: float
    max_features: float
    n_iter_no_change: int
    n_folds: int
    max_bins: int | None


def resolve_settings(
    estimator: Any,
    n_estimators: Any,
    *,
    n_rows: float,
    n_scores: int,
    n_columns: int = 1,
    oblivious: bool = True,
) -> list[Settings]:
    """Return settings in which values replace "auto".

    Parameters
    ----------
    estimator : BaseBoosting
        Its parameters are read.
    n_estimators : int or "auto"
        Number of rounds.
    n_rows : float
        Number of training rows; integer weights count as repeated rows.
    n_scores : int
        Number of raw scores of a row.
    n_columns : int, default=1
        Number of columns of the table.
    oblivious : bool, default=True
        Whether trees may be oblivious.

    Returns
    -------
    list of Settings
        The settings to try. If there are several, the fit keeps those with the lowest validation
        loss.
    """
    given = {name: getattr(estimator, name) for name in _PLAIN if name != "n_estimators"}
    given |= {"n_estimators": n_estimators, "max_bins": estimator.max_bins}
    if not _is_auto(n_estimators):
        return [_complete(given, _PLAIN)]
    if n_rows < _FEW_ROWS:
        return [_complete(given, {**_PLAIN, "min_samples_leaf": 5})]
    n_folds = given["n_folds"]
    if _is_auto(n_folds):
        n_folds = 1 if estimator.warm_start else int(np.clip(60_000 / (n_rows * n_scores), 1, 8))
    growths = [given["growth"]]
    if _is_auto(growths[0]):
        both = n_folds > 1 and oblivious
        growths = ["best_first", "oblivious"] if both else ["best_first"]
    given["n_folds"] = n_folds
    wide = n_rows < _SMALL_TABLE and n_columns > _MANY_COLUMNS
    if wide and given["max_bins"] is not None:
        given["max_bins"] = min(given["max_bins"], _BINS_OF_MANY_COLUMNS)
    return [
        _complete(given | {"growth": growth}, _stopping_defaults(growth, n_rows, wide))
        for growth in growths
    ]


def _complete(given: dict[str, Any], defaults: dict[str, Any]) -> Settings:
    return Settings(**{name: defaults[name] if _is_auto(v) else v for name, v in given.items()})


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _stopping_defaults(growth: str, n_rows: float, wide: bool) -> dict[str, Any]:
    """Return defaults for a model with early stopping.

    Small tables need small trees with more randomness: the mean of such trees varies less.
    """
    oblivious = growth == "oblivious"
    small = n_rows < _SMALL_TABLE
    root = np.sqrt(n_rows)
    return {
        "learning_rate": 0.05,
        "n_estimators": 1000,
        "max_leaf_nodes": int(np.clip(root, 16, 64) if oblivious else np.clip(root / 2, 8, 31)),
        "min_samples_leaf": 1 if oblivious else 2 if small else 5,
        "l2_regularization": 3.0,
        "subsample": 0.7 if small else 0.8,
        "max_features": 0.25 if wide else 0.5 if small else 1.0 if oblivious else 0.7,
        "n_iter_no_change": 50,
    }
