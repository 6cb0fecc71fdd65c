"""Predictions of boosters for the validation rows of their folds, of all workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from spinney import _core
from spinney.boosting._booster import Booster
from spinney.conformal.mixins import MOST_ROWS, subsample_rows
from spinney.data.core_table import core_table
from spinney.data.table import Schema, Table
from spinney.distributed.partitioned_rows import PartedTable, parts_of_table
from spinney.distributed.totals import Totals, row_keys
from spinney.runtime.threads import effective_n_jobs

__all__ = ["OutOfFold", "predict_eval_set", "predict_folds"]


@dataclass(frozen=True)
class OutOfFold:
    """Validation rows, and what the boosters that did not learn from them predict.

    Parameters
    ----------
    truth : ndarray of float64
        Their targets.
    raw : ndarray of shape (n_rows, n_scores)
        Raw scores.
    weights : ndarray or None
        Their weights.
    numbers : ndarray of int or None
        Their numbers in the whole table; None for rows of an eval_set.
    table : Table or None
        Their categories, where there are any; columns of numbers are NaN.
    """

    truth: Any
    raw: Any
    weights: Any
    numbers: Any = None
    table: Table | None = None


def predict_eval_set(model: Any, X: Any, truth: Any, weights: Any, totals: Totals) -> OutOfFold:
    """Predict the rows of an eval_set, of which each worker has a part."""
    sizes = totals.gather(len(truth))
    before = 0 if totals.exchange is None else sum(sizes[: totals.exchange.rank])
    kept = np.arange(sum(sizes))[subsample_rows(sum(sizes))] - before
    kept = kept[(kept >= 0) & (kept < len(truth))]
    raw = model._raw(X)[kept] if len(kept) else np.empty((0, model._n_scores))
    weights = None if weights is None else np.asarray(weights, dtype=np.float64)[kept]
    told = totals.gather((truth[kept], raw, weights))
    return OutOfFold(*(_joined([part[k] for part in told]) for k in range(3)))


def predict_folds(
    model: Any, boosters: list[Booster], table: Table | PartedTable, targets: Any, weights: Any
) -> OutOfFold:
    """Predict the validation rows of each booster, in the order of the folds and of the rows.

    Parameters
    ----------
    model : BaseBoosting
        Fitted.
    boosters : list of Booster
        Each with validation rows in the table.
    table : Table or PartedTable
        The rows of this worker.
    targets, weights : ndarray of shape (n_rows, …)
        What belongs to them; weights may be None.
    """
    totals, schema = model._totals, model._schema
    numbers = model._row_numbers(table.n_rows)
    folds = _thinned_folds([booster.watched_rows for booster in boosters], numbers, totals)
    raws = [np.empty((len(rows), model._n_scores)) for rows in folds]
    codes = [np.empty((len(rows), sum(schema.is_categorical)), dtype=np.int32) for rows in folds]
    for first, part in parts_of_table(table):
        for booster, rows, raw, code in zip(boosters, folds, raws, codes, strict=True):
            here = slice(*np.searchsorted(rows, [first, first + part.n_rows]))
            some = part.take(rows[here].astype(np.intp) - first)
            raw[here] = _raw_scores(model, booster, some)
            for place, f in enumerate(np.flatnonzero(schema.is_categorical)):
                code[here, place] = some.columns[f]  # type: ignore[index]
    told = totals.gather(
        [
            (
                numbers[rows],
                np.asarray(targets[rows], dtype=np.float64),
                raw,
                None if weights is None else weights[rows],
                code,
            )
            for rows, raw, code in zip(folds, raws, codes, strict=True)
        ]
    )
    ordered = [_in_order([worker[k] for worker in told]) for k in range(len(folds))]
    every, truth, raw, weight, code = (_joined(list(one)) for one in zip(*ordered, strict=True))
    return OutOfFold(truth, raw, weight, every.astype(np.intp), _categories(code, schema))


def _thinned_folds(folds: list[Any], numbers: Any, totals: Totals) -> list[Any]:
    """Keep those with the smallest keys where there are too many rows."""
    if totals.count(sum(map(len, folds))) <= MOST_ROWS:
        return folds
    keys = [row_keys(0, numbers[rows]) for rows in folds]
    limit = totals.key_limits([np.sort(np.concatenate(keys))], np.array([[MOST_ROWS]]))[0, 0]
    return [rows[of < limit] for rows, of in zip(folds, keys, strict=True)]


def _raw_scores(model: Any, booster: Booster, rows: Table) -> Any:
    raw = np.empty((rows.n_rows, model._n_scores))
    raw[:] = booster.baseline
    if rows.n_rows:
        _core.add_rounds(
            booster.store.core,
            core_table(rows, model._schema),
            model._trees_per_round,
            0,
            model._n_rounds,
            effective_n_jobs(model.n_jobs),
            raw,
        )
    return raw


def _in_order(parts: list[Any]) -> tuple[Any, ...]:
    """Join the rows of a fold of all workers, by their numbers."""
    order = np.argsort(np.concatenate([part[0] for part in parts]), kind="stable")
    joined = (_joined([part[k] for part in parts]) for k in range(5))
    return tuple(None if one is None else one[order] for one in joined)


def _joined(pieces: list[Any]) -> Any:
    return None if pieces[0] is None else np.concatenate(pieces)


def _categories(codes: Any, schema: Schema) -> Table | None:
    if not schema.has_categories:
        return None
    nothing = np.broadcast_to(np.nan, len(codes))
    of_column = iter(codes.T)
    columns = [next(of_column) if is_one else nothing for is_one in schema.is_categorical]
    return Table(len(codes), schema.n_features, columns=columns)
