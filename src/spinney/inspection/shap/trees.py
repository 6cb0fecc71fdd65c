"""Exact Shapley values of trees and sums of trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from spinney import _core
from spinney.adaboost.anyboost import BaseAnyBoost, Constant
from spinney.data.core_table import read_for_core
from spinney.export.tree_models import read_trees
from spinney.inspection._tree_sums import TreeSum as StoredSum
from spinney.inspection._tree_sums import read_tree_sum
from spinney.models import form as _form
from spinney.models.form import NotExpressible, TreeScores
from spinney.models.tree import Tree
from spinney.tree.base import BaseTree

__all__ = ["Parts", "TreeSum", "explain_trees", "read_sum"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Parts:
    """Shapley values as they are calculated: the last axis is that of the outputs."""

    values: Floats
    base: Floats
    output: str
    output_names: list[str] | None
    method: str
    standard_errors: Floats | None = None


@dataclass(frozen=True)
class TreeSum:
    """A model as a sum over trees, and what the sum is.

    `reader` reads tables as the trees want them, where the model itself does not.
    """

    scores: TreeScores
    factor: float
    output: str
    output_names: list[str] | None
    reader: Any = None


@dataclass(frozen=True)
class _Start:
    """Of scores whose trees are in the core: where they begin, and how many trees there are."""

    start: Floats
    trees: range


def read_stored(model: Any) -> tuple[TreeSum, StoredSum] | None:
    """Return the sum that a forest's or booster's answer is, without its trees as arrays.

    None where the trees have to be read out of the model (`read_sum`), as their leaves follow from
    more than what the core holds.
    """
    if not hasattr(model, "_store"):
        return None
    stored = read_tree_sum(model)
    if stored is None or stored.hard:
        return None
    start: Any = _Start(stored.start, range(stored.n_trees))
    return _describe(model, start, stored.outcome), stored


def read_sum(model: Any) -> TreeSum:
    """Return the sum that a model's answer is; NotExpressible says why it is none."""
    if isinstance(model, BaseAnyBoost):
        return _any_boost(model)
    return _describe(model, *read_trees(model))


def _any_boost(model: Any) -> TreeSum:
    """Return what AnyBoost adds up, if its learners are trees."""
    start = float(model.init_)
    learners, values = [], []
    for learner, step in zip(model.estimators_, model.estimator_weights_, strict=True):
        if isinstance(learner, Constant):
            start += float(step) * learner.value
            continue
        if not isinstance(learner, BaseTree):
            raise NotExpressible(
                f"its learners are {type(learner).__name__}, expected Spinney's decision trees"
            )
        told = learner.tree_.value[:, 0]
        # A classifier says -1 or 1.
        said = learner.classes_[told.argmax(axis=1)] if is_classifier(learner) else told[:, 0]
        learners.append(learner)
        values.append(float(step) * np.asarray(said, dtype=np.float64)[:, None])
    if not learners:
        raise NotExpressible(f"{type(model).__name__} has no trees")
    known: Any = learners[0]._schema.categories
    for learner in learners:
        own: Any = learner._schema.categories
        if not all(np.array_equal(a, b) for a, b in zip(own, known, strict=True)):
            raise NotExpressible("its trees know different categories")
    trees = [learner.tree_ for learner in learners]
    scores = TreeScores(trees, values, [None] * len(trees), np.array([start]))
    output = f"score of {model.classes_[1]}" if is_classifier(model) else "prediction"
    return TreeSum(scores, 1.0, output, None, learners[0])


def _describe(model: Any, scores: TreeScores, outcome: Any) -> TreeSum:
    name = type(model).__name__
    classes: Any = getattr(outcome, "classes", None)
    if isinstance(outcome, _form.WeightedMedian):
        raise NotExpressible(f"{name} predicts a median of its trees, which is no sum over them")
    if isinstance(outcome, _form.Numbers):
        return TreeSum(scores, 1 / outcome.divisor, "prediction", _numbered(scores))
    if isinstance(outcome, _form.Exponential):
        return TreeSum(scores, 1.0, "logarithm of the prediction", _numbered(scores))
    if isinstance(outcome, _form.Logistic):
        return TreeSum(scores, 1.0, "log-odds", _numbered(scores))
    if isinstance(outcome, _form.SortedQuantiles):
        return TreeSum(scores, 1.0, "quantiles before they are sorted", _numbered(scores))
    if isinstance(outcome, _form.Isolation):
        return TreeSum(scores, 1 / len(scores.trees), "mean length of the path", None)
    if isinstance(outcome, _form.TwoClasses):
        return TreeSum(scores, outcome.factor, f"log-odds of {classes[1]}", None)
    if isinstance(outcome, _form.Softmax):
        return TreeSum(scores, 1.0, "score before softmax", _names(classes))
    if isinstance(outcome, _form.Shares):
        return TreeSum(scores, 1 / outcome.divisor, "probability", _names(classes))
    if isinstance(outcome, _form.SeveralShares):
        names = [f"{k}: {c}" for k, some in enumerate(outcome.classes) for c in some]
        return TreeSum(scores, 1 / outcome.divisor, "probability", names)
    if isinstance(outcome, _form.BoostedVotes):
        return TreeSum(scores, 1 / outcome.total, "share of the votes", _names(classes))
    if isinstance(outcome, _form.OneClass):
        return TreeSum(scores, 1.0, "score of the only class", None)
    raise NotExpressible(f"{name} is no sum over trees")


