"""Steps of a boosting fit, from the plan to trained boosters."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import indexable

from spinney import _core
from spinney.boosting._bins import Bins
from spinney.boosting._booster import Booster, Trial
from spinney.boosting._core_options import core_options
from spinney.boosting._fit_plan import FitPlan, scale_weights
from spinney.boosting._own_loss import custom_derivatives
from spinney.boosting._settings import Settings
from spinney.data.core_table import core_table
from spinney.data.sample_weights import scale_extreme
from spinney.data.sklearn_versions import check_sample_weight, safe_indexing
from spinney.data.table import Table
from spinney.distributed.partitioned_rows import PartitionedTable
from spinney.models.boosted_trees import ScoresInTraining

__all__ = ["find_baselines", "make_trial", "score_rounds", "train_trial"]


def find_baselines(estimator: Any, plan: FitPlan) -> list[NDArray[np.float64]]:
    """Return the raw scores before the first round, for each fold."""
    data = plan.data
    if plan.before is not None:
        return [plan.before.baseline] * len(plan.folds)
    if data.given.init_score is not None:
        return [np.zeros(plan.loss.n_scores)] * len(plan.folds)
    found = []
    for fold in plan.folds:
        rows = slice(None) if fold.train_rows is None else fold.train_rows
        weights, _ = data.scaled_weights(fold.train_rows)
        own = None if weights is None else weights[rows]
        found.append(estimator._find_baseline(data.targets[rows], own, plan.loss, data.workers))
    return found


def make_trial(
    estimator: Any, plan: FitPlan, number: int, bins: list[Bins], baselines: list[Any]
) -> Trial:
    """Create the boosters of one candidate, one for each fold.

    Parameters
    ----------
    estimator : BaseBoosting
        Its parameters and methods.
    plan : FitPlan
        The plan.
    number : int
        Index of the candidate.
    bins : list of Bins
        The bins of each fold.
    baselines : list of ndarray
        Raw scores before the first round, of each fold.
    """
    settings = plan.candidates[number]
    targets = np.ascontiguousarray(plan.data.targets.T).ravel()
    boosters = [
        _make_booster(estimator, plan, settings, index, (bins[index], baselines[index], targets))
        for index in range(len(plan.folds))
    ]
    for booster in boosters:
        booster.number += number * len(boosters)
        if booster.number < len(plan.checkpoints.trees):
            _restore(booster, estimator, plan)
    find_best = partial(estimator._find_best, settings, n_before=plan.n_rounds_before)
    return Trial(settings, boosters, find_best, plan.stops)


def _make_booster(
    estimator: Any, plan: FitPlan, settings: Settings, index: int, start: tuple[Bins, Any, Any]
) -> Booster:
    """Create the booster of a fold; `start` is (bins, baseline, targets)."""
    bins, baseline, targets = start
    data, fold = plan.data, plan.folds[index]
    scores = _start_scores(plan, data.table, baseline, data.given.init_score)
    weights, exponent = data.scaled_weights(fold.train_rows)
    validation = eval_set_scores = None
    if fold.validation_rows is not None:
        validation = _core.BoostValidation(
            bins.matrix,
            fold.validation_rows,
            targets,
            data.scaled_weights(fold.validation_rows)[0],
            scores,
            list(data.given.group_starts),
        )
    elif data.given.eval_set is not None:
        validation, eval_set_scores = _read_eval_set(estimator, plan, bins, baseline)
    booster = Booster(
        bins=bins,
        fold=fold,
        validation=validation,
        targets=targets,
        weights=weights,
        scores=scores,
        eval_set_scores=eval_set_scores,
        baseline=baseline,
        options=core_options(
            estimator, plan, settings, bins, weight_exponent=exponent, seed=plan.seed + index
        ),
        n_threads=plan.n_threads,
        n_rounds=plan.n_rounds_before,
        store=estimator._new_store(plan) if plan.before is None else plan.before.store,
        custom_derivatives=(
            custom_derivatives(estimator.loss, plan.loss, data.targets, scores)
            if estimator._has_custom_loss()
            else None
        ),
        number=index,
        workers=data.workers,
        checkpoints=plan.checkpoints,
        train_losses=estimator.train_score_,
        validation_losses=estimator.validation_score_,
    )
    if plan.before is not None and bins.statistics and plan.last_scores is not None:
        fingerprint, last = plan.last_scores
        if fingerprint == booster.fingerprint():
            scores[:] = last
    return booster


def _start_scores(plan: FitPlan, table: Any, baseline: Any, init_score: Any) -> Any:
    """Return raw scores before the next round, (n_scores, n_rows)."""
    scores = np.empty((table.n_rows, plan.loss.n_scores))
    scores[:] = baseline
    if init_score is not None:
        given = np.asarray(init_score, dtype=np.float64).reshape(table.n_rows, -1)
        if given.shape != scores.shape:
            raise ValueError(
                f"init_score: expected shape {scores.shape}, got {np.shape(init_score)}"
            )
        scores += given
    if plan.before is not None:
        rows = core_table(table, plan.data.schema)
        plan.before.add_scores(rows, scores, (0, plan.before.n_rounds), plan.n_threads)
    return np.ascontiguousarray(scores.T)


def _read_eval_set(estimator: Any, plan: FitPlan, bins: Bins, baseline: Any) -> tuple[Any, Any]:
    """Return the rows of eval_set for the core, and their raw scores."""
    workers = plan.data.workers
    X, y, sample_weight, group_starts = estimator._eval_set_parts(plan.data.given.eval_set)
    table = estimator._read_other_table(X, plan.data.schema, workers)
    n_rows = table.n_rows
    targets = np.ascontiguousarray(estimator._encode_other_targets(y, workers), dtype=np.float64)
    if len(targets) != n_rows:
        raise ValueError(f"eval_set: X has {n_rows} rows, y has {len(targets)}")
    weights = None
    if sample_weight is not None and n_rows == 0:
        weights = np.empty(0)
    elif sample_weight is not None:
        weights = check_sample_weight(
            sample_weight, np.empty((n_rows, 0)), dtype=np.float64, ensure_non_negative=True
        )
    weights, _ = scale_weights(weights, workers)  # the mean loss does not depend on the scale
    scores = _start_scores(plan, table, baseline, None)
    validation = _core.BoostValidation(
        bins.code(table),
        np.arange(n_rows, dtype=np.uint32),
        np.ascontiguousarray(targets.T).ravel(),
        weights,
        scores,
        group_starts,
    )
    return validation, scores


def _restore(booster: Booster, estimator: Any, plan: FitPlan) -> None:
    """Restore the trees, scores and losses of an interrupted fit."""
    table, schema = plan.data.table, plan.data.schema
    booster.store.extend(plan.checkpoints.trees[booster.number])
    tables: list[tuple[Any, Any]]
    if isinstance(table, PartitionedTable):
        tables = [(read, booster.scores[:, rows]) for read, rows in table.readers(schema)]
    else:
        tables = [(core_table(table, schema), booster.scores)]
    if booster.eval_set_scores is not None:
        X = estimator._eval_set_parts(plan.data.given.eval_set)[0]
        others: Table = estimator._read_other_table(X, schema, plan.data.workers)
        tables.append((core_table(others, schema), booster.eval_set_scores))
    trees_per_round = 1 if plan.loss.n_targets > 1 else plan.loss.n_scores
    n_rounds = len(booster.store) // trees_per_round
    booster.replay(n_rounds, tables, trees_per_round)
    booster.n_rounds = n_rounds


def train_trial(trial: Trial, plan: FitPlan, number: int, hook: Any) -> Trial:
    """Train the boosters of a trial; `hook` reports progress over all candidates."""
    report = None
    if hook is not None:

        def report(done: int, score: float) -> bool:
            total = len(plan.candidates) * plan.n_more
            return bool(hook(number * plan.n_more + done, total, score))

    trial.run(plan.n_more, plan.n_threads, report)
    return trial


def score_rounds(estimator: Any, scorer: Any, plan: FitPlan, boosters: list[Booster]) -> None:
    """Set the boosters up for early stopping by a scorer instead of the loss."""
    given = plan.data.given
    X, y, sample_weight = given.X, given.y, given.sample_weight
    if given.eval_set is not None:
        X, y, sample_weight, _ = estimator._eval_set_parts(given.eval_set)
    for booster in boosters:
        rows = [X, y, sample_weight]
        if booster.fold.validation_rows is not None:
            X, y = indexable(X, y)
            rows = [
                values if values is None else safe_indexing(values, booster.fold.validation_rows)
                for values in (X, y, sample_weight)
            ]
        booster.score = partial(_score, _model_in_training(estimator, booster), scorer, rows)
        # A continued fit starts with scores; boosters record losses.
        if booster.validation is None:
            booster.train_losses = -booster.train_losses
        else:
            booster.validation_losses = -booster.validation_losses


def _model_in_training(estimator: Any, booster: Booster) -> Any:
    """Return a copy of the estimator that predicts the booster's present scores."""
    model = copy.copy(estimator)
    fitted = model._model
    model._model = ScoresInTraining(
        fitted.link, fitted.classes, fitted.levels, fitted.n_targets, booster.validation_scores
    )
    return model


def _score(model: Any, scorer: Any, rows: list[Any]) -> float:
    X, y, sample_weight = rows
    weighted = {}
    if sample_weight is not None:
        scaled = scale_extreme(np.asarray(sample_weight, dtype=float))[0]
        weighted = {"sample_weight": scaled}
    return float(scorer(model, X, y, **weighted))
