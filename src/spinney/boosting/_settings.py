"""What "auto" means: parameters of boosting by the size of the data.

The rules were chosen by `benchmarks/defaults.py`, over many tables at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Settings", "settle"]

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
_FEW = 50  # rows, below which some of them cannot be spared to be watched
_FEW_TO_GROW = 3000  # rows, below which trees are to differ more
# With few rows and more columns than this, time goes by columns and bins, and fewer of them do.
_MANY_COLUMNS = 2000
_BINS_OF_MANY = 64


@dataclass(frozen=True)
class Settings:
    """Parameters of a fit, none of them "auto".

    Parameters
    ----------
    growth : str
        As of the estimators.
    learning_rate, subsample, max_features, l2_regularization : float
        As of the estimators.
    n_estimators, min_samples_leaf, n_iter_no_change, n_folds : int
        As of the estimators.
    max_leaf_nodes, max_bins : int or None
        As of the estimators.
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


def settle(
    estimator: Any,
    n_estimators: Any,
    n_rows: float,
    n_scores: int,
    oblivious: bool = True,
    n_columns: int = 1,
) -> list[Settings]:
    """Decide what is left to "auto".

    Parameters
    ----------
    estimator : BaseBoosting
        Its parameters are read.
    n_estimators : int or "auto"
        Rounds.
    n_rows : float
        Rows to learn from; weights that are whole numbers count as repeated rows.
    n_scores : int
        Raw scores of a row.
    oblivious : bool, default=True
        Whether trees can be.
    n_columns : int, default=1
        Columns of the table.

    Returns
    -------
    list of Settings
        All parameters; if there are several, the loss of rows left out has to decide.
    """
    told = {name: getattr(estimator, name) for name in _PLAIN if name != "n_estimators"}
    told |= {"n_estimators": n_estimators, "max_bins": estimator.max_bins}
    if not _is_auto(n_estimators):
        return [_complete(told, _PLAIN)]
    if n_rows < _FEW:
        return [_complete(told, {**_PLAIN, "min_samples_leaf": 5})]
    n_folds = told["n_folds"]
    if _is_auto(n_folds):
        n_folds = 1 if estimator.warm_start else int(np.clip(60_000 / (n_rows * n_scores), 1, 8))
    kinds = [told["growth"]]
    if _is_auto(kinds[0]):
        both = n_folds > 1 and oblivious
        kinds = ["best_first", "oblivious"] if both else ["best_first"]
    told["n_folds"] = n_folds
    wide = n_rows < _FEW_TO_GROW and n_columns > _MANY_COLUMNS
    if wide and told["max_bins"] is not None:
        told["max_bins"] = min(told["max_bins"], _BINS_OF_MANY)
    return [_complete(told | {"growth": kind}, _open_ended(kind, n_rows, wide)) for kind in kinds]


def _complete(told: dict[str, Any], rules: dict[str, Any]) -> Settings:
    return Settings(**{name: rules[name] if _is_auto(v) else v for name, v in told.items()})


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _open_ended(growth: str, n_rows: float, wide: bool) -> dict[str, Any]:
    """Rules for a model whose number of rounds is left to early stopping.

    Few rows bear small trees, and trees that differ: their mean is steadier.
    """
    oblivious = growth == "oblivious"
    few = n_rows < _FEW_TO_GROW
    root = np.sqrt(n_rows)
    return {
        "learning_rate": 0.05,
        "n_estimators": 1000,
        "max_leaf_nodes": int(np.clip(root, 16, 64) if oblivious else np.clip(root / 2, 8, 31)),
        "min_samples_leaf": 1 if oblivious else 2 if few else 5,
        "l2_regularization": 3.0,
        "subsample": 0.7 if few else 0.8,
        "max_features": 0.25 if wide else 0.5 if few else 1.0 if oblivious else 0.7,
        "n_iter_no_change": 50,
    }
