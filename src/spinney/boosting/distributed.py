"""One booster fitted by several workers, each with a part of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spinney.boosting.base import BaseBoosting
from spinney.distributed.exchange import Exchange
from spinney.distributed.shard import Shard
from spinney.distributed.totals import RowNumbers, Totals
from spinney.models.forest_store import ForestStore
from spinney.runtime.rollback import all_or_nothing

__all__ = ["fit_shard"]


def fit_shard(
    estimator: BaseBoosting,
    X: Any,
    y: Any,
    *,
    exchange: Exchange,
    stretches: Sequence[tuple[int, int]],
    seed: int,
    sample_weight: Any = None,
    group: Any = None,
    eval_set: Any = None,
    start: Sequence[ForestStore] | None = None,
    after_round: Callable[[int, ForestStore, int], object] | None = None,
    labels: Any = None,
) -> Any:
    """Fit one model to rows of which this worker has a part, together with the other workers.

    Every worker calls this with the same parameters and its own rows, which may be none, and gets
    the same model: the one that a single worker with all rows would get, to the last bit. No rows
    travel: workers tell each other categories, labels and a sample of the values of each column
    (of up to 200,000 rows in all) for the bins, with their weights, and then sums.

    Parameters
    ----------
    estimator : GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        Not fitted; with the same parameters everywhere, but for `n_jobs`, `verbose` and
        `callbacks`. It is fitted.
    X, y : rows and targets
        Of this worker. y may be a function that gives them, so that nobody holds them longer than
        they are needed.
    exchange : Exchange
        The other workers. If anything goes wrong, these are told.
    stretches : sequence of (int, int)
        For each stretch of rows that also follow each other in the whole table: where it begins
        here, and the number of its first row in the whole table. Random draws go by these numbers.
        More than 200,000 rows get the bins of a single worker only if workers have them in the
        order of their ranks.
    seed : int
        The same everywhere; what `random_state` is to a single worker.
    sample_weight : array of shape (n_rows,) or None
        Weights of the rows, of all workers or none.
    group : array or None
        For a ranker, as in its `fit`; the rows of a group are side by side, with one worker.
    eval_set : tuple or None
        Rows to watch, of all workers or none; a worker may have none of them.
    start : sequence of ForestStore or None
        Trees of the first rounds of each booster, if an earlier fit was broken off. With early
        stopping in folds there is a booster for each fold, and for each kind of trees that is
        tried; otherwise there is one.
    after_round : callable or None
        Called after each round of a booster with the number of its rounds so far, the store of its
        trees and its number, the place in `start`: ``store.part(first, last)`` copies some trees,
        ``store.extend(part)`` adds them to others.
    labels : array or None
        For a classifier: labels of this worker's rows of weight zero, whose classes stay.

    Returns
    -------
    estimator
        Itself.
    """
    begun = [] if start is None else list(start)
    shard = Shard(Totals(exchange), RowNumbers(stretches), int(seed), after_round, begun)
    try:
        estimator._validate_params()
        _refuse(estimator, shard.totals, sample_weight, eval_set)
        estimator._shard, estimator._totals = shard, shard.totals
        groups = (
            _group_ids(group, len(X if callable(y) else y))
            if "ndcg_at" in estimator.get_params()
            else None
        )
        with all_or_nothing(estimator):
            estimator._fit(X, y, sample_weight, eval_set, None, groups, None, labels)
    except BaseException:
        exchange.abort()
        raise
    finally:
        estimator.__dict__.pop("_shard", None)
        estimator.__dict__.pop("_totals", None)
    return estimator


def _refuse(estimator: Any, totals: Totals, sample_weight: Any, eval_set: Any) -> None:
    """Say what several workers cannot do yet."""
    told = [
        (estimator.max_bins is None, "max_bins=None: expected a number of bins"),
        (estimator.warm_start, "warm_start=True: expected False"),
        (estimator.scoring is not None, "scoring: expected None, so that the loss decides"),
        (
            hasattr(getattr(estimator, "loss", None), "fit_intercept_only"),
            "loss: expected a name or a function",
        ),
    ]
    for wrong, what in told:
        if wrong:
            raise ValueError(f"{what} where several workers fit one model")
    if sample_weight is not None and not np.all(np.asarray(sample_weight) > 0):
        raise ValueError("sample_weight: expected positive weights where several workers fit")
    for name, given in (("sample_weight", sample_weight), ("eval_set", eval_set)):
        n_given = totals.count(int(given is not None))
        if n_given not in (0, totals.exchange.size if totals.exchange else 1):
            raise ValueError(f"{name}: expected it of all workers or of none, got {n_given}")


def _group_ids(group: Any, n_rows: int) -> Any:
    """Number the groups of rows that lie side by side."""
    if group is None:
        raise ValueError("group: expected the group of each row, or the sizes of groups")
    group = np.asarray(group)
    if len(group) == n_rows and n_rows:
        changes = np.flatnonzero(group[1:] != group[:-1])
        if len(changes) + 1 != len(np.unique(group)):
            raise ValueError("group: expected the rows of each group side by side")
        return np.searchsorted(changes, np.arange(n_rows), side="left")
    if group.sum() != n_rows:
        raise ValueError(f"group: expected sizes that add up to {n_rows}, got {group.sum()}")
    return np.repeat(np.arange(len(group)), group.astype(np.intp))
