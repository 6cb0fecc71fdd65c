"""Friedman's H statistic: the strength of interactions between columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._predictor import Predictor
from spinney.inspection.dependence import sample_rows
from spinney.inspection.table_view import TableView

__all__ = ["Interactions", "interaction_strengths"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interactions:
    """How strongly columns interact.

    Attributes
    ----------
    names : list of str
        The columns.
    overall : ndarray of shape (n_columns,)
        H of each column with all others together: the square root of the share of the variance of
        predictions that neither the column alone nor the others alone explain.
    pairwise : ndarray of shape (n_columns, n_columns)
        H of each pair: the square root of the share of the variance of the joint partial dependence
        that the sum of both partial dependences does not explain. The diagonal is NaN.
    size : ndarray of shape (n_columns, n_columns)
        The standard deviation of the interaction in units of the prediction. A pair with a small
        effect may have a large H.
    """

    names: list[str]
    overall: Floats
    pairwise: Floats
    size: Floats

    def strongest(self, n: int) -> list[tuple[str, str]]:
        """Return the n pairs with the largest interactions by `size`, the strongest first."""
        first, second = np.triu_indices(len(self.names), 1)
        order = np.argsort(-self.size[first, second], kind="stable")[:n]
        return [(self.names[first[k]], self.names[second[k]]) for k in order]


def interaction_strengths(
    model: Any,
    X: Any,
    columns: Any = None,
    *,
    target: Any = None,
    max_rows: int | None = 300,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Interactions:
    """Measure Friedman and Popescu's H for columns, overall and for every pair.

    Every partial dependence is evaluated at the rows' own values: n rows need n² predictions for
    each column and for each pair. For sums over trees, the core calculates them.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : list of str or int, default=None
        The columns; None: all, which may be many pairs.
    target : object, default=None
        The class whose probability is explained. None: the second of two; required for more.
    max_rows : int or None, default=300
        The size of a random sample of rows if X has more; None uses all.
    random_state : int, RandomState or None, default=0
        Seed of that sample.
    n_jobs : int or None, default=None
        The number of threads; it does not change the result.

    Returns
    -------
    Interactions
        H, overall and by pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney.ensemble import GradientBoostingRegressor
    >>> from spinney.inspection import interaction_strengths
    >>> X = np.random.default_rng(0).uniform(size=(500, 3))
    >>> model = GradientBoostingRegressor(random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> interaction_strengths(model, X).strongest(1)
    [('column 0', 'column 1')]
    """
    check_is_fitted(model)
    view = TableView(X, model)
    if columns is None:
        indices = list(range(view.n_columns))
    elif isinstance(columns, str) or not np.iterable(columns):
        raise TypeError(f"columns: expected a list, got {type(columns).__name__}")
    else:
        indices = [view.find(column, "columns") for column in columns]
    if not indices or len(set(indices)) < len(indices):
        raise ValueError(f"columns: expected one or more different columns, got {columns}")
    predictor = Predictor(model, view, target, n_jobs)
    if len(predictor.outputs) > 1:
        raise ValueError(
            f"target: expected one of the {len(predictor.outputs)} classes of the model, got None"
        )
    rows = sample_rows(view.n_rows, max_rows, random_state)
    own = _centred(predictor.predict(view.make(rows, {}))[0])

    alone, overall = {}, np.zeros(len(indices))
    for k, j in enumerate(indices):
        # each[i, r]: row i with the value of row r. The mean over i is the column's partial
        # dependence, the mean over r that of all other columns.
        each = predictor.each(rows, {j: rows})[0]
        alone[j] = _centred(each.mean(axis=0))
        others = _centred(each.mean(axis=1))
        overall[k] = _share(own - alone[j] - others, own)
    n = len(indices)
    pairwise, size = np.full((n, n), np.nan), np.full((n, n), np.nan)
    for a, b in combinations(range(n), 2):
        i, j = indices[a], indices[b]
        both = _centred(predictor.average(rows, {i: rows, j: rows})[0])
        beyond = both - alone[i] - alone[j]
        pairwise[a, b] = pairwise[b, a] = _share(beyond, both)
        size[a, b] = size[b, a] = np.sqrt(np.mean(beyond**2))
    return Interactions([view.names[j] for j in indices], overall, pairwise, size)


def _centred(values: Floats) -> Floats:
    return values - values.mean()


def _share(part: Floats, whole: Floats) -> float:
    """Return sqrt(sum(part²) / sum(whole²)), or 0 if a sum is only rounding error."""
    total = float(np.sum(whole**2))
    # A difference of equal sums is a rounding error, not an interaction.
    tiny = len(whole) * (1e-12 * max(1.0, float(np.abs(whole).max(initial=0.0)))) ** 2
    if total <= tiny or float(np.sum(part**2)) <= tiny:
        return 0.0
    return float(np.sqrt(np.sum(part**2) / total))