def _names(classes: Any) -> list[str]:
    return [str(c) for c in classes]


def _numbered(scores: TreeScores) -> list[str] | None:
    n = len(scores.start)
    return None if n == 1 else [str(k) for k in range(n)]


def explain_trees(
    model: Any,
    told: TreeSum,
    X: Any,
    background: Any,
    *,
    stored: StoredSum | None = None,
    cover: str,
    interactions: bool,
    n_threads: int,
) -> Parts:
    """Explain a model that is a sum over trees.

    Parameters
    ----------
    model : estimator
        A fitted model of Spinney.
    told : TreeSum
        What `read_sum` said of it.
    stored : StoredSum or None, default=None
        What `read_stored` said of it, if `told` came from there.
    X, background : table, table or None
        What is explained, and rows that decide in place of the trees' own shares.
    cover : {"auto", "rows", "weight"}
        Which shares these are.
    interactions : bool
        Pairs instead of single columns.
    n_threads : int
        At most so many.
    """
    reader = model if told.reader is None else told.reader
    rows = read_for_core(reader, X, reader._schema)
    scores = told.scores
    n_outputs = len(scores.start)
    n_features = int(model.n_features_in_)
    sizes = [0 if c is None else len(c) for c in reader._schema.categories]
    core = _core.TreeExplainer(sizes, n_outputs)
    usual = _usual_cover(model)
    if background is None:
        _check_cover(cover, vars(model).get("_cover"))
    if cover == "auto":
        cover = usual
    if stored is not None:
        core.append_forest(
            stored.core,
            stored.n_trees,
            stored.n_scores,
            stored.one_each,
            cover == "rows",
            n_threads,
        )
        read: Any = ()
    else:
        read = zip(scores.trees, scores.values, scores.adds_to, strict=True)
    for tree, values, place in read:
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
            0 if place is None else place,
        )
    if background is not None:
        core.set_background(read_for_core(reader, background, reader._schema))
        method = "trees, interventional"
    else:
        method = f"trees, path dependent, by {cover}"
    shape: tuple[int, ...] = (rows.n_rows, n_features, n_outputs)
    values = np.zeros(shape)
    core.explain(rows, False, n_threads, values, None)
    base = (core.base_values() + scores.start) * told.factor
    if interactions:
        pairs = np.zeros((rows.n_rows, n_features, n_features, n_outputs))
        core.explain(rows, True, n_threads, pairs, None)
        pairs += pairs.swapaxes(1, 2)
        diagonal = np.arange(n_features)
        pairs[:, diagonal, diagonal] = values - pairs.sum(axis=2)
        values = pairs
    if told.factor != 1.0:
        values *= told.factor
    return Parts(values, base, told.output, told.output_names, method)


def _usual_cover(model: Any) -> str:
    # Boosters weigh rows by second derivatives; how many rows came by says more. Models that came
    # from elsewhere without numbers of rows (XGBoost's, CatBoost's) say so.
    from spinney.boosting.base import BaseBoosting

    if isinstance(model, BaseBoosting):
        return str(vars(model).get("_cover", "rows"))
    return "weight"


def _check_cover(cover: str, known: str | None) -> None:
    """Refuse shares of training rows that an imported model does not know."""
    if known == "unknown":
        raise ValueError(
            "model: expected one that knows how many training rows came to each leaf; the file it "
            "was imported from does not say (leaf_count of LightGBM's, leaf_weights of CatBoost's);"
            " a background, some hundred of the training rows, serves instead"
        )
    if cover == "rows" and known == "weight":
        raise ValueError(
            "cover: expected 'weight' or 'auto', as the file that the model was imported from has "
            "the weights of leaves alone, got 'rows'"
        )


def _shares_left(tree: Tree, cover: str) -> Floats:
    weight = tree.n_node_samples if cover == "rows" else tree.weighted_n_node_samples
    weight = np.maximum(np.asarray(weight, dtype=np.float64), 0.0)
    shares = np.full(tree.node_count, 0.5)
    inner = np.flatnonzero(tree.children_left >= 0)
    left = weight[tree.children_left[inner]]
    total = left + weight[tree.children_right[inner]]
    known = total > 0
    shares[inner[known]] = left[known] / total[known]
    return shares
