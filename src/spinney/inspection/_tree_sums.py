"""Sums over trees in the core, for predictions with columns set to values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from spinney import _core
from spinney.data.core_table import core_table
from spinney.data.table import read_table, schema_of
from spinney.export.tree_models import read_trees
from spinney.models import outcomes as _outcomes
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.forest_store import ForestStore
from spinney.models.form import NotExpressible
from spinney.models.tree_ensembles import AveragedTrees
from spinney.tree.base import BaseTree

__all__ = ["StoredSum", "read_tree_sum"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class StoredSum:
    """A model as initial scores, a sum of trees in the core, and a link function.

    Parameters
    ----------
    model : estimator
        The model.
    core : _core.Forest
        The trees.
    n_trees, n_scores : int
        The number of trees that are used, and the number of scores of a row.
    one_each : bool
        Whether tree t adds only to score t % n_scores.
    hard : bool
        Whether trees vote for classes.
    start : ndarray of shape (n_scores,)
        The scores before the first tree.
    outcome : object
        How predictions follow from scores: a class of `spinney.models.outcomes`.
    """

    model: Any
    core: Any
    n_trees: int
    n_scores: int
    one_each: bool
    hard: bool
    start: Floats
    outcome: Any

    @property
    def is_linear(self) -> bool:
        """Whether the mean prediction is the prediction for the mean scores."""
        return isinstance(self.outcome, _outcomes.Numbers | _outcomes.Shares)

    def read(self, X: Any) -> tuple[Any, Any]:
        """Return rows in the format of the core, and as a table of columns."""
        schema = schema_of(self.model)
        table = read_table(self.model, X, schema)
        return core_table(table, schema), table

    def values(self, X: Any, columns: list[int]) -> Floats:
        """Return columns of X as the trees read them: numbers or codes, NaN where missing."""
        _, table = self.read(X)
        out = np.empty((table.n_rows, len(columns)))
        for k, j in enumerate(columns):
            values = table.to_matrix()[:, j] if table.columns is None else table.columns[j]
            if schema_of(self.model).categories[j] is not None:
                values = np.where(values < 0, np.nan, values.astype(np.float64))
            out[:, k] = values
        return out

    def score(
        self, rows: Any, columns: list[int], values: Floats, by_row: bool, n_threads: int
    ) -> Floats:
        """Return scores, (n_sums, n_settings, n_scores), by row or averaged over rows."""
        n_sums = rows.n_rows if by_row else 1
        out = np.empty((n_sums, len(values), self.n_scores))
        _core.score_settings(
            self.core,
            rows,
            columns,
            np.ascontiguousarray(values),
            self.n_trees,
            self.n_scores,
            self.one_each,
            self.hard,
            by_row,
            n_threads,
            out,
        )
        if not by_row:
            out /= rows.n_rows
        out += self.start
        return out

    def score_shuffled(
        self, rows: Any, groups: list[list[int]], orders: NDArray[np.int64], n_threads: int
    ) -> Floats:
        """Return scores with shuffled columns, (n_groups, n_repeats, n_rows, n_scores).

        Parameters
        ----------
        rows : Table of the core
            The rows.
        groups : list of list of int
            Groups of columns; the columns of a group are shuffled together.
        orders : ndarray of shape (n_repeats, n_rows)
            The rows whose values each row gets.
        n_threads : int
            The maximum number of threads.
        """
        out = np.empty((rows.n_rows, self.n_scores, len(groups), len(orders)))
        out[:] = self.start[:, np.newaxis, np.newaxis]
        _core.score_shuffles(
            self.core,
            rows,
            groups,
            np.ascontiguousarray(orders, dtype=np.int64),
            self.n_trees,
            self.n_scores,
            self.one_each,
            self.hard,
            n_threads,
            out,
        )
        return out.transpose(2, 3, 0, 1)

    def predict(self, scores: Floats) -> Floats:
        """Convert scores to predictions, (…, n_outputs)."""
        return _OUTCOMES[type(self.outcome)](self.outcome, scores)


def _two(logits: Floats) -> Floats:
    return np.concatenate([expit(-logits), expit(logits)], axis=-1)


def _votes(outcome: Any, scores: Floats) -> Floats:
    n = len(outcome.classes)
    votes = scores / outcome.total
    if not outcome.real:  # a vote that is not for a class is against it
        votes = votes - (1 - votes) / (n - 1)
    if n > 2:
        return softmax(votes / (n - 1), axis=-1)
    half = (votes[..., 1:] - votes[..., :1]) / 2
    return softmax(np.concatenate([-half, half], axis=-1), axis=-1)


_OUTCOMES: dict[type, Callable[[Any, Floats], Any]] = {
    _outcomes.Numbers: lambda outcome, scores: scores / outcome.divisor,
    _outcomes.Shares: lambda outcome, scores: scores / outcome.divisor,
    _outcomes.Exponential: lambda outcome, scores: np.exp(scores),
    _outcomes.Logistic: lambda outcome, scores: expit(scores),
    _outcomes.TwoClasses: lambda outcome, scores: _two(outcome.factor * scores),
    _outcomes.Softmax: lambda outcome, scores: softmax(scores, axis=-1),
    _outcomes.BoostedVotes: _votes,
}


def read_tree_sum(model: Any) -> StoredSum | None:
    """Return a model as a sum over trees; None for others and several targets."""
    if not type(model).__module__.startswith("spinney."):
        return None  # a user's subclass may override predict
    fitted = vars(model).get("_model")
    if isinstance(fitted, AveragedTrees):
        return _from_average(model)
    if isinstance(fitted, BoostedTrees):
        return _from_boosting(model)
    if isinstance(model, BaseTree):
        return _from_values(model) if model.n_outputs_ == 1 else None
    if hasattr(model, "estimator_weights_"):
        return _from_values(model)
    return None


def _from_average(model: Any) -> StoredSum | None:
    fitted: AveragedTrees = model.fitted_model()
    if fitted.n_outputs > 1:
        return None
    store, start = fitted.store, np.zeros(fitted.store.width)
    return StoredSum(
        model=model,
        core=store.core,
        n_trees=fitted.n_trees,
        n_scores=store.width,
        one_each=False,
        hard=fitted.hard,
        start=start,
        outcome=fitted.outcome,
    )


def _from_boosting(model: Any) -> StoredSum | None:
    fitted: BoostedTrees = model.fitted_model()
    if fitted.n_targets > 1 or type(fitted.outcome) not in _OUTCOMES:
        return None
    return StoredSum(
        model=model,
        core=fitted.store.core,
        n_trees=fitted.n_trees,
        n_scores=fitted.n_scores,
        one_each=True,
        hard=False,
        start=fitted.baseline,
        outcome=fitted.outcome,
    )


def _from_values(model: Any) -> StoredSum | None:
    """Copy trees into the core whose leaf values have to be computed first."""
    try:
        scores, outcome = read_trees(model)
    except NotExpressible:
        return None
    if type(outcome) not in _OUTCOMES:
        return None
    n_scores = len(scores.start)
    store = ForestStore(
        "squared_error",
        [],
        n_scores,
        True,
        schema_of(model).n_categories,
    )
    for tree, values in zip(scores.trees, scores.values, strict=True):
        arrays = tree.__getstate__()
        arrays["value"] = np.ascontiguousarray(values, dtype=np.float64).ravel()
        store.core.append(arrays)
    return StoredSum(
        model, store.core, len(scores.trees), n_scores, False, False, scores.start, outcome
    )
