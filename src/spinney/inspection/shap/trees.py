"""Exact Shapley values of trees and tree ensembles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from spinney import _core
from spinney.adaboost.anyboost import BaseAnyBoost, Constant
from spinney.boosting.base import BaseBoosting
from spinney.data.core_table import read_for_core
from spinney.data.table import schema_of
from spinney.export.tree_models import read_trees
from spinney.inspection._tree_sums import StoredSum, read_tree_sum
from spinney.models import outcomes as _outcomes
from spinney.models.form import NotExpressible, TreeScores
from spinney.models.tree import Tree
from spinney.tree.base import BaseTree

__all__ = ["ShapResult", "TreeSum", "explain_trees", "read_sum"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ShapResult:
    """Calculated Shapley values; the last axis of `values` is the outputs."""

    values: Floats
    base: Floats
    output: str
    output_names: list[str] | None
    method: str
    standard_errors: Floats | None = None


@dataclass(frozen=True)
class TreeSum:
    """A model as a sum over trees, and a description of the sum.

    `reader` is the estimator that converts tables for the trees; None if it is the model itself.
    """

    scores: TreeScores
    factor: float
    output: str
    output_names: list[str] | None
    reader: Any = None


@dataclass(frozen=True)
class _StoredScores:
    """Stand-in for `TreeScores` if the trees are in the core."""

    start: Floats
    trees: range


def read_stored(model: Any) -> tuple[TreeSum, StoredSum] | None:
    """Return a forest or booster as a sum over trees, without copying its trees.

    Returns None if the core does not hold the final leaf values. The trees then have to be read
    from the model (`read_sum`).
    """
    stored = read_tree_sum(model)
    if stored is None or stored.hard:
        return None
    start: Any = _StoredScores(stored.start, range(stored.n_trees))
    return _describe(model, start, stored.outcome), stored


def read_sum(model: Any) -> TreeSum:
    """Return a model as a sum over trees; raise NotExpressible if it is not one."""
    if isinstance(model, BaseAnyBoost):
        return _any_boost_sum(model)
    return _describe(model, *read_trees(model))


def _any_boost_sum(model: Any) -> TreeSum:
    """Return an AnyBoost model as a sum over trees, if its learners are trees."""
    start = float(model.init_)
    learners, values = [], []
    for learner, step in zip(model.estimators_, model.estimator_weights_, strict=True):
        if isinstance(learner, Constant):
            start += float(step) * learner.value
            continue
        if not isinstance(learner, BaseTree):
            raise NotExpressible(
                f"its learners are {type(learner).__name__}, expected Spinney decision trees"
            )
        stored = learner.tree_.value[:, 0]
        # A classifier predicts -1 or 1.
        leaf = learner.classes_[stored.argmax(axis=1)] if is_classifier(learner) else stored[:, 0]
        learners.append(learner)
        values.append(float(step) * np.asarray(leaf, dtype=np.float64)[:, None])
    if not learners:
        raise NotExpressible(f"{type(model).__name__} has no trees")
    known: Any = schema_of(learners[0]).categories
    for learner in learners:
        own: Any = schema_of(learner).categories
        if not all(np.array_equal(a, b) for a, b in zip(own, known, strict=True)):
            raise NotExpressible("its trees were fitted to different categories")
    trees = [learner.tree_ for learner in learners]
    scores = TreeScores(trees, values, [None] * len(trees), np.array([start]))
    output = f"score of {model.classes_[1]}" if is_classifier(model) else "prediction"
    return TreeSum(scores, 1.0, output, None, learners[0])


def _describe(model: Any, scores: TreeScores, outcome: Any) -> TreeSum:
    """Return a sum over trees with its factor and the names of its outputs."""
    name = type(model).__name__
    classes: Any = getattr(outcome, "classes", None)
    if isinstance(outcome, _outcomes.WeightedMedian):
        raise NotExpressible(f"{name} predicts a median of its trees, which is not a sum over them")
    if isinstance(outcome, _outcomes.Numbers):
        return TreeSum(scores, 1 / outcome.divisor, "prediction", _numbered(scores))
    if isinstance(outcome, _outcomes.Exponential):
        return TreeSum(scores, 1.0, "logarithm of the prediction", _numbered(scores))
    if isinstance(outcome, _outcomes.Logistic):
        return TreeSum(scores, 1.0, "log-odds", _numbered(scores))
    if isinstance(outcome, _outcomes.SortedQuantiles):
        return TreeSum(scores, 1.0, "quantiles before they are sorted", _numbered(scores))
    if isinstance(outcome, _outcomes.Isolation):
        return TreeSum(scores, 1 / len(scores.trees), "mean length of the path", None)
    if isinstance(outcome, _outcomes.TwoClasses):
        return TreeSum(scores, outcome.factor, f"log-odds of {classes[1]}", None)
    if isinstance(outcome, _outcomes.Softmax):
        return TreeSum(scores, 1.0, "score before softmax", _names(classes))
    if isinstance(outcome, _outcomes.Shares):
        return TreeSum(scores, 1 / outcome.divisor, "probability", _names(classes))
    if isinstance(outcome, _outcomes.SeveralShares):
        names = [f"{k}: {c}" for k, some in enumerate(outcome.classes) for c in some]
        return TreeSum(scores, 1 / outcome.divisor, "probability", names)
    if isinstance(outcome, _outcomes.BoostedVotes):
        return TreeSum(scores, 1 / outcome.total, "share of the votes", _names(classes))
    if isinstance(outcome, _outcomes.OneClass):
        return TreeSum(scores, 1.0, "score of the only class", None)
    raise NotExpressible(f"{name} is not a sum over trees")


def _names(classes: Any) -> list[str]:
    return [str(c) for c in classes]


def _numbered(scores: TreeScores) -> list[str] | None:
    n = len(scores.start)
    return None if n == 1 else [str(k) for k in range(n)]


def explain_trees(
    model: Any,
    tree_sum: TreeSum,
    X: Any,
    background: Any,
    *,
    stored: StoredSum | None = None,
    cover: str,
    interactions: bool,
    n_threads: int,
) -> ShapResult:
    """Return Shapley values of a model that is a sum over trees.

    Parameters
    ----------
    model : estimator
        A fitted Spinney model.
    tree_sum : TreeSum
        The model as a sum over trees, from `read_sum` or `read_stored`.
    X : table
        The rows that are explained.
    background : table or None
        Background rows for interventional values; None: path-dependent values, from the shares of
        training rows in the nodes.
    stored : StoredSum or None, default=None
        The trees in the core, if `tree_sum` is from `read_stored`.
    cover : {"auto", "rows", "weight"}
        Whether the shares of training rows in the nodes are counts or weights.
    interactions : bool
        Whether to return interaction values of pairs of columns.
    n_threads : int
        The maximum number of threads.
    """
    reader = model if tree_sum.reader is None else tree_sum.reader
    schema = schema_of(reader)
    rows = read_for_core(reader, X, schema)
    scores = tree_sum.scores
    n_outputs = len(scores.start)
    n_features = int(model.n_features_in_)
    core = _core.TreeExplainer(schema.n_categories, n_outputs)
    default_cover = _usual_cover(model)
    if background is None:
        _check_cover(cover, default_cover)
    if cover == "auto":
        cover = default_cover
    if stored is not None:
        core.append_forest(
            stored.core,
            stored.n_trees,
            stored.n_scores,
            stored.one_each,
            cover == "rows",
            n_threads,
        )
        trees: Any = ()
    else:
        trees = zip(scores.trees, scores.values, scores.adds_to, strict=True)
    for tree, values, score_index in trees:
        width = values.shape[1]
        core.append(
            tree.children_left,
            tree.children_right,
            tree.feature,
            tree.threshold,
            tree.missing_go_to_left,
            tree.category_start,
            tree.category_bits,
            _shares_left(tree, cover),
            np.ascontiguousarray(values, dtype=np.float64).ravel(),
            width,
            0 if score_index is None else score_index,
        )
    if background is not None:
        core.set_background(read_for_core(reader, background, schema))
        method = "trees, interventional"
    else:
        method = f"trees, path dependent, by {cover}"
    shape: tuple[int, ...] = (rows.n_rows, n_features, n_outputs)
    values = np.zeros(shape)
    core.explain(rows, False, n_threads, values, None)
    base = (core.base_values() + scores.start) * tree_sum.factor
    if interactions:
        pairs = np.zeros((rows.n_rows, n_features, n_features, n_outputs))
        core.explain(rows, True, n_threads, pairs, None)
        pairs += pairs.swapaxes(1, 2)
        diagonal = np.arange(n_features)
        pairs[:, diagonal, diagonal] = values - pairs.sum(axis=2)
        values = pairs
    if tree_sum.factor != 1.0:
        values *= tree_sum.factor
    return ShapResult(values, base, tree_sum.output, tree_sum.output_names, method)


def _usual_cover(model: Any) -> str:
    """Return the cover that "auto" selects for a model."""
    # The weights in boosters are second derivatives, which are less meaningful than row counts.
    # Models imported from XGBoost or CatBoost have no row counts; their cover is "weight".
    if isinstance(model, BaseBoosting):
        return str(model.fitted_model().cover)
    return "weight"


def _check_cover(cover: str, stored: str) -> None:
    """Raise an error if an imported model does not store the requested cover."""
    if stored == "unknown":
        raise ValueError(
            "model: expected one with the number of training rows in each leaf; the imported file "
            "does not contain it (leaf_count of LightGBM, leaf_weights of CatBoost); give a "
            "background of about 100 training rows instead"
        )
    if cover == "rows" and stored == "weight":
        raise ValueError(
            "cover: expected 'weight' or 'auto', because the imported file contains only weights "
            "of leaves; got 'rows'"
        )


def _shares_left(tree: Tree, cover: str) -> Floats:
    """Return for each node the share of training rows that go to the left child."""
    weight = tree.n_node_samples if cover == "rows" else tree.weighted_n_node_samples
    weight = np.maximum(np.asarray(weight, dtype=np.float64), 0.0)
    shares = np.full(tree.node_count, 0.5)
    inner = np.flatnonzero(tree.children_left >= 0)
    left = weight[tree.children_left[inner]]
    total = left + weight[tree.children_right[inner]]
    known = total > 0
    shares[inner[known]] = left[known] / total[known]
    return shares
