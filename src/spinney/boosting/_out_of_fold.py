"""Out-of-fold predictions: each booster predicts the validation rows of its fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from spinney.boosting._booster import Booster
from spinney.boosting._fit_plan import TrainingData
from spinney.conformal.mixins import MOST_ROWS, subsample_rows
from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table
from spinney.distributed.partitioned_rows import partitions_of_table
from spinney.distributed.totals import Totals, row_keys
from spinney.distributed.workers import Workers
from spinney.models.boosted_trees import BoostedTrees

__all__ = ["OutOfFold", "predict_eval_set", "predict_folds"]


@dataclass(frozen=True)
class OutOfFold:
    """Validation rows of all workers, and their predictions.

    Parameters
    ----------
    truth : ndarray of float64
        Their targets.
    raw : ndarray of shape (n_rows, n_scores)
        Their raw scores by a booster that was not trained on them.
    weights : ndarray or None
        Their weights.
    numbers : ndarray of int or None
        Their numbers in the whole table; None for rows of eval_set.
    table : Table or None
        Their categories, if there are any; numeric columns are NaN.
    """

    truth: Any
    raw: Any
    weights: Any
    numbers: Any = None
    table: Table | None = None


def predict_eval_set(
    estimator: Any, X: Any, truth: Any, weights: Any, workers: Workers
) -> OutOfFold:
    """Predict the rows of eval_set; each worker has some of them."""
    totals = workers.totals
    sizes = totals.gather(len(truth))
    before = 0 if totals.exchange is None else sum(sizes[: totals.exchange.rank])
    kept = np.arange(sum(sizes))[subsample_rows(sum(sizes))] - before
    kept = kept[(kept >= 0) & (kept < len(truth))]
    n_scores = estimator._model.n_scores
    raw = estimator._raw(X)[kept] if len(kept) else np.empty((0, n_scores))
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)[kept]
    gathered = totals.gather((truth[kept], raw, weights))
    return OutOfFold(*(_join([block[k] for block in gathered]) for k in range(3)))


def predict_folds(
    model: BoostedTrees, boosters: list[Booster], data: TrainingData, weights: Any, n_threads: int
) -> OutOfFold:
    """Predict the validation rows of each booster.

    The order is that of the folds, and in a fold that of the row numbers in the whole table.

    Parameters
    ----------
    model : BoostedTrees
        The fitted model, which determines the number of rounds.
    boosters : list of Booster
        The boosters, each with validation rows in the table.
    data : TrainingData
        The rows of this worker.
    weights : ndarray of shape (n_rows,) or None
        Their weights, without class weights.
    n_threads : int
        Number of threads.
    """
    totals, schema = data.workers.totals, data.schema
    numbers = data.row_numbers()
    folds = _subsample_folds(
        [booster.fold.validation_rows for booster in boosters], numbers, totals
    )
    models = [
        replace(model, store=booster.store, baseline=booster.baseline, n_boosters=1)
        for booster in boosters
    ]
    raws = [np.empty((len(rows), model.n_scores)) for rows in folds]
    codes = [np.empty((len(rows), sum(schema.is_categorical)), dtype=np.int32) for rows in folds]
    for first, block in partitions_of_table(data.table):
        for own, rows, raw, code in zip(models, folds, raws, codes, strict=True):
            here = slice(*np.searchsorted(rows, [first, first + block.n_rows]))
            some = block.take(rows[here].astype(np.intp) - first)
            if some.n_rows:
                raw[here] = own.raw_scores(core_table(some, schema), n_threads)
            for index, f in enumerate(np.flatnonzero(schema.is_categorical)):
                code[here, index] = some.columns[f]  # type: ignore[index]
    gathered = totals.gather(
        [
            (
                numbers[rows],
                np.asarray(data.targets[rows], dtype=np.float64),
                raw,
                None if weights is None else weights[rows],
                code,
            )
            for rows, raw, code in zip(folds, raws, codes, strict=True)
        ]
    )
    ordered = [_in_row_order([worker[k] for worker in gathered]) for k in range(len(folds))]
    row_numbers, truth, raw, weight, code = (_join(list(one)) for one in zip(*ordered, strict=True))
    return OutOfFold(truth, raw, weight, row_numbers.astype(np.intp), _category_table(code, schema))


def _subsample_folds(folds: list[Any], numbers: Any, totals: Totals) -> list[Any]:
    """Return the rows of each fold, or a random sample of them if there are too many."""
    if totals.count(sum(map(len, folds))) <= MOST_ROWS:
        return folds
    keys = [row_keys(0, numbers[rows]) for rows in folds]
    limit = totals.key_limits([np.sort(np.concatenate(keys))], np.array([[MOST_ROWS]]))[0, 0]
    return [rows[own_keys < limit] for rows, own_keys in zip(folds, keys, strict=True)]


def _in_row_order(blocks: list[Any]) -> tuple[Any, ...]:
    """Return the rows of a fold of all workers, in the order of their numbers."""
    order = np.argsort(np.concatenate([block[0] for block in blocks]), kind="stable")
    joined = (_join([block[k] for block in blocks]) for k in range(5))
    return tuple(None if one is None else one[order] for one in joined)


def _join(blocks: list[Any]) -> Any:
    return None if blocks[0] is None else np.concatenate(blocks)


def _category_table(codes: Any, schema: Schema) -> Table | None:
    if not schema.has_categories:
        return None
    missing = np.broadcast_to(np.nan, len(codes))
    code_columns = iter(codes.T)
    columns = [
        next(code_columns) if categorical else missing for categorical in schema.is_categorical
    ]
    return Table(len(codes), schema.n_features, columns=columns)
