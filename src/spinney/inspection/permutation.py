"""Importance by permutation: how much worse a model is when columns are shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._row_scores import RowScores, find_row_scores, find_score
from spinney.inspection._tree_sums import StoredSum, read_tree_sum
from spinney.inspection.importances import Importances, score_name, standard_errors
from spinney.inspection.table_view import TableView, as_targets, as_weights
from spinney.runtime.threads import effective_n_jobs

__all__ = ["permutation_importance", "read_groups"]

Floats = NDArray[np.float64]
_NUMBERS_AT_ONCE = 16_000_000  # scores that are in memory at the same time


def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    *,
    columns: Any = None,
    scoring: Any = None,
    sample_weight: Any = None,
    n_repeats: int = 10,
    max_rows: int | None = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Importances:
    """Measure how much a score decreases when a column or group is shuffled.

    Columns of a group are shuffled together, which keeps the dependence between them. Use held-out
    rows: on training rows, columns that the model overfits look important.

    Parameters
    ----------
    model : fitted estimator
        Any model with a score.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        Their targets.
    columns : list of columns or of lists of columns, or dict of name to columns, default=None
        The columns that are shuffled, by name or number; a list within the list is a group, and so
        is every value of a dict. None: every column by itself.
    scoring : str or callable, default=None
        The score whose decrease is measured; None means accuracy, or R² for regressors. For several
        targets, that is the share of rows in which all of them are right, or the mean of their R².
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows in the score.
    n_repeats : int, default=10
        How often each column or group is shuffled.
    max_rows : int or None, default=10_000
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of the shuffles, and of the sample of rows.
    n_jobs : int or None, default=None
        The number of threads; it does not change the result.

    Returns
    -------
    Importances
        Means over the repeats. The standard errors cover other shuffles and other rows if the score
        is a mean over rows (accuracy, log loss, squared and absolute error, R²) or the root of one
        (RMSE of one target). For other scores they cover only the shuffles.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney.ensemble import RandomForestClassifier
    >>> from spinney.inspection import permutation_importance
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> groups = {"sepal": [0, 1], "petal": [2, 3]}
    >>> importances = permutation_importance(forest, X[1::2], y[1::2], columns=groups)
    >>> importances.names[importances.largest(1)[0]]
    'petal'
    """
    check_is_fitted(model)
    if n_repeats < 1:
        raise ValueError(f"n_repeats: expected a positive number, got {n_repeats}")
    if max_rows is not None and max_rows < 2:
        raise ValueError(f"max_rows: expected at least 2 rows to shuffle, or None, got {max_rows}")
    random = check_random_state(random_state)
    view = TableView(X, model)
    y = as_targets(y, view.n_rows)
    weights = as_weights(sample_weight, view.n_rows, fewest=2)
    if view.n_rows < 2:
        raise ValueError(f"X: expected at least 2 rows to shuffle, got {view.n_rows}")
    names, groups = read_groups(view, columns)
    if max_rows is not None and view.n_rows > max_rows:
        rows = np.sort(random.choice(view.n_rows, max_rows, replace=False))
        view, y = TableView(view.make(rows, {}), model), y[rows]
        weights = None if weights is None else as_weights(weights[rows], len(rows), fewest=2)
    orders = _draw_orders(random, view.n_rows, n_repeats)
    by_rows = find_row_scores(model, scoring, y, weights)
    score: Any = find_score(model, scoring, y, weights) if by_rows is None else by_rows
    base = score(view.make(None, {}))

    def measure(group: list[int]) -> tuple[Floats, float]:
        scores = [score(view.make(None, dict.fromkeys(group, order))) for order in orders]
        return _decreases(base, scores, by_rows, weights)

    tree_sum = None if by_rows is None else read_tree_sum(model)
    if by_rows is not None and tree_sum is not None:
        n_threads = effective_n_jobs(n_jobs)
        found = _measure_in_core(
            tree_sum,
            by_rows,
            view,
            groups,
            orders,
            base=base,
            weights=weights,
            n_threads=n_threads,
        )
    else:
        n_threads = max(1, min(len(groups), effective_n_jobs(n_jobs)))
        with ThreadPoolExecutor(n_threads) as pool:
            found = list(pool.map(measure, groups))
    each = np.array([decreases for decreases, _ in found]).reshape(len(groups), n_repeats)
    of_repeats = np.nan_to_num(standard_errors(each)) ** 2
    error = np.sqrt(of_repeats + np.array([variance for _, variance in found]))
    if by_rows is None and n_repeats == 1:
        error = np.full(len(groups), np.nan)
    kind = f"decrease of the {score_name(model, scoring)} when shuffled"
    return Importances(names, each.mean(axis=1), error, kind, each)


def _draw_orders(random: Any, n_rows: int, n_repeats: int) -> list[NDArray[np.intp]]:
    """Return the permutations of scikit-learn's permutation_importance.

    All columns are shuffled by the same permutations, for a fair comparison.
    """
    draws = check_random_state(random.randint(np.iinfo(np.int32).max + 1))
    orders, order = [], np.arange(n_rows)
    shuffled = order.copy()
    for _ in range(n_repeats):
        draws.shuffle(order)
        shuffled = shuffled[order]
        orders.append(shuffled)
    return orders


def _decreases(
    base: Any, scores: list[Any], by_rows: RowScores | None, weights: Floats | None
) -> tuple[Floats, float]:
    """Return the decrease in each repeat, and its variance from sampling rows."""
    if by_rows is None:
        return np.array([base - one for one in scores]), 0.0
    mean = float(np.average(base, weights=weights))
    means = [float(np.average(one, weights=weights)) for one in scores]
    decreases = np.array([by_rows.of_mean(mean) - by_rows.of_mean(one) for one in means])
    # A row's contribution to the decrease, to first order (delta method for a root).
    slopes = [by_rows.slope_at(one) for one in means]
    after = np.mean([s * one for s, one in zip(slopes, scores, strict=True)], axis=0)
    of_rows = by_rows.slope_at(mean) * base - after
    if weights is None:
        return decreases, float(of_rows.var(ddof=1)) / len(base)
    # The variance of a weighted mean; rows of zero weight do not count.
    n = np.count_nonzero(weights)
    apart = weights / weights.sum() * (of_rows - np.average(of_rows, weights=weights))
    return decreases, float(apart @ apart) * n / (n - 1)


def _measure_in_core(
    tree_sum: StoredSum,
    by_rows: RowScores,
    view: TableView,
    groups: list[list[int]],
    orders: list[NDArray[np.intp]],
    *,
    base: Floats,
    weights: Floats | None,
    n_threads: int,
) -> list[tuple[Floats, float]]:
    """Measure the decreases for a sum over trees in the core.

    The core evaluates a node again only if a shuffle changes the row's path there.
    """
    rows, _ = tree_sum.read(view.make(None, {}))
    numbers = view.n_rows * tree_sum.n_scores * len(orders)
    at_once = max(1, _NUMBERS_AT_ONCE // max(numbers, 1))
    found = []
    for first in range(0, len(groups), at_once):
        some = groups[first : first + at_once]
        for scores in tree_sum.score_shuffled(rows, some, np.array(orders), n_threads):
            values = [by_rows.from_outputs(tree_sum.predict(one)) for one in scores]
            found.append(_decreases(base, values, by_rows, weights))
    return found


def read_groups(view: TableView, columns: Any) -> tuple[list[str], list[list[int]]]:
    """Return names and column indices of the requested columns or groups of columns."""
    if columns is None:
        return list(view.names), [[j] for j in range(view.n_columns)]
    if isinstance(columns, Mapping):
        wanted = list(columns.items())
    elif isinstance(columns, str) or not np.iterable(columns):
        raise TypeError(
            f"columns: expected a list of columns or a dict of groups, got {type(columns).__name__}"
        )
    else:
        wanted = [(None, one) for one in columns]
    names, groups = [], []
    for name, one in wanted:
        several = np.iterable(one) and not isinstance(one, str)
        group = [view.find(column, "columns") for column in (one if several else [one])]
        if not group or len(set(group)) < len(group):
            raise ValueError(
                f"columns: expected one or more different columns in a group, got {one!r}"
            )
        groups.append(group)
        names.append(", ".join(view.names[j] for j in group) if name is None else str(name))
    if not groups:
        raise ValueError("columns: expected at least one column, got none")
    return names, groups
