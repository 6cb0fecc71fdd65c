"""Construction of Spinney boosters from trees of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spinney.data.table import Schema
from spinney.importing._trees import SourceTree, append_tree
from spinney.models.boosted_trees import BoostedTrees
from spinney.models.forest_store import ForestStore
from spinney.models.outcomes import LOG_LINK

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
    schema = _set_columns(model, source.n_features, source.names, categories)
    n_scores = len(source.trees)
    if source.task == "classify":
        model.classes_ = np.asarray(source.classes)
        model.n_classes_ = len(model.classes_)
        if model.n_classes_ != max(n_scores, 2):
            raise ValueError(
                f"model: expected one class for each score ({max(n_scores, 2)}), "
                f"got {model.n_classes_}"
            )
    baseline = np.array(source.baseline, dtype=np.float64)
    if baseline.shape != (n_scores,) or not np.isfinite(baseline).all():
        raise ValueError(
            f"model: expected {n_scores} finite initial scores, got {baseline.tolist()}"
        )
    n_targets = n_scores if source.task == "regress" else 1
    trees = source.trees[0]
    if n_targets > 1:
        trees = _with_value_for_each_target(source.trees)
    else:
        rounds = (
            [own[t] if t < len(own) else None for own in source.trees] for t in range(n_rounds)
        )
        trees = [single_leaf(0.0) if tree is None else tree for trees in rounds for tree in trees]
    store = ForestStore("squared_error", [], n_targets, True, schema.n_categories)
    for number, tree in enumerate(trees):
        append_tree(store, tree, f"tree {number}")
    model.n_estimators = n_rounds = len(trees) // (1 if n_targets > 1 else n_scores)
    model.set_fitted_model(
        BoostedTrees(
            link=_link(source),
            classes=getattr(model, "classes_", None),
            levels=(),
            n_targets=n_targets,
            store=store,
            schema=schema,
            baseline=baseline,
            n_rounds=n_rounds,
            cover=source.cover,
        )
    )
    return model


def _link(source: BoosterSource) -> str:
    if source.task == "classify":
        if len(source.trees) > 1:
            return "softmax"  # also for two classes with one score each
        return "twice_logistic" if source.loss == "exponential" else "logistic"
    if source.loss in LOG_LINK:
        return "exponential"
    return "probability" if source.loss == "cross_entropy" else "identity"


def _with_value_for_each_target(trees_of_targets: list[list[SourceTree]]) -> list[SourceTree]:
    """Return trees whose leaves have a value for each target, zero for all but one."""
    trees = []
    for target, own in enumerate(trees_of_targets):
        for tree in own:
            value = np.zeros((len(tree.left), len(trees_of_targets)))
            value[:, target] = np.ravel(tree.value)
            tree.value = value
            trees.append(tree)
    return trees


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


def _set_columns(model: Any, n_features: int, names: Any, categories: Any) -> Schema:
    """Set the attributes that describe the columns, and return their schema."""
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
    model.categories_ = list(categories)
    return Schema(labels, tuple(categories))
