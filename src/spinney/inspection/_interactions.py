"""Friedman's H: how much of what columns do to predictions they do together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from spinney.inspection._answers import Answers
from spinney.inspection.dependence import draw_rows
from spinney.inspection.table_view import TableView

__all__ = ["Interactions", "interaction_strengths"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Interactions:
    """How strongly columns act together.

    Attributes
    ----------
    names : list of str
        The columns.
    overall : ndarray of shape (n_columns,)
        H of each column with all others together: the square root of the share of the variance of
        predictions that is neither the column's own nor that of the others.
    pairwise : ndarray of shape (n_columns, n_columns)
        H of each pair, the square root of the share of the variance of what both do that is not the
        sum of what each does. The diagonal is NaN.
    size : ndarray of shape (n_columns, n_columns)
        The same not as a share but in units of the prediction: a pair that does little may have a
        large share of it.
    """

    names: list[str]
    overall: Floats
    pairwise: Floats
    size: Floats

    def strongest(self, n: int) -> list[tuple[str, str]]:
        """Return the n pairs that do most together, the strongest first."""
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

    Every partial dependence is taken at the rows' own values: n rows ask for n² predictions a
    column and a pair. Models that are sums over trees answer in the core.

    Parameters
    ----------
    model : fitted classifier with ``predict_proba``, or regressor
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns)
        The rows.
    columns : list of str or int, default=None
        The columns; None: all, whose pairs may be many.
    target : object, default=None
        The class whose probability is meant. None: the second of two; needed for several.
    max_rows : int or None, default=300
        Rows drawn at random from X if it has more; None takes all.
    random_state : int, RandomState or None, default=0
        Seed of that draw.
    n_jobs : int or None, default=None
        Threads; the result is the same for any number.

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
        places = list(range(view.n_columns))
    elif isinstance(columns, str) or not np.iterable(columns):
        raise TypeError(f"columns: expected a list, got {type(columns).__name__}")
    else:
        places = [view.find(column, "columns") for column in columns]
    if not places or len(set(places)) < len(places):
        raise ValueError(f"columns: expected different ones, got {columns}")
    answers = Answers(model, view, target, n_jobs)
    if len(answers.outputs) > 1:
        raise ValueError("target: expected the class that is meant, got None")
    rows = draw_rows(view.n_rows, max_rows, random_state)
    own = _centred(answers.predict(view.make(rows, {}))[0])

    alone, overall = {}, np.zeros(len(places))
    for k, j in enumerate(places):
        # Row i with the value of row r: the mean over i is what the column does, the mean over r
        # is what all other columns do.
        each = answers.each(rows, {j: rows})[0]
        alone[j] = _centred(each.mean(axis=0))
        others = _centred(each.mean(axis=1))
        overall[k] = _share(own - alone[j] - others, own)
    n = len(places)
    pairwise, size = np.full((n, n), np.nan), np.full((n, n), np.nan)
    for a, b in combinations(range(n), 2):
        i, j = places[a], places[b]
        both = _centred(answers.average(rows, {i: rows, j: rows})[0])
        beyond = both - alone[i] - alone[j]
        pairwise[a, b] = pairwise[b, a] = _share(beyond, both)
        size[a, b] = size[b, a] = np.sqrt(np.mean(beyond**2))
    return Interactions([view.names[j] for j in places], overall, pairwise, size)


def _centred(values: Floats) -> Floats:
    return values - values.mean()


def _share(part: Floats, whole: Floats) -> float:
    total = float(np.sum(whole**2))
    # What is left of equal sums is rounding, not interaction.
    tiny = len(whole) * (1e-12 * max(1.0, float(np.abs(whole).max(initial=0.0)))) ** 2
    if total <= tiny or float(np.sum(part**2)) <= tiny:
        return 0.0
    return float(np.sqrt(np.sum(part**2) / total))
