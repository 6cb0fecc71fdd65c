"""The values that the steps of a boosting fit share: input, training data, plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import indexable
from sklearn.utils.validation import _num_samples

from spinney.boosting._loss import Loss
from spinney.boosting._settings import Settings
from spinney.data.sample_weights import scale_extreme
from spinney.data.sklearn_versions import safe_indexing
from spinney.data.table import Schema, Table
from spinney.distributed.partitioned_rows import PartitionedTable
from spinney.distributed.workers import Checkpoints, Workers
from spinney.models.boosted_trees import BoostedTrees

__all__ = ["Continuation", "FitInput", "FitPlan", "Fold", "TrainingData", "drop_zero_weights"]


@dataclass(frozen=True)
class FitInput:
    """The arguments of fit.

    Parameters
    ----------
    X, y, sample_weight, eval_set, init_score, groups, time
        See `BaseBoosting.fit`. `y` may be a function that returns the targets.
    zero_weight_labels : array or None
        Targets of rows that were dropped because their weight is zero.
    group_starts : list of int
        For rankers: index of the first row of each group, then the number of rows.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    eval_set: Any = None
    init_score: Any = None
    groups: Any = None
    time: Any = None
    zero_weight_labels: Any = None
    group_starts: Sequence[int] = ()


def drop_zero_weights(given: FitInput) -> FitInput:
    """Drop rows of weight zero: they must not change the model, not even its bins."""
    if given.sample_weight is None:
        return given
    weights = np.asarray(given.sample_weight)
    if weights.ndim != 1 or weights.dtype.kind not in "biuf" or not (weights == 0).any():
        return given
    if weights.shape[0] != _num_samples(given.X) or not (weights > 0).any():
        return given
    kept = np.flatnonzero(weights)
    X, y = indexable(given.X, given.y)

    def take(values: Any) -> Any:
        return None if values is None else np.asarray(values)[kept]

    return replace(
        given,
        X=safe_indexing(X, kept),
        y=safe_indexing(y, kept),
        sample_weight=weights[kept],
        init_score=take(given.init_score),
        groups=take(given.groups),
        time=take(given.time),
        zero_weight_labels=safe_indexing(y, np.flatnonzero(weights == 0)),
    )


@dataclass(frozen=True)
class TrainingData:
    """The rows of a fit at this worker.

    Parameters
    ----------
    given : FitInput
        The arguments of fit.
    table : Table or PartitionedTable
        The columns.
    schema : Schema
        Their names and categories.
    targets : ndarray of shape (n_rows,) or (n_rows, n_targets)
        The targets as numbers or codes of classes.
    weights : ndarray of shape (n_rows,) or None
        Weights of rows and classes.
    n_rows_of_all : int
        Number of rows of all workers.
    workers : Workers
        The workers.
    """

    given: FitInput
    table: Table | PartitionedTable
    schema: Schema
    targets: Any
    weights: Any
    n_rows_of_all: int
    workers: Workers

    @property
    def n_rows(self) -> int:
        """Number of rows of this worker."""
        return self.table.n_rows

    def scaled_weights(self, rows: Any = None) -> tuple[Any, int]:
        """Return the weights divided by 2**exponent, and the exponent.

        It is 0 unless the weights of `rows` (None: all) are very large or very small.
        """
        return scale_weights(self.weights, self.workers, rows)

    def row_numbers(self) -> Any:
        """Return the numbers of the rows in the whole table."""
        return self.workers.numbers.of(self.n_rows)


def scale_weights(weights: Any, workers: Workers, rows: Any = None) -> tuple[Any, int]:
    """Return weights divided by 2**exponent, and the exponent; see `TrainingData`."""
    if weights is None:
        return None, 0
    own = weights if rows is None else weights[rows]
    largest = workers.totals.largest(own.max(initial=0.0))[0]
    return scale_extreme(weights, float(largest))


@dataclass(frozen=True)
class Fold:
    """Training and validation rows of one booster.

    Parameters
    ----------
    train_rows, validation_rows : ndarray of int or None
        Indices, ascending. None means all rows for `train_rows`, and no row for `validation_rows`.
    """

    train_rows: Any = None
    validation_rows: Any = None


@dataclass(frozen=True)
class FitPlan:
    """The values that all boosters of a fit share.

    Parameters
    ----------
    data : TrainingData
        The rows.
    before : BoostedTrees or None
        The model that a fit with ``warm_start=True`` continues.
    loss : Loss
        The loss.
    candidates : list of Settings
        Settings to try; the loss of the validation rows decides.
    n_more : int
        Number of rounds to add, at most.
    stops : bool
        Whether early stopping is on.
    folds : list of Fold
        One for each booster.
    seed : int
        The seed of all random draws.
    n_threads : int
        Number of threads of all boosters together.
    checkpoints : Checkpoints
        Where an interrupted fit continues.
    last_scores : (bytes, ndarray) or None
        Raw scores at the end of the fit that is continued; see `Continuation`.
    """

    data: TrainingData
    before: BoostedTrees | None
    loss: Loss
    candidates: list[Settings]
    n_more: int
    stops: bool
    folds: list[Fold]
    seed: int
    n_threads: int
    checkpoints: Checkpoints
    last_scores: Any = None

    @property
    def n_rounds_before(self) -> int:
        """Number of rounds of the model that is continued."""
        return 0 if self.before is None else self.before.n_rounds


@dataclass(frozen=True)
class Continuation:
    """Values, in addition to the model, for a later fit with ``warm_start=True``.

    Parameters
    ----------
    seed : int
        The seed of all random draws.
    loss : Loss
        The loss, whose parameter may depend on the training targets.
    last_scores : (bytes, ndarray) or None
        A fingerprint of the training rows, and their raw scores. They are stored only if the model
        has target statistics: then the trees cannot reproduce the scores of training rows.
    """

    seed: int
    loss: Loss
    last_scores: tuple[bytes, Any] | None = None
