"""How much a model leans on each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from spinney.plot._calculate_curves import score_name
from spinney.plot._table_view import TableView, as_vector

__all__ = ["Importances", "calculate_importances"]

Floats = NDArray[np.float64]

_WORDS = {  # of a forest's `importance_type`
    "impurity": "share in the decrease of the impurity",
    "corrected": "decrease of the impurity out of the bag",
    "permutation": "fall out of the bag when shuffled",
}


@dataclass(frozen=True)
class Importances:
    """Importances of all columns, in the order of the columns.

    Attributes
    ----------
    names : list of str
        The columns.
    mean, spread : ndarray of shape (n_columns,)
        The importance, and its standard deviation over repeats or trees (NaN if there is none).
    kind : str
        What it is, in words.
    """

    names: list[str]
    mean: Floats
    spread: Floats
    kind: str

    def largest(self, n: int) -> NDArray[np.intp]:
        """Return the n most important columns, the most important one first."""
        return np.argsort(-self.mean, kind="stable")[:n]


def calculate_importances(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    kind: str | None = None,
    n_repeats: int = 10,
    scoring: Any = None,
    columns: Sequence[int] | None = None,
    random_state: Any = 0,
    max_rows: int | None = 10_000,
) -> Importances:
    """Measure importances by permutation (of these columns only), or take the model's own."""
    check_is_fitted(model)
    if kind not in (None, "permutation", "impurity"):
        raise ValueError(f"kind: expected 'permutation', 'impurity' or None, got {kind!r}")
    if kind is None:
        kind = "impurity" if X is None or y is None else "permutation"
    if kind == "impurity":
        return _own(model, X)
    if X is None or y is None:
        raise ValueError("kind='permutation': expected X and y to predict, got none")
    if n_repeats < 1:
        raise ValueError(f"n_repeats: expected a positive number, got {n_repeats}")
    if max_rows is not None and max_rows < 1:
        raise ValueError(f"max_rows: expected a positive number or None, got {max_rows}")
    random = check_random_state(random_state)
    view, y = TableView(X, model), as_vector(y)
    if len(y) != view.n_rows:
        raise ValueError(f"y: expected {view.n_rows} values, one for each row of X, got {len(y)}")
    if max_rows is not None and view.n_rows > max_rows:
        rows = np.sort(random.choice(view.n_rows, max_rows, replace=False))
        view, y = TableView(view.make(rows, {}), model), y[rows]
    return _by_permutation(model, view, y, n_repeats, scoring, columns, random)


def _own(model: Any, X: Any) -> Importances:
    told = getattr(model, "feature_importances_", None)
    if told is None:
        raise ValueError(
            f"model: expected one with feature_importances_, got {type(model).__name__}; "
            "with X and y, importances by permutation are there for every model"
        )
    told = np.asarray(told, dtype=np.float64)
    names = getattr(model, "feature_names_in_", None)
    if names is None and X is not None:
        names = TableView(X, model).names
    if names is None:
        names = [f"column {j}" for j in range(len(told))]
    spread = np.full(len(told), np.nan)
    kind = getattr(model, "importance_type", "impurity")
    members = getattr(model, "estimators_", None)
    if members is not None and not isinstance(members, np.ndarray) and len(members) > 1:
        each = [getattr(member, "feature_importances_", None) for member in members]
        if all(one is not None and len(one) == len(told) for one in each):
            shares = np.array(each)
            # Over the trees of a forest; boosting's trees, say, do not count the same.
            if np.allclose(shares.mean(axis=0), told, atol=1e-3):
                spread = shares.std(axis=0)
    return Importances([str(name) for name in names], told, spread, _WORDS.get(kind, kind))


def _by_permutation(
    model: Any,
    view: TableView,
    y: NDArray[Any],
    n_repeats: int,
    scoring: Any,
    columns: Sequence[int] | None,
    random: Any,
) -> Importances:
    """As `sklearn.inspection.permutation_importance`, same draws, for tables of every kind."""
    scorer = check_scoring(model, scoring=scoring)
    rows = np.arange(view.n_rows)
    base = scorer(model, view.make(None, {}), y)
    # Every column is shuffled by the same draws, so that columns are compared fairly.
    seed = random.randint(np.iinfo(np.int32).max + 1)
    columns = range(view.n_columns) if columns is None else columns
    falls = np.empty((len(columns), n_repeats))
    for place, j in enumerate(columns):
        draws, order, shuffled = check_random_state(seed), rows.copy(), rows
        for repeat in range(n_repeats):
            draws.shuffle(order)
            shuffled = shuffled[order]
            falls[place, repeat] = base - scorer(model, view.make(None, {j: shuffled}), y)
    return Importances(
        [view.names[j] for j in columns],
        falls.mean(axis=1),
        falls.std(axis=1),
        f"fall of the {score_name(model, scoring)} when shuffled",
    )
