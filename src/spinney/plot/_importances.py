"""How much a model leans on each column, as bars."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney.inspection.importances import Importances, own_importances
from spinney.inspection.impurity import impurity_importance
from spinney.inspection.permutation import permutation_importance
from spinney.plot._style import ACCENT, GREY, label_categories, note, styled

__all__ = ["importances"]


def importances(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    kind: str | None = None,
    n_repeats: int = 10,
    scoring: Any = None,
    random_state: Any = 0,
    max_rows: int | None = 10_000,
    max_columns: int = 20,
    ax: Any = None,
) -> Any:
    """Draw the importances of the columns, the largest on top.

    Parameters
    ----------
    model : fitted estimator
        The model.
    X : array, sparse matrix or frame of shape (n_rows, n_columns), default=None
        Rows for the permutations, best such that the model has not seen.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
        Their targets.
    kind : {"permutation", "impurity", "corrected"} or None, default=None
        "permutation": how much the score falls when a column is shuffled; any model has it.
        "impurity": the model's own ``feature_importances_``. "corrected": the decrease of the
        impurity out of the bag, of a forest; X and y are its rows of fit. None: by permutation if
        there are X and y.
    n_repeats : int, default=10
        How often each column is shuffled.
    scoring : str or callable, default=None
        The score that falls; None means accuracy, or R² for regressors.
    random_state : int, RandomState or None, default=0
        Seed of the shuffles, and of the draw of rows.
    max_rows : int or None, default=10_000
        Rows drawn at random for the permutations if X has more; None takes all.
    max_columns : int, default=20
        How many columns are shown.
    ax : matplotlib Axes, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Lines across the bars are plus and minus one standard error; what it holds is
        said by `permutation_importance` and `impurity_importance`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestClassifier
    >>> iris = load_iris(as_frame=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(iris.data, iris.target)
    >>> axes = plot.importances(forest, iris.data, iris.target)
    >>> axes.get_xlabel()
    'fall of the accuracy when shuffled'
    """
    if max_columns < 1:
        raise ValueError(f"max_columns: expected a positive number, got {max_columns}")
    told = _measure(model, X, y, kind, n_repeats, scoring, random_state, max_rows)
    shown = told.largest(max_columns)
    ax = styled(ax, (5.6, max(1.6, 0.9 + 0.22 * len(shown))), grid="x")
    places = np.arange(len(shown))
    errors = told.error[shown]
    error = {} if np.isnan(errors).any() else {"xerr": errors}
    ax.barh(
        places,
        told.mean[shown],
        height=0.7,
        color=ACCENT,
        ecolor=GREY,
        error_kw={"elinewidth": 1.2},
        **error,
    )
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.axvline(0, color=GREY, linewidth=0.8)
    label_categories(ax, "y", [told.names[j] for j in shown])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(told.kind)
    if len(shown) < len(told.names):
        note(ax, f"{len(shown)} of {len(told.names)} columns")
    return ax


def _measure(
    model: Any,
    X: Any,
    y: Any,
    kind: str | None,
    n_repeats: int,
    scoring: Any,
    random_state: Any,
    max_rows: int | None,
) -> Importances:
    if kind not in (None, "permutation", "impurity", "corrected"):
        raise ValueError(
            f"kind: expected 'permutation', 'impurity', 'corrected' or None, got {kind!r}"
        )
    if kind is None:
        kind = "impurity" if X is None or y is None else "permutation"
    if kind == "impurity":
        return own_importances(model, X)
    if X is None or y is None:
        wanted = "to predict" if kind == "permutation" else "of fit"
        raise ValueError(f"kind={kind!r}: expected X and y {wanted}, got none")
    if kind == "corrected":
        return impurity_importance(model, X, y)
    return permutation_importance(
        model,
        X,
        y,
        n_repeats=n_repeats,
        scoring=scoring,
        random_state=random_state,
        max_rows=max_rows,
    )
