"""Bar plot of the importances of columns."""

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
        The rows, for "permutation" preferably held-out rows.
    y : array-like of shape (n_rows,) or (n_rows, n_outputs), default=None
        Their targets.
    kind : {"permutation", "impurity", "corrected"} or None, default=None
        "permutation": the decrease of the score when a column is shuffled; for any model.
        "impurity": the model's own ``feature_importances_``. "corrected": the decrease of the
        impurity on the out-of-bag rows of a forest; X and y are its training rows. None:
        "permutation" if X and y are given, otherwise "impurity".
    n_repeats : int, default=10
        How often each column is shuffled.
    scoring : str or callable, default=None
        The score whose decrease is measured; None means accuracy, or R² for regressors.
    random_state : int, RandomState or None, default=0
        Seed of the shuffles, and of the sample of rows.
    max_rows : int or None, default=10_000
        The size of a random sample of rows for the permutations if X has more; None uses all.
    max_columns : int, default=20
        The maximum number of columns that are shown.
    ax : matplotlib Axes, default=None
        The axes to draw on; None makes a figure.

    Returns
    -------
    matplotlib Axes
        The axes. Lines across the bars are plus and minus one standard error; see
        `permutation_importance` and `impurity_importance` for their meaning.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from spinney import plot
    >>> from spinney.ensemble import RandomForestClassifier
    >>> iris = load_iris(as_frame=True)
    >>> forest = RandomForestClassifier(random_state=0).fit(iris.data, iris.target)
    >>> axes = plot.importances(forest, iris.data, iris.target)
    >>> axes.get_xlabel()
    'decrease of the accuracy when shuffled'
    """
    if max_columns < 1:
        raise ValueError(f"max_columns: expected a positive number, got {max_columns}")
    measured = _measure(
        model,
        X,
        y,
        kind,
        n_repeats=n_repeats,
        scoring=scoring,
        random_state=random_state,
        max_rows=max_rows,
    )
    shown = measured.largest(max_columns)
    ax = styled(ax, (5.6, max(1.6, 0.9 + 0.22 * len(shown))), grid="x")
    positions = np.arange(len(shown))
    errors = measured.error[shown]
    error = {} if np.isnan(errors).any() else {"xerr": errors}
    ax.barh(
        positions,
        measured.mean[shown],
        height=0.7,
        color=ACCENT,
        ecolor=GREY,
        error_kw={"elinewidth": 1.2},
        **error,
    )
    ax.set_ylim(len(shown) - 0.4, -0.6)
    ax.axvline(0, color=GREY, linewidth=0.8)
    label_categories(ax, "y", [measured.names[j] for j in shown])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(measured.kind)
    if len(shown) < len(measured.names):
        note(ax, f"{len(shown)} of {len(measured.names)} columns")
    return ax


def _measure(
    model: Any,
    X: Any,
    y: Any,
    kind: str | None,
    *,
    n_repeats: int,
    scoring: Any,
    random_state: Any,
    max_rows: int | None,
) -> Importances:
    """Return importances of the requested kind."""
    if kind not in (None, "permutation", "impurity", "corrected"):
        raise ValueError(
            f"kind: expected 'permutation', 'impurity', 'corrected' or None, got {kind!r}"
        )
    if kind is None:
        kind = "impurity" if X is None or y is None else "permutation"
    if kind == "impurity":
        return own_importances(model, X)
    if X is None or y is None:
        rows = "rows to predict" if kind == "permutation" else "the training rows"
        raise ValueError(f"kind={kind!r}: expected X and y, {rows}, got None")
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
