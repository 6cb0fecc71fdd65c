"""Importance by impurity, measured on rows that did not choose the questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney import _core
from spinney.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.boosting.base import BaseBoosting
from spinney.data.table import read_table
from spinney.forest.base import BaseForest
from spinney.forest.classifier import ForestClassifier
from spinney.forest.regressor import ForestRegressor
from spinney.inspection.importances import Importances, standard_errors
from spinney.inspection.table_view import as_numbers, as_targets
from spinney.models.tree import Tree
from spinney.tree.base import BaseTree

__all__ = ["impurity_importance"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


def impurity_importance(model: Any, X: Any, y: Any, *, held_out: bool = False) -> Importances:
    """Measure how much each column's questions lessen the impurity, without the usual bias.

    The decrease that a tree reports about its own rows is greatest for columns with many values,
    even if they are noise: among many questions one fits by chance. Here it is measured on rows
    that had no say in the question: each row adds, for every question on its way, the product of
    the step in the node's value and the row's distance from the mean of such rows in the node. Over
    a tree's own rows that is the decrease of the impurity (Gini's, or the variance); over others it
    is zero on average for a column of noise, whatever its values (after Li et al. 2019, and Zhou
    and Hooker 2021). Of several targets it is the mean over them, as it is in the trees.

    Parameters
    ----------
    model : fitted forest, or a decision tree or booster with ``held_out=True``
        Of Spinney's. A booster's trees are added up: what the rows add is, column by column, how
        much the raw score goes along with the target (their covariance), as far as questions about
        the column make it.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows of fit, in their order; the rows out of each tree's bag are found again from the
        forest's seed. With `held_out`, rows that the model has not seen.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Their targets.
    held_out : bool, default=False
        Whether X and y are rows that were not in the fit, so that all trees are asked about all.

    Returns
    -------
    Importances
        Decreases of the impurity, the mean over trees, not scaled to a sum of one; of boosters, the
        covariance. Standard errors hold what other rows to judge by and other trees (not of
        boosters) would have given; not what a model fitted to other rows would lean on.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.ensemble import RandomForestClassifier
    >>> from spinney.inspection import impurity_importance
    >>> random = np.random.default_rng(0)
    >>> signal, noise = random.integers(0, 2, 500), random.normal(size=500)
    >>> X, y = np.column_stack([signal, noise]), signal ^ (random.uniform(size=500) < 0.3)
    >>> forest = RandomForestClassifier(random_state=0).fit(X, y)
    >>> bool(forest.feature_importances_[1] > forest.feature_importances_[0])  # the bias
    True
    >>> told = impurity_importance(forest, X, y)
    >>> low, high = told.interval()
    >>> bool(low[0] > 0), bool(low[1] < 0 < high[1])
    (True, True)
    """
    check_is_fitted(model)
    _check_model(model, held_out)
    table = read_table(model, X, model._schema)
    y = as_targets(y, table.n_rows)
    if not held_out and table.n_rows != model._n_samples:
        raise ValueError(
            f"X: expected the {model._n_samples} rows of fit, got {table.n_rows}; for rows that "
            "the model has not seen, say held_out=True"
        )
    rows = _matrix(table, model._schema)
    targets, n_outputs = _targets(model, y.reshape(len(y), -1))
    boosts = isinstance(model, BaseBoosting)
    n_together = model._trees_per_round if isinstance(model, BaseBoosting) else 1
    by_class = n_together > 1  # of a round's trees each is for one class
    totals, n_trees = np.zeros(rows.shape), np.zeros(len(rows))
    each = []
    for t, (tree, asked) in enumerate(_trees(model, len(rows), held_out)):
        own = targets[:, [t % n_together]] if by_class else targets
        told = _steps(tree, rows[asked], own[asked]) / n_outputs
        totals[asked] += told
        n_trees[asked] += 1
        each.append(told.mean(axis=0) if len(asked) else np.zeros(rows.shape[1]))
    seen = n_trees > 0
    if not seen.any():
        raise ValueError("model: expected rows out of some tree's bag, got none")
    by_tree = np.array(each).T
    # Rows tell how far other rows would have been off, but not the mean: where bags depend on the
    # target, as with class_weight, a row that few trees left out would count too much for them.
    mean = by_tree.sum(axis=1) if boosts else by_tree.mean(axis=1)
    of_rows = totals[seen] / (1.0 if boosts else n_trees[seen, np.newaxis])
    error = np.nan_to_num(standard_errors(of_rows.T)) ** 2
    if by_tree.shape[1] > 1 and not boosts:
        error = error + standard_errors(by_tree) ** 2
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"column {j}" for j in range(rows.shape[1])]
    where = "on rows held out" if held_out else "out of the bag"
    what = "covariance of score and target" if boosts else "decrease of the impurity"
    return Importances(
        [str(name) for name in names], mean, np.sqrt(error), f"{what} {where}", by_tree
    )


def _check_model(model: Any, held_out: bool) -> None:
    if isinstance(model, GradientBoostingClassifier | GradientBoostingRegressor):
        if not held_out:
            raise ValueError(
                "model: expected a forest, got a booster, whose trees have all seen what others "
                "left of the same rows; with held_out=True, X and y are rows that it has not seen"
            )
        if model._levels:
            raise ValueError(
                "model: expected a booster of means or classes, got one of "
                f"{len(model._levels)} quantiles of a target"
            )
        return
    if isinstance(model, BaseTree):
        if not held_out:
            raise ValueError(
                "model: expected a forest, got a single tree, which has no rows out of its bag; "
                "with held_out=True, X and y are rows that it has not seen"
            )
    elif not isinstance(model, ForestClassifier | ForestRegressor):
        raise ValueError(
            f"model: expected a forest, tree or booster of Spinney's, got {type(model).__name__};"
            " permutation_importance and drop_column_importance serve every model"
        )
    if not held_out and not model.bootstrap:
        raise ValueError(
            "model: expected a forest fitted with bootstrap=True, got bootstrap=False, so that no "
            "row is out of a bag; with held_out=True, X and y are rows that it has not seen"
        )


def _matrix(table: Any, schema: Any) -> Floats:
    """Return rows as the trees see them: numbers, or codes; NaN where something is missing."""
    if table.columns is None:
        return np.asarray(table.to_matrix(), dtype=np.float64)
    columns = []
    for values, categories in zip(table.columns, schema.categories, strict=True):
        numbers = np.asarray(values, dtype=np.float64)
        if categories is not None:
            numbers = np.where(numbers < 0, np.nan, numbers)
        columns.append(numbers)
    return np.column_stack(columns)


def _targets(model: Any, y: NDArray[Any]) -> tuple[Floats, int]:
    """Return targets as the trees' leaves have values, (n_rows, width), and how many they are.

    A column for each number, or for each class; of several targets, all have as many columns as the
    one of most classes.
    """
    n_outputs = model._n_targets if isinstance(model, BaseBoosting) else model.n_outputs_
    if y.shape[1] != n_outputs:
        raise ValueError(
            f"y: expected {n_outputs} targets, as the model was fitted to, got {y.shape[1]}"
        )
    if not is_classifier(model):
        return np.column_stack([as_numbers(one, "y") for one in y.T]), n_outputs
    several = model.classes_ if n_outputs > 1 else [model.classes_]
    places = [_places(classes, one) for classes, one in zip(several, y.T, strict=True)]
    if isinstance(model, BaseBoosting) and model._n_scores == 1:
        return places[0][:, np.newaxis].astype(np.float64), 1
    width = max(len(classes) for classes in several)
    return np.concatenate([np.eye(width)[one] for one in places], axis=1), n_outputs


def _places(classes: NDArray[Any], y: NDArray[Any]) -> Rows:
    """Return the place of each label among the classes."""
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[places] != y
    if unknown.any():
        raise ValueError(f"y: expected classes of the model, got {y[unknown].tolist()[0]!r}")
    return places


def _trees(model: Any, n_rows: int, held_out: bool) -> Iterator[tuple[Tree, Rows]]:
    """Give each tree with the rows that it may be asked about."""
    if isinstance(model, BaseTree):
        yield model.tree_, np.arange(n_rows)
        return
    if isinstance(model, BaseBoosting):
        for t in range(len(model._store)):
            yield model._store.tree(t), np.arange(n_rows)
        return
    assert isinstance(model, BaseForest)
    # Of columns of categories half of the rows out of the bag told their order.
    ordered = model.estimator_.splitter == "best" and any(n > 2 for n in model._store.shape[4])
    for t in range(len(model._store)):
        out = np.ones(n_rows, dtype=bool)
        if not held_out:
            out[model._drawn(t)] = False
            if ordered:
                out &= _core.tells_order(_core.seed_of_tree(model._seed, t), n_rows) == 0
        yield model._store.tree(t), np.flatnonzero(out)


def _steps(tree: Tree, rows: Floats, targets: Floats) -> Floats:
    """Return what each row adds to each column, walking through a tree level by level."""
    values = tree.value.reshape(tree.node_count, -1)
    out = np.zeros(rows.shape)
    moving, at = np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64)
    while True:
        inner = tree.children_left[at] >= 0
        moving, at = moving[inner], at[inner]
        if len(at) == 0:
            return out
        feature = tree.feature[at]
        left = _goes_left(tree, at, rows[moving, feature])
        child = np.where(left, tree.children_left[at], tree.children_right[at])
        # The mean of these rows, not the tree's: rows that were drawn twice draw the tree's value
        # towards them, and with it the side that they chose.
        _, place, counts = np.unique(at, return_inverse=True, return_counts=True)
        sums = [np.bincount(place, target) for target in targets[moving].T]
        means = (np.array(sums) / counts).T[place]
        step = (values[child] - values[at]) * (targets[moving] - means)
        out[moving, feature] += step.sum(axis=1)
        at = child


def _goes_left(tree: Tree, at: NDArray[np.int64], asked: Floats) -> NDArray[np.bool_]:
    missing = np.isnan(asked)
    left = asked <= tree.threshold[at]
    start = tree.category_start[at]
    of_categories = np.flatnonzero((start >= 0) & ~missing)
    if len(of_categories):
        codes = asked[of_categories].astype(np.int64)
        words = tree.category_bits[start[of_categories] + codes // 32]
        left[of_categories] = (words >> (codes % 32).astype(np.uint32)) & 1 == 1
    left[missing] = tree.missing_go_to_left[at[missing]] == 1
    return left
