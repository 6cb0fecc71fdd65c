"""Impurity importance, measured on rows that were not used to choose the splits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from spinney.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.boosting.base import BaseBoosting
from spinney.data.table import read_table, schema_of
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
    """Measure the impurity decrease of each column's splits, without the usual bias.

    The decrease that a tree reports for its own training rows is largest for columns with many
    values, even if they are noise: among many splits one fits by chance. Here the decrease is
    measured on rows that were not used to choose the split. For every split on its path, a row adds
    the step in the node's value times the row's distance from the mean of such rows in the node.
    Over a tree's training rows, that is the decrease of the impurity (Gini, or the variance). Over
    other rows, it is zero on average for a column of noise, for any number of values (after Li et
    al. 2019, and Zhou and Hooker 2021). For several targets it is the mean over them, as in the
    trees.

    Parameters
    ----------
    model : fitted forest, or a decision tree or booster with ``held_out=True``
        The Spinney model. The trees of a booster are added up: the importance of a column is the
        covariance of the raw score and the target that comes from splits on the column.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The training rows, in the order passed to `fit`; the out-of-bag rows of each tree follow
        from the forest's seed. With `held_out`, rows that were not used in the fit.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Their targets.
    held_out : bool, default=False
        Whether X and y are rows that were not used in the fit, so that each tree uses all rows.

    Returns
    -------
    Importances
        Decreases of the impurity, the mean over trees, not normalised to a sum of one; for
        boosters, the covariance. Standard errors cover other evaluation rows and, except for
        boosters, other trees; they do not cover a model that is fitted to other rows.

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
    >>> low, high = impurity_importance(forest, X, y).interval()
    >>> bool(low[0] > 0), bool(low[1] < 0 < high[1])
    (True, True)
    """
    check_is_fitted(model)
    _check_model(model, held_out)
    schema = schema_of(model)
    table = read_table(model, X, schema)
    y = as_targets(y, table.n_rows)
    if not held_out and table.n_rows != model.tree_samples.n_rows:
        raise ValueError(
            f"X: expected the {model.tree_samples.n_rows} training rows, got {table.n_rows}; use "
            "held_out=True for other rows"
        )
    rows = _matrix(table, schema)
    targets, n_outputs = _targets(model, y.reshape(len(y), -1))
    boosts = isinstance(model, BaseBoosting)
    n_together = model.fitted_model().trees_per_round if isinstance(model, BaseBoosting) else 1
    by_class = n_together > 1  # each tree of a boosting round belongs to one class
    totals, n_trees = np.zeros(rows.shape), np.zeros(len(rows))
    each = []
    for t, (tree, used) in enumerate(_trees(model, len(rows), held_out)):
        tree_targets = targets[:, [t % n_together]] if by_class else targets
        added = _row_contributions(tree, rows[used], tree_targets[used]) / n_outputs
        totals[used] += added
        n_trees[used] += 1
        each.append(added.mean(axis=0) if len(used) else np.zeros(rows.shape[1]))
    is_used = n_trees > 0
    if not is_used.any():
        raise ValueError("model: expected a tree with out-of-bag rows, got none")
    by_tree = np.array(each).T
    # The rows determine the standard error, but the trees determine the mean: where bags depend on
    # the target, as with class_weight, rows that are rarely out of bag would get too much weight.
    mean = by_tree.sum(axis=1) if boosts else by_tree.mean(axis=1)
    of_rows = totals[is_used] / (1.0 if boosts else n_trees[is_used, np.newaxis])
    error = np.nan_to_num(standard_errors(of_rows.T)) ** 2
    if by_tree.shape[1] > 1 and not boosts:
        error = error + standard_errors(by_tree) ** 2
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        names = [f"column {j}" for j in range(rows.shape[1])]
    where = "in held-out rows" if held_out else "in out-of-bag rows"
    quantity = "covariance of score and target" if boosts else "decrease of the impurity"
    return Importances(
        [str(name) for name in names], mean, np.sqrt(error), f"{quantity} {where}", by_tree
    )


def _check_model(model: Any, held_out: bool) -> None:
    """Raise an error if the model has no impurity importance for such rows."""
    if isinstance(model, GradientBoostingClassifier | GradientBoostingRegressor):
        if not held_out:
            raise ValueError(
                "model: expected a forest, got a booster, whose trees are all fitted to the same "
                "rows; use held_out=True and give rows that were not used in the fit"
            )
        n_levels = len(model.fitted_model().levels)
        if n_levels:
            raise ValueError(
                "model: expected a booster that predicts means or classes, got one that predicts "
                f"{n_levels} quantiles"
            )
        return
    if isinstance(model, BaseTree):
        if not held_out:
            raise ValueError(
                "model: expected a forest, got a single tree, which has no out-of-bag rows; "
                "use held_out=True and give rows that were not used in the fit"
            )
    elif not isinstance(model, ForestClassifier | ForestRegressor):
        raise ValueError(
            f"model: expected a Spinney forest, tree or booster, got {type(model).__name__}; "
            "permutation_importance and drop_column_importance support every model"
        )
    if not held_out and not model.bootstrap:
        raise ValueError(
            "model: expected a forest fitted with bootstrap=True, got bootstrap=False, without "
            "out-of-bag rows; use held_out=True and give rows that were not used in the fit"
        )


def _matrix(table: Any, schema: Any) -> Floats:
    """Return rows as the trees read them: numbers or codes, NaN if missing."""
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
    """Return targets in the layout of leaf values, (n_rows, width), and their number.

    A numeric target has one column, a target of classes one column per class. With several targets
    of classes, all have the number of columns of the one with most classes.
    """
    boosts = isinstance(model, BaseBoosting)
    n_outputs = model.fitted_model().n_targets if boosts else model.n_outputs_
    if y.shape[1] != n_outputs:
        raise ValueError(
            f"y: expected {n_outputs} targets, as in the fit of the model, got {y.shape[1]}"
        )
    if not is_classifier(model):
        return np.column_stack([as_numbers(one, "y") for one in y.T]), n_outputs
    several = model.classes_ if n_outputs > 1 else [model.classes_]
    codes = [_class_codes(classes, one) for classes, one in zip(several, y.T, strict=True)]
    if boosts and model.fitted_model().n_scores == 1:
        return codes[0][:, np.newaxis].astype(np.float64), 1
    width = max(len(classes) for classes in several)
    return np.concatenate([np.eye(width)[one] for one in codes], axis=1), n_outputs


def _class_codes(classes: NDArray[Any], y: NDArray[Any]) -> Rows:
    """Return the index of each label among the classes."""
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = classes[codes] != y
    if unknown.any():
        raise ValueError(f"y: expected classes of the model, got {y[unknown].tolist()[0]!r}")
    return codes


def _trees(model: Any, n_rows: int, held_out: bool) -> Iterator[tuple[Tree, Rows]]:
    """Yield each tree with the rows that may be used to evaluate its splits."""
    if isinstance(model, BaseTree):
        yield model.tree_, np.arange(n_rows)
        return
    if isinstance(model, BaseBoosting):
        for tree in model.fitted_model().trees():
            yield tree, np.arange(n_rows)
        return
    assert isinstance(model, BaseForest)
    for t, tree in enumerate(model.fitted_model().trees()):
        yield tree, np.arange(n_rows) if held_out else model.evaluation_rows(t)


def _row_contributions(tree: Tree, rows: Floats, targets: Floats) -> Floats:
    """Return the contributions of rows to columns; rows descend level by level."""
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
        # The mean of these rows, not the node's value: training rows that were drawn twice bias the
        # node's value towards them, and the split with it.
        _, node, counts = np.unique(at, return_inverse=True, return_counts=True)
        sums = [np.bincount(node, target) for target in targets[moving].T]
        means = (np.array(sums) / counts).T[node]
        step = (values[child] - values[at]) * (targets[moving] - means)
        out[moving, feature] += step.sum(axis=1)
        at = child


def _goes_left(tree: Tree, at: NDArray[np.int64], values: Floats) -> NDArray[np.bool_]:
    """Return whether values of the split features go left at the nodes `at`."""
    missing = np.isnan(values)
    left = values <= tree.threshold[at]
    start = tree.category_start[at]
    of_categories = np.flatnonzero((start >= 0) & ~missing)
    if len(of_categories):
        codes = values[of_categories].astype(np.int64)
        words = tree.category_bits[start[of_categories] + codes // 32]
        left[of_categories] = (words >> (codes % 32).astype(np.uint32)) & 1 == 1
    left[missing] = tree.missing_go_to_left[at[missing]] == 1
    return left
