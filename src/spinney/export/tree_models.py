"""Conversion of trees and tree ensembles to scores and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from spinney import _core
from spinney.adaboost import AdaBoostClassifier, AdaBoostRegressor
from spinney.ensemble import BaggingClassifier, BaggingRegressor
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.form import Floats, NotExpressible, TreeScores
from spinney.models.methods import ModelMethods
from spinney.models.tree import Tree
from spinney.models.tree_ensembles import (
    AveragedTrees,
    IsolationTrees,
    MedianTrees,
    SingleTree,
    VotingTrees,
)

__all__ = ["read_trees"]

_ANY_LEARNERS = (AdaBoostClassifier, AdaBoostRegressor, BaggingClassifier, BaggingRegressor)
_TINY = np.finfo(np.float64).eps  # AdaBoost clips probabilities at this value before the logarithm


def read_trees(model: Any) -> tuple[TreeScores, Any]:
    """Return the scores and the outcome of a tree or an ensemble of trees."""
    fitted = _fitted_model(model)
    if isinstance(fitted, SingleTree):
        return _average([fitted.tree], hard=False), fitted.outcome
    if isinstance(fitted, AveragedTrees):
        return _average(list(fitted.trees()), hard=fitted.hard), fitted.outcome
    if isinstance(fitted, BoostedTrees):
        return _gradient_boosting(fitted), fitted.outcome
    if isinstance(fitted, VotingTrees):
        return _adaboost_votes(fitted), fitted.outcome
    if isinstance(fitted, MedianTrees):
        return _adaboost_median(fitted), fitted.outcome
    if isinstance(fitted, IsolationTrees):
        return _path_lengths(fitted), fitted.outcome(float(model.offset_))
    raise NotExpressible(
        "expected a decision tree, a forest, bagging, AdaBoost or gradient boosting of trees, an "
        "isolation forest, a linear model or a nearest-neighbour classifier or regressor"
    )


def _fitted_model(model: Any) -> Any:
    """Return the fitted model as a value, or None for estimators without one."""
    if not isinstance(model, ModelMethods):
        return None
    try:
        return model.fitted_model()
    except TypeError:
        if not isinstance(model, _ANY_LEARNERS):
            return None
        learner = type(model.estimators_[0]).__name__
        raise NotExpressible(
            f"its learners are {learner}, expected Spinney decision trees"
        ) from None


def _equal_sum(trees: Sequence[Tree], values: list[Floats]) -> TreeScores:
    """Return scores to which every tree adds all its values, starting from zero."""
    width = values[0].shape[1]
    return TreeScores(list(trees), values, [None] * len(trees), np.zeros(width))


def _average(trees: list[Tree], hard: bool) -> TreeScores:
    """Return the sum of trees, or of their votes if `hard`."""
    return _equal_sum(trees, [_output_values(tree, hard) for tree in trees])


def _output_values(tree: Tree, hard: bool) -> Floats:
    """Return the values or class shares of all outputs, or votes for the largest share."""
    of_outputs = [tree.value[:, k, :n] for k, n in enumerate(tree.n_classes)]
    if hard:
        of_outputs = [np.eye(v.shape[1])[v.argmax(axis=1)] for v in of_outputs]
    return np.concatenate(of_outputs, axis=1)


def _gradient_boosting(fitted: BoostedTrees) -> TreeScores:
    trees = list(fitted.trees())
    values = [tree.value[:, :, 0] for tree in trees]
    per_round = fitted.trees_per_round
    adds_to = [t % per_round if fitted.n_targets == 1 else None for t in range(len(trees))]
    return TreeScores(trees, values, adds_to, fitted.baseline)


def _adaboost_votes(fitted: VotingTrees) -> TreeScores:
    trees = list(fitted.trees())
    n = len(fitted.classes)
    values = []
    for tree, weight in zip(trees, fitted.weights, strict=False):
        shares = tree.value[:, 0]
        if fitted.real:
            logs = np.log(np.maximum(shares, _TINY))
            values.append((n - 1) * (logs - logs.mean(axis=1, keepdims=True)))
        else:
            values.append(np.where(np.eye(n, dtype=bool)[shares.argmax(axis=1)], weight, 0.0))
    return _equal_sum(trees, values)


def _adaboost_median(fitted: MedianTrees) -> TreeScores:
    trees = list(fitted.trees())
    values = [tree.value[:, 0] for tree in trees]
    n = len(trees)
    return TreeScores(trees, values, list(range(n)), np.zeros(n))


def _path_lengths(fitted: IsolationTrees) -> TreeScores:
    """Return the sum of path lengths of an isolation forest."""
    trees = list(fitted.trees())
    values = []
    for tree in trees:
        usual = {n: _core.mean_path_length(float(n)) for n in np.unique(tree.n_node_samples)}
        rest = np.array([usual[n] for n in tree.n_node_samples])
        values.append((tree.compute_node_depths() - 1 + rest)[:, np.newaxis])
    return _equal_sum(trees, values)
