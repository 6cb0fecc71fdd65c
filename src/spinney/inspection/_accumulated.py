"""Accumulated local effects: how predictions change with a column, where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._answers import Answers
from spinney.inspection._category_order import order_categories
from spinney.inspection._dependence import Grid, draw_rows, find_columns
from spinney.inspection._table_view import TableView

__all__ = ["AccumulatedEffects", "accumulated_local_effects"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class AccumulatedEffects:
    """Accumulated local effects over a grid.

    Attributes
    ----------
    grids : list of Grid
        One or two columns: edges of the intervals between quantiles, or categories, in an order in
        which the rows of neighbours are alike in their other columns.
    effect : ndarray of shape (n_outputs, len(grid), …)
        The effect at each place, less its mean over the rows. For two columns what both do together
        beyond the effect of each.
    error : ndarray of the same shape
        Standard error of the effect (one column; NaN for two), from the differences of rows.
    outputs : list of str
        What is predicted: classes, or the one word "prediction".
    is_probability : bool
        Whether predictions are probabilities of these classes.
    counts : ndarray
        Rows in each interval, or in each category.
    mean : ndarray of shape (n_outputs,)
        The mean prediction of the rows.
    n_missing : int
        Rows left out, as they miss a value.
    observed : list of ndarray
        The values of the columns in the rows (places in the grid for categories).
    """

    grids: list[Grid]
    effect: Floats
    error: Floats
    outputs: list[str]
    is_probability: bool
    counts: NDArray[np.int64]
    mean: Floats
    n_missing: int
    observed: list[Floats]


def accumulated_local_effects(
    model: Any,
    X: Any,
    columns: Any,
    *,
    target: Any = None,
    n_intervals: int = 20,
    max_rows: int | None = 10_000,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> AccumulatedEffects:
    """Sum up how predictions change from one end of an interval to the other, for the rows in it.

    Partial dependence puts every value into every row, also where such rows do not exist, as
    columns go together; here only the rows of an interval are asked, and moved no farther than its
    ends (Apley and Zhu, 2020). Categories are put into an order first: rows of a category are
    moved to the one before and the one after.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two columns of numbers, by name or number.
    target : object, default=None
        The class whose probability is meant. None: the second of two, or all of several.
    n_intervals : int, default=20
        Intervals between quantiles of a column of numbers.
    max_rows : int or None, default=10_000
        Rows drawn at random from X if it has more; None takes all.
    random_state : int, RandomState or None, default=0
        Seed of that draw.
    n_jobs : int or None, default=None
        Threads of models that are sums over trees.

    Returns
    -------
    AccumulatedEffects
        The grid and the effects.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.inspection import accumulated_local_effects
    >>> from spinney.linear_model import LinearRegression
    >>> x = np.linspace(0, 1, 101)
    >>> X = np.column_stack([x, x**2])  # these go together
    >>> model = LinearRegression().fit(X, 3 * X[:, 0] - X[:, 1])
    >>> told = accumulated_local_effects(model, X, 0, n_intervals=2)
    >>> told.grids[0].values.tolist(), np.diff(told.effect[0]).round(3).tolist()
    ([0.0, 0.5, 1.0], [1.5, 1.5])
    """
    check_is_fitted(model)
    if n_intervals < 1:
        raise ValueError(f"n_intervals: expected a positive number, got {n_intervals}")
    view = TableView(X, model)
    places = find_columns(view, columns)
    answers = Answers(model, view, target, n_jobs)
    rows = draw_rows(view.n_rows, max_rows, random_state)
    n_before = len(rows)
    for j in places:
        rows = np.setdiff1d(rows, view.missing_rows(j), assume_unique=True)
        if len(rows) == 0:
            raise ValueError(f"columns: expected values in column {view.names[j]!r}, all missing")
        if len(places) == 2 and view.is_category(j):
            raise ValueError(
                f"columns: expected two columns of numbers, got categories in {view.names[j]!r}"
            )
    if len(places) == 2:
        found = _of_two(view, answers, rows, places, n_intervals)
    elif view.is_category(places[0]):
        found = _of_categories(view, answers, rows, places[0])
    else:
        found = _of_numbers(view, answers, rows, places[0], n_intervals)
    grids, effect, error, counts, observed = found
    mean = answers.predict(view.make(rows, {})).mean(axis=1)
    n_missing = n_before - len(rows)
    return AccumulatedEffects(
        *(grids, effect, error, answers.outputs, answers.is_probability),
        *(counts, mean, n_missing, observed),
    )


def _edges(values: Floats, n_intervals: int) -> Floats:
    """Ends of intervals with about as many rows each: values that occur."""
    edges = np.quantile(values, np.linspace(0, 1, n_intervals + 1), method="inverted_cdf")
    return np.unique(edges)


def _intervals(values: Floats, edges: Floats) -> Rows:
    """Return the interval of each value: (edge k, edge k + 1], the first one with both ends."""
    return np.clip(np.searchsorted(edges, values, side="left") - 1, 0, len(edges) - 2)


def _mean_by(which: Rows, n: int, values: Floats) -> tuple[Floats, Floats]:
    """Return means by group, (n_outputs, n), and the squares of their standard errors."""
    counts = np.bincount(which, minlength=n)
    some = np.maximum(counts, 1)
    means = np.array([np.bincount(which, of_one, minlength=n) for of_one in values]) / some
    off = (values - means[:, which]) ** 2
    squares = np.array([np.bincount(which, of_one, minlength=n) for of_one in off])
    return means, squares / np.maximum(counts - 1, 1) / some


def _error(variances: Floats, share: Floats) -> Floats:
    """Return the standard errors of effects less their mean, from their steps' variances.

    The mean has `share` of each step. So the effect at place k, less the mean, is the sum of the
    steps times 1 - share before k, and times -share from there on.
    """
    before = np.cumsum(variances * (1 - share) ** 2, axis=1)
    after = np.cumsum((variances * share**2)[:, ::-1], axis=1)[:, ::-1]
    none = np.zeros((len(variances), 1))
    return np.sqrt(np.concatenate([none, before], axis=1) + np.concatenate([after, none], axis=1))


def _of_numbers(view: TableView, answers: Answers, rows: Rows, j: int, n_intervals: int) -> Any:
    values = view.numbers(j)[rows]
    edges = _edges(values, n_intervals)
    grid = Grid(view.names[j], edges, False)
    n_outputs = len(answers.outputs)
    if len(edges) == 1:  # one value: nothing changes
        nothing = np.zeros((n_outputs, 1))
        return [grid], nothing, nothing, np.array([len(rows)]), [values]
    at = _intervals(values, edges)
    high = answers.predict(view.make(rows, {j: edges[at + 1]}))
    low = answers.predict(view.make(rows, {j: edges[at]}))
    n = len(edges) - 1
    steps, variances = _mean_by(at, n, high - low)
    counts = np.bincount(at, minlength=n)
    effect = np.concatenate([np.zeros((n_outputs, 1)), np.cumsum(steps, axis=1)], axis=1)
    # The mean over the rows, each in the middle of its interval.
    weights = counts / len(rows)
    centre = ((effect[:, 1:] + effect[:, :-1]) / 2) @ weights
    above = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
    error = _error(variances, above[1:] + weights / 2)
    return [grid], effect - centre[:, np.newaxis], error, counts, [values]


def _of_categories(view: TableView, answers: Answers, rows: Rows, j: int) -> Any:
    levels = view.levels(j)
    codes = levels.codes[rows]
    present = np.unique(codes)
    order = present[order_categories(view, rows, j, codes, present)]
    place = np.full(len(levels.labels), -1)
    place[order] = np.arange(len(order))
    at = place[codes]
    examples = levels.rows[order]
    n = len(order)
    grid = Grid(view.names[j], [levels.labels[level] for level in order], False)
    counts = np.bincount(at, minlength=n)
    n_outputs = len(answers.outputs)
    if n == 1:
        nothing = np.zeros((n_outputs, 1))
        return [grid], nothing, nothing, counts, [at.astype(np.float64)]
    own = answers.predict(view.make(rows, {}))
    can_rise, can_fall = at < n - 1, at > 0
    ups = answers.predict(view.make(rows[can_rise], {j: examples[at[can_rise] + 1]}))
    downs = answers.predict(view.make(rows[can_fall], {j: examples[at[can_fall] - 1]}))
    which = np.concatenate([at[can_rise], at[can_fall] - 1])
    changes = np.concatenate([ups - own[:, can_rise], own[:, can_fall] - downs], axis=1)
    steps, variances = _mean_by(which, n - 1, changes)
    effect = np.concatenate([np.zeros((n_outputs, 1)), np.cumsum(steps, axis=1)], axis=1)
    weights = counts / len(rows)
    error = _error(variances, np.cumsum(weights[::-1])[::-1][1:])
    centre = effect @ weights
    return [grid], effect - centre[:, np.newaxis], error, counts, [at.astype(np.float64)]


def _of_two(
    view: TableView, answers: Answers, rows: Rows, places: list[int], n_intervals: int
) -> Any:
    values = [view.numbers(j)[rows] for j in places]
    edges = [_edges(some, n_intervals) for some in values]
    grids = [Grid(view.names[j], e, False) for j, e in zip(places, edges, strict=True)]
    n_outputs = len(answers.outputs)
    shape = tuple(len(e) for e in edges)
    if min(shape) == 1:
        nothing = np.zeros((n_outputs, *shape))
        return grids, nothing, np.full_like(nothing, np.nan), np.zeros(shape, dtype=int), values
    at = [_intervals(some, e) for some, e in zip(values, edges, strict=True)]
    corners = {}
    for a in (0, 1):
        for b in (0, 1):
            changes = {places[0]: edges[0][at[0] + a], places[1]: edges[1][at[1] + b]}
            corners[a, b] = answers.predict(view.make(rows, changes))
    second = corners[1, 1] - corners[1, 0] - corners[0, 1] + corners[0, 0]
    cells = (shape[0] - 1, shape[1] - 1)
    cell = np.ravel_multi_index(tuple(at), cells)
    counts = np.bincount(cell, minlength=cells[0] * cells[1]).reshape(cells)
    steps = np.array([np.bincount(cell, s, minlength=counts.size) for s in second])
    steps = steps.reshape(n_outputs, *cells) / np.maximum(counts, 1)
    empty = counts == 0
    if empty.any():  # a cell without rows has the difference of the nearest one that has some
        from scipy.ndimage import distance_transform_edt

        nearest = distance_transform_edt(empty, return_distances=False, return_indices=True)
        steps = steps[(slice(None), *nearest)]
    effect = np.zeros((n_outputs, *shape))
    effect[:, 1:, 1:] = steps.cumsum(axis=1).cumsum(axis=2)
    effect = _less_main_effects(effect, counts)
    return grids, effect, np.full_like(effect, np.nan), counts, values


def _less_main_effects(effect: Floats, counts: NDArray[Any]) -> Floats:
    """Take off what each of two columns does alone, and then the mean over the rows."""
    by_first = counts.sum(axis=1)
    by_second = counts.sum(axis=0)
    along = np.diff(effect, axis=1)  # of the first column, at each edge of the second
    mean_first = ((along[:, :, 1:] + along[:, :, :-1]) / 2 * counts).sum(axis=2) / by_first
    along = np.diff(effect, axis=2)
    mean_second = ((along[:, 1:] + along[:, :-1]) / 2 * counts).sum(axis=1) / by_second
    zero = np.zeros((len(effect), 1))
    first = np.concatenate([zero, np.cumsum(mean_first, axis=1)], axis=1)
    second = np.concatenate([zero, np.cumsum(mean_second, axis=1)], axis=1)
    effect = effect - first[:, :, np.newaxis] - second[:, np.newaxis, :]
    middles = (
        effect[:, 1:, 1:] + effect[:, 1:, :-1] + effect[:, :-1, 1:] + effect[:, :-1, :-1]
    ) / 4
    centre = (middles * counts).sum(axis=(1, 2)) / counts.sum()
    return effect - centre[:, np.newaxis, np.newaxis]
