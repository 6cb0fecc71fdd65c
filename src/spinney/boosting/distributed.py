"""One booster fitted by several workers, each with some of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from spinney import _core
from spinney.boosting._fit_plan import FitInput
from spinney.boosting.base import BaseBoosting
from spinney.distributed.workers import NO_CHECKPOINTS, Checkpoints, Workers
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.forest_store import ForestStore
from spinney.runtime.rollback import all_or_nothing

__all__ = ["FitInput", "fit_partition", "fit_seed", "model_from_trees", "trees_of_boosters"]


def fit_partition(
    estimator: BaseBoosting,
    given: FitInput,
    workers: Workers,
    *,
    group: Any = None,
    checkpoints: Checkpoints = NO_CHECKPOINTS,
) -> Any:
    """Fit one model together with other workers, each of which has some of the rows.

    Every worker calls this function with the same parameters and its own rows, possibly none, and
    gets the same model: the one that a single worker with all rows would get, to the last bit. Rows
    are not exchanged. Workers exchange categories, labels, sums, and a sample of the values of each
    column for the bins (of up to 200,000 rows in all), with their weights.

    Parameters
    ----------
    estimator : GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        An estimator that is not fitted, with the same parameters at each worker except `n_jobs`,
        `verbose` and `callbacks`. It is fitted in place.
    given : FitInput
        The rows of this worker. `y` may be a function that returns the targets, so that they need
        not stay in memory. `sample_weight` and `eval_set` are given by all workers or by none.
    workers : Workers
        The other workers, the row numbers in the whole table, and the common seed. Tables of more
        than 200,000 rows get the same bins as on one worker only if the rows are in the order of
        the workers' ranks.
    group : array or None
        For a ranker, as in its `fit`; the rows of a group are contiguous, at one worker.
    checkpoints : Checkpoints
        Trees of an interrupted fit, and a callback after each round. With folds, there is one
        booster for each fold and each kind of trees; otherwise there is one booster.

    Returns
    -------
    estimator
        The fitted estimator.
    """
    exchange = workers.totals.exchange
    assert exchange is not None
    try:
        estimator._validate_params()
        _check_supported(estimator, given, workers)
        if "ndcg_at" in estimator.get_params():
            n_rows = len(given.X if callable(given.y) else given.y)
            given = replace(given, groups=_group_ids(group, n_rows))
        with all_or_nothing(estimator):
            estimator._fit(given, workers, checkpoints)
    except BaseException:
        exchange.abort()
        raise
    return estimator


def model_from_trees(estimator: Any, stores: list[ForestStore]) -> None:
    """Set the model of an interrupted fit on an estimator.

    Parameters
    ----------
    estimator : BaseBoosting
        An estimator with the attributes that a fit has set so far.
    stores : list of ForestStore
        The trees of each booster so far. The model is the mean of the first boosters, one for each
        fold. If there are several stores, a continued fit needs all of them, so they are kept.
    """
    before: BoostedTrees = estimator._model
    folds = stores[: before.n_boosters]
    n_rounds = min(map(len, folds)) // before.trees_per_round
    if len(stores) == 1:
        store = stores[0].part(0, len(stores[0]))
    else:
        store = ForestStore(*before.store.shape)
        cores = [one.core for one in folds]
        _core.append_mean(cores, n_rounds, before.trees_per_round, store.core)
        estimator._checkpoint_trees = stores
    estimator._model = replace(before, store=store, n_rounds=n_rounds, n_boosters=len(folds))


def trees_of_boosters(estimator: Any) -> list[ForestStore] | None:
    """Return the trees of each booster of a model, or None if they are not available.

    A finished model that is the mean of several boosters does not keep their trees.
    """
    stores: list[ForestStore] | None = vars(estimator).get("_checkpoint_trees")
    fitted = estimator.fitted_model()
    if stores is None and fitted.n_boosters == 1:
        return [fitted.store]
    return stores


def fit_seed(estimator: Any) -> int:
    """Return the seed of all random draws of a fit."""
    return int(estimator._continuation.seed)


def _check_supported(estimator: Any, given: FitInput, workers: Workers) -> None:
    """Raise a ValueError for parameters that several workers do not support."""
    unsupported = [
        (estimator.max_bins is None, "max_bins=None: expected a number of bins"),
        (estimator.warm_start, "warm_start=True: expected False"),
        (estimator.scoring is not None, "scoring: expected None, so that the loss decides"),
        (
            hasattr(getattr(estimator, "loss", None), "fit_intercept_only"),
            "loss: expected a name or a function, not a loss object of scikit-learn",
        ),
    ]
    for is_set, message in unsupported:
        if is_set:
            raise ValueError(f"{message} if several workers fit one model")
    weights = given.sample_weight
    if weights is not None and not np.all(np.asarray(weights) > 0):
        raise ValueError(
            "sample_weight: expected positive weights if several workers fit one model"
        )
    for name in ("sample_weight", "eval_set"):
        n_given = workers.totals.count(int(getattr(given, name) is not None))
        exchange = workers.totals.exchange
        if n_given not in (0, exchange.size if exchange else 1):
            raise ValueError(
                f"{name}: expected it from all workers or from none, got it from {n_given}"
            )


def _group_ids(group: Any, n_rows: int) -> Any:
    """Return the index of the group of each row; groups are contiguous."""
    if group is None:
        raise ValueError("group: expected the group of each row, or the sizes of groups")
    group = np.asarray(group)
    if len(group) == n_rows and n_rows:
        changes = np.flatnonzero(group[1:] != group[:-1])
        if len(changes) + 1 != len(np.unique(group)):
            raise ValueError("group: expected the rows of each group to be contiguous")
        return np.searchsorted(changes, np.arange(n_rows), side="left")
    if group.sum() != n_rows:
        raise ValueError(f"group: expected sizes that add up to {n_rows}, got {group.sum()}")
    return np.repeat(np.arange(len(group)), group.astype(np.intp))
