"""A boosted model of Spinney's made of trees that were grown elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spinney.data.table import Schema
from spinney.importing._trees import SourceTree, append_tree

__all__ = ["BoosterSource", "make_booster", "single_leaf"]


@dataclass
class BoosterSource:
    """What a reader found out about a boosted model.

    Parameters
    ----------
    task : {"classify", "regress", "rank"}
        Which of Spinney's boosters it becomes.
    loss : str
        Spinney's name of its loss, which decides how scores become predictions.
    trees : list of list of SourceTree
        Trees of each score, in the order in which they are added up.
    baseline : sequence of float
        Scores before the first tree, as many as there are scores.
    n_features : int
        Columns.
    names : sequence of str or None
        Their names.
    categories : sequence of (array or None)
        Values of each column of categories; the place of a value is its code.
    classes : array or None
        Labels of a classifier, in the order of its scores.
    params : dict
        Parameters of the estimator.
    cover : {"rows", "weight", "unknown"}
        What is known of the training rows in a leaf: their number, or their weight alone.
    """

    task: str
    loss: str
    trees: list[list[SourceTree]]
    baseline: Sequence[float]
    n_features: int
    names: Sequence[str] | None = None
    categories: Sequence[Any] | None = None
    classes: Any = None
    params: dict[str, Any] = field(default_factory=dict)
    cover: str = "rows"


def make_booster(source: BoosterSource) -> Any:
    """Make the fitted estimator.

    Parameters
    ----------
    source : BoosterSource
        What it is made of.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        As if fitted; `train_score_` is NaN, as the losses of its rounds are not known.
    """
    from spinney import ensemble

    n_rounds = max(len(trees) for trees in source.trees)
    if n_rounds == 0:
        raise ValueError("model: expected at least one tree, got none")
    classes = {
        "classify": ensemble.GradientBoostingClassifier,
        "regress": ensemble.GradientBoostingRegressor,
        "rank": ensemble.GradientBoostingRanker,
    }
    model: Any = classes[source.task](loss=source.loss, n_estimators=n_rounds, **source.params)
    categories = source.categories or [None] * source.n_features
    _set_columns(model, source.n_features, source.names, categories)
    n_scores = len(source.trees)
    if source.task == "classify":
        model.classes_ = np.asarray(source.classes)
        model.n_classes_ = len(model.classes_)
        if model.n_classes_ != max(n_scores, 2):
            raise ValueError(
                f"model: expected as many classes as scores ({max(n_scores, 2)}), "
                f"got {model.n_classes_}"
            )
    shape: tuple[int, ...] = (1,)
    if source.task == "regress" and n_scores > 1:
        shape = (1, n_scores)
    model._prepare_loss(np.zeros(shape), None)
    model._n_scores = n_scores
    if source.task == "classify" and n_scores > 1:
        model._loss_name = "softmax"  # two classes may have a score each, too
    model._baseline = np.array(source.baseline, dtype=np.float64)
    if model._baseline.shape != (n_scores,) or not np.isfinite(model._baseline).all():
        raise ValueError(f"model: expected {n_scores} finite scores to start from")
    model._n_rounds, model._n_before, model._n_boosters = n_rounds, 0, 1
    model._seed = 0
    model._last_scores = None
    model.train_score_ = np.full(n_rounds, np.nan)  # not known, but a continued fit goes on there
    model.validation_score_ = np.empty(0)
    model.growth_ = "best_first"
    model._cover = source.cover  # how explanations count training rows
    model._store = model._new_store()
    if model._trees_per_round == n_scores:
        for t in range(n_rounds):
            for k, trees in enumerate(source.trees):
                tree = trees[t] if t < len(trees) else single_leaf(0.0)
                append_tree(model._store, tree, f"tree {t * n_scores + k}")
        return model
    model._n_rounds = sum(len(trees) for trees in source.trees)
    model.n_estimators = model._n_rounds
    for k, trees in enumerate(source.trees):  # leaves of the core say something of each output
        for t, tree in enumerate(trees):
            value = np.zeros((len(tree.left), n_scores))
            value[:, k] = np.ravel(tree.value)
            tree.value = value
            append_tree(model._store, tree, f"tree {t * n_scores + k}")
    return model


def single_leaf(value: Any) -> SourceTree:
    """Make a tree that says the same of every row."""
    return SourceTree(
        np.array([-1]),
        np.array([-1]),
        np.array([-2]),
        np.array([0.0]),
        np.array([False]),
        np.reshape(value, (1, -1)),
        np.ones(1),
        np.ones(1, dtype=np.int64),
        np.zeros(1),
    )


def _set_columns(model: Any, n_features: int, names: Any, categories: Any) -> None:
    model.n_features_in_ = n_features
    labels = None
    if names is not None:
        labels = np.array(list(names), dtype=object)
        if len(labels) != n_features or len(set(labels.tolist())) < n_features:
            raise ValueError(f"model: expected {n_features} different names of columns")
        model.feature_names_in_ = labels
    model._schema = Schema(labels, tuple(categories))
    model.categories_ = list(categories)
