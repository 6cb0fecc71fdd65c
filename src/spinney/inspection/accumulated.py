"""Accumulated local effects: changes of predictions with a column, near rows."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._accumulated_pairs import effects_of_two
from spinney.inspection._effect_axis import EffectAxis, make_axis
from spinney.inspection._predictor import Predictor
from spinney.inspection.dependence import EffectGrid, find_columns, sample_rows
from spinney.inspection.table_view import TableView

__all__ = ["AccumulatedEffects", "accumulated_local_effects"]

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]


@dataclass(frozen=True)
class AccumulatedEffects:
    """Accumulated local effects over a grid.

    Attributes
    ----------
    grids : list of EffectGrid
        One or two columns: edges of the intervals between quantiles, or categories, in an order
        that puts categories with similar rows next to each other.
    effect : ndarray of shape (n_outputs, len(grid), …)
        The effect at each grid point, minus its mean over the rows. For two columns, the joint
        effect without the two main effects.
    error : ndarray of the same shape
        Standard error of the effect, from the variation between rows (NaN for two columns).
    outputs : list of str
        Names of the outputs: classes, or "prediction" for a regressor.
    is_probability : bool
        Whether predictions are probabilities of these classes.
    counts : ndarray
        The number of rows in each interval or category; for two columns, in each pair of them.
    mean : ndarray of shape (n_outputs,)
        The mean prediction of the rows.
    n_missing : int
        The number of rows that are omitted because a value is missing.
    observed : list of ndarray
        The values of the columns in the rows (for categories, positions in the grid).
    """

    grids: list[EffectGrid]
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
    """Accumulate changes of predictions across intervals, for the rows in each.

    Partial dependence puts every value into every row, which creates impossible rows if columns are
    correlated. Here only the rows of an interval are used, and moved only to its ends (Apley and
    Zhu, 2020). Categories are ordered first: rows of a category are moved to the category before
    and the one after. For two columns, second differences are accumulated: the change of one
    column's effect with the other column.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : str, int, or pair of them
        The column, or two of them, by name or number.
    target : object, default=None
        The class whose probability is explained. None: the second of two, or all if there are more.
    n_intervals : int, default=20
        The number of intervals between quantiles of a numeric column.
    max_rows : int or None, default=10_000
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of that sample.
    n_jobs : int or None, default=None
        The number of threads for models that are sums over trees.

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
    >>> X = np.column_stack([x, x**2])  # correlated columns
    >>> model = LinearRegression().fit(X, 3 * X[:, 0] - X[:, 1])
    >>> effects = accumulated_local_effects(model, X, 0, n_intervals=2)
    >>> effects.grids[0].values.tolist(), np.diff(effects.effect[0]).round(3).tolist()
    ([0.0, 0.5, 1.0], [1.5, 1.5])
    """
    check_is_fitted(model)
    if not isinstance(n_intervals, Integral) or n_intervals < 1:
        raise ValueError(f"n_intervals: expected a positive integer, got {n_intervals!r}")
    view = TableView(X, model)
    indices = find_columns(view, columns)
    predictor = Predictor(model, view, target, n_jobs)
    rows = sample_rows(view.n_rows, max_rows, random_state)
    n_before = len(rows)
    known = [np.setdiff1d(rows, view.missing_rows(j), assume_unique=True) for j in indices]
    for j, some in zip(indices, known, strict=True):
        if len(some) == 0:
            raise ValueError(
                f"columns: expected a value in column {view.names[j]!r}, got only missing values"
            )
        rows = np.intersect1d(rows, some, assume_unique=True)
    if len(rows) == 0:
        both = " and ".join(repr(view.names[j]) for j in indices)
        raise ValueError(f"columns: expected rows with values in both {both}, got none")
    axes = [make_axis(view, rows, j, n_intervals, k) for j, k in zip(indices, known, strict=True)]
    if len(axes) == 2:
        effect, counts = effects_of_two(view, predictor, rows, (axes[0], axes[1]))
        error = np.full_like(effect, np.nan)
    else:
        counts = np.bincount(axes[0].at, minlength=axes[0].n_cells)
        effect, error = _effects_of_one(view, predictor, rows, axes[0], counts / len(rows))
    return AccumulatedEffects(
        [axis.grid for axis in axes],
        effect,
        error,
        predictor.outputs,
        predictor.is_probability,
        counts,
        predictor.predict(view.make(rows, {})).mean(axis=1),
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
    """Return standard errors of centred effects, from the variances of their steps.

    `share` is the weight of each step in the mean effect. So the centred effect at point k is the
    sum of the steps, weighted by 1 - share before k and by -share from k on.
    """
    before = np.cumsum(variances * (1 - share) ** 2, axis=1)
    after = np.cumsum((variances * share**2)[:, ::-1], axis=1)[:, ::-1]
    none = np.zeros((len(variances), 1))
    return np.sqrt(np.concatenate([none, before], axis=1) + np.concatenate([after, none], axis=1))


def _effects_of_one(
    view: TableView, predictor: Predictor, rows: Rows, axis: EffectAxis, weights: Floats
) -> tuple[Floats, Floats]:
    """Return effects and their errors; `weights` is the share of rows in each cell."""
    zero = np.zeros((len(predictor.outputs), 1))
    if axis.n_points == 1:  # a constant column has no effect
        return zero, zero
    which, changes = [], []
    for some, step in axis.steps():
        ends = [{axis.column: axis.settings[step + up]} for up in (0, 1)]
        low, high = (predictor.predict(view.make(rows[some], end)) for end in ends)
        which.append(step)
        changes.append(high - low)
    n_steps = axis.n_points - 1
    means, variances = _mean_by(np.concatenate(which), n_steps, np.concatenate(changes, axis=1))
    effect = np.concatenate([zero, np.cumsum(means, axis=1)], axis=1)
    at_points = axis.per_point(weights, 0)
    # The weight of a step in the mean is the share of rows beyond it.
    error = _error(variances, np.cumsum(at_points[::-1])[::-1][1:])
    return effect - (effect @ at_points)[:, np.newaxis], error
