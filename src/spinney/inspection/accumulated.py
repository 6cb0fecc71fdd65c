"""Accumulated local effects: how predictions change with a column, where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._accumulated_pairs import effects_of_two
from spinney.inspection._answers import Answers
from spinney.inspection._effect_axis import EffectAxis, make_axis
from spinney.inspection.dependence import Grid, draw_rows, find_columns
from spinney.inspection.table_view import TableView

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
        Rows in each interval, or in each category; for two columns, in each pair of them.
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
    moved to the one before and the one after. Of two columns, it is summed up how the change
    with the one changes with the other.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
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
    if not isinstance(n_intervals, Integral) or n_intervals < 1:
        raise ValueError(f"n_intervals: expected a positive whole number, got {n_intervals!r}")
    view = TableView(X, model)
    places = find_columns(view, columns)
    answers = Answers(model, view, target, n_jobs)
    rows = draw_rows(view.n_rows, max_rows, random_state)
    n_before = len(rows)
    known = [np.setdiff1d(rows, view.missing_rows(j), assume_unique=True) for j in places]
    for j, some in zip(places, known, strict=True):
        if len(some) == 0:
            raise ValueError(f"columns: expected values in column {view.names[j]!r}, all missing")
        rows = np.intersect1d(rows, some, assume_unique=True)
    if len(rows) == 0:
        both = " and ".join(repr(view.names[j]) for j in places)
        raise ValueError(f"columns: expected rows with values in both {both}, got none")
    axes = [make_axis(view, rows, j, n_intervals, k) for j, k in zip(places, known, strict=True)]
    if len(axes) == 2:
        effect, counts = effects_of_two(view, answers, rows, (axes[0], axes[1]))
        error = np.full_like(effect, np.nan)
    else:
        counts = np.bincount(axes[0].at, minlength=axes[0].n_cells)
        effect, error = _of_one(view, answers, rows, axes[0], counts / len(rows))
    return AccumulatedEffects(
        [axis.grid for axis in axes],
        effect,
        error,
        answers.outputs,
        answers.is_probability,
        counts,
        answers.predict(view.make(rows, {})).mean(axis=1),
        n_before - len(rows),
        [axis.observed for axis in axes],
    )


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


def _of_one(
    view: TableView, answers: Answers, rows: Rows, axis: EffectAxis, weights: Floats
) -> tuple[Floats, Floats]:
    """Return effects and their errors; `weights` has the shares of rows in the cells."""
    zero = np.zeros((len(answers.outputs), 1))
    if axis.n_places == 1:  # one value: nothing changes
        return zero, zero
    which, changes = [], []
    for some, step in axis.steps():
        ends = [{axis.column: axis.settings[step + up]} for up in (0, 1)]
        low, high = (answers.predict(view.make(rows[some], end)) for end in ends)
        which.append(step)
        changes.append(high - low)
    n_steps = axis.n_places - 1
    means, variances = _mean_by(np.concatenate(which), n_steps, np.concatenate(changes, axis=1))
    effect = np.concatenate([zero, np.cumsum(means, axis=1)], axis=1)
    at_places = axis.by_place(weights, 0)
    # A step counts for the rows beyond it.
    error = _error(variances, np.cumsum(at_places[::-1])[::-1][1:])
    return effect - (effect @ at_places)[:, np.newaxis], error
