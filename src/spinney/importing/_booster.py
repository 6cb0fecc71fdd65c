"""Construction of Spinney boosters from trees of other libraries."""

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
    """A boosted model as a reader found it in a file or an object.

    Parameters
    ----------
    task : {"classify", "regress", "rank"}
        The kind of Spinney booster to create.
    loss : str
        The Spinney name of the loss, which determines how predictions follow from scores.
    trees : list of list of SourceTree
        The trees of each score, in the order of summation.
    baseline : sequence of float
        The score before the first tree, for each score.
    n_features : int
        The number of columns.
    names : sequence of str or None, default=None
        The names of the columns.
    categories : sequence of (array or None), default=None
        The values of each column of categories; the index of a value is its code.
    classes : array or None, default=None
        The labels of a classifier, in the order of its scores.
    params : dict, default={}
        Parameters of the estimator.
    cover : {"rows", "weight", "unknown"}, default="rows"
        The stored size of a leaf: the number of training rows, or only their weight.
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
    """Create a fitted Spinney booster.

    Parameters
    ----------
    source : BoosterSource
        The description of the model.

    Returns
    -------
    GradientBoostingClassifier, GradientBoostingRegressor or GradientBoostingRanker
        The fitted estimator; `train_score_` is NaN, because the losses of rounds are unknown.
    """
    from spinney import ensemble  # saves start-up time: only some imports need it

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
                f"model: expected one class for each score ({max(n_scores, 2)}), "
                f"got {model.n_classes_}"
            )
    shape: tuple[int, ...] = (1,)
    if source.task == "regress" and n_scores > 1:
        shape = (1, n_scores)
    model._prepare_loss(np.zeros(shape), None)
    model._n_scores = n_scores
    if source.task == "classify" and n_scores > 1:
        model._loss_name = "softmax"  # also for two classes with one score each
    model._baseline = np.array(source.baseline, dtype=np.float64)
    if model._baseline.shape != (n_scores,) or not np.isfinite(model._baseline).all():
        raise ValueError(
            f"model: expected {n_scores} finite initial scores, got {model._baseline.tolist()}"
        )
    model._n_rounds, model._n_before, model._n_boosters = n_rounds, 0, 1
    model._seed = 0
    model._last_scores = None
    model.train_score_ = np.full(n_rounds, np.nan)  # unknown, but a continued fit appends to it
    model.validation_score_ = np.empty(0)
    model.growth_ = "best_first"
    model._cover = source.cover  # explanations use it to count training rows
    model._store = model._new_store()
    if model._trees_per_round == n_scores:
        for t in range(n_rounds):
            for k, trees in enumerate(source.trees):
                tree = trees[t] if t < len(trees) else single_leaf(0.0)
                append_tree(model._store, tree, f"tree {t * n_scores + k}")
        return model
    model._n_rounds = sum(len(trees) for trees in source.trees)
    model.n_estimators = model._n_rounds
    for k, trees in enumerate(source.trees):  # in the core, leaves have a value for each output
        for t, tree in enumerate(trees):
            value = np.zeros((len(tree.left), n_scores))
            value[:, k] = np.ravel(tree.value)
            tree.value = value
            append_tree(model._store, tree, f"tree {t * n_scores + k}")
    return model


def single_leaf(value: Any) -> SourceTree:
    """Return a tree that predicts the same value for every row."""
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
    """Set the attributes that describe the columns."""
    model.n_features_in_ = n_features
    labels = None
    if names is not None:
        labels = np.array(list(names), dtype=object)
        if len(labels) != n_features or len(set(labels.tolist())) < n_features:
            raise ValueError(
                f"model: expected {n_features} different column names, got {len(labels)} names, "
                f"{len(set(labels.tolist()))} of them different"
            )
        model.feature_names_in_ = labels
    model._schema = Schema(labels, tuple(categories))
    model.categories_ = list(categories)
