"""Conversion of trees and tree ensembles to scores and outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from spinney import _core
from spinney.adaboost import AdaBoostClassifier, AdaBoostRegressor
from spinney.boosting.base import BaseBoosting
from spinney.ensemble import BaggingClassifier, BaggingRegressor
from spinney.forest import IsolationForest
from spinney.forest.classifier import ForestClassifier
from spinney.forest.regressor import ForestRegressor
from spinney.models.form import Floats, NotExpressible, TreeScores
from spinney.models.outcomes import (
    BoostedVotes,
    Isolation,
    Numbers,
    OneClass,
    SeveralShares,
    Shares,
    WeightedMedian,
)
from spinney.models.tree import Tree
from spinney.tree.base import BaseTree

__all__ = ["read_trees"]

_TINY = np.finfo(np.float64).eps  # AdaBoost clips probabilities at this value before the logarithm


def read_trees(model: Any) -> tuple[TreeScores, Any]:
    """Return the scores and the outcome of a tree or an ensemble of trees."""
    if isinstance(model, BaseTree):
        return _average(model, [model.tree_], hard=False)
    if isinstance(model, ForestClassifier | ForestRegressor):
        return _average(model, _trees(model), hard=getattr(model, "voting", "soft") == "hard")
    if isinstance(model, BaggingClassifier | BaggingRegressor):
        _require_trees(model)
        return _average(model, _trees(model), hard=getattr(model, "voting", "soft") == "hard")
    if isinstance(model, BaseBoosting):
        return _gradient_boosting(model)
    if isinstance(model, AdaBoostClassifier):
        _require_trees(model)
        return _adaboost_votes(model)
    if isinstance(model, AdaBoostRegressor):
        _require_trees(model)
        return _adaboost_median(model)
    if isinstance(model, IsolationForest):
        return _isolation_forest(model)
    raise NotExpressible(
        "expected a decision tree, a forest, bagging, AdaBoost or gradient boosting of trees, an "
        "isolation forest, a linear model or a nearest-neighbour classifier or regressor"
    )


def _trees(model: Any) -> list[Tree]:
    return [model._store.tree(t) for t in range(len(model._store))]


def _require_trees(model: Any) -> None:
    if not model._is_native():
        learner = type(model.estimators_[0]).__name__
        raise NotExpressible(f"its learners are {learner}, expected Spinney decision trees")


def _equal_sum(trees: Sequence[Tree], values: list[Floats]) -> TreeScores:
    """Return scores to which every tree adds all its values, starting from zero."""
    width = values[0].shape[1]
    return TreeScores(list(trees), values, [None] * len(trees), np.zeros(width))


def _average(model: Any, trees: list[Tree], hard: bool) -> tuple[TreeScores, Any]:
    """Return the mean of trees, or of their votes if `hard`."""
    n_outputs = trees[0].n_outputs
    if not is_classifier(model):
        values = [tree.value[:, :, 0] for tree in trees]
        return _equal_sum(trees, values), Numbers(flat=n_outputs == 1, divisor=float(len(trees)))
    values = [_class_values(tree, hard) for tree in trees]
    outcome = Shares if n_outputs == 1 else SeveralShares
    return _equal_sum(trees, values), outcome(model.classes_, float(len(trees)))


def _class_values(tree: Tree, hard: bool) -> Floats:
    """Return the class shares of all outputs, or votes for the largest share."""
    of_outputs = [tree.value[:, k, :n] for k, n in enumerate(tree.n_classes)]
    if hard:
        of_outputs = [np.eye(v.shape[1])[v.argmax(axis=1)] for v in of_outputs]
    return np.concatenate(of_outputs, axis=1)


def _gradient_boosting(model: Any) -> tuple[TreeScores, Any]:
    fitted = model.fitted_model()
    trees = list(fitted.trees())
    values = [tree.value[:, :, 0] for tree in trees]
    per_round = fitted.trees_per_round
    adds_to = [t % per_round if fitted.n_targets == 1 else None for t in range(len(trees))]
    return TreeScores(trees, values, adds_to, fitted.baseline), fitted.outcome


def _adaboost_votes(model: Any) -> tuple[TreeScores, Any]:
    trees = _trees(model)
    n = model.n_classes_
    weights = model.estimator_weights_[: len(trees)]
    values = []
    for tree, weight in zip(trees, weights, strict=True):
        shares = tree.value[:, 0]
        if model.algorithm == "real":
            logs = np.log(np.maximum(shares, _TINY))
            values.append((n - 1) * (logs - logs.mean(axis=1, keepdims=True)))
        else:
            values.append(np.where(np.eye(n, dtype=bool)[shares.argmax(axis=1)], weight, 0.0))
    scores = _equal_sum(trees, values)
    if n == 1:
        return scores, OneClass(model.classes_)
    total = float(weights.sum())
    return scores, BoostedVotes(model.classes_, total, model.algorithm == "real")


def _adaboost_median(model: Any) -> tuple[TreeScores, Any]:
    trees = _trees(model)
    values = [tree.value[:, 0] for tree in trees]
    n = len(trees)
    scores = TreeScores(trees, values, list(range(n)), np.zeros(n))
    return scores, WeightedMedian(model.estimator_weights_[:n])


def _isolation_forest(model: Any) -> tuple[TreeScores, Any]:
    """Return the sum of path lengths of an isolation forest."""
    trees = _trees(model)
    values = []
    for tree in trees:
        usual = {n: _core.mean_path_length(float(n)) for n in np.unique(tree.n_node_samples)}
        rest = np.array([usual[n] for n in tree.n_node_samples])
        values.append((tree.compute_node_depths() - 1 + rest)[:, np.newaxis])
    usual_length = len(trees) * _core.mean_path_length(float(model.max_samples_))
    return _equal_sum(trees, values), Isolation(float(usual_length), float(model.offset_))
